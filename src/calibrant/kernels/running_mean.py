"""The histogram method: announce the grid point nearest to the mean outcome so far.

It is a two-point rule whose scores never point towards each other: the score of a cell points
to where the mean is, unless the cell is the nearest one (a tie goes up).
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import COUNT, HEAD, SCALE, STATE, Reals, Section, Words

OWN_HEAD: Final = Section(HEAD)
LEARNED: Final = OWN_HEAD.whole("LEARNED", STATE, "Outcomes learned in this block.", COUNT)
TOTAL: Final = OWN_HEAD.whole("TOTAL", STATE, "Scaled sum of the outcomes learned.")
FIRST: Final = len(OWN_HEAD)
"""Words of a block before its cells."""


def score(words: Words, reals: Reals, at: int, table: int, k: int) -> int:
    """Point from cell ``k`` towards the mean; zero at the nearest cell."""
    total, count = 2 * words[at + TOTAL], words[at + LEARNED]
    value = words[table + k]
    below = total < (words[table + k - 1] + value) * count
    above = count > 0 and total >= (value + words[table + k + 1]) * count
    return int(above) - int(below)


def weigh(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Return nothing to compare: no two scores ever point towards each other here."""
    return 0.0, 0.0


def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count the outcome, in the mean and at the announced cell."""
    where = at + FIRST + 2 * k
    words[where] += words[SCALE] * outcome - words[table + k]
    words[where + 1] += 1
    words[at + LEARNED] += 1
    words[at + TOTAL] += words[SCALE] * outcome


def amend(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, change: int
) -> None:
    """Replace an outcome: ``change`` is the new one less the old one."""
    words[at + FIRST + 2 * k] += words[SCALE] * change
    words[at + TOTAL] += words[SCALE] * change
