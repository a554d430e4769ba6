"""Conformal methods that average many: AgACI, DtACI and the blend, which is the default."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibrant.bounds import Bound, quantile_tracker, step_sizes
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.kernels import blend, gammas, opinions
from calibrant.kernels import intervals as kernel
from calibrant.kernels.crowd import crowd_then
from calibrant.kernels.layout import ISSUED, MOST_OUTSTANDING, ROUNDS
from calibrant.regression.interval_method import (
    IntervalMethod,
    Met,
    Played,
    checked,
    interval_methods,
    with_scores,
)
from calibrant.regression.ticket import IntervalTicket


class SidedMethod(IntervalMethod):
    """A way to choose two radii, above and below the centre; one where scores have one side."""

    def face(self, sides: int) -> None:
        """Prepare for outcomes with so many sides; the option ``sides`` may ask for one."""
        self.sides = min(sides, self._options["sides"])
        self._fresh[opinions.SIDES] = float(self.sides)

    @property
    def below(self) -> float | None:
        """The radius below the centre, or None where both are one."""
        told: float = self._seat.reals()[self._seat.at + opinions.BELOW]
        return told if self.sides > 1 else None

    def _told(self, ticket: IntervalTicket) -> tuple[float, ...]:
        return ticket.base, ticket.below

    def _scores(self, met: Met) -> tuple[float, ...]:
        return met if self.sides > 1 else (max(met), -math.inf)

    def play(self, ups: Reals, downs: Reals) -> Played:
        """Play a batch of scores; return the radii announced before each, above and below."""
        radii, belows, one = np.empty(len(ups)), np.empty(len(ups)), self.sides == 1
        nothing = np.full(len(ups), -np.inf)
        scores = [np.where(downs > ups, downs, ups), nothing] if one else [ups, downs]
        self._replay(scores, radii, belows)
        return radii, belows


def _of_sides(sides: Any, **options: Any) -> dict[str, Any]:
    """Return options, and on how many sides ends are found apart."""
    return checked(**options) | {"sides": check.whole(sides, "sides", low=1, high=2)}


@interval_methods.add("agaci")
class AgACI(SidedMethod):
    """Average ``aci_quantile`` of 30 steps, each end apart, by what each was worth there.

    Parameters
    ----------
    window
        How many scores are looked back at.
    sides
        2 weighs the upper and the lower end apart; 1 averages the radius.

    Notes
    -----
    Where one of the 30 covers everything, its radius counts as twice the largest score so far.
    A corrected outcome is counted anew and replaced in the window; levels and weights stay.
    """

    guarantee = "pinball loss near that of the best mixture of 30 steps; none on coverage"
    assumption = "bounded scores"
    reference = "Zaffran et al. (2022), Adaptive conformal predictions for time series"
    program = gammas.AGACI

    def __init__(self, coverage: float, *, window: int = 500, sides: int = 2) -> None:
        self._options = _of_sides(sides, window=window)
        words = with_scores(gammas.AGACI_HEAD, self._options["window"])
        begun = {"radius": kernel.INFINITY, "below": kernel.INFINITY}
        start = {"levels": 1.0 - coverage, "weight": 1.0 / gammas.STEPS}
        self._start(coverage, words, **begun, **start)

    def _bound(self, s: list[float], rounds: int, delay: int) -> Bound | None:
        return None


@interval_methods.add("dtaci")
class DtACI(IntervalMethod):
    """A quantile of the last scores at the mean of 8 levels, each of which moves by its own step.

    Parameters
    ----------
    window
        How many scores are looked back at.
    horizon
        Over how many rounds levels are compared; the shorter, the sharper.

    Notes
    -----
    A corrected outcome is counted anew and replaced in the window; levels and weights stay.
    """

    guarantee = "pinball regret of the level on every interval of the horizon; none on coverage"
    assumption = "none: any sequence"
    reference = "Gibbs and Candes (2022), Conformal inference with arbitrary distribution shifts"
    program = gammas.DTACI

    def __init__(self, coverage: float, *, window: int = 500, horizon: int = 500) -> None:
        rounds = check.whole(horizon, "horizon", low=1)
        self._options = checked(window=window) | {"horizon": rounds}
        words, alpha = with_scores(gammas.DTACI_HEAD, self._options["window"]), 1.0 - coverage
        spread = (1.0 - alpha) ** 2 * alpha**3 + alpha**2 * (1.0 - alpha) ** 3
        eta = math.sqrt(3.0 / rounds * (math.log(gammas.PACES * rounds) + 2.0) / spread)
        start = {"level": alpha, "tried": alpha, "shares": 1.0 / gammas.PACES}
        told = {"eta": eta, "sigma": 0.5 / rounds, "radius": kernel.INFINITY}
        self._start(coverage, words, **start, **told)

    def _bound(self, s: list[float], rounds: int, delay: int) -> Bound | None:
        return None


@interval_methods.add("blend")
class Blend(SidedMethod):
    """Ends that learners of several memories agree on, moved by one level for the coverage.

    Parameters
    ----------
    step
        How far the level moves, as a part of the smaller of coverage and 1 - coverage.
    sides
        2 finds the upper and the lower end apart; 1 finds one radius.

    Notes
    -----
    Learners follow the middle and the size of scores at paces from 1/10 to 1/1000, and the place of
    the end among them; Bernstein online aggregation averages their ends.  The level does not care
    what they say: see :mod:`calibrant.kernels.blend` for both.  Before the first score everything
    is covered; later, where the level asks for that, twice the largest score so far.  A corrected
    outcome moves the level to where it would stand; what learners made of it stays.  Where N > 10
    outcomes wait at a time, by the most that were missing so far, steps are 10/N of their size, in
    corrections too, and the bound is N/10 times as large.  After a late outcome, batches are played
    one round at a time.
    """

    guarantee = "|coverage - target| <= (1 + eta)/(eta T) + n/T, eta the step, n counted"
    reference = "Zaffran et al. (2022) over learners of ours; the level as Gibbs and Candes (2021)"
    program = blend.BLEND

    def __init__(self, coverage: float, *, step: float = 0.2, sides: int = 2) -> None:
        self._options = _of_sides(sides, step=step)
        begun = {"radius": kernel.INFINITY, "below": kernel.INFINITY, "level": 1.0 - coverage}
        start = {"place": blend.START, "weight": 1.0 / blend.COUNT}
        eta = check.above(self._options["step"] * min(coverage, 1.0 - coverage), "step")
        self._start(coverage, blend.BLEND_WORDS, **begun, **start, step=eta)
        self.bend(True)

    def bend(self, bent: bool) -> None:
        """Let ends move faster far away and slower if outcomes are late, or as in the past."""
        self._fresh[blend.SLACK], self._fresh[blend.BEND] = blend.BENT if bent else blend.STRAIGHT
        self._paced = bent

    @property
    def in_turn(self) -> bool:
        """Whether steps may be smaller, because outcomes were missing."""
        words, row = self._seat.counts(), self._seat.row
        missing = words[row + ISSUED] - words[row + ROUNDS]
        return self._paced and bool(words[row + MOST_OUTSTANDING] or missing)

    def learn(self, ticket: IntervalTicket, met: Met) -> None:
        """Learn the scores of a ticket, by a smaller step if it is one of many that waited."""
        words, row = self._seat.state()[0], self._seat.row
        if self._paced:
            crowd = crowd_then(words, row, ticket.number)
            blend.set_pace(self._seat.reals(), self._seat.at, float(crowd))
        super().learn(ticket, met)

    def _bound(self, s: list[float], rounds: int, delay: int) -> Bound | None:
        beyond, whole, last = math.ceil(s[blend.BEYOND]), s[kernel.STEP], s[kernel.LAST_INVERSE]
        if last == 0.0:
            return quantile_tracker(rounds, whole, delay=beyond)
        inverse = (1.0 / whole + s[kernel.VARIATION] + last) / 2.0
        return step_sizes(rounds, 1.0, whole, inverse, delay=beyond)
