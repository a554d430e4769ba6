"""Adaptive conformal inference with many steps at once: AgACI and DtACI.

Both keep the last scores, and a level for each step size, which moves by that step as the level of
``aci_quantile`` does.

AgACI averages the radii of all levels, above and below the centre apart, by what these were worth::

    for each step k:
        x_k <- the radius at level_k; twice the largest score instead of infinity
    radius <- sum_k w_k x_k,  below <- sum_k v_k x_k
    see how far the outcome lay above the centre, and how far below
    w, v   <- by the pinball losses of the x_k on each side (BOA, see :mod:`.opinions`)
    for each k:  level_k += step_k (alpha - missed by x_k)

DtACI averages levels, by how far each was from the level that would just have covered::

    radius <- the one at level sum_k w_k level_k
    see the score s;  b <- the largest level whose radius covers s
    for each k:
        w_k     <- w_k exp(-eta pinball(b, level_k)), all scaled to add up to 1
        w_k     <- (1 - sigma) w_k + sigma / K
        level_k += step_k (alpha - 1{level_k >= b})

References
----------
Zaffran, Feron, Goude, Josse and Dieuleveut (2022), Adaptive conformal predictions for time series.
Gibbs and Candes (2022), Conformal inference for online prediction with arbitrary distribution
shifts.
"""

from __future__ import annotations

from typing import Any, Final

from calibrant.kernels.intervals import (
    ALPHA,
    INFINITY,
    KEPT_SCORES,
    LEVEL,
    LOW,
    QUANTILE_HEAD,
    RADIUS,
    ROUNDS,
    assemble,
    keep,
    keep_instead,
    notice,
    radius_at,
    recount,
)
from calibrant.kernels.layout import FIXED, SHARE, STATE, UNBOUNDED, Section
from calibrant.kernels.opinions import (
    BELOW,
    OPINED,
    OPINION,
    SIDED,
    SIDES,
    assemble_sides,
    average,
    fence,
    near,
    notice_sides,
    outside,
    recount_sides,
    reweigh,
)
from calibrant.kernels.portable import exp
from calibrant.kernels.quantiles import first_at_least

MANY: Final = (
    *(0.0, 0.000005, 0.00005, 0.0001, 0.0002, 0.0003, 0.0004, 0.0005, 0.0006, 0.0007),
    *(0.0008, 0.0009, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008),
    *(0.009, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09),
)
"""The steps of AgACI."""
DOUBLED: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
"""The steps of DtACI."""

STEPS: Final = len(MANY)
WORDS: Final = len(OPINION)
AGACI_HEAD: Final = Section(SIDED)
LEVELS: Final = AGACI_HEAD.real("LEVELS", STATE, "The level of each step.", words=STEPS)
UPPER: Final = len(AGACI_HEAD)
"""Where opinions of the upper end start; those of the lower one follow."""
AGACI_HEAD.fields += OPINION.fields * (2 * STEPS)
AGACI_LATEST: Final = len(AGACI_HEAD)
"""Where the last scores start."""

PACES: Final = len(DOUBLED)
DTACI_HEAD: Final = Section(QUANTILE_HEAD, limits=UNBOUNDED)
ETA: Final = DTACI_HEAD.real("ETA", FIXED, "How sharply levels are judged.")
SIGMA: Final = DTACI_HEAD.real("SIGMA", FIXED, "Which part of the weights is shared alike.")
SHARES: Final = DTACI_HEAD.real("SHARES", STATE, "The weight of each step.", SHARE, words=PACES)
TRIED: Final = DTACI_HEAD.real("TRIED", STATE, "The level of each step.", (-1e9, 1e9), words=PACES)
DTACI_LATEST: Final = len(DTACI_HEAD)


def learn_agaci(state: Any, at: int, radius: float, below: float, up: float, down: float) -> None:
    """Weigh the steps on each side, move their levels, keep the score, and average again."""
    notice_sides(state, at, radius, below, up, down)
    score, rounds = max(up, down), state[at + ROUNDS]
    tail = state[at + ALPHA] / state[at + SIDES]
    if rounds > 1.0:
        for k in range(STEPS):
            miss = 1.0 if score > state[at + UPPER + k * WORDS + OPINED] else 0.0
            state[at + LEVELS + k] += MANY[k] * (state[at + ALPHA] - miss)
        reweigh(state, at + UPPER, STEPS, WORDS, tail, near(up), 1.0)
        if state[at + SIDES] > 1.0:
            reweigh(state, at + UPPER + STEPS * WORDS, STEPS, WORDS, tail, near(down), 1.0)
    opine(state, at, keep(state, at, at + AGACI_LATEST, score))


