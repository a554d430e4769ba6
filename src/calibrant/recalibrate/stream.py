"""One stream: a row, its gate, its open tickets, and the verbs that all kinds share.

A kind of stream says how a forecast is issued and learned in its row; everything about tickets,
late outcomes, order, threads and stored state is here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

import numpy as np

from calibrant.calibrators.arena import Arena
from calibrant.calibrators.layout import Layout
from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.core.gate import Gate
from calibrant.core.seal import opened, opened_data, sealed, sealed_data
from calibrant.core.stateful import Stateful
from calibrant.errors import InvalidInput, StaleForecast
from calibrant.kernels.crowd import count_correction
from calibrant.kernels.index import machine
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, MOST_OUTSTANDING, ROUNDS, SECRET
from calibrant.recalibrate.body import packed, unpacked
from calibrant.recalibrate.closed import EXPIRED
from calibrant.recalibrate.counter import Counter
from calibrant.recalibrate.delivery import Pending, arrivals, checked, schedule, times
from calibrant.recalibrate.fork import watch
from calibrant.recalibrate.intact import Intact, TicketT
from calibrant.recalibrate.secret import (
    GIVEN,
    SEED,
    Secret,
    secret_of,
    secret_read,
    with_secret,
    without_secret,
)

MOST_NOTED: Final = 256
"""Predictions without an outcome that are remembered."""
NO_NOTES: Final[dict[Any, tuple[Any, ...]]] = {}
"""What streams without such predictions have in common."""


class Stream(Intact[TicketT], Stateful):
    """Forecasts whose outcomes come at once, late, or never.

    The state is one row of an arena (:mod:`calibrant.kernels.layout`) and the open tickets.  Every
    call holds the gate, so threads may share a stream.
    """

    __slots__ = (
        "__weakref__",
        "_arena",
        "_counter",
        "_earlier",
        "_gate",
        "_notes",
        "_row",
        "_secret",
        "_timed",
    )

    filed: ClassVar[bool] = False
    """Whether a journal may keep such streams: tickets as on the desk, all settings in the spec."""

    _gates: ClassVar[type[Gate]] = Gate
    _secret: Secret

    def _open(self, arena: Arena, counter: Counter[TicketT]) -> None:
        """Begin with a row and no open tickets, or with those of the counter."""
        self._arena, self._counter, self._row = arena, counter, arena.layout.row
        self._notes = NO_NOTES
        self._timed = False
        self._gate = self._gates()
        self._earlier: tuple[tuple[int, bytes], ...] = ()
        if self._secret.origin != SEED:
            watch(self)

    # ------------------------------------------------------------------ facts

    @property
    def issued(self) -> int:
        """Forecasts made so far."""
        return self._own(ISSUED)

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        return self._own(ROUNDS)

    @property
    def open(self) -> int:
        """Tickets that wait for their outcome."""
        with self._gate:
            return len(self._counter)

    @property
    def delay(self) -> int:
        """How many outcomes that came later were outstanding when a forecast was made, at most.

        One that was corrected was outstanding until then.  Counted from above: neither more than
        outcomes were ever missing or wrong at a forecast, nor more than forecasts were made
        between one and the last word about its outcome.
        """
        return min(self._own(LONGEST_LAG), self._own(MOST_OUTSTANDING))

    @property
    def max_open(self) -> int:
        """After how many newer forecasts a ticket expires."""
        return self._counter.max_open

    @property
    def secret_is_given(self) -> bool:
        """Whether the secret of the draws was given, so that a state can do without it."""
        return self._secret.origin == GIVEN

    # ---------------------------------------------------------------- one by one

    def _forecast(self, raw: Any, id: Any, time: Any) -> TicketT:
        """Announce a forecast for a checked raw one, and open a ticket for its outcome."""
        if id is not None or time is not None or self._timed:
            id, time = self._named(id, time)
        with self._gate:
            return self._open_ticket(raw, id, time)

    def _open_ticket(self, raw: Any, id: str | None, time: float | None) -> TicketT:
        """Announce a forecast within the gate."""
        if id is not None:
            self._counter.refuse_open(id)
        words, row = self._words(), self._row
        number, most = words[row + ISSUED], words[row + MOST_OUTSTANDING]
        try:
            ticket = self._issue(raw)
            ticket._time = time
            if id is not None:
                ticket._id = id
            self._counter.hand_out(ticket)
            if ticket.number >= self._counter.max_open:
                self._expire_old(ticket.number + 1)
        except BaseException:
            self._unless_handed_out(int(number), most)
            raise
        return ticket

    def _observe(self, ticket: Any, outcome: Any, time: Any) -> TicketT:
        """Learn the checked outcome of an open ticket."""
        with self._gate:
            return self._close_ticket(ticket, outcome, time)

    def _close_ticket(self, ticket: Any, outcome: Any, time: Any) -> TicketT:
        """Learn an outcome within the gate."""
        counter = self._counter
        found = counter.latest
        if found is None or found is not ticket:
            found = counter.find(ticket, self._own(ISSUED))
        if time is not None or self._timed:
            self._check_time(time, found)
        rounds = self._words()[self._row + ROUNDS]
        try:
            self._learn(found, outcome)
            found._outcome = outcome
            counter.close(found)
        except BaseException:
            # A kind learns wholly or not at all, and its own row says which.
            if self._own(ROUNDS) != rounds and counter.is_open(found):
                found._outcome = outcome
                counter.close(found)
            raise
        return found

    def correct(self, ticket: TicketT, outcome: Any, *, was: Any = None) -> TicketT:
        """Replace the outcome of a closed ticket that turned out to be wrong.

        The ticket is the one that ``observe`` returned, or what was stored of it: nothing is
        kept here of closed tickets, but for the latest 4,096 corrected ones which outcome stands.
        A correction of any other outcome of theirs is refused; of older ones it is where counts
        show it.

        Parameters
        ----------
        ticket, outcome
            The ticket, and its right outcome.
        was
            The outcome that is replaced; must be the one that stands.  Needed for a ticket that
            was stored before its outcome was known.
        """
        told, before = self._outcome(outcome), None if was is None else self._outcome(was)
        counter = self._counter
        with self._gate:
            stands = counter.replaced(ticket, told, before, self._own(ISSUED))
            known, ticket._outcome = ticket.outcome, stands
            earlier, kept = counter.corrections.get(ticket.number), self._kept(self._spans(ticket))
            try:
                count_correction(self._words(), self._row, ticket.number)
                self._correct(ticket, told)
                counter.corrections.note(ticket.number, told)
                known = told
            except BaseException:
                self._put_back(kept)
                counter.corrections.put_back(ticket.number, earlier)
                raise
            finally:
                ticket._outcome = known
        return ticket

    def expire(self, ticket: TicketT | int | str) -> TicketT:
        """Drop an open ticket whose outcome is known never to come; return it."""
        counter = self._counter
        with self._gate:
            found = counter.find(ticket, self._own(ISSUED))
            kept = self._kept(self._spans(found))
            try:
                self._forget([found.fields])
                counter.close(found, EXPIRED)
            except BaseException:
                if counter.is_open(found):
                    self._put_back(kept)
                else:
                    counter.close(found, EXPIRED)
                raise
        return found

    def _ours(self, ticket: TicketT | int | str) -> TicketT:
        """Return a ticket of this stream, open or closed, or an open one given by its id."""
        with self._gate:
            return self._counter.given_out(ticket, self._own(ISSUED))

    # -------------------------------------------------------------- late outcomes

    def _play_late(
        self,
        raws: Sequence[Any],
        outcomes: Sequence[Any],
        available: Any,
        time: Any,
        carry: Pending | None,
    ) -> tuple[list[TicketT], Pending]:
        """Play checked rounds one by one, each outcome when it is known; return their tickets.

        Tickets of rows that still wait are open afterwards, and what is pending says for when.
        """
        when = times(time, len(raws))
        known = when if available is None else arrivals(available, when)
        first, cap, counter = self._own(ISSUED), self.max_open, self._counter
        carried = (Pending() if carry is None else checked(carry, self._outcome)).since(first - cap)
        counter.check_waiting(carried.number, first)
        arriving = carried.available <= (when[-1] if len(when) else -np.inf)
        due, rest = carried.chosen(arriving), carried.chosen(~arriving)
        tickets: list[TicketT] = [counter.find(n, first) for n in due.number.tolist()]
        numbers = np.concatenate([due.number, first + np.arange(len(raws))]).astype(np.int64)
        arrives = np.concatenate([due.available, known])
        told = [*due.outcome.tolist(), *outcomes]
        plan = schedule(len(due), numbers, arrives, when, cap)
        stamps = None if time is None else when.tolist()
        for event in plan.events.tolist():
            if event >= 0:
                ticket = self._issue(raws[event - len(due)])
                ticket._time = None if stamps is None else stamps[event - len(due)]
                tickets.append(ticket)
                counter.hand_out(ticket)
                self._expire_old(ticket.number + 1)
            else:
                ticket = tickets[-1 - event]
                self._learn(ticket, told[-1 - event])
                ticket._outcome = told[-1 - event]
                counter.close(ticket)
        later = plan.waiting
        pending = Pending(numbers[later], arrives[later], np.array(told)[later])
        return tickets[len(due) :], rest.since(first + len(raws) - cap).joined(pending)

    # ------------------------------------------------------- predict, then learn

    def _noted(self, key: Any, note: tuple[Any, ...]) -> None:
        """Remember a prediction until its outcome is told, or many others were asked for."""
        notes = self._notes = self._notes or {}
        notes[key] = note
        if len(notes) > MOST_NOTED:
            del notes[next(iter(notes))]

    # --------------------------------------------------------------------- state

    def to_bytes(self, *, secret: bool = True, authenticate: bytes | None = None) -> bytes:
        """Return the whole state; treat it as secret, for it holds the secret of the coins.

        With ``secret=False`` without that: only whoever has the secret can go on from there.  It
        must have been given, as ``secret=``, when the stream was made.  With ``authenticate``, a
        key of 16 bytes or more, the state can only be read back with that key, and nobody without
        the key can have written or altered it.
        """
        return sealed(self._bytes(secret), authenticate)

    def to_dict(self, *, secret: bool = True, authenticate: bytes | None = None) -> dict[str, Any]:
        """Return the same as JSON-ready data."""
        document = self._document(secret)
        told = b"" if authenticate is None else document.to_bytes()
        return sealed_data(document.to_dict(), told, authenticate)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        secret: bytes | None = None,
        key: str | int | None = None,
        authenticate: bytes | None = None,
    ) -> Self:
        """Return the object whose :meth:`to_bytes` this is, written with that key or without.

        A state that was stored without its secret asks for ``secret`` and ``key`` as the stream
        was made with.
        """
        alone = secret is None and key is None and authenticate is None
        made = cls._of_known(data) if alone and type(data) is bytes else None
        if made is not None:
            return made
        document = Document.from_bytes(opened(data, authenticate), cls.kind, cls.version)
        return cls._from_document(with_secret(document, secret, key))

    @classmethod
    def _of_known(cls, data: bytes) -> Self | None:
        """Return the object of a state that is read without a document; None of all others."""
        return None

    @classmethod
    def from_dict(
        cls,
        data: dict[str, Any],
        *,
        secret: bytes | None = None,
        key: str | int | None = None,
        authenticate: bytes | None = None,
    ) -> Self:
        """Return the object whose :meth:`to_dict` this is, as :meth:`from_bytes` does."""
        state = opened_data(data, authenticate)
        document = Document.from_dict(state, cls.kind, cls.version)
        return cls._from_document(with_secret(document, secret, key))

    def _bytes(self, secret: bool = True) -> bytes:
        return self._document(secret).to_bytes()

    def _document(self, secret: bool = True) -> Document:
        with self._gate:
            arrays = self._arrays(secret)
            settings, more = self._stored()
            if not secret:
                more = self._without_secret(more)
        made = Document(self.kind, settings, arrays | more, self.version)
        return made if secret else without_secret(made, self._secret)

    def _without_secret(self, arrays: dict[str, Words]) -> dict[str, Words]:
        """Return what is stored besides the row and the tickets without the secret."""
        return arrays

    def _arrays(self, secret: bool = True) -> dict[str, Words]:
        """Return the row, with or without its secret, and the open tickets as they are stored."""
        tickets = {"tickets": self._counter.words()}
        if secret:
            return self._rowed() | tickets | self._counter.corrections.stored()
        row = self._arena.row()
        row[SECRET : SECRET + 2] = 0
        return self._rowed(row) | tickets | self._counter.corrections.stored()

    def _rowed(self, row: Words | None = None) -> dict[str, Words]:
        """Return the row as it is stored, or another one."""
        return {"row": packed(self._arena.row() if row is None else row, self._arena.layout)}

    def _load_tickets(self, arrays: dict[str, Words]) -> None:
        """Open the tickets that a document says were open, and know those that were corrected."""
        if (corrected := arrays.get("corrected")) is not None:
            self._counter.corrections.load(corrected, self._own(ISSUED))
        if len(words := arrays["tickets"]):
            lines = words.reshape(-1, self._counter.desk.stride)
            self._check_tickets(lines)
            self._counter.desk.load(lines)

    @staticmethod
    def _secret_in(document: Document, row: Words) -> Secret:
        """Return the secret that a document holds in its row, and where that came from."""
        return secret_read(document, row[SECRET : SECRET + 2].astype("<i8").tobytes())

    @staticmethod
    def _verified(words: Words, layout: Layout) -> Words:
        """Return the row that a document holds, if kernels can work with it."""
        row = unpacked(words, layout)
        layout.verify(row)
        if row[ROUNDS] > row[ISSUED]:
            raise ValueError(f"{row[ROUNDS]} outcomes of {row[ISSUED]} forecasts")
        return row

    def _named(self, id: Any, time: Any) -> tuple[str | None, float | None]:
        """Return name and time of a forecast, checked."""
        check.name(id)
        if time is None and self._timed:
            raise self._no_time(time)
        return id, None if time is None else check.moment(time)

    def _check_time(self, time: Any, ticket: TicketT) -> None:
        """Refuse an outcome from before its forecast, or one whose forecast lacks a time."""
        if self._timed and ticket.time is None:
            raise self._no_time(f"{ticket!r} without one")
        told = None if time is None else check.moment(time)
        if told is not None and ticket.time is not None and told < ticket.time:
            rule = f"time must not be before the forecast's {ticket.time!r}"
            raise InvalidInput(f"{rule}, got {told!r}")

    def _no_time(self, given: Any) -> InvalidInput:
        told = "time must be given to a rule that forgets in time, by forecast or replay"
        return InvalidInput(f"{told}, got {given}")

    def compile(self) -> Self:
        """Let Numba compile the steps of one-by-one calls, which then take half the time.

        Takes some seconds the first time on a machine, less from the cache on disk, from where
        :class:`calibrant.Calibrant` takes the steps by itself within 1,024 rounds; once they are
        loaded, new ones begin with them.  Does nothing where Numba is not installed.  The forecasts
        are the same to the bit.
        """
        machine()
        with self._gate:
            self._take_over()
        return self

    def _take_over(self) -> None:
        """Go on with machine code; once its array is at hand, an interrupt waits for the rest."""
        try:
            self._compile()
        except BaseException:
            if self._arena.listed is None:
                self._compile()
            raise

    # ------------------------------------------------------------ forked processes

    def _renew(self) -> None:
        """Throw coins of its own from now on, in a forked process; open tickets stay open.

        A stream that another thread was working on at the fork stays as it is: nobody can call
        it in the forked process.
        """
        if self._gate.is_free:
            self._earlier = (*self._earlier, (self._own(ISSUED), self._secret))
            self._notes.clear()
            self._secret = secret_of(None, None)
            self._reseat()

    def _secret_at(self, number: int) -> bytes:
        """Return the secret that fixed the coins of a ticket."""
        older = (secret for issued, secret in self._earlier if number < issued)
        return next(older, self._secret)

    # ------------------------------------------------------- what a kind of stream does

    @abstractmethod
    def _issue(self, raw: Any) -> TicketT:
        """Make a forecast in the row; return its ticket."""

    @abstractmethod
    def _learn(self, ticket: TicketT, outcome: Any) -> None:
        """Learn the outcome of an open ticket."""

    @abstractmethod
    def _correct(self, ticket: TicketT, outcome: Any) -> None:
        """Replace the outcome of a closed ticket."""

    @abstractmethod
    def _outcome(self, outcome: Any) -> Any:
        """Return a checked outcome."""

    @abstractmethod
    def _reseat(self) -> None:
        """Let all coins, and the fingerprint of tickets, follow from the secret as it is now."""

    @abstractmethod
    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        """Return settings, and what is stored besides the row and the tickets."""

    @abstractmethod
    def _check_tickets(self, lines: Words) -> None:
        """Refuse tickets that cannot have been issued."""

    def _compile(self) -> None:
        """Compile the steps of one-by-one calls, where there are any to compile."""


def overtaken(raw: Any) -> StaleForecast:
    """Return the error that a prediction is not the next round's of its bucket any more."""
    return came_between(f"a forecast in the bucket of {raw!r}")


def came_between(what: str) -> StaleForecast:
    """Return the error that a prediction is not the next round's any more."""
    told = "came between sample_one and learn_one; use forecast and observe where rounds overlap"
    return StaleForecast(f"{what} {told}")
