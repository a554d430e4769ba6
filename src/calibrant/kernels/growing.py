"""Average gaps with an anchor on a grid that becomes finer as outcomes come in.

The state has room for the finest grid.  A block begins with every 2**STEP-th of its points, and
puts one between each two whenever what is left to learn costs less than the floor of the grid in
use: see :func:`due`.  No count is lost, since a finer grid has all points of the coarser one.

Everything else is as in :mod:`calibrant.kernels.anchor`.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.anchor import CELL_WORDS, IMPATIENCE, STRENGTH, adjust, average, lean
from calibrant.kernels.layout import (
    BUCKETS,
    CELL,
    CELLS,
    HEAD,
    INDEX,
    LAG,
    LEARNED,
    MIDDLE,
    NEXT,
    SCALE,
    STEP,
    TRUST,
    VALUES,
    WAITED,
    WIDTH,
    Reals,
    Words,
)
from calibrant.kernels.portable import log

__all__ = ["amend", "draw", "due", "mean", "update"]

ENOUGH: Final = 48
"""Iterations after which a fixed point that is approached by a factor of 3 at least is exact."""


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
    nearest: int = int(reals[MIDDLE] * top + 0.5) << width
    return nearest


def search(
    words: Words, reals: Reals, at: int, table: int, near: int, leaning: float
) -> tuple[int, float]:
    """Go from a point that leans to the first that does not, or to a pair.

    The ends lean inwards, so there is one.
    """
    step = 1 << (words[at + STEP] & INDEX)
    ahead = step if leaning > 0.0 else -step
    far = near + ahead
    leaning = lean(words, reals, at, table, far)
    while leaning * ahead > 0.0:
        far += ahead
        leaning = lean(words, reals, at, table, far)
    if leaning == 0.0:
        return far, 1.0
    low = min(far - ahead, far)
    here = lean(words, reals, at, table, low)
    above = -lean(words, reals, at, table, low + step)
    return low, above / (here + above)


def draw(
    words: Words, reals: Reals, at: int, cells: int, table: int, u: float
) -> tuple[int, int, float]:
    """Return the cell on which the coin falls, its side in the pair, and the low one's weight."""
    low = start(words, reals, at)
    leaning, weight = lean(words, reals, at, table, low), 1.0
    if leaning != 0.0:
        low, weight = search(words, reals, at, table, low, leaning)
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
    words: Words,
    reals: Reals,
    at: int,
    table: int,
    cell: int,
    side: int,
    weight: float,
    outcome: int,
) -> None:
    """Count the outcome at the drawn cell, and halve the step if that is due."""
    where = at + HEAD + CELL_WORDS * cell
    words[where] += words[SCALE] * outcome - words[table + cell]
    words[where + 1] += 1
    average(words, reals, where)
    expected = mean(words, reals, words[CELLS] & INDEX, table, cell, side, weight)
    learned(words, reals, at, expected, outcome)
    if words[at + STEP] > 0 and words[at + LEARNED] >= words[at + NEXT]:
        grow(words, at)


def learned(words: Words, reals: Reals, at: int, expected: float, outcome: int) -> None:
    """Count what the mean forecast lost to the anchor, and how late that was known."""
    words[at + LEARNED] += 1
    middle, anchor, lag = expected - outcome, reals[MIDDLE] - outcome, reals[LAG]
    lost = middle * middle - anchor * anchor
    if lag > 1.0:
        lost /= lag
        reals[at + WAITED] += (lag - 1.0) / words[BUCKETS]
    if reals[at + WAITED] > 0.0:
        square = words[at + LEARNED] * 1.0 * words[at + LEARNED]
        reals[at + TRUST] = square / (square + 2.0 * reals[at + WAITED])
    adjust(reals, at, lost, reals[STRENGTH], reals[IMPATIENCE])


def grow(words: Words, at: int) -> None:
    """Put a point between each two in use."""
    words[at + STEP] -= 1
    width = words[at + STEP] & INDEX
    words[at + NEXT] = due(((words[CELLS] & INDEX) - 1) >> width) if width > 0 else 0


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
    """Replace an outcome: ``change`` is the new one less the old one."""
    where = at + HEAD + CELL_WORDS * cell
    words[where] += words[SCALE] * change
    average(words, reals, where)
    expected = mean(words, reals, words[CELLS] & INDEX, table, cell, side, weight)
    lost = 2.0 * change * (reals[MIDDLE] - expected)
    adjust(reals, at, lost, reals[STRENGTH], reals[IMPATIENCE])
