"""The state of one stream: what its events, one after the other, make of an empty model."""

from __future__ import annotations

import json
import struct
from typing import Any, Final, Protocol

import numpy as np

from calibrant.core.desk import name_key
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import DamagedLog, InvalidInput, InvalidType
from calibrant.journal.events import (
    CORRECTION,
    EXPIRY,
    FORECAST,
    KINDS,
    OUTCOME,
    STATE,
    Asked,
    Event,
    read_key,
)
from calibrant.journal.parts import closed, opened
from calibrant.journal.store import Line
from calibrant.kernels.layout import ISSUED, ROUNDS
from calibrant.loading import load
from calibrant.recalibrate import Recalibrator, Table
from calibrant.recalibrate.keyed import Key, KeyedTicket

SHAPE: Final = "early 1, state"
WITNESSED: Final = "early 1, witness 1, state"
"""How the body of a snapshot is laid out: a part is as long as the four bytes before it say, and
the state goes to the end."""
PARTS: Final = {SHAPE: 1, WITNESSED: 2}
"""How many parts there are before the state."""
HEAD: Final = struct.Struct("<qqqdd")
PAST: Final = struct.Struct("<ddB")
AT_ONCE: Final = b"learned"
KEPT: Final = b"early"
GONE: Final = b"expired"

Model = Recalibrator | Table


class Witness(Protocol):
    """Who follows a stream, and is told of each event once it has happened."""

    def forecast(self, ticket: Ticket) -> None:
        """Note a forecast."""

    def learned(self, ticket: Ticket, seq: int, time: float | None) -> None:
        """Note an outcome that was learned by event ``seq``."""

    def corrected(self, ticket: Ticket, outcome: int, since: int) -> None:
        """Note that the outcome that was learned by event ``since`` is another one."""

    def expired(self, id: str) -> None:
        """Note that an outcome will never come."""

    def anew(self, model: Model, seq: int) -> None:
        """Begin again: by event ``seq`` the stream was handed over from elsewhere."""

    def to_bytes(self) -> bytes:
        """Return all of it as bytes."""


