"""What all streams of numbers have in common: a method in a row, and outcomes that are reals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol, TypeVar

import numpy as np

from calibrant.calibrators.arena import Arena
from calibrant.calibrators.layout import Layout
from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.codec import Document
from calibrant.errors import InvalidType, StaleForecast
from calibrant.kernels.layout import ISSUED, ROUNDS, SECRET
from calibrant.recalibrate.counter import Counter
from calibrant.recalibrate.secret import fingerprint
from calibrant.recalibrate.spec import MAX_OPEN
from calibrant.recalibrate.stream import Stream
from calibrant.regression.seat import Seat
from calibrant.regression.ticket import Issuer, NumberTicket

TicketT = TypeVar("TicketT", bound=NumberTicket)
MethodT = TypeVar("MethodT", bound="Method")

NAMED: Final = 1 << 62
"""Keys of names start here."""
NEXT: Final = "next"
"""Under which the last prediction is noted."""


class Method(Protocol):
    """What a stream of numbers asks of its method."""

    name: ClassVar[str]

    @property
    def layout(self) -> Layout: ...
    def sit(self, seat: Seat, secret: bytes) -> None: ...
    def verify(self, row: Words) -> None: ...
    def compile(self) -> None: ...
    def options(self) -> dict[str, Any]: ...


class NumberStream(Stream[TicketT]):
    """Forecasts of numbers whose outcomes come by ticket, in any order.

    A kind says which method its settings ask for, and how a forecast is issued and an outcome
    learned by that method.
    """

    __slots__ = ("_issuer", "_seat", "_secret")

    version: ClassVar[int] = 2
    tickets: ClassVar[type[Any]]

    def _begin(self, secret: bytes, max_open: Any, row: Words | None = None) -> None:
        """Set up the row of the method: a fresh one, or what it was when it was stored."""
        cap = check.whole(max_open, "max_open", low=1, high=MAX_OPEN)
        whose = fingerprint(secret, self.kind, self._settings())
        self._secret, self._issuer = secret, self._made_issuer(whose)
        arena = Arena(self._way.layout)
        own = arena.flat()[arena.layout.row :]
        if row is not None:
            own[:] = row
        own[SECRET : SECRET + 2] = np.frombuffer(secret, "<i8")
        self._seat = Seat(arena)
        self._open(arena, Counter(self.tickets, self._issuer, whose, self._fields(), cap))
        self._way.sit(self._seat, secret)

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._way.name

    # -------------------------------------------------------------- one by one

    def observe(
        self, ticket: TicketT | int | str, outcome: float, time: float | None = None
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
        looked = self._notes.pop(NEXT, None)
        if looked is not None and looked != (self._own(ISSUED), self._own(ROUNDS)):
            raise StaleForecast(
                "another round came between predict_one and learn_one; "
                "use forecast and observe where rounds overlap"
            )
        ticket = self._issue(raw)
        self._learn(ticket, outcome)
        if ticket.number >= self.max_open:
            self._expire_old(ticket.number + 1)

    def _compile(self) -> None:
        self._way.compile()

    def _outcome(self, outcome: Any) -> float:
        return check.real(outcome, "outcome")

    # ------------------------------------------------------------------ state

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self._told().items())
        return f"{type(self).__name__}({told}, rounds={self.rounds})"

    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        return self._settings() | {"max_open": self.max_open}, {}

    def _restore(self, document: Document) -> None:
        settings = dict(document.settings)
        cap = settings.pop("max_open")
        self._configure(settings)
        row = self._verified(document.arrays["row"], self._way.layout)
        self._way.verify(row)
        self._begin(row[SECRET : SECRET + 2].astype("<i8").tobytes(), cap, row)
        self._load_tickets(document.arrays["tickets"])

    def _check_tickets(self, lines: Words) -> None:
        key, number = lines[:, :2].T
        fits = ((key >= NAMED) | (key == number)) & (number >= 0) & (number < self.issued)
        fits &= self._sound(lines[:, 3:], np.ascontiguousarray(lines).view(np.float64)[:, 3:])
        if not fits.all() or (np.diff(number, prepend=-1) <= 0).any():
            raise ValueError("tickets that were never issued")

    # ------------------------------------------------------- what a kind says

    @property
    @abstractmethod
    def _way(self) -> Method:
        """The method."""

    @abstractmethod
    def _configure(self, settings: dict[str, Any]) -> None:
        """Make the method that settings ask for."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return the settings, the cap on open tickets aside."""

    @abstractmethod
    def _told(self) -> dict[str, Any]:
        """Return what this was made with, for people."""

    @abstractmethod
    def _made_issuer(self, whose: str) -> Issuer:
        """Return what tickets have in common."""

    @abstractmethod
    def _fields(self) -> str:
        """Return what the desk keeps of a ticket, a letter a word; the first is its time."""

    @abstractmethod
    def _sound(self, words: Words, reals: Reals) -> Mask:
        """Say which tickets could have been issued, given all but the times of their fields."""


def made_with(made: Callable[..., MethodT], target: Any, options: dict[str, Any]) -> MethodT:
    """Return the method for a target, with options of its own."""
    try:
        return made(target, **options)
    except InvalidType:
        raise
    except TypeError as error:
        told = ", ".join(repr(name) for name in options)
        name = getattr(made, "name", made)
        raise InvalidType(f"options must be ones of method {name!r}, got {told}") from error
