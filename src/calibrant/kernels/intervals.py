"""Radii that should cover scores: adaptive, scale-free, PID and strongly adaptive.

The state is a run of reals in a row: a head that all rules share, and what each needs besides.
The announced radius always stands at `RADIUS`, so that a forecast only reads.  A rule is a
function ``learn(state, at, radius, score)``; ``at`` is where the run starts, and ``radius`` what
was announced for that score, which may have been a while ago.  ``amend(state, at, radius,
before, after)`` replaces a score.  What was counted becomes what it would have been; the largest
and the smallest score, and steps that hung on them, do not: the difference is learned by one more
step.

Adaptive conformal inference comes a second time, on the level: the radius is a quantile of the
last scores, at a level that moves.  That state is the head, the level, and the last scores twice:
in the order in which they came, and sorted.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from calibrant.kernels.compile import available, compiled
from calibrant.kernels.layout import FIXED, REAL, REAL_COUNT, STATE, UNBOUNDED, Section
from calibrant.kernels.portable import log, turn
from calibrant.kernels.quantiles import first_at_least

HEAD: Final = Section(limits=UNBOUNDED)
"""What all rules keep."""
ALPHA: Final = HEAD.real("ALPHA", FIXED, "Which part of scores may lie above the radius.")
STEP: Final = HEAD.real("STEP", FIXED, "The rule's step size.")
SCALE: Final = HEAD.real(
    "SCALE", FIXED, "What the largest score is taken to be; 0 takes the largest so far."
)
RADIUS: Final = HEAD.real("RADIUS", STATE, "What the next forecast announces.")
ROUNDS: Final = HEAD.real("ROUNDS", STATE, "Scores learned.", REAL_COUNT)
MISSES: Final = HEAD.real("MISSES", STATE, "Scores that were above their radius.", REAL_COUNT)
LOW: Final = HEAD.real("LOW", STATE, "The smallest score so far, the first radius included.")
HIGH: Final = HEAD.real("HIGH", STATE, "The largest score so far, the first radius included.")
FIRST_INVERSE: Final = HEAD.real("FIRST_INVERSE", STATE, "One over the first step.")
LAST_INVERSE: Final = HEAD.real("LAST_INVERSE", STATE, "One over the last step.")
VARIATION: Final = HEAD.real("VARIATION", STATE, "How much one over the step changed in between.")
RISE: Final = HEAD.real("RISE", STATE, "The largest move of the radius up.")
FALL: Final = HEAD.real("FALL", STATE, "The largest move of the radius down.")
IDLE: Final = HEAD.real("IDLE", STATE, "Rounds without a step.", REAL_COUNT)
GRADIENTS: Final = HEAD.real(
    "GRADIENTS", STATE, "Sum of squared gradients (scale-free).", REAL_COUNT
)

PID_HEAD: Final = Section(HEAD, limits=UNBOUNDED)
PROPORTION: Final = PID_HEAD.real("PROPORTION", STATE, "The proportional part of the radius.")
GAIN: Final = PID_HEAD.real(
    "GAIN", FIXED, "Gain of the integrator; 0 takes the largest score so far."
)
SATURATION: Final = PID_HEAD.real("SATURATION", FIXED, "Where the integrator saturates.")
WINDOW: Final = PID_HEAD.real("WINDOW", FIXED, "How many scores are kept.")
RING: Final = len(PID_HEAD)
"""Where the last scores start (PID)."""

RIVAL_COUNT: Final = 33
PER_ORDER: Final = 4
"""An expert that starts in round t, of order u if 2**u is the largest power of 2 in t, lives for
8 * 2**u rounds; the next of its order starts 2 * 2**u later, so that four live at a time, and a
fifth takes the place of the first in the very round in which that one is over."""
ORDERS: Final = 40

EXPERT_WORDS: Final = Section(limits=UNBOUNDED)
BORN: Final = EXPERT_WORDS.real(
    "BORN", STATE, "Round in which the expert started, 0 for nobody.", REAL_COUNT
)
SPOT: Final = EXPERT_WORDS.real("SPOT", STATE, "The expert's radius.")
SQUARES: Final = EXPERT_WORDS.real(
    "SQUARES", STATE, "Sum of the expert's squared gradients.", REAL_COUNT
)
SURPLUS: Final = EXPERT_WORDS.real("SURPLUS", STATE, "How much less than the blend it lost.")
STAKES: Final = EXPERT_WORDS.real("STAKES", STATE, "What its bets on itself brought in.")
PRIOR: Final = EXPERT_WORDS.real(
    "PRIOR", STATE, "Its weight before anything was learned.", REAL_COUNT
)
AGE: Final = EXPERT_WORDS.real("AGE", STATE, "Scores that the expert learned.", REAL_COUNT)
EXPERT: Final = len(EXPERT_WORDS)

SAOCP_WORDS: Final = Section(HEAD, limits=UNBOUNDED)
OWN_LOSS: Final = SAOCP_WORDS.real("OWN_LOSS", STATE, "Pinball loss of the announced radii.")
RIVALS: Final = SAOCP_WORDS.real(
    "RIVALS",
    STATE,
    "Pinball losses of fixed radii, from 0 to the scale at equal distances.",
    words=RIVAL_COUNT,
)
EXPERTS: Final = len(SAOCP_WORDS)
"""Where the experts start (strongly adaptive)."""
SAOCP_WORDS.fields += EXPERT_WORDS.fields * (ORDERS * PER_ORDER)

ROOT_3: Final = 1.7320508075688772
QUARTER_TURN: Final = 1.5707963267948966
INFINITY: Final = float("inf")


def width(state: Any, at: int) -> float:
    """Return the size of scores: as told, or the largest so far less the smallest."""
    told: float = state[at + SCALE]
    return told if told > 0.0 else state[at + HIGH] - state[at + LOW]


def widen(state: Any, at: int, score: float) -> None:
    """Note the smallest and the largest score."""
    if score < state[at + LOW]:
        state[at + LOW] = score
    if score > state[at + HIGH]:
        state[at + HIGH] = score


def notice(state: Any, at: int, radius: float, score: float) -> float:
    """Count a score; return 1 if it was above the radius, and else 0."""
    miss = 1.0 if score > radius else 0.0
    state[at + ROUNDS] += 1.0
    state[at + MISSES] += miss
    widen(state, at, score)
    return miss


def recount(state: Any, at: int, radius: float, before: float, after: float) -> float:
    """Count a score instead of another; return by how much the misses changed."""
    change = (1.0 if after > radius else 0.0) - (1.0 if before > radius else 0.0)
    state[at + MISSES] += change
    widen(state, at, after)
    return change


def shift(state: Any, at: int, change: float) -> None:
    """Move the radius, and note how far it moved at most."""
    if change > state[at + RISE]:
        state[at + RISE] = change
    if -change > state[at + FALL]:
        state[at + FALL] = -change
    state[at + RADIUS] += change


def move(state: Any, at: int, miss: float, step: float) -> None:
    """Move the radius by a step, and note what the theorem about steps needs."""
    if step <= 0.0:
        state[at + IDLE] += 1.0
        return
    inverse = 1.0 / step
    if state[at + LAST_INVERSE] == 0.0:
        state[at + FIRST_INVERSE] = inverse
    elif inverse != state[at + LAST_INVERSE]:
        state[at + VARIATION] += abs(inverse - state[at + LAST_INVERSE])
    state[at + LAST_INVERSE] = inverse
    shift(state, at, step * (miss - state[at + ALPHA]))


def learn_aci(state: Any, at: int, radius: float, score: float) -> None:
    """Move by a fixed part of the scale."""
    miss = notice(state, at, radius, score)
    move(state, at, miss, state[at + STEP] * width(state, at))


def amend_aci(state: Any, at: int, radius: float, before: float, after: float) -> None:
    """Move by the difference, with the step of now: exact where the scale is told."""
    change = recount(state, at, radius, before, after)
    shift(state, at, state[at + STEP] * width(state, at) * change)


def learn_sf_ogd(state: Any, at: int, radius: float, score: float) -> None:
    """Move by the scale over the root of all squared gradients."""
    miss = notice(state, at, radius, score)
    gradient = miss - state[at + ALPHA]
    state[at + GRADIENTS] += gradient * gradient
    move(state, at, miss, width(state, at) / (ROOT_3 * math.sqrt(state[at + GRADIENTS])))


def amend_sf_ogd(state: Any, at: int, radius: float, before: float, after: float) -> None:
    """Replace the squared gradient, and move by the difference with the step of now."""
    change = recount(state, at, radius, before, after)
    # One of both gradients is 1 - alpha and the other -alpha; what is left of rounding is not 0.
    alpha = state[at + ALPHA]
    total = state[at + GRADIENTS] + change * (1.0 - 2.0 * alpha)
    state[at + GRADIENTS] = max(total, min(alpha * alpha, (1.0 - alpha) * (1.0 - alpha)))
    step = width(state, at) / (ROOT_3 * math.sqrt(state[at + GRADIENTS]))
    shift(state, at, step * change)


def spread(state: Any, at: int, score: float) -> float:
    """Return the largest of the last scores less the smallest; ``score`` is one of them."""
    low, high = score, score
    kept = min(int(state[at + ROUNDS]), int(state[at + WINDOW]))
    for k in range(at + RING, at + RING + kept):
        low, high = min(low, state[k]), max(high, state[k])
    return high - low


def learn_pid(state: Any, at: int, radius: float, score: float) -> None:
    """Move in proportion to the spread of recent scores, and add what was missed in all."""
    miss = notice(state, at, radius, score)
    state[at + RING + (int(state[at + ROUNDS]) - 1) % int(state[at + WINDOW])] = score
    size = spread(state, at, score)
    state[at + PROPORTION] += state[at + STEP] * size * (miss - state[at + ALPHA])
    state[at + RADIUS] = state[at + PROPORTION] + integral(state, at)


def amend_pid(state: Any, at: int, radius: float, before: float, after: float) -> None:
    """Replace the score if it is among the last ones, and move by the spread of now."""
    change = recount(state, at, radius, before, after)
    kept = min(int(state[at + ROUNDS]), int(state[at + WINDOW]))
    replace_first(state, at + RING, kept, before, after)
    size = spread(state, at, state[at + RING])
    state[at + PROPORTION] += state[at + STEP] * size * change
    state[at + RADIUS] = state[at + PROPORTION] + integral(state, at)


def replace_first(state: Any, start: int, size: int, before: float, after: float) -> bool:
    """Put one number in the place of the first that equals another; say whether there was one."""
    for k in range(start, start + size):
        if state[k] == before:
            state[k] = after
            return True
    return False


def integral(state: Any, at: int) -> float:
    """Return the part of the radius that answers all errors so far; infinite if they are many."""
    after = state[at + ROUNDS] + 1.0
    excess = state[at + MISSES] - state[at + ALPHA] * state[at + ROUNDS]
    angle = excess * log(after) / (state[at + SATURATION] * after)
    if abs(angle) >= QUARTER_TURN:
        return INFINITY if angle > 0.0 else -INFINITY
    gain: float = state[at + GAIN]
    if gain <= 0.0:
        gain = width(state, at)
    cosine, sine = turn(angle)
    return gain * (sine / cosine)


def pinball(state: Any, at: int, radius: float, score: float) -> float:
    """Return the loss whose best fixed radius has the right coverage."""
    above: float = score - radius
    alpha: float = state[at + ALPHA]
    return (1.0 - alpha) * above if above > 0.0 else -alpha * above


def trust(state: Any, who: int) -> float:
    """Return how much an expert has earned by betting on itself."""
    age = state[who + AGE]
    if age == 0.0:
        return 0.0
    earned: float = state[who + SURPLUS] / age * (1.0 + state[who + STAKES])
    return earned


def blend(state: Any, at: int, orders: int) -> float:
    """Return the mean radius of all experts by trust; by prior if none is trusted."""
    trusted, sum_trusted, prior, sum_prior = 0.0, 0.0, 0.0, 0.0
    for k in range(orders * PER_ORDER):
        who = at + EXPERTS + k * EXPERT
        if state[who + BORN] > 0.0:
            weight = state[who + PRIOR] * max(trust(state, who), 0.0)
            trusted += weight
            sum_trusted += weight * state[who + SPOT]
            prior += state[who + PRIOR]
            sum_prior += state[who + PRIOR] * state[who + SPOT]
    return sum_trusted / trusted if trusted > 0.0 else sum_prior / prior


def teach(state: Any, at: int, who: int, score: float, meta: float) -> None:
    """Let an expert learn a score, and compare it with the blend, which lost ``meta``."""
    size, earned = width(state, at), trust(state, who)
    alpha = state[at + ALPHA]
    if size > 0.0:
        most = max(alpha, 1.0 - alpha)
        ahead = (meta - pinball(state, at, state[who + SPOT], score)) / (size * most)
        ahead = min(max(ahead, -1.0 if earned > 0.0 else 0.0), 1.0)
        state[who + SURPLUS] += ahead
        # While hundreds of outcomes wait, an expert may win each of its bets.
        state[who + STAKES] = min(state[who + STAKES] + ahead * earned, REAL[1])
    state[who + AGE] += 1.0
    gradient = (1.0 if score > state[who + SPOT] else 0.0) - alpha
    state[who + SQUARES] += gradient * gradient
    state[who + SPOT] += size / ROOT_3 * gradient / math.sqrt(state[who + SQUARES])


def orders_until(rounds: int) -> int:
    """Return how many orders there are among the first rounds: bits of their number."""
    orders = 0
    while (rounds >> orders) > 0:
        orders += 1
    return min(orders, ORDERS)


def hire(state: Any, at: int, now: int, spot: float) -> None:
    """Let an expert start in round ``now``, in the place of one that is over."""
    order = 0
    while order < ORDERS - 1 and (now >> order) & 1 == 0:
        order += 1
    who = at + EXPERTS + (order * PER_ORDER + ((now >> (order + 1)) & 3)) * EXPERT
    state[who + BORN], state[who + SPOT] = now * 1.0, spot
    state[who + SQUARES], state[who + SURPLUS] = 0.0, 0.0
    state[who + STAKES], state[who + AGE] = 0.0, 0.0
    state[who + PRIOR] = 1.0 / (now * 1.0 * now * orders_until(now))


def learn_saocp(state: Any, at: int, radius: float, score: float) -> None:
    """Teach all experts, hire another, and blend their radii."""
    notice(state, at, radius, score)
    now = int(state[at + ROUNDS])
    meta = pinball(state, at, radius, score)
    compare(state, at, radius, score, 1.0)
    orders = orders_until(now)
    for k in range(orders * PER_ORDER):
        who = at + EXPERTS + k * EXPERT
        if state[who + BORN] > 0.0:
            teach(state, at, who, score, meta)
    hire(state, at, now + 1, blend(state, at, orders))
    state[at + RADIUS] = blend(state, at, orders_until(now + 1))


def amend_saocp(state: Any, at: int, radius: float, before: float, after: float) -> None:
    """Replace a score in the counts and losses; what the experts learned of it stays."""
    recount(state, at, radius, before, after)
    compare(state, at, radius, before, -1.0)
    compare(state, at, radius, after, 1.0)


def compare(state: Any, at: int, radius: float, score: float, sign: float) -> None:
    """Add the losses of the announced radius and, where the scale is told, of fixed ones."""
    state[at + OWN_LOSS] += sign * pinball(state, at, radius, score)
    if state[at + SCALE] > 0.0:
        for k in range(RIVAL_COUNT):
            fixed = state[at + SCALE] * k / (RIVAL_COUNT - 1)
            state[at + RIVALS + k] += sign * pinball(state, at, fixed, score)


@dataclass(frozen=True, eq=False)
class IntervalProgram:
    """A rule, and a batch of it: plain, or compiled once somebody asks for it."""

    name: str
    learn: Callable[..., None]
    amend: Callable[..., None]
    replay: Callable[..., None]

    @functools.cached_property
    def machine(self) -> IntervalProgram | None:
        """The same with compiled steps and batches, or None where there is no compiler."""
        if not available():
            return None
        learn = compiled(self.learn, self.name, nogil=True)
        return replace(self, learn=learn, replay=compiled(self.replay, self.name, nogil=True))


def assemble(
    name: str,
    learn: Callable[[Any, int, float, float], None],
    amend: Callable[[Any, int, float, float, float], None],
) -> IntervalProgram:
    """Make the program of a rule."""

    def replay(state: Any, at: int, scores: Any, radii: Any) -> None:
        for t in range(len(scores)):
            radius = state[at + RADIUS]
            radii[t] = radius
            learn(state, at, radius, scores[t])

    return IntervalProgram(name, learn, amend, replay)


ACI: Final = assemble("aci", learn_aci, amend_aci)
SF_OGD: Final = assemble("sf_ogd", learn_sf_ogd, amend_sf_ogd)
PID: Final = assemble("pid", learn_pid, amend_pid)
SAOCP: Final = assemble("saocp", learn_saocp, amend_saocp)


QUANTILE_HEAD: Final = Section(HEAD, limits=UNBOUNDED)
LEVEL: Final = QUANTILE_HEAD.real(
    "LEVEL", STATE, "Which part of scores the next radius may miss; outside [0, 1] now and then."
)
KEPT_SCORES: Final = QUANTILE_HEAD.real("WINDOW", FIXED, "How many scores are kept.")
LATEST: Final = len(QUANTILE_HEAD)
"""Where the last scores start, as they came; as many sorted ones follow."""


def learn_aci_quantile(state: Any, at: int, radius: float, score: float) -> None:
    """Move the level by what it met, keep the score, and take the quantile."""
    miss = notice(state, at, radius, score)
    state[at + LEVEL] += state[at + STEP] * (state[at + ALPHA] - miss)
    size = keep(state, at, at + LATEST, score)
    state[at + RADIUS] = radius_at(state, at, at + LATEST, size, state[at + LEVEL])


def amend_aci_quantile(state: Any, at: int, radius: float, before: float, after: float) -> None:
    """Move the level by the difference; replace the score if it is among the last ones."""
    change = recount(state, at, radius, before, after)
    state[at + LEVEL] -= state[at + STEP] * change
    size = keep_instead(state, at, at + LATEST, before, after)
    state[at + RADIUS] = radius_at(state, at, at + LATEST, size, state[at + LEVEL])


def keep(state: Any, at: int, latest: int, score: float) -> int:
    """Keep a score in the place of the oldest; return how many there are."""
    window, count = int(state[at + KEPT_SCORES]), int(state[at + ROUNDS])
    place, ordered = latest + (count - 1) % window, latest + window
    size = min(count - 1, window)
    if size == window:
        drop(state, ordered, size, state[place])
        size -= 1
    state[place] = score
    insert(state, ordered, size, score)
    return size + 1


def keep_instead(state: Any, at: int, latest: int, before: float, after: float) -> int:
    """Replace a score if it is among the last ones; return how many there are."""
    window = int(state[at + KEPT_SCORES])
    size = min(int(state[at + ROUNDS]), window)
    if replace_first(state, latest, size, before, after):
        drop(state, latest + window, size, before)
        insert(state, latest + window, size - 1, after)
    return size


def drop(state: Any, ordered: int, size: int, score: float) -> None:
    """Take a score out of the sorted ones."""
    gone = first_at_least(state, ordered, size, score)
    for k in range(ordered + gone, ordered + size - 1):
        state[k] = state[k + 1]


def insert(state: Any, ordered: int, size: int, score: float) -> None:
    """Put a score among the sorted ones."""
    k = ordered + size
    while k > ordered and state[k - 1] > score:
        state[k] = state[k - 1]
        k -= 1
    state[k] = score


def radius_at(state: Any, at: int, latest: int, size: int, level: float) -> float:
    """Return the score that all but the level's part of the next ones should not exceed.

    Of n scores that come in any order alike with the next one, it is the one of rank
    ``(1 - level) (n + 1)``, rounded up; infinite if there are too few.
    """
    if level <= 0.0 or level >= 1.0:
        return INFINITY if level <= 0.0 else -INFINITY
    rank = math.ceil((1.0 - level) * (size + 1))
    if rank > size:
        return INFINITY
    found: float = state[latest + int(state[at + KEPT_SCORES]) + rank - 1]
    return found


ACI_QUANTILE: Final = assemble("aci_quantile", learn_aci_quantile, amend_aci_quantile)
