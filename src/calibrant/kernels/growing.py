"""Average gaps with an anchor on a grid that becomes finer as outcomes come in.

The state has room for the finest grid.  A block begins with every 2**STEP-th of its points, and
puts one between each two whenever what is left to learn costs less than the floor of the grid in
use: see :func:`due`.  No count is lost, since a finer grid has all points of the coarser one.

Everything else is as in :mod:`calibrant.kernels.anchor`.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.anchor import CELL_WORDS, LEARNED, count, learned, make_amend, make_score
from calibrant.kernels.anchor import OWN_HEAD as ANCHOR_HEAD
from calibrant.kernels.layout import (
    CELL,
    CELLS,
    COUNT,
    INDEX,
    MIXED,
    SCALE,
    STATE,
    VALUES,
    WIDTH,
    Reals,
    Section,
    Words,
)
from calibrant.kernels.portable import log

OWN_HEAD: Final = Section(ANCHOR_HEAD)
STEP: Final = OWN_HEAD.whole(
    "STEP",
    STATE,
    "How often the step between grid points in use can still be halved: 2**STEP cells.",
    (0, 7),
)
NEXT: Final = OWN_HEAD.whole(
    "NEXT", STATE, "After how many outcomes of this block the step is halved next.", COUNT
)
FIRST: Final = len(OWN_HEAD)
"""Words of a block before its cells."""

ENOUGH: Final = 48
"""Iterations after which a fixed point that is approached by a factor of 3 at least is exact."""


score: Final = make_score(FIRST, CELL_WORDS)


def due(resolution: int) -> int:
    """Return how many outcomes a grid of so many steps is worth: what is left is below its floor.

    The least T with ``K (1 + ln(T/K))/T <= 1/(4 N^2)`` for K = N + 1.  With x = T/K this is the
    fixed point of ``x = 4 N^2 (1 + ln x)``, a contraction by ``1/(1 + ln x) < 1/3``.

    >>> due(1), due(2), due(20)
    (30, 263, 361299)
    """
    floor = 4.0 * resolution * resolution
    x = floor
    for _ in range(ENOUGH):
        x = floor * (1.0 + log(x))
    return int((resolution + 1) * x) + 1


def start(words: Words, reals: Reals, at: int) -> int:
    """Search from the point in use that is nearest to the anchor."""
    width = words[at + STEP] & INDEX
    top = ((words[CELLS] & INDEX) - 1) >> width
    nearest: int = int(reals[MIXED] * top + 0.5) << width
    return nearest


def search(
    words: Words, reals: Reals, at: int, table: int, near: int, found: float
) -> tuple[int, float]:
    """Go from a point with a score to the first without one, or to a pair.

    The scores of the ends point inwards, so there is one.
    """
    step = 1 << (words[at + STEP] & INDEX)
    ahead = step if found > 0.0 else -step
    far = near + ahead
    found = score(words, reals, at, table, far)
    while found * ahead > 0.0:
        far += ahead
        found = score(words, reals, at, table, far)
    if found == 0.0:
        return far, 1.0
    low = min(far - ahead, far)
    here = score(words, reals, at, table, low)
    above = -score(words, reals, at, table, low + step)
    return low, above / (here + above)


def draw(
    words: Words, reals: Reals, at: int, cells: int, table: int, u: float
) -> tuple[int, int, float]:
    """Return the cell on which the coin falls, its side in the pair, and the low one's weight."""
    low = start(words, reals, at)
    found, weight = score(words, reals, at, table, low), 1.0
    if found != 0.0:
        low, weight = search(words, reals, at, table, low, found)
    width = words[at + STEP] & INDEX
    side = 1 if u >= weight else 0
    return low + (side << width), side | (width << WIDTH), weight


def mean(
    words: Words, reals: Reals, cells: int, table: int, cell: int, side: int, weight: float
) -> float:
    """Return the mean of the announced pair, as far apart as it was then."""
    step = 1 << (side >> WIDTH)
    low = table + cells + VALUES + ((cell - (side & 1) * step) & CELL)
    middle: float = reals[low] * weight + reals[low + step * (weight < 1.0)] * (1.0 - weight)
    return middle


def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count the outcome at the drawn cell, and halve the step if that is due."""
    count(words, reals, at + FIRST + CELL_WORDS * k, words[SCALE] * outcome - words[table + k])
    expected = mean(words, reals, words[CELLS] & INDEX, table, k, side, weight)
    learned(words, reals, at, expected, outcome)
    if words[at + STEP] > 0 and words[at + LEARNED] >= words[at + NEXT]:
        grow(words, at)


def grow(words: Words, at: int) -> None:
    """Put a point between each two in use."""
    words[at + STEP] -= 1
    width = words[at + STEP] & INDEX
    words[at + NEXT] = due(((words[CELLS] & INDEX) - 1) >> width) if width > 0 else 0


amend: Final = make_amend(FIRST, mean)
