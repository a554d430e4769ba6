"""Batches whose outcomes are known later, and logs of forecasts and outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.desk import name_key
from calibrant.errors import ExpiredTicket, InvalidInput, InvalidType, RepeatedTicket
from calibrant.recalibrate.counter import Counter, checked_id

FORECAST: Final = 0
OUTCOME: Final = 1
KINDS: Final = {"forecast": FORECAST, "outcome": OUTCOME}


@dataclass(frozen=True, eq=False)
class Played:
    """What came of a log, an event a row.

    Attributes
    ----------
    value, mean
        The drawn and the expected forecast of the event's ticket.  The mean of a law of many
        points is not kept: it is not a number for a ticket that was open before the log.
    weight, place
        Probability of the lower point of its pair, and bucket, side and cell in one word.
    clock
        How many forecasts the ticket's bucket had made before.
    number
        The ticket's number.
    """

    value: Reals
    mean: Reals
    weight: Reals
    place: Words
    clock: Words
    number: Words

    def __len__(self) -> int:
        return len(self.value)


class Columns:
    """What is known of each ticket of a batch: first those that were open before, then new ones.

    The columns are what compiled loops read and write; see :mod:`calibrant.kernels.batches`.
    """

    def __init__(self, held: list[tuple[Any, ...]], raw: Reals, time: Reals, kept: int) -> None:
        rows, first = len(held) + len(raw), len(held)
        self.raw, self.time = np.empty(rows), np.empty(rows)
        self.value, self.mean = np.empty(rows), np.empty(rows)
        self.weight, self.mixed = np.empty(rows), np.empty(rows)
        self.number, self.place, self.clock = (np.zeros(rows, np.int64) for _ in range(3))
        self.advice = np.zeros((rows, kept), np.int64)
        self.raw[first:], self.time[first:] = raw, time
        if held:
            number, place, weight, old, stamp, clock, mixed, *advice = zip(
                *(found[2:] for found in held), strict=True
            )
            self.number[:first], self.place[:first], self.clock[:first] = number, place, clock
            self.weight[:first], self.mixed[:first] = weight, mixed
            self.raw[:first], self.time[:first] = old, stamp
            if kept:
                self.advice[:first] = np.array(advice).T

    def for_events(self, outcomes: Any) -> tuple[NDArray[Any], ...]:
        """Return the columns in the order in which loops take them."""
        told = self.raw, np.asarray(outcomes, np.uint8), self.number, np.nan_to_num(self.time)
        made = self.value, self.mean, self.weight, self.place, self.mixed, self.clock
        return *told, *made, self.advice.reshape(-1)

    def lines(self, rows: Words, keys: Words) -> Words:
        """Return tickets as the desk keeps them, under these keys."""
        reals = [column[rows].view(np.int64) for column in (self.weight, self.raw, self.time)]
        columns = [keys, self.number[rows], self.place[rows], *reals, self.clock[rows]]
        columns.append(self.mixed[rows].view(np.int64))
        return np.hstack([np.stack(columns, axis=1), self.advice[rows]])


@dataclass(frozen=True, eq=False)
class Log:
    """A log that can be played: which ticket each event is about.

    Attributes
    ----------
    ticket
        Row of each event's ticket: first the held ones, then new ones in order.
    forecasts
        Which events are forecasts.
    held
        Tickets that were open before and get their outcome, or expire, here.
    keys
        Under which key each new ticket is filed if it stays open.
    """

    ticket: Words
    forecasts: Mask
    held: list[tuple[Any, ...]]
    keys: Words

    def with_aging(self, gone: list[tuple[Any, ...]]) -> Log:
        """Return the same log that holds also tickets which expire while it is played."""
        first = len(self.held)
        ticket = self.ticket + len(gone) * (self.ticket >= first)
        return Log(ticket, self.forecasts, [*self.held, *gone], self.keys)

    @property
    def events(self) -> Words:
        """The events as loops read them: a row for its forecast, -1 - row for its outcome."""
        return np.where(self.forecasts, self.ticket, -1 - self.ticket)


def read_log(kinds: Any, ids: Any, values: NDArray[Any], counter: Counter[Any], issued: int) -> Log:
    """Match outcomes with their forecasts; refuse a log that cannot be played to its end."""
    forecasts, names = _forecasts(kinds), _ids(ids, values)
    check.same_length(kind=forecasts, id=names, x=values)
    counter.file_latest()
    reader, ticket = _Reader(counter, issued), np.empty(len(names), np.int64)
    for event, (made, id) in enumerate(zip(forecasts.tolist(), names, strict=True)):
        ticket[event] = reader.forecast(id) if made else reader.outcome(id, event)
    held = reader.held
    ticket[ticket < 0] = len(held) - 1 - ticket[ticket < 0]
    return Log(ticket, forecasts, held, np.array(reader.keys, np.int64))


class _Reader:
    """Matches events with tickets, in their order; a row below 0 is a new ticket's."""

    def __init__(self, counter: Counter[Any], issued: int) -> None:
        self.counter, self.issued = counter, issued
        self.held: list[tuple[Any, ...]] = []
        self.keys: list[int] = []
        self._names: dict[str, int] = {}
        self._settled: set[int] = set()

    @property
    def made(self) -> int:
        """How many forecasts were made up to the present event."""
        return self.issued + len(self.keys)

    def forecast(self, id: Any) -> int:
        """Open a ticket; return its row."""
        number = self.made
        if id is not None:
            if not isinstance(id, str) or not id:
                raise InvalidType(f"id must be a string that is not empty, got {id!r}")
            waits = self._named(id)
            if waits is not None and waits not in self._settled and not self._is_old(waits):
                raise RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")
            self._names[id] = number
        self.keys.append(number if id is None else name_key(id))
        return self.issued - 1 - number

    def outcome(self, id: Any, event: int) -> int:
        """Settle an open ticket; return its row."""
        number = self._named(id) if isinstance(id, str) else int(checked_id(id))
        if number is None or not 0 <= number < self.made:
            number = self.counter.find(id, self.made).number
        if number in self._settled:
            told = f"event {event}: ticket {id!r} must be open"
            raise RepeatedTicket(f"{told}, got one whose outcome is known")
        if self._is_old(number):
            told = f"event {event}: ticket {id!r} must be open"
            raise ExpiredTicket(f"{told}, got one that expired by then")
        row = self.issued - 1 - number
        if number < self.issued:
            self.counter.find(number, self.made)
            row = len(self.held)
            self.held.append(self.counter.desk.get_number(0, number))  # type: ignore[arg-type]
        self._settled.add(number)
        return row

    def _named(self, id: str) -> int | None:
        """Return the number of the latest ticket of a name, if there is one."""
        if id in self._names:
            return self._names[id]
        found = self.counter.desk.get(name_key(id))
        return None if found is None else found[2]

    def _is_old(self, number: int) -> bool:
        return self.made - number > self.counter.max_open


def _forecasts(kinds: Any) -> Mask:
    array = np.asarray(kinds)
    if array.shape == (0,):
        return np.zeros(0, bool)
    if array.dtype.kind in "US" or array.dtype == object:
        codes = [KINDS.get(str(kind), -1) for kind in array.tolist()]
        array = np.array(codes, np.int64).reshape(len(codes))
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise InvalidInput(f"kind must be a flat column of forecasts and outcomes, got {kinds!r}")
    check.refuse_first(
        (array != FORECAST) & (array != OUTCOME), array, "kind", "'forecast' (0) or 'outcome' (1)"
    )
    return np.asarray(array == FORECAST)


def _ids(ids: Any, values: NDArray[Any]) -> list[Any]:
    if ids is None:
        return [None] * len(values)
    listed = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    return [None if id is None or id != id else id for id in listed]
