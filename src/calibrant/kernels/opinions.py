"""Two ends at a time, and learners whose opinions of an end are averaged by what they were worth.

A rule over two ends learns how far an outcome lay above the centre and how far below: the scores
``up`` and ``down``, for which the radii ``radius`` and ``below`` were announced.  Where there is
one side only, ``down`` is minus infinity.

Opinions of an end are averaged by Bernstein online aggregation (BOA)::

    given  opinions x_k and weights w_k of K learners, the share of misses a
    end   <- sum_k w_k x_k
    see the score s
    slope <- a - 1 if s > end else a                 # of the pinball loss at the end
    for each k:
        r    <- slope (end - x_k)                    # how much better x_k seemed
        E_k  <- max(memory E_k, |r|)
        V_k  <- memory V_k + r^2
        pace <- min(1/E_k, sqrt(ln K / V_k))
        R_k  <- memory R_k + r - pace r^2
        w_k  <- pace exp(pace R_k), all scaled to add up to 1

With ``memory = 1`` that is the printed algorithm; below 1 learners are judged by recent scores.

References
----------
Wintenberger (2017), Optimal learning with Bernstein online aggregation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from calibrant.kernels.intervals import (
    HIGH,
    LOW,
    MISSES,
    QUANTILE_HEAD,
    RADIUS,
    ROUNDS,
    IntervalProgram,
    widen,
)
from calibrant.kernels.layout import FIXED, SHARE, STATE, UNBOUNDED, Section
from calibrant.kernels.portable import exp, log

SIDED: Final = Section(QUANTILE_HEAD, limits=UNBOUNDED)
"""What rules over two ends keep."""
BELOW: Final = SIDED.real("BELOW", STATE, "What the next forecast announces below the centre.")
SIDES: Final = SIDED.real("SIDES", FIXED, "How many sides there are, one or two.")

SIZE_LIMITS: Final = (0.0, 1e150)
"""Limits of a real that is not negative, and whose square is finite."""
OPINION: Final = Section()
"""What is kept of a learner's opinion of one end."""
OPINED: Final = OPINION.real("OPINED", STATE, "Where the learner puts the end.")
WEIGHT: Final = OPINION.real("WEIGHT", STATE, "The learner's weight.", SHARE)
AHEAD: Final = OPINION.real("AHEAD", STATE, "How much better than the average it seemed, R.")
SQUARED: Final = OPINION.real("SQUARED", STATE, "The sum of squares of that, V.", SIZE_LIMITS)
LARGEST: Final = OPINION.real("LARGEST", STATE, "The largest of that, E.", SIZE_LIMITS)

FARTHEST: Final = 1e70
"""Learners take scores for at most so large, so that squares are finite."""
LEAST: Final = 1e-150
"""A difference below is none."""


def near(score: float) -> float:
    """Return a score as learners take it."""
    return min(max(score, -FARTHEST), FARTHEST)


def fence(state: Any, at: int) -> float:
    """Return what no score so far has reached: twice the largest, where none is negative."""
    most: float = state[at + HIGH] + (state[at + HIGH] - state[at + LOW])
    return most


def outside(radius: float, below: float, up: float, down: float) -> float:
    """Return 1 if an outcome lay beyond one of the ends, and else 0."""
    return 1.0 if up > radius or down > below else 0.0


def notice_sides(state: Any, at: int, radius: float, below: float, up: float, down: float) -> float:
    """Count an outcome; return 1 if it lay outside, and else 0."""
    miss = outside(radius, below, up, down)
    state[at + ROUNDS] += 1.0
    state[at + MISSES] += miss
    widen(state, at, max(up, down))
    return miss


def recount_sides(state: Any, at: int, miss: float, now: float, up: float, down: float) -> float:
    """Count an outcome instead of another; return by how much the misses changed."""
    state[at + MISSES] += now - miss
    widen(state, at, max(up, down))
    return now - miss


def average(state: Any, first: int, count: int, words: int) -> float:
    """Return the mean opinion by weight."""
    total: float = 0.0
    for k in range(count):
        who = first + k * words
        total += state[who + WEIGHT] * state[who + OPINED]
    return total


def reweigh(
    state: Any, first: int, count: int, words: int, tail: float, score: float, memory: float
) -> None:
    """Weigh learners anew by a score of which a share ``tail`` may lie above the end."""
    end = average(state, first, count, words)
    slope = tail - 1.0 if score > end else tail
    top, told, logs = 0.0, False, log(count * 1.0)
    for k in range(count):
        who = first + k * words
        judged = judge(state, who, slope * (end - state[who + OPINED]), logs, memory)
        state[who + WEIGHT] = judged
        if judged == judged and (not told or judged > top):
            top, told = judged, True
    settle(state, first, count, words, top)


def judge(state: Any, who: int, better: float, logs: float, memory: float) -> float:
    """Take in how much better a learner seemed; return the logarithm of its weight, or nan."""
    state[who + LARGEST] = max(memory * state[who + LARGEST], abs(better))
    state[who + SQUARED] = memory * state[who + SQUARED] + better * better
    if state[who + LARGEST] < LEAST:
        return math.nan
    squared = max(state[who + SQUARED], LEAST * LEAST)
    pace = min(1.0 / state[who + LARGEST], math.sqrt(logs / squared))
    state[who + AHEAD] = memory * state[who + AHEAD] + better - pace * better * better
    found: float = log(pace) + pace * state[who + AHEAD]
    return found


def settle(state: Any, first: int, count: int, words: int, top: float) -> None:
    """Make weights of their logarithms; who never differed weighs nothing, unless nobody did."""
    total = 0.0
    for k in range(count):
        who = first + k * words + WEIGHT
        state[who] = exp(state[who] - top) if state[who] == state[who] else 0.0
        total += state[who]
    for k in range(count):
        who = first + k * words + WEIGHT
        state[who] = state[who] / total if total > 0.0 else 1.0 / count


Learn = Callable[[Any, int, float, float, float, float], None]
Amend = Callable[[Any, int, float, float, float, float, float, float], None]


def assemble_sides(name: str, learn: Learn, amend: Amend) -> IntervalProgram:
    """Make the program of a rule over two ends."""

    def replay(state: Any, at: int, ups: Any, downs: Any, radii: Any, belows: Any) -> None:
        for t in range(len(ups)):
            radius, below = state[at + RADIUS], state[at + BELOW]
            radii[t], belows[t] = radius, below
            learn(state, at, radius, below, ups[t], downs[t])

    return IntervalProgram(name, learn, amend, replay)
