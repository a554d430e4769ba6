"""Average and cumulative gaps: three rules that differ in slack and in normalisation.

With ``s`` the scaled gap and ``n`` the count of a cell:

=================  =======================  ==========================
rule               score                    weight of the score
=================  =======================  ==========================
average gap        ``s``                    ``|s| / n``
slack, average     ``|s|`` beyond half a    ``(|s| - h n) / n``
                   cell, ``h n``
slack, cumulative  the same                 ``|s| - h n``
=================  =======================  ==========================

The half cell is the local one: up to the midpoint between the cell's value and
its neighbour's on the side to which the score points, so the rules hold on any grid.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import HEAD, INDEX, POSITION, SCALE, VALUES, Reals, Words
from calibrant.kernels.two_point import make_settle, mean

FIRST: Final = len(HEAD)
"""Words of a block before its cells."""
EXACT: Final = 1 << 53
"""Whole numbers below this one are doubles."""


def score(words: Words, reals: Reals, at: int, table: int, k: int) -> int:
    """Score of the average gap: the gap itself."""
    gap: int = words[at + FIRST + 2 * k]
    return gap


def weigh(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Compare the average gaps of ``k`` and ``k + 1``, both times the product of the counts."""
    cell = at + FIRST + 2 * k
    # Products are taken as doubles: they may exceed 63 bits.
    return words[cell] * 1.0 * words[cell + 3], words[cell + 2] * -1.0 * words[cell + 1]


_settle = make_settle(score, weigh)


def draw(
    words: Words, reals: Reals, at: int, cells: int, table: int, u: float
) -> tuple[int, int, float]:
    """Draw by the average gap: as :func:`draw_in_doubles` does, to the bit.

    The usual case in whole numbers, which plain Python multiplies sooner.  Below 2**53 a double
    is exact, so both divide the same two numbers.
    """
    low = words[at + POSITION]
    cell = at + FIRST + 2 * low
    gap = words[cell]
    if gap > 0 and low < cells - 1:
        above = -words[cell + 2] * words[cell + 1]
        both = gap * words[cell + 3] + above
    elif gap < 0 < low:
        low -= 1
        above = -gap * words[cell - 1]
        both = words[cell - 2] * words[cell + 1] + above
    else:
        return draw_in_doubles(words, reals, at, cells, table, u)
    if not 0 < above < both < EXACT:
        return draw_in_doubles(words, reals, at, cells, table, u)
    weight = above / both
    if u >= weight:
        return low + 1, 1, weight
    return low, 0, weight


def draw_in_doubles(
    words: Words, reals: Reals, at: int, cells: int, table: int, u: float
) -> tuple[int, int, float]:
    """Draw by the average gap: as :func:`.make_draw` does, with its calls written out.

    Compiled code calls this one.
    """
    low = words[at + POSITION] & INDEX
    gap = words[at + FIRST + 2 * low]
    if gap == 0 or cells < 2:
        return low, 0, 1.0
    low = min(max(low - int(gap < 0), 0), cells - 2) & INDEX
    cell = at + FIRST + 2 * low
    here, above = words[cell] * 1.0 * words[cell + 3], words[cell + 2] * -1.0 * words[cell + 1]
    if here > 0 and above > 0:
        weight = above / (here + above)
    else:
        low, weight = _settle(words, reals, at, cells, table)
    side = 1 if u >= weight else 0
    return low + side, side, weight


def play(
    words: Words, reals: Reals, at: int, cells: int, table: int, u: float, outcome: int
) -> tuple[float, float]:
    """Draw, and learn the outcome at once; return the draw and the mean of the pair.

    Both cells of a pair are written, one of them as it was: where a store goes is known before
    the coin, so that no later round waits, or guesses, whether it will read what is written.
    """
    values = table + cells + VALUES
    if cells > 1:
        low = words[at + POSITION] & INDEX
        low = min(max(low - int(words[at + FIRST + 2 * low] < 0), 0), cells - 2) & INDEX
        cell = at + FIRST + 2 * low
        gap_below, count_below = words[cell], words[cell + 1]
        gap_above, count_above = words[cell + 2], words[cell + 3]
        here, above = gap_below * 1.0 * count_above, gap_above * -1.0 * count_below
        if here > 0 and above > 0:
            weight = above / (here + above)
            side, hit = int(u >= weight), words[SCALE] * outcome
            below, over = hit - words[table + low], hit - words[table + low + 1]
            words[cell], words[cell + 1] = gap_below + below * (1 - side), count_below + 1 - side
            words[cell + 2], words[cell + 3] = gap_above + over * side, count_above + side
            words[at + POSITION] = low + side
            expected = reals[values + low] * weight + reals[values + low + 1] * (1.0 - weight)
            return reals[values + low + side], expected
    k, side, weight = draw_in_doubles(words, reals, at, cells, table, u)
    update(words, reals, at, table, k, side, weight, outcome)
    words[at + POSITION] = k
    return reals[values + k], mean(words, reals, cells, table, k, side, weight)


def score_with_slack(words: Words, reals: Reals, at: int, table: int, k: int) -> int:
    """Twice the gap beyond half a cell; zero within it."""
    gap = 2 * words[at + FIRST + 2 * k]
    count = words[at + FIRST + 2 * k + 1]
    beyond: int = gap - width(words, table, k) * count
    if beyond > 0:
        return beyond
    short: int = gap + width(words, table, k - 1) * count
    return short if short < 0 else 0


def weigh_cumulative(
    words: Words, reals: Reals, at: int, table: int, k: int
) -> tuple[float, float]:
    """Compare the total excesses of ``k`` and ``k + 1``."""
    cell = at + FIRST + 2 * k
    across = width(words, table, k)
    here = (2 * words[cell] - across * words[cell + 1]) * 1.0
    above = (-2 * words[cell + 2] - across * words[cell + 3]) * 1.0
    return here, above


def weigh_average(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Compare the average excesses of ``k`` and ``k + 1``, times the product of the counts."""
    cell = at + FIRST + 2 * k
    across = width(words, table, k)
    here = (2 * words[cell] - across * words[cell + 1]) * 1.0 * words[cell + 3]
    above = (-2 * words[cell + 2] - across * words[cell + 3]) * 1.0 * words[cell + 1]
    return here, above


def width(words: Words, table: int, k: int) -> int:
    """Scaled distance from grid point ``k`` to the next."""
    across: int = words[table + k + 1] - words[table + k]
    return across


def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count the outcome at the drawn cell: all that an integer rule remembers."""
    where = at + FIRST + 2 * k
    words[where] = words[where] + words[SCALE] * outcome - words[table + k]
    words[where + 1] += 1


def amend(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, change: int
) -> None:
    """Replace an outcome: ``change`` is the new one less the old one."""
    words[at + FIRST + 2 * k] += words[SCALE] * change
