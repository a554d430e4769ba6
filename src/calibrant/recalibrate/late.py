"""Batches whose outcomes are known later, and logs of forecasts and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Bits, Mask, Reals, Words
from calibrant.core.desk import NUMBER, SHIFT, Desk, name_key
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import (
    CalibrantError,
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    RepeatedTicket,
)
from calibrant.recalibrate.counter import Counter, checked_id
from calibrant.recalibrate.crowd import Crowd

FORECAST: Final = 0
OUTCOME: Final = 1
KINDS: Final = {"forecast": FORECAST, "outcome": OUTCOME}
KNOWN: Final = "'forecast' (0) or 'outcome' (1)"


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
    mixed, kept
        What the transform made of the raw forecast, and what the ticket keeps of its advice.
    """

    value: Reals
    mean: Reals
    weight: Reals
    place: Words
    clock: Words
    number: Words
    mixed: Reals
    kept: Words

    def __len__(self) -> int:
        return len(self.value)


class Columns:
    """What is known of each ticket of a batch: first those that were open before, then new ones.

    The columns are what compiled loops read and write; see :mod:`calibrant.kernels.batches`.
    """

    def __init__(
        self,
        held: list[tuple[Any, ...]],
        raw: Reals,
        time: Reals,
        kept: int,
        told: Words | None = None,
    ) -> None:
        rows, first = len(held) + len(raw), len(held)
        self.raw, self.time = np.empty(rows), np.empty(rows)
        self.value, self.mean = np.empty(rows), np.empty(rows)
        self.weight, self.mixed = np.empty(rows), np.empty(rows)
        self.number, self.place, self.clock = (np.zeros(rows, np.int64) for _ in range(3))
        self.advice = np.zeros((rows, kept), np.int64)
        self.raw[first:], self.time[first:] = raw, time
        if told is not None:
            self.advice[first:, kept - told.shape[1] :] = told
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

    def told(self, rows: Words, number: Words) -> Played:
        """Return what was announced for the tickets in some rows, which have these numbers."""
        announced = self.value[rows], self.mean[rows], self.weight[rows], self.place[rows]
        return Played(*announced, self.clock[rows], number, self.mixed[rows], self.advice[rows])

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
    crowd
        Which tickets were lost because there were too many, if there may be only that many.
    """

    ticket: Words
    forecasts: Mask
    held: list[tuple[Any, ...]]
    keys: Words
    crowd: Crowd | None = None

    def with_aging(self, gone: list[tuple[Any, ...]]) -> Log:
        """Return the same log that holds also tickets which expire while it is played."""
        first = len(self.held)
        ticket = self.ticket + len(gone) * (self.ticket >= first)
        return replace(self, ticket=ticket, held=[*self.held, *gone])

    @property
    def events(self) -> Words:
        """The events as loops read them: a row for its forecast, -1 - row for its outcome."""
        return np.where(self.forecasts, self.ticket, -1 - self.ticket)


def read_log(kinds: Any, ids: Any, values: NDArray[Any], counter: Counter[Any], issued: int) -> Log:
    """Match outcomes with their forecasts; refuse a log that cannot be played to its end."""
    forecasts, names = forecasts_of(kinds), ids_of(ids, values)
    check.same_length(kind=forecasts, id=names, x=values)
    counter.file_all()
    ways = lambda row: issued, lambda id, row, made: counter.find(id, made).number
    reader = Reader(counter.desk, counter.max_open, *ways)
    return reader.read(forecasts, names, [0] * len(names))


class Reader:
    """Matches the events of a log with tickets, in their order.

    Parameters
    ----------
    desk, max_open
        Where tickets of earlier forecasts are, and after how many newer ones each expires.
    issued
        Says how many forecasts a row had made before the log.
    find
        Takes an id, the number of its row or -1, and how many forecasts that row has made;
        returns the ticket's word, or raises what says why there is none.
    crowd
        Counts the open tickets of all rows, if there may be only that many.
    """

    def __init__(
        self,
        desk: Desk,
        max_open: int,
        issued: Callable[[int], int],
        find: Callable[[Any, int, int], int],
        crowd: Crowd | None = None,
    ) -> None:
        self.desk, self.max_open, self._issued, self._find = desk, max_open, issued, find
        self.crowd = crowd
        self.held: list[tuple[Any, ...]] = []
        self.keys: list[int] = []
        self._made: dict[int, int] = {}
        self._new: dict[int, int] = {}
        self._names: dict[str, int] = {}
        self._settled: set[int] = set()

    def read(self, forecasts: Mask, names: list[Any], rows: list[int]) -> Log:
        """Return the log of these events; each tells its ticket's id and its row, or -1."""
        ticket = np.empty(len(names), np.int64)
        events = zip(forecasts.tolist(), names, rows, strict=True)
        for event, (made, id, row) in enumerate(events):
            happens = self._forecast if made else self._outcome
            try:
                ticket[event] = happens(id, row, event)
            except CalibrantError as error:
                raise type(error)(f"event {event}: {error}") from None
        ticket[ticket < 0] = len(self.held) - 1 - ticket[ticket < 0]
        return Log(ticket, forecasts, self.held, np.array(self.keys, np.int64), self.crowd)

    def made(self, row: int) -> int:
        """Return how many forecasts a row has made up to the present event."""
        made = self._made.get(row)
        if made is None:
            made = self._made[row] = self._issued(row)
        return made

    def _forecast(self, id: Any, row: int, event: int) -> int:
        """Open a ticket; return its place among the new ones, below 0."""
        number = self.made(row)
        word = key = row << SHIFT | number
        if id is not None:
            check.name(id)
            key = name_key(id)
            waits = self._named(id, key)
            if waits is not None and waits not in self._settled and not self._is_old(waits):
                raise RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")
        if self.crowd is not None:
            self.crowd.opened(word, self.max_open, event)
        if id is not None:
            self._names[id] = word
        self._made[row], self._new[word] = number + 1, len(self.keys)
        self.keys.append(key)
        return -len(self.keys)

    def _outcome(self, id: Any, row: int, event: int) -> int:
        """Settle an open ticket; return its place among those that are held, or new, below 0."""
        word = self._named(id) if isinstance(id, str) else self._numbered(id, row)
        if word is None:
            word = self._find(id, row, self.made(row) if row >= 0 else 0)
        if row >= 0 and word >> SHIFT != row:
            raise ForeignTicket(f"ticket {id!r} must be of its key, got another's")
        if word in self._settled:
            raise RepeatedTicket(f"ticket {id!r} must be open, got one whose outcome is known")
        if self._is_old(word):
            raise ExpiredTicket(f"ticket {id!r} must be open, got one that expired by then")
        place = self._new.get(word)
        if place is None:
            found = self.desk.get(word)
            if found is None:
                self._find(id, row, self.made(row))
            place = -1 - len(self.held)
            self.held.append(found)  # type: ignore[arg-type]
        self._settled.add(word)
        if self.crowd is not None:
            self.crowd.closed(word)
        return -1 - place

    def _numbered(self, id: Any, row: int) -> int | None:
        number = int(checked_id(id))
        return row << SHIFT | number if row >= 0 and 0 <= number < self.made(row) else None

    def _named(self, id: str, key: int | None = None) -> int | None:
        """Return the word of the latest ticket of a name, if there is one."""
        if id in self._names:
            return self._names[id]
        found = self.desk.get(name_key(id) if key is None else key)
        return None if found is None else found[1] << SHIFT | found[2]

    def _is_old(self, word: int) -> bool:
        if self.crowd is not None and word in self.crowd.lost:
            return True
        return self.made(word >> SHIFT) - (word & NUMBER) > self.max_open


