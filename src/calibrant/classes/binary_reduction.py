"""Recalibrators over classes that are made of binary ones: rows of one spec in one arena."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from calibrant.bounds.game import by_chance, probable, share
from calibrant.calibrators.arena import Arena
from calibrant.classes.base import ClassRecalibrator, RunT
from calibrant.classes.certificate import ClassCertificate
from calibrant.classes.roster import Roster
from calibrant.classes.ticket import ClassIssuer, PartsTicket, letters
from calibrant.classes.vectors import class_count
from calibrant.classes.version1 import migrated_reduction
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.limits import refuse_large
from calibrant.core.stateful import Migration
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import ForeignTicket
from calibrant.kernels.crowd import count_correction
from calibrant.kernels.layout import ASIDE, CELL, ROUNDS
from calibrant.kernels.rounds import Peeked
from calibrant.recalibrate import Recalibrator
from calibrant.recalibrate.binary import possible, spec_of
from calibrant.recalibrate.intact import Spans
from calibrant.recalibrate.promise import FAILURE
from calibrant.recalibrate.record import certificate_of
from calibrant.recalibrate.rows import Notes, Rows
from calibrant.recalibrate.secret import Secret, fingerprint, part_of, secret_of
from calibrant.recalibrate.spec import Spec
from calibrant.recalibrate.stream import came_between
from calibrant.recalibrate.table import KINDS as ENGINES

MadeT = TypeVar("MadeT", bound=PartsTicket)
Both = tuple[Reals, Reals]


class Seen(NamedTuple):
    """A part of a round that was looked at: its row, what booking it takes, what it would say."""

    row: int
    note: Peeked
    raw: float
    value: float
    mean: float


class BinaryReduction(ClassRecalibrator[MadeT, RunT]):
    """What :class:`.OneVsRest` and :class:`.TopLabel` share: binary rows with coins of their own.

    A forecast over classes has a binary *part* in each row that it uses.  Subclasses say which
    rows these are, and what the outcome of a part is.
    """

    __slots__ = ("_chosen", "_first", "_parts", "_rows", "_spec", "_undo", "_undo_for")

    migrations: ClassVar[dict[int, Migration]] = ClassRecalibrator.migrations | {
        1: migrated_reduction
    }
    _option: ClassVar[str]
    """The name of the one option that a subclass has."""
    _lead: ClassVar[str] = "d"
    """What the desk keeps of a ticket before its parts, a letter a word; the time comes first."""

    def _begin(self, classes: Any, spec: Spec, secret: Secret, max_open: Any, option: Any) -> None:
        """Set up the first row of that spec before its first round."""
        self._chosen, self._classes = self._checked(option), class_count(classes)
        self._spec, self._rows, self._secret = spec, Rows(spec, Arena(spec.layout)), secret
        self._undo: Notes = []
        self._undo_for = -1
        rule, mixes = spec.rule, spec.transform is not None
        whose = fingerprint(secret, self.kind, self._classes)
        self._parts = Issuer(whose, rule.lattice, rule.kernels.full_support, mixes, spec.kept)
        self._first, width, most = self._shape(self._classes)
        refuse_large(width * len(spec.layout.fresh))
        rows = Roster(self._rows.arena, self._first, most, self._seat, self._rows.use_array)
        issuer = ClassIssuer(whose, self._parts, self._chosen)
        fields = self._leading() + letters(spec.kept) * width
        self._enter(rows, issuer, fields, max_open)
        self._timed = rule.timed

    def _leading(self) -> str:
        """Return what the desk keeps of a ticket before its parts."""
        return self._lead

    def _seat(self, row: Words, number: int) -> None:
        self._spec.seat(row, self._secret_of(number))

    def _secret_of(self, number: int, secret: bytes | None = None) -> bytes:
        """Return the secret of the row of a number, which follows from that of all."""
        return part_of(self._secret if secret is None else secret, number)

    # ------------------------------------------------------------------ facts

    @property
    def engine(self) -> str:
        """Which kind of recalibrator is inside."""
        return "recalibrator" if self._spec.transform is None else "calibrant"

    @property
    def _throws(self) -> str:
        return self._spec.coins

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

    def _become_again(self, kept: Any) -> None:
        super()._become_again(kept)
        self._rows.use_array()

    # ----------------------------------------------------------------- a round

    def _issue(self, raw: Reals) -> MadeT:
        number = self.issued
        self._undo, self._undo_for = [], number
        return self._made(raw, self._issue_part)

    def _take_back(self, number: int, most: int) -> None:
        if self._undo_for == number:
            self._rows.withdraw_parts(self._undo)
            self._undo = []

    def _issue_part(self, number: int, raw: float) -> Ticket:
        """Make a binary forecast in the row of a number."""
        row = self._roster.place(number)
        own, place, weight, mixed, clock, kept, law = self._rows.issue_part(row, raw, self._undo)
        return Ticket(self._parts, own, own, place, weight, raw, None, clock, law, mixed, kept)

    def _placed(self, ticket: MadeT, outcome: int | None) -> list[tuple[int, Any, int]]:
        """Return row, part and binary outcome of each part of a ticket."""
        return [
            (self._roster.place(number), part, self._told(ticket, number, outcome))
            for number, part in zip(self._numbers(ticket), ticket.parts, strict=True)
        ]

    def _learn(self, ticket: MadeT, outcome: int) -> None:
        time = 0.0 if ticket.time is None else ticket.time
        self._rows.learn_parts(
            [
                (row, p.number, p._place, p._weight, p._mixed, p.raw, time, told, p._kept)
                for row, p, told in self._placed(ticket, outcome)
            ]
        )

    def _spans(self, ticket: MadeT) -> Spans:
        size = len(self._arena.layout.fresh)
        rows = [self._roster.place(n) for n in self._numbers(ticket) if n in self._roster]
        return [(row, row + size) for row in {self._row, *rows}]

    def _correct(self, ticket: MadeT, outcome: int) -> None:
        time = 0.0 if ticket.time is None else ticket.time
        if self._timed and ticket.time is None:
            raise self._no_time(f"{ticket!r} without one")
        self._check_whole(ticket)
        both = zip(self._placed(ticket, outcome), self._placed(ticket, ticket.outcome), strict=True)
        found = [new for new, old in both if new[2] != old[2]]
        for row, part, told in found:
            if not part.fallback:
                self._rows.check_counted(row, part.place, told, ticket)
        for row, part, told in found:
            facts = part.number, part.place, part.weight, part._mixed, part.raw
            if row != self._row:
                count_correction(self._words(), row, part.number)
            self._rows.correct(row, (*facts, time), told)

    def _check_whole(self, ticket: MadeT) -> None:
        """Raise if a closed ticket was altered."""
        numbers = self._numbers(ticket)
        grids = all(part.issuer.grid == self._spec.rule.lattice for part in ticket.parts)
        whole = len(numbers) == len(ticket.parts) and all(n in self._roster for n in numbers)
        if not whole or not grids:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")

    @property
    def _reserves(self) -> bool:
        return self._spec.raw_safe is not None

    def _forget(self, tickets: list[tuple[Any, ...]]) -> None:
        if not self._reserves:
            return
        for fields in tickets:
            ticket: Any = self._tickets.revived(self._counter.issuer, 0, 0, fields)
            for row, part, _ in self._placed(ticket, None):
                self._rows.forget(row, part.place, part.weight, part.raw)

    def _coin(self, ticket: MadeT) -> Any:
        self._check_whole(ticket)
        pairs = zip(self._numbers(ticket), ticket.parts, strict=True)
        secret = self._secret_at(ticket.number)
        coins = [self._flip(self._secret_of(k, secret), part.bucket, part) for k, part in pairs]
        return np.array(coins) if self._wide else coins[-1]

    # ------------------------------------------------------- predict, then learn

    def _look(self, raw: Reals) -> MadeT:
        return self._made(raw, self._see)

    def _see(self, number: int, raw: float) -> Seen:
        """Look at the next draw of the row of a number."""
        row = self._roster.place(number)
        note = self._rows.peek(row, raw)
        if note[0] & ASIDE:
            return Seen(row, note, raw, raw, raw)
        mean = self._rows.mean_of(note[0], note[1])
        return Seen(row, note, raw, self._parts.values[note[0] & CELL], mean)

    def _commit(self, seen: MadeT, rounds: int, outcome: int) -> None:
        # What a row says may depend on every round, if others follow it.
        same = len(seen.parts) == 1 or (seen.number, rounds) == (self.issued, self.rounds)
        if not same or not all(self._rows.committable(*part[:3]) for part in seen.parts):
            raise came_between("another round")
        placed = self._placed(seen, outcome)
        self._rows.commit_parts([(row, part.note, part.raw, told) for row, part, told in placed])

    # ----------------------------------------------------------------- batches

    def preview(self, rows: Reals) -> tuple[Reals, Reals]:
        """Return what carries the guarantee, drawn and mean, of many rows, each as the next round.

        That is numbers of all classes, renormalised, or confidences.  Nothing is noted and nothing
        changes.
        """

        def step(number: int, raw: Reals, right: Any) -> Both:
            return self._rows.preview(self._roster.place(number), np.array(raw, order="C"))

        with self._gate:
            drawn, mean = self._through(rows, None, step)
        return self._onto(drawn), self._onto(mean)

    def _prompt(self, rows: Reals, outcomes: Words) -> Both | None:
        safe = self._spec.raw_safe is not None
        # Tickets that expire on the way would give back what was reserved for them.
        if safe and len(self._counter) and self.issued + len(rows) > self.max_open:
            return None
        # Many short batches are worth the compiler as one long one is.
        self._rows.batch(len(rows))
        made = self._through(rows, outcomes, self._replay_row)
        self._rows.use_array()
        return made

    def _replay_row(self, number: int, raw: Reals, right: Any) -> Both:
        """Play rounds of the row of a number; return draws and means."""
        # The compiler knows one kind of arrays only.
        values, told = np.array(raw, order="C"), right.astype(np.uint8)
        drawn, mean, _ = self._rows.replay(self._roster.place(number), values, told)
        return drawn, mean

    def _onto(self, rows: Reals) -> Reals:
        """Return drawn or mean numbers as they are announced."""
        return rows

    # --------------------------------------------------------------------- state

    def certificate(self, failure: float = FAILURE) -> ClassCertificate:
        """Return what was measured by each recalibrator inside, and its bounds beside it.

        What is said to hold about this very run may fail with probability ``failure``.
        """
        chance = probable(failure)
        with self._gate:
            rows = [(n, row) for n, row in self._roster.used() if self._is_told(n)]
            open_at = self._waiting([number for number, _ in rows])
            parts = {
                n: certificate_of(self._spec, row, open_at[n], self._chance(chance, n, row))
                for n, row in rows
            }
            waits = len(self._counter)
            expired = self.issued - self.rounds - waits
            told = self.rounds, waits, expired, parts, chance, self._unpromised
            return ClassCertificate(*told, seeded=self._secret.seeded)

    @property
    def _unpromised(self) -> str | None:
        """What has no promise though one might expect it, in the certificate's words."""
        return None

    def _is_told(self, number: int) -> bool:
        """Say whether the certificate tells of the row of a number."""
        return number < self._classes

    def _chance(self, failure: float, number: int, row: Words) -> float:
        """Return how likely what is said of the row of a number may fail."""
        part = share(failure, self._classes)
        return part if self._all_learn else by_chance(part, int(row[ROUNDS]))

    @property
    def _all_learn(self) -> bool:
        """Whether every row learns in every round."""
        return True

    def _waiting(self, numbers: list[int]) -> dict[int, int]:
        """Return how many open tickets use the row of each number."""
        return dict.fromkeys(numbers, len(self._counter))

    def _shown(self) -> dict[str, Any]:
        return {"engine": self.engine, self._option: self._chosen}

    def _settings(self) -> dict[str, Any]:
        return self._spec.settings | {self._option: self._chosen}

    def _set_up(self, document: Document, secret: Secret) -> None:
        s, (spec, cap) = document.settings, spec_of(document.shape, document.settings)
        self._begin(s["classes"], spec, secret, cap, self._option_of(s))

    def _option_of(self, settings: dict[str, Any]) -> Any:
        """Return the option that stored settings name."""
        return settings[self._option]

    def _check_rows(self) -> None:
        for _, row in self._roster.all():
            self._spec.body.verify_row(row)

    def _check_tickets(self, lines: Words) -> None:
        number = lines[:, 1]
        fits = (number >= 0) & (number < self.issued)
        width = len(letters(self._spec.kept))
        for start in range(2 + len(self._leading()), lines.shape[1], width):
            part = np.ascontiguousarray(lines[:, start : start + width])
            shares = part.view(np.float64)[:, [2, 3, 5]]
            fits &= possible(self._spec, part[:, 1], shares, part[:, 6:])
            fits &= (part[:, 0] >= 0) & (part[:, 4] >= -1)
        if not fits.all() or not self._numbers_fit(lines, width):
            raise ValueError("tickets that were never issued")

    # ------------------------------------------------------- what subclasses do

    @staticmethod
    @abstractmethod
    def _checked(option: Any) -> Any:
        """Return the option, if it is one."""

    @abstractmethod
    def _shape(self, classes: int) -> tuple[int, int, int]:
        """Return the row that sees every round, how many parts there are, and the last row."""

    @abstractmethod
    def _made(self, raw: Reals, step: Callable[[int, float], Any]) -> MadeT:
        """Return a ticket whose parts are what a step makes of row and raw forecast of each."""

    @abstractmethod
    def _through(self, rows: Reals, outcomes: Any, step: Callable[..., Both]) -> Both:
        """Take a step for all rounds of a batch at once in each row that these use."""

    @abstractmethod
    def _numbers(self, ticket: MadeT) -> Sequence[int]:
        """Return the numbers of the rows that a ticket used, in the order of its parts."""

    @abstractmethod
    def _told(self, ticket: MadeT, number: int, outcome: int | None) -> int:
        """Return the binary outcome of a part."""

    @abstractmethod
    def _numbers_fit(self, lines: Words, width: int) -> bool:
        """Say whether rows and numbers of the parts of stored tickets can be."""


def made_spec(engine: Any, options: dict[str, Any]) -> Spec:
    """Return the spec of a kind of recalibrator, with ``options`` as its class takes them."""
    return ENGINES[check.choice(engine, "engine", tuple(ENGINES))](seed=0, **options).spec
