"""A budget on how much more than the raw forecast's the losses may be.

Each outcome learned adds epsilon to the budget.  A draw is announced only if the worst that can
come of it, whichever of its two points the coin picks and whatever the outcome, fits into what is
left after all losses so far and after the worst of all forecasts that still wait; otherwise the
raw forecast itself is announced, a *fallback*: the calibrator learns nothing of that round.  So
at no time, and in no order of outcomes, have the losses exceeded the raw forecast's by more than
epsilon on average.

What waits is reserved in whole units of 2**-40, rounded up, so that nothing is left over when
nothing waits.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import (
    ASIDE,
    CELL,
    CELLS,
    EPSILON,
    EXCESS,
    FALLBACKS,
    LOSS,
    RESERVED,
    SETTLED,
    SIDES,
    TABLE,
    VALUES,
    WIDTH,
    Reals,
    Words,
)
from calibrant.kernels.scores import charge

UNITS: Final = 1099511627776.0
"""Units of reserve in one, 2**40."""
MOST: Final = 8388608.0
"""What costs more than this is never announced, and what saves more counts as this."""


def worst(words: Words, reals: Reals, raw: float, place: int, weight: float) -> float:
    """Return the largest excess of a pair over the raw forecast, in units rounded up."""
    side = (place >> 15) & SIDES
    step = 1 << (side >> WIDTH)
    low = words[TABLE] + words[CELLS] + VALUES + (place & CELL) - (side & 1) * step
    found = max(excess(words, reals[low], raw, 0), excess(words, reals[low], raw, 1))
    if weight < 1.0:
        high = reals[low + step]
        found = max(found, excess(words, high, raw, 0), excess(words, high, raw, 1))
    return found


def excess(words: Words, value: float, raw: float, outcome: int) -> float:
    """Return by how much the loss of ``value`` exceeds that of the raw forecast."""
    lost: float = charge(words[LOSS], value, outcome)
    own: float = charge(words[LOSS], raw, outcome)
    return 0.0 if lost == own else max(lost - own, -MOST)


def units(found: float) -> int:
    """Return an excess in whole units, rounded up."""
    whole = int(found * UNITS)
    return whole + 1 if whole < found * UNITS else whole


def decide(words: Words, reals: Reals, row: int, raw: float, place: int, weight: float) -> int:
    """Return `ASIDE` if the draw at a place cannot be afforded, else 0."""
    found = worst(words, reals, raw, place, weight)
    if found <= 0.0:
        return 0
    if found > MOST:
        return ASIDE
    spent = reals[row + EXCESS] + (words[row + RESERVED] + units(found)) / UNITS
    return 0 if spent <= reals[EPSILON] * words[row + SETTLED] else ASIDE


def hold(
    words: Words, reals: Reals, row: int, raw: float, place: int, weight: float, sign: int
) -> None:
    """Reserve the worst of a draw that was announced, or give it back."""
    if place & ASIDE == 0:
        found = worst(words, reals, raw, place, weight)
        words[row + RESERVED] += sign * units(max(found, 0.0))


def settle(words: Words, reals: Reals, row: int, raw: float, place: int, outcome: int) -> None:
    """Enter what the announced forecast lost beyond the raw one."""
    words[row + SETTLED] += 1
    if place & ASIDE == 0:
        value = reals[words[TABLE] + words[CELLS] + VALUES + (place & CELL)]
        reals[row + EXCESS] += excess(words, value, raw, outcome)
    else:
        words[row + FALLBACKS] += 1
