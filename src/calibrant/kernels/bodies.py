"""Bodies of stored rows, written and read by machine code.

The format is that of :class:`calibrant.recalibrate.body.Body`, which does the same in NumPy and
says what is wrong where these functions only refuse::

    which words follow, a bit each | which of the whole ones are long, a bit each
    short whole words (2 bytes each) | zeros up to a word | long whole words | reals

A table has a line for each word that may be stored: its place in the row, its fresh value, its
limits in an order in which reals are whole numbers, what brings a word into that order, and the
line of its twin, or -1.  The first of each eight lines also tells how many of these have a twin.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from calibrant.kernels.compile import are_made, available, compiled, entry_point
from calibrant.kernels.layout import ISSUED, ROUNDS

PLACE, FRESH, LOW, HIGH, TURN, TWIN, TWINS = range(7)
"""Columns of a table."""
COLUMNS: Final = 7
ABOVE, BELOW, UNSEEN, REAL = range(1, 5)
"""Columns of derived words, after their place: which they follow from, the fresh value of the
lower one, and whether these are reals.  Factors: by what the lower one is multiplied, and what is
added."""
ROW, WHOLES, CELLS, BLOCKS, SCALE, MOST = range(6)
"""Sizes: where the row starts; lines of whole words, the first of which are the gaps, then the
visits of so many cells, then the clocks of so many blocks; the scale of gaps; the most visits."""
SHORT: Final = 1 << 15
"""Short words lie below it, and not below its negation."""


def marked(told: Any, at: int) -> int:
    """Return a bit."""
    bit: int = (told[at >> 3] >> (7 - (at & 7))) & 1
    return bit


def measure(told: Any, words: Any, lines: int, wholes: int) -> tuple[int, int]:
    """Return how many whole words follow and how many are long; -1 if the length is wrong."""
    head = (lines + 7) >> 3
    if len(told) < head:
        return -1, 0
    count, left, lengthy = 0, 0, 0
    for byte in range(head):
        if told[byte] != 0:
            for k in range(8 * byte, 8 * byte + 8):
                if marked(told, k):
                    if k >= lines:
                        return -1, 0
                    if k < wholes:
                        count += 1
                    else:
                        left += 1
    start = head + ((count + 7) >> 3)
    if len(told) < start:
        return -1, 0
    for k in range(8 * head, 8 * start):
        if marked(told, k):
            lengthy += 1
            if k >= 8 * head + count:
                return -1, 0
    end = start + 2 * (count - lengthy)
    first = (end + 7) >> 3
    if len(words) != first + lengthy + left:
        return -1, 0
    for k in range(end, 8 * first):
        if told[k] != 0:
            return -1, 0
    return count, lengthy


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
    row, wholes, lines = sizes[ROW], sizes[WHOLES], len(table)
    count, lengthy = measure(told, words, lines, wholes)
    if count < 0:
        return False
    head = (lines + 7) >> 3
    short = head + ((count + 7) >> 3)
    long = (short + 2 * (count - lengthy) + 7) >> 3
    rest, mark = long + lengthy, 8 * head
    for byte in range(head):
        if told[byte] == 0 and table[8 * byte, TWINS] == 0:
            continue
        for k in range(8 * byte, min(8 * byte + 8, lines)):
            place, twin = row + table[k, PLACE], table[k, TWIN]
            if marked(told, k):
                if k >= wholes:
                    flat[place] = words[rest]
                    rest += 1
                elif marked(told, mark):
                    flat[place] = words[long]
                    long += 1
                    mark += 1
                else:
                    small = int(told[short]) | (int(told[short + 1]) << 8)
                    flat[place] = small - 2 * SHORT if small >= SHORT else small
                    short += 2
                    mark += 1
            elif twin >= 0:
                flat[place] = flat[row + table[twin, PLACE]]
            found = flat[place]
            ordered = found ^ ((found >> 63) & table[k, TURN])
            if found != table[k, FRESH] and (ordered < table[k, LOW] or ordered > table[k, HIGH]):
                return False
    for k in range(len(ratios)):
        above, below = row + ratios[k, ABOVE], row + ratios[k, BELOW]
        if flat[below] != ratios[k, UNSEEN]:
            upper, lower = flat[above] * 1.0, flat[below] * 1.0
            if ratios[k, REAL] == 1:
                upper, lower = reals[above], reals[below]
            reals[row + ratios[k, 0]] = upper / (lower * factors[k, 0] + factors[k, 1])
    return sound(table, values, flat, sizes)


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


def pack(flat: Any, table: Any, told: Any, words: Any, sizes: Any) -> int:
    """Write the body of a row into room for it, zeros before; return its number of words."""
    row, wholes, lines = sizes[ROW], sizes[WHOLES], len(table)
    head, count, lengthy = (lines + 7) >> 3, 0, 0
    for k in range(lines):
        found, twin = flat[row + table[k, PLACE]], table[k, TWIN]
        base = table[k, FRESH] if twin < 0 else flat[row + table[twin, PLACE]]
        if found != base:
            told[k >> 3] |= 1 << (7 - (k & 7))
            if k < wholes:
                if not -SHORT <= found < SHORT:
                    told[head + (count >> 3)] |= 1 << (7 - (count & 7))
                    lengthy += 1
                count += 1
    short = head + ((count + 7) >> 3)
    long = (short + 2 * (count - lengthy) + 7) >> 3
    rest = long + lengthy
    for byte in range(head):
        if told[byte] == 0:
            continue
        for k in range(8 * byte, 8 * byte + 8):
            if marked(told, k):
                found = flat[row + table[k, PLACE]]
                if k >= wholes:
                    words[rest] = found
                    rest += 1
                elif -SHORT <= found < SHORT:
                    told[short] = found & 255
                    told[short + 1] = (found >> 8) & 255
                    short += 2
                else:
                    words[long] = found
                    long += 1
    return rest


def pack_rows(
    flat: Any, table: Any, told: Any, words: Any, sizes: Any, places: Any, room: Any, ends: Any
) -> None:
    """Write the bodies of many rows one after the other, and where each one ends.

    ``room`` says how many words stay free before each body, and after it.
    """
    end = 0
    for k in range(len(places)):
        sizes[ROW] = places[k]
        end += room[k, 0]
        end += pack(flat, table, told[8 * end :], words[end:], sizes) + room[k, 1]
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
    table, sizes = np.zeros((1, COLUMNS), np.int64), np.zeros(MOST + 1, np.int64)
    table[0, TWIN] = -1
    words = np.zeros(4, np.int64)
    told, ratios, factors = words.view(np.uint8), np.zeros((0, 5), np.int64), np.zeros((0, 2))
    size = tools.pack(flat, table, told, words, sizes)
    part, reals = words[:size], flat.view(np.float64)
    tools.unpack(part.view(np.uint8), part, table, part, ratios, factors, flat, reals, sizes)
    ready = Tools(entry_point(tools.unpack), entry_point(tools.pack))
    made.append(ready)
    return ready
