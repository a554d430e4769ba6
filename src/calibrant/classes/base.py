"""What all recalibrators over classes have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from calibrant.classes import vectors
from calibrant.classes.roster import Roster
from calibrant.classes.run import ClassRun
from calibrant.classes.ticket import ClassIssuer, ClassTicket
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.stateful import Migration
from calibrant.errors import StaleForecast
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, ROUNDS
from calibrant.recalibrate import version2
from calibrant.recalibrate.counter import Counter, clock_of
from calibrant.recalibrate.delivery import Pending, times
from calibrant.recalibrate.in_turn import Answers, InTurn
from calibrant.recalibrate.secret import APART, Secret, coin_at, fingerprint, secret_read
from calibrant.recalibrate.spec import MAX_OPEN

TicketT = TypeVar("TicketT", bound=ClassTicket)
RunT = TypeVar("RunT", bound=ClassRun)


class ClassRecalibrator(InTurn[TicketT], Generic[TicketT, RunT]):
    """Turn raw forecasts over K classes into calibrated ones, whatever the outcomes.

    The state is rows of one arena, the first of which counts every round.  Subclasses say how
    a forecast is made, learned and looked at ahead, and what the settings are.
    """

    __slots__ = ("_classes", "_roster")

    version: ClassVar[int] = 3
    migrations: ClassVar[dict[int, Migration]] = {2: version2.migrated}
    _tickets: ClassVar[Any]
    _classes: int
    _carry: ClassVar[tuple[str, str]] = ("value", "mean")
    """What of a ticket was drawn and carries the guarantee, and its mean."""
    _wide: ClassVar[bool] = True
    """Whether that is a number for each class."""

    def _enter(self, roster: Roster, issuer: ClassIssuer, fields: str, max_open: Any) -> None:
        """Set up rows before their first round, and a counter of tickets."""
        self._roster, cap = roster, check.whole(max_open, "max_open", low=1, high=MAX_OPEN)
        counter = Counter[TicketT](self._tickets, issuer, issuer.fingerprint, fields, cap)
        self._open(roster.arena, counter)

    # ------------------------------------------------------------------ facts

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return self._classes

    @property
    def delay(self) -> int:
        """How many forecasts were made between one and its outcome, at most."""
        return self._own(LONGEST_LAG)

    # -------------------------------------------------------------- one by one

    def forecast(self, raw: Any, *, id: str | None = None, time: check.When = None) -> TicketT:
        """Announce a calibrated forecast for a raw one, and keep a ticket for its outcome.

        Parameters
        ----------
        raw
            K numbers in [0, 1] that sum to 1 within 1e-6.
        id, time
            As in :meth:`calibrant.Recalibrator.forecast`.
        """
        return self._forecast(vectors.vector(raw, self._classes), id, time)

    def observe(
        self, ticket: TicketT | int | str, outcome: int, time: check.When = None
    ) -> TicketT:
        """Report the class of an open ticket, given itself or its id; in any order.

        Returns the ticket with its outcome, which :meth:`correct` needs later.
        """
        return self._observe(ticket, self._outcome(outcome), time)

    def sample_one(self, raw: Any) -> Reals:
        """Return the draw that the next round with this raw forecast would announce.

        Changes nothing; call :meth:`learn_one` with the same raw forecast to make it a round.
        """
        vector = self._untimed(raw, "sample_one")
        with self._gate:
            seen = self._look(vector)
            self._noted(vector.tobytes(), (seen, self.rounds))
            return seen.value

    def predict_one(self, raw: Any) -> Reals:
        """Return the draw, as :meth:`sample_one` does: an older name for it."""
        return self.sample_one(raw)

    def predict_mean_one(self, raw: Any) -> Reals:
        """Return the mean that the next round with this raw forecast would announce.

        Changes nothing, and notes nothing; the mean has no guarantee of its own.
        """
        vector = vectors.vector(raw, self._classes)
        with self._gate:
            return self._look(vector).mean

    def learn_one(self, raw: Any, outcome: int) -> None:
        """Make a round of the last :meth:`sample_one` with this raw forecast.

        Without one, the round is drawn now.  Refused if another round came between that could
        have changed the draw; then nothing has changed.
        """
        vector, told = self._untimed(raw, "learn_one"), self._outcome(outcome)
        with self._gate:
            key = vector.tobytes()
            seen, rounds = self._notes.get(key) or (self._look(vector), self.rounds)
            try:
                self._commit(seen, rounds, told)
                self._notes.pop(key, None)
                self._expire_old(self.issued)
            except StaleForecast:
                self._notes.pop(key, None)
                raise
            except BaseException:
                # Whatever was made so far made others too old.
                self._expire_old(self.issued)
                raise

    def coin_of(self, ticket: TicketT | int | str) -> Any:
        """Return the coin that decided a ticket's draw, or a coin for each class.

        For audits.  An open ticket may be given by its id.
        """
        return self._coin(self._ours(ticket))

    def _flip(self, secret: bytes, block: int, made: Any) -> float:
        """Return the coin of a ticket or of its part, in that block of a row with that secret."""
        return coin_at(secret, self._throws, block, clock_of(made, self.issued))

    def _reseat(self) -> None:
        whose = fingerprint(self._secret, self.kind, self._classes)
        self._counter.issue_as(self._counter.issuer._replace(fingerprint=whose), whose)
        self._roster.seat_all()

    # ---------------------------------------------------------------- batches

    def replay(
        self,
        raw: Any,
        outcomes: Any,
        *,
        available: Any = None,
        time: Any = None,
        carry: Pending | None = None,
    ) -> RunT:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        raw
            A table: a round a row, a class a column.
        outcomes
            The class of each round.
        available, time, carry
            As in :meth:`calibrant.Recalibrator.replay`.
        """
        rows = vectors.matrix(raw, self._classes)
        told = vectors.outcomes(outcomes, self._classes)
        check.same_length(raw=rows, outcomes=told)
        if self._timed and time is None:
            raise self._no_time(time)
        times(time, len(rows))
        prompt = available is None and carry is None and not self._timed
        late = available, time, carry
        with self._gate:
            first = self.issued
            drawn, mean, left = self._whole(lambda: self._played(rows, told, prompt, late))
        return self._run(rows, drawn, mean, first, left)

    def play(self, kind: Any, id: Any, x: Any, time: Any = None) -> Answers:
        """Play a log of forecasts and outcomes in its order, as the calls one by one would.

        Parameters
        ----------
        kind, id, time
            As in :meth:`calibrant.Recalibrator.play`.
        x
            The raw forecast, a number for each class, or the class that came.
        """
        return self._log(kind, id, x, time, self._vector)

    def forecast_many(self, raw: Any, *, id: Any = None, time: Any = None) -> Answers:
        """Announce many forecasts, one after the other, and keep a ticket for each."""
        rows = vectors.matrix(raw, self._classes)
        return self._log(np.zeros(len(rows), np.int64), id, rows, time, self._vector)

    def _vector(self, raw: Any, event: int) -> Reals:
        return vectors.vector(raw, self._classes)

    @property
    def _blank(self) -> Reals:
        return np.full(self._classes, np.nan)

    def _played(
        self, rows: Reals, told: Words, prompt: bool, late: tuple[Any, ...]
    ) -> tuple[Reals, Reals, Pending]:
        """Play a batch; return what was drawn, what was expected, and what is pending."""
        first = self.issued
        made = self._prompt(rows, told) if prompt else None
        if made is not None:
            self._expire_old(first + len(rows))
            return *made, Pending()
        tickets, left = self._play_late(list(rows), told.tolist(), *late)
        # Of no outcomes at all there is no telling whether they were whole numbers.
        return *self._listed(tickets), replace(left, outcome=left.outcome.astype(np.int64))

    def _everything(self) -> Any:
        return super()._everything(), len(self._roster)

    def _become_again(self, kept: Any) -> None:
        words, rows = kept
        super()._become_again(words)
        self._roster.forget(rows)

    # ------------------------------------------------------------------ state

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self._shown().items())
        return f"{type(self).__name__}(classes={self._classes}, {told}, rounds={self.rounds})"

    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        settings: dict[str, Any] = {"classes": self._classes, "max_open": self.max_open}
        settings |= {"coins": self._throws, "secret_from": self._secret.origin}
        secret = np.frombuffer(self._secret, "<i8").astype(np.int64)
        return settings | self._settings(), {"secret": secret} | self._roster.to_arrays()

    def _without_secret(self, arrays: dict[str, Words]) -> dict[str, Words]:
        zeros = {"secret": np.zeros(2, np.int64)}
        return arrays | zeros | self._roster.to_arrays(secret=False)

    def _restore(self, document: Document) -> None:
        arrays = document.arrays
        if len(arrays["secret"]) != 2:
            raise ValueError(f"a secret of {len(arrays['secret'])} words")
        self._set_up(document, secret_read(document, arrays["secret"].astype("<i8").tobytes()))
        self._roster.load(arrays["row"], arrays, secret=APART not in arrays)
        self._check_rows()
        self._load_tickets(arrays)

    def _check_sums(self, rows: list[tuple[int, Words]], what: str) -> None:
        """Refuse rows that did not see each round of all together once."""
        issued, rounds = (sum(int(row[place]) for _, row in rows) for place in (ISSUED, ROUNDS))
        if (issued, rounds) != (self.issued, self.rounds):
            raise ValueError(f"{what} whose rounds are not those of all together")

    def _outcome(self, outcome: Any) -> int:
        return check.whole(outcome, "outcome", high=self._classes - 1)

    def _untimed(self, raw: Any, verb: str) -> Reals:
        if self._timed:
            raise self._no_time(f"{verb}, which takes none")
        return vectors.vector(raw, self._classes)

    # ------------------------------------------------------- what subclasses do

    @property
    @abstractmethod
    def _throws(self) -> str:
        """How coins are thrown."""

    @abstractmethod
    def _check_rows(self) -> None:
        """Refuse rows that cannot be of the same stream."""

    @abstractmethod
    def _look(self, raw: Reals) -> TicketT:
        """Look at the next round with this raw forecast: the ticket that it would have."""

    @abstractmethod
    def _commit(self, seen: TicketT, rounds: int, outcome: int) -> None:
        """Make a round of what was looked at after so many, or change nothing and raise."""

    @abstractmethod
    def _coin(self, ticket: TicketT) -> Any:
        """Return the coin of a ticket."""

    def _prompt(self, rows: Reals, outcomes: Words) -> tuple[Reals, Reals] | None:
        """Play a batch whose outcomes come at once, or say None if that goes one by one only."""
        return None

    @abstractmethod
    def _run(self, rows: Reals, drawn: Reals, mean: Reals, first: int, left: Pending) -> RunT:
        """Return what was announced in a batch."""

    def _listed(self, tickets: list[TicketT]) -> tuple[Reals, Reals]:
        """Return what was drawn in a batch and carries the guarantee, and means."""
        shape = (-1, self._classes) if self._wide else -1
        drawn, mean = ([getattr(ticket, name) for ticket in tickets] for name in self._carry)
        return np.array(drawn, float).reshape(shape), np.array(mean, float).reshape(shape)

    def _shown(self) -> dict[str, Any]:
        """Return the settings that the name of an object shows."""
        return self._settings()

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return what this kind was made with."""

    @abstractmethod
    def _set_up(self, document: Document, secret: Secret) -> None:
        """Begin with the settings of a document."""
