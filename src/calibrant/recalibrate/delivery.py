"""In which order forecasts and late outcomes happen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.errors import InvalidInput, InvalidType, RepeatedTicket

__all__ = ["Pending", "Schedule", "schedule"]


@dataclass(frozen=True)
class Pending:
    """Outcomes that are on record but not known yet: ticket number, when, what.

    An outcome whose time is infinite or not a number never arrives.
    """

    number: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    available: NDArray[np.float64] = field(default_factory=lambda: np.empty(0, np.float64))
    outcome: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))

    def __len__(self) -> int:
        return len(self.number)

    def since(self, oldest: int) -> Pending:
        """Return what is pending of tickets from that number on; the others expired."""
        kept = self.number >= oldest
        return Pending(self.number[kept], self.available[kept], self.outcome[kept])


class RowNumbers(np.ndarray[tuple[int], np.dtype[np.float64]]):
    """Times of forecasts of which nothing was said: the numbers of their rows.

    They tell later from earlier and nothing else, so dates cannot be compared with them.
    """


@dataclass(frozen=True)
class Schedule:
    """The events of a batch in order, and the rows whose outcomes stay out.

    ``events`` holds row ``i`` for its forecast and ``-1 - i`` for its outcome; rows
    below ``carried`` are tickets of earlier batches and have outcomes only.  ``lags`` says of
    each row how many forecasts were made from its own on until its outcome is learned, and
    ``lag`` is the largest number of forecasts between the two.
    """

    events: NDArray[np.int64]
    waiting: NDArray[np.int64]
    expired: NDArray[np.int64]
    lags: NDArray[np.float64]
    lag: int

    @property
    def crowd(self) -> int:
        """How many more outcomes than before were missing when a forecast was made, at most.

        There must be a forecast; the number is negative if outcomes of earlier batches come
        first.
        """
        made = self.events >= 0
        missing = np.cumsum(np.where(made, 1, -1))
        return int(missing[made].max()) - 1


def schedule(
    carried: int,
    numbers: NDArray[np.int64],
    available: NDArray[np.float64],
    time: NDArray[np.float64],
    max_open: int,
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
    lags = (made - numbers).astype(np.float64)
    lag = int(lags[told].max()) - 1 if len(told) else 0
    return Schedule(events, np.flatnonzero(~known & ~late), np.flatnonzero(late), lags, lag)


def checked(carry: Any) -> Pending:
    """Return what is carried over, if it is what a batch could have left."""
    if not isinstance(carry, Pending):
        raise InvalidType(f"carry must be a Pending, got {carry!r}")
    number, rows = _numbers(carry.number), np.size(carry.available)
    available = moments(carry.available, "carry.available", rows)
    outcome = check.outcomes(carry.outcome, "carry.outcome")
    check.same_length(number=number, available=available, outcome=outcome)
    numbers, seen = np.unique(number, return_counts=True)
    if (seen > 1).any():
        twice = int(numbers[np.argmax(seen > 1)])
        raise RepeatedTicket(f"ticket {twice} must be carried once, got it twice")
    return Pending(number, available, outcome)


def _numbers(values: Any) -> NDArray[np.int64]:
    array = check.numbers(values, "carry.number", "ticket numbers")
    if array.size and array.dtype.kind not in "iu":
        rule = "carry.number must be a flat array of ticket numbers"
        raise InvalidType(f"{rule}, got dtype {array.dtype}")
    return array.astype(np.int64)


def moments(values: Any, name: str, rows: int) -> NDArray[np.float64]:
    """Return ``values`` as one time for each row."""
    check.refuse_masked(values, name)
    try:
        array = np.asarray(values)
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


def times(time: Any, rows: int) -> NDArray[np.float64]:
    """Return when each forecast was made, in order; the row number where nothing is said."""
    if time is None:
        return np.arange(rows, dtype=np.float64).view(RowNumbers)
    array = moments(time, "time", rows)
    bad = ~np.isfinite(array)
    bad[1:] |= array[1:] < array[:-1]
    check.refuse_first(bad, array, "time", "finite and not before the row above it")
    return array


def arrivals(available: Any, time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return when each outcome became known, never before its own forecast."""
    array = moments(available, "available", len(time))
    if isinstance(time, RowNumbers) and np.asarray(available).dtype.kind == "M":
        raise InvalidInput("time must be given where available holds dates, got None")
    bad = array < time
    check.refuse_first(bad, array, "available", "not before the row's own time")
    return array
