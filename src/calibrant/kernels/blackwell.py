"""Approachability by online gradient descent, one coordinate for each grid cell.

Each cell has four words: gap, count, and as reals the coordinate ``theta`` in
[-1, 1] and the sum of its squared increments.  ``theta`` is the lean.

Abernethy, Bartlett and Hazan (COLT 2011) print the step of their Algorithm 4 with
a minus; their reduction hands the learner the *negated* payoff, so it is a plus.
"""

from __future__ import annotations

import math
from typing import Final

from calibrant.kernels.layout import (
    CELLS,
    HEAD,
    HOME,
    INDEX,
    LEARNED,
    PARAMETERS,
    POSITION,
    SCALE,
    VALUES,
    Reals,
    Words,
)

CELL_WORDS: Final = 4
FIXED: Final = 0
SQUARE_ROOT: Final = 1
ADAPTIVE: Final = 2

STEP: Final = PARAMETERS
"""Which of the three steps."""
RATE: Final = PARAMETERS + 1
"""(real) The fixed step, or twice the number of cells for the square-root step."""
EXPECTED: Final = PARAMETERS + 2
"""Whether both cells of the announced pair learn, each by its weight."""


def start(words: Words, reals: Reals, at: int) -> int:
    """Search from the last draw; with expected updates from one place, whatever the draws."""
    where: int = words[at + HOME] if words[EXPECTED] == 1 else words[at + POSITION]
    return where & INDEX


def lean(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
    """Lean of a cell: its coordinate."""
    theta: float = reals[at + HEAD + 4 * k + 2]
    return theta


def weigh(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Compare the coordinates of ``k`` and ``k + 1``."""
    cell = at + HEAD + 4 * k
    return reals[cell + 2], -reals[cell + 6]


def update(
    words: Words,
    reals: Reals,
    at: int,
    table: int,
    cell: int,
    side: int,
    weight: float,
    outcome: int,
) -> None:
    """Move the drawn cell's coordinate, or both cells' by their weights."""
    where = at + HEAD + 4 * cell
    words[where] += words[SCALE] * outcome - words[table + cell]
    words[where + 1] += 1
    words[at + LEARNED] += 1
    low = table + words[CELLS] + VALUES + cell - side
    if words[EXPECTED] == 0:
        nudge(words, reals, at, cell, outcome - reals[low + side])
        return
    nudge(words, reals, at, cell - side, weight * (outcome - reals[low]))
    if weight < 1.0:
        nudge(words, reals, at, cell - side + 1, (1.0 - weight) * (outcome - reals[low + 1]))


def nudge(words: Words, reals: Reals, at: int, k: int, push: float) -> None:
    """Move coordinate ``k`` by the present step times ``push``, and back into [-1, 1]."""
    if push == 0.0:
        return
    where = at + HEAD + 4 * k + 2
    reals[where + 1] += push * push
    step = reals[RATE]
    if words[STEP] == SQUARE_ROOT:
        step = math.sqrt(step / words[at + LEARNED])
    elif words[STEP] == ADAPTIVE:
        step = math.sqrt(2.0 / reals[where + 1])
    reals[where] = min(max(reals[where] + step * push, -1.0), 1.0)


def amend(
    words: Words,
    reals: Reals,
    at: int,
    table: int,
    cell: int,
    side: int,
    weight: float,
    change: int,
) -> None:
    """Replace an outcome: exactly in the counts, by one more step in the coordinates.

    A projected step cannot be undone, so the difference is learned as a gradient of
    its own.
    """
    words[at + HEAD + 4 * cell] += words[SCALE] * change
    if words[EXPECTED] == 0:
        nudge(words, reals, at, cell, float(change))
        return
    nudge(words, reals, at, cell - side, weight * change)
    if weight < 1.0:
        nudge(words, reals, at, cell - side + 1, (1.0 - weight) * change)
