"""The histogram method: announce the grid point nearest to the mean outcome so far.

It is a two-point rule whose cells never lean towards each other: a cell leans to
where the mean is, unless it is the nearest one (a tie goes up).
"""

from __future__ import annotations

from calibrant.kernels.layout import HEAD, LEARNED, SCALE, TOTAL, Reals, Words


def lean(words: Words, reals: Reals, at: int, table: int, k: int) -> int:
    """Point from cell ``k`` towards the mean; zero at the nearest cell."""
    total, count = 2 * words[at + TOTAL], words[at + LEARNED]
    value = words[table + k]
    below = total < (words[table + k - 1] + value) * count
    above = count > 0 and total >= (value + words[table + k + 1]) * count
    return int(above) - int(below)


def weigh(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Return nothing to compare; no two cells ever lean towards each other here."""
    return 0.0, 0.0


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
    """Count the outcome, in the mean and at the announced cell."""
    where = at + HEAD + 2 * cell
    words[where] += words[SCALE] * outcome - words[table + cell]
    words[where + 1] += 1
    words[at + LEARNED] += 1
    words[at + TOTAL] += words[SCALE] * outcome


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
    words[at + TOTAL] += words[SCALE] * change
