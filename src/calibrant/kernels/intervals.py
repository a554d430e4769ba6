"""Radii that should cover scores: adaptive, scale-free, PID and strongly adaptive.

The state is one array of doubles: a head that all rules share, and what each needs besides.
The announced radius always stands at `RADIUS`, so that a forecast only reads.  A rule is a
function ``learn(state, radius, score)``; ``radius`` is what was announced for that score, which
may have been a while ago.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from calibrant.kernels.compile import available, compiled
from calibrant.kernels.portable import log, turn

__all__ = ["ACI", "PID", "SAOCP", "SF_OGD", "IntervalProgram"]

ALPHA: Final = 0
"""Which part of scores may lie above the radius."""
STEP: Final = 1
"""The rule's step size."""
SCALE: Final = 2
"""What the largest score is taken to be; 0 takes the largest so far."""
RADIUS: Final = 3
ROUNDS: Final = 4
MISSES: Final = 5
LOW: Final = 6
HIGH: Final = 7
"""The smallest and the largest score so far, the first radius included."""
FIRST_INVERSE: Final = 8
LAST_INVERSE: Final = 9
VARIATION: Final = 10
"""One over the first and over the last step, and how much that changed in between."""
RISE: Final = 11
FALL: Final = 12
"""The largest move of the radius up, and down."""
IDLE: Final = 13
"""Rounds without a step."""
GRADIENTS: Final = 14
"""Sum of squared gradients (scale-free)."""
HEAD: Final = 16

PROPORTION: Final = 16
"""The proportional part of the radius (PID)."""
GAIN: Final = 17
SATURATION: Final = 18
WINDOW: Final = 19
"""Gain of the integrator, 0 for the largest score so far; where it saturates; scores kept."""
RING: Final = 20

OWN_LOSS: Final = 16
"""Pinball loss of the announced radii (strongly adaptive)."""
RIVALS: Final = 17
"""Pinball losses of fixed radii, from 0 to the scale at equal distances."""
RIVAL_COUNT: Final = 33
EXPERTS: Final = 64
PER_ORDER: Final = 4
"""An expert that starts in round t, of order u if 2**u is the largest power of 2 in t, lives for
8 * 2**u rounds; the next of its order starts 2 * 2**u later, so that four live at a time, and a
fifth takes the place of the first in the very round in which that one is over."""
ORDERS: Final = 40
BORN: Final = 0
SPOT: Final = 1
SQUARES: Final = 2
SURPLUS: Final = 3
STAKES: Final = 4
PRIOR: Final = 5
AGE: Final = 6
EXPERT: Final = 7

ROOT_3: Final = 1.7320508075688772
QUARTER_TURN: Final = 1.5707963267948966
INFINITY: Final = float("inf")


def width(state: Any) -> float:
    """Return the size of scores: as told, or the largest so far less the smallest."""
    told: float = state[SCALE]
    return told if told > 0.0 else state[HIGH] - state[LOW]


def notice(state: Any, radius: float, score: float) -> float:
    """Count a score; return 1 if it was above the radius, and else 0."""
    miss = 1.0 if score > radius else 0.0
    state[ROUNDS] += 1.0
    state[MISSES] += miss
    state[LOW] = min(state[LOW], score)
    state[HIGH] = max(state[HIGH], score)
    return miss


def move(state: Any, miss: float, step: float) -> None:
    """Move the radius, and note what the theorem about steps needs."""
    if step <= 0.0:
        state[IDLE] += 1.0
        return
    inverse = 1.0 / step
    if state[LAST_INVERSE] == 0.0:
        state[FIRST_INVERSE] = inverse
    else:
        state[VARIATION] += abs(inverse - state[LAST_INVERSE])
    state[LAST_INVERSE] = inverse
    change = step * (miss - state[ALPHA])
    state[RISE] = max(state[RISE], change)
    state[FALL] = max(state[FALL], -change)
    state[RADIUS] += change


def learn_aci(state: Any, radius: float, score: float) -> None:
    """Move by a fixed part of the scale."""
    miss = notice(state, radius, score)
    move(state, miss, state[STEP] * width(state))


def learn_sf_ogd(state: Any, radius: float, score: float) -> None:
    """Move by the scale over the root of all squared gradients."""
    miss = notice(state, radius, score)
    gradient = miss - state[ALPHA]
    state[GRADIENTS] += gradient * gradient
    move(state, miss, width(state) / (ROOT_3 * math.sqrt(state[GRADIENTS])))


def learn_pid(state: Any, radius: float, score: float) -> None:
    """Move in proportion to the spread of recent scores, and add what was missed in all."""
    miss = notice(state, radius, score)
    rounds = int(state[ROUNDS])
    state[RING + (rounds - 1) % int(state[WINDOW])] = score
    low, high = score, score
    for k in range(RING, RING + min(rounds, int(state[WINDOW]))):
        low, high = min(low, state[k]), max(high, state[k])
    state[PROPORTION] += state[STEP] * (high - low) * (miss - state[ALPHA])
    state[RADIUS] = state[PROPORTION] + integral(state)


