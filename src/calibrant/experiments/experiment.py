"""What an experiment is: a setting goes in, a result with claims and pictures comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.experiments.claims import Claim
from calibrant.experiments.figures import Columns, Panels
from calibrant.registry import Registry
from calibrant.report.tables import Table
from calibrant.stream.failure import Unreadable

SEEDS: Final = 100
"""Games of each kind; a seed more or less moves no verdict."""
LISTS: Final = ("claims", "tables", "notes", "missing")


@dataclass(frozen=True)
class Setting:
    """How an experiment is run.

    Attributes
    ----------
    data
        The directory of the data; None looks at what came along and what was fetched.
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

    data: Path | None = None
    seeds: int = SEEDS
    quick: bool = False
    bed: Path | None = None
    tell: Callable[[str], None] = field(default=lambda said: None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", check.whole(self.seeds, "seeds", low=2))


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
        lists = {name: getattr(self, name) + getattr(other, name) for name in LISTS}
        figures, columns = {**self.figures, **other.figures}, {**self.columns, **other.columns}
        return Result(figures=figures, columns=columns, **lists)


def attempt(run: Callable[[Setting], Result], setting: Setting) -> Result:
    """Return what a run gives, or which file it misses."""
    try:
        return run(setting)
    except Unreadable as error:
        return Result((), missing=(str(error),))


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
