"""What an experiment is: a setting goes in, a result with claims and pictures comes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.experiments.panels import Panels
from calibrant.registry import Registry
from calibrant.report.tables import Table, shown

SEEDS: Final = 100
"""Games of each kind; a seed more or less moves no verdict."""
VERDICTS: Final = {True: "holds", False: "does not hold", None: "not measured"}

Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""The columns of a CSV file by name, all of one length."""


def _silent(said: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Setting:
    """How an experiment is run.

    Attributes
    ----------
    data
        The directory of the data that do not come with the package.
    seeds
        How many games are averaged, seeds 0, 1, ...
    quick
        Whether to do less where the full run takes minutes; each experiment says what.
    bed
        Genotypes of your own, a PLINK file, for the experiment that is about them.
    tell
        Called with a sentence whenever something begins that takes a while.

    Examples
    --------
    >>> Setting(Path("data"), seeds=0)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: seeds must be a whole number of at least 2, got 0
    """

    data: Path
    seeds: int = SEEDS
    quick: bool = False
    bed: Path | None = None
    tell: Callable[[str], None] = field(default=_silent, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", check.whole(self.seeds, "seeds", low=2))


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper or of ours, the number that speaks to it, and the verdict.

    Attributes
    ----------
    key
        A short name for the number, unlike any other of its experiment.
    said
        What is claimed.
    value
        What was measured; nan if it was not.
    bar
        What the number must be, in words.
    holds
        Whether it is; None if nothing was measured.
    source
        ``"paper"`` if the paper claims it, ``"ours"`` if this package does.
    """

    key: str
    said: str
    value: float
    bar: str
    holds: bool | None
    source: str = "paper"

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return VERDICTS[self.holds]

    @property
    def shown(self) -> str:
        """The number as it is printed."""
        return shown(self.value)


def below(key: str, said: str, value: float, bar: float, source: str = "paper") -> Claim:
    """Return a claim that holds if the value is below the bar.

    >>> below("c2", "the error is small", 0.004, 0.01).verdict
    'holds'
    """
    return Claim(key, said, float(value), f"below {bar:.4g}", bool(value < bar), source)


def at_most(key: str, said: str, value: float, bar: float, source: str = "paper") -> Claim:
    """Return a claim that holds if the value is at most the bar."""
    return Claim(key, said, float(value), f"at most {bar:.4g}", bool(value <= bar), source)


def at_least(key: str, said: str, value: float, bar: float, source: str = "paper") -> Claim:
    """Return a claim that holds if the value is at least the bar."""
    return Claim(key, said, float(value), f"at least {bar:.4g}", bool(value >= bar), source)


def near(
    key: str, said: str, value: float, bar: float, room: float, source: str = "paper"
) -> Claim:
    """Return a claim that holds if the value is no further than ``room`` from the bar.

    >>> near("loss", "as good as a coin", 0.262, 0.25, 0.01).verdict
    'does not hold'
    """
    told = f"{bar:.4g} ± {room:.4g}"
    return Claim(key, said, float(value), told, bool(abs(value - bar) <= room), source)


def unmeasured(key: str, said: str, bar: str, source: str = "paper") -> Claim:
    """Return a claim that this run has nothing to say about."""
    return Claim(key, said, math.nan, bar, None, source)


@dataclass(frozen=True, eq=False)
class Result:
    """What came of an experiment.

    Attributes
    ----------
    claims
        Each sentence with its number and verdict.
    figures
        The pictures, by the names of their files.
    tables
        The tables of the page.
    columns
        The numbers behind all of it, by the names of their CSV files.
    notes
        Paragraphs for the page: what was done, and what does not help.
    missing
        What could not be done here, and which file it needs.
    """

    claims: tuple[Claim, ...]
    figures: Mapping[str, Panels] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    columns: Mapping[str, Columns] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        keys = [claim.key for claim in self.claims]
        for name, columns in self.columns.items():
            check.same_length(**columns)
            if not columns:
                raise InvalidInput(f"columns must be at least one, got none for {name!r}")
        if len(set(keys)) < len(keys):
            raise InvalidInput(f"keys of claims must differ, got {keys!r}")

    def numbers(self) -> dict[str, float]:
        """Return the claims' numbers by key."""
        return {claim.key: claim.value for claim in self.claims}

    def __add__(self, other: Result) -> Result:
        """Return both, one after the other."""
        return Result(
            self.claims + other.claims,
            {**self.figures, **other.figures},
            self.tables + other.tables,
            {**self.columns, **other.columns},
            self.notes + other.notes,
            self.missing + other.missing,
        )


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run again.

    Attributes
    ----------
    name, title
        What it is called on the command line, and on the page.
    place
        Where it stands on the page; the paper's order.
    run
        Takes a setting, returns a result.
    """

    name: str
    title: str
    place: int
    run: Callable[[Setting], Result]


experiments: Registry[Experiment] = Registry("experiment")
"""Every experiment by name."""


def experiment(
    name: str, title: str, place: int
) -> Callable[[Callable[[Setting], Result]], Callable[[Setting], Result]]:
    """Return a decorator that enters a function as an experiment.

    Examples
    --------
    >>> from calibrant.experiments import experiments
    >>> experiments.get("bernoulli").title
    'Predicting a Bernoulli sequence'
    """

    def enter(run: Callable[[Setting], Result]) -> Callable[[Setting], Result]:
        experiments.add(name)(Experiment(name, title, place, run))
        return run

    return enter
