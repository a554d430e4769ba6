"""The desk: where open tickets wait for their outcomes, of one model or of a table of many.

A ticket is a *line* of words in one flat array: its key, its number (with the *row* of the
table it belongs to in the upper bits), and whatever fields its owner needs to learn the
outcome.  Lines are dense: the last one moves into one that becomes free.  An index finds a
line by number, and by name where the ticket has one: a dictionary while tickets are few or
there is no compiler, and beyond that :mod:`calibrant.kernels.index`.
"""

from __future__ import annotations

import functools
import hashlib
import struct
import sys
from array import array
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Words
from calibrant.errors import InvalidInput
from calibrant.kernels.index import NAMED, PLAIN, Tools, machine

SHIFT: Final = 40
NUMBER: Final = (1 << SHIFT) - 1
FEW: Final = 4
SMALL: Final = 64
"""Lines that are always there, and by which a desk grows once it holds as many."""
NEAR: Final = 64
"""Looking at every ticket costs a 64th of looking up as many numbers, or less."""

STALE: Final = ()
"""The note that the index, or the last line, may not be what it was."""

Flat: TypeAlias = Words
Found: TypeAlias = tuple[Any, ...]
"""A ticket: key, row, number and its fields."""


@functools.cache
def _line(fields: str) -> tuple[Callable[..., None], Callable[..., Found], int]:
    """Return what writes and reads a line with these fields, and its bytes."""
    line = struct.Struct("=qq" + fields)
    return line.pack_into, line.unpack_from, line.size


def number_key(row: int, number: int) -> int:
    """Return the key of ticket ``number`` < 2**40 in ``row`` < 2**22 of a table.

    >>> number_key(0, 17), number_key(1, 0) == 2**40
    (17, True)
    """
    return row << SHIFT | number


def name_key(name: str) -> int:
    """Return the key of a name: 62 bits of its hash, above every number's key.

    Two names share a key with probability 2**-62.

    >>> name_key("order-17") >= 2**62
    True
    """
    hashed = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return NAMED | (int.from_bytes(hashed, "little") >> 2)


class _Dictionary:
    """Lines by key in a dictionary; a named ticket is there twice.

    ``find(key)`` returns a line, or None or -1, here and in the other kind of index.
    """

    __slots__ = ("_bytes", "_lines", "_stride", "_words", "find")

    def __init__(self, flat: Flat, stride: int, count: int) -> None:
        self._stride = stride
        numbers, keys = (flat[k : count * stride : stride].tolist() for k in (1, 0))
        self._lines: dict[int, int] = dict(zip(numbers, range(count), strict=True))
        self._lines.update(zip(keys, range(count), strict=True))
        self.find: Callable[[int], int | None] = self._lines.get
        self.use(flat)

    @property
    def nbytes(self) -> int:
        # A key is an integer of 32 bytes and a line one of 28 or, rounded up, 32.
        return sys.getsizeof(self._lines) + 64 * len(self._lines)

    def use(self, flat: Flat) -> None:
        """Read the same lines, moved to another array, from now on."""
        self._words, self._bytes = flat.data, flat.data.cast("B")

    def put(self, key: int, number: int, line: int) -> None:
        """Enter a line that is written."""
        self._lines[number] = self._lines[key] = line

    def take(self, key: int, last: int) -> int:
        """Remove the line of a key, which changes places with the last; return -1 without one."""
        lines, words, stride = self._lines, self._words, self._stride
        line = lines.get(key, -1)
        if line >= 0:
            del lines[words[line * stride + 1]]
            lines.pop(words[line * stride], None)
            if line != last:
                lines[words[last * stride]] = lines[words[last * stride + 1]] = line
                self._swap(8 * stride * line, 8 * stride * last, 8 * stride)
        return line

    def _swap(self, one: int, other: int, size: int) -> None:
        room = self._bytes
        kept = bytes(room[one : one + size])
        # Interrupted between these two, the last line stands twice.
        room[one : one + size] = room[other : other + size]
        room[other : other + size] = kept


