"""What experiments show: curves, slopes, panels with letters, and the columns of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.plot import canvas
from calibrant.plot.canvas import LIGHT, Drawing, entry, looks
from calibrant.plot.over_time import log_scale

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


Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""The columns of a CSV file by name, all of one length."""


def columns_of(rows: Iterable[Any], *names: str) -> dict[str, list[Any]]:
    """Return attributes of some rows as columns; ``"name=path"`` gives one another name.

    >>> columns_of([1 + 2j, 3j], "imag", "size=real")
    {'imag': [2.0, 3.0], 'size': [1.0, 0.0]}
    """
    kept = list(rows)
    pairs = ((name.partition("=")[0], attrgetter(name.rpartition("=")[2])) for name in names)
    return {name: list(map(read, kept)) for name, read in pairs}
