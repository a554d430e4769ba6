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


def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Move the drawn cell's coordinate, or both cells' by their weights."""
    where = at + FIRST + 4 * k
    words[where] += words[SCALE] * outcome - words[table + k]
    words[where + 1] += 1
    words[at + LEARNED] += 1
    low = table + words[CELLS] + VALUES + k - side
    if words[EXPECTED] == 0:
        nudge(words, reals, at, k, outcome - reals[low + side])
        return
    nudge(words, reals, at, k - side, weight * (outcome - reals[low]))
    if weight < 1.0:
        nudge(words, reals, at, k - side + 1, (1.0 - weight) * (outcome - reals[low + 1]))


def nudge(words: Words, reals: Reals, at: int, k: int, push: float) -> None:
    """Move coordinate ``k`` by the present step times ``push``, and back into [-1, 1]."""
    if push == 0.0:
        return
    where = at + FIRST + 4 * k + 2
    reals[where + 1] += push * push
    step = reals[RATE]
    if words[STEP] == SQUARE_ROOT:
        step = math.sqrt(step / words[at + LEARNED])
    elif words[STEP] == ADAPTIVE:
        step = math.sqrt(2.0 / reals[where + 1])
    reals[where] = min(max(reals[where] + step * push, -1.0), 1.0)


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