class _Slots:
    """Lines by number and by name in two arrays of slots, three quarters full at most."""

    def __init__(self, tools: Tools, flat: Flat, stride: int, count: int, more: int = 0) -> None:
        self._tools, self._stride, self._flat = tools, stride, flat
        self.slots = _slots(len(flat) // stride)
        tools.rebuild(self.slots, flat[1:], stride, count)
        self.count_names(count)
        self._widen(count, self.named + more)

    @property
    def nbytes(self) -> int:
        return self.slots.nbytes + self.names.nbytes

    def use(self, flat: Flat) -> None:
        """Read the same lines, moved to another array, from now on."""
        self._flat, self._words = flat, flat.data
        # No function of Python's in between: a quarter of the time of a look-up.
        books = self.slots, self.names, flat, self._stride
        self.find = functools.partial(self._tools.seek, *books)
        self._put = functools.partial(self._tools.put, *books)
        self._take = functools.partial(self._tools.take, *books)

    def put(self, key: int, number: int, line: int) -> None:
        """Enter a line that is written."""
        if key >= NAMED:
            if 4 * self.named >= 3 * (len(self.names) - 8):
                self._widen(line, self.named + 1)
            self.named += 1
        self._put(line)

    def take(self, key: int, last: int) -> int:
        """Remove the line of a key, which changes places with the last; return -1 without one."""
        line = self._take(key, last)
        if line >= 0 and self._words[last * self._stride] >= NAMED:
            self.named -= 1
        return line

    def count_names(self, count: int) -> None:
        """Count the names among so many lines."""
        keys = self._flat[: count * self._stride : self._stride]
        self.named = int(np.count_nonzero(keys >= NAMED))

    def _widen(self, count: int, named: int) -> None:
        """Make the index of names anew, with room for more of them."""
        # A 64th of the lines at least, so that going through all of them is worth it.
        names = _slots(named + max(SMALL, named // 16, count // 64))
        self._tools.rebuild_names(names, self._flat, self._stride, count)
        self.names = names
        self.use(self._flat)


class Desk:
    """Open tickets by key.

    Parameters
    ----------
    fields :
        One letter for each word that is kept of a ticket beside its key and its number: "q"
        for a whole number and "d" for a real.

    Notes
    -----
    A ticket takes eight bytes a word, a sixteenth more for room to grow (a ninth at most,
    after removals), and at most six bytes for each key in the compiled index.

    A desk is not safe between threads: its owner holds a gate.  It is safe against
    interrupts: a method that raises `KeyboardInterrupt`, at whichever instruction, has done
    all or nothing to each ticket.  Before lines and index are changed, one assignment notes
    what the desk is about to be, or that its index is stale; the next call that finds the note
    carries it out.  Lines that are not yet counted are written first, and counted last.

    **Loops over many events** may work on the arrays themselves, with the functions of
    :mod:`calibrant.kernels.index`: call :meth:`reserve`, then hand out ``flat`` (the lines),
    ``stride`` (words in a line), ``count`` (lines in use), ``slots`` and ``names`` (the two
    indexes), and tell :meth:`publish` the new count.  In between, no other method may be
    called, and the arrays stay where they are.

    Examples
    --------
    >>> desk = Desk("qd")
    >>> desk.add(number_key(0, 3), 0, 3, 7, 0.25)
    >>> desk.add(name_key("order"), 0, 4, 8, 0.5)
    >>> desk.pop(number_key(0, 3))
    (3, 0, 3, 7, 0.25)
    >>> desk.get(name_key("order")) == desk.get_number(0, 4)
    True
    >>> [ticket[1:] for ticket in desk.expire(0, oldest=5)], len(desk)
    ([(0, 4, 8, 0.5)], 0)
    """

    many: ClassVar[int] = 20_000
    """Up to so many tickets the index is a dictionary; from half of it on it may be compiled."""

    flat: Flat
    count: int
    _index: _Dictionary | _Slots
    _noted: tuple[Flat, int, _Dictionary | _Slots] | tuple[()] | None
    _room: memoryview
    _limit: int
    _least: int

    def __init__(self, fields: str) -> None:
        if not set(fields) <= {"q", "d"}:
            raise InvalidInput(f"fields must be letters 'q' and 'd', got {fields!r}")
        self.fields, self.stride = fields, 2 + len(fields)
        self._pack, self._unpack, self._size = _line(fields)
        self._floors = array("q")
        self.clear()

    @staticmethod
    def tools() -> Tools | None:
        """Return the functions of the compiled index, if there are any."""
        return machine()

    def __len__(self) -> int:
        if self._noted is not None:
            self._carry_out()
        return self.count

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self.flat.nbytes + self._index.nbytes + 8 * len(self._floors)

    def add(self, key: int, row: int, number: int, *fields: Any) -> None:
        """File a ticket under its number, and under its key if that is a name's.

        Neither may be filed yet; ``key`` is what :func:`number_key` or :func:`name_key` gave.
        """
        if self._noted is not None:
            self._carry_out()
        if self.count >= self._limit:
            self._fit(self.count + 1)
        count, word = self.count, row << SHIFT | number
        self._pack(self._room, count * self._size, key, word, *fields)
        if row < len(self._floors) and number < self._floors[row]:
            self._floors[row] = number
        self._noted = STALE
        self._index.put(key, word, count)
        self.count = count + 1
        self._noted = None

    def get(self, key: int) -> Found | None:
        """Return the ticket of that key, or None.

        The key of a number finds the ticket of that number, whether it has a name or not.
        """
        if self._noted is not None:
            self._carry_out()
        line = self._index.find(key)
        if line is None or line < 0:
            return None
        found = self._unpack(self._room, line * self._size)
        word = found[1]
        return (found[0], word >> SHIFT, word & NUMBER) + found[2:]  # noqa: RUF005

    def pop(self, key: int) -> Found | None:
        """Remove and return the ticket of that key, or return None."""
        if self._noted is not None:
            self._carry_out()
        last = self.count - 1
        self._noted = STALE
        if self._index.take(key, last) < 0:
            self._noted = None
            return None
        self.count = last
        self._noted = None
        found = self._unpack(self._room, last * self._size)
        if last < self._least:
            self._fit(last)
        word = found[1]
        return (found[0], word >> SHIFT, word & NUMBER) + found[2:]  # noqa: RUF005

    def get_number(self, row: int, number: int) -> Found | None:
        """Return the ticket of that number, named or not, or None."""
        return self.get(row << SHIFT | number)

    def pop_number(self, row: int, number: int) -> Found | None:
        """Remove and return the ticket of that number, named or not, or return None."""
        return self.pop(row << SHIFT | number)

    def expire(self, row: int, oldest: int) -> list[Found]:
        """Remove and return the tickets of a row whose number is below ``oldest``, in order.

        Numbers up to the last ``oldest`` of that row are not looked at again, so that the cost
        of many calls is that of one look-up a number.
        """
        floors = self._floors
        floor = floors[row] if row < len(floors) else 0
        if oldest <= floor:
            return []
        if oldest - floor <= SMALL + len(self) // NEAR:
            keys = list(range(row << SHIFT | floor, (row << SHIFT) + oldest))
        else:
            keys = self._numbers(row << SHIFT, (row << SHIFT) + oldest)
        gone = [found for key in keys if (found := self.pop(key)) is not None]
        if row >= len(floors):
            floors.frombytes(bytes(8 * (row + 1 - len(floors))))
        floors[row] = oldest
        return gone

    def drop_row(self, row: int) -> None:
        """Remove every ticket of a row, whose numbers may begin again."""
        for key in self._numbers(row << SHIFT, (row + 1) << SHIFT):
            self.pop(key)
        if row < len(self._floors):
            self._floors[row] = 0

    def words(self, row: int | None = None) -> Flat:
        """Return the tickets of a row, or all, a line each, in order of row and number.

        A line is key, number with row, and the fields, reals by their bits.
        """
        count = len(self)  # Which may put another array in place.
        lines = self.flat[: count * self.stride].reshape(-1, self.stride)
        if row is not None:
            lines = lines[lines[:, 1] >> SHIFT == row]
        numbers = lines[:, 1].copy()
        ordered = bool((numbers[1:] > numbers[:-1]).all())
        return lines.copy() if ordered else lines[np.argsort(numbers)]

    def load(self, words: Flat) -> None:
        """File many tickets, given as :meth:`words` gives them, in any order.

        Raises
        ------
        ValueError
            If a line is no ticket's, or if a key or a number is filed twice; then nothing
            changes.
        """
        lines = np.asarray(words, np.int64)
        if lines.ndim != 2 or lines.shape[1] != self.stride:
            raise ValueError(f"words must have {self.stride} columns, got shape {lines.shape}")
        old, count = len(self), len(self) + len(lines)
        flat = self._lines(count)
        flat[old * self.stride : count * self.stride] = lines.reshape(-1)
        _check(flat[: count * self.stride].reshape(-1, self.stride))
        made = self._indexed(flat, count)
        # None of the numbers was looked at: they may be below what expired.
        self._floors = array("q")
        self._settle(flat, count, made)

    def clear(self) -> None:
        """Remove every ticket."""
        flat = np.zeros(FEW * self.stride, np.int64)
        self._floors = array("q")
        self._settle(flat, 0, _Dictionary(flat, self.stride, 0))

    def copy(self) -> Self:
        """Return a desk with the same tickets, of its own."""
        other = type(self)(self.fields)
        flat = self._lines(len(self))
        other._settle(flat, self.count, other._indexed(flat, self.count))
        other._floors = self._floors[:]
        return other

    def reserve(self, count: int, named: int | None = None) -> None:
        """Make room for so many tickets more, with arrays that loops can work on.

        ``named`` says how many of them have names at most; without it, all may.
        """
        flat = self._lines(len(self) + count)
        more = count if named is None else named
        made = _Slots(self.tools() or PLAIN, flat, self.stride, self.count, more)
        self._settle(flat, self.count, made)

    @property
    def slots(self) -> NDArray[np.int32]:
        """The index of lines by their second word, after :meth:`reserve`."""
        return self._arrays().slots

    @property
    def names(self) -> NDArray[np.int32]:
        """The index of lines by their first word, where that is a name's, after :meth:`reserve`."""
        return self._arrays().names

    def publish(self, count: int, named: int | None = None) -> None:
        """Take over what a loop did to the arrays: there are ``count`` lines now.

        ``named`` says how many of them have names; without it they are counted.  A loop adds
        no number below what :meth:`expire` was told for its row.
        """
        made = self._arrays()
        if named is None:
            made.count_names(count)
        else:
            made.named = named
        self._settle(self.flat, count, made)
        if count < self._least or not self._is_many(count):
            self._fit(count)

    def _numbers(self, start: int, end: int) -> list[int]:
        """Return the second words from ``start`` up to ``end``, in order."""
        count = len(self)
        words = self.flat[1 : count * self.stride : self.stride]
        found = words[(words >= start) & (words < end)]
        numbers: list[int] = np.sort(found).tolist()
        return numbers

    def _arrays(self) -> _Slots:
        if not isinstance(self._index, _Slots):
            raise ValueError("index must be reserved for a loop, got a dictionary")
        return self._index

    def _is_many(self, count: int) -> bool:
        """Say whether so many tickets are worth the compiled index."""
        least = self.many // 2 if isinstance(self._index, _Slots) else self.many
        return count > least and self.tools() is not None

    def _indexed(self, flat: Flat, count: int, soon: int = 0) -> _Dictionary | _Slots:
        """Return the index of so many lines that suits them, or as many as there are soon."""
        if self._is_many(max(count, soon)) and (tools := self.tools()) is not None:
            return _Slots(tools, flat, self.stride, count)
        return _Dictionary(flat, self.stride, count)

    def _lines(self, count: int) -> Flat:
        """Return the lines in use in an array with room for ``count`` and some more."""
        more = max(FEW, min(count, SMALL), count // 16)
        flat = np.zeros((count + more) * self.stride, np.int64)
        used = min(self.count, count) * self.stride
        flat[:used] = self.flat[:used]
        return flat

    def _fit(self, count: int) -> None:
        """Make the arrays as large as so many tickets need, and the index what suits them."""
        flat, now = self._lines(count), self._index
        stays = isinstance(now, _Dictionary) and not self._is_many(count)
        made = now if stays else self._indexed(flat, self.count, count)
        self._settle(flat, self.count, made)

    def _settle(self, flat: Flat, count: int, made: _Dictionary | _Slots) -> None:
        self._noted = flat, count, made
        self._carry_out()

    def _carry_out(self) -> None:
        """Become what was noted: these lines, so many, with this index.

        Interrupted, the note stays, and all is done again: no step minds that.
        """
        if not self._noted:
            count = self._whole()
            self._noted = self.flat, count, self._indexed(self.flat, count)
        flat, count, made = self._noted
        made.use(flat)
        self.flat, self.count, self._index = flat, count, made
        self._room = flat.data.cast("B")
        room = len(flat) // self.stride
        few = isinstance(made, _Dictionary) and count < self.many
        self._limit = min(room, self.many) if few else room
        self._least = 0 if room <= 16 * SMALL else 9 * room // 10
        if isinstance(made, _Slots):
            self._least = max(self._least, self.many // 2)
        self._noted = None

    def _whole(self) -> int:
        """Return how many lines there are without one that was being moved and stands twice."""
        numbers = self.flat[1 : self.count * self.stride : self.stride]
        return self.count - bool((numbers[:-1] == numbers[-1:]).any())


def _slots(count: int) -> NDArray[np.int32]:
    """Return slots for so many lines; they are filled by who makes the index."""
    return np.empty(4 * count // 3 + 8, np.int32)


def _check(lines: Flat) -> None:
    """Raise unless every line is a ticket's and no two have a key or a number in common."""
    keys, numbers = lines[:, 0].copy(), lines[:, 1].copy()
    named = keys >= NAMED
    fits = (numbers >= 0) & (numbers < NAMED) & (named | (keys == numbers))
    if not fits.all():
        raise ValueError(f"words must be of tickets, got {lines[~fits][0].tolist()}")
    for filed in (numbers, keys[named]):
        if (filed[1:] <= filed[:-1]).any():
            filed = np.sort(filed)
        twice = filed[1:] == filed[:-1]
        if twice.any():
            raise ValueError(f"keys must differ, got {int(filed[1:][twice][0])} twice")
