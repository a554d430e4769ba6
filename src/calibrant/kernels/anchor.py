"""Average gaps with an anchor: the forecast of the round pulls at every cell.

The score of a cell is its average gap plus ``c (q - g)``, where q is the anchor (what came in)
and g the cell's value, so that a rule without gaps announces the anchor itself.  How strong
the pull is depends on what hedging was good for: c falls exponentially once the mean
forecasts have beaten their anchors, and comes back when they lose.

Late outcomes come in crowds that tell little more than one.  With d others that wait at a time, as
far as is known, the pull falls 1 + d times as slowly with the regret, or as if the patience were
2 (d**2 n)**(1/3) after n outcomes if that is more; and average gaps count by n / (n + 8 d).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calibrant.kernels.layout import (
    BUCKETS,
    CELLS,
    COUNT,
    CROWD,
    FIXED,
    GAP_AND_COUNT,
    HEAD,
    INDEX,
    LAG,
    MIXED,
    PARAMETERS,
    SCALE,
    STATE,
    VALUES,
    Reals,
    Section,
    Words,
)
from calibrant.kernels.portable import exp, exp_plain, log
from calibrant.kernels.rule import Amend, Mean
from calibrant.kernels.two_point import mean

SETTINGS: Final = Section()
STRENGTH: Final = PARAMETERS + SETTINGS.real("STRENGTH", FIXED, "The strongest pull, c.")
IMPATIENCE: Final = PARAMETERS + SETTINGS.real(
    "IMPATIENCE", FIXED, "1 / R0: how fast the pull falls with the regret."
)

OWN_HEAD: Final = Section(HEAD)
LEARNED: Final = OWN_HEAD.whole("LEARNED", STATE, "Outcomes learned in this block.", COUNT)
REGRET: Final = OWN_HEAD.real(
    "REGRET", STATE, "How much more than the anchor's loss the mean forecast's was."
)
PULL: Final = OWN_HEAD.real("PULL", STATE, "How strongly the anchor pulls at present.")
WAITED: Final = OWN_HEAD.real(
    "WAITED", STATE, "For how many forecasts of this block outcomes were late, in sum."
)
TRUST: Final = OWN_HEAD.real(
    "TRUST", STATE, "How far average gaps are believed: less while most outcomes are yet to come."
)
CAUTION: Final = 8.0
"""After so many crowds of outcomes average gaps are believed by half."""

FIRST: Final = len(OWN_HEAD)
"""Words of a block before its cells."""

OWN_CELL: Final = Section(GAP_AND_COUNT)
AVERAGE: Final = OWN_CELL.real("AVERAGE", STATE, "Average gap of the cell.")
CELL_WORDS: Final = len(OWN_CELL)


def start(words: Words, reals: Reals, at: int) -> int:
    """Search from the grid point nearest to the anchor, as if the grid were even."""
    top = (words[CELLS] & INDEX) - 1
    return int(reals[MIXED] * top + 0.5)


def make_score(first: int, size: int) -> Callable[[Words, Reals, int, int, int], float]:
    """Return the score of cells of so many words behind a head of ``first``.

    The average gap of cell ``k``, and the pull.
    """

    def score(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
        pull = reals[at + PULL] * (reals[MIXED] - reals[table + words[CELLS] + VALUES + k])
        found: float = reals[at + first + size * k + AVERAGE] * reals[at + TRUST] + pull
        return found

    return score


def make_weigh(
    score: Callable[[Words, Reals, int, int, int], float],
) -> Callable[[Words, Reals, int, int, int], tuple[float, float]]:
    """Return the comparison of the scores of ``k`` and ``k + 1``."""

    def weigh(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
        here = score(words, reals, at, table, k)
        above = score(words, reals, at, table, k + 1)
        return here, -above

    return weigh


score: Final = make_score(FIRST, CELL_WORDS)
weigh: Final = make_weigh(score)


def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count the outcome at the drawn cell, and what the mean forecast lost to the anchor."""
    count(words, reals, at + FIRST + CELL_WORDS * k, words[SCALE] * outcome - words[table + k])
    expected = mean(words, reals, words[CELLS] & INDEX, table, k, side, weight)
    learned(words, reals, at, expected, outcome)


def count(words: Words, reals: Reals, where: int, gap: int) -> None:
    """Count one more visit of a cell, with its scaled gap."""
    words[where] += gap
    words[where + 1] += 1
    average(words, reals, where)


def learned(words: Words, reals: Reals, at: int, expected: float, outcome: int) -> None:
    """Count what the mean forecast lost to the anchor, and how late that was known."""
    words[at + LEARNED] += 1
    middle, anchor, others = expected - outcome, reals[MIXED] - outcome, reals[CROWD] - 1.0
    if others > 0.0:
        waiting = CAUTION * others / words[BUCKETS]
        reals[at + WAITED] += (reals[LAG] - 1.0) / words[BUCKETS]
        reals[at + TRUST] = words[at + LEARNED] / (words[at + LEARNED] + waiting)
    adjust(words, reals, at, middle * middle - anchor * anchor)


def make_amend(first: int, mean: Mean) -> Amend:
    """Return what replaces an outcome, in cells behind a head of ``first``, for a rule's mean."""

    def amend(
        words: Words,
        reals: Reals,
        at: int,
        table: int,
        k: int,
        side: int,
        weight: float,
        change: int,
    ) -> None:
        where = at + first + CELL_WORDS * k
        words[where] += words[SCALE] * change
        average(words, reals, where)
        expected = mean(words, reals, words[CELLS] & INDEX, table, k, side, weight)
        relearned(words, reals, at, expected, change)

    return amend


def relearned(words: Words, reals: Reals, at: int, expected: float, change: int) -> None:
    """Count what the mean forecast lost to the anchor after an outcome was replaced."""
    adjust(words, reals, at, 2.0 * change * (reals[MIXED] - expected))


amend: Final = make_amend(FIRST, mean)


def average(words: Words, reals: Reals, where: int) -> None:
    """Divide the gap of a cell by its draws."""
    reals[where + AVERAGE] = words[where] * 1.0 / (words[where + 1] * 1.0 * words[SCALE])


def adjust(words: Words, reals: Reals, at: int, lost: float) -> None:
    """Add to the regret, and let the pull follow."""
    regret, impatience = reals[at + REGRET] + lost, reals[IMPATIENCE]
    if reals[CROWD] > 1.0:
        impatience = slowed(impatience, reals[CROWD], words[at + LEARNED] * 1.0)
    reals[at + REGRET] = regret
    reals[at + PULL] = reals[STRENGTH] * exp_plain(min(regret * impatience, 0.0))


def slowed(impatience: float, crowd: float, count: float) -> float:
    """Return how fast the pull falls after ``count`` outcomes that come ``crowd`` at a time.

    Only so slowly does the regret of those that wait not matter in the end.
    """
    others = crowd - 1.0
    slow = 0.5 * exp(log(others * others * count) * (-1.0 / 3.0))
    return min(impatience / crowd, slow)
