"""In which order forecasts and late outcomes happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.errors import InvalidInput, InvalidType, RepeatedTicket
from calibrant.kernels.batches import FORGET


@dataclass(frozen=True)
class Pending:
    """Outcomes that are on record but not known yet: ticket number, when, what.

    An outcome whose time is infinite or not a number never arrives.
    """

    number: Words = field(default_factory=lambda: np.empty(0, np.int64))
    available: Reals = field(default_factory=lambda: np.empty(0, np.float64))
    outcome: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.uint8))

    def __len__(self) -> int:
        return len(self.number)

    def since(self, oldest: int) -> Pending:
        """Return what is pending of tickets from that number on; the others expired."""
        return self.chosen(self.number >= oldest)

    def chosen(self, wanted: Mask) -> Pending:
        """Return some of what is pending."""
        return Pending(self.number[wanted], self.available[wanted], self.outcome[wanted])

    def joined(self, more: Pending) -> Pending:
        """Return this and more."""
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return Pending(*(np.concatenate(pair) for pair in pairs))


class RowNumbers(np.ndarray[tuple[int], np.dtype[np.float64]]):
    """Times of forecasts of which nothing was said: the numbers of their rows.

    They tell later from earlier and nothing else, so dates cannot be compared with them.
    """


@dataclass(frozen=True)
class Schedule:
    """The events of a batch in order, stream by stream, and the rows whose outcomes stay out.

    ``events`` holds row ``i`` for its forecast, ``-1 - i`` for its outcome and ``FORGET + i`` where
    the row expires without one; rows below ``carried`` are tickets of earlier batches and have
    outcomes only.
    """

    events: Words
    waiting: Words
    expired: Words

    @property
    def learned(self) -> int:
        """How many outcomes are learned."""
        return int((self.events < 0).sum())

    def with_expiry(self, numbers: Words, max_open: int, part: Words | None = None) -> Schedule:
        """Return the same with an event for each row that expires, when it does.

        Ticket m expires right after forecast m + ``max_open`` of its stream was made.  ``part``
        says to which stream each row belongs; without it all belong to one.
        """
        made = np.flatnonzero((self.events >= 0) & (self.events < FORGET))
        own, whose = self.events[made], np.zeros_like(numbers) if part is None else part
        streams = Streams.of(whose[own], int(whose.max(initial=0)) + 1)
        first = streams.firsts(numbers[own])
        gone = whose[self.expired]
        after = numbers[self.expired] + max_open - first[gone]
        inside = (after >= 0) & (after < streams.counts[gone])
        where = made[(streams.starts[gone] + after)[inside]] + 1
        events = np.insert(self.events, where, FORGET + self.expired[inside])
        return Schedule(events, self.waiting, self.expired)


@dataclass(frozen=True)
class Streams:
    """Where the rows of each stream begin in columns that have those of a stream together."""

    starts: Words
    counts: Words

    @classmethod
    def of(cls, part: Words, streams: int) -> Streams:
        """Return where the rows of that many streams begin, by the stream of each row."""
        counts = np.bincount(part, minlength=streams)
        return cls(np.cumsum(counts) - counts, counts)

    def firsts(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column's first value of each stream, and 0 where a stream has no rows."""
        return self._each(column, self.starts, 0)

    def lasts(self, column: NDArray[Any], otherwise: float) -> NDArray[Any]:
        """Return a column's last value of each stream."""
        return self._each(column, self.starts + self.counts - 1, otherwise)

    def _each(self, column: NDArray[Any], places: Words, otherwise: float) -> NDArray[Any]:
        found = np.full(len(places), otherwise, column.dtype)
        some = self.counts > 0
        found[some] = column[places[some]]
        return found


