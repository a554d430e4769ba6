"""Pictures for numbers: coverage of quantiles and intervals, and the PIT histogram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.plot import canvas
from calibrant.plot.canvas import LIGHT, PROMISE, Drawing, entry, looks, named
from calibrant.plot.over_time import ends_of
from calibrant.regression import metrics
from calibrant.regression.distribution import target_levels
from calibrant.regression.metrics import PitHistogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class QuantileReliability(Drawing):
    """Coverage of each level.

    Attributes
    ----------
    levels
        How often outcomes should be covered.
    coverage
        How often outcomes were covered, for each series.
    """

    size = (3.6, 3.6)

    levels: Reals
    coverage: Mapping[str, Reals]

    def _ink(self, ax: Axes) -> list[Any]:
        canvas.unit_square(ax, xlabel="level", ylabel="share of outcomes below the quantile")
        given = looks(self.coverage)
        for name, look in given.items():
            ax.plot(self.levels, self.coverage[name], **look.line(), **look.mark(4.0))
        return [entry(k.label, **k.line(), **k.mark(4.0)) for k in given.values()]


def quantile_reliability(
    source: Any, outcomes: ArrayLike, levels: Any, *, ax: Axes | None = None
) -> QuantileReliability:
    """Draw how often outcomes lie below each quantile against how often they should.

    Parameters
    ----------
    source : Distributions, table of quantiles, or mapping
        Forecasts; a mapping of names to forecasts is drawn as an overlay.
    outcomes : array_like
        A number for each forecast.
    levels : array_like or int
        The levels of the quantiles.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> quantile_reliability([[1.0, 3.0], [1.0, 3.0]], [2.0, 0.0], [0.2, 0.8]).coverage
    {'forecast': array([0.5, 1. ])}
    """
    return prepare_quantile_reliability(source, outcomes, levels).draw(ax)


def prepare_quantile_reliability(
    source: Any, outcomes: ArrayLike, levels: Any
) -> QuantileReliability:
    """Return the numbers that :func:`quantile_reliability` draws; needs no matplotlib."""
    wanted = target_levels(levels)
    found = {k: metrics.coverage(v, outcomes, wanted) for k, v in named(source).items()}
    for name, values in found.items():
        if len(values) != len(wanted):
            told = f"{len(wanted)} columns, a level each, got {len(values)}"
            raise InvalidInput(f"{name} must have {told}")
    return QuantileReliability(wanted, found)


@dataclass(frozen=True, eq=False)
class CoverageOverTime(Drawing):
    """Coverage of all rounds so far, for more and more of them.

    Attributes
    ----------
    target
        How often outcomes should be covered.
    rounds
        How many rounds each point covers, or ends at where ``window`` says so.
    series
        The coverage up to each point, for each series.
    window
        Rounds of each block, or None for all so far.
    """

    target: float
    rounds: Words
    series: Mapping[str, Reals]
    window: int | None

    def _ink(self, ax: Axes) -> list[Any]:
        given = looks(self.series)
        for name, look in given.items():
            ax.plot(self.rounds, self.series[name], zorder=2.5, marker="", **look.line())
        ax.axhline(self.target, **PROMISE)
        told = "coverage" if self.window is None else f"coverage of {self.window} rounds"
        canvas.rounds_axis(ax, self.rounds, told)
        ax.set_ylim(*self._limits())
        canvas.plain_axis(ax.yaxis)
        return [entry(k.label, **k.line()) for k in given.values()] + [entry("target", **PROMISE)]

    def _limits(self) -> tuple[float, float]:
        # Averages over a handful of rounds are noise.
        later = self.rounds >= 0.05 * self.rounds.max(initial=0)
        shown = [self.target, *(v for s in self.series.values() for v in s[later].tolist())]
        return max(0.0, min(shown) - 0.03), min(1.0, max(shown) + 0.03)


def coverage_over_time(
    source: Any, target: float, *, window: int | None = None, ax: Axes | None = None
) -> CoverageOverTime:
    """Draw how coverage develops as rounds go by.

    Parameters
    ----------
    source : array_like or mapping
        0 or 1 for each round, whether the outcome was covered; a mapping is an overlay.
    target : float
        How often it should be.
    window : int, optional
        Show coverage of blocks of that many rounds instead of all rounds so far.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> coverage_over_time([1, 0, 1, 1], 0.9).series["forecast"].round(2).tolist()
    [1.0, 0.5, 0.67, 0.75]
    """
    return prepare_coverage_over_time(source, target, window=window).draw(ax)


def prepare_coverage_over_time(
    source: Any, target: float, *, window: int | None = None
) -> CoverageOverTime:
    """Return the numbers that :func:`coverage_over_time` draws; needs no matplotlib."""
    wanted = check.probability(target, "target")
    given = {name: check.outcomes(part, "covered") for name, part in named(source).items()}
    length = check.same_length(**given)
    if window is not None:
        series = {k: metrics.windowed_coverage(v, window=window) for k, v in given.items()}
        ends = np.arange(1, length // window + 1) * window
        return CoverageOverTime(wanted, ends, series, window)
    ends = ends_of(length)
    series = {k: metrics.coverage_over_time(v)[ends - 1] for k, v in given.items()}
    return CoverageOverTime(wanted, ends, series, None)


@dataclass(frozen=True, eq=False)
class PitBars(Drawing):
    """PIT histograms, one above the other.

    Attributes
    ----------
    histograms
        The counts of each series.
    """

    histograms: Mapping[str, PitHistogram]

    def density(self, name: str) -> Any:
        """Return the heights of a series: 1 everywhere if it is calibrated."""
        made = self.histograms[name]
        return made.share * len(made.counts)

    def _ink(self, ax: Axes) -> list[Any]:
        given, top = looks(self.histograms), 1.0
        for name, look in given.items():
            edges, heights = self.histograms[name].edges, self.density(name)
            outline: canvas.Style = {"color": look.colour, "linestyle": look.dash, "linewidth": 1.4}
            ax.stairs(heights, edges, baseline=None, **outline)
            top = max(top, float(heights.max()))
        ax.axhline(1.0, color=LIGHT["soft"], linewidth=1.0, dashes=(1.0, 2.0), zorder=1)
        ax.set(xlim=(-0.02, 1.02), ylim=(0.0, 1.08 * top))
        ax.set(xlabel="PIT of the outcome", ylabel="density")
        canvas.probability_axis(ax.xaxis)
        canvas.plain_axis(ax.yaxis)
        return [entry(look.label, **look.line()) for look in given.values()]


def pit_histogram(
    source: Any,
    outcomes: ArrayLike,
    *,
    intervals: int = 20,
    seed: int | None = 0,
    ax: Axes | None = None,
) -> PitBars:
    """Draw where outcomes fall in their forecasts.

    Parameters
    ----------
    source : Distributions, or mapping
        Forecasts; a mapping of names to forecasts is drawn as an overlay.
    outcomes : array_like
        A number for each forecast.
    intervals : int
        How many intervals of equal width.
    seed : int or None
        For outcomes on atoms, as in :func:`calibrant.regression.metrics.pit`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> from calibrant.regression import Distributions
    >>> drawn = pit_histogram(Distributions.normal([0, 0], [1, 1]), [-1.0, 2.0], intervals=2)
    >>> drawn.density("forecast").tolist()
    [1.0, 1.0]
    """
    return prepare_pit_histogram(source, outcomes, intervals=intervals, seed=seed).draw(ax)


def prepare_pit_histogram(
    source: Any, outcomes: ArrayLike, *, intervals: int = 20, seed: int | None = 0
) -> PitBars:
    """Return the numbers that :func:`pit_histogram` draws; needs no matplotlib."""
    options: canvas.Style = {"intervals": intervals, "seed": seed}
    told, given = np.asarray(outcomes), named(source)
    return PitBars({k: metrics.pit_histogram(v, told, **options) for k, v in given.items()})
