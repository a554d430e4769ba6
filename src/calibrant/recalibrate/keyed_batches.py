"""Whole batches of a table: at once, late, or in the order of a log."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Mask, Reals, Words
from calibrant.core.desk import NUMBER, SHIFT, Found, name_key
from calibrant.errors import InvalidInput, InvalidType, TicketError, UnknownTicket
from calibrant.kernels.batches import FORGET
from calibrant.kernels.layout import ISSUED
from calibrant.recalibrate.closed import not_open
from calibrant.recalibrate.counter import checked_id
from calibrant.recalibrate.crowd import places_of, words_of
from calibrant.recalibrate.delivery import Schedule, arrivals, moments, stamps_of
from calibrant.recalibrate.keyed import Key, KeyedPending, KeyedRun, Keys
from calibrant.recalibrate.keyed_late import LateRounds, Plan
from calibrant.recalibrate.keyed_parts import Due, Parts, checked_carry, event_keys
from calibrant.recalibrate.keyed_rounds import KeyedRounds
from calibrant.recalibrate.keyed_rows import NOBODY
from calibrant.recalibrate.late import (
    Columns,
    Log,
    Played,
    Reader,
    check_times,
    fill_held,
    forecasts_of,
    ids_of,
    values_of,
)

HELD: Final = 4096
"""Rounds that are played at a time: their columns stay in the cache of the processor."""


def _moments(time: Any, rows: int) -> Reals:
    """Return when each forecast was made; the row number where nothing is said."""
    return np.arange(float(rows)) if time is None else moments(time, "time", rows)


class KeyedBatches(KeyedRounds):
    """How batches are played on the rows of a table."""

    __slots__ = ()

    # ------------------------------------------------------------------ verbs

    def replay(
        self,
        keys: Any,
        raw: Any,
        outcomes: Any,
        *,
        available: Any = None,
        time: Any = None,
        carry: KeyedPending | None = None,
    ) -> KeyedRun:
        """Play a whole batch of rounds of many streams, as each stream by itself would.

        Parameters
        ----------
        keys
            Whose round each row is: strings or whole numbers, or :class:`.Keys`.
        raw, outcomes
            Flat arrays of the same length.
        available
            When each outcome became known: it is learned before the first later forecast of its
            stream that was not made before then.  Infinite or not a number: never.
        time
            When each forecast was made, in order within each stream; the row number by default,
            except for a rule that forgets in time.
        carry
            What an earlier batch left pending.

        Notes
        -----
        A batch with an error is refused whole, and nothing changes.

        Examples
        --------
        >>> from calibrant import Recalibrator, Table
        >>> table = Table(Recalibrator(resolution=10, buckets=10), seed=7)
        >>> run = table.replay(["a", "b", "a"], [0.2, 0.7, 0.3], [0, 1, 0])
        >>> run.ticket.tolist(), table["a"].rounds
        ([0, 0, 1], 2)
        """
        raws, told, named = check.probabilities(raw), check.outcomes(outcomes), Keys.of(keys)
        check.same_length(keys=named, raw=raws, outcomes=told)
        if time is None and self._spec.rule.timed:
            raise InvalidInput("time must be given to a rule that forgets in time, got None")
        prompt = available is None and carry is None and not self._spec.rule.timed
        # Numbers of rows are made only where somebody reads them.
        when: Any = None if prompt and time is None else _moments(time, len(raws))
        known = when if available is None else arrivals(available, when)
        carried = checked_carry(carry)
        with self._gate:
            self._recall(itertools.chain(named.names, carried.key))
            rows = self._rows_of(named)
            parts = Parts.of(rows, len(self._keys) + len(named.names), self.jobs)
            if time is not None:
                self._check_order(when, parts)
            apart = self._spec.raw_safe is None or not len(self._desk)
            if prompt and apart and (self._most_open is None or len(self._desk) < self._most_open):
                return self._replay_at_once(named, parts, raws, told)
            if when is None:
                when = known = _moments(time, len(raws))
            stamps = when if time is not None else np.full(len(when), np.nan)
            return self._replay_late(named, rows, parts, (raws, told, when, known, stamps), carried)

    def play(self, keys: Any, kind: Any, id: Any, x: Any, time: Any = None) -> Played:
        """Play a log of forecasts and outcomes of many streams in its order.

        Parameters
        ----------
        keys
            Whose event each row is; None for the outcome of a ticket that has a name.
        kind
            ``"forecast"`` (or 0) or ``"outcome"`` (or 1), for each event.
        id
            Names of tickets, or their numbers in the stream of the key; None for a forecast whose
            ticket needs no name.
        x
            The raw forecast, or the outcome.
        time
            When each event happened; of forecasts, for a rule that forgets in time.

        Notes
        -----
        A log that cannot be played to its end is refused, and nothing changes.
        """
        values = check.numbers(x, "x", "raw forecasts and outcomes").astype(np.float64)
        stamps = stamps_of(time, len(values))
        made, names = forecasts_of(kind), ids_of(id, values)
        check.same_length(kind=made, id=names, x=values)
        named, told = event_keys(keys, made)
        with self._gate:
            self._recall(named.names, names)
            rows = np.full(len(made), NOBODY)
            rows[told] = self._rows_of(named)
            log = self._read(made, names, rows)
            raws, outcomes = values_of(values, made)
            check_times(log, stamps, self._spec.rule.timed)
            lost = [] if log.crowd is None else log.crowd.lost_before(log.held)
            log = log.with_aging(lost + self._aging(rows[made], log.held + lost))
            return self._play_log(named, log, rows[made], raws, outcomes, stamps[made])

    def forecast_many(self, keys: Any, raw: Any, *, id: Any = None, time: Any = None) -> Played:
        """Announce many forecasts, one after the other, and keep a ticket for each."""
        values = check.probabilities(raw)
        return self.play(keys, np.zeros(len(values), np.int64), id, values, time)

    def observe_many(self, id: Any, outcomes: Any, *, keys: Any = None, time: Any = None) -> Played:
        """Report the outcomes of many open tickets: by name, or by key and number."""
        values = check.outcomes(outcomes)
        return self.play(keys, np.ones(len(values), np.int64), id, values, time)

    # ---------------------------------------------------------------- at once

    def _replay_at_once(self, keys: Keys, parts: Parts, raw: Reals, told: Bits) -> KeyedRun:
        self._check_room(keys, parts.rows, parts.counts, parts.told)
        ticket, plain = np.empty(len(raw), np.int64), self._spec.transform is None
        made = np.empty(len(raw)), np.empty(len(raw)), np.empty(0 if plain else len(raw))
        crowded, machine = self._has_crowds(parts.rows), self._machine(len(raw))

        def play() -> None:
            for some, loops in ((crowded, None), (~crowded, machine)):
                places = np.flatnonzero(some)
                for group in self._tiers.groups(places, parts.rows, self._stamps):
                    self._play_at_once(parts.chosen(group), loops, raw, told, ticket, made)

        at_once = machine is not None and not crowded.any()
        self._wholly(keys, parts.rows, play, lambda: self._expire_rows(parts.rows), at_once)
        mixed = raw if plain else made[2]
        return KeyedRun(*made[:2], self._spec.buckets, mixed, ticket, KeyedPending())

    def _play_at_once(
        self,
        parts: Parts,
        machine: Any,
        raw: Reals,
        told: Bits,
        ticket: Words,
        made: tuple[Reals, ...],
    ) -> None:
        """Play the rounds of rows, and write what was forecast in them, and their numbers."""
        order, places, bounds = parts.order, self._tiers.places(parts.rows), parts.bounds
        issued = self._own(ISSUED, parts.rows)
        if machine is None:
            ticket[order] = parts.numbers(issued)
            self._play_row_by_row(places, parts, raw, told, made)
            return
        # One kind of column, so that machine code for another need not be made.
        given = np.require(raw, requirements=["C", "W"]), np.require(told, requirements=["C", "W"])

        def play(flat: Words, start: int, first: int, last: int) -> None:
            rows = places[first:last] - start, bounds[first : last + 1], order, issued[first:last]
            size = min(HELD, int(bounds[last] - bounds[first]))
            held = np.empty(size), np.empty(size, told.dtype), *(np.empty(size) for _ in range(2))
            own = *held, np.empty(min(size, len(made[2])))
            machine.replay(flat, flat.view(np.float64), *rows, given, (*made, ticket), own)

        self._share_out(bounds, play)

    def _play_row_by_row(
        self, places: Words, parts: Parts, raw: Reals, told: Bits, made: tuple[Reals, ...]
    ) -> None:
        for place, a, b in zip(places.tolist(), parts.bounds[:-1], parts.bounds[1:], strict=True):
            some = parts.order[a:b]
            found = self._rows.replay(place, raw[some], told[some])
            for column, played in zip(made, found, strict=True):
                if len(column):
                    column[some] = played

    # ------------------------------------------------------------------- late

    def _replay_late(
        self, keys: Keys, rows: Words, parts: Parts, given: tuple[Any, ...], carry: KeyedPending
    ) -> KeyedRun:
        order = parts.order
        raw, told, when, known, stamps = (column[order] for column in given)
        carry, whose = self._carried(carry)
        last = np.full(len(self._keys) + len(keys.names), -np.inf)
        last[parts.rows] = when[parts.bounds[1:] - 1]
        arriving = carry.available <= last[whose]
        due, rest = carry.chosen(arriving), carry.chosen(~arriving)
        pairs = zip(whose[arriving].tolist(), due.number.tolist(), strict=True)
        held = [self._held(row, number) for row, number in pairs]
        ticket, sizes = self._numbers_of(parts), (self._max_open, self._spec.kept)
        columns = raw, told, when, known, stamps
        rounds = LateRounds(rows[order], ticket[order], order, *columns, due, *sizes)
        plan = rounds.plan(held + self._aging(rows, held))
        crowd = self._crowd()
        if crowd is not None:
            plan = rounds.limited(plan, crowd, self._spec.raw_safe is not None)
        self._carry_out(keys, plan.events, plan.tickets)
        made = [np.empty(len(raw)) for _ in range(3)]
        self._columns_of(plan.tickets, made, order)
        forecast, mean, mixed = made
        left = self._carried(rest)[0].joined(self._left(plan))
        return KeyedRun(forecast, mean, self._spec.buckets, mixed, ticket, left)

    def _left(self, plan: Plan) -> KeyedPending:
        """Return the outcomes of tickets that wait."""
        waits, tickets = plan.events.waiting, plan.tickets
        keys = [self._keys[k] for k in tickets.row[waits].tolist()]
        return KeyedPending(
            keys, tickets.number[waits], plan.arrives[waits], tickets.outcomes[waits]
        )

    def _columns_of(self, tickets: Due, made: list[Reals], order: Words) -> None:
        """Write what was forecast into the rows of a batch."""
        columns, first = tickets.columns, len(tickets.held)
        mixed = columns.raw if self._spec.transform is None else columns.mixed
        for column, found in zip(made, (columns.value, columns.mean, mixed), strict=True):
            column[order] = found[first:]

    def _carried(self, carry: KeyedPending) -> tuple[KeyedPending, Words]:
        """Return what is carried over of tickets that did not expire, and their rows."""
        rows = np.array([self._row_of_carried(key) for key in carry.key], np.int64)
        issued = self._own(ISSUED, rows)
        check.refuse_first(carry.number >= issued, carry.number, "carry.number", "of a ticket")
        fresh = carry.number >= issued - self._max_open
        if self._ages is not None:
            # One that is not there any more went when there were too many.
            words = words_of(rows, carry.number).tolist()
            fresh &= np.array([self._desk.get(word) is not None for word in words], bool)
        return carry.chosen(fresh), rows[fresh]

    def _row_of_carried(self, key: Key) -> int:
        row = self._numbers.get(key)
        if row is None:
            raise UnknownTicket(f"carry.key must be one that the table holds, got {key!r}")
        return row

    def _held(self, row: int, number: int) -> Found:
        """Return an open ticket as the desk keeps it."""
        found = self._desk.get_number(row, number)
        if found is None:
            raise self._not_open((self._keys[row], number), row, number)
        if self._spec.rule.timed and found[6] != found[6]:
            raise InvalidInput("time must be given to a rule that forgets in time, got None")
        return found

    def _aging(self, rows: Words, held: Iterable[Found]) -> list[Found]:
        """Return open tickets that give back a reserve when they expire within a batch."""
        if self._spec.raw_safe is None or not len(self._desk):
            return []
        some, counts = np.unique(rows, return_counts=True)
        oldest = self._own(ISSUED, some) + counts - self._max_open
        apart = {found[1] << SHIFT | found[2] for found in held}
        pairs = zip(some[oldest > 0].tolist(), oldest[oldest > 0].tolist(), strict=True)
        old = [found for row, least in pairs for found in self._desk.old(row, least)]
        return [found for found in old if found[1] << SHIFT | found[2] not in apart]

    # ----------------------------------------------------------------------- logs

    def _read(self, made: Mask, names: list[Any], rows: Words) -> Log:
        """Match outcomes with their forecasts; refuse a log that cannot be played to its end."""
        unnamed = made & (rows == NOBODY)
        if unnamed.any():
            event = int(np.argmax(unnamed))
            raise InvalidType(f"event {event}: key of a forecast must be given, got None")
        ways = self._issued_by, self._unknown, self._crowd()
        return Reader(self._desk, self._max_open, *ways).read(made, names, rows.tolist())

    def _issued_by(self, row: int) -> int:
        return int(self._own(ISSUED, np.array([row]))[0])

    def _unknown(self, id: Any, row: int, made: int) -> int:
        """Raise what says why there is no such ticket in a log, up to where a row has made some."""
        id = checked_id(id)
        numbered = isinstance(id, int) and 0 <= row < len(self._keys)
        told = (self._keys[row], id) if numbered else id
        raise self._not_open(told, row, id if isinstance(id, int) else None, made)

    def _not_open(
        self, told: Any, row: int, number: int | None, made: int | None = None
    ) -> TicketError:
        """Return what says why a ticket is not open: one with a name, or with row and number."""
        if number is None:
            how = self._closed.names.get(name_key(told))
            return not_open(told, None, how, 0, self._max_open)
        made = (0 if row == NOBODY else self._issued_by(row)) if made is None else made
        return not_open(told, number, self._closed.fate(row, number), made, self._max_open)

    def _play_log(
        self, keys: Keys, log: Log, rows: Words, raw: Reals, told: Bits, stamps: Reals
    ) -> Played:
        held, ticket = log.held, log.ticket
        before = np.array([found[1:3] for found in held], np.int64).reshape(-1, 2)
        own = self._numbers_of(Parts.of(rows, len(self._keys) + len(keys.names)))
        row = np.concatenate([before[:, 0], rows])
        number = np.concatenate([before[:, 1], own])
        columns = Columns(held, raw, stamps, self._spec.kept)
        fill_held(columns, held, self._spec.issuer(bytes(16)))
        outcomes, settled = np.zeros(len(row), np.uint8), ticket[~log.forecasts]
        outcomes[settled] = told
        lost = {} if log.crowd is None else log.crowd.lost
        gone = np.isin(words_of(row, number), list(lost))
        left = np.setdiff1d(np.flatnonzero(~gone), settled)
        made = (
            self._own(ISSUED, row) + np.bincount(rows, minlength=int(row.max(initial=0)) + 1)[row]
        )
        late = (made - number > self._max_open)[left]
        events = log.events
        if lost and self._spec.raw_safe is not None:
            some, moments = places_of(lost, words_of(row, number))
            events = np.insert(events, moments + 1, FORGET + some)
        about = np.where(events < 0, -1 - events, events & NUMBER)
        order = np.argsort(row[about], kind="stable")
        plan = Schedule(events[order], left[~late], left[late])
        self._carry_out(
            keys, plan, Due(held, row, number, columns, outcomes, log.keys, np.arange(len(rows)))
        )
        return columns.told(ticket, number[ticket])
