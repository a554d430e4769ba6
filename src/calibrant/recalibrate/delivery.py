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
    """The events of a batch in order, and the rows whose outcomes stay out.

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

    def with_expiry(self, numbers: Words, max_open: int) -> Schedule:
        """Return the same with an event for each row that expires, when it does.

        Ticket m expires right after forecast m + ``max_open`` was made.
        """
        made = np.flatnonzero((self.events >= 0) & (self.events < FORGET))
        last = numbers[self.events[made]] if len(made) else numbers[:0]
        after = np.searchsorted(last, numbers[self.expired] + max_open)
        inside = after < len(made)
        where = made[after[inside]] + 1 if len(made) else after[:0]
        events = np.insert(self.events, where, FORGET + self.expired[inside])
        return Schedule(events, self.waiting, self.expired)


def schedule(
    carried: int, numbers: Words, available: Reals, time: Reals, max_open: int
) -> Schedule:
    """Put forecasts and outcomes in their true order.

    An outcome is learned before the first later forecast whose time is not before it
    became known; at the end, everything known by the last forecast's time is
    learned.  Outcomes that are known at the same moment go by time, then by row.
    """
    rows = len(available)
    own = np.arange(rows) - carried
    arrives = np.where(np.isnan(available), np.inf, available)
    slot = np.searchsorted(time, arrives, side="left")
    slot = np.maximum(slot, np.maximum(own + 1, 0))
    end = time[-1] if len(time) else -np.inf
    known = arrives <= end
    # A ticket is dropped once `max_open` newer forecasts were made.
    first = numbers[carried] if rows > carried else 0
    made = first + np.where(known, slot, rows - carried)
    late = made - numbers > max_open
    told = np.flatnonzero(known & ~late)
    kind = np.concatenate([np.ones(rows - carried), np.zeros(len(told))])
    row = np.concatenate([np.arange(carried, rows), told])
    when = np.concatenate([np.arange(rows - carried), slot[told]])
    moment = np.concatenate([np.zeros(rows - carried), arrives[told]])
    order = np.lexsort((row, moment, kind, when))
    events = np.where(kind[order] == 1, row[order], -1 - row[order]).astype(np.int64)
    return Schedule(events, np.flatnonzero(~known & ~late), np.flatnonzero(late))


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
    check.refuse_masked(values, name)
    try:
        array = np.array(values)
    except ValueError:
        raise InvalidInput(
            f"{name} must be a flat array of {rows} times, got ragged rows"
        ) from None
    if array.dtype.kind == "M":
        array = np.where(np.isnat(array), np.nan, array.astype("M8[ns]").astype(np.int64) / 1e9)
    if array.dtype.kind not in "iufb" or array.shape != (rows,):
        raise InvalidInput(
            f"{name} must be a flat array of {rows} times, got shape {array.shape} "
            f"and dtype {array.dtype}"
        )
    return array.astype(np.float64)


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
