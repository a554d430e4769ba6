"""Wait until the time for an outcome is over, or learn from those that are observed at all."""

from __future__ import annotations

import copy
import hashlib
from abc import abstractmethod
from itertools import takewhile
from typing import Any, Final, NamedTuple, Protocol, Self, TypeAlias

from calibrant import errors
from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.core.gate import Gate
from calibrant.core.seal import opened, opened_data
from calibrant.core.stateful import Stateful
from calibrant.core.ticket import Ticket
from calibrant.kernels.coin import coin
from calibrant.recalibrate.closed import EXPIRED, SETTLED, Closed, key_of, not_open
from calibrant.recalibrate.corrections import Corrections
from calibrant.recalibrate.counter import checked_id
from calibrant.recalibrate.fork import watch
from calibrant.recalibrate.secret import SAFE, Coins, secret_of
from calibrant.recalibrate.stream import Stream

Key: TypeAlias = str | int | None


class Forecaster(Protocol):
    """Anything that issues tickets and learns their outcomes by id."""

    def forecast(self, raw: float, *, id: str | None = None, time: check.When = None) -> Ticket:
        """Announce a forecast for a raw one."""

    def observe(self, ticket: Ticket | int | str, outcome: int, time: check.When = None) -> Ticket:
        """Learn the outcome of a ticket."""


class Waiting(NamedTuple):
    """A forecast whose horizon has not passed: when, of what, and what is known already."""

    time: float
    raw: float
    outcome: int | None


