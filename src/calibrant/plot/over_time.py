"""Errors as rounds go by, with the theorem's bound drawn in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.place import buckets_of
from calibrant.errors import InvalidInput
from calibrant.metrics.cells import checked_rounds
from calibrant.plot.canvas import count_axis, entry, plain, plain_axis
from calibrant.plot.drawing import Drawing, named
from calibrant.plot.palette import LIGHT, Look, Style, looks
from calibrant.summary import NAMES, Summary, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS: Final = 512
"""As many as a picture can show."""
MOST_VALUES: Final = 4096
"""Cells whose sums are kept at each point, at most."""
QUANTITIES: Final = ("c2", "c1", "brier")
TITLES: Final = {"c2": "calibration error C2", "c1": "calibration error C1", "brier": "Brier score"}
BOUND: Final = "theorem's bound"
DOTS: Final = (0.0, (1.0, 1.5))
EARLY: Final = 0.05
"""Share of the rounds whose averages are mostly noise."""
FEW: Final = 20
"""Points below which each is marked."""
WIDE: Final = 2.0
"""Decades on a logarithmic axis from which powers of ten alone are labels enough."""


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
        for name, values in self.series.items():
            _ink_line(ax, self.rounds, values, given[name])
        entries = [entry(look.label, **look.line()) for look in given.values()]
        if np.isfinite(self.bound).any():
            entries.append(_ink_bound(ax, self.rounds, self.bound))
        ax.set(xlabel="rounds", ylabel=TITLES[self.quantity])
        # Dots at the end need room.
        room = 1.03 if len(self.rounds) < FEW else 1.0
        ax.set_xlim(0.0, room * max(1.0, float(self.rounds.max(initial=1))))
        count_axis(ax.xaxis)
        self._scale(ax)
        return entries

    def _scale(self, ax: Axes) -> None:
        if self.logarithmic:
            later = self.bound[len(self.bound) // 2 :]
            log_axis(ax, np.append(self.settled, later[later < 1.0]))
        else:
            ax.set_ylim(*_window(self.settled))
            plain_axis(ax.yaxis)


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
    made = prepare_over_time(source, outcomes, quantity=quantity, buckets=buckets, bound=bound)
    return made.draw(ax)


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
    return _of_arrays(named(source), outcomes, quantity, buckets, bound)


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
    ends = np.unique(np.linspace(min(1, length), length, min(length, POINTS)).astype(np.int64))
    series = {name: _running(*pair, ends, quantity, buckets) for name, pair in checked.items()}
    return OverTime(quantity, ends, series, _promised(bound, length, ends))


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


def _ink_line(ax: Axes, rounds: Words, values: Reals, look: Look) -> None:
    # Few points are dots as well: a line through one point is invisible.
    mark = look.mark(4.0) if len(rounds) < FEW else {"marker": ""}
    ax.plot(rounds, values, zorder=2.5, **look.line(), **mark)


def _ink_bound(ax: Axes, rounds: Words, bound: Reals) -> Any:
    style: Style = {"color": LIGHT["ink"], "linewidth": 1.2, "linestyle": DOTS}
    if not (bound < 1.0).any():
        return entry(f"{BOUND} (still above 1)", **style)
    ax.plot(rounds, bound, marker="", zorder=2.2, **style)
    return entry(BOUND, **style)


def log_axis(ax: Axes, values: Reals) -> None:
    """Make the upright axis of ``ax`` logarithmic, with room for those ``values`` above 0."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = _decades(values[values > 0.0])
    ax.set_yscale("log")
    ax.set_ylim(10.0**low, 10.0**high)
    steps = (1.0,) if high - low > WIDE else (1.0, 2.0, 5.0)
    ax.yaxis.set_major_locator(LogLocator(10.0, subs=steps, numticks=12))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def _decades(values: Reals) -> tuple[float, float]:
    """Return the exponents of 10 between which ``values`` lie, with room."""
    low, high = math.log10(values.min()), math.log10(values.max())
    room = 0.08 * max(high - low, 0.5)
    return math.floor(10.0 * (low - room)) / 10.0, math.ceil(10.0 * (high + room)) / 10.0


def _window(values: Reals) -> tuple[float, float]:
    """Return limits around ``values``: at least 0.02 apart and not below 0."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = max(0.15 * (high - low), (0.02 - (high - low)) / 2.0)
    return max(0.0, low - room), high + room
