"""Reliability diagrams: how often it happened against how likely it was said to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Reals
from calibrant.metrics import CalibrationCurve, as_cells, binomial_band, calibration_curve
from calibrant.plot.canvas import count_axis, entry, probability_axis
from calibrant.plot.drawing import Drawing, named
from calibrant.plot.palette import LIGHT, Look, Style, looks
from calibrant.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST: Final = 150.0
"""Area in square points of the circle of the bucket with the most rounds."""
SMALLEST: Final = 4.0
"""Area of a circle that would otherwise be too small to see."""
UNSURE: Final = 0.5
"""Width of a band from which on a circle is not joined to its neighbours: a line through
almost arbitrary places would only show noise."""


@dataclass(frozen=True, eq=False)
class Reliability(Drawing):
    """The numbers of a reliability diagram.

    Attributes
    ----------
    curves
        A :class:`~calibrant.metrics.CalibrationCurve` for each series: mean forecast,
        mean outcome, count and exact binomial band of each bucket.
    """

    size: ClassVar[tuple[float, float]] = (4.4, 5.1)

    curves: Mapping[str, CalibrationCurve]

    def areas(self, name: str) -> Reals:
        """Return the circles' areas: proportional to counts, but never invisible."""
        most = max([1, *(int(c.count.max(initial=0)) for c in self.curves.values())])
        areas = self.curves[name].count * (LARGEST / most)
        return np.asarray(np.maximum(areas, SMALLEST))

    def _ink(self, ax: Axes) -> list[Any]:
        given = looks(self.curves)
        ax.plot([0, 1], [0, 1], color=LIGHT["soft"], linewidth=1.0, dashes=(1.0, 2.0), zorder=1)
        for name, curve in self.curves.items():
            _ink_curve(ax, curve, given[name], self.areas(name))
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="how often it happened")
        probability_axis(ax.xaxis)
        probability_axis(ax.yaxis)
        self._ink_strip(ax, given)
        return [entry(look.label, **look.line(), **look.mark()) for look in given.values()]

    def _ink_strip(self, ax: Axes, given: Mapping[str, Look]) -> None:
        """Draw the counts below the diagram."""
        ax.tick_params(axis="x", labelbottom=False)
        strip = ax.inset_axes((0.0, -0.27, 1.0, 0.22))
        for place, (name, curve) in enumerate(self.curves.items()):
            _ink_counts(strip, curve, given[name], place, len(self.curves))
        most = max([1.0, *(float(c.count.max(initial=0)) for c in self.curves.values())])
        strip.set(xlim=(-0.02, 1.02), ylim=(0.0, 1.08 * most))
        strip.set(xlabel="forecast", ylabel="rounds")
        probability_axis(strip.xaxis)
        count_axis(strip.yaxis, 2)


def reliability(
    source: Any,
    outcomes: ArrayLike | None = None,
    *,
    buckets: int | None = 20,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Reliability:
    """Draw how often it happened against how likely it was said to be.

    Circles have areas proportional to the number of rounds behind them, bars are exact
    binomial confidence limits, the dotted diagonal is perfect calibration, and the
    strip below counts rounds.

    Parameters
    ----------
    source : Summary, CalibrationCurve, array_like, or mapping
        What to draw.  A mapping of names to curves or arrays is drawn as an overlay,
        say ``{"raw": before, "forecast": after}``; a summary gives raw and drawn forecasts.
    outcomes : array_like, optional
        0 or 1 for each forecast, if there are arrays.
    buckets : int or None
        Buckets of equal width for arrays; None keeps every distinct forecast apart,
        which suits forecasts from a grid.
    confidence : float
        Level of each bar by itself.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Notes
    -----
    A bar covers a bucket's probability if its outcomes are independent with equal
    probabilities; under drift or against an adversary it is only a yardstick for noise.

    Examples
    --------
    >>> drawn = reliability([0.1, 0.2, 0.8, 1.0], [0, 1, 1, 1], buckets=2)
    >>> drawn.curves["forecast"].mean_outcome.tolist()
    [0.5, 1.0]
    >>> drawn.figure.axes[0] is drawn.ax
    True
    """
    made = prepare_reliability(source, outcomes, buckets=buckets, confidence=confidence)
    return made.draw(ax)


def prepare_reliability(
    source: Any,
    outcomes: ArrayLike | None = None,
    *,
    buckets: int | None = 20,
    confidence: float = 0.95,
) -> Reliability:
    """Return the numbers that :func:`reliability` draws; needs no matplotlib."""
    if isinstance(source, Summary):
        source = {name: source.curves[name] for name in ("raw", "forecast")}
    curves = {
        name: given
        if isinstance(given, CalibrationCurve)
        else _curve(given, outcomes, buckets, confidence)
        for name, given in named(source).items()
    }
    return Reliability(curves)


def exact_curve(
    forecasts: ArrayLike, outcomes: ArrayLike, *, confidence: float = 0.95
) -> CalibrationCurve:
    """Return the calibration curve with one bucket for each distinct forecast.

    Examples
    --------
    >>> curve = exact_curve([0.25, 0.75, 0.75, 0.75], [0, 1, 1, 0])
    >>> curve.mean_forecast.tolist(), curve.count.tolist()
    ([0.25, 0.75], [1, 3])
    """
    cells = as_cells(forecasts, outcomes)
    low, high = binomial_band(cells.ones, cells.counts, confidence=confidence)
    counts = cells.counts.astype(np.int64)
    places = (cells.values, cells.values, counts, cells.values)
    return CalibrationCurve(*places, cells.rho, low, high, float(confidence))


def _curve(
    forecasts: ArrayLike, outcomes: Any, buckets: int | None, confidence: float
) -> CalibrationCurve:
    if buckets is None:
        return exact_curve(forecasts, outcomes, confidence=confidence)
    return calibration_curve(forecasts, outcomes, buckets=buckets, confidence=confidence)


def _ink_curve(ax: Axes, curve: CalibrationCurve, look: Look, areas: Reals) -> None:
    used = curve.count > 0
    x, y = curve.mean_forecast[used], curve.mean_outcome[used]
    low, high = curve.band_low[used], curve.band_high[used]
    ax.vlines(x, low, high, look.colour, "-", linewidth=1.3, alpha=0.5, zorder=2.0)
    joined = np.where(high - low < UNSURE, y, np.nan)
    ax.plot(x, joined, marker="", zorder=2.5, **look.line(1.2))
    rim: Style = {"edgecolors": look.colour, "linewidths": 1.2, "facecolors": look.face}
    ax.scatter(x, y, areas[used], marker=look.marker, zorder=3.0, clip_on=False, **rim)


def _ink_counts(ax: Axes, curve: CalibrationCurve, look: Look, place: int, many: int) -> None:
    """Draw one series' counts as bars, side by side with the others' in each bucket."""
    full = curve.count > 0
    start, room = _room(curve)
    left = start + room * (0.1 + 0.8 * place / many)
    width = 0.8 * room / many
    ax.bar(left[full], curve.count[full], width[full], align="edge", **look.bar())


def _room(curve: CalibrationCurve) -> tuple[Reals, Reals]:
    """Return start and width of each bucket; of an exact value, a place around it."""
    width = curve.upper - curve.lower
    used = np.unique(curve.mean_forecast[curve.count > 0])
    gap = float(np.diff(used).min(initial=0.05))
    exact = ~(width > 0.0)
    start = np.where(exact, curve.lower - gap / 2.0, curve.lower)
    return start, np.where(exact, gap, width)
