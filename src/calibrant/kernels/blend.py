"""Ends that learners of several memories agree on, and a level that keeps the coverage.

Each side has learners of its own, which differ in how fast they forget where scores lie and how
large they are::

    given  the share of misses alpha, on each of the sides a = alpha / sides
    for each side and its score s, learner k:                  # as of the last round
        opinion   middle_k + size_k place_k
        place_k  += pace (1{(s - middle_k) / size_k > place_k} - a)
        size_k   += forget (|s - middle_k| - size_k)
        middle_k += follow (s - middle_k)                      # only learners that centre
    end of each side <- the opinions, averaged by what they were worth (BOA)
    level <- level + step (alpha - missed)                     # one level for both sides
    u <- (alpha - level) / min(alpha, 1 - alpha), cut to [-1, 1]
    radius of each side <- end + size (slack (logit(alpha) - logit(level)) + bend u**3)

Near the target ends move less than without a bend, which saves width; the farther the level is
away, the faster they move, so that it does not stray far, which is what evens the misses out in any
block.  Beyond the cut, where a level hardly comes unless outcomes are late, a steeper bend would
only make ends swing.  States of earlier versions go on without a bend, see `STRAIGHT`.

At a level of 0 or less the radius is twice the largest score so far, at 1 or more nothing is
covered.  ``place`` is a quantile of the score in units of its size, found by steps that shrink as
``1/t`` until t = `PATIENCE`.

The level promises the coverage: it moves by ``step (alpha T - misses)`` in T rounds, and leaves
[0, 1] by no more than a step, but for outcomes that came when it was outside already and lay on
the wrong side still.  These are counted (`BEYOND`): with n of them, ``|coverage - target|`` is at
most ``(1 + step)/(step T) + n/T``.

Where N > `PROMPT` outcomes wait at a time, steps are smaller by ``N / PROMPT``: a level that
answers to misses of long ago would swing otherwise.  What one over the step changes is added up,
for with steps of several sizes the bound is that of :func:`calibrant.bounds.step_sizes`.
"""

from __future__ import annotations

from typing import Any, Final

from calibrant.kernels.intervals import (
    ALPHA,
    INFINITY,
    LAST_INVERSE,
    LEVEL,
    RADIUS,
    ROUNDS,
    STEP,
    VARIATION,
)
from calibrant.kernels.layout import FIXED, REAL_COUNT, STATE, Section
from calibrant.kernels.opinions import (
    BELOW,
    LEAST,
    OPINED,
    OPINION,
    SIDED,
    SIDES,
    SIZE_LIMITS,
    assemble_sides,
    average,
    fence,
    near,
    notice_sides,
    outside,
    recount_sides,
    reweigh,
)
from calibrant.kernels.portable import logit

FOLLOW: Final = (0.0, 0.0, 0.0, 0.0, 0.01, 0.1)
"""How far each learner goes to the last score with its middle; 0 keeps the middle at 0."""
FORGET: Final = (0.001, 0.01, 0.05, 0.15, 0.01, 0.03)
"""How far each learner goes to the last distance with its size."""
COUNT: Final = len(FOLLOW)
SPREAD: Final = 4
"""Whose size is the unit in which the level moves the ends."""
BENT: Final = 0.7, 3.0
"""How many sizes an end moves for one unit of log-odds, and for the cube of the level's distance.

In the tail of a normal law it would be 0.6 and nothing; more costs a little width, and evens the
misses out.  ``python -m benchmarks.intervals --choose`` shows what others do."""
STRAIGHT: Final = 1.0, 0.0
"""The same in states of earlier versions."""
MEMORY: Final = 0.999
"""What is left after a round of what learners were worth."""
PATIENCE: Final = 1_000.0
"""From so many rounds on places move by steps of one size."""
PROMPT: Final = 10.0
"""Of so many outcomes that wait at a time steps are whole.

Near its target a level comes back by a part of ``step SLACK 0.8 0.206 / (alpha (1 - alpha))`` a
round if errors are normal, which is 0.026 at a coverage of 0.9; what answers d rounds late does not
swing if that is at most ``1/(e d)``, d = 14."""
BEGUN: Final = 20.0
"""As if so many rounds had been before the first."""
START: Final = 2.0
"""Where places start, in sizes."""

BLEND_HEAD: Final = Section(SIDED)
BEYOND: Final = BLEND_HEAD.real(
    "BEYOND", STATE, "Whole steps that moved the level further away from [0, 1].", REAL_COUNT
)
LEARNER: Final = Section(OPINION)
MIDDLE: Final = LEARNER.real("MIDDLE", STATE, "Where the learner thinks that scores lie.")
SIZE: Final = LEARNER.real("SIZE", STATE, "How far from there on average.", SIZE_LIMITS)
PLACE: Final = LEARNER.real("PLACE", STATE, "The end in units of that size, from the middle.")
WORDS: Final = len(LEARNER)
SIDE: Final = COUNT * WORDS
"""Words of a side."""
UPPER: Final = len(BLEND_HEAD)
"""Where the upper side starts; the lower one follows."""
BLEND_WORDS: Final = Section(BLEND_HEAD)
BLEND_WORDS.fields += LEARNER.fields * (2 * COUNT)
# Behind all others: a stored state says by their places which words it holds.
SLACK: Final = BLEND_WORDS.real("SLACK", FIXED, "Sizes an end moves for one unit of log-odds.")
BEND: Final = BLEND_WORDS.real(
    "BEND", FIXED, "Sizes an end moves for the cube of how far the level is away."
)


