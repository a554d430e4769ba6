"""A stream of probabilities whose rounds lie in a journal: on disk as they are made, for all runs.

Every row has an id: that of its column, or else the digest of its file and its place there.  So a
run that is started again, after a kill or by mistake, gets the answers that were given, and
learns nothing twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput
from calibrant.journal import Journal
from calibrant.kinds.binary.session import BinarySession
from calibrant.recalibrate import Recalibrator
from calibrant.stream.failure import StateMismatch
from calibrant.stream.ids import Book, Open, number_of
from calibrant.stream.rows import Rounds
from calibrant.stream.session import Answers
from calibrant.stream.source import digest_of
from calibrant.summary import AnySummary, collector_for

AT_ONCE: Final = 1_000
"""Rows that are written together; other runs wait that long for their turn."""


@dataclass
class JournaledSession(BinarySession):
    """A session over a stream without keys of a :class:`~calibrant.Journal`.

    Attributes
    ----------
    journal
        Where the rounds are.
    names
        Ids of the rows that come next, if their column was told.
    """

    journal: Any = None
    names: list[str] = field(default_factory=list)
    _input: Iterator[str] = field(default_factory=lambda: iter(()))
    _ids: dict[int, str] = field(default_factory=dict)

    @classmethod
    def opened(cls, path: str, fresh: BinarySession, seed: int | None) -> JournaledSession:
        """Return a session of the journal in a file, which begins as a fresh session would."""
        pattern = fresh.recalibrator
        journal = _journal(path, pattern)
        try:
            made: Any = journal.state()
            if not isinstance(made, Recalibrator):
                raise StateMismatch(f"{path} must be a journal without keys, got a keyed one")
            if seed is not None and made._secret != pattern._secret:
                raise StateMismatch(f"seed must be that of the journal {path}, got {seed!r}")
            return cls(made, collector_for(made), fresh.scale, seed, journal=journal)
        except BaseException:
            journal.close()
            raise

    def begin(self, name: str) -> None:
        prefix = digest_of(name) or secrets.token_hex(16)
        self._input = (f"{prefix[:32]} {row}" for row in range(1, 1 << 62))

    def call(self, names: Sequence[str]) -> None:
        self.names = list(names)

    def read_book(self) -> Book:
        """Return which ids are known, as the journal has it now."""
        closed, waiting = self.journal.tickets()
        self._ids = {ticket.number: ticket.id for ticket in waiting}
        learned = {number_of(ticket.id) for ticket in closed}
        return Book({number_of(one.id): _open(one) for one in waiting}, learned)  # type: ignore[misc, arg-type]

    def play(self, rounds: Rounds) -> Answers:
        names = self.names or [next(self._input) for _ in range(len(rounds))]
        self.names = []
        tickets = list[Ticket]()
        for start in range(0, len(rounds), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            tickets += self._written(rounds.cut(part), names[part])
        self.recalibrator = self.journal.state()
        self._ids |= {ticket.number: str(ticket.id) for ticket in tickets}
        return _answers(tickets)

    def _written(self, rounds: Rounds, names: list[str]) -> list[Ticket]:
        """Write rows, each with its outcome if that is known; return the tickets of the rows."""
        rows = zip(names, rounds.raw.tolist(), rounds.outcomes.tolist(), rounds.known, strict=True)
        events = list[tuple[int, str, float]]()
        for name, raw, outcome, known in rows:
            events += [(0, name, raw), (1, name, outcome)][: 1 + bool(known)]
        kinds, ids, values = zip(*events, strict=True)
        told = self.journal.play(None, kinds, ids, values)
        return [ticket for kind, ticket in zip(kinds, told, strict=True) if kind == 0]

    def settle(self, forecast: Open, outcome: int) -> None:
        self.journal.observe(self._ids[forecast.ticket], outcome)

    def summary(self, settings: Mapping[str, Any], timing: Mapping[str, float]) -> AnySummary:
        """Return what the whole journal amounts to, whoever wrote it."""
        closed, waiting = self.journal.tickets()
        made = self.recalibrator = self.journal.state()
        self.collector, self.unresolved = collector_for(made), len(waiting)
        if closed:
            known = np.ones(len(closed), np.bool_)
            outcomes = np.array([ticket.outcome for ticket in closed], np.uint8)
            raw = np.array([ticket.raw for ticket in closed])
            self._follow(Rounds(raw, outcomes, known, None, None), _answers(closed))
        return super().summary(settings, timing)


def _journal(path: str, pattern: Any) -> Journal:
    """Return the journal in a file; the stream is made if it is not there."""
    if Path(path).exists():
        # Whatever the stream is: options that were given are compared later.
        with suppress(InvalidInput):
            return Journal(path)
    return Journal(path, pattern, keyed=False)


def _open(ticket: Ticket) -> Open:
    return Open(ticket.number, ticket.raw, ticket.value, min(ticket.mean, 1.0))


def _answers(tickets: list[Ticket]) -> Answers:
    reals = [[one.value for one in tickets], [min(one.mean, 1.0) for one in tickets]]
    words = [[one.bucket for one in tickets], [one.number for one in tickets]]
    return Answers(*np.array(reals, np.float64), *np.array(words, np.int64))
