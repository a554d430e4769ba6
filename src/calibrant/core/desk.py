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
from array import array
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Words
from calibrant.core.filing import FACTOR, Dictionary, Slots
from calibrant.core.region import give_back, region
from calibrant.errors import InvalidInput
from calibrant.kernels.index import NAMED, PLAIN, Tools, machine_at_hand

SHIFT: Final = 40
NUMBER: Final = (1 << SHIFT) - 1
FEW: Final = 4
SMALL: Final = 64
"""Lines that are always there, and by which a desk grows once it holds as many."""
MOST_REBUILT: Final = 100_000
AT_ONCE: Final = 2_000_000
"""An index of more lines than the former has room for the latter: rebuilding it takes long."""
LARGE: Final = 1 << 19
"""Bytes of lines from which on they are not copied any more when there are more or fewer."""
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
    """Up to that many tickets the index is a dictionary; beyond it may be compiled."""

    flat: Flat
    count: int
    _index: Dictionary | Slots
    _noted: tuple[Flat, int, Dictionary | Slots] | tuple[()] | None
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
        """Return the functions of the compiled index if they are at hand: no call waits."""
        return machine_at_hand()

    def __len__(self) -> int:
        if self._noted is not None:
            self._carry_out()
        return self.count

    @property
    def is_roomy(self) -> bool:
        """Whether there is room for more than a few tickets."""
        return len(self.flat) > FEW * self.stride

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        lines = self.count * self._size if _is_wide(self.flat) else self.flat.nbytes
        return lines + self._index.nbytes + 8 * len(self._floors)

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

    def old(self, row: int, oldest: int) -> list[Found]:
        """Return the tickets of a row whose number is below ``oldest``, in order.

        Numbers below what :meth:`pass_by` was told for that row are not looked at again, so that
        the cost of many calls is that of one look-up a number.
        """
        floors = self._floors
        floor = floors[row] if row < len(floors) else 0
        if oldest <= floor:
            return []
        if oldest - floor <= SMALL + len(self) // NEAR:
            keys = list(range(row << SHIFT | floor, (row << SHIFT) + oldest))
        else:
            keys = self._numbers(row << SHIFT, (row << SHIFT) + oldest)
        return [found for key in keys if (found := self.get(key)) is not None]

    def pass_by(self, row: int, oldest: int) -> None:
        """Look at no number below ``oldest`` of a row again: none of them is filed any more."""
        floors = self._floors
        if row >= len(floors) and oldest > 0:
            floors.frombytes(bytes(8 * (row + 1 - len(floors))))
        if row < len(floors):
            floors[row] = max(oldest, floors[row])

    def expire(self, row: int, oldest: int) -> list[Found]:
        """Remove and return the tickets of a row whose number is below ``oldest``, in order."""
        gone = self.old(row, oldest)
        for found in gone:
            self.pop_number(row, found[2])
        self.pass_by(row, oldest)
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

    def lines(self, tickets: Iterable[Found]) -> Flat:
        """Return tickets as :meth:`words` gives them, in the order in which they are told."""
        made = bytearray()
        for key, row, number, *fields in tickets:
            room = bytearray(self._size)
            self._pack(room, 0, key, row << SHIFT | number, *fields)
            made += room
        return np.frombuffer(made, np.int64).reshape(-1, self.stride)

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

    def extend(self, words: Flat) -> None:
        """File many tickets like :meth:`load`: one by one where these are few among many."""
        if len(words) > 1 + len(self) // 8:
            self.load(words)
            return
        columns = [
            column.view(np.float64).tolist() if letter == "d" else column.tolist()
            for column, letter in zip(np.array(words.T), "qq" + self.fields, strict=True)
        ]
        for key, word, *fields in zip(*columns, strict=True):
            self.add(key, word >> SHIFT, word & NUMBER, *fields)

    def clear(self) -> None:
        """Remove every ticket."""
        flat = np.zeros(FEW * self.stride, np.int64)
        self._floors = array("q")
        self._settle(flat, 0, Dictionary(flat, self.stride, 0))

    def copy(self) -> Self:
        """Return a desk with the same tickets, of its own."""
        other = type(self)(self.fields)
        flat = self._lines(len(self), apart=True)
        other._settle(flat, self.count, other._indexed(flat, self.count))
        other._floors = self._floors[:]
        return other

    def reserve(self, count: int, named: int | None = None) -> None:
        """Make room for that many tickets more, with arrays that loops can work on.

        ``named`` says how many of them have names at most; without it, all may.
        """
        flat = self._lines(len(self) + count)
        more = count if named is None else named
        room = self._slots_for(flat, len(self) + count)
        made = Slots(self.tools() or PLAIN, flat, self.stride, self.count, room, more)
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

    def _arrays(self) -> Slots:
        if not isinstance(self._index, Slots):
            raise ValueError("index must be reserved for a loop, got a dictionary")
        return self._index

    @property
    def _fewest(self) -> int:
        """Down to how many tickets a compiled index stays: then a dictionary is soon made."""
        return min(self.many // 2, 1_000)

    def _is_many(self, count: int) -> bool:
        """Say whether that many tickets are worth the compiled index."""
        least = self._fewest if isinstance(self._index, Slots) else self.many
        return count > least and self.tools() is not None

    def _indexed(self, flat: Flat, count: int, soon: int = 0) -> Dictionary | Slots:
        """Return the index of that many lines that suits them, or as many as there are soon."""
        if self._is_many(max(count, soon)) and (tools := self.tools()) is not None:
            room = self._slots_for(flat, max(count, soon))
            return Slots(tools, flat, self.stride, count, room)
        return Dictionary(flat, self.stride, count, self._is_large(max(count, soon)))

    def _slots_for(self, flat: Flat, count: int) -> int:
        """Return for how many lines an index should have room that holds that many soon."""
        if not _is_wide(flat):
            return len(flat) // self.stride
        return max(int(FACTOR * count), AT_ONCE if count > MOST_REBUILT else FEW)

    def _is_large(self, count: int) -> bool:
        """Say whether that many lines are large in all."""
        return count * self._size > LARGE

    def _lines(self, count: int, apart: bool = False) -> Flat:
        """Return the lines in use in an array with room for ``count`` and some more.

        That is the array as it is once they lie in a region, unless they should stand apart.
        """
        if not apart and _is_wide(self.flat) and len(self.flat) >= count * self.stride:
            return self.flat
        if self._is_large(count):
            flat = region(count * self.stride)
            flat[: self.count * self.stride] = self.flat[: self.count * self.stride]
            return flat
        more = max(FEW, min(count, SMALL), count // 16)
        flat = np.zeros((count + more) * self.stride, np.int64)
        used = min(self.count, count) * self.stride
        flat[:used] = self.flat[:used]
        return flat

    def _fit(self, count: int) -> None:
        """Make the arrays as large as that many tickets need, and the index what suits them."""
        flat, now = self._lines(count), self._index
        stays = now.suits(self._is_many(count), self._is_large(count), count)
        made = now if stays else self._indexed(flat, self.count, count)
        self._settle(flat, self.count, made)
        if _is_wide(flat):
            give_back(flat, self.count * self.stride)

    def _settle(self, flat: Flat, count: int, made: Dictionary | Slots) -> None:
        self._noted = flat, count, made
        self._carry_out()

    def _carry_out(self) -> None:
        """Become what was noted: these lines, that many, with this index.

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
        few = isinstance(made, Dictionary) and count < self.many
        self._limit = min(room, self.many) if few else room
        self._least = 0 if room <= 16 * SMALL else 9 * room // 10
        step = LARGE // self._size
        if _is_wide(flat):
            self._least = max(count - step, 0)
        if isinstance(made, Dictionary) and not made.parted:
            self._limit = min(self._limit, max(step, count + 1))
        if isinstance(made, Slots):
            self._limit = min(self._limit, made.room)
            self._least = max(self._least, self._fewest)
        self._noted = None

    def _whole(self) -> int:
        """Return how many lines there are without one that was being moved and stands twice."""
        numbers = self.flat[1 : self.count * self.stride : self.stride]
        return self.count - bool((numbers[:-1] == numbers[-1:]).any())


def _is_wide(flat: Flat) -> bool:
    """Say whether lines lie in a region: other arrays are hardly larger than what they hold."""
    return flat.nbytes > 2 * LARGE


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
