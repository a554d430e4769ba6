"""Whole batches of a binary stream: at once, late, or in the order of a log."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.codec import begun, joined
from calibrant.kernels.layout import ASIDE, LOOK_MEAN
from calibrant.kernels.on_array import GLANCED
from calibrant.recalibrate.at_once import ARRAYS, read, with_length
from calibrant.recalibrate.binary import Binary
from calibrant.recalibrate.closed import CLOSED
from calibrant.recalibrate.context import Known, columns_of, unread
from calibrant.recalibrate.delivery import (
    Pending,
    Schedule,
    arrivals,
    checked,
    schedule,
    stamps_of,
    times,
)
from calibrant.recalibrate.late import (
    Columns,
    Log,
    Played,
    check_times,
    fill_held,
    read_log,
    values_of,
)
from calibrant.recalibrate.run import Run


class Batches(Binary):
    """How batches are played on the row of a stream."""

    __slots__ = ()

    def _bytes(self, secret: bool = True) -> bytes:
        if not secret:
            return super()._bytes(secret)
        counter, shapes, body = self._counter, self._spec.shapes, None
        with self._gate:
            # Usually there is nothing but the row.
            if not len(counter) and not counter.corrections.stands:
                body = self._body()
            arrays: Any = self._arrays() if body is None else ARRAYS
        # The same text for all rows of a spec is written once.
        told = self.kind, counter.max_open, self._secret.origin, len(arrays)
        if told not in shapes:
            shapes[told] = begun(self._document().shape)
        if body is None:
            return joined(*shapes[told], arrays)
        begin, digest = shapes[told]
        rest, hashed = with_length(body), digest.copy()
        hashed.update(rest)
        return b"".join((begin, rest, hashed.digest()))

    @classmethod
    def _of_known(cls, data: bytes) -> Self | None:
        found = read(cls.kind, data)
        if found is None:
            return None
        made = cls.__new__(cls)
        made._start(*found)
        return made

    def _repr_html_(self: Any) -> str:
        from calibrant.recalibrate.notebook import page

        return page(self)

    def predict_mean_one(self, raw: float) -> float:
        """Return the mean that the next round with this raw forecast would announce.

        Changes nothing, and notes nothing; the mean has no guarantee of its own.
        """
        return self._mean_one(check.probability(raw))

    def _mean_one(self, raw: float, told: list[int] | None = None) -> float:
        gate = self._gate
        token = gate.token
        while True:
            try:
                del token[0]
                break
            except IndexError:
                gate.wait()
        try:
            rows, look = self._rows, None
            if rows.steps is None or self._reads is not None:
                place, weight, *_ = look = self._peek(raw, told)
                mean = raw if place & ASIDE else rows.mean_of(place, weight)
            else:
                if self._asked is not None:
                    self._note_asked()
                rows.steps.peek_flat(rows.machine, self._row, raw)
                mean = rows.reals[LOOK_MEAN]
            if self._glances:
                # Learned next, it is a round as it is: nobody looks for it again.
                self._asked, self._looked, self._how = raw, look, GLANCED
            return mean
        finally:
            token.append(None)

    def play(self, kind: Any, id: Any, x: Any, time: Any = None) -> Played:
        """Play a log of forecasts and outcomes in its order, as the calls one by one would.

        Parameters
        ----------
        kind
            ``"forecast"`` (or 0) or ``"outcome"`` (or 1), for each event.
        id
            Names of tickets, or numbers; None for a forecast whose ticket needs no name.
        x
            The raw forecast, or the outcome.
        time
            When each event happened; of forecasts, for a rule that forgets in time.

        Returns
        -------
        Played
            A row for each event, with what was announced for its ticket.

        Notes
        -----
        A log that cannot be played to its end is refused, and nothing changes; nor does anything if
        the call is interrupted.
        """
        return self._play_log(kind, id, x, time)

    def _play_log(self, kind: Any, id: Any, x: Any, time: Any, context: Known = None) -> Played:
        values = check.numbers(x, "x", "raw forecasts and outcomes").astype(np.float64)
        stamps = stamps_of(time, len(values))
        known = self._columns_of(context, len(values))
        with self._gate:
            issued = self.issued
            log = read_log(kind, id, values, self._counter, issued)
            due = {found[2] for found in log.held}
            log = log.with_aging(self._aging(issued + len(log.keys), due))
            made = log.forecasts
            raws, told = values_of(values, made)
            check_times(log, stamps, self._timed)
            told_made = None if known is None else known[made]
            columns = Columns(log.held, raws, stamps[made], self._spec.kept, told_made)
            fill_held(columns, log.held, self._issuer)
            return self._whole(lambda: self._played(log, columns, told, issued))

    def forecast_many(self, raw: Any, *, id: Any = None, time: Any = None) -> Played:
        """Announce many forecasts, one after the other, and keep a ticket for each."""
        values = check.probabilities(raw)
        return self._play_log(np.zeros(len(values), np.int64), id, values, time)

    def observe_many(self, id: Any, outcomes: Any, *, time: Any = None) -> Played:
        """Report the outcomes of many open tickets, given by their ids, one after the other."""
        values = check.outcomes(outcomes)
        return self.play(np.ones(len(values), np.int64), id, values, time)

    def _columns_of(self, context: Known, rows: int) -> Words | None:
        """Return what is known of many rounds as an expert reads it, where one does."""
        if self._reads is None and context is not None:
            raise unread(context)
        return None if self._reads is None else columns_of(context, self._reads, rows)

    def _replay(
        self, raw: Any, outcomes: Any, available: Any, time: Any, carry: Any, context: Any = None
    ) -> Run:
        raws, told = check.probabilities(raw), check.outcomes(outcomes)
        check.same_length(raw=raws, outcomes=told)
        features = self._columns_of(context, len(raws))
        if self._timed and time is None:
            raise self._no_time(time)
        prompt = available is None and carry is None and not self._timed
        # Numbers of rows are made only where somebody reads them.
        when: Any = None if prompt and time is None else times(time, len(raws))
        known = when if available is None else arrivals(available, when)
        carried = Pending() if carry is None else checked(carry)
        with self._gate:
            if prompt and not self._some_give_back(len(raws)):
                return self._whole(lambda: self._replay_at_once(raws, told, features))
            if when is None:
                when = known = times(time, len(raws))
            stamps = np.full(len(raws), np.nan) if time is None else when
            late = known, when, stamps, carried, features
            return self._whole(lambda: self._replay_late(raws, told, *late))

    def _some_give_back(self, rounds: int) -> bool:
        """Say whether tickets may expire on the way and give back what was reserved for them."""
        safe = self._spec.raw_safe is not None
        return safe and len(self._counter) > 0 and self.issued + rounds > self.max_open

    def _replay_at_once(self, raw: Reals, outcomes: Bits, features: Words | None) -> Run:
        first = self.issued
        forecast, mean, mixed = self._rows.replay(self._row, raw, outcomes, features)
        self._rows.use_array()
        self._expire_old(first + len(raw))
        return Run(forecast, mean, self.buckets, mixed, first, Pending())

    def _replay_late(
        self,
        raw: Reals,
        outcomes: Bits,
        available: Reals,
        time: Reals,
        stamps: Reals,
        carry: Pending,
        features: Words | None,
    ) -> Run:
        first, cap, counter = self.issued, self.max_open, self._counter
        carry = carry.since(first - cap)
        counter.check_waiting(carry.number, first)
        arriving = carry.available <= (time[-1] if len(time) else -np.inf)
        due, rest = carry.chosen(arriving), carry.chosen(~arriving)
        held = [self._held(number) for number in due.number.tolist()]
        gone = self._aging(first + len(raw), set(due.number.tolist()))
        held += gone
        old = np.array([found[2] for found in gone], np.int64)
        own = slice(len(held), None)
        numbers = np.concatenate([due.number, old, first + np.arange(len(raw))]).astype(np.int64)
        arrives = np.concatenate([due.available, np.full(len(old), np.inf), available])
        told = np.concatenate([due.outcome, old * 0, outcomes]).astype(np.uint8)
        plan = schedule(len(held), numbers, arrives, time, cap)
        columns = Columns(held, raw, stamps, self._spec.kept, features)
        self._play_events(plan, numbers, columns, told)
        counter.drop(held)
        counter.note_closed([found[0] for found in gone], [True] * len(gone))
        counter.desk.extend(columns.lines(plan.waiting, columns.number[plan.waiting]))
        self._expire_old(first + len(raw))
        waiting = Pending(numbers[plan.waiting], arrives[plan.waiting], told[plan.waiting])
        pending = rest.since(first + len(raw) - cap).joined(waiting)
        value, mean = columns.value[own], columns.mean[own]
        mixed = raw if self._spec.transform is None else columns.mixed[own]
        return Run(value, mean, self.buckets, mixed, first, pending)

    def _aging(self, issued: int, due: set[int]) -> list[tuple[Any, ...]]:
        """Return open tickets that give back a reserve when they expire within a batch."""
        return [] if self._spec.raw_safe is None else self._counter.aging(issued, due)

    def _held(self, number: int) -> tuple[Any, ...]:
        """Return an open ticket as the desk keeps it."""
        ticket = self._counter.find(number, self.issued)
        if self._timed and ticket.time is None:
            raise self._no_time(f"{ticket!r} without one")
        self._counter.file_all()
        found = self._counter.desk.get_number(0, number)
        assert found is not None
        return found

    def _play_events(self, plan: Schedule, numbers: Words, columns: Columns, told: Bits) -> None:
        """Play the events of a batch, expiry among them where it gives back a reserve."""
        self._rows.check_room(self._row, plan.learned)
        self._counter.file_all()
        if self._spec.raw_safe is not None:
            plan = plan.with_expiry(numbers, self.max_open)
        self._rows.events(self._row, plan.events, *columns.for_events(told))
        self._rows.use_array()

    # ----------------------------------------------------------------------- logs

    def _played(self, log: Log, columns: Columns, told: Bits, issued: int) -> Played:
        outcomes = np.zeros(len(columns.raw), np.uint8)
        settled = log.ticket[~log.forecasts]
        outcomes[settled] = told
        numbers = columns.number.copy()
        numbers[len(log.held) :] = issued + np.arange(len(log.keys))
        open_rows = np.setdiff1d(np.arange(len(columns.raw)), settled)
        gone = issued + len(log.keys) - numbers[open_rows] > self.max_open
        plan = Schedule(log.events, open_rows[~gone], open_rows[gone])
        self._play_events(plan, numbers, columns, outcomes)
        self._counter.drop(log.held)
        # First the old ones go: a new ticket may have the name of one that expired on the way.
        self._expire_old(self.issued)
        self._note_closed(log, np.concatenate([settled, plan.expired]), numbers, len(settled))
        keys = log.keys[plan.waiting - len(log.held)]
        self._counter.desk.extend(columns.lines(plan.waiting, keys))
        return columns.told(log.ticket, numbers[log.ticket])

    def _note_closed(self, log: Log, rows: Words, numbers: Words, settled: int) -> None:
        """Remember what became of named tickets, of one name in the order of their numbers."""
        order = np.argsort(numbers[rows])[-CLOSED:]
        keys = np.concatenate([np.array([found[0] for found in log.held], np.int64), log.keys])
        self._counter.note_closed(keys[rows[order]].tolist(), (order >= settled).tolist())
