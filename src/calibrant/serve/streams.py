"""Streams made, shown, deleted and brought back."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from calibrant.errors import Contradiction
from calibrant.journal.fold import Fold
from calibrant.journal.forms import form_of
from calibrant.journal.ledger import Ledger
from calibrant.journal.settings import Settings
from calibrant.journal.store import Line
from calibrant.recalibrate import Table
from calibrant.serve.problems import Refused
from calibrant.serve.structs import KeyOut, StreamIn, StreamOut
from calibrant.summary import kinds


def service_of(asked: StreamIn) -> Any:
    """Return the service of the kind of stream that is asked for."""
    services = (kind.service for kind in kinds)
    return next(each for each in services if each is not None and each.wants(asked))


def put(ledger: Ledger, name: str, asked: StreamIn) -> tuple[StreamOut, bool]:
    """Make a stream, unless it is there already; say whether it is new."""
    made = msgspec.to_builtins(asked)
    line = ledger.lines.get(name)
    if line is not None:
        _check_same(line, made)
        return shown(ledger, line), False
    service = service_of(asked)
    try:
        alone = service.make(asked)
        model = Table(alone, seed=asked.seed) if asked.keyed else alone
    except TypeError as error:
        raise Refused("invalid", f"parameters must be those of the method, got {error}") from None
    form_of(model)
    told = asked.keyed, asked.unknown, asked.most_open, asked.alarm, made, asked.keep
    settings = Settings(*told, service.labels(asked), asked.reveal)
    number = 1 + max((line.number for line in ledger.lines.values()), default=0)
    line = Line(number, name, settings.to_json(), model.to_bytes())
    with ledger.store.writing():
        ledger.put_stream(line)
    return shown(ledger, line), True


def _check_same(line: Line, made: dict[str, Any]) -> None:
    if line.gone is not None:
        raise Refused("deleted", "stream must be restored first, got a deleted one")
    stored = Settings.from_json(line.settings).made
    # A setting that came with a later release is as it was before: the default.
    before = msgspec.to_builtins(msgspec.convert(stored, StreamIn)) if stored else stored
    if before != made:
        differ = [k for k in {*made, *before} if made.get(k) != before.get(k)]
        stored, told = ({k: of.get(k) for k in differ} for of in (before, made))
        raise Contradiction(
            f"stream must have the settings it was made with, {stored}, got {told}",
            stored=stored,
            told=told,
        )


def marked(ledger: Ledger, name: str, gone: bool) -> StreamOut:
    """Mark a stream as deleted, or as there again."""
    line = ledger.stream(name, gone=True)
    if (line.gone is not None) != gone:
        line = line._replace(gone=time.time() if gone else None)
        with ledger.store.writing():
            ledger.put_stream(line)
    return shown(ledger, line)


def shown(ledger: Ledger, line: Line) -> StreamOut:
    """Return a stream as data."""
    fold, settings = ledger.folds[line.number], Settings.from_json(line.settings)
    told = settings.made or {
        "keyed": settings.keyed,
        "unknown": settings.unknown,
        "most_open": settings.most_open,
        "alarm": settings.alarm,
    }
    # Whoever knows the seed knows the coins.
    shown = {name: value for name, value in told.items() if name != "seed"}
    counts = fold.issued, fold.learned, fold.open, len(fold.early), fold.seq
    return StreamOut(line.name, shown, *counts, line.gone is not None)


def keys_of(fold: Fold, worst: int | None) -> list[KeyOut]:
    """Return what was measured in each key's stream, or in so many that are worst."""
    if not isinstance(fold.model, Table):
        raise Refused("invalid", "keys must be asked of a keyed stream")
    found = fold.model.certificates()
    if worst is not None:
        found = found.worst(worst)
    columns = found.key, found.rounds, found.open, found.c1, found.c2, found.promised, found.holds
    rows = zip(*(list(column) for column in columns), strict=True)
    return [
        KeyOut(key, int(rounds), int(waits), _finite(c1), _finite(c2), _finite(bound), bool(holds))
        for key, rounds, waits, c1, c2, bound, holds in rows
    ]


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if abs(number) < float("inf") else None