def amend_agaci(
    state: Any, at: int, radius: float, below: float,
    up: float, down: float, later_up: float, later_down: float,
) -> None:  # fmt: skip
    """Replace a score in the counts and among the last ones; levels and weights stay."""
    miss, now = outside(radius, below, up, down), outside(radius, below, later_up, later_down)
    recount_sides(state, at, miss, now, later_up, later_down)
    before, after = max(up, down), max(later_up, later_down)
    opine(state, at, keep_instead(state, at, at + AGACI_LATEST, before, after))


def opine(state: Any, at: int, size: int) -> None:
    """Note the radius of each step, and announce their averages."""
    for k in range(STEPS):
        told = radius_at(state, at, at + AGACI_LATEST, size, state[at + LEVELS + k])
        if told == INFINITY:
            told = fence(state, at)
        told = near(max(told, state[at + LOW]))
        state[at + UPPER + k * WORDS + OPINED] = told
        state[at + UPPER + (STEPS + k) * WORDS + OPINED] = told
    state[at + RADIUS] = average(state, at + UPPER, STEPS, WORDS)
    state[at + BELOW] = state[at + RADIUS]
    if state[at + SIDES] > 1.0:
        state[at + BELOW] = average(state, at + UPPER + STEPS * WORDS, STEPS, WORDS)


def learn_dtaci(state: Any, at: int, radius: float, score: float) -> None:
    """Judge the level of each step, move it, keep the score, and take the mean level."""
    notice(state, at, radius, score)
    size = min(int(state[at + ROUNDS]) - 1, int(state[at + KEPT_SCORES]))
    ordered = at + DTACI_LATEST + int(state[at + KEPT_SCORES])
    above = size - first_at_least(state, ordered, size, score)
    share(state, at, (above + 1.0) / (size + 1.0))
    tell(state, at, keep(state, at, at + DTACI_LATEST, score))


def amend_dtaci(state: Any, at: int, radius: float, before: float, after: float) -> None:
    """Replace a score in the counts and among the last ones; levels and weights stay."""
    recount(state, at, radius, before, after)
    tell(state, at, keep_instead(state, at, at + DTACI_LATEST, before, after))


def share(state: Any, at: int, best: float) -> None:
    """Weigh the levels by how far they were from the best one, and move them."""
    alpha, least, total = state[at + ALPHA], INFINITY, 0.0
    for k in range(PACES):
        least = min(least, off_level(alpha, best, state[at + TRIED + k]))
    for k in range(PACES):
        worse = off_level(alpha, best, state[at + TRIED + k]) - least
        state[at + SHARES + k] *= exp(-state[at + ETA] * worse)
        total += state[at + SHARES + k]
    sigma = state[at + SIGMA]
    for k in range(PACES):
        kept = state[at + SHARES + k] / total if total > 0.0 else 1.0 / PACES
        state[at + SHARES + k] = (1.0 - sigma) * kept + sigma / PACES
        miss = 1.0 if state[at + TRIED + k] >= best else 0.0
        state[at + TRIED + k] += DOUBLED[k] * (alpha - miss)


def off_level(alpha: float, best: float, level: float) -> float:
    """Return the pinball loss of a level, where another would just have covered."""
    more = best - level
    return alpha * more if more > 0.0 else (alpha - 1.0) * more


def tell(state: Any, at: int, size: int) -> None:
    """Announce the radius at the mean level."""
    level = 0.0
    for k in range(PACES):
        level += state[at + SHARES + k] * state[at + TRIED + k]
    state[at + LEVEL] = level
    state[at + RADIUS] = radius_at(state, at, at + DTACI_LATEST, size, level)


AGACI: Final = assemble_sides("agaci", learn_agaci, amend_agaci)
DTACI: Final = assemble("dtaci", learn_dtaci, amend_dtaci)
