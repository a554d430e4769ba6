"""Approachability by online gradient descent, one coordinate for each grid cell.

Each cell has four words: gap, count, and as reals the coordinate ``theta`` in
[-1, 1] and the sum of its squared increments.  ``theta`` is the score.

Abernethy, Bartlett and Hazan (COLT 2011) print the step of their Algorithm 4 with
a minus; their reduction hands the learner the *negated* payoff, so it is a plus.
"""

from __future__ import annotations

import math
from typing import Final

from calibrant.kernels.layout import (
    CELLS,
    COUNT,
    FIXED,
    GAP_AND_COUNT,
    HEAD,
    INDEX,
    PARAMETERS,
    POSITION,
    REAL_COUNT,
    SCALE,
    STATE,
    VALUES,
    Reals,
    Section,
    Words,
)
from calibrant.kernels.whole import sets_at_its_end

CONSTANT, SQUARE_ROOT, ADAPTIVE = range(3)

SETTINGS: Final = Section()
STEP: Final = PARAMETERS + SETTINGS.whole("STEP", FIXED, "Which of the three steps.")
RATE: Final = PARAMETERS + SETTINGS.real(
    "RATE", FIXED, "The constant step, or twice the number of cells for the square-root step."
)
EXPECTED: Final = PARAMETERS + SETTINGS.whole(
    "EXPECTED", FIXED, "Whether both cells of the announced pair learn, each by its weight."
)

OWN_HEAD: Final = Section(HEAD)
LEARNED: Final = OWN_HEAD.whole("LEARNED", STATE, "Outcomes learned in this block.", COUNT)
HOME: Final = OWN_HEAD.whole("HOME", FIXED, "Where the search of this block started at first.")
FIRST: Final = len(OWN_HEAD)
"""Words of a block before its cells."""

OWN_CELL: Final = Section(GAP_AND_COUNT)
THETA: Final = OWN_CELL.real("THETA", STATE, "Coordinate of the cell.", (-1.0, 1.0))
SQUARES: Final = OWN_CELL.real(
    "SQUARES", STATE, "Sum of the squared pushes of the coordinate.", REAL_COUNT
)


def start(words: Words, reals: Reals, at: int) -> int:
    """Search from the last draw; with expected updates from one place, whatever the draws."""
    where: int = words[at + HOME] if words[EXPECTED] == 1 else words[at + POSITION]
    return where & INDEX


def score(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
    """Score of a cell: its coordinate."""
    theta: float = reals[at + FIRST + 4 * k + 2]
    return theta


def weigh(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Compare the coordinates of ``k`` and ``k + 1``."""
    cell = at + FIRST + 4 * k
    return reals[cell + 2], -reals[cell + 6]


@sets_at_its_end
def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Move the drawn cell's coordinate, or both cells' by their weights."""
    low, learned = table + words[CELLS] + VALUES + k - side, words[at + LEARNED] + 1
    here = at + FIRST + 4 * k
    both = words[EXPECTED] != 0 and weight < 1.0
    first, second = here - 4 * side, here - 4 * side + 4
    push = weight * (outcome - reals[low])
    if words[EXPECTED] == 0:
        first, push = here, outcome - reals[low + side]
    squares, theta = moved(words, reals, first, learned, push)
    squares_above, theta_above = 0.0, 0.0
    if both:
        push = (1.0 - weight) * (outcome - reals[low + 1])
        squares_above, theta_above = moved(words, reals, second, learned, push)
    # No call from here on: these words change together.
    words[here] += words[SCALE] * outcome - words[table + k]
    words[here + 1] += 1
    words[at + LEARNED] = learned
    reals[first + 2], reals[first + 3] = theta, squares
    if both:
        reals[second + 2], reals[second + 3] = theta_above, squares_above


def moved(words: Words, reals: Reals, cell: int, learned: int, push: float) -> tuple[float, float]:
    """Return the squares and the coordinate of a cell moved by the present step times ``push``.

    The coordinate stays in [-1, 1].
    """
    theta, squares = reals[cell + 2], reals[cell + 3]
    if push == 0.0:
        return squares, theta
    squares += push * push
    step = reals[RATE]
    if words[STEP] == SQUARE_ROOT:
        step = math.sqrt(step / learned)
    elif words[STEP] == ADAPTIVE:
        step = math.sqrt(2.0 / squares)
    theta += step * push
    return squares, 1.0 if theta > 1.0 else -1.0 if theta < -1.0 else theta


def nudge(words: Words, reals: Reals, at: int, k: int, push: float) -> None:
    """Move coordinate ``k`` by the present step times ``push``."""
    cell = at + FIRST + 4 * k
    reals[cell + 3], reals[cell + 2] = moved(words, reals, cell, words[at + LEARNED], push)


def amend(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, change: int
) -> None:
    """Replace an outcome: exactly in the counts, by one more step in the coordinates.

    A projected step cannot be undone, so the difference is learned as a gradient of
    its own.
    """
    words[at + FIRST + 4 * k] += words[SCALE] * change
    if words[EXPECTED] == 0:
        nudge(words, reals, at, k, float(change))
        return
    nudge(words, reals, at, k - side, weight * change)
    if weight < 1.0:
        nudge(words, reals, at, k - side + 1, (1.0 - weight) * change)
