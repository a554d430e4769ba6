"""Rows of a table as they are stored: bodies, tickets and corrections of all keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.core.desk import NUMBER, SHIFT
from calibrant.kernels.layout import ISSUED, ROUNDS
from calibrant.recalibrate.binary import possible
from calibrant.recalibrate.body import AT_ONCE, WrongBody
from calibrant.recalibrate.corrections import Corrections
from calibrant.recalibrate.crowd import Ages, words_of
from calibrant.recalibrate.heap import copied_parts
from calibrant.recalibrate.keyed import Key
from calibrant.recalibrate.keyed_rows import KeyedRows
from calibrant.recalibrate.tiers import OWN
from calibrant.recalibrate.version3 import OLD_BODIES

NAMED: Final = 1 << 62
"""Keys of tickets that have a name begin here."""


def _starts(rows: Words) -> Words:
    """Return where each of some rows starts in their array."""
    starts: Words = np.arange(len(rows)) * rows.shape[1]
    return starts


class KeyedState(KeyedRows):
    """How the rows of a table are written and read."""

    __slots__ = ()

    def _ticket_lines(self, numbers: Words) -> Words:
        """Return open tickets, with the place of their key among all keys instead of its row."""
        lines, rank = self._desk.words(), np.zeros(len(self._keys), np.int64)
        rank[numbers] = np.arange(len(numbers))
        lines[:, 1] = rank[lines[:, 1] >> SHIFT] << SHIFT | lines[:, 1] & NUMBER
        lines[:, 0] = np.where(lines[:, 0] >= NAMED, lines[:, 0], lines[:, 1])
        return lines[np.argsort(lines[:, 1])]

    def _age_words(self, numbers: Words) -> Words:
        """Return open tickets by age: the place of the key among all keys, and the number."""
        ages = Ages() if self._ages is None else self._ages
        words = np.array([*ages.waiting(self._desk)], np.int64)
        rank = np.zeros(len(self._keys), np.int64)
        rank[numbers] = np.arange(len(numbers))
        return words_of(rank[words >> SHIFT], words & NUMBER)

    def _restore_ages(self, words: Words) -> None:
        """Let open tickets be as old as they were, if these are all of them."""
        there = np.sort(self._desk.words()[:, 1])
        if self._ages is None or not np.array_equal(np.sort(words), there):
            raise ValueError("another order of tickets than that of those that are open")
        self._ages = Ages(words.tolist())

    def _corrected(self, numbers: Words) -> Words:
        """Return which tickets were corrected: place of the key, number, outcome."""
        made = [np.empty((0, 3), np.int64)]
        for rank, number in enumerate(numbers.tolist()):
            if number in self._corrections:
                lines = self._corrections[number].stored()["corrected"].reshape(-1, 2)
                made.append(np.insert(lines, 0, rank, axis=1))
        return np.concatenate(made).reshape(-1)

    def _restore_rows(self, keys: list[Key], sizes: Words, arrays: dict[str, Words]) -> None:
        ends, old, count = np.cumsum(sizes), OLD_BODIES in arrays, len(keys)
        bodies = np.ascontiguousarray(arrays[OLD_BODIES if old else "bodies"])
        whole = (sizes >= 0).all() and len(bodies) == (ends[-1] if count else 0)
        if not whole or len(sizes) != count or len(set(keys)) < count:
            raise ValueError(f"bodies that are not those of {count} keys")
        self._make_room(count)
        self._keys += keys
        told = bodies, ends - sizes, ends
        if old:
            told = self._rewritten(*told)
        self._take_bodies(np.arange(count), *told, self._looked_at(*told))
        self._numbers = dict(zip(keys, range(count), strict=True))
        self._touch(np.arange(count))
        lines = arrays["tickets"].reshape(-1, 2 + len(self._spec.fields))
        self._check_lines(lines)
        if len(lines):
            self._desk.load(lines)
        if self._ages is not None or "ages" in arrays:
            self._restore_ages(arrays["ages"])
        for rank, *line in arrays["corrected"].reshape(-1, 3).tolist():
            self._load_corrected(rank, line)

    def _take_bodies(
        self, numbers: Words, words: Words, starts: Words, ends: Words, own: Words
    ) -> None:
        """Let rows have bodies that stand in an array, and these words of their own."""
        sizes = ends - starts
        packed = np.empty(int(sizes.sum()), np.int64)
        copied_parts(words, starts, sizes, packed, np.cumsum(sizes) - sizes)
        self._tiers.take(numbers, packed, sizes, own)

    def _looked_at(self, words: Words, starts: Words, ends: Words) -> Words:
        """Return some words of each row whose bodies these are, if all of these are possible."""
        made = [rows[:, OWN] for rows in self._unpacked_rows(words, starts, ends)]
        return np.concatenate([np.empty((0, len(OWN)), np.int64), *made])

    def _rewritten(self, words: Words, starts: Words, ends: Words) -> tuple[Words, Words, Words]:
        """Return bodies of the first form as such of today, and where each starts and ends."""
        made, sizes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for rows in self._unpacked_rows(words, starts, ends, old=True):
            told = self._spec.body.packed_rows(rows.reshape(-1), _starts(rows))
            made.append(told[0])
            sizes.append(np.diff(told[1], prepend=0))
        size = np.concatenate(sizes)
        return np.concatenate(made), np.cumsum(size) - size, np.cumsum(size)

    def _unpacked_rows(
        self, words: Words, starts: Words, ends: Words, old: bool = False
    ) -> Iterator[Words]:
        """Return the rows whose bodies these are, some at a time."""
        for first in range(0, len(starts), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            rows = np.tile(self._spec.layout.fresh, (len(starts[some]), 1))
            told = starts[some], ends[some], rows.reshape(-1), _starts(rows)
            try:
                self._spec.body.unpack_rows(words, *told, old)
            except WrongBody as error:
                raise WrongBody(first + error.number, error.wrong) from None
            yield rows

    def _check_lines(self, lines: Words) -> None:
        """Refuse tickets that cannot have been issued."""
        row, number = lines[:, 1] >> SHIFT, lines[:, 1] & NUMBER
        if not ((row >= 0) & (row < len(self._keys))).all():
            raise ValueError("tickets of keys that are not there")
        shares = np.ascontiguousarray(lines).view(np.float64)[:, [3, 4, 7]]
        fits = possible(self._spec, lines[:, 2], shares, lines[:, 8:])
        fits &= number < self._own(ISSUED, row)
        rows = np.arange(len(self._keys))
        waits = np.bincount(row, minlength=len(rows))
        full = self._own(ROUNDS, rows) + waits > self._own(ISSUED, rows)
        if not fits.all() or full.any():
            raise ValueError("tickets that were never issued")

    def _load_corrected(self, rank: int, line: list[int]) -> None:
        if not 0 <= rank < len(self._keys):
            raise ValueError("corrections of keys that are not there")
        made = self._corrections.setdefault(rank, Corrections())
        known = made.stored().get("corrected", np.empty(0, np.int64))
        made.load(np.append(known, np.array(line, np.int64)), self._issued(rank))