class Around(Stateful):
    """What is put around a recalibrator, and stored beside its state.

    A state holds everything but the recalibrator's own; two are equal if their recalibrators are,
    too.  A copy, and a pickle, take the recalibrator with them.  Threads may share one.
    """

    __slots__ = ("_gate", "_recalibrator")

    _gate: Gate
    _recalibrator: Forecaster

    def _put_around(self, recalibrator: Forecaster) -> None:
        self._recalibrator, self._gate = recalibrator, Gate()

    @property
    def recalibrator(self) -> Forecaster:
        """The recalibrator that makes the forecasts."""
        return self._recalibrator

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        recalibrator: Forecaster | None = None,
        *,
        authenticate: bytes | None = None,
    ) -> Self:
        """Return what :meth:`to_bytes` stored, around a recalibrator stored at the same time.

        With the key with which the state was written, or without one.
        """
        state = opened(data, authenticate)
        return cls._around(Document.from_bytes(state, cls.kind, cls.version), recalibrator)

    @classmethod
    def from_dict(
        cls,
        data: dict[str, Any],
        recalibrator: Forecaster | None = None,
        *,
        authenticate: bytes | None = None,
    ) -> Self:
        """Return what :meth:`to_dict` stored, as :meth:`from_bytes` does."""
        state = opened_data(data, authenticate)
        return cls._around(Document.from_dict(state, cls.kind, cls.version), recalibrator)

    @classmethod
    def _around(cls, document: Document, recalibrator: Forecaster | None) -> Self:
        if recalibrator is None:
            told = "recalibrator must be the one that was stored beside the state"
            raise errors.InvalidInput(f"{told}, got None")
        made = cls.__new__(cls)
        made._put_around(recalibrator)
        made._become(document)
        return made

    def copy(self) -> Self:
        """Return an independent object in the same state, around a copy of the recalibrator."""
        with self._gate:
            document, inner = self._written(), copy.deepcopy(self._recalibrator)
        return self._around(document, inner)

    def _document(self) -> Document:
        with self._gate:
            return self._written()

    @abstractmethod
    def _written(self) -> Document:
        """Return what is stored, within the gate."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Around):
            return NotImplemented
        return super().__eq__(other) and self._recalibrator == other._recalibrator

    __hash__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(), self._recalibrator)


class WaitForHorizon(Around):
    """Let a recalibrator learn an outcome only once its horizon has passed, positives too.

    The outcome of a forecast is 1 if its event happens within ``horizon`` of the forecast.
    Events are known when they happen and their absence only at the end; a recalibrator
    that learned both at once would see too many ones at any moment.  Here every outcome is
    learned at the same age, so what is learned is what happened.

    Parameters
    ----------
    recalibrator
        Anything with the ``forecast`` and ``observe`` of
        :class:`~calibrant.recalibrate.Recalibrator`.
    horizon
        How long an event may take to count, in the units of ``time``, reporting included.

    Notes
    -----
    Outcomes are late here, with D the number of forecasts within one horizon.  What is promised
    is what the recalibrator's theorem says about that: for ``foster_hart`` and
    ``regret_matching`` the part of the bound that falls with the rounds is multiplied by 1 + 2D;
    for the other rules, the default of ``Calibrant`` among them, nothing is proved, and their
    certificates quote no bound once an outcome was late.  A ticket that the recalibrator no
    longer holds when its horizon has passed is counted in ``lost``: give it a ``max_open`` above D.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> rec = Recalibrator(seed=1)
    >>> waiting = WaitForHorizon(rec, horizon=30.0)
    >>> first = waiting.forecast(0.1, time=0.0)
    >>> _ = waiting.observe(first, 1, time=3.0)
    >>> second = waiting.forecast(0.1, time=20.0)
    >>> rec.rounds, waiting.waiting
    (0, 2)
    >>> third = waiting.forecast(0.1, time=31.0)
    >>> rec.rounds, first.outcome, waiting.waiting
    (1, 1, 2)
    """

    kind = "wait for horizon"
    treatment: Final = "wait for the horizon"

    __slots__ = ("_closed", "_entries", "_handed_out", "clock", "horizon", "lost")

    def __init__(self, recalibrator: Forecaster, horizon: float) -> None:
        self._put_around(recalibrator)
        self._begin(horizon)

    def _begin(self, horizon: float) -> None:
        self.horizon = check.real(horizon, "horizon", low=0.0, rule="a finite number of at least 0")
        self._entries: dict[int | str, Waiting] = {}
        # The tickets themselves, so that callers see what became of theirs; not stored.
        self._handed_out: dict[int | str, Ticket] = {}
        # What became of those whose horizon has passed; not stored either.
        self._closed = Closed()
        self.clock: float | None = None
        self.lost = 0

    @property
    def waiting(self) -> int:
        """Forecasts whose horizon has not passed."""
        return len(self._entries)

    def forecast(self, raw: float, *, time: check.Time, id: str | None = None) -> Ticket:
        """Announce a forecast; what is due by then is learned first."""
        with self._gate:
            value, now = self._checked(raw, time, id)
            self._advance(now)
            entry = Waiting(now, value, None)
            ticket = self._recalibrator.forecast(value, id=id, time=now)
            name = ticket.id
            self._entries[name], self._handed_out[name] = entry, ticket
        return ticket

    def _checked(self, raw: Any, time: Any, id: Any) -> tuple[float, float]:
        """Return raw forecast and time, or refuse a forecast before any time passes."""
        value, now = check.probability(raw), self._checked_time(time)
        check.name(id)
        if id in self._entries and not self._is_due(self._entries[id], now):
            raise errors.RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")
        return value, now

    def observe(self, ticket: Ticket | int | str, outcome: int, time: check.Time) -> Ticket | None:
        """Note what became known of an open ticket; it is learned when the horizon has passed.

        Returns the ticket, whose own outcome is set then; None of one that was stored, and is
        known by its id alone.  An event (outcome 1) later than the horizon leaves the outcome 0.
        An outcome of 0 is only needed where it is known early that there will be no event.
        """
        with self._gate:
            return self._observe(ticket, outcome, time)

    def _observe(self, ticket: Ticket | int | str, outcome: int, time: check.Time) -> Ticket | None:
        told, when = check.outcome(outcome), check.moment(time)
        name, entry = self._find(ticket)
        if entry.outcome is not None:
            rule = f"ticket {name!r} must have no outcome yet"
            raise errors.RepeatedTicket(f"{rule}, got {told} again")
        if when < entry.time:
            rule = f"time must not be before the forecast's {entry.time!r}"
            raise errors.InvalidInput(f"{rule}, got {time!r}")
        in_time = when <= entry.time + self.horizon
        self._entries[name] = entry._replace(outcome=told if in_time else 0)
        return self._handed_out.get(name, ticket if isinstance(ticket, Ticket) else None)

    def advance(self, time: check.Time) -> list[Ticket]:
        """Let time pass; learn all outcomes whose horizon has, and return their tickets.

        An event at the very end of the horizon still counts, so a ticket is due *after* it.
        """
        with self._gate:
            return self._advance(self._checked_time(time))

    def _advance(self, now: float) -> list[Ticket]:
        settled = []
        for name in self._due(now):
            entry, ticket = self._entries[name], self._handed_out.get(name, name)
            how, due = SETTLED, entry.time + self.horizon
            try:
                settled.append(self._recalibrator.observe(ticket, entry.outcome or 0, time=due))
            except errors.RepeatedTicket:
                # Learned already: an interrupt came before that was noted here.
                settled += [ticket] if isinstance(ticket, Ticket) else []
            except errors.TicketError:
                how = EXPIRED
            self._closed.note(key_of(name), how)
            self._handed_out.pop(name, None)
            # Only now, and no call between these: interrupted before, all is done again.
            self.lost += how is EXPIRED
            del self._entries[name]
        self.clock = now
        return settled

    def due(self, time: check.Time) -> list[int | str]:
        """Return the ids whose horizon has passed by ``time`` and that are not settled."""
        with self._gate:
            return self._due(check.moment(time))

    def _due(self, time: float) -> list[int | str]:
        entries = self._entries.items()
        return [name for name, _ in takewhile(lambda entry: self._is_due(entry[1], time), entries)]

    def _is_due(self, entry: Waiting, time: float) -> bool:
        return entry.time + self.horizon < time

    def find(self, ticket: Ticket | int | str) -> tuple[int | str, Waiting]:
        """Return id and entry of a ticket whose horizon has not passed."""
        with self._gate:
            return self._find(ticket)

    def _find(self, ticket: Ticket | int | str) -> tuple[int | str, Waiting]:
        name = ticket.id if isinstance(ticket, Ticket) else checked_id(ticket)
        how = None if name in self._entries else self._closed.get(key_of(name))
        if how is not None:
            raise not_open(name, None, how, 0, 0)
        if name not in self._entries:
            raise errors.UnknownTicket(
                f"ticket {name!r} must be one whose horizon has not passed, got none or a settled "
                "one: to change an outcome that was learned, use the recalibrator's correct()"
            )
        entry = self._entries[name]
        if isinstance(ticket, Ticket) and not self._is_of(ticket, entry):
            if ticket.outcome is not None:
                raise not_open(name, None, SETTLED, 0, 0)
            told = "ticket must be of this recalibrator, got another's"
            raise errors.ForeignTicket(f"{told}: {ticket!r}")
        return name, entry

    def _is_of(self, ticket: Ticket, entry: Waiting) -> bool:
        """Say whether a ticket is the one of an entry, as far as that is known after a restart."""
        own = self._handed_out.get(ticket.id, ticket)
        made = ticket.time, ticket.raw, own.whose, own.number
        return made == (entry.time, entry.raw, ticket.whose, ticket.number)

    def _written(self) -> Document:
        held = self._entries.items()
        entries = [[name, at.hex(), raw.hex(), told] for name, (at, raw, told) in held]
        clock = None if self.clock is None else self.clock.hex()
        settings = {"horizon": self.horizon.hex(), "clock": clock, "lost": self.lost}
        return Document(self.kind, settings | {"entries": entries})

    def _restore(self, document: Document) -> None:
        s = document.settings
        self._begin(float.fromhex(s["horizon"]))
        self.clock = None if s["clock"] is None else check.moment(float.fromhex(s["clock"]))
        self.lost = check.whole(s["lost"], "lost")
        self._entries = {checked_id(name): _entry(*rest) for name, *rest in s["entries"]}
        times = [entry.time for entry in self._entries.values()]
        if len(times) < len(s["entries"]) or times != sorted(times):
            raise ValueError("forecasts that share an id, or that were not made in this order")

    def __repr__(self) -> str:
        told = f"horizon={self.horizon:g}, {self.waiting} wait"
        return f"WaitForHorizon({self._recalibrator!r}, {told})"

    def _checked_time(self, time: Any) -> float:
        now = check.moment(time)
        if self.clock is not None and now < self.clock:
            raise errors.InvalidInput(f"time must not be before {self.clock!r}, got {time!r}")
        return now


def _entry(time: str, raw: str, outcome: int | None) -> Waiting:
    told = None if outcome is None else check.outcome(outcome)
    return Waiting(check.moment(float.fromhex(time)), check.probability(float.fromhex(raw)), told)


DOMAIN: Final = 0x0B5E
"""A number that tells the coins here from those of a recalibrator with the same seed."""


class ObservedOnly(Around):
    """Undo a known bias in which outcomes are seen, by dropping some of them at random.

    A round whose outcome was going to be seen with probability ``q`` is learned with
    probability ``floor / q``.  Then every round is learned with probability ``floor``,
    whatever its forecast was: the rounds that are learned are a fair selection of all.
    Weights 1/q would have the same mean; whole-number counts have no room for them.

    Parameters
    ----------
    recalibrator
        Anything with the ``forecast`` and ``observe`` of
        :class:`~calibrant.recalibrate.Recalibrator`.
    floor
        The smallest probability with which an outcome is seen.
    seed, key
        What the dropping depends on besides the ticket's number; as in ``Recalibrator``.

    Notes
    -----
    Exact if ``q`` is the true probability of seeing the outcome given everything that was
    known when that was decided, and the decision did not depend on the outcome.
    Nothing can be learned about forecasts whose outcome is never seen: ``q`` must be at
    least ``floor`` everywhere.  About ``floor`` times the rounds are learned, so bounds hold
    with that many.  Tickets that are dropped or never seen stay open until they expire.  Of the
    latest 4,096 that were told is known that they were: none of these is told twice.

    References
    ----------
    Horvitz and Thompson, J. Am. Stat. Assoc. 47 (1952): weights by 1/q.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> rec = Recalibrator(seed=1)
    >>> seen = ObservedOnly(rec, floor=0.1, seed=2)
    >>> for k in range(1000):
    ...     ticket = seen.forecast(0.8)
    ...     _ = seen.observe(ticket, 1, probability=0.5)
    >>> seen.observed, seen.learned == rec.rounds, 150 < seen.learned < 250
    (1000, True, True)
    """

    kind = "observed only"
    treatment: Final = "thinned to one probability"

    __slots__ = ("__weakref__", "_coins", "_told", "floor", "learned", "observed")

    def __init__(
        self, recalibrator: Forecaster, floor: float, *, seed: int | None = None, key: Key = None
    ) -> None:
        self._put_around(recalibrator)
        self.floor = _floor(floor)
        self._coins: Coins | OldCoins = Coins(_own(secret_of(seed, key)), SAFE, DOMAIN)
        self.observed = self.learned = 0
        # What was told of the latest tickets, those that were dropped among them.
        self._told = Corrections()
        if seed is None:
            watch(self)

    def forecast(self, raw: float, *, id: str | None = None, time: check.When = None) -> Ticket:
        """Announce a forecast."""
        return self._recalibrator.forecast(raw, id=id, time=time)

    def observe(
        self, ticket: Ticket, outcome: int, *, probability: float, time: check.When = None
    ) -> Ticket | None:
        """Report an outcome that was seen, and how likely it was to be seen.

        Returns the ticket if its outcome was learned, or None if it was dropped.  The ticket
        itself is needed: the coin depends on its number.
        """
        told, rule = check.outcome(outcome), f"a number from {self.floor:g}, the floor, to 1"
        chance = check.real(probability, "probability", low=self.floor, high=1.0, rule=rule)
        if not isinstance(ticket, Ticket):
            raise errors.InvalidType(f"ticket must be a Ticket, got {ticket!r}")
        with self._gate:
            if self._told.get(ticket.number) is not None:
                raise not_open(ticket.id, None, SETTLED, 0, 0)
            if isinstance(self._recalibrator, Stream):
                self._recalibrator._ours(ticket)
            return self._take(ticket, told, chance, time)

    def _take(self, ticket: Ticket, told: int, chance: float, time: check.When) -> Ticket | None:
        """Learn or drop an outcome; one that was learned counts, also after an interrupt."""
        done, known = None, ticket.outcome
        learns = self._coins.at(ticket.number) * chance < self.floor
        try:
            self._told.note(ticket.number, told)
            if learns:
                done = self._recalibrator.observe(ticket, told, time=time)
        except BaseException:
            if ticket.outcome is None or known is not None:
                self._told.put_back(ticket.number, None)
            else:
                self.learned, self.observed = self.learned + 1, self.observed + 1
            raise
        self.learned, self.observed = self.learned + learns, self.observed + 1
        return done

    def _written(self) -> Document:
        counts = {"observed": self.observed, "learned": self.learned}
        made = self._coins
        own = {"key": made.key} if isinstance(made, OldCoins) else {"secret": made.secret.hex()}
        return Document(self.kind, {"floor": self.floor.hex()} | own | counts, self._told.stored())

    def _restore(self, document: Document) -> None:
        s = document.settings
        self.floor = _floor(float.fromhex(s["floor"]))
        if "key" in s:
            self._coins = OldCoins(check.whole(s["key"], "key", high=(1 << 63) - 1))
        else:
            secret = bytes.fromhex(s["secret"])
            if len(secret) != 16:
                raise ValueError(f"a secret of {len(secret)} bytes")
            self._coins = Coins(secret, SAFE, DOMAIN)
        watch(self)
        self.observed = check.whole(s["observed"], "observed")
        self.learned = check.whole(s["learned"], "learned", high=self.observed)
        self._told = Corrections()
        for words in document.arrays.values():
            self._told.load(words, 1 << 62)

    def __repr__(self) -> str:
        told = f"learned {self.learned} of {self.observed} observed"
        return f"ObservedOnly({self._recalibrator!r}, floor={self.floor:g}, {told})"

    def _renew(self) -> None:
        """Throw coins of its own from now on, in a forked process."""
        self._coins = Coins(_own(secret_of(None, None)), SAFE, DOMAIN)


class OldCoins(NamedTuple):
    """The coins of a state that was written when a key of 63 bits fixed them."""

    key: int

    def at(self, clock: int) -> float:
        """Return the coin at a clock."""
        return coin(self.key, clock)


def _floor(floor: float) -> float:
    return check.real(floor, "floor", low=1e-9, high=1.0, rule="a number from 1e-9 to 1")


def _own(secret: bytes) -> bytes:
    return hashlib.blake2b(secret, digest_size=16, person=b"observed only").digest()
