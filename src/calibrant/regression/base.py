"""What all forecasters of numbers have in common: tickets, gates and documents."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.classes.waiting import Entry, Waiting
from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.core.gate import Gate, passing
from calibrant.core.ledger import MAX_OPEN, NEVER
from calibrant.core.stored import Stored
from calibrant.errors import (
    CorruptState,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    StaleForecast,
)
from calibrant.recalibrate.secret import fingerprint
from calibrant.regression.tables import Reals
from calibrant.regression.ticket import NumberTicket

__all__ = ["NumberForecaster"]

TicketT = TypeVar("TicketT", bound=NumberTicket)
Arrays = dict[str, NDArray[np.int64]]


class NumberForecaster(Stored, Generic[TicketT]):
    """Forecasts of numbers whose outcomes come by ticket, in any order.

    Subclasses say how a forecast is made, what is kept of it (some numbers, always as many), how
    an outcome is learned from these, and what is stored.
    """

    kind: ClassVar[str]

    def _set_up(self, secret: bytes, max_open: int, shape: object) -> None:
        self._secret = secret
        self._issuer = fingerprint(secret, self.kind, shape)
        self._waiting = Waiting(self._issuer, max_open, self._drop)
        self._kept: dict[int, list[float]] = {}
        self._issued = self._learned = self._lag = self._crowd = 0
        self._looked: tuple[int, int] | None = None
        self._gate: Gate = [None]

    # ------------------------------------------------------------------ facts

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        return self._learned

    @property
    def issued(self) -> int:
        """Forecasts made so far."""
        return self._issued

    @property
    def open(self) -> int:
        """Tickets that wait for their outcome."""
        with passing(self._gate):
            self._waiting.sweep(self._issued)
            return len(self._waiting)

    @property
    def delay(self) -> int:
        """How many outcomes that came later were outstanding when a forecast was made, at most."""
        return min(self._lag, self._crowd)

    # -------------------------------------------------------------- one by one

    def observe(
        self, ticket: TicketT | int | str, outcome: float, time: float | None = None
    ) -> None:
        """Report the outcome of an open ticket, given itself or its id; in any order."""
        told = check.real(outcome, "outcome")
        when = None if time is None else check.real(time, "time")
        with passing(self._gate):
            id, entry = self._find(ticket)
            if when is not None and when < entry.time:
                earlier = f"the forecast's {entry.time!r}, got {when!r}"
                raise InvalidInput(f"time must not be before {earlier}")
            self._settle(entry, self._kept[entry.number], told)
            self._waiting.close(id)
            del self._kept[entry.number]
            self._lag = max(self._lag, self._issued - 1 - entry.number)
            self._learned += 1
        if isinstance(ticket, NumberTicket):
            ticket.outcome = told

    def _find(self, ticket: Any) -> tuple[int | str, Entry]:
        if not isinstance(ticket, NumberTicket):
            return self._waiting.find(ticket, self._issued)
        if ticket.issuer != self._issuer:
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {ticket!r}")
        kept = self._waiting.entries.get(ticket.id)
        # A name may have been given away again since; the number of such a ticket is not open.
        own = kept is not None and kept.number == ticket.number
        return self._waiting.find(ticket.id if own else ticket.number, self._issued)

    def _named(self, id: Any, time: Any) -> tuple[str | None, float | None]:
        """Return name and time of a forecast that is to be made, checked."""
        if id is not None and (not isinstance(id, str) or not id):
            raise InvalidType(f"id must be a string that is not empty, got {id!r}")
        if id is not None and self._waiting.holds(id, self._issued):
            raise RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")
        return id, None if time is None else check.real(time, "time")

    def _keep(self, ticket: TicketT, kept: list[float], slot: int = 0) -> TicketT:
        """Open a ticket; ``kept`` and ``slot`` are what its outcome will be learned from."""
        time = NEVER if ticket.time is None else ticket.time
        self._crowd = max(self._crowd, self._issued - self._learned)
        self._issued += 1
        self._kept[ticket.number] = kept
        self._waiting.add(ticket.id, Entry(ticket.number, 0, slot, time), self._issued)
        return ticket

    def _count(self, rounds: int) -> None:
        """Count a batch of rounds whose outcomes came at once."""
        if rounds:
            self._crowd = max(self._crowd, self._issued - self._learned)
        self._issued += rounds
        self._learned += rounds

    def _drop(self, entry: Entry) -> None:
        del self._kept[entry.number]

    def _note(self) -> None:
        """Remember that a prediction was looked at in this state."""
        self._looked = self._issued, self._learned

    def _check_fresh(self) -> None:
        """Refuse to make a round of a prediction that another round has overtaken."""
        looked, self._looked = self._looked, None
        if looked is not None and looked != (self._issued, self._learned):
            raise StaleForecast(
                "another round came between predict_one and learn_one; "
                "use forecast and observe where rounds overlap"
            )

    # ------------------------------------------------------------------ state

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self._told().items())
        return f"{type(self).__name__}({told}, rounds={self.rounds})"

    def _document(self) -> Document:
        with passing(self._gate):
            self._waiting.sweep(self._issued)
            waiting, names = self._waiting.to_words()
            settings = {
                "secret": self._secret.hex(),
                "max_open": self._waiting.max_open,
                "issued": self._issued,
                "learned": self._learned,
                "lag": self._lag,
                "crowd": self._crowd,
                "names": names,
            }
            own, arrays = self._state()
            numbers = [entry.number for entry in self._waiting.entries.values()]
            kept = np.array([self._kept[number] for number in numbers], np.float64)
            arrays |= {"waiting": waiting, "kept": words_of(kept.reshape(-1))}
            return Document(self.kind, settings | {"own": own}, arrays)

    def _restore(self, document: Document) -> None:
        s, arrays = document.settings, document.arrays
        try:
            cap = check.whole(s["max_open"], "max_open", low=1, high=MAX_OPEN)
            width = self._load(s["own"], arrays, bytes.fromhex(s["secret"]), cap)
            self._issued = check.whole(s["issued"], "issued")
            self._learned = check.whole(s["learned"], "learned", high=self._issued)
            self._lag = check.whole(s["lag"], "lag")
            self._crowd = check.whole(s["crowd"], "crowd")
            self._waiting.load_words(arrays["waiting"], s["names"], self._issued)
            rows = reals_of(arrays["kept"]).reshape(len(self._waiting), width)
            numbers = [entry.number for entry in self._waiting.entries.values()]
            self._kept = dict(zip(numbers, rows.tolist(), strict=True))
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise CorruptState(f"state must be of a {self.kind}, got {error}") from error

    # ------------------------------------------------------- what subclasses do

    @abstractmethod
    def _settle(self, entry: Entry, kept: list[float], outcome: float) -> None:
        """Learn the outcome of an open ticket."""

    @abstractmethod
    def _told(self) -> dict[str, Any]:
        """Return what this was made with, for people."""

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], Arrays]:
        """Return settings and words to be stored."""

    @abstractmethod
    def _load(self, own: dict[str, Any], arrays: Arrays, secret: bytes, max_open: int) -> int:
        """Set up from what :meth:`_state` gave; return how many numbers a ticket keeps."""


def words_of(reals: Reals) -> NDArray[np.int64]:
    """Return numbers as words."""
    return np.ascontiguousarray(reals, np.float64).view(np.int64)


def reals_of(words: NDArray[np.int64]) -> Reals:
    """Return the numbers that :func:`words_of` wrote."""
    return np.ascontiguousarray(words, np.int64).view(np.float64).copy()
