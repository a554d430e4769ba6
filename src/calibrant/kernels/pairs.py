"""Regret for every ordered pair of grid cells, and the stationary law that removes it.

The squared-loss regret of not having played ``j`` where ``i`` was played is a
function of two sums for each cell, the weight ``W`` with which it was played and
the outcomes ``Y`` then, so K cells of four words (gap, count, ``W``, ``Y``)
remember all K(K-1) regrets.  The mixture is the stationary law of the chain whose
rate from ``i`` to ``j`` is the potential's slope at that regret.

The scratch room holds the K weights of the law, then K numbers, then the K x K
rates.  The law is found by the elimination of Grassmann, Taksar and Heyman
(Operations Research 33, 1985): no subtraction, hence no cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    SCALE,
    SCRATCH,
    STATE,
    VALUES,
    Reals,
    Section,
    Words,
)
from calibrant.kernels.portable import exp
from calibrant.kernels.rule import Recall, Rule
from calibrant.kernels.two_point import Draw

SETTINGS: Final = Section()
EXPECTED: Final = PARAMETERS + SETTINGS.whole(
    "EXPECTED", FIXED, "Whether every cell of the announced law learns, each by its weight."
)
RATE: Final = PARAMETERS + SETTINGS.real(
    "RATE", FIXED, "The fixed learning rate; zero asks for the any-time schedule."
)
SCHEDULE: Final = PARAMETERS + SETTINGS.real(
    "SCHEDULE", FIXED, "Eight times the logarithm of the number of pairs."
)

OWN_HEAD: Final = Section(HEAD)
LEARNED: Final = OWN_HEAD.whole("LEARNED", STATE, "Outcomes learned in this block.", COUNT)
FRESH: Final = OWN_HEAD.whole(
    "FRESH",
    STATE,
    "Number of the last forecast if nothing was learned since, else -1.",
    (-1, 1 << 62),
)
HOME: Final = OWN_HEAD.whole("HOME", FIXED, "Where the search of this block started at first.")
FIRST: Final = len(OWN_HEAD)
"""Words of a block before its cells."""

OWN_CELL: Final = Section(GAP_AND_COUNT)
PLAYED: Final = OWN_CELL.real("PLAYED", STATE, "Sum of the weights with which the cell was played.")
ONES: Final = OWN_CELL.real("ONES", STATE, "Sum of these weights over the rounds with outcome 1.")

FLOOR: Final = -60.0
"""Rates below exp(-60) of their row's largest are raised to it: far below rounding,
and the chain stays irreducible."""
HUGE: Final = 1e100


def regret(reals: Reals, at: int, values: int, i: int, j: int) -> float:
    """Return how much less squared loss ``j`` would have had where ``i`` was played."""
    weight, ones = reals[at + FIRST + 4 * i + 2], reals[at + FIRST + 4 * i + 3]
    here, there = reals[values + i], reals[values + j]
    return (here - there) * ((here + there) * weight - 2.0 * ones)  # type: ignore[no-any-return]


def exponential_rates(words: Words, reals: Reals, at: int, cells: int, table: int) -> bool:
    """Fill the rates exp(eta R), each row relative to its largest.

    Row ``i`` of the true rates is ``exp(eta * largest_i)`` times the one written
    here; the stationary law is divided by that factor at the end, which is why
    the K numbers before the matrix hold ``eta * largest_i``.
    """
    values, scratch = table + cells + VALUES, words[SCRATCH] & INDEX
    eta = reals[RATE]
    if eta == 0.0:
        eta = math.sqrt(reals[SCHEDULE] / (words[at + LEARNED] + 1))
    for i in range(cells):
        largest = -math.inf
        for j in range(cells):
            if j != i:
                largest = max(largest, regret(reals, at, values, i, j))
        reals[scratch + cells + i] = eta * largest
        row = scratch + 2 * cells + i * cells
        for j in range(cells):
            power = eta * (regret(reals, at, values, i, j) - largest)
            reals[row + j] = exp(max(power, FLOOR))
    return False


def polynomial_rates(words: Words, reals: Reals, at: int, cells: int, table: int) -> bool:
    """Fill the rates max(R, 0); True if a cell without regret can be played alone.

    Of the cells without regret, the one nearest to the last draw becomes the law; with
    expected updates the one nearest to where the bucket began, whatever the draws.
    """
    values, scratch = table + cells + VALUES, words[SCRATCH] & INDEX
    position = (words[at + HOME] if words[EXPECTED] == 1 else words[at + POSITION]) & INDEX
    alone, nearest = -1, cells
    for i in range(cells):
        reals[scratch + i] = 0.0
        reals[scratch + cells + i] = 0.0
        row, total = scratch + 2 * cells + i * cells, 0.0
        for j in range(cells):
            rate = max(regret(reals, at, values, i, j), 0.0)
            reals[row + j] = rate
            total += rate
        if total == 0.0 and abs(i - position) < nearest:
            alone, nearest = i, abs(i - position)
    if alone >= 0:
        reals[scratch + alone] = 1.0
    return alone >= 0


def eliminate(words: Words, reals: Reals, cells: int) -> int:
    """Eliminate cells from the top; return the lowest cell of a closed class.

    Afterwards entry (i, n) with i < n is the rate from ``i`` into ``n`` over the
    total rate out of ``n`` to lower cells.  A cell without a way to lower ones
    closes a class of it and cells above it, and the rest is transient for it.
    """
    rates = (words[SCRATCH] & INDEX) + 2 * cells
    for n in range(cells - 1, 0, -1):
        out = 0.0
        for j in range(n):
            out += reals[rates + n * cells + j]
        if out == 0.0:
            return n
        for j in range(n):
            reals[rates + n * cells + j] /= out
        for i in range(n):
            into = reals[rates + i * cells + n]
            reals[rates + i * cells + n] = into / out
            for j in range(n):
                reals[rates + i * cells + j] += into * reals[rates + n * cells + j]
    return 0


def spread(words: Words, reals: Reals, cells: int, root: int) -> None:
    """Write the stationary law into the scratch room, given the eliminated rates."""
    scratch = words[SCRATCH] & INDEX
    rates = scratch + 2 * cells
    least = math.inf
    for i in range(cells):
        reals[scratch + i] = 0.0
        least = min(least, reals[scratch + cells + i])
    reals[scratch + root] = 1.0
    for n in range(root + 1, cells):
        inflow = 0.0
        for i in range(root, n):
            inflow += reals[scratch + i] * reals[rates + i * cells + n]
        reals[scratch + n] = inflow
        if inflow > HUGE:
            for i in range(root, n + 1):
                reals[scratch + i] /= inflow
    total = 0.0
    for i in range(cells):
        reals[scratch + i] *= exp(least - reals[scratch + cells + i])
        total += reals[scratch + i]
    for i in range(cells):
        reals[scratch + i] /= total


def make_draw(rates: Callable[..., bool]) -> Draw:
    """Return ``draw(words, reals, at, cells, table, u)`` for a law with the given rates."""

    def draw(
        words: Words, reals: Reals, at: int, cells: int, table: int, u: float
    ) -> tuple[int, int, float]:
        if not rates(words, reals, at, cells, table):
            spread(words, reals, cells, eliminate(words, reals, cells))
        scratch = words[SCRATCH] & INDEX
        cell, below = 0, reals[scratch]
        while u >= below and cell < cells - 1:
            cell += 1
            below += reals[scratch + cell]
        return cell, 0, reals[scratch + cell]

    return draw


def mean(
    words: Words, reals: Reals, cells: int, table: int, cell: int, side: int, weight: float
) -> float:
    """Return the mean of the law in the scratch room."""
    scratch, total = words[SCRATCH] & INDEX, 0.0
    for k in range(cells):
        total += reals[scratch + k] * reals[table + cells + VALUES + k]
    return total


def make_recall(draw: Draw) -> Recall:
    """Return ``recall(words, reals, at, cells, table, number)``: bring the law back, or say no.

    A ticket does not carry the K weights of its law.  If nothing happened in its
    block since (the usual case of an outcome that comes at once), the law is
    computed again; otherwise the outcome is learned as a realised one.
    """

    def recall(words: Words, reals: Reals, at: int, cells: int, table: int, number: int) -> bool:
        if words[at + FRESH] != number:
            return False
        draw(words, reals, at, cells, table, 0.0)
        return True

    return recall


def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Learn at every cell by its weight, or (negative ``weight``) at the drawn one alone."""
    where = at + FIRST + 4 * k
    words[where] += words[SCALE] * outcome - words[table + k]
    words[where + 1] += 1
    words[at + LEARNED] += 1
    words[at + FRESH] = -1
    if words[EXPECTED] == 0 or weight < 0.0:
        reals[where + 2] += 1.0
        reals[where + 3] += outcome
        return
    scratch = words[SCRATCH] & INDEX
    for j in range(words[CELLS]):
        reals[at + FIRST + 4 * j + 2] += reals[scratch + j]
        reals[at + FIRST + 4 * j + 3] += reals[scratch + j] * outcome


def amend(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, change: int
) -> None:
    """Replace an outcome at the drawn cell, whose weight is one on average.

    The law of an open ticket cannot be computed again from what this leaves behind.
    """
    words[at + FRESH] = -1
    words[at + FIRST + 4 * k] += words[SCALE] * change
    reals[at + FIRST + 4 * k + 3] += change


def make_rule(name: str, rates: Callable[..., bool]) -> Rule:
    """Return the rule that announces the law with the given rates."""
    draw, words = make_draw(rates), (OWN_HEAD, OWN_CELL, SETTINGS)
    return Rule(name, draw, update, amend, mean, make_recall(draw), *words, full_support=True)
