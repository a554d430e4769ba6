"""What all streams of numbers have in common: a method in a row, and outcomes that are reals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, Generic, TypeVar

import numpy as np

from calibrant.calibrators.arena import Arena
from calibrant.core import check
from calibrant.core.arrays import Reals, Words, frozen
from calibrant.core.codec import Document
from calibrant.core.stateful import Migration
from calibrant.errors import InvalidType
from calibrant.kernels.index import NAMED
from calibrant.kernels.layout import ISSUED, MOST_OUTSTANDING, ROUNDS, SECRET
from calibrant.recalibrate import version2
from calibrant.recalibrate.counter import Counter
from calibrant.recalibrate.delivery import Pending, times
from calibrant.recalibrate.in_turn import InTurn
from calibrant.recalibrate.secret import COIN_CODES, SAFE, Coins, Secret, fingerprint
from calibrant.recalibrate.spec import MAX_OPEN
from calibrant.recalibrate.stream import came_between
from calibrant.registry import Registry
from calibrant.regression.method import Method, Seat, Ties
from calibrant.regression.spec import NumberSpec
from calibrant.regression.ticket import Issuer, NumberTicket

TicketT = TypeVar("TicketT", bound=NumberTicket)
MethodT = TypeVar("MethodT", bound=Method)

NEXT: Final = "next"
"""Under which the last prediction is noted."""
FOLLOWS: Final = "alike", "even", "capped", "bent"
"""Settings that states of some earlier version lack."""


class NumberStream(InTurn[TicketT], Generic[TicketT, MethodT]):
    """Forecasts of numbers whose outcomes come by ticket, in any order.

    A kind names its methods, the setting that they aim at and a choice of its own, and says how a
    forecast is issued and an outcome learned.
    """

    __slots__ = ("_issuer", "_method", "_seat", "_spec", "_ties")

    version: ClassVar[int] = 3
    migrations: ClassVar[dict[int, Migration]] = {2: version2.migrated}
    tickets: ClassVar[type[Any]]
    methods: ClassVar[Registry[Any]]
    aim: ClassVar[tuple[str, Callable[[Any], Any]]]
    choice: ClassVar[tuple[str, tuple[str, ...]]]

    _method: MethodT

    def _configure(self, settings: dict[str, Any]) -> None:
        """Make the method that settings ask for."""
        (aim, checked), (name, allowed) = self.aim, self.choice
        made, target = self.methods.get(settings["method"]), checked(settings[aim])
        choice = check.choice(settings[name], name, allowed)
        method = self._method = _made(made, target, settings["options"])
        how = check.choice(settings.get("coins", SAFE), "coins", tuple(COIN_CODES))
        follows = (settings.get(what, True) is True for what in FOLLOWS)
        options = tuple(sorted(method.options().items()))
        told = method.name, _frozen(target), choice, options, how, *follows
        spec = self._spec = NumberSpec(self.kind, *told)
        method.throw(how)
        method.follow(spec.alike, spec.even, spec.capped)
        method.bend(spec.bent)

    def _begin(self, secret: Secret, max_open: Any, row: Words | None = None) -> None:
        """Set up the row of the method: a fresh one, or what it was when it was stored."""
        cap = check.whole(max_open, "max_open", low=1, high=MAX_OPEN)
        whose, method = fingerprint(secret, self.kind, self._settings()), self._method
        self._secret = secret
        choice = self._spec.choice
        self._ties = Ties(choice == "random", Coins(secret, self._spec.coins))
        drawn = frozen(method.levels), method.drawn
        self._issuer = Issuer(whose, *drawn, choice == "given", method.advice)
        arena = Arena(method.layout)
        own = arena.flat()[arena.layout.row :]
        if row is not None:
            own[:] = row
        own[SECRET : SECRET + 2] = np.frombuffer(secret, "<i8")
        self._seat = Seat(arena)
        self._open(arena, Counter(self.tickets, self._issuer, whose, "d" + method.fields, cap))
        method.sit(self._seat, secret)

    def _reseat(self) -> None:
        secret, arena = self._secret, self._arena
        whose = fingerprint(secret, self.kind, self._settings())
        self._ties = self._ties._replace(coins=Coins(secret, self._spec.coins))
        self._issuer = self._issuer._replace(fingerprint=whose)
        self._counter.issue_as(self._issuer, whose)
        arena.flat()[self._row + SECRET : self._row + SECRET + 2] = np.frombuffer(secret, "<i8")
        self._method.sit(self._seat, secret)

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._method.name

    @property
    def spec(self) -> NumberSpec:
        """What this stream is, apart from its state."""
        return self._spec

    # -------------------------------------------------------------- one by one

    def observe(
        self, ticket: TicketT | int | str, outcome: float, time: check.When = None
    ) -> TicketT:
        """Report the outcome of an open ticket, given itself or its id; in any order.

        Returns the ticket with its outcome, which :meth:`correct` needs later.
        """
        return self._observe(ticket, check.real(outcome, "outcome"), time)

    def _note(self) -> None:
        """Remember that a prediction was looked at in this state."""
        self._noted(NEXT, (self._own(ISSUED), self._own(ROUNDS)))

    def _play_round(self, raw: Any, outcome: float) -> None:
        """Make a round at once, unless another has overtaken the prediction that was looked at."""
        with self._gate:
            looked, now = self._notes.get(NEXT), (self._own(ISSUED), self._own(ROUNDS))
            if looked is not None and looked != now:
                self._notes.pop(NEXT)
                raise came_between("another round")
            most = self._own(MOST_OUTSTANDING)
            try:
                self._learn(self._issue(raw), outcome)
                self._notes.pop(NEXT, None)
                self._expire_old(self._own(ISSUED))
            except BaseException:
                if self._own(ROUNDS) == now[1]:
                    self._take_back(now[0], most)
                self._expire_old(self._own(ISSUED))
                raise

    def _take_back(self, number: int, most: int) -> None:
        if self._own(ISSUED) != number:
            self._method.withdraw(number)
        super()._take_back(number, most)

    def _learn(self, ticket: TicketT, outcome: float) -> None:
        met, method = self._met(ticket, outcome), self._method
        if method.whole:
            method.learn(ticket, met)
            return
        kept = method.kept()
        try:
            method.learn(ticket, met)
            self._seat.count_outcome(ticket._number)
        except BaseException:
            self._put_back(kept)
            method.mend()
            raise

    def _correct(self, ticket: TicketT, outcome: float) -> None:
        before, after = (self._met(ticket, told) for told in (ticket.outcome, outcome))
        self._method.amend(ticket, before, after)

    @abstractmethod
    def _met(self, ticket: TicketT, outcome: Any) -> Any:
        """Return what a method learns of the outcome of a ticket."""

    def _compile(self) -> None:
        self._method.compile()

    def _outcome(self, outcome: Any) -> float:
        return check.real(outcome, "outcome")

    # ---------------------------------------------------------------- batches

    def _play(
        self, prompt: Callable[[], Any], raws: Iterable[Any], told: Reals, *late: Any
    ) -> tuple[Any, int, Pending]:
        """Play a batch at once, or one by one if outcomes come late: available, time and carry.

        Returns what was announced, the number of the first round, and what is pending.
        """
        available, time, carry = late
        times(time, len(told))
        late_ones = available is not None or carry is not None
        with self._gate:
            first = self.issued
            if late_ones or self._method.in_turn:
                given = list(raws), told.tolist(), *late
                tickets, pending = self._whole(lambda: self._play_late(*given))
                return self._gathered(tickets), first, pending
            return self._whole(lambda: self._at_once(prompt, len(told))), first, Pending()

    def _at_once(self, prompt: Callable[[], Any], rounds: int) -> Any:
        """Play a batch whose outcomes come at once; return what was announced."""
        first, played = self.issued, prompt()
        self._seat.count_rounds(rounds)
        self._expire_old(first + rounds)
        return played

    @abstractmethod
    def _gathered(self, tickets: list[TicketT]) -> Any:
        """Return what tickets announced as a method says it of a batch."""

    # ------------------------------------------------------------------ state

    def _counted(self) -> tuple[str, int, int, int, int]:
        """Return what a certificate starts with: method, rounds, open, expired and delay."""
        rounds, waiting = self.rounds, len(self._counter)
        return self.method, rounds, waiting, self.issued - rounds - waiting, self.delay

    def __repr__(self) -> str:
        told = self._settings()
        told |= told.pop("options")
        known = ((name, len(v) if isinstance(v, list) else v) for name, v in told.items())
        listed = ", ".join(f"{name}={value!r}" for name, value in known)
        return f"{type(self).__name__}({listed}, rounds={self.rounds})"

    def _settings(self) -> dict[str, Any]:
        """Return the settings, the cap on open tickets aside."""
        spec = self._spec
        told = {"method": spec.method, self.aim[0]: spec.listed, self.choice[0]: spec.choice}
        return told | {"options": self._method.options()}

    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        told = {"max_open": self.max_open, "coins": self._spec.coins}
        return self._settings() | told | {"secret_from": self._secret.origin}, {}

    def _restore(self, document: Document) -> None:
        settings = dict(document.settings)
        cap = settings.pop("max_open")
        self._configure(settings)
        row = self._verified(document.arrays["row"], self._method.layout)
        self._method.verify(row)
        self._begin(self._secret_in(document, row), cap, row)
        self._load_tickets(document.arrays)

    def _check_tickets(self, lines: Words) -> None:
        key, number = lines[:, :2].T
        fits = ((key >= NAMED) | (key == number)) & (number >= 0) & (number < self.issued)
        fits &= self._method.sound(
            lines[:, 3:], np.ascontiguousarray(lines).view(np.float64)[:, 3:]
        )
        if not fits.all() or (np.diff(number, prepend=-1) <= 0).any():
            raise ValueError("tickets that were never issued")


def _frozen(target: Any) -> float | tuple[float, ...]:
    """Return what a method aims at as something that has a hash."""
    told = np.asarray(target).tolist()
    return tuple(told) if isinstance(told, list) else told


def _made(made: Any, target: Any, options: dict[str, Any]) -> Any:
    """Return the method for a target, with options of its own."""
    try:
        return made(target, **options)
    except InvalidType:
        raise
    except TypeError as error:
        told = ", ".join(repr(name) for name in options)
        raise InvalidType(f"options must be ones of method {made.name!r}, got {told}") from error
