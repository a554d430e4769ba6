"""How the lines of a desk are found: in dictionaries, or in arrays that compiled code searches.

Either says by ``suits`` up to how many lines it is what it should be.  Nothing here takes longer
because many tickets are open: large dictionaries come in parts, each of which grows by itself.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Words
from calibrant.kernels.index import EMPTY, NAMED, Tools

PARTS: Final = 256
"""Into how many dictionaries the lines of a large desk are divided; a power of 2."""
TIDIED: Final = 2
FACTOR: Final = 2.5
"""So many times more lines than there are have room in the compiled index of a large desk."""
SPARSE: Final = 64
"""That index is made smaller once it has room for this many times as many lines as there are."""
SMALL: Final = 64

Flat = Words


class Parts:
    """Many dictionaries that serve as one: each is small, so that none takes long to grow."""

    __slots__ = ("_next", "_parts")

    def __init__(self, keys: Words, lines: Words) -> None:
        self._next = 0
        chosen = keys & (PARTS - 1)
        order = np.argsort(chosen, kind="stable")
        cuts = np.searchsorted(chosen[order], np.arange(1, PARTS))
        pairs = zip(np.split(keys[order], cuts), np.split(lines[order], cuts), strict=True)
        self._parts: list[dict[int, int | None]] = [
            dict(zip(k.tolist(), n.tolist(), strict=True)) for k, n in pairs
        ]

    def get(self, key: int, other: int | None = None) -> int | None:
        """Return the line of a key, or ``other``."""
        return self._parts[key & (PARTS - 1)].get(key, other)

    def __setitem__(self, key: int, line: int) -> None:
        self._parts[key & (PARTS - 1)][key] = line

    def __delitem__(self, key: int) -> None:
        del self._parts[key & (PARTS - 1)][key]

    def pop(self, key: int, other: int | None = None) -> int | None:
        """Remove a key; return its line, or ``other``."""
        return self._parts[key & (PARTS - 1)].pop(key, other)

    def tidy(self) -> None:
        """Let the next few dictionaries be as large as what they hold: none shrinks by itself."""
        for part in range(self._next, self._next + TIDIED):
            self._parts[part] = dict(self._parts[part])
        self._next = (self._next + TIDIED) % PARTS

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __sizeof__(self) -> int:
        return sum(map(sys.getsizeof, self._parts))


class Dictionary:
    """Lines by key in a dictionary; a named ticket is there twice.

    ``find(key)`` returns a line, or None or -1, here and in the other kind of index.
    """

    __slots__ = ("_bytes", "_lines", "_stride", "_words", "find")

    def __init__(self, flat: Flat, stride: int, count: int, parts: bool = False) -> None:
        self._stride = stride
        numbers, keys = (flat[k : count * stride : stride] for k in (1, 0))
        named = np.flatnonzero(keys >= NAMED)
        told = np.concatenate([numbers, keys[named]])
        lines = np.concatenate([np.arange(count), named])
        self._lines: dict[int, int] | Parts = (
            Parts(told, lines) if parts else dict(zip(told.tolist(), lines.tolist(), strict=True))
        )
        self.find: Callable[[int], int | None] = self._lines.get
        self.use(flat)

    @property
    def parted(self) -> bool:
        """Whether there are many dictionaries, so that there may be any number of lines."""
        return isinstance(self._lines, Parts)

    def suits(self, many: bool, large: bool, count: int) -> bool:
        """Say whether this is the index for that many lines, which are many or large in all."""
        return not many and (self.parted or not large)

    @property
    def nbytes(self) -> int:
        # A key is an integer of 32 bytes and a line one of 28 or, rounded up, 32.
        return sys.getsizeof(self._lines) + 64 * len(self._lines)

    def use(self, flat: Flat) -> None:
        """Read the same lines, moved to another array, from now on."""
        self._words = flat.data
        self._bytes = self._words.cast("B")
        if isinstance(self._lines, Parts):
            self._lines.tidy()

    def put(self, key: int, number: int, line: int) -> None:
        """Enter a line that is written."""
        self._lines[number] = self._lines[key] = line

    def take(self, key: int, last: int) -> int:
        """Remove the line of a key, which changes places with the last; return -1 without one."""
        lines, words, stride = self._lines, self._words, self._stride
        line: int = lines.get(key, -1)  # type: ignore[assignment]
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


class Slots:
    """Lines by number and by name in two arrays of slots, three quarters full at most."""

    def __init__(
        self, tools: Tools, flat: Flat, stride: int, count: int, room: int, more: int = 0
    ) -> None:
        self._tools, self._stride, self._flat = tools, stride, flat
        self.slots = _slots(room)
        tools.rebuild(self.slots, flat[1:], stride, count, 0)
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

    @property
    def room(self) -> int:
        """How many lines there may be."""
        return 3 * (len(self.slots) - 8) // 4

    def suits(self, many: bool, large: bool, count: int) -> bool:
        """Say whether this is the index for that many lines, which are many or large in all."""
        return many and large and count <= self.room <= SPARSE * count

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
        """Count the names among that many lines."""
        keys = self._flat[: count * self._stride : self._stride]
        self.named = int(np.count_nonzero(keys >= NAMED))

    def _widen(self, count: int, named: int) -> None:
        """Rebuild the index of names, with room for more of them."""
        # A 64th of the lines at least, so that going through all of them is worth it.
        names = _slots(named + max(SMALL, named // 16, count // 64))
        self._tools.rebuild(names, self._flat, self._stride, count, NAMED)
        self.names = names
        self.use(self._flat)


def _slots(count: int) -> NDArray[np.int32]:
    """Return empty slots for that many lines."""
    return np.full(4 * count // 3 + 8, EMPTY, np.int32)
