"""Whole batches of a table: at once, late, or in the order of a log."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Mask, Reals, Words
from calibrant.core.desk import NUMBER, SHIFT, Found
from calibrant.core.gate import passing
from calibrant.errors import InvalidInput, InvalidType, RepeatedTicket, UnknownTicket
from calibrant.kernels.compile import SHORT
from calibrant.kernels.crowd import counts_by_lag
from calibrant.kernels.layout import ISSUED, MOST_OUTSTANDING, ROUNDS
from calibrant.recalibrate.delivery import Schedule, arrivals, moments, schedule
from calibrant.recalibrate.keyed import Key, KeyedPending, KeyedRun, Keys
from calibrant.recalibrate.keyed_parts import Due, Parts, checked_carry, event_keys
from calibrant.recalibrate.keyed_rows import NOBODY
from calibrant.recalibrate.keyed_state import KeyedState
from calibrant.recalibrate.late import (
    Columns,
    Log,
    Played,
    Reader,
    check_times,
    fill_held,
    forecasts_of,
    ids_of,
)


class KeyedBatches(KeyedState):
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
        when = np.arange(len(raws), dtype=np.float64)
        when = when if time is None else moments(time, "time", len(raws))
        known = when if available is None else arrivals(available, when)
        carried = checked_carry(carry)
        with passing(self._gate):
            self._recall(itertools.chain(named.names, carried.key))
            rows = self._rows_of(named)
            parts = Parts.of(rows, len(self._keys) + len(named.names))
            self._check_order(when, parts)
            prompt = available is None and carry is None and not self._spec.rule.timed
            if prompt and not (self._spec.raw_safe is not None and len(self._desk)):
                return self._replay_at_once(named, parts, raws, told)
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
        stamps = np.full(len(values), np.nan)
        stamps = stamps if time is None else moments(time, "time", len(values))
        made, names = forecasts_of(kind), ids_of(id, values)
        check.same_length(kind=made, id=names, x=values)
        named, told = event_keys(keys, made)
        with passing(self._gate):
            self._recall(named.names, names)
            rows = np.full(len(made), NOBODY)
            rows[told] = self._rows_of(named)
            log = self._read(made, names, rows)
            raws = check.probabilities(values[made], "x of a forecast")
            outcomes = check.outcomes(values[~made], "x of an outcome")
            check_times(log, stamps, self._spec.rule.timed)
            log = log.with_aging(self._aging(rows[made], log.held))
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
        self._check_room(parts.rows, parts.counts)
        ticket, mixed = self._numbers_of(parts), raw
        if self._spec.transform is not None:
            mixed = np.empty(len(raw))
        made = np.empty(len(raw)), np.empty(len(raw)), mixed
        crowded, machine = self._has_crowds(parts.rows), self._machine(len(raw))

        def play() -> None:
            for some, loops in ((crowded, None), (~crowded, machine)):
                places = np.flatnonzero(some)
                for group in self._tiers.groups(places, parts.rows, self._stamps):
                    self._play_at_once(parts.chosen(group), loops, raw, told, made)

        at_once = machine is not None and not crowded.any()
        self._wholly(keys, parts.rows, play, lambda: self._expire_rows(parts.rows), at_once)
        return KeyedRun(*made[:2], self._spec.buckets, mixed, ticket, KeyedPending())

    def _play_at_once(
        self, parts: Parts, machine: Any, raw: Reals, told: Bits, made: tuple[Reals, ...]
    ) -> None:
        """Play the rounds of rows, and write what was forecast in them."""
        order, places, bounds = parts.order, self._tiers.places(parts.rows), parts.bounds
        given, size = (raw[order], told[order]), len(order)
        columns = [np.empty(size), np.empty(size), np.empty(size)]
        if self._spec.transform is None:
            columns[2] = np.empty(0)
        if machine is not None:
            flat = self._rows.arena.flat()
            machine.replay(flat, flat.view(np.float64), places, bounds, *given, *columns)
        else:
            for place, a, b in zip(places.tolist(), bounds[:-1], bounds[1:], strict=True):
                found = self._rows.replay(place, given[0][a:b], given[1][a:b])
                for column, part in zip(columns, found, strict=True):
                    column[a:b] = part if len(column) else column
        for column, part in zip(made, columns, strict=True):
            if len(part):
                column[order] = part

    # ------------------------------------------------------------------- late

    def _replay_late(
        self, keys: Keys, rows: Words, parts: Parts, given: tuple[Any, ...], carry: KeyedPending
    ) -> KeyedRun:
        order, fresh = parts.order, rows[parts.order]
        raw, told, when, known, stamps = (column[order] for column in given)
        carry, whose = self._carried(carry)
        last = np.full(len(self._keys) + len(keys.names), -np.inf)
        last[parts.rows] = when[parts.bounds[1:] - 1]
        arriving = carry.available <= last[whose]
        due, rest = carry.chosen(arriving), carry.chosen(~arriving)
        pairs = zip(whose[arriving].tolist(), due.number.tolist(), strict=True)
        held = [self._held(row, number) for row, number in pairs]
        gone = self._aging(rows, held)
        ticket = self._numbers_of(parts)
        held += gone
        before = np.array([found[1:3] for found in held], np.int64).reshape(-1, 2)
        row = np.concatenate([before[:, 0], fresh])
        number = np.concatenate([before[:, 1], ticket[order]])
        arrives = np.concatenate([due.available, np.full(len(gone), np.inf), known])
        outcomes = np.concatenate([due.outcome, np.zeros(len(gone), np.uint8), told])
        columns = Columns(held, raw, stamps, self._spec.kept)
        tickets = Due(held, row, number, columns, outcomes, fresh << SHIFT | ticket[order])
        _, part = np.unique(row, return_inverse=True)
        plan = schedule(len(held), number, arrives, when, self._max_open, part)
        self._carry_out(keys, plan, tickets)
        waits = plan.waiting
        left = KeyedPending(
            [self._keys[k] for k in row[waits].tolist()],
            number[waits],
            arrives[waits],
            outcomes[waits],
        )
        rest, _ = self._carried(rest)
        made = [np.empty(len(raw)) for _ in range(3)]
        mixed = columns.raw if self._spec.transform is None else columns.mixed
        for column, found in zip(made, (columns.value, columns.mean, mixed), strict=True):
            column[order] = found[len(held) :]
        forecast, mean, mixed = made
        return KeyedRun(forecast, mean, self._spec.buckets, mixed, ticket, rest.joined(left))

    def _carried(self, carry: KeyedPending) -> tuple[KeyedPending, Words]:
        """Return what is carried over of tickets that did not expire, and their rows."""
        rows = np.array([self._row_of_carried(key) for key in carry.key], np.int64)
        issued = self._own(ISSUED, rows)
        check.refuse_first(carry.number >= issued, carry.number, "carry.number", "of a ticket")
        fresh = carry.number >= issued - self._max_open
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
            told = f"got number {number} of key {self._keys[row]!r}"
            raise UnknownTicket(f"ticket must be one that is open here, {told}")
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
        reader = Reader(self._desk, self._max_open, self._issued_by, self._unknown)
        return reader.read(made, names, rows.tolist())

    def _issued_by(self, row: int) -> int:
        return int(self._own(ISSUED, np.array([row]))[0])

    def _unknown(self, id: Any, row: int, made: int) -> int:
        """Raise what says why there is no such ticket."""
        known = row >= 0 and isinstance(id, int) and 0 <= id < made
        if known and id >= made - self._max_open:
            told = f"got number {id!r} of key {self._keys[row]!r}"
            raise RepeatedTicket(f"ticket must be open, {told}, whose outcome is known")
        raise UnknownTicket(f"ticket must be one that is open here, got {id!r}")

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
        order = np.argsort(row[ticket], kind="stable")
        left = np.setdiff1d(np.arange(len(row)), settled)
        made = (
            self._own(ISSUED, row) + np.bincount(rows, minlength=int(row.max(initial=0)) + 1)[row]
        )
        late = (made - number > self._max_open)[left]
        plan = Schedule(log.events[order], left[~late], left[late])
        self._carry_out(keys, plan, Due(held, row, number, columns, outcomes, log.keys))
        return columns.told(ticket, number[ticket])

    # ------------------------------------------------------------------ rows

    def _carry_out(self, keys: Keys, plan: Schedule, due: Due) -> None:
        """Play events that are known to fit; open, close and expire tickets."""
        learned = due.row[-1 - plan.events[plan.events < 0]]
        self._check_room(*np.unique(learned, return_counts=True))
        if self._spec.raw_safe is not None:
            _, part = np.unique(due.row, return_inverse=True)
            plan = plan.with_expiry(due.number, self._max_open, part)
        machine, rows = self._machine(len(plan.events)), np.unique(due.row)

        def play() -> None:
            self._play_events(plan.events, due, machine)

        def finish() -> None:
            self._drop(due.held)
            # First the old ones go: a new ticket may have the name of one that expired.
            self._expire_rows(rows)
            self._open(due, plan.waiting)

        self._wholly(keys, rows, play, finish, machine is not None)

    def _open(self, due: Due, waits: Words) -> None:
        """File the tickets that wait, as far as that is not done."""
        words = due.row[waits] << SHIFT | due.number[waits]
        new = np.array([self._desk.get(word) is None for word in words.tolist()], bool)
        if new.any():
            due.columns.number[waits] = words
            lines = due.columns.lines(waits, due.names[waits - len(due.held)])
            self._desk.extend(lines[new])

    def _drop(self, gone: Iterable[Found]) -> None:
        """Take tickets from the desk."""
        for found in gone:
            self._taken.append(found)
            self._desk.pop_number(found[1], found[2])

    def _wholly(
        self,
        keys: Keys,
        rows: Words,
        play: Callable[[], None],
        finish: Callable[[], None],
        at_once: bool,
    ) -> None:
        """Play a batch on its rows, and then close and open tickets; or change nothing.

        If playing is one step that nothing can interrupt, then the batch is finished whatever
        comes; else the rows are put back as they were.
        """
        new = [name for name in keys.names if name not in self._numbers]
        first, there = self._own(ISSUED, rows), rows < len(self._keys)
        rounds = self._own(ROUNDS, rows)
        at_once &= len(rows) <= self._tiers.hot
        kept = None if at_once else self._kept(rows[there], len(rows) > self._tiers.hot)
        self._taken = []
        try:
            self._admit(keys)
            self._touch(rows)
            play()
            finish()
        except BaseException:
            begun = (self._own(ISSUED, rows) != first) | (self._own(ROUNDS, rows) != rounds)
            if at_once and begun.any():
                finish()
            else:
                self._undo(new, rows, there, first, kept)
            raise
        finally:
            self._taken = []
            self._tiers.tidy()

    def _kept(self, rows: Words, many: bool) -> Any:
        """Return what rows are before a batch: their words, or their records if they are many."""
        if many:
            self._tiers.cool(rows)
            return self._tiers.heap.records[rows]
        return self._tiers.copies(rows)

    def _undo(
        self, new: list[Key], rows: Words, there: Mask, first: Words, kept: Words | None
    ) -> None:
        """Be as before a batch: rows, tickets and keys."""
        if kept is not None and len(rows) > self._tiers.hot:
            self._tiers.release(rows[there], kept)
        elif kept is not None:
            self._tiers.warm(rows[there], self._stamps)
            self._tiers.put(rows[there], kept)
        for name in new:
            if name in self._numbers:
                self._drop_key(name)
        issued = dict(zip(rows.tolist(), first.tolist(), strict=True))
        for word in self._desk.words()[:, 1].tolist():
            if (word & NUMBER) >= issued.get(word >> SHIFT, NUMBER + 1):
                self._desk.pop(word)
        for found in self._taken:
            if self._desk.get_number(found[1], found[2]) is None:
                self._desk.add(*found)

    def _play_events(self, log: Words, due: Due, machine: Any) -> None:
        """Play the log of each row, which stands together, on its row."""
        tickets = np.where(log < 0, -1 - log, log & NUMBER)
        rows = due.row[tickets]
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        bounds, columns = np.append(starts, len(rows)), due.columns.for_events(due.outcomes)
        listed = [] if machine is not None else [column.tolist() for column in columns]
        whose, all_rows = rows[starts], np.arange(len(starts))
        for group in self._tiers.groups(all_rows, whose, self._stamps):
            told = self._tiers.places(whose[group]), bounds[group[0] : group[-1] + 2], log
            if machine is not None:
                flat = self._rows.arena.flat()
                machine.events(flat, flat.view(np.float64), *told, *columns)
            else:
                self._play_plainly(*told, listed)
        for column, played in zip(columns, listed, strict=False):
            column[:] = played

    def _play_plainly(self, places: Words, bounds: Words, log: Words, columns: list[Any]) -> None:
        words, reals = self._rows.state()
        for place, a, b in zip(places.tolist(), bounds[:-1], bounds[1:], strict=True):
            self._rows.program.events(words, reals, place, log[a:b].tolist(), *columns)

    def _machine(self, rounds: int) -> Any:
        """Return compiled loops over rows if they are worth it, or once they exist."""
        program = self._rows.program
        made = program.__dict__.get("rows")
        return made if made is not None or rounds <= SHORT else program.rows

    def _numbers_of(self, parts: Parts) -> Words:
        """Return the number that the ticket of each round of a batch will have in its stream."""
        ticket = np.empty(len(parts.order), np.int64)
        shift = self._own(ISSUED, parts.rows) - parts.bounds[:-1]
        ticket[parts.order] = np.arange(len(ticket)) + np.repeat(shift, parts.counts)
        return ticket

    def _has_crowds(self, rows: Words) -> Mask:
        """Say which rows count outcomes as some of many, because others were missing."""
        rule, words = self._rows.program.rule, self._rows.arena.flat()
        if counts_by_lag(words) or not (rule.anchored or self._spec.kept > 0):
            return np.zeros(len(rows), bool)
        waiting = self._own(ISSUED, rows) - self._own(ROUNDS, rows)
        crowded: Mask = (self._own(MOST_OUTSTANDING, rows) != 0) | (waiting != 0)
        return crowded

    def _check_room(self, rows: Words, rounds: Words) -> None:
        most = self._rows.capacity
        full = self._own(ROUNDS, rows) + rounds > most
        check.refuse_first(full, rounds, "rounds", f"at most {most} for each key in all")

    def _check_order(self, when: Reals, parts: Parts) -> None:
        """Raise unless the times of each row's rounds are finite and in order."""
        bad, sorted_when = ~np.isfinite(when), when[parts.order]
        back = np.diff(sorted_when, prepend=-np.inf) < 0
        back[parts.bounds[:-1][parts.bounds[:-1] < len(back)]] = False
        bad[parts.order] |= back
        check.refuse_first(bad, when, "time", "finite and not before the row above it of its key")

    def _expire_rows(self, rows: Words) -> None:
        """Close the tickets of rows that are too old by now."""
        if not len(self._desk):
            return
        oldest = self._own(ISSUED, rows) - self._max_open
        for row, least in zip(rows[oldest > 0].tolist(), oldest[oldest > 0].tolist(), strict=True):
            self._drop(self._desk.old(row, least))
            self._desk.pass_by(row, least)
