"""An index of rows by key: open addressing with linear probing, and no tombstones.

The index, ``slots``, holds row numbers only, or `EMPTY`; the key of row r is
``keys[r * stride]``, a whole number from 0 to 2**63 - 1.  At least one slot is always empty,
which ends every search: who inserts makes room first.

A table of tickets (:class:`calibrant.core.desk.Desk`) has two: ``slots`` finds any row by its
second word, the number of its ticket, and ``names`` finds the rows whose first word is the key
of a name (`NAMED` or more).  :func:`seek`, :func:`put` and :func:`take` mind both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from calibrant.kernels.compile import available, compiled, entry_point
from calibrant.kernels.layout import Words

EMPTY: Final = -1
"""What a free slot holds."""
NAMED: Final = 1 << 62
"""The least key of a name; keys of numbers are below."""
LOW: Final = 0xFFFF_FFFF
GOLDEN: Final = 0x61C8_8647
"""2**32 over the square of the golden ratio, odd: its multiples fall evenly modulo 2**32
(Knuth, volume 3, section 6.4)."""
FIRST: Final = 0x45D9_F3B3
SECOND: Final = 0x2C1B_3C6D
"""Odd multipliers that scatter the upper half."""


def home(key: int, size: int) -> int:
    """Return the slot at which the search for a key starts, among fewer than 2**31.

    The lower half goes by Fibonacci hashing, so that numbers in a row fall evenly; the upper
    half, which is the row of a table, shifts them by what it is scattered to.  Every product
    stays below 2**63.

    >>> [home(number, 8) for number in range(8)]
    [0, 3, 6, 1, 4, 7, 2, 5]
    """
    high = ((key >> 32) * FIRST) & LOW
    high = ((high ^ (high >> 15)) * SECOND) & LOW
    return ((((key & LOW) * GOLDEN + high) & LOW) * size) >> 32


def find(slots: Words, keys: Words, stride: int, key: int) -> int:
    """Return the row of a key, or -1."""
    slot = _slot(slots, keys, stride, key)
    return int(slots[slot])


def insert(slots: Words, keys: Words, stride: int, key: int, row: int) -> None:
    """Enter the row of a key that is not there yet; the keys themselves are not looked at."""
    size = len(slots)
    slot = home(key, size)
    while slots[slot] != EMPTY:
        slot = slot + 1 if slot + 1 < size else 0
    slots[slot] = row


def rename(slots: Words, keys: Words, stride: int, key: int, row: int) -> None:
    """Say that a key which is there will stand in another row; it must still stand in its old."""
    slots[_slot(slots, keys, stride, key)] = row


def remove(slots: Words, keys: Words, stride: int, key: int) -> None:
    """Remove a key that is there, and move back whatever was pushed past its slot."""
    size = len(slots)
    gap = _slot(slots, keys, stride, key)
    slot = gap + 1 if gap + 1 < size else 0
    while slots[slot] != EMPTY:
        start = home(int(keys[int(slots[slot]) * stride]), size)
        if (slot - start) % size >= (slot - gap) % size:
            slots[gap] = slots[slot]
            gap = slot
        slot = slot + 1 if slot + 1 < size else 0
    slots[gap] = EMPTY


def rebuild(slots: Words, keys: Words, stride: int, count: int, least: int) -> None:
    """Enter rows whose key is ``least`` or more, of the first ``count``, into empty slots."""
    for row in range(count):
        key = int(keys[row * stride])
        if key >= least:
            insert(slots, keys, stride, key, row)


def seek(slots: Words, names: Words, flat: Words, stride: int, key: int) -> int:
    """Return the row of a name's key or of a number, or -1."""
    if key >= NAMED:
        return find(names, flat, stride, key)
    return find(slots, flat[1:], stride, key)


def put(slots: Words, names: Words, flat: Words, stride: int, row: int) -> None:
    """Enter a row, whose first two words are written, under its number and its name."""
    key = int(flat[row * stride])
    insert(slots, flat[1:], stride, int(flat[row * stride + 1]), row)
    if key >= NAMED:
        insert(names, flat, stride, key, row)


def take(slots: Words, names: Words, flat: Words, stride: int, key: int, last: int) -> int:
    """Remove the row of a name's key or of a number; return -1 if there is none.

    The row changes places with the last one: it is found there afterwards, outside the table.
    """
    row = seek(slots, names, flat, stride, key)
    if row < 0:
        return -1
    numbers = flat[1:]
    _leave(slots, numbers, names, flat, stride, row)
    if row != last:
        rename(slots, numbers, stride, int(numbers[last * stride]), row)
        if flat[last * stride] >= NAMED:
            rename(names, flat, stride, int(flat[last * stride]), row)
        for word in range(stride):
            gone = flat[row * stride + word]
            flat[row * stride + word] = flat[last * stride + word]
            flat[last * stride + word] = gone
    return row


def _leave(slots: Words, numbers: Words, names: Words, flat: Words, stride: int, row: int) -> None:
    """Remove a row from both indexes."""
    remove(slots, numbers, stride, int(numbers[row * stride]))
    if flat[row * stride] >= NAMED:
        remove(names, flat, stride, int(flat[row * stride]))


def _slot(slots: Words, keys: Words, stride: int, key: int) -> int:
    """Return the slot of a key, or the empty one at which the search for it ends."""
    size = len(slots)
    slot = home(key, size)
    row = int(slots[slot])
    while row != EMPTY and keys[row * stride] != key:
        slot = slot + 1 if slot + 1 < size else 0
        row = int(slots[slot])
    return slot


class Tools(NamedTuple):
    """The functions that a desk calls, plain or compiled."""

    seek: Callable[[Any, Any, Any, int, int], int]
    put: Callable[[Any, Any, Any, int, int], None]
    take: Callable[[Any, Any, Any, int, int, int], int]
    rebuild: Callable[[Any, Any, int, int, int], None]


PLAIN: Final = Tools(seek, put, take, rebuild)


def machine_at_hand() -> Tools | None:
    """Return the compiled functions if :func:`machine` was asked for them before, or None."""
    return machine() if machine.cache_info().currsize else None


@functools.cache
def machine() -> Tools | None:
    """Return the compiled functions, or None where there is no compiler."""
    if not available():
        return None
    tools = Tools(*(compiled(function, "desk") for function in PLAIN))
    lines, slots, names = np.zeros(4, np.int64), *np.full((2, 4), EMPTY, np.int32)
    tools.rebuild(slots, lines[1:], 2, 0, 0)
    tools.put(slots, names, lines, 2, 0)
    tools.take(slots, names, lines, 2, tools.seek(slots, names, lines, 2, 0), 0)
    single = (entry_point(function) for function in tools[:3])
    return tools._replace(**dict(zip(Tools._fields, single, strict=False)))
