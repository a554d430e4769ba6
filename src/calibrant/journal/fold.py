"""The state of one stream: what its events, one after the other, make of an empty model."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple, Protocol, cast

import numpy as np

from calibrant.core.desk import name_key
from calibrant.errors import DamagedLog, InvalidInput
from calibrant.journal import events
from calibrant.journal.commitment import SALT, salt_of
from calibrant.journal.forms import AnyTicket, Model, form_of
from calibrant.journal.parts import closed, opened
from calibrant.journal.store import Line
from calibrant.kernels.layout import ISSUED, ROUNDS
from calibrant.loading import load
from calibrant.recalibrate import Table

SHAPE: Final = "early 1, state"
WITNESSED: Final = "early 1, witness 1, state"
"""How the body of a snapshot is laid out: a part is as long as the four bytes before it say, and
the state goes to the end."""
PARTS: Final = {SHAPE: 1, WITNESSED: 2}
"""How many parts there are before the state."""
AT_ONCE: Final = b"learned"
KEPT: Final = b"early"
GONE: Final = b"expired"


class Run(NamedTuple):
    """Forecasts and outcomes of a stream with binary outcomes that happened again, as columns.

    Attributes
    ----------
    seq, made, id
        Place of each event, whether it is a forecast, and of which id.
    raw, value, mean, since
        What came in, what was drawn and what was announced on average, and when the forecast was
        made, if that was told; of an outcome, those of its forecast.
    outcome, time
        What happened, and when it was known: of outcomes alone.
    """

    seq: list[int]
    made: list[bool]
    id: list[str]
    raw: list[float]
    value: list[float]
    mean: list[float]
    since: list[float | None]
    outcome: list[int]
    time: list[float | None]


class Witness(Protocol):
    """Who follows a stream, and is told of each event once it has happened."""

    def forecast(self, ticket: AnyTicket) -> None:
        """Note a forecast."""

    def learned(self, ticket: AnyTicket, seq: int, time: float | None) -> None:
        """Note an outcome that was learned by event ``seq``."""

    def corrected(self, ticket: AnyTicket, outcome: int, was: int, since: int) -> None:
        """Note that the outcome ``was``, learned by event ``since``, is another one."""

    def expired(self, id: str) -> None:
        """Note that an outcome will never come."""

    def played(self, run: Run) -> None:
        """Note many forecasts and outcomes at once, none of which came early."""

    def anew(self, model: Model, seq: int) -> None:
        """Begin again: by event ``seq`` the stream was handed over from elsewhere."""

    def to_bytes(self) -> bytes:
        """Return the whole witness as bytes."""


class Fold:
    """A stream as its log makes it: a model, and outcomes that came before their forecasts.

    Attributes
    ----------
    model
        A recalibrator of any kind in :mod:`calibrant.journal.forms`, or a table of them if the
        stream is keyed.
    form
        How the model is asked, and how its tickets lie in the log.
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
        self._quick: Model | None = None
        self._take(model)

    def _take(self, model: Model) -> None:
        self.model, self.form = model, form_of(model)
        self.keyed = isinstance(model, Table)

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

    def quicken(self, rounds: int = 0) -> None:
        """Let machine code take over, once, where it is worth its start after that many rounds."""
        model: Any = self.model
        if self.form.slow and self._quick is not model and self.learned >= rounds:
            try:
                self.form.make_machine()
                model.compile()
            finally:
                self._quick = model

    def waits(self, id: str) -> bool:
        """Say whether a forecast's outcome is still waited for."""
        model = self.model
        if isinstance(model, Table):
            return model._desk.get(name_key(id)) is not None
        return model._counter.waits(id)

    # ------------------------------------------------------------------ events

    def apply(self, asked: events.Asked, seq: int) -> bytes:
        """Let an event happen, at its place in the log; return its answer, packed."""
        if asked.kind == events.FORECAST:
            return self._forecast(asked, seq)
        if asked.kind == events.OUTCOME:
            return self._outcome(asked, seq)
        if asked.kind == events.CORRECTION:
            return self._correct(asked)
        if asked.kind == events.EXPIRY:
            self.model.expire(asked.id)
            if self.witness is not None:
                self.witness.expired(asked.id)
            return GONE
        return self._become(asked, seq)

    def _forecast(self, asked: events.Asked, seq: int) -> bytes:
        id, ticket = asked.id, self.form.forecast(asked)
        told = self.form.packed(ticket)
        if asked.hidden:
            told += salt_of(self.form.secret(asked.key), seq, id)
        if self.witness is not None:
            self.witness.forecast(ticket)
        if id in self.early:
            self._learn(id, self.early.pop(id), None, seq)
        return told

    def _outcome(self, asked: events.Asked, seq: int) -> bytes:
        if not self.waits(asked.id):
            self.early[asked.id] = int(asked.x)
            return KEPT
        self._learn(asked.id, int(asked.x), asked.time, seq)
        return AT_ONCE

    def _learn(self, id: str, outcome: int, time: float | None, seq: int) -> None:
        closed = self.model.observe(id, outcome, time)
        if self.witness is not None:
            self.witness.learned(closed, seq, time)

    def _correct(self, asked: events.Asked) -> bytes:
        past, model = self.form.past, cast(Any, self.model)
        raw, time, was = past.unpack_from(asked.body)
        asked_then = asked.id, asked.key, raw, None if time != time else time, asked.groups
        made = self.form.revived(asked.body[past.size :], *asked_then)
        # Said of a forecast of any age: the log has its outcome.
        made._outcome = was
        model.correct(made, int(asked.x), was=was)
        if self.witness is not None:
            self.witness.corrected(made, int(asked.x), was, asked.since)
        return asked.body

    def _become(self, asked: events.Asked, seq: int) -> bytes:
        model = load(asked.body)
        if not self.form.like(model):
            raise InvalidInput(f"state must have the settings of the stream, got {model!r}")
        self._take(model)
        if self.witness is not None:
            self.witness.anew(model, seq)
        known, self.early = self.early if asked.early else {}, {}
        for id, outcome in known.items():
            if self.waits(id):
                self._learn(id, outcome, None, seq)
            else:
                self.early[id] = outcome
        return asked.body

    def replay(self, event: events.Event, since: int = 0) -> None:
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

    def ticket(self, forecast: events.Event, outcome: int | None = None) -> Any:
        """Return the ticket of a forecast in the log."""
        key, x, time = events.read_key(forecast.key), forecast.x, forecast.time
        groups = events.read_more(forecast.more).groups
        ticket = self.form.revived(plain(forecast), forecast.id, key, x, time, groups)
        ticket._outcome = outcome
        return ticket

    def past(self, forecast: events.Event, was: int) -> bytes:
        """Return what a correction needs of its forecast and of the outcome that stands."""
        time = float("nan") if forecast.time is None else forecast.time
        return self.form.past.pack(forecast.x, time, was) + plain(forecast)

    # ------------------------------------------------------------------ snapshots

    @property
    def shape(self) -> str:
        """How :meth:`body` is laid out."""
        return SHAPE if self.witness is None else WITNESSED

    def body(self) -> bytes:
        """Return the whole stream as bytes, for a snapshot."""
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


def plain(forecast: events.Event) -> bytes:
    """Return the packed ticket of a forecast, without the salt of one whose draw is hidden."""
    return forecast.told[:-SALT] if salt_in(forecast) else forecast.told


def salt_in(forecast: events.Event) -> bytes:
    """Return the salt of a forecast whose draw is hidden, or nothing."""
    return forecast.told[-SALT:] if events.read_more(forecast.more).hidden else b""


def differs(event: events.Event) -> DamagedLog:
    """Return the error of an event that is answered otherwise now than it was."""
    return DamagedLog(
        f"event {event.seq} ({events.KINDS[event.kind]} {event.id!r}) must be answered as in the "
        f"log, got another answer; it was given by code {event.code:012x}, this is "
        f"{events.code_digest():012x}"
    )


def _asked(event: events.Event, since: int) -> events.Asked:
    """Return what was asked by an event."""
    body = event.told if event.kind in (events.CORRECTION, events.STATE) else b""
    key, (raw, groups, hidden, early) = events.read_key(event.key), events.read_more(event.more)
    x = event.x if raw is None else raw
    told = event.time, body, since, groups, hidden, early
    return events.Asked(event.stream, event.kind, event.id, key, x, *told)
