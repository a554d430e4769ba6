"""Recalibrators over classes that are made of binary ones: rows of one spec in one arena."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from calibrant.calibrators.arena import Arena
from calibrant.classes import parts as many
from calibrant.classes import vectors
from calibrant.classes.base import ClassRecalibrator, RunT, TicketT
from calibrant.classes.certificate import ClassCertificate
from calibrant.classes.roster import Roster
from calibrant.classes.ticket import PartsIssuer
from calibrant.classes.version1 import migrated_reduction
from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.codec import Document
from calibrant.core.gate import passing
from calibrant.core.stateful import Migration
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import ForeignTicket, StaleForecast
from calibrant.kernels.coin import coin
from calibrant.kernels.layout import ASIDE, CELL
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.recalibrate.binary import possible, spec_of
from calibrant.recalibrate.record import certificate_of
from calibrant.recalibrate.rows import Rows
from calibrant.recalibrate.secret import block_key, secret_of
from calibrant.recalibrate.spec import Spec

ENGINES: Final[dict[str, type[Recalibrator]]] = {
    "calibrant": Calibrant,
    "recalibrator": Recalibrator,
}
Note = tuple[int, float, float, int]


class BinaryReduction(ClassRecalibrator[TicketT, RunT]):
    """What :class:`OneVsRest` and :class:`TopLabel` share: binary rows that differ in their coins.

    A forecast over classes has a binary *part* in each row that it uses.  Subclasses say which
    rows these are, and what the outcome of a part is.
    """

    __slots__ = ("_parts", "_rows", "_spec")

    migrations: ClassVar[dict[int, Migration]] = {1: migrated_reduction}
    _lead: ClassVar[str] = "d"
    """What the desk keeps of a ticket before its parts, a letter a word; the time comes first."""

    def _begin(
        self, classes: Any, spec: Spec, secret: bytes, max_open: Any, renormalise: str = "none"
    ) -> None:
        """Set up the first row of that spec before its first round."""
        count = vectors.class_count(classes)
        self._spec, self._rows = spec, Rows(spec, Arena(spec.layout))
        rule, mixes = spec.rule, spec.transform is not None
        whose = self._fingerprint(count, secret)
        self._parts = Issuer(whose, rule.lattice, rule.kernels.full_support, mixes, spec.kept)
        self._secret = secret
        roster = Roster(self._rows.arena, self._first(count), self._seat, self._rows.use_array)
        issuer = PartsIssuer(whose, self._parts, renormalise)
        fields = self._lead + many.letters(spec.kept) * self._width(count)
        self._enter(count, secret, roster, self._kind_of_tickets, issuer, fields, max_open)
        self._timed = rule.timed

    def _seat(self, row: Words, number: int) -> None:
        self._spec.seat(row, self._secret_of(number))

    def _secret_of(self, number: int) -> bytes:
        """Return the secret of the row of a number."""
        return secret_of(int.from_bytes(self._secret, "little", signed=True), number)

    # ------------------------------------------------------------------ facts

    @property
    def engine(self) -> str:
        """Which kind of recalibrator is inside."""
        return "recalibrator" if self._spec.transform is None else "calibrant"

    @property
    def spec(self) -> Spec:
        """What the binary rows are, apart from their state."""
        return self._spec

    @property
    def template(self) -> Recalibrator:
        """A binary recalibrator with the settings of those inside, before its first round."""
        made_by = ENGINES[self.engine]
        made = made_by.__new__(made_by)
        made._begin(self._spec, secret_of(0, None), self.max_open)
        return made

    def _compile(self) -> None:
        self._rows.compile()

    # ----------------------------------------------------------------- a round

    def _issue_part(self, number: int, raw: float) -> Ticket:
        """Make a binary forecast in the row of a number."""
        row = self._roster.place(number)
        own, place, weight, mixed, clock, kept, law = self._rows.issue(row, raw)
        return Ticket(self._parts, own, own, place, weight, raw, None, clock, law, mixed, kept)

    def _learn(self, ticket: TicketT, outcome: int) -> None:
        time = 0.0 if ticket.time is None else ticket.time
        for number, part in zip(self._numbers(ticket), self._parts_of(ticket), strict=True):
            told, place = self._told(ticket, number, outcome), part._place
            facts = part.number, place, part._weight, part._mixed, part.raw
            self._rows.learn(self._roster.place(number), *facts, time, told, part._kept)

    def _correct(self, ticket: TicketT, outcome: int) -> None:
        time = 0.0 if ticket.time is None else ticket.time
        if self._timed and ticket.time is None:
            raise self._no_time(f"{ticket!r} without one")
        found = [
            (self._roster.place(number), part, told)
            for number, part in self._altered(ticket)
            if (told := self._told(ticket, number, outcome))
            != self._told(ticket, number, ticket.outcome)
        ]
        for row, part, told in found:
            if not part.fallback:
                self._rows.check_counted(row, part.place, told, ticket)
        for row, part, told in found:
            facts = part.number, part.place, part.weight, part._mixed, part.raw
            self._rows.correct(row, (*facts, time), told)

    def _altered(self, ticket: TicketT) -> list[tuple[int, Ticket]]:
        """Return numbers and parts of a closed ticket, or raise if it was altered."""
        numbers, parts = self._numbers(ticket), self._parts_of(ticket)
        grids = all(part.issuer.grid == self._spec.rule.lattice for part in parts)
        if len(numbers) != len(parts) or not grids or any(n not in self._roster for n in numbers):
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        return list(zip(numbers, parts, strict=True))

    def _forget(self, tickets: list[tuple[Any, ...]]) -> None:
        if self._spec.raw_safe is None:
            return
        for fields in tickets:
            ticket = self._counter.kind.revived(self._counter.issuer, 0, 0, fields)
            for number, part in zip(self._numbers(ticket), self._parts_of(ticket), strict=True):
                self._rows.forget(self._roster.place(number), part.place, part.weight, part.raw)

    def _coin_of_part(self, number: int, part: Ticket) -> float:
        key = block_key(self._secret_of(number), part.bucket)
        return coin(key, self._known_clock(part.clock, part))

    # ------------------------------------------------------- predict, then learn

    def _peek(self, number: int, raw: float) -> tuple[Note, float]:
        """Look at the next draw of a number; return what booking it takes, and its mean."""
        place, weight, mixed, clock = self._rows.peek(self._roster.place(number), raw)
        mean = raw if place & ASIDE else self._rows.mean_of(place, weight)
        return (place, weight, mixed, clock), mean

    def _value(self, note: Note, raw: float) -> float:
        """Return the draw that was looked at."""
        return raw if note[0] & ASIDE else self._parts.values[note[0] & CELL]

    # ----------------------------------------------------------------- batches

    def _at_once(self, rounds: int) -> bool:
        # Tickets that expire on the way would give back what was reserved for them.
        safe = self._spec.raw_safe is not None
        return not (safe and len(self._counter) and self.issued + rounds > self.max_open)

    def _replay_row(self, number: int, raw: Reals, outcomes: Mask) -> tuple[Reals, Reals]:
        """Play rounds of the row of a number; return draws and means."""
        # The compiler knows one kind of arrays only.
        values, told = np.array(raw, order="C"), outcomes.astype(np.uint8)
        drawn, mean, _ = self._rows.replay(self._roster.place(number), values, told)
        return drawn, mean

    def _preview_row(self, number: int, raw: Reals) -> tuple[Reals, Reals]:
        return self._rows.preview(self._roster.place(number), np.array(raw, order="C"))

    # --------------------------------------------------------------------- state

    def certificate(self) -> ClassCertificate:
        """Return what was measured by each recalibrator inside, and its bounds beside it."""
        with passing(self._gate):
            rows = [(n, row) for n, row in self._roster.used() if n < self._classes]
            waiting = self._waiting([number for number, _ in rows])
            parts = {
                number: certificate_of(self._spec, row, count)
                for (number, row), count in zip(rows, waiting, strict=True)
            }
            waits = len(self._counter)
            expired = self.issued - self.rounds - waits
            return ClassCertificate(self.rounds, waits, expired, parts)

    def _shown(self) -> dict[str, Any]:
        return {"engine": self.engine}

    def _settings(self) -> dict[str, Any]:
        return self._spec.settings

    @staticmethod
    def _spec_from(document: Document) -> Spec:
        return spec_of(document.shape, document.settings)[0]

    @property
    def _most(self) -> int:
        return self._classes

    def _check_tickets(self, lines: Words) -> None:
        number = lines[:, 1]
        fits = (number >= 0) & (number < self.issued)
        if not fits.all():
            raise ValueError("tickets that were never issued")
        lead = 2 + len(self._lead)
        width = len(many.letters(self._spec.kept))
        for start in range(lead, lines.shape[1], width):
            part = np.ascontiguousarray(lines[:, start : start + width])
            shares = part.view(np.float64)[:, [2, 3, 5]]
            fits &= possible(self._spec, part[:, 1], shares, part[:, 6:])
            fits &= (part[:, 0] >= 0) & (part[:, 4] >= -1)
        if not fits.all() or not self._numbers_fit(lines):
            raise ValueError("tickets that were never issued")

    # ------------------------------------------------------- what subclasses do

    _kind_of_tickets: ClassVar[Any]

    @staticmethod
    def _parts_of(ticket: Any) -> tuple[Ticket, ...]:
        parts: tuple[Ticket, ...] = ticket.parts
        return parts

    @abstractmethod
    def _first(self, classes: int) -> int:
        """Return the number of the row that sees every round."""

    @abstractmethod
    def _width(self, classes: int) -> int:
        """Return how many parts a ticket has."""

    @abstractmethod
    def _numbers(self, ticket: TicketT) -> Sequence[int]:
        """Return the numbers of the rows that a ticket used, in the order of its parts."""

    @abstractmethod
    def _told(self, ticket: TicketT, number: int, outcome: int | None) -> int:
        """Return the binary outcome of a part."""

    @abstractmethod
    def _waiting(self, numbers: list[int]) -> list[int]:
        """Return how many open tickets use the row of each number."""

    @abstractmethod
    def _numbers_fit(self, lines: Words) -> bool:
        """Say whether rows and numbers of the parts of stored tickets can be."""


def made_spec(engine: Any, options: dict[str, Any]) -> Spec:
    """Return the spec of a kind of recalibrator, with ``options`` as its class takes them."""
    return ENGINES[check.choice(engine, "engine", tuple(ENGINES))](seed=0, **options).spec


def overtaken_anywhere() -> StaleForecast:
    """Return the error that a prediction is not the next round's any more."""
    return StaleForecast(
        "another round came between predict_one and learn_one; "
        "use forecast and observe where rounds overlap"
    )