def schedule(
    carried: int,
    numbers: Words,
    available: Reals,
    time: Reals,
    max_open: int,
    part: Words | None = None,
) -> Schedule:
    """Put forecasts and outcomes in their true order.

    An outcome is learned before the first later forecast whose time is not before it
    became known; at the end, everything known by the last forecast's time is
    learned.  Outcomes that are known at the same moment go by time, then by row.

    ``part`` says to which stream each row belongs, of several that know nothing of each other;
    forecasts of a stream stand together.
    """
    rows = len(available)
    whose = np.zeros(rows, np.int64) if part is None else part
    streams = Streams.of(whose[carried:], int(whose.max(initial=0)) + 1)
    arrives = np.where(np.isnan(available), np.inf, available)
    slot = _slots(streams, whose, carried, arrives, np.asarray(time))
    known = arrives <= streams.lasts(time, -np.inf)[whose]
    # A ticket is dropped once `max_open` newer forecasts were made.
    first = streams.firsts(numbers[carried:])[whose]
    made = first + np.where(known, slot, streams.counts[whose])
    late = made - numbers > max_open
    told = np.flatnonzero(known & ~late)
    kind = np.concatenate([np.ones(rows - carried), np.zeros(len(told))])
    row = np.concatenate([np.arange(carried, rows), told])
    when = np.concatenate([_turns(streams, whose[carried:]), slot[told]])
    moment = np.concatenate([np.zeros(rows - carried), arrives[told]])
    keys = row, moment, kind, when
    order = np.lexsort(keys if part is None else (*keys, whose[row]))
    events = np.where(kind[order] == 1, row[order], -1 - row[order]).astype(np.int64)
    return Schedule(events, np.flatnonzero(~known & ~late), np.flatnonzero(late))


def _turns(streams: Streams, whose: Words) -> Words:
    """Return how many forecasts of its own stream come before each forecast."""
    return np.arange(len(whose)) - streams.starts[whose]


def _slots(streams: Streams, whose: Words, carried: int, arrives: Reals, time: Reals) -> Words:
    """Return before which forecast of its stream, counted from 0, each outcome is known."""
    if len(streams.starts) == 1:
        slot = np.searchsorted(time, arrives, side="left")
    else:
        # Streams one after the other, and the ranks of times within each.
        moments, rank = np.unique(time, return_inverse=True)
        step = len(moments) + 1
        found = np.searchsorted(moments, arrives, side="left")
        after = np.searchsorted(whose[carried:] * step + rank, whose * step + found, side="left")
        slot = after - streams.starts[whose]
    slot[carried:] = np.maximum(slot[carried:], _turns(streams, whose[carried:]) + 1)
    return slot


def checked(carry: Any, told: Callable[[Any], Any] | None = None) -> Pending:
    """Return what is carried over, if it is what a batch could have left.

    ``told`` returns a checked outcome; without it outcomes are 0 or 1.
    """
    if not isinstance(carry, Pending):
        raise InvalidType(f"carry must be a Pending, got {carry!r}")
    number, rows = _numbers(carry.number), np.size(carry.available)
    available = moments(carry.available, "carry.available", rows)
    if told is None:
        outcome: NDArray[Any] = check.outcomes(carry.outcome, "carry.outcome")
    else:
        outcome = np.array([told(each) for each in np.asarray(carry.outcome).tolist()])
    check.same_length(number=number, available=available, outcome=outcome)
    numbers, seen = np.unique(number, return_counts=True)
    if (seen > 1).any():
        twice = int(numbers[np.argmax(seen > 1)])
        raise RepeatedTicket(f"ticket {twice} must be carried once, got it twice")
    return Pending(number, available, outcome)


def _numbers(values: Any) -> Words:
    array = check.numbers(values, "carry.number", "ticket numbers")
    if array.size and array.dtype.kind not in "iu":
        rule = "carry.number must be a flat array of ticket numbers"
        raise InvalidType(f"{rule}, got dtype {array.dtype}")
    return array.astype(np.int64)


def moments(values: Any, name: str, rows: int) -> Reals:
    """Return ``values`` as one time for each row."""
    rule = f"{rows} times, numbers or np.datetime64"
    array = check.numbers(values, name, rule, dates=True)
    if len(array) != rows:
        raise InvalidInput(f"{name} must be a flat array of {rule}, got shape {array.shape}")
    return array.astype(np.float64)


def stamps_of(time: Any, rows: int) -> Reals:
    """Return when each event of a log happened; not a number where nothing is said."""
    return np.full(rows, np.nan) if time is None else moments(time, "time", rows)


def times(time: Any, rows: int) -> Reals:
    """Return when each forecast was made, in order; the row number where nothing is said."""
    if time is None:
        return np.arange(rows, dtype=np.float64).view(RowNumbers)
    array = moments(time, "time", rows)
    bad = ~np.isfinite(array)
    bad[1:] |= array[1:] < array[:-1]
    check.refuse_first(bad, array, "time", "finite and not before the row above it")
    return array


def arrivals(available: Any, time: Reals) -> Reals:
    """Return when each outcome became known, never before its own forecast."""
    array = moments(available, "available", len(time))
    if isinstance(time, RowNumbers) and np.asarray(available).dtype.kind == "M":
        raise InvalidInput("time must be given where available holds dates, got None")
    bad = array < time
    check.refuse_first(bad, array, "available", "not before the row's own time")
    return array
