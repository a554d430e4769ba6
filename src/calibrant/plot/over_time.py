"""Calibration error and losses over time, and in windows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.place import buckets_of
from calibrant.errors import InvalidInput
from calibrant.metrics import windowed_calibration_error
from calibrant.metrics.cells import checked_rounds
from calibrant.plot import canvas
from calibrant.plot.canvas import LIGHT, PROMISE, Drawing, Look, Style, entry, looks
from calibrant.summary import NAMES, Summary, Trace, Windows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

POINTS: Final = 512
"""As many as a picture can show."""
MOST_VALUES: Final = 4096
"""Cells whose sums are kept at each point, at most."""
QUANTITIES: Final = ("c2", "c1", "brier")
TITLES: Final = {"c2": "calibration error C2", "c1": "calibration error C1", "brier": "Brier score"}
BOUND: Final = "theorem's bound"
EARLY: Final = 0.05
"""Share of the rounds whose averages are mostly noise."""
FEW: Final = 20
"""Points below which each is marked."""


@dataclass(frozen=True, eq=False)
class OverTime(Drawing):
    """Averages over the first rounds, for more and more of them.

    Attributes
    ----------
    quantity
        ``"c2"``, ``"c1"`` or ``"brier"``.
    rounds
        How many rounds each point covers.
    series
        The quantity at each point, for each kind of forecast.
    bound
        What a theorem promises at each point; nan where no theorem does.
    """

    quantity: str
    rounds: Words
    series: Mapping[str, Reals]
    bound: Reals

    @property
    def settled(self) -> Reals:
        """All values after the first twentieth of the rounds: what the axis must show."""
        later = self.rounds >= EARLY * self.rounds.max(initial=0)
        values = np.concatenate([values[later] for values in self.series.values()])
        return np.asarray(values[np.isfinite(values)])

    @property
    def logarithmic(self) -> bool:
        """Whether the axis is logarithmic: for calibration errors that are not all 0."""
        return self.quantity != "brier" and bool((self.settled > 0.0).any())

    def _ink(self, ax: Axes) -> list[Any]:
        given = looks(self.series)
        few = len(self.rounds) < FEW
        for name, look in given.items():
            # Few points are dots as well: a line through one point is invisible.
            mark = look.mark(4.0) if few else {"marker": ""}
            ax.plot(self.rounds, self.series[name], zorder=2.5, **look.line(), **mark)
        entries = [entry(look.label, **look.line()) for look in given.values()]
        if np.isfinite(self.bound).any():
            entries.append(_ink_bound(ax, self.rounds, self.bound))
        # Dots at the end need room.
        canvas.rounds_axis(ax, self.rounds, TITLES[self.quantity], 1.03 if few else 1.0)
        self._scale(ax)
        return entries

    def _scale(self, ax: Axes) -> None:
        if self.logarithmic:
            later = self.bound[len(self.bound) // 2 :]
            log_scale(ax, np.append(self.settled, later[later < 1.0]))
        else:
            ax.set_ylim(*limits_of(self.settled))
            canvas.plain_axis(ax.yaxis)


def over_time(
    source: Any,
    outcomes: ArrayLike | None = None,
    *,
    quantity: str = "c2",
    buckets: int | None = 20,
    bound: ArrayLike | None = None,
    ax: Axes | None = None,
) -> OverTime:
    """Draw how calibration error or Brier score develop as rounds go by.

    Parameters
    ----------
    source : Summary, Trace, array_like, or mapping
        What to draw; a mapping of names to arrays of forecasts is drawn as an overlay.
    outcomes : array_like, optional
        0 or 1 for each forecast, in the order of time, if there are arrays.
    quantity : {"c2", "c1", "brier"}
        Squared or plain calibration error, or Brier score, each of all rounds so far.
    buckets : int or None
        Buckets of equal width in which the calibration error of arrays is measured; None
        measures it over exact values, which suits forecasts from a grid.
    bound : array_like, optional
        What a theorem promises after each round, one number for each; a summary has its own.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Notes
    -----
    At most 512 points are kept.  Calibration errors are drawn on a logarithmic axis, where a
    bound and errors far below it fit together; the axis shows what stands after the first
    twentieth of the rounds, since averages over a handful of rounds say nothing.

    Examples
    --------
    >>> drawn = over_time([0.5, 0.5, 0.5, 0.5], [1, 0, 1, 1], quantity="brier")
    >>> drawn.rounds.tolist(), drawn.series["forecast"].tolist()
    ([1, 2, 3, 4], [0.25, 0.25, 0.25, 0.25])
    """
    options: Style = {"quantity": quantity, "buckets": buckets, "bound": bound}
    return prepare_over_time(source, outcomes, **options).draw(ax)


def prepare_over_time(
    source: Any,
    outcomes: ArrayLike | None = None,
    *,
    quantity: str = "c2",
    buckets: int | None = 20,
    bound: ArrayLike | None = None,
) -> OverTime:
    """Return the numbers that :func:`over_time` draws; needs no matplotlib."""
    check.choice(quantity, "quantity", QUANTITIES)
    if isinstance(source, Summary):
        source = source.trace
    if isinstance(source, Trace):
        return _of_trace(source, quantity)
    return _of_arrays(canvas.named(source), outcomes, quantity, buckets, bound)


def _of_trace(trace: Trace, quantity: str) -> OverTime:
    found = {name: getattr(trace, f"{quantity}_{name}", None) for name in NAMES}
    series = {name: values for name, values in found.items() if values is not None}
    nothing = np.full(len(trace.rounds), np.nan)
    return OverTime(quantity, trace.rounds, series, getattr(trace, f"bound_{quantity}", nothing))


def _of_arrays(
    given: Mapping[str, Any], outcomes: Any, quantity: str, buckets: int | None, bound: Any
) -> OverTime:
    checked = {name: checked_rounds(values, outcomes) for name, values in given.items()}
    length = len(next(iter(checked.values()))[1])
    ends = ends_of(length)
    series = {name: _running(*pair, ends, quantity, buckets) for name, pair in checked.items()}
    return OverTime(quantity, ends, series, _promised(bound, length, ends))


def ends_of(length: int) -> Words:
    """Return after how many of all rounds a line has its points."""
    return np.unique(np.linspace(min(1, length), length, min(length, POINTS)).astype(np.int64))


def _promised(bound: Any, length: int, ends: Words) -> Reals:
    if bound is None:
        return np.full(len(ends), np.nan)
    promised = np.asarray(bound, dtype=np.float64)
    if promised.shape != (length,):
        raise InvalidInput(f"bound must be {length} numbers, got shape {promised.shape}")
    return promised[ends - 1]


def _running(values: Reals, binary: Bits, ends: Words, quantity: str, buckets: Any) -> Reals:
    """Return the quantity over the first ``ends[k]`` rounds, for each k."""
    if quantity == "brier":
        return np.cumsum((values - binary) ** 2)[ends - 1] / ends
    keys, size = _cells_of(values, buckets)
    point = np.searchsorted(ends, np.arange(1, len(values) + 1))
    place, shape = point * size + keys, (len(ends), size)
    totals = [np.ones(len(values)), binary - values]
    sums = [np.bincount(place, total, len(ends) * size).reshape(shape) for total in totals]
    counts, excess = (np.cumsum(table, axis=0) for table in sums)
    power = 2.0 if quantity == "c2" else 1.0
    costs = np.abs(excess) ** power / np.maximum(counts, 1.0) ** (power - 1.0)
    return np.asarray(costs.sum(axis=1) / ends)


def _cells_of(values: Reals, buckets: int | None) -> tuple[Words, int]:
    if buckets is not None:
        size = check.whole(buckets, "buckets", low=1)
        return buckets_of(values, size), size
    distinct, keys = np.unique(values, return_inverse=True)
    if len(distinct) > MOST_VALUES:
        rule = f"at most {MOST_VALUES} different values without buckets"
        raise InvalidInput(f"forecasts must be {rule}, got {len(distinct)}")
    return keys.astype(np.int64), max(1, len(distinct))


def _ink_bound(ax: Axes, rounds: Words, bound: Reals) -> Any:
    if not (bound < 1.0).any():
        return entry(f"{BOUND} (still above 1)", **PROMISE)
    ax.plot(rounds, bound, marker="", zorder=2.2, **PROMISE)
    return entry(BOUND, **PROMISE)


def log_scale(ax: Axes, values: Reals) -> None:
    """Make the upright axis of ``ax`` logarithmic, with room for those ``values`` above 0."""
    exponents = np.log10(values[values > 0.0])
    low, high = float(exponents.min()), float(exponents.max())
    room = 0.08 * max(high - low, 0.5)
    low, high = math.floor(10.0 * (low - room)) / 10.0, math.ceil(10.0 * (high + room)) / 10.0
    ax.set_yscale("log")
    ax.set_ylim(10.0**low, 10.0**high)
    canvas.log_axis(ax.yaxis, high - low)


def limits_of(values: Reals) -> tuple[float, float]:
    """Return limits around ``values``: at least 0.02 apart and not below 0."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = max(0.15 * (high - low), (0.02 - (high - low)) / 2.0)
    return max(0.0, low - room), high + room


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
        canvas.rounds_axis(ax, self.last, "calibration error C2")
        tops = (float(np.nanmax(errors, initial=0.0)) for errors in self.series.values())
        ax.set_ylim(0.0, 1.25 * max([0.0, *tops]) or 1.0)
        # Each window is a level stretch from its first to its last round.
        x = np.column_stack([self.first - 1, self.last]).ravel()
        for name, values in self.series.items():
            ax.plot(x, np.repeat(values, 2), marker="", zorder=2.5, **given[name].line())
        for name, worst in self.worst.items():
            _ink_worst(ax, worst, given[name])
        if not len(self.first):
            words: Style = {"ha": "center", "va": "center", "color": LIGHT["soft"]}
            ax.text(0.5, 0.5, EMPTY, transform=ax.transAxes, **words)
        canvas.plain_axis(ax.yaxis)
        return [self._entry(name, look) for name, look in given.items()]

    def _entry(self, name: str, look: Look) -> Line2D:
        if name not in self.worst:
            return entry(look.label, **look.line())
        worst = canvas.plain(float(f"{self.worst[name][2]:.2g}"))
        return entry(f"{look.label}, worst {worst}", **look.line(), **look.mark())


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
    return _windows_of(canvas.named(source), outcomes, window, buckets)


def _of_summary(told: Windows) -> WindowErrors:
    series = {"raw": told.c2_raw, "forecast": told.c2_forecast}
    rows = {name: told.worst[name] for name in series if name in told.worst}
    worst = {name: (int(a), int(b), float(c)) for name, (a, b, c) in rows.items()}
    return WindowErrors(told.window, told.first, told.last, series, worst)


def _windows_of(given: Mapping[str, Any], outcomes: Any, window: int, buckets: int) -> WindowErrors:
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


def _ink_worst(ax: Axes, worst: Worst, look: Look) -> None:
    first, last, error = worst
    ax.axvspan(first - 1, last, color=look.colour, alpha=0.15, linewidth=0.0, zorder=1.0)
    middle = (first - 1 + last) / 2.0
    ax.plot([middle], [error], linestyle="", zorder=3.0, clip_on=False, **look.mark())