def forecasts_of(kinds: Any) -> Mask:
    """Say which events of a log are forecasts."""
    array = np.asarray(kinds)
    array = array if array.ndim else np.asarray(check.listed(kinds, "kind"))
    if array.shape == (0,):
        return np.zeros(0, bool)
    if array.dtype.kind in "US" or array.dtype == object:
        told = array.tolist()
        codes = [KINDS.get(str(kind), -1) for kind in told]
        if -1 in codes:
            event = codes.index(-1)
            raise InvalidInput(f"kind[{event}] must be {KNOWN}, got {told[event]!r}")
        array = np.array(codes, np.int64).reshape(len(codes))
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise InvalidInput(f"kind must be a flat column of forecasts and outcomes, got {kinds!r}")
    check.refuse_first((array != FORECAST) & (array != OUTCOME), array, "kind", KNOWN)
    return np.asarray(array == FORECAST)


def ids_of(ids: Any, values: Sized) -> list[Any]:
    """Return the ids of a log's events; None where there is none."""
    if ids is None:
        return [None] * len(values)
    return [None if id is None or id != id else id for id in check.listed(ids, "id")]


def values_of(x: Reals, made: Mask) -> tuple[Reals, Bits]:
    """Return the raw forecasts and the outcomes of a log, if all of them are such."""
    rule = "a number in [0, 1] for a forecast"
    check.refuse_first(made & ~((x >= 0.0) & (x <= 1.0)), x, "x", rule)
    check.refuse_first(~made & (x != 0.0) & (x != 1.0), x, "x", "0 or 1 for an outcome")
    return x[made], x[~made].astype(np.uint8)


def check_times(log: Log, stamps: Reals, timed: bool) -> None:
    """Raise unless outcomes come after their forecasts, which have a time if that is needed."""
    check.refuse_first(np.isinf(stamps), stamps, "time", "finite")
    if timed and np.isnan(stamps[log.forecasts]).any():
        raise InvalidInput(
            "time must be given to a rule that forgets in time, got an event without one"
        )
    opened = np.array([found[6] for found in log.held], np.float64)
    made = np.concatenate([opened, stamps[log.forecasts]])
    early = ~log.forecasts & (stamps < made[log.ticket])
    check.refuse_first(early, stamps, "time", "not before the forecast's")


def fill_held(columns: Columns, held: list[tuple[Any, ...]], issuer: Issuer) -> None:
    """Write what was announced for open tickets; the mean of a law is not known any more."""
    for k, found in enumerate(held):
        ticket = Ticket.revived(issuer, found[2], found[2], found[3:])
        columns.value[k] = ticket.value
        lost = issuer.full_support and not ticket.fallback
        columns.mean[k] = np.nan if lost else ticket.mean
