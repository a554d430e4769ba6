"""A heap of bodies: one growing array of words, in which old ones are garbage until it is swept."""

from __future__ import annotations

from typing import Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.core.region import region
from calibrant.kernels.compile import available, compiled
from calibrant.kernels.tables import copy_parts

MANY: Final = 256
"""More parts than these are copied by machine code if there is a compiler."""
LARGE: Final = 1 << 20
"""Heaps of this many words do not move any more when they grow."""
LEAST: Final = 1 << 16
"""Heaps of fewer words are never swept."""
MAPPED: Final = 1 << 56
"""Places from here on are those of a file that is mapped into memory."""


def _room(count: int) -> Words:
    """Return room for that many words, and some more: a large one takes memory as it is written."""
    return region(count) if count >= LARGE else np.empty(64 + count + count // 4, np.int64)


def copied_parts(source: Words, starts: Words, sizes: Words, target: Words, places: Words) -> None:
    """Copy many parts of an array to places in another one."""
    if len(starts) > MANY and available():
        compiled(copy_parts, "parts", nogil=True)(source, starts, sizes, target, places)
        return
    for start, size, place in zip(starts.tolist(), sizes.tolist(), places.tolist(), strict=True):
        target[place : place + size] = source[start : start + size]


class Heap:
    """Bodies that are written once, one behind the other, and a record for each row.

    A record tells where the body of a row starts, its size, and some words of the row.  Nothing is
    ever written where something stands: a record that is kept finds its body, until the heap is
    swept.
    """

    __slots__ = ("_words", "limit", "mapped", "records", "used")

    START, SIZE = 0, 1

    def __init__(self, records: Words, used: int = 0) -> None:
        self.records, self.mapped = records, np.empty(0, np.int64)
        self._words, self.used = _room(used), used
        self.limit = max(LEAST, 3 * self.used // 2)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held; those of a mapped file are not."""
        large = len(self._words) >= LARGE
        return (8 * self.used if large else self._words.nbytes) + self.records.nbytes

    def make_room(self, count: int) -> None:
        """Have records of that many rows."""
        records = np.zeros((max(count, len(self.records)), self.records.shape[1]), np.int64)
        records[: len(self.records)] = self.records
        self.records = records

    def add(self, words: Words) -> int:
        """Write words behind the others; return where they start."""
        start, end = self.used, self.used + len(words)
        if end > len(self._words):
            grown = _room(end)
            grown[:start] = self._words[:start]
            self._words = grown
        self._words[start:end] = words
        # Counted last: what is interrupted before is written over.
        self.used = end
        return start

    def parts(self, numbers: Words) -> list[tuple[Words, Words, Words]]:
        """Return the arrays in which bodies lie, which of the rows, and where they start there."""
        starts = self.records[numbers, self.START]
        far = starts >= MAPPED
        if not far.any():
            return [(self._words, np.arange(len(starts)), starts)]
        near, away = np.flatnonzero(~far), np.flatnonzero(far)
        return [(self._words, near, starts[near]), (self.mapped, away, starts[away] - MAPPED)]

    def copy(self, numbers: Words, target: Words, places: Words) -> None:
        """Copy bodies to places of another array."""
        sizes = self.records[numbers, self.SIZE]
        for words, some, starts in self.parts(numbers):
            copied_parts(words, starts, sizes[some], target, places[some])

    def swept(self, numbers: Words) -> Heap:
        """Return a heap with the bodies of some rows alone; those of a mapped file stay there."""
        starts, sizes = self.records[numbers, self.START], self.records[numbers, self.SIZE]
        near = np.flatnonzero(starts < MAPPED)
        ends, kept = np.cumsum(sizes[near]), numbers[near]
        made = Heap(self.records.copy(), int(sizes[near].sum()))
        copied_parts(self._words, starts[near], sizes[near], made._words, ends - sizes[near])
        made.records[kept, self.START] = ends - sizes[near]
        made.mapped = self.mapped
        return made