def integral(state: Any) -> float:
    """Return the part of the radius that answers all errors so far; infinite if they are many."""
    after = state[ROUNDS] + 1.0
    excess = state[MISSES] - state[ALPHA] * state[ROUNDS]
    angle = excess * log(after) / (state[SATURATION] * after)
    if abs(angle) >= QUARTER_TURN:
        return INFINITY if angle > 0.0 else -INFINITY
    gain: float = state[GAIN]
    if gain <= 0.0:
        gain = width(state)
    cosine, sine = turn(angle)
    return gain * (sine / cosine)


def pinball(state: Any, radius: float, score: float) -> float:
    """Return the loss whose best fixed radius has the right coverage."""
    above: float = score - radius
    alpha: float = state[ALPHA]
    return (1.0 - alpha) * above if above > 0.0 else -alpha * above


def trust(state: Any, at: int) -> float:
    """Return how much an expert has earned by betting on itself."""
    age = state[at + AGE]
    if age == 0.0:
        return 0.0
    earned: float = state[at + SURPLUS] / age * (1.0 + state[at + STAKES])
    return earned


def blend(state: Any, orders: int) -> float:
    """Return the mean radius of all experts by trust; by prior if none is trusted."""
    trusted, sum_trusted, prior, sum_prior = 0.0, 0.0, 0.0, 0.0
    for k in range(orders * PER_ORDER):
        at = EXPERTS + k * EXPERT
        if state[at + BORN] > 0.0:
            weight = state[at + PRIOR] * max(trust(state, at), 0.0)
            trusted += weight
            sum_trusted += weight * state[at + SPOT]
            prior += state[at + PRIOR]
            sum_prior += state[at + PRIOR] * state[at + SPOT]
    return sum_trusted / trusted if trusted > 0.0 else sum_prior / prior


def teach(state: Any, at: int, score: float, meta: float) -> None:
    """Let an expert learn a score, and compare it with the blend, which lost ``meta``."""
    size, earned = width(state), trust(state, at)
    if size > 0.0:
        most = max(state[ALPHA], 1.0 - state[ALPHA])
        ahead = (meta - pinball(state, state[at + SPOT], score)) / (size * most)
        ahead = min(max(ahead, -1.0 if earned > 0.0 else 0.0), 1.0)
        state[at + SURPLUS] += ahead
        state[at + STAKES] += ahead * earned
    state[at + AGE] += 1.0
    gradient = (1.0 if score > state[at + SPOT] else 0.0) - state[ALPHA]
    state[at + SQUARES] += gradient * gradient
    state[at + SPOT] += size / ROOT_3 * gradient / math.sqrt(state[at + SQUARES])


def orders_until(rounds: int) -> int:
    """Return how many orders there are among the first rounds: bits of their number."""
    orders = 0
    while (rounds >> orders) > 0:
        orders += 1
    return min(orders, ORDERS)


def hire(state: Any, now: int, spot: float) -> None:
    """Let an expert start in round ``now``, in the place of one that is over."""
    order = 0
    while order < ORDERS - 1 and (now >> order) & 1 == 0:
        order += 1
    at = EXPERTS + (order * PER_ORDER + ((now >> (order + 1)) & 3)) * EXPERT
    state[at + BORN], state[at + SPOT] = now * 1.0, spot
    state[at + SQUARES], state[at + SURPLUS] = 0.0, 0.0
    state[at + STAKES], state[at + AGE] = 0.0, 0.0
    state[at + PRIOR] = 1.0 / (now * 1.0 * now * orders_until(now))


def learn_saocp(state: Any, radius: float, score: float) -> None:
    """Teach all experts, hire another, and blend their radii."""
    notice(state, radius, score)
    now = int(state[ROUNDS])
    meta = pinball(state, radius, score)
    compare(state, meta, score)
    orders = orders_until(now)
    for k in range(orders * PER_ORDER):
        at = EXPERTS + k * EXPERT
        if state[at + BORN] > 0.0:
            teach(state, at, score, meta)
    hire(state, now + 1, blend(state, orders))
    state[RADIUS] = blend(state, orders_until(now + 1))


def compare(state: Any, meta: float, score: float) -> None:
    """Add up the losses of the announced radius and of fixed ones, where the scale is told."""
    state[OWN_LOSS] += meta
    if state[SCALE] > 0.0:
        for k in range(RIVAL_COUNT):
            fixed = state[SCALE] * k / (RIVAL_COUNT - 1)
            state[RIVALS + k] += pinball(state, fixed, score)


@dataclass(frozen=True, eq=False)
class IntervalProgram:
    """A rule, and a batch of it: plain, or compiled once somebody asks for it."""

    name: str
    learn: Callable[[Any, float, float], None]
    replay: Callable[[Any, Any, Any], None]

    @functools.cached_property
    def machine(self) -> IntervalProgram | None:
        """The same with a compiled batch, or None where there is no compiler."""
        if not available():
            return None
        return replace(self, replay=compiled(self.replay, self.name, nogil=True))


def assemble(name: str, learn: Callable[[Any, float, float], None]) -> IntervalProgram:
    """Make the program of a rule."""

    def replay(state: Any, scores: Any, radii: Any) -> None:
        for t in range(len(scores)):
            radius = state[RADIUS]
            radii[t] = radius
            learn(state, radius, scores[t])

    return IntervalProgram(name, learn, replay)


ACI: Final = assemble("aci", learn_aci)
SF_OGD: Final = assemble("sf_ogd", learn_sf_ogd)
PID: Final = assemble("pid", learn_pid)
SAOCP: Final = assemble("saocp", learn_saocp)
