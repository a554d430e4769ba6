"""Average gaps with an anchor: the forecast of the round pulls at every cell.

The lean of a cell is its average gap plus ``c (q - g)``, where q is the anchor (what came in)
and g the cell's value, so that a rule without gaps announces the anchor itself.  How strong
the pull is depends on what hedging was good for: c falls exponentially once the mean
forecasts have beaten their anchors, and comes back when they lose.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import (
    CELLS,
    HEAD,
    INDEX,
    MIDDLE,
    PARAMETERS,
    PULL,
    REGRET,
    SCALE,
    VALUES,
    Reals,
    Words,
)
from calibrant.kernels.portable import exp
from calibrant.kernels.two_point import mean

STRENGTH: Final = PARAMETERS
"""(real) The strongest pull, c."""
IMPATIENCE: Final = PARAMETERS + 1
"""(real) 1 / R0: how fast it falls with the regret."""


def start(words: Words, reals: Reals, at: int) -> int:
    """Search from the grid point nearest to the anchor, as if the grid were even."""
    top = (words[CELLS] & INDEX) - 1
    return int(reals[MIDDLE] * top + 0.5)


def lean(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
    """Average gap of cell ``k``, if it has one, and the pull."""
    cell = at + HEAD + 2 * k
    count = words[cell + 1]
    pull = reals[at + PULL] * (reals[MIDDLE] - reals[table + words[CELLS] + VALUES + k])
    leaning: float = pull
    if count > 0:
        leaning = words[cell] * 1.0 / (count * 1.0 * words[SCALE]) + pull
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
    where = at + HEAD + 2 * cell
    words[where] += words[SCALE] * outcome - words[table + cell]
    words[where + 1] += 1
    middle = mean(words, reals, words[CELLS] & INDEX, table, cell, side, weight) - outcome
    anchor = reals[MIDDLE] - outcome
    adjust(reals, at, middle * middle - anchor * anchor, reals[STRENGTH], reals[IMPATIENCE])


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
    words[at + HEAD + 2 * cell] += words[SCALE] * change
    middle = mean(words, reals, words[CELLS] & INDEX, table, cell, side, weight)
    lost = 2.0 * change * (reals[MIDDLE] - middle)
    adjust(reals, at, lost, reals[STRENGTH], reals[IMPATIENCE])


def adjust(reals: Reals, at: int, lost: float, strength: float, impatience: float) -> None:
    """Add to the regret, and let the pull follow."""
    regret = reals[at + REGRET] + lost
    reals[at + REGRET] = regret
    reals[at + PULL] = strength * exp(min(regret * impatience, 0.0))
