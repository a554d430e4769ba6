"""How forecasts are spread over [0, 1], before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.place import buckets_of
from calibrant.plot.canvas import probability_axis
from calibrant.plot.drawing import Drawing, named
from calibrant.plot.palette import LIGHT, Look, looks
from calibrant.summary import Histogram, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Spread(Drawing):
    """Counts of forecasts in intervals of equal width.

    Attributes
    ----------
    edges
        Borders of the intervals, one more than there are intervals.
    counts
        How many forecasts fell into each, by kind; the first kind is drawn upwards, all
        others downwards.
    """

    edges: Reals
    counts: Mapping[str, Words]

    def share(self, name: str) -> Reals:
        """Return the fraction of all forecasts of a kind in each interval."""
        return np.asarray(self.counts[name] / max(1, int(self.counts[name].sum())))

    def _ink(self, ax: Axes) -> list[Any]:
        given = looks(self.counts)
        top = max([0.0, *(float(self.share(name).max(initial=0.0)) for name in given)])
        for place, (name, look) in enumerate(given.items()):
            _ink_bars(ax, self.edges, -self.share(name) if place else self.share(name), look)
        ax.axhline(0.0, color=LIGHT["soft"], linewidth=0.8)
        down = -1.08 * top if len(given) > 1 else 0.0
        ax.set(xlim=(-0.02, 1.02), ylim=(down or 0.0, 1.08 * top or 1.0))
        ax.set(xlabel="forecast", ylabel="share of rounds")
        probability_axis(ax.xaxis)
        _percent_axis(ax)
        return [_patch(look) for look in given.values()]


def histogram(source: Any, *, intervals: int = 50, ax: Axes | None = None) -> Spread:
    """Draw how often forecasts fall into each part of [0, 1].

    Parameters
    ----------
    source : Summary, Histogram, array_like, or mapping
        Forecasts.  With a mapping of names to arrays the first points up and the others
        down; a summary gives raw and drawn forecasts.
    intervals : int
        How many intervals of equal width, for arrays.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> histogram([0.1, 0.2, 0.9, 1.0], intervals=2).counts["forecast"].tolist()
    [2, 2]
    """
    return prepare_histogram(source, intervals=intervals).draw(ax)


def prepare_histogram(source: Any, *, intervals: int = 50) -> Spread:
    """Return the numbers that :func:`histogram` draws; needs no matplotlib."""
    if isinstance(source, Summary):
        source = source.histogram
    if isinstance(source, Histogram):
        return Spread(source.edges, {"raw": source.raw, "forecast": source.forecast})
    size = check.whole(intervals, "intervals", low=1)
    counts = {name: _count(given, size) for name, given in named(source).items()}
    return Spread(np.arange(size + 1) / size, counts)


def _count(forecasts: ArrayLike, size: int) -> Words:
    index = buckets_of(check.probabilities(forecasts, "forecasts"), size)
    return np.bincount(index, minlength=size)


def _ink_bars(ax: Axes, edges: Reals, heights: Reals, look: Look) -> None:
    full = heights != 0.0
    ax.bar(edges[:-1][full], heights[full], np.diff(edges)[full], align="edge", **look.bar())


def _patch(look: Look) -> Any:
    from matplotlib.patches import Patch

    return Patch(label=look.label, **look.bar())


def _percent_axis(ax: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100.0 * abs(value):g} %"))
