"""Calibration error window by window, the worst one marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Reals, Words
from calibrant.metrics import windowed_calibration_error
from calibrant.plot.canvas import count_axis, entry, plain, plain_axis
from calibrant.plot.drawing import Drawing, named
from calibrant.plot.palette import LIGHT, Look, Style, looks
from calibrant.summary import Summary, Windows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Worst = tuple[int, int, float]

EMPTY: Final = "too few rounds for one window"


@dataclass(frozen=True, eq=False)
class WindowErrors(Drawing):
    """Squared calibration errors of consecutive windows.

    Attributes
    ----------
    window
        Rounds per window.
    first, last
        The rounds that each entry covers, counted from 1.
    series
        The errors, for each kind of forecast.
    worst
        First round, last round and error of the worst window, for each kind.
    """

    entry_width: ClassVar[float] = 2.6

    window: int
    first: Words
    last: Words
    series: Mapping[str, Reals]
    worst: Mapping[str, Worst]

    def _ink(self, ax: Axes) -> list[Any]:
        given = looks(self.series)
        ax.set(xlabel="rounds", ylabel="calibration error C2")
        ax.set_xlim(0.0, max(1.0, float(self.last.max(initial=1))))
        ax.set_ylim(0.0, 1.25 * self._top() or 1.0)
        for name, values in self.series.items():
            _ink_steps(ax, self.first, self.last, values, given[name])
        for name, worst in self.worst.items():
            _ink_worst(ax, worst, given[name])
        if not len(self.first):
            words: Style = {"ha": "center", "va": "center", "color": LIGHT["soft"]}
            ax.text(0.5, 0.5, EMPTY, transform=ax.transAxes, **words)
        count_axis(ax.xaxis)
        plain_axis(ax.yaxis)
        return [self._entry(name, look) for name, look in given.items()]

    def _entry(self, name: str, look: Look) -> Line2D:
        if name not in self.worst:
            return entry(look.label, **look.line())
        worst = plain(float(f"{self.worst[name][2]:.2g}"))
        return entry(f"{look.label}, worst {worst}", **look.line(), **look.mark())

    def _top(self) -> float:
        return max([0.0, *(float(np.nanmax(a, initial=0.0)) for a in self.series.values())])


def windows(
    source: Any,
    outcomes: ArrayLike | None = None,
    *,
    window: int = 5000,
    buckets: int = 20,
    ax: Axes | None = None,
) -> WindowErrors:
    """Draw the squared calibration error of consecutive windows of rounds.

    Parameters
    ----------
    source : Summary, Windows, array_like, or mapping
        What to draw; a mapping of names to arrays of forecasts is drawn as an overlay, a
        summary gives raw and drawn forecasts.
    outcomes : array_like, optional
        0 or 1 for each forecast, in the order of time, if there are arrays.
    window, buckets : int
        Rounds per window and buckets of equal width, for arrays.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Notes
    -----
    Noise alone adds about ``used * 0.2 / window`` for ``used`` buckets: errors of that
    size are not evidence of anything.

    Examples
    --------
    >>> drawn = windows([0.5] * 8, [0, 1, 0, 1, 1, 1, 1, 1], window=4)
    >>> drawn.series["forecast"].tolist(), drawn.worst["forecast"]
    ([0.0, 0.25], (5, 8, 0.25))
    """
    return prepare_windows(source, outcomes, window=window, buckets=buckets).draw(ax)


def prepare_windows(
    source: Any, outcomes: ArrayLike | None = None, *, window: int = 5000, buckets: int = 20
) -> WindowErrors:
    """Return the numbers that :func:`windows` draws; needs no matplotlib."""
    if isinstance(source, Summary):
        source = source.windows
    if isinstance(source, Windows):
        return _of_summary(source)
    return _of_arrays(named(source), outcomes, window, buckets)


def _of_summary(told: Windows) -> WindowErrors:
    series = {"raw": told.c2_raw, "forecast": told.c2_forecast}
    rows = {name: told.worst[name] for name in series if name in told.worst}
    worst = {name: (int(a), int(b), float(c)) for name, (a, b, c) in rows.items()}
    return WindowErrors(told.window, told.first, told.last, series, worst)


def _of_arrays(given: Mapping[str, Any], outcomes: Any, window: int, buckets: int) -> WindowErrors:
    options: Style = {"window": window, "buckets": buckets, "power": 2.0}
    found = {n: windowed_calibration_error(f, outcomes, **options) for n, f in given.items()}
    series = {name: each.errors for name, each in found.items()}
    last = window * np.arange(1, 1 + min(len(errors) for errors in series.values()))
    worst = {
        name: (each.worst_block * window + 1, (each.worst_block + 1) * window, each.worst)
        for name, each in found.items()
        if each.worst_block is not None
    }
    return WindowErrors(window, last - window + 1, last, series, worst)


def _ink_steps(ax: Axes, first: Words, last: Words, values: Reals, look: Look) -> None:
    # Each window is a level stretch from its first to its last round.
    x = np.column_stack([first - 1, last]).ravel()
    ax.plot(x, np.repeat(values, 2), marker="", zorder=2.5, **look.line())


def _ink_worst(ax: Axes, worst: Worst, look: Look) -> None:
    first, last, error = worst
    ax.axvspan(first - 1, last, color=look.colour, alpha=0.15, linewidth=0.0, zorder=1.0)
    middle = (first - 1 + last) / 2.0
    ax.plot([middle], [error], linestyle="", zorder=3.0, clip_on=False, **look.mark())
