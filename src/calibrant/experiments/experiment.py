"""What an experiment is: a setting goes in, a result with claims and pictures comes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.plot import canvas
from calibrant.plot.canvas import LIGHT, Drawing, entry, looks
from calibrant.plot.over_time import log_scale
from calibrant.registry import Registry
from calibrant.report.tables import Table, shown
from calibrant.stream.failure import Unreadable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EARLY: Final = 0.02
"""Share of the rounds whose averages say nothing yet."""
TAIL: Final = 0.1
"""Share of the games above a band, and of those below it."""


@dataclass(frozen=True, eq=False)
class Band:
    """A quantity over time: its mean over games, and where most of them are."""

    mean: Reals
    low: Reals
    high: Reals


def band_of(games: Any) -> Band:
    """Return mean, tenth and ninetieth percentile of games, one row each.

    >>> band_of([[0.0, 1.0], [1.0, 1.0]]).mean.tolist()
    [0.5, 1.0]
    """
    rows = np.atleast_2d(np.asarray(games, dtype=np.float64))
    low, high = np.quantile(rows, [TAIL, 1.0 - TAIL], axis=0)
    return Band(rows.mean(axis=0), low, high)


@dataclass(frozen=True, eq=False)
class Curves(Drawing):
    """Bands over time.

    Attributes
    ----------
    title
        What the upright axis shows.
    rounds
        How many rounds each point covers.
    series
        A band for each forecaster.
    logarithmic
        Whether the upright axis is.
    """

    entry_width: ClassVar[float] = 1.9

    title: str
    rounds: Words
    series: Mapping[str, Band]
    logarithmic: bool = False

    def _ink(self, ax: Axes) -> list[Any]:
        given = looks(self.series)
        for name, band in self.series.items():
            colour = given[name].colour
            ax.fill_between(self.rounds, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
            ax.plot(self.rounds, band.mean, marker="", **given[name].line())
        canvas.rounds_axis(ax, self.rounds, self.title)
        self._scale(ax)
        return [entry(look.label, **look.line()) for look in given.values()]

    def _scale(self, ax: Axes) -> None:
        later = self.rounds >= EARLY * self.rounds[-1]
        ends = [band.high[later].max() for band in self.series.values()]
        if self.logarithmic:
            settled = np.concatenate([band.mean[later] for band in self.series.values()])
            log_scale(ax, np.maximum(settled, 1e-6))
        else:
            ax.set_ylim(0.0, 1.08 * max(ends))
            canvas.plain_axis(ax.yaxis)


@dataclass(frozen=True, eq=False)
class Slopes(Drawing):
    """Quantities against sizes on logarithmic axes, where a power is a straight line.

    Attributes
    ----------
    titles
        What the axes show.
    sizes
        The places on the lower axis.
    series
        The quantity at these places; nan where there is none.
    """

    entry_width: ClassVar[float] = 2.2

    titles: tuple[str, str]
    sizes: Reals
    series: Mapping[str, Reals]

    def _ink(self, ax: Axes) -> list[Any]:
        from matplotlib.ticker import FixedLocator, NullLocator

        given = looks(self.series)
        for name, values in self.series.items():
            ax.plot(self.sizes, values, **given[name].line(), **given[name].mark(4.0))
        ax.set_xscale("log")
        ax.set(xlabel=self.titles[0], ylabel=self.titles[1])
        ax.xaxis.set_major_locator(FixedLocator(list(self.sizes)))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        values = np.concatenate(list(self.series.values()))
        log_scale(ax, values[np.isfinite(values)])
        return [entry(look.label, **look.line(), **look.mark(4.0)) for look in given.values()]


@dataclass(frozen=True, eq=False)
class Panels:
    """One figure of several drawings with letters.

    Attributes
    ----------
    title, caption
        What stands below it on the page.
    drawings
        The panels by letter.
    layout
        Rows of letters, as in the paper; a letter may fill several places.
    size
        Inches.
    """

    title: str
    caption: str
    drawings: Mapping[str, Drawing]
    layout: Sequence[str]
    size: tuple[float, float] = (7.6, 3.0)

    def __post_init__(self) -> None:
        if set("".join(self.layout)) != set(self.drawings):
            raise InvalidInput(f"layout must have each panel's letter, got {self.layout!r}")

    def draw(self) -> Figure:
        """Return the figure, on which no pyplot has an eye."""
        figure = cast("Figure", canvas.new_axes(self.size).figure)
        figure.clear()
        engine: Any = figure.get_layout_engine()
        engine.set(w_pad=0.1, h_pad=0.1)
        places = figure.subplot_mosaic([list(row) for row in self.layout])
        for letter, ax in places.items():
            self.drawings[letter].draw(ax)
            _finish(ax, letter)
        return figure


def _finish(ax: Axes, letter: str) -> None:
    """Dress a panel like all our pictures, and write its letter."""
    canvas.dress(ax)
    legend = ax.get_legend()
    for text in legend.get_texts() if legend is not None else ():
        text.set(fontfamily=canvas.FONT, fontsize=canvas.SMALL, color=LIGHT["ink"])
    bold: canvas.Style = {"fontweight": "bold", "fontfamily": canvas.FONT, "color": LIGHT["ink"]}
    ax.text(0.02, 0.96, letter, transform=ax.transAxes, va="top", fontsize=canvas.TEXT, **bold)


SEEDS: Final = 100
"""Games of each kind; a seed more or less moves no verdict."""
LISTS: Final = ("claims", "tables", "notes", "missing")
VERDICTS: Final = {True: "holds", False: "does not hold", None: "not measured"}

Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""The columns of a CSV file by name, all of one length."""


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
    misses
        Seeds whose draws alone miss the bar, where draws were judged one by one.
    """

    key: str
    said: str
    value: float
    bar: str
    holds: bool | None
    source: str = "paper"
    misses: tuple[int, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return VERDICTS[self.holds]

    @property
    def shown(self) -> str:
        """The number as it is printed."""
        return shown(self.value)

    @property
    def failure(self) -> str:
        """What is missed and by which seeds, in words.

        >>> at_most("error", "it is small", 0.3, 0.2).failure
        'error does not hold: it is small: 0.3000, must be at most 0.2'
        """
        told = f"{self.key} {self.verdict}: {self.said}: {self.shown}, must be {self.bar}"
        seeds = ", ".join(map(str, self.misses))
        return f"{told}; draws of these seeds alone miss it: {seeds}" if seeds else told


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


Judge: TypeAlias = Callable[[str, str, float, float, str], Claim]
"""Judges a value by a bar: :func:`below`, :func:`at_most` or :func:`at_least`."""


def near(key: str, said: str, value: float, bar: float, off: float, source: str = "paper") -> Claim:
    """Return a claim that holds if the value is no further than ``off`` from the bar.

    >>> near("loss", "as good as a coin", 0.262, 0.25, 0.01).verdict
    'does not hold'
    """
    told = f"{bar:.4g} ± {off:.4g}"
    return Claim(key, said, float(value), told, bool(abs(value - bar) <= off), source)


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
        lists = {name: getattr(self, name) + getattr(other, name) for name in LISTS}
        figures, columns = {**self.figures, **other.figures}, {**self.columns, **other.columns}
        return Result(figures=figures, columns=columns, **lists)


def attempt(run: Callable[[Setting], Result], setting: Setting) -> Result:
    """Return what a run gives, or which file it misses."""
    try:
        return run(setting)
    except Unreadable as error:
        return Result((), missing=(str(error),))


def columns_of(rows: Iterable[Any], *names: str) -> dict[str, list[Any]]:
    """Return attributes of some rows as columns; ``"name=path"`` gives one another name.

    >>> columns_of([1 + 2j, 3j], "imag", "size=real")
    {'imag': [2.0, 3.0], 'size': [1.0, 0.0]}
    """
    kept = list(rows)
    pairs = ((name.partition("=")[0], attrgetter(name.rpartition("=")[2])) for name in names)
    return {name: list(map(read, kept)) for name, read in pairs}


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
