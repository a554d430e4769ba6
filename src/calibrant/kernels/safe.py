"""A budget on how much more than the raw forecast's the losses may be.

Each outcome learned adds epsilon to the budget.  A draw is announced only if the worst that can
come of it, whichever of its two points the coin picks and whatever the outcome, fits into what is
left after all losses so far and after the worst of all forecasts that still wait; otherwise the
raw forecast is announced itself, and *stands aside* from the calibrator, which learns nothing of
that round.  So at no time, and in no order of outcomes, have the losses exceeded the raw
forecast's by more than epsilon on average.

What waits is reserved in whole units of 2**-40, rounded up, so that nothing is left over when
nothing waits.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import (
    ANSWER,
    ASIDE,
    CELL,
    EPSILON,
    EXCESS,
    LOSS,
    NOTED,
    RESERVED,
    SETTLED,
    SIDES,
    STOOD,
    VALUES,
    WIDTH,
    Reals,
    Words,
)
from calibrant.kernels.scores import charge

UNITS: Final = 1099511627776.0
"""Units of reserve in one, 2**40."""
MOST: Final = 8388608.0
"""What costs more than this is never announced."""


def worst(
    words: Words,
    reals: Reals,
    cells: int,
    table: int,
    raw: float,
    cell: int,
    side: int,
    weight: float,
) -> float:
    """Return the largest excess of a pair over the raw forecast, in units rounded up."""
    step = 1 << (side >> WIDTH)
    low = table + cells + VALUES + cell - (side & 1) * step
    found = max(excess(words, reals[low], raw, 0), excess(words, reals[low], raw, 1))
    if weight < 1.0:
        high = reals[low + step]
        found = max(found, excess(words, high, raw, 0), excess(words, high, raw, 1))
    return found


def excess(words: Words, value: float, raw: float, outcome: int) -> float:
    """Return by how much the loss of ``value`` exceeds that of the raw forecast."""
    lost: float = charge(words[LOSS], value, outcome)
    own: float = charge(words[LOSS], raw, outcome)
    return 0.0 if lost == own else lost - own


def units(found: float) -> int:
    """Return an excess in whole units, rounded up."""
    whole = int(found * UNITS)
    return whole + 1 if whole < found * UNITS else whole


def decide(
    words: Words,
    reals: Reals,
    cells: int,
    table: int,
    raw: float,
    cell: int,
    side: int,
    weight: float,
) -> int:
    """Return `ASIDE` if the draw cannot be afforded, else 0."""
    found = worst(words, reals, cells, table, raw, cell, side, weight)
    if found <= 0.0:
        return 0
    if found > MOST:
        return ASIDE
    spent = reals[EXCESS] + (words[RESERVED] + units(found)) / UNITS
    return 0 if spent <= reals[EPSILON] * words[SETTLED] else ASIDE


def foresee(words: Words, reals: Reals, at: int, cells: int, table: int, raw: float) -> int:
    """Return what :func:`decide` says of the draw that was noted."""
    answer, weight = words[at + ANSWER], reals[at + NOTED]
    return decide(words, reals, cells, table, raw, answer & CELL, answer >> 15, weight)


def ready(
    words: Words, reals: Reals, at: int, cells: int, table: int, raw: float, place: int
) -> bool:
    """Say whether a prediction can still be afforded; what stood aside always can."""
    return place & ASIDE != 0 or foresee(words, reals, at, cells, table, raw) == 0


def hold(
    words: Words,
    reals: Reals,
    cells: int,
    table: int,
    raw: float,
    place: int,
    weight: float,
    sign: int,
) -> None:
    """Reserve the worst of a draw that was announced, or give it back."""
    if place & ASIDE == 0:
        cell, side = place & CELL, (place >> 15) & SIDES
        found = worst(words, reals, cells, table, raw, cell, side, weight)
        words[RESERVED] += sign * units(max(found, 0.0))


def settle(
    words: Words, reals: Reals, cells: int, table: int, raw: float, place: int, outcome: int
) -> None:
    """Enter what the announced forecast lost beyond the raw one."""
    words[SETTLED] += 1
    if place & ASIDE == 0:
        value = reals[table + cells + VALUES + (place & CELL)]
        reals[EXCESS] += excess(words, value, raw, outcome)
    else:
        words[STOOD] += 1
