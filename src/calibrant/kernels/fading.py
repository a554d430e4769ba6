"""Average gaps with an anchor that forget: a half-life in rounds or in time.

The average gap of a cell is one over its visits with weights that halve with every half-life.
It does not move while the cell is left alone, for all weights fade alike; so fading is done when
the cell is visited, and exactly.  A late outcome counts by what its forecast's age has left of
it.  The gap and the visits of the long run are counted besides, for the record.

Everything else is as in :mod:`calibrant.kernels.anchor`.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.anchor import IMPATIENCE, STRENGTH, adjust, learned
from calibrant.kernels.layout import (
    BUCKETS,
    CELLS,
    HEAD,
    INDEX,
    LAG,
    LEARNED,
    MIDDLE,
    NOW,
    PARAMETERS,
    PULL,
    SCALE,
    TRUST,
    VALUES,
    Reals,
    Words,
)
from calibrant.kernels.portable import exp_plain
from calibrant.kernels.two_point import mean

__all__ = ["amend", "lean", "update", "weigh"]

HALF_LIFE: Final = PARAMETERS + 2
"""(real) After how long a visit counts half."""
TIMED: Final = PARAMETERS + 3
"""One if that is in the caller's time, 0 if in outcomes learned in the block."""

CELL_WORDS: Final = 5
GAP: Final = 2
"""(real) Average gap of the cell, with fading weights."""
VISITS: Final = 3
"""(real) Sum of these weights as of the latest visit, which counts one."""
LAST: Final = 4
"""(real) When that was."""

LN2: Final = 0.6931471805599453


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


def left(reals: Reals, age: float) -> float:
    """Return what an age leaves of a weight of one."""
    return exp_plain(-LN2 * (max(age, 0.0) / reals[HALF_LIFE]))


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
    """Count the outcome at the drawn cell, for the long run and as far as it is remembered."""
    where = at + HEAD + CELL_WORDS * cell
    words[where] += words[SCALE] * outcome - words[table + cell]
    words[where + 1] += 1
    now = reals[NOW] if words[TIMED] == 1 else words[at + LEARNED] * 1.0
    visit(reals, where, now, outcome - reals[table + words[CELLS] + VALUES + cell])
    learned(words, reals, at, table, cell, side, weight, outcome)


def visit(reals: Reals, where: int, now: float, gap: float) -> None:
    """Add one gap to the average, the newest in full, older ones by what is left of them."""
    share, last = 1.0, reals[where + LAST]
    if now >= last or reals[where + VISITS] == 0.0:
        kept = left(reals, now - last)
        reals[where + VISITS] *= kept
        reals[where + LAST] = now
    else:
        share = left(reals, last - now)
    reals[where + VISITS] += share
    reals[where + GAP] += share * (gap - reals[where + GAP]) / reals[where + VISITS]


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
    """Replace an outcome: ``change`` is the new one less the old one.

    The average moves by the share that the round still has in it.  In rounds its age is the
    number of forecasts since, spread evenly over the buckets: exact for one bucket in which
    every outcome came before the next forecast.  No average leaves what outcomes can give.
    """
    where = at + HEAD + CELL_WORDS * cell
    words[where] += words[SCALE] * change
    then = words[at + LEARNED] - reals[LAG] / words[BUCKETS]
    if words[TIMED] == 1:
        then = reals[NOW]
    share = left(reals, reals[where + LAST] - then)
    value = reals[table + words[CELLS] + VALUES + cell]
    moved = reals[where + GAP] + share * change / reals[where + VISITS]
    reals[where + GAP] = min(max(moved, -value), 1.0 - value)
    middle = mean(words, reals, words[CELLS] & INDEX, table, cell, side, weight)
    lost = 2.0 * change * (reals[MIDDLE] - middle)
    adjust(reals, at, lost, reals[STRENGTH], reals[IMPATIENCE])
