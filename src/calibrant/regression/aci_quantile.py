"""Adaptive conformal inference as published: on the level of a quantile of recent scores."""

from __future__ import annotations

from typing import Final

from calibrant.bounds import quantile_tracker
from calibrant.core import check
from calibrant.kernels import intervals
from calibrant.kernels import intervals as kernel
from calibrant.kernels.layout import STATE, Section
from calibrant.regression.interval_method import IntervalMethod, Record, above
from calibrant.regression.registry import interval_methods

WIDEST: Final = 10_000


@interval_methods.add("aci_quantile")
class AdaptiveQuantile(IntervalMethod):
    """The radius is a quantile of the last scores; ``level += step (1 - coverage - missed)``.

    At a level of 0 or less everything is covered, at 1 or more nothing, which is what makes the
    guarantee independent of the scores.

    Parameters
    ----------
    step
        How far the level moves.
    window
        How many scores are looked back at.
    """

    name = "aci_quantile"
    guarantee = "|coverage - target| <= (1 + step)/(step T), whatever the size of scores"
    assumption = "none: any sequence, every time"
    reference = "Gibbs and Candes (2021), Adaptive conformal inference under distribution shift"
    program = intervals.ACI_QUANTILE

    def __init__(self, coverage: float, *, step: float = 0.02, window: int = 500) -> None:
        size = check.whole(window, "window", low=1, high=WIDEST)
        self._options = {"step": above(step, "step"), "window": size}
        words = Section(intervals.QUANTILE_HEAD)
        words.real("SCORES", STATE, "The last scores, as they came.", words=size)
        words.real("SORTED", STATE, "The same in order.", words=size)
        self._start(coverage, above(step, "step"), None, words)
        self._fresh[intervals.LEVEL] = 1.0 - coverage
        self._fresh[intervals.KEPT_SCORES] = float(size)
        # Without a single score nothing can be left out.
        self._fresh[kernel.RADIUS] = kernel.INFINITY

    def record(self, delay: int) -> Record:
        """Return the distance of coverage from its target, and its bound."""
        s = self._seat.part()
        bound = quantile_tracker(int(s[kernel.ROUNDS]), s[kernel.STEP], delay=delay)
        return Record("C1", self.measured(), bound)