class Fold:
    """A stream as its log makes it: a model, and outcomes that came before their forecasts.

    Attributes
    ----------
    model
        A recalibrator, or a table of them if the stream is keyed.
    early
        Outcomes whose forecasts were not made yet, by id.
    seq
        Place of the last event that is in here.
    witness
        Who follows the stream, if anybody does.
    """

    def __init__(
        self,
        model: Model,
        early: dict[str, int] | None = None,
        seq: int = 0,
        witness: Witness | None = None,
    ) -> None:
        self.early, self.seq, self.witness = {} if early is None else early, seq, witness
        self._take(model)

    def _take(self, model: Model) -> None:
        self.model = model
        self.keyed = isinstance(model, Table)
        self.kept = model._spec.kept
        self.whole_laws = model._spec.issuer(bytes(16)).full_support

    @property
    def open(self) -> int:
        """How many outcomes are missing."""
        model = self.model
        return len(model._desk) if isinstance(model, Table) else len(model._counter)

    @property
    def issued(self) -> int:
        """How many forecasts were made."""
        return self._sum(ISSUED) if isinstance(self.model, Table) else self.model.issued

    @property
    def learned(self) -> int:
        """How many outcomes were learned."""
        return self._sum(ROUNDS) if isinstance(self.model, Table) else self.model.rounds

    def _sum(self, word: int) -> int:
        """Return the sum of a word over all rows of a table."""
        model: Any = self.model
        return int(model._own(word, np.array(list(model._numbers.values()), np.int64)).sum())

    def waits(self, id: str) -> bool:
        """Say whether a forecast's outcome is still waited for."""
        model = self.model
        if isinstance(model, Table):
            return model._desk.get(name_key(id)) is not None
        latest = model._counter.latest
        if latest is not None and latest.id == id:
            return True
        return model._counter.desk.get(name_key(id)) is not None

    # ------------------------------------------------------------------ events

    def apply(self, asked: Asked, seq: int) -> bytes:
        """Let an event happen, at its place in the log; return its answer, packed."""
        if asked.kind == FORECAST:
            return self._forecast(asked, seq)
        if asked.kind == OUTCOME:
            return self._outcome(asked, seq)
        if asked.kind == CORRECTION:
            return self._correct(asked)
        if asked.kind == EXPIRY:
            self.model.expire(asked.id)
            if self.witness is not None:
                self.witness.expired(asked.id)
            return GONE
        return self._become(asked.body, seq)

    def _forecast(self, asked: Asked, seq: int) -> bytes:
        model, id, key, time = self.model, asked.id, asked.key, asked.time
        if isinstance(model, Table):
            if key is None:
                raise InvalidType("key must be given to a stream that is keyed, got None")
            ticket: Ticket = model.forecast(key, asked.x, id=id, time=time)
        else:
            if key is not None:
                raise InvalidInput(f"key must be left out in a stream without keys, got {key!r}")
            ticket = model.forecast(asked.x, id=id, time=time)
        told = packed(ticket)
        if self.witness is not None:
            self.witness.forecast(ticket)
        if id in self.early:
            self._learn(id, self.early.pop(id), None, seq)
        return told

    def _outcome(self, asked: Asked, seq: int) -> bytes:
        if not self.waits(asked.id):
            self.early[asked.id] = int(asked.x)
            return KEPT
        self._learn(asked.id, int(asked.x), asked.time, seq)
        return AT_ONCE

    def _learn(self, id: str, outcome: int, time: float | None, seq: int) -> None:
        closed = self.model.observe(id, outcome, time)
        if self.witness is not None:
            self.witness.learned(closed, seq, time)

    def _correct(self, asked: Asked) -> bytes:
        raw, time, was = PAST.unpack_from(asked.body)
        told = asked.body[PAST.size :]
        made: Any = self.revived(told, asked.id, asked.key, raw, None if time != time else time)
        self.model.correct(made, int(asked.x), was=was)
        if self.witness is not None:
            self.witness.corrected(made, int(asked.x), asked.since)
        return asked.body

    def _become(self, body: bytes, seq: int) -> bytes:
        model = load(body)
        fits = isinstance(model, Table if self.keyed else Recalibrator)
        if not fits or model._spec != self.model._spec:
            raise InvalidInput(f"state must have the settings of the stream, got {model!r}")
        self._take(model)
        self.early = {}
        if self.witness is not None:
            self.witness.anew(model, seq)
        return body

    def replay(self, event: Event, since: int = 0) -> None:
        """Let an event of the log happen again; its answer must be the one in the log.

        ``since`` is the event by which a corrected outcome was learned.
        """
        try:
            answer = self.apply(_asked(event, since), event.seq)
        except (LookupError, ValueError, TypeError, RuntimeError) as error:
            raise DamagedLog(
                f"event {event.seq} must be possible where it stands, got {error}"
            ) from error
        if answer != event.told:
            raise differs(event)
        self.seq = event.seq

    # ------------------------------------------------------------------ tickets

    def ticket(self, forecast: Event, outcome: int | None = None) -> Ticket:
        """Return the ticket of a forecast in the log."""
        key, told = read_key(forecast.key), forecast.told
        ticket = self.revived(told, forecast.id, key, forecast.x, forecast.time)
        ticket._outcome = outcome
        return ticket

    def revived(
        self, told: bytes, id: str, key: Key | None, raw: float, time: float | None
    ) -> Ticket:
        """Return a ticket from its packed form."""
        number, place, clock, weight, mixed = HEAD.unpack_from(told)
        words = struct.unpack_from(f"<{self.kept}q", told, HEAD.size)
        issuer, law = self._issuer(key), None
        if issuer.full_support:
            law = _law(told[HEAD.size + 8 * self.kept :])
        parts = number, place, weight, raw, time, None if clock < 0 else clock, law, mixed, words
        if key is None:
            return Ticket(issuer, id, *parts)
        made = KeyedTicket(issuer, id, *parts)
        made._key = key
        return made

    def _issuer(self, key: Key | None) -> Issuer:
        if isinstance(self.model, Table):
            return self.model._issuer(self.model._number_of(key))  # type: ignore[arg-type]
        return self.model._issuer

    # ------------------------------------------------------------------ snapshots

    @property
    def shape(self) -> str:
        """How :meth:`body` is laid out."""
        return SHAPE if self.witness is None else WITNESSED

    def body(self) -> bytes:
        """Return all of it as bytes, for a snapshot."""
        parts = [json.dumps(self.early).encode()]
        if self.witness is not None:
            parts.append(self.witness.to_bytes())
        told = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
        return closed(told + self.model.to_bytes())

    @classmethod
    def from_body(cls, body: bytes, seq: int, shape: str = SHAPE) -> Fold:
        """Return what :meth:`body` gave, without a witness."""
        early, *_, state = parts_of(body, shape)
        return cls(load(state), json.loads(early), seq)

    @classmethod
    def of(cls, line: Line) -> Fold:
        """Return a stream as it is before the first event that the log has of it."""
        return cls.from_body(line.body, line.seq) if line.seq else cls(load(line.body))


def parts_of(body: bytes, shape: str) -> list[bytes]:
    """Return the parts of a snapshot, the state last."""
    told, parts, start = opened(body), list[bytes](), 0
    for _ in range(PARTS[shape]):
        end = start + 4 + int.from_bytes(told[start : start + 4], "little")
        parts.append(told[start + 4 : end])
        start = end
    return [*parts, told[start:]]


def differs(event: Event) -> DamagedLog:
    """Return the error of an event that is answered otherwise now than it was."""
    return DamagedLog(
        f"event {event.seq} ({KINDS[event.kind]} {event.id!r}) must be answered as in the "
        f"log, got another answer; it was given by code {event.code:012x}"
    )


def packed(ticket: Ticket) -> bytes:
    """Return all of a ticket but what was asked."""
    place, weight, _, _, clock, mixed, *kept = ticket.fields
    told = HEAD.pack(ticket.number, place, clock, weight, mixed)
    if kept:
        told += struct.pack(f"<{len(kept)}q", *kept)
    if ticket._law is not None:
        told += struct.pack(f"<{len(ticket._law)}d", *ticket._law)
    return told


def _law(told: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(told) // 8}d", told)


def past(forecast: Event, was: int) -> bytes:
    """Return what a correction needs of its forecast and of the outcome that stands."""
    time = float("nan") if forecast.time is None else forecast.time
    return PAST.pack(forecast.x, time, was) + forecast.told


def _asked(event: Event, since: int) -> Asked:
    """Return what was asked by an event."""
    body = event.told if event.kind in (CORRECTION, STATE) else b""
    key = read_key(event.key)
    return Asked(event.stream, event.kind, event.id, key, event.x, event.time, body, since)
