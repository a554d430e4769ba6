"""A heap of bodies: one growing array of words, in which old ones are garbage until it is swept."""

from __future__ import annotations

from typing import Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.kernels.compile import available, compiled
from calibrant.kernels.tables import copy_parts

MANY: Final = 256
"""More parts than these are copied by machine code if there is a compiler."""
LEAST: Final = 1 << 16
"""Heaps of fewer words are never swept."""
MAPPED: Final = 1 << 56
"""Places from here on are those of a file that is mapped into memory."""


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

    def __init__(self, records: Words, words: Words | None = None) -> None:
        self.records, self.mapped = records, np.empty(0, np.int64)
        self._words = np.empty(64, np.int64) if words is None else words
        self.used = 0 if words is None else len(words)
        self.limit = max(LEAST, 2 * self.used)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held; those of a mapped file are not."""
        return self._words.nbytes + self.records.nbytes

    def make_room(self, count: int) -> None:
        """Have records of so many rows."""
        if count > len(self.records):
            records = np.zeros((count, self.records.shape[1]), np.int64)
            records[: len(self.records)] = self.records
            self.records = records

    def add(self, words: Words) -> int:
        """Write words behind the others; return where they start."""
        start, end = self.used, self.used + len(words)
        if end > len(self._words):
            grown = np.empty(end + end // 4, np.int64)
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
        words, records = np.empty(int(sizes[near].sum()), np.int64), self.records.copy()
        copied_parts(self._words, starts[near], sizes[near], words, ends - sizes[near])
        records[kept, self.START] = ends - sizes[near]
        made = Heap(records, words)
        made.mapped = self.mapped
        return made
