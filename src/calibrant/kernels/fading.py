"""Average gaps with an anchor that forget: a half-life in rounds or in time.

The average gap of a cell is one over its visits with weights that halve with every half-life.
It does not move while the cell is left alone, for all weights fade alike; so fading is done when
the cell is visited, and exactly.  A late outcome counts by what its forecast's age has left of
it.  The gap and the visits of the long run are counted besides, for the record.

Everything else is as in :mod:`calibrant.kernels.anchor`.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.anchor import (
    AVERAGE,
    FIRST,
    LEARNED,
    learned,
    make_score,
    make_weigh,
    relearned,
)
from calibrant.kernels.anchor import OWN_CELL as ANCHOR_CELL
from calibrant.kernels.anchor import SETTINGS as ANCHOR_SETTINGS
from calibrant.kernels.layout import (
    BUCKETS,
    CELLS,
    FIXED,
    INDEX,
    LAG,
    NOW,
    PARAMETERS,
    SCALE,
    STATE,
    VALUES,
    Reals,
    Section,
    Words,
)
from calibrant.kernels.portable import exp_plain
from calibrant.kernels.two_point import mean

SETTINGS: Final = Section(ANCHOR_SETTINGS)
HALF_LIFE: Final = PARAMETERS + SETTINGS.real(
    "HALF_LIFE", FIXED, "After how long a visit counts half."
)
TIMED: Final = PARAMETERS + SETTINGS.whole(
    "TIMED", FIXED, "One if the half-life is in the caller's time, 0 if in outcomes of the block."
)

OWN_CELL: Final = Section(ANCHOR_CELL)
KEPT: Final = OWN_CELL.real(
    "KEPT", STATE, "Sum of the fading weights as of the latest visit, which counts one."
)
LAST: Final = OWN_CELL.real("LAST", STATE, "When the latest visit was.")
CELL_WORDS: Final = len(OWN_CELL)

LN2: Final = 0.6931471805599453


score: Final = make_score(FIRST, CELL_WORDS)
weigh: Final = make_weigh(score)


def left(reals: Reals, age: float) -> float:
    """Return what an age leaves of a weight of one."""
    return exp_plain(-LN2 * (max(age, 0.0) / reals[HALF_LIFE]))


def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count the outcome at the drawn cell, for the long run and as far as it is remembered."""
    where = at + FIRST + CELL_WORDS * k
    words[where] += words[SCALE] * outcome - words[table + k]
    words[where + 1] += 1
    now = reals[NOW] if words[TIMED] == 1 else words[at + LEARNED] * 1.0
    visit(reals, where, now, outcome - reals[table + words[CELLS] + VALUES + k])
    expected = mean(words, reals, words[CELLS] & INDEX, table, k, side, weight)
    learned(words, reals, at, expected, outcome)


def visit(reals: Reals, where: int, now: float, gap: float) -> None:
    """Add one gap to the average, the newest in full, older ones by what is left of them."""
    share, last = 1.0, reals[where + LAST]
    if now >= last or reals[where + KEPT] == 0.0:
        kept = left(reals, now - last)
        reals[where + KEPT] *= kept
        reals[where + LAST] = now
    else:
        share = left(reals, last - now)
    reals[where + KEPT] += share
    reals[where + AVERAGE] += share * (gap - reals[where + AVERAGE]) / reals[where + KEPT]


def amend(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, change: int
) -> None:
    """Replace an outcome: ``change`` is the new one less the old one.

    The average moves by the share that the round still has in it.  In rounds its age is the
    number of forecasts since, spread evenly over the buckets: exact for one bucket in which
    every outcome came before the next forecast.  No average leaves what outcomes can give.
    """
    where = at + FIRST + CELL_WORDS * k
    words[where] += words[SCALE] * change
    then = words[at + LEARNED] - reals[LAG] / words[BUCKETS]
    if words[TIMED] == 1:
        then = reals[NOW]
    share = left(reals, reals[where + LAST] - then)
    value = reals[table + words[CELLS] + VALUES + k]
    moved = reals[where + AVERAGE] + share * change / reals[where + KEPT]
    reals[where + AVERAGE] = min(max(moved, -value), 1.0 - value)
    expected = mean(words, reals, words[CELLS] & INDEX, table, k, side, weight)
    relearned(words, reals, at, expected, change)
