"""Average gaps with an anchor: the forecast of the round pulls at every cell.

The lean of a cell is its average gap plus ``c (q - g)``, where q is the anchor (what came in)
and g the cell's value, so that a rule without gaps announces the anchor itself.  How strong
the pull is depends on what hedging was good for: c falls exponentially once the mean
forecasts have beaten their anchors, and comes back when they lose.

Late outcomes come in crowds that tell little more than one.  So what a mean forecast lost counts
by 1/L if L forecasts were made in between; and average gaps count by n / (n + 2 W) after n
outcomes that were late by W forecasts on average: about W draws of the block wait at a time.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import (
    BUCKETS,
    CELLS,
    HEAD,
    INDEX,
    LAG,
    LEARNED,
    MIDDLE,
    PARAMETERS,
    PULL,
    REGRET,
    SCALE,
    TRUST,
    VALUES,
    WAITED,
    Reals,
    Words,
)
from calibrant.kernels.portable import exp_plain
from calibrant.kernels.two_point import mean

STRENGTH: Final = PARAMETERS
"""(real) The strongest pull, c."""
IMPATIENCE: Final = PARAMETERS + 1
"""(real) 1 / R0: how fast it falls with the regret."""

CELL_WORDS: Final = 3
GAP: Final = 2
"""(real) Average gap of the cell."""


def start(words: Words, reals: Reals, at: int) -> int:
    """Search from the grid point nearest to the anchor, as if the grid were even."""
    top = (words[CELLS] & INDEX) - 1
    return int(reals[MIDDLE] * top + 0.5)


def lean(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
    """Average gap of cell ``k``, and the pull."""
    pull = reals[at + PULL] * (reals[MIDDLE] - reals[table + words[CELLS] + VALUES + k])
    leaning: float = reals[at + HEAD + CELL_WORDS * k + GAP] * reals[at + TRUST] + pull
    return leaning


def weigh(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Compare the leans of ``k`` and ``k + 1``."""
    here = lean(words, reals, at, table, k)
    above = lean(words, reals, at, table, k + 1)
    return here, -above


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
    """Count the outcome at the drawn cell, and what the mean forecast lost to the anchor."""
    where = at + HEAD + CELL_WORDS * cell
    words[where] += words[SCALE] * outcome - words[table + cell]
    words[where + 1] += 1
    average(words, reals, where)
    learned(words, reals, at, table, cell, side, weight, outcome)


def learned(
    words: Words,
    reals: Reals,
    at: int,
    table: int,
    cell: int,
    side: int,
    weight: float,
    outcome: int,
) -> None:
    """Count what the mean forecast lost to the anchor, and how late that was known."""
    words[at + LEARNED] += 1
    middle = mean(words, reals, words[CELLS] & INDEX, table, cell, side, weight) - outcome
    anchor, lag = reals[MIDDLE] - outcome, reals[LAG]
    lost = middle * middle - anchor * anchor
    if lag > 1.0:
        lost /= lag
        reals[at + WAITED] += (lag - 1.0) / words[BUCKETS]
    if reals[at + WAITED] > 0.0:
        square = words[at + LEARNED] * 1.0 * words[at + LEARNED]
        reals[at + TRUST] = square / (square + 2.0 * reals[at + WAITED])
    adjust(reals, at, lost, reals[STRENGTH], reals[IMPATIENCE])


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
    middle = mean(words, reals, words[CELLS] & INDEX, table, cell, side, weight)
    lost = 2.0 * change * (reals[MIDDLE] - middle)
    adjust(reals, at, lost, reals[STRENGTH], reals[IMPATIENCE])


def average(words: Words, reals: Reals, where: int) -> None:
    """Divide the gap of a cell by its draws."""
    reals[where + GAP] = words[where] * 1.0 / (words[where + 1] * 1.0 * words[SCALE])


def adjust(reals: Reals, at: int, lost: float, strength: float, impatience: float) -> None:
    """Add to the regret, and let the pull follow."""
    regret = reals[at + REGRET] + lost
    reals[at + REGRET] = regret
    reals[at + PULL] = strength * exp_plain(min(regret * impatience, 0.0))
