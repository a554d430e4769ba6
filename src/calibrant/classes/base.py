"""What all recalibrators over classes have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.classes import vectors
from calibrant.classes.run import ClassRun
from calibrant.classes.ticket import ClassTicket
from calibrant.classes.waiting import Entry, Waiting
from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.core.gate import Gate, passing
from calibrant.core.ledger import MAX_OPEN, NEVER
from calibrant.core.stored import Stored
from calibrant.errors import CorruptState, InvalidInput, InvalidType, RepeatedTicket
from calibrant.recalibrate.secret import fingerprint, secret_of

__all__ = ["ClassRecalibrator"]

Reals = NDArray[np.float64]
TicketT = TypeVar("TicketT", bound=ClassTicket)
RunT = TypeVar("RunT", bound=ClassRun)


class ClassRecalibrator(Stored, Generic[TicketT, RunT]):
    """Turn raw forecasts over K classes into calibrated ones, whatever the outcomes.

    Subclasses say how a forecast is made (``_announce``), learned (``_settle``) and looked at
    ahead (``_predict``, ``_book``), how a batch is played (``_play``), and what is stored
    (``_settings``, ``_arrays``, ``_load``).  Tickets, gates and documents are here.
    """

    kind: ClassVar[str]

    def __init__(
        self, classes: int, seed: int | None, key: str | int | None, max_open: int
    ) -> None:
        count = vectors.class_count(classes)
        cap = check.whole(max_open, "max_open", low=1, high=MAX_OPEN)
        self._set_up(count, secret_of(seed, key), cap)

    def _set_up(self, classes: int, secret: bytes, max_open: int) -> None:
        self._classes, self._secret = classes, secret
        self._issuer = fingerprint(secret, self.kind, classes)
        self._waiting = Waiting(self._issuer, max_open, self._drop)
        self._ticketed = self._observed = self._booked = self._lag = 0
        self._gate: Gate = [None]

    # ------------------------------------------------------------------ facts

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return self._classes

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        return self._observed + self._booked

    @property
    def issued(self) -> int:
        """Forecasts made so far."""
        return self._ticketed + self._booked

    @property
    def open(self) -> int:
        """Tickets that wait for their outcome."""
        with passing(self._gate):
            self._waiting.sweep(self.issued)
            return len(self._waiting)

    @property
    def delay(self) -> int:
        """How many forecasts were made between one and its outcome, at most."""
        return self._lag

    # -------------------------------------------------------------- one by one

    def forecast(self, raw: Any, *, id: str | None = None, time: float | None = None) -> TicketT:
        """Announce a calibrated forecast for a raw one, and keep a ticket for its outcome.

        Parameters
        ----------
        raw
            K numbers in [0, 1] that sum to 1 within 1e-6.
        id
            A name for the ticket; by default its number.
        time
            When the forecast is made, in the caller's units.
        """
        vector = vectors.vector(raw, self._classes)
        if id is not None and (not isinstance(id, str) or not id):
            raise InvalidType(f"id must be a string that is not empty, got {id!r}")
        time = None if time is None else check.real(time, "time")
        with passing(self._gate):
            number = self.issued
            if id is not None and self._waiting.holds(id, number):
                raise RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")
            ticket, place, slot = self._announce(vector)
            ticket.id, ticket.number, ticket.time = number if id is None else id, number, time
            entry = Entry(number, place, slot, NEVER if time is None else time)
            self._ticketed += 1
            self._waiting.add(ticket.id, entry, self.issued)
        return ticket

    def observe(
        self, ticket: ClassTicket | int | str, outcome: int, time: float | None = None
    ) -> None:
        """Report the class of an open ticket, given itself or its id; in any order."""
        told = vectors.outcome(outcome, self._classes)
        when = None if time is None else check.real(time, "time")
        with passing(self._gate):
            id, entry = self._waiting.find(ticket, self.issued)
            if when is not None and when < entry.time:
                earlier = f"the forecast's {entry.time!r}, got {when!r}"
                raise InvalidInput(f"time must not be before {earlier}")
            self._settle(entry, told)
            self._waiting.close(id)
            self._lag = max(self._lag, self.issued - 1 - entry.number)
            self._observed += 1
        if isinstance(ticket, ClassTicket):
            ticket.outcome = told

    def predict_one(self, raw: Any) -> Reals:
        """Return the draw that the next round with this raw forecast would announce.

        Changes nothing; call :meth:`learn_one` with the same raw forecast to make it a round.
        """
        vector = vectors.vector(raw, self._classes)
        with passing(self._gate):
            return self._predict(vector)

    def learn_one(self, raw: Any, outcome: int) -> None:
        """Make a round of the last :meth:`predict_one` with this raw forecast.

        Without one, the round is drawn now.  Refused if another round came between that could
        have changed the draw.
        """
        vector = vectors.vector(raw, self._classes)
        told = vectors.outcome(outcome, self._classes)
        with passing(self._gate):
            self._book(vector, told)
            self._booked += 1

    # ---------------------------------------------------------------- batches

    def replay(self, raw: Any, outcomes: Any) -> RunT:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        raw
            A table: a round a row, a class a column.
        outcomes
            The class of each round.
        """
        rows = vectors.matrix(raw, self._classes)
        told = vectors.outcomes(outcomes, self._classes)
        check.same_length(raw=rows, outcomes=told)
        with passing(self._gate):
            run = self._play(rows, told)
            self._booked += len(rows)
        return run

    # ------------------------------------------------------------------ state

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        name = type(self).__name__
        return f"{name}(classes={self._classes}, {told}, rounds={self.rounds})"

    def _document(self) -> Document:
        with passing(self._gate):
            self._waiting.sweep(self.issued)
            waiting, names = self._waiting.to_words()
            settings = {
                "classes": self._classes,
                "secret": self._secret.hex(),
                "max_open": self._waiting.max_open,
                "issued": self.issued,
                "learned": self.rounds,
                "lag": self._lag,
                "names": names,
                "own": self._settings(),
            }
            return Document(self.kind, settings, {"waiting": waiting} | self._arrays())

    def _restore(self, document: Document) -> None:
        s, arrays = document.settings, document.arrays
        try:
            cap = check.whole(s["max_open"], "max_open", low=1, high=MAX_OPEN)
            secret = bytes.fromhex(s["secret"])
            self._set_up(vectors.class_count(s["classes"]), secret, cap)
            self._ticketed = check.whole(s["issued"], "issued")
            self._observed = check.whole(s["learned"], "learned", high=self._ticketed)
            self._lag = check.whole(s["lag"], "lag")
            self._load(s["own"], arrays)
            self._waiting.load_words(arrays["waiting"], s["names"], self._ticketed)
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise CorruptState(f"state must be of a {self.kind}, got {error}") from error

    # ------------------------------------------------------- what subclasses do

    def _ticket(self, made: type[TicketT], raw: Reals, value: Reals, mean: Reals) -> TicketT:
        """Return a ticket that :meth:`forecast` will complete."""
        return made(self._issuer, 0, 0, None, raw, value, mean)

    @abstractmethod
    def _announce(self, raw: Reals) -> tuple[TicketT, int, int]:
        """Make a forecast; return its ticket, and the place and slot that learn its outcome."""

    @abstractmethod
    def _settle(self, entry: Entry, outcome: int) -> None:
        """Learn the outcome of an open ticket."""

    @abstractmethod
    def _drop(self, entry: Entry) -> None:
        """Forget an open ticket that expired."""

    @abstractmethod
    def _predict(self, raw: Reals) -> Reals:
        """Return the draw of the next round with this raw forecast, and note it."""

    @abstractmethod
    def _book(self, raw: Reals, outcome: int) -> None:
        """Make a round of what was noted, or of a draw made now."""

    @abstractmethod
    def _play(self, rows: Reals, outcomes: NDArray[np.int64]) -> RunT:
        """Play a batch."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return what this kind was made with."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return what this kind remembers, as words."""

    @abstractmethod
    def _load(self, settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]) -> None:
        """Take in settings and words."""
