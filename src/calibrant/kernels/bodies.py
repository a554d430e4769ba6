"""Bodies of stored rows, written and read by machine code.

The format is that of :class:`calibrant.recalibrate.body.Body`, which does the same in NumPy and
says what is wrong where these functions only refuse::

    which words follow, a bit each | which of the whole ones are long, a bit each
    tops of reals, two bits each | tops that are none of the usual ones, a byte each
    short whole words (2 bytes each) | zeros up to a word | long whole words
    reals without their tops (7 bytes each) | zeros up to a word

The top of a real is its upper byte.  Bodies of the first form have no tops: their reals are whole.

A table has a line for each word that may be stored: its place in the row, its fresh value, its
limits in an order in which reals are whole numbers, what brings a word into that order, the
line of its twin, or -1, or -2 - k if the word follows by line k of the derived ones unless it is
told, and whether it is a tally.  The first of each eight lines also tells how many of these have a
twin.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from calibrant.kernels.compile import are_made, available, compiled, entry_point
from calibrant.kernels.layout import ISSUED, ONE, ROUNDS
from calibrant.kernels.transforms.platt import inverted

PLACE, FRESH, LOW, HIGH, TURN, TWIN, TWINS, TALLY = range(8)
"""Columns of a table."""
COLUMNS: Final = 8
ABOVE, BELOW, UNSEEN, REAL, LINE = range(1, 6)
"""Columns of derived words, after their place: which they follow from, the fresh value of the
lower one, whether these are reals, or from `INVERSE` on which word of an inverse it is, and the
line of that in the table.  Factors: by what the lower one is multiplied, and what is added."""
INVERSE: Final = 2
ROW, WHOLES, CELLS, BLOCKS, SCALE, MOST, WIDTH = range(7)
"""Sizes: where the row starts; lines of whole words, the first of which are the gaps, then the
visits of so many cells, then the clocks of so many blocks; the scale of gaps; the most visits; the
bytes of a real."""
SHORT: Final = 1 << 15
"""Short words lie below it, and not below its negation."""
FEW: Final = 1 << 8
"""A tally is short if fewer draws than this met either outcome, and ..."""
MANY: Final = (FEW // 2) * ONE
"""... fewer than half of it outcome 1, so that the tally is below this."""
NARROW: Final = 7
"""Bytes of a real without its top."""
WIDE: Final = 8
"""Bytes of a real in bodies of the first form."""
TOPS: Final = (0x3F, -0x41, 0x40)
"""The usual tops, with a sign: of numbers from 2**-15 up to 2, either way, and from 2 to 2**17."""
OTHER: Final = len(TOPS)
"""What stands for a top that is none of the usual ones."""


def marked(told: Any, at: int) -> int:
    """Return a bit."""
    bit: int = (told[at >> 3] >> (7 - (at & 7))) & 1
    return bit


def code_at(told: Any, start: int, at: int) -> int:
    """Return two bits."""
    code: int = (told[start + (at >> 2)] >> (6 - 2 * (at & 3))) & 3
    return code


def code_of(top: int) -> int:
    """Return what stands for a top."""
    return 0 if top == TOPS[0] else (1 if top == TOPS[1] else (2 if top == TOPS[2] else OTHER))


def top_of(code: int, other: int) -> int:
    """Return one of the usual tops, or another one that is given without its sign."""
    if code == OTHER:
        return int(other) - 256 if other >= 128 else int(other)
    return TOPS[0] if code == 0 else (TOPS[1] if code == 1 else TOPS[2])


def is_short(found: int, tally: int) -> bool:
    """Say whether a whole word is stored in two bytes."""
    if tally:
        return 0 <= found < MANY and (found & (ONE - 1)) < FEW
    return -SHORT <= found < SHORT


def measure(told: Any, lines: int, wholes: int, width: int) -> tuple[int, int, int, int]:
    """Return whole words and reals that follow, long ones, and tops with a byte of their own.

    The first is -1 if the length is wrong.
    """
    head, wrong = (lines + 7) >> 3, (-1, 0, 0, 0)
    if len(told) < head:
        return wrong
    count, left, lengthy, others = 0, 0, 0, 0
    for byte in range(head):
        if told[byte] != 0:
            for k in range(8 * byte, 8 * byte + 8):
                if marked(told, k):
                    if k >= lines:
                        return wrong
                    if k < wholes:
                        count += 1
                    else:
                        left += 1
    start = head + ((count + 7) >> 3)
    tops = start + (WIDE - width) * ((left + 3) >> 2)
    if len(told) < tops:
        return wrong
    for k in range(8 * head, 8 * start):
        if marked(told, k):
            lengthy += 1
            if k >= 8 * head + count:
                return wrong
    for k in range(4 * (tops - start)):
        code = code_at(told, start, k)
        if code == OTHER:
            others += 1
        if code != 0 and k >= left:
            return wrong
    end = tops + others + 2 * (count - lengthy)
    first = 8 * ((end + 7) >> 3)
    last = first + 8 * lengthy + width * left
    if len(told) != (last + 7) >> 3 << 3:
        return wrong
    for k in range(end, first):
        if told[k] != 0:
            return wrong
    for k in range(last, len(told)):
        if told[k] != 0:
            return wrong
    return count, left, lengthy, others


def fits(found: int, table: Any, k: int) -> bool:
    """Say whether a word is fresh, or within its limits."""
    ordered = found ^ ((found >> 63) & table[k, TURN])
    inside: bool = table[k, LOW] <= ordered <= table[k, HIGH]
    return inside or found == table[k, FRESH]


def unpack(
    told: Any,
    words: Any,
    table: Any,
    values: Any,
    ratios: Any,
    factors: Any,
    flat: Any,
    reals: Any,
    sizes: Any,
) -> bool:
    """Write a body, as bytes and as words, into a fresh row; say whether all is well."""
    row, wholes, width, lines = sizes[ROW], sizes[WHOLES], sizes[WIDTH], len(table)
    count, left, lengthy, others = measure(told, lines, wholes, width)
    if count < 0:
        return False
    head = (lines + 7) >> 3
    tops = head + ((count + 7) >> 3)
    other = tops + (WIDE - width) * ((left + 3) >> 2)
    rest = len(told) - ((width * left + 7) >> 3 << 3)
    long = (rest >> 3) - lengthy
    short, mark, number = other + others, 8 * head, 0
    for byte in range(head):
        if told[byte] == 0 and table[8 * byte, TWINS] == 0:
            continue
        for k in range(8 * byte, min(8 * byte + 8, lines)):
            place, twin = row + table[k, PLACE], table[k, TWIN]
            if marked(told, k):
                if k >= wholes:
                    if width == WIDE:
                        flat[place] = words[(rest >> 3) + number]
                    else:
                        code, at = code_at(told, tops, number), rest + NARROW * number
                        flat[place] = top_of(code, told[other]) << 56 | lower(told, at)
                        other += code == OTHER
                    number += 1
                elif marked(told, mark):
                    flat[place] = words[long]
                    long += 1
                    mark += 1
                else:
                    small = int(told[short]) | (int(told[short + 1]) << 8)
                    small -= 2 * SHORT if small >= SHORT else 0
                    if table[k, TALLY] and width == NARROW:
                        small = (small >> 8) * ONE + (small & (FEW - 1))
                    flat[place] = small
                    short += 2
                    mark += 1
            elif twin >= 0:
                flat[place] = flat[row + table[twin, PLACE]]
            if not fits(flat[place], table, k):
                return False
    if not derive(told, table, ratios, factors, flat, reals, sizes):
        return False
    return sound(table, values, flat, sizes)


def derive(
    told: Any, table: Any, ratios: Any, factors: Any, flat: Any, reals: Any, sizes: Any
) -> bool:
    """Write the words that follow from others into a row; say whether they are within limits."""
    row, narrow = sizes[ROW], sizes[WIDTH] == NARROW
    for k in range(len(ratios)):
        place, above, below = row + ratios[k, 0], row + ratios[k, ABOVE], row + ratios[k, BELOW]
        real, line = ratios[k, REAL], ratios[k, LINE]
        if flat[below] == ratios[k, UNSEEN]:
            continue
        if real < INVERSE:
            upper, under = flat[above] * 1.0, flat[below] * 1.0
            if real == 1:
                upper, under = reals[above], reals[below]
            reals[place] = upper / (under * factors[k, 0] + factors[k, 1])
        elif narrow and not marked(told, line):
            reals[place] = inverted(reals, above, real - INVERSE)
            if not fits(flat[place], table, line):
                return False
    return True


def lower(told: Any, at: int) -> int:
    """Return the lower seven bytes of a word."""
    found: int = int(told[at]) | (int(told[at + 1]) << 8) | (int(told[at + 2]) << 16)
    found |= (int(told[at + 3]) << 24) | (int(told[at + 4]) << 32)
    return found | (int(told[at + 5]) << 40) | (int(told[at + 6]) << 48)


def sound(table: Any, values: Any, flat: Any, sizes: Any) -> bool:
    """Say whether gaps and visits, forecasts and outcomes of a row fit together."""
    row, cells, scale = sizes[ROW], sizes[CELLS], sizes[SCALE]
    for k in range(cells):
        gap, visits = flat[row + table[k, PLACE]], flat[row + table[cells + k, PLACE]]
        if visits > sizes[MOST]:
            return False
        ones = gap + values[k] * visits
        if ones < 0 or ones > scale * visits:
            return False
    made = 0
    for k in range(2 * cells, 2 * cells + sizes[BLOCKS]):
        made += flat[row + table[k, PLACE]]
    issued: int = flat[row + ISSUED]
    return made == issued and flat[row + ROUNDS] <= issued


def differs(flat: Any, reals: Any, table: Any, ratios: Any, row: int, k: int) -> bool:
    """Say whether the word of a line is another than the one it is unless it is told."""
    place, twin = row + table[k, PLACE], table[k, TWIN]
    if twin < -1:
        ratio = -2 - twin
        if flat[row + ratios[ratio, BELOW]] != ratios[ratio, UNSEEN]:
            found = reals[place]
            base = inverted(reals, row + ratios[ratio, ABOVE], ratios[ratio, REAL] - INVERSE)
            # Zeros of both signs are equal, and not the same.
            return not (found == base and math.copysign(1.0, found) == math.copysign(1.0, base))
    base_word: int = table[k, FRESH] if twin < 0 else flat[row + table[twin, PLACE]]
    found_word: int = flat[place]
    return found_word != base_word


def pack(flat: Any, reals: Any, table: Any, ratios: Any, told: Any, words: Any, sizes: Any) -> int:
    """Write the body of a row into room for it, zeros before; return its number of words."""
    row, wholes, lines = sizes[ROW], sizes[WHOLES], len(table)
    head, count, lengthy, left, others = (lines + 7) >> 3, 0, 0, 0, 0
    for k in range(lines):
        if differs(flat, reals, table, ratios, row, k):
            told[k >> 3] |= 1 << (7 - (k & 7))
            found = flat[row + table[k, PLACE]]
            if k >= wholes:
                code = code_of(found >> 56)
                others += code == OTHER
                told[head + ((count + 7) >> 3) + (left >> 2)] |= code << (6 - 2 * (left & 3))
                left += 1
            else:
                if not is_short(found, table[k, TALLY]):
                    told[head + (count >> 3)] |= 1 << (7 - (count & 7))
                    lengthy += 1
                count += 1
    other = head + ((count + 7) >> 3) + ((left + 3) >> 2)
    short = other + others
    long = (short + 2 * (count - lengthy) + 7) >> 3
    rest = 8 * (long + lengthy)
    for byte in range(head):
        if told[byte] == 0:
            continue
        for k in range(8 * byte, 8 * byte + 8):
            if marked(told, k):
                found = flat[row + table[k, PLACE]]
                if k >= wholes:
                    if code_of(found >> 56) == OTHER:
                        told[other] = (found >> 56) & 255
                        other += 1
                    for place in range(NARROW):
                        told[rest + place] = (found >> (8 * place)) & 255
                    rest += NARROW
                elif is_short(found, table[k, TALLY]):
                    if table[k, TALLY]:
                        found = found // ONE << 8 | (found & (FEW - 1))
                    told[short] = found & 255
                    told[short + 1] = (found >> 8) & 255
                    short += 2
                else:
                    words[long] = found
                    long += 1
    return (rest + 7) >> 3


def pack_rows(
    told: Any, words: Any, sizes: Any, places: Any, room: Any, ends: Any, *shares: Any
) -> None:
    """Write the bodies of many rows one after the other, and where each one ends.

    ``room`` says how many words stay free before each body, and after it; ``shares`` are the rows
    as whole words and as reals, table and ratios.
    """
    end = 0
    for k in range(len(places)):
        sizes[ROW] = places[k]
        end += room[k, 0]
        body = told[8 * end :], words[end:]
        end += pack(*shares, *body, sizes) + room[k, 1]  # type: ignore[call-arg]
        ends[k] = end


def unpack_rows(
    told: Any, words: Any, sizes: Any, places: Any, starts: Any, ends: Any, *shares: Any
) -> int:
    """Write many bodies into fresh rows; return the number of the first that is wrong, or -1.

    ``shares`` are table, values, ratios, factors, and the rows as whole words and as reals.
    """
    for k in range(len(places)):
        sizes[ROW], start, end = places[k], starts[k], ends[k]
        body = told[8 * start : 8 * end], words[start:end]
        if not unpack(*body, *shares, sizes):  # type: ignore[call-arg]
            return k
    return -1


@functools.cache
def machine_of_rows() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """Return these two functions compiled, or None where there is no compiler."""
    if not available():
        return None
    return compiled(unpack_rows, "bodies", nogil=True), compiled(pack_rows, "bodies", nogil=True)


class Tools(NamedTuple):
    """The two functions, compiled."""

    unpack: Callable[..., bool]
    pack: Callable[..., int]


made: Final[list[Tools]] = []
"""The compiled functions, once somebody asked for them."""


def _singly() -> tuple[Any, Any]:
    return compiled(unpack, "body"), compiled(pack, "body")


def is_made() -> bool:
    """Say whether the functions have their machine code, in this process or on disk."""
    return are_made(*_singly())


@functools.cache
def machine() -> Tools | None:
    """Return the compiled functions, or None where there is no compiler."""
    if not available():
        return None
    tools = Tools(*_singly())
    flat = np.zeros(8, np.int64)
    table, sizes = np.zeros((1, COLUMNS), np.int64), np.zeros(WIDTH + 1, np.int64)
    table[0, TWIN], sizes[WIDTH] = -1, NARROW
    words, reals = np.zeros(4, np.int64), flat.view(np.float64)
    told, factors = words.view(np.uint8), np.zeros((0, 2))
    ratios = np.zeros((0, LINE + 1), np.int64)
    part = words[: tools.pack(flat, reals, table, ratios, told, words, sizes)]
    tools.unpack(part.view(np.uint8), part, table, part, ratios, factors, flat, reals, sizes)
    ready = Tools(entry_point(tools.unpack), entry_point(tools.pack))
    made.append(ready)
    return ready