def learn_blend(state: Any, at: int, radius: float, below: float, up: float, down: float) -> None:
    """Move the level by what it met, teach the learners of each side, and place the ends."""
    miss = notice_sides(state, at, radius, below, up, down)
    move_level(state, at, miss - state[at + ALPHA])
    teach_side(state, at, at + UPPER, up)
    if state[at + SIDES] > 1.0:
        teach_side(state, at, at + UPPER + SIDE, down)
    place_ends(state, at)


def amend_blend(
    state: Any, at: int, radius: float, below: float,
    up: float, down: float, later_up: float, later_down: float,
) -> None:  # fmt: skip
    """Move the level by the difference; what the learners made of the outcome stays."""
    miss, now = outside(radius, below, up, down), outside(radius, below, later_up, later_down)
    move_level(state, at, recount_sides(state, at, miss, now, later_up, later_down))
    place_ends(state, at)


def move_level(state: Any, at: int, error: float) -> None:
    """Move the level down by so many steps, and count moves further away from [0, 1]."""
    level, whole = state[at + LEVEL], state[at + STEP]
    slow = state[at + LAST_INVERSE]
    step = min(1.0 / slow, whole) if slow > 0.0 else whole
    if (error > 0.0 and level <= 0.0) or (error < 0.0 and level >= 1.0):
        state[at + BEYOND] += step / whole
    state[at + LEVEL] = level - step * error


def set_pace(state: Any, at: int, crowd: float) -> None:
    """Make steps smaller where so many outcomes wait at a time, and note by how much."""
    whole, last = 1.0 / state[at + STEP], state[at + LAST_INVERSE]
    inverse = whole * max(crowd / PROMPT, 1.0)
    before = last if last > 0.0 else whole
    if inverse != before:
        state[at + VARIATION] += abs(inverse - before)
        state[at + LAST_INVERSE] = inverse


def teach_side(state: Any, at: int, side: int, told: float) -> None:
    """Weigh the learners of a side by a score, and let them learn it."""
    score, rounds = near(told), state[at + ROUNDS]
    tail = state[at + ALPHA] / state[at + SIDES]
    if rounds > 1.0:
        reweigh(state, side, COUNT, WORDS, tail, score, MEMORY)
    for k in range(COUNT):
        who = side + k * WORDS
        if rounds == 1.0:
            state[who + SIZE] = abs(score)
        teach_learner(state, who, FOLLOW[k], FORGET[k], tail, score, rounds)


def teach_learner(
    state: Any, who: int, follow: float, forget: float, tail: float, score: float, rounds: float
) -> None:
    """Let a learner learn a score, and note its opinion."""
    away, size = score - state[who + MIDDLE], state[who + SIZE]
    place = away / size if size > LEAST else 0.0
    pace = 0.5 / (tail * min(rounds + BEGUN - 1.0, PATIENCE))
    state[who + PLACE] += pace * ((1.0 if place > state[who + PLACE] else 0.0) - tail)
    early = 1.0 / (rounds + 1.0)
    state[who + SIZE] = size + max(forget, early) * (abs(away) - size)
    if follow > 0.0:
        state[who + MIDDLE] += max(follow, early) * away
    state[who + OPINED] = near(state[who + MIDDLE] + state[who + SIZE] * state[who + PLACE])


def place_ends(state: Any, at: int) -> None:
    """Announce what learners agree on, moved as the level says."""
    state[at + RADIUS] = end_of(state, at, at + UPPER)
    state[at + BELOW] = state[at + RADIUS]
    if state[at + SIDES] > 1.0:
        state[at + BELOW] = end_of(state, at, at + UPPER + SIDE)


def end_of(state: Any, at: int, side: int) -> float:
    """Return the radius of a side: covering all so far at level 0, and nothing at level 1."""
    level = state[at + LEVEL]
    if level >= 1.0:
        return -INFINITY
    if level <= 0.0:
        return fence(state, at)
    size: float = state[side + SPREAD * WORDS + SIZE]
    return average(state, side, COUNT, WORDS) + slack_of(state, at, level) * size


def slack_of(state: Any, at: int, level: float) -> float:
    """Return by how many sizes a level moves the ends."""
    alpha = state[at + ALPHA]
    away = min(max((alpha - level) / min(alpha, 1.0 - alpha), -1.0), 1.0)
    even = state[at + SLACK] * (logit(alpha) - logit(level))
    moved: float = even + state[at + BEND] * (away * away * away)
    return moved


BLEND: Final = assemble_sides("blend", learn_blend, amend_blend)
