"""The rounds and events of a table's batch, sorted by row, and their tickets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Mask, Words
from calibrant.core.desk import Found
from calibrant.core.together import in_slices, slices
from calibrant.errors import InvalidType, RepeatedTicket
from calibrant.kernels.compile import SHORT, available, compiled
from calibrant.kernels.tables import count_rows, lay_out_rows, place_rows
from calibrant.recalibrate.crowd import words_of
from calibrant.recalibrate.delivery import moments
from calibrant.recalibrate.keyed import KeyedPending, Keys, plain_keys
from calibrant.recalibrate.late import Columns


def _sorted(rows: Words, count: int, jobs: int) -> tuple[Words, Words]:
    """Return the positions of a column sorted by row, and how many each row has."""
    counts = np.zeros((len(slices(len(rows), jobs)), count), np.int64)
    order = np.empty(len(rows), np.int64)
    counting, placing = (compiled(made, "rows", nogil=True) for made in (count_rows, place_rows))
    in_slices(len(rows), jobs, lambda k, part: counting(rows[part], counts[k]))
    totals: Words = counts.sum(axis=0)
    compiled(lay_out_rows, "rows", nogil=True)(counts)
    in_slices(len(rows), jobs, lambda k, part: placing(rows[part], part.start, counts[k], order))
    return order, totals


@dataclass(frozen=True)
class Parts:
    """The rounds of a batch, those of each row together.

    Attributes
    ----------
    rows
        The rows that have rounds, in order.
    order
        The positions of the rounds, those of one row after those of another.
    bounds
        Where those of each row begin, and where the last ones end.
    """

    rows: Words
    order: Words
    bounds: Words

    @classmethod
    def of(cls, rows: Words, count: int, jobs: int = 1) -> Parts:
        """Sort a batch by its rows, of which there are ``count`` in all, in so many threads."""
        if available() and len(rows) > max(SHORT, count // 4):
            order, counts = _sorted(rows, count, jobs)
            some = np.flatnonzero(counts)
            counts = counts[some]
        else:
            order = np.argsort(rows, kind="stable")
            some, counts = np.unique(rows, return_counts=True)
        return cls(some, order, np.concatenate([[0], np.cumsum(counts)]))

    def told(self, row: int, number: int) -> str:
        """Say which round of the batch it is, counted within a row."""
        first = self.bounds[int(np.searchsorted(self.rows, row))]
        return f"forecast {self.order[first + number]} of the batch"

    @property
    def counts(self) -> Words:
        """How many rounds each row has."""
        return np.diff(self.bounds)

    def numbers(self, issued: Words) -> Words:
        """Return the numbers of the rounds in their rows, from ``issued`` on, as in ``order``."""
        numbers: Words = np.arange(len(self.order))
        return numbers + np.repeat(issued - self.bounds[:-1], self.counts)

    def chosen(self, some: Words) -> Parts:
        """Return the rounds of some of the rows, given by their places in order."""
        if len(some) == len(self.rows):
            return self
        counts = self.counts[some]
        bounds = np.concatenate([[0], np.cumsum(counts)])
        shift = np.repeat(self.bounds[some] - bounds[:-1], counts)
        return Parts(self.rows[some], self.order[shift + np.arange(len(shift))], bounds)


@dataclass(frozen=True)
class Due:
    """The tickets of a batch: those that were open before, then new ones, with their rows."""

    held: list[Found]
    row: Words
    number: Words
    columns: Columns
    outcomes: Bits
    names: Words
    """Under which key each new ticket is filed if it stays open."""
    turns: Words
    """In which order the new tickets are opened."""

    @property
    def words(self) -> Words:
        """Row and number of each ticket in a word."""
        return words_of(self.row, self.number)

    def told(self, ticket: int) -> str:
        """Say which ticket it is."""
        if ticket < len(self.held):
            return f"ticket {self.number[ticket]}, from before"
        return f"forecast {self.turns[ticket - len(self.held)]} of the batch"


def checked_carry(carry: Any) -> KeyedPending:
    """Return what is carried over, if it is what a batch could have left."""
    if carry is None:
        return KeyedPending()
    if not isinstance(carry, KeyedPending):
        raise InvalidType(f"carry must be what a table left pending, got {carry!r}")
    available = moments(carry.available, "carry.available", len(carry.key))
    outcome, number = check.outcomes(carry.outcome, "carry.outcome"), np.asarray(carry.number)
    key = plain_keys(carry.key)
    check.same_length(key=key, number=number, outcome=outcome)
    if len(number) and number.dtype.kind not in "iu":
        raise InvalidType(f"carry.number must be whole numbers, got dtype {number.dtype}")
    pairs = list(zip(key, number.tolist(), strict=True))
    if len(set(pairs)) < len(pairs):
        raise RepeatedTicket("tickets must be carried once, got one twice")
    return KeyedPending(key, number.astype(np.int64), available, outcome)


def event_keys(keys: Any, made: Mask) -> tuple[Keys, Mask]:
    """Return the keys of a log's events, and which events tell one."""
    if keys is None:
        return Keys([], np.empty(0, np.int64)), np.zeros(len(made), bool)
    if isinstance(keys, list) and None in keys:
        told = np.array([key is not None for key in keys])
        check.same_length(keys=told, kind=made)
        return Keys.of([key for key in keys if key is not None]), told
    named = Keys.of(keys)
    check.same_length(keys=named, kind=made)
    return named, np.ones(len(made), bool)
