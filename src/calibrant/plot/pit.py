"""Where outcomes fall in their forecasts: flat if the forecasts are calibrated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.plot.canvas import entry, plain_axis, probability_axis
from calibrant.plot.drawing import Drawing, named
from calibrant.plot.palette import LIGHT, looks
from calibrant.regression.metrics import PitHistogram
from calibrant.regression.metrics import pit_histogram as counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
            ax.stairs(heights, edges, baseline=None, **_stairs(look.line()))
            top = max(top, float(heights.max()))
        ax.axhline(1.0, color=LIGHT["soft"], linewidth=1.0, dashes=(1.0, 2.0), zorder=1)
        ax.set(xlim=(-0.02, 1.02), ylim=(0.0, 1.08 * top))
        ax.set(xlabel="PIT of the outcome", ylabel="density")
        probability_axis(ax.xaxis)
        plain_axis(ax.yaxis)
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
    told = np.asarray(outcomes)
    return PitBars(
        {
            name: counted(given, told, intervals=intervals, seed=seed)
            for name, given in named(source).items()
        }
    )


def _stairs(line: dict[str, Any]) -> dict[str, Any]:
    """Return matplotlib's words for the outline of steps, which has no caps of its own."""
    return {name: value for name, value in line.items() if not name.endswith("capstyle")}
