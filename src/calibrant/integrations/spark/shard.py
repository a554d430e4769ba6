"""The events of a shard in one micro-batch: sorted by sequence, played at once, put away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.core.arrays import Words
from calibrant.errors import CalibrantError
from calibrant.integrations.spark.events import FAULT, played_schema
from calibrant.integrations.spark.shelf import Shelf
from calibrant.recalibrate import Recalibrator, Table
from calibrant.recalibrate.keyed import Key
from calibrant.recalibrate.late import KINDS
from calibrant.recalibrate.sieve import sieve

BODY: Final = "body"
"""Kind of an event that puts a key's body back."""
IDLE: Final = "idle"
"""Kind of a row that tells the body of a key which went."""
Fault = tuple[str, str, str]
"""Column, value, rule."""


@dataclass(frozen=True)
class Settings:
    """What all shards of a job have in common."""

    pattern: Recalibrator
    seed: int
    shards: int
    idle: int | None
    schema: pa.Schema
    timed: bool


class Shard:
    """A shard while a micro-batch is played.

    Parameters
    ----------
    settings
        What all shards have in common.
    shelf
        What the shard remembers; it is changed.
    """

    def __init__(self, settings: Settings, shelf: Shelf) -> None:
        self.settings, self.shelf = settings, shelf
        self.table = Table(settings.pattern, seed=settings.seed)

    def play(self, events: pa.Table) -> pa.Table:
        """Play events in the order of their sequence; return them with what came of them."""
        order = np.argsort(pc.fill_null(events.column("seq"), 0).to_numpy(), kind="stable")
        events = events.take(pa.array(order)).combine_chunks()
        log = Log.of(events)
        self._refuse_known(log)
        known = [key for key in log.keys_of(log.fine()) if key in self.shelf.bodies]
        self.table.take(known, [self.shelf.bodies[key] for key in known])
        if BODY in log.kind:
            self._put_back(log)
        made = self._played(log)
        self._put_away(log)
        return pa.concat_tables([told(events, log.faults, made), self._idle()])

    def _refuse_known(self, log: Log) -> None:
        """Refuse events that are not after the last one of their key: they were played before."""
        last: dict[Key, int] = {}
        for row, (key, seq) in enumerate(zip(log.key, log.seq, strict=True)):
            before = last.get(key, self.shelf.last.get(key))
            if seq is None:
                log.faults[row] = "seq", "None", "a whole number"
            elif before is not None and seq <= before:
                log.faults[row] = "seq", repr(seq), f"after {before}, the last of its key"
            else:
                last[key] = seq

    def _put_back(self, log: Log) -> None:
        """Take over bodies that come back, of keys that are not there."""
        there: set[Key | None] = {None, *self.shelf.last}
        for row, (kind, key) in enumerate(zip(log.kind, log.key, strict=True)):
            if kind == BODY and row not in log.faults:
                log.faults |= self._put_one_back(row, key, log.body(row), key in there)
            there.add(key)

    def _put_one_back(self, row: int, key: Key, body: bytes, there: bool) -> dict[int, Fault]:
        """Take over one body; return what is wrong with it, if anything is."""
        if there:
            return {row: ("key", repr(key), "one that is not there")}
        try:
            self.table.take([key], [body])
        except CalibrantError as error:
            return {row: ("body", f"{len(body)} bytes", str(error))}
        return {}

    def _played(self, log: Log) -> tuple[Words, Any]:
        """Play what can be played; return its rows, and what came of it."""
        rows = log.fine()
        try:
            if None in log.key:
                raise CalibrantError
            return rows, self.table.play(*log.columns(rows, self.settings.timed))
        except CalibrantError:
            some = rows.tolist()
            for fault in sieve(self.table, *log.lists(some)):
                log.faults[some[fault.row]] = fault.column, fault.value, fault.rule
        rows = log.fine()
        return rows, self.table.play(*log.columns(rows, self.settings.timed))

    def _put_away(self, log: Log) -> None:
        """Note what the keys that were touched remember now."""
        keys = list(self.table)
        self.shelf.bodies.update(zip(keys, self.table.bodies(keys), strict=True))
        for row, (key, seq) in enumerate(zip(log.key, log.seq, strict=True)):
            if row not in log.faults:
                self.shelf.last[key] = seq

    def _idle(self) -> pa.Table:
        """Let keys go that had no event for long; return their bodies as rows."""
        gone: list[Key] = []
        if self.settings.idle is not None:
            oldest = max(self.shelf.last.values(), default=0) - self.settings.idle
            gone = [key for key, seq in self.shelf.last.items() if seq < oldest]
        seqs = [self.shelf.last.pop(key) for key in gone]
        bodies = [self.shelf.bodies.pop(key) for key in gone]
        given: dict[str, Any] = {"seq": seqs, "kind": [IDLE] * len(gone), "key": gone, "body": bodies}
        schema = played_schema(self.settings.schema)
        columns = [
            pa.array(given[f.name], f.type) if f.name in given else pa.nulls(len(gone), f.type)
            for f in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)


@dataclass
class Log:
    """Events as lists, and which of them break a rule."""

    seq: list[Any]
    kind: list[str | None]
    key: list[Any]
    id: list[Any]
    x: Any
    time: Any
    bodies: pa.ChunkedArray
    faults: dict[int, Fault]

    @classmethod
    def of(cls, events: pa.Table) -> Log:
        """Read a table of events."""
        lists = [events.column(name).to_pylist() for name in ("seq", "kind", "key", "id")]
        reals = [events.column(name).to_numpy() for name in ("x", "time")]
        return cls(*lists, *reals, events.column("body"), {})

    def body(self, row: int) -> bytes:
        """Return the body that an event brings."""
        return self.bodies[row].as_py() or b""

    def fine(self) -> Words:
        """Return the rows of forecasts and outcomes that break no rule, as far as is known."""
        some = (k for k, kind in enumerate(self.kind) if kind != BODY and k not in self.faults)
        return np.fromiter(some, np.int64)

    def keys_of(self, rows: Words) -> list[Key]:
        """Return the keys of some events, each once."""
        keys = self.key
        found = dict.fromkeys([keys[row] for row in rows.tolist()])
        return [key for key in found if key is not None]

    def columns(self, rows: Words, timed: bool) -> tuple[Any, ...]:
        """Return some events as a table plays them."""
        kinds = [KINDS.get(str(kind), -1) for kind in self.kind]
        chosen = rows.tolist()
        keys, ids = [self.key[k] for k in chosen], [self.id[k] for k in chosen]
        time = self.time[rows] if timed else None
        return keys, np.array(kinds, np.int64)[rows], ids, self.x[rows], time

    def lists(self, rows: list[int]) -> list[list[Any]]:
        """Return some events as the sieve takes them."""
        columns = self.key, self.kind, self.id, self.x.tolist(), self.time.tolist()
        return [[column[row] for row in rows] for column in columns]


def told(events: pa.Table, faults: dict[int, Fault], made: tuple[Words, Any]) -> pa.Table:
    """Return events with their forecasts and faults."""
    rows, played = made
    empty = np.ones(events.num_rows, bool)
    empty[rows] = False
    columns = []
    for part in (played.value, played.mean, played.number):
        column = np.zeros(len(empty), part.dtype)
        column[rows] = part
        columns.append(pa.array(column, mask=empty))
    if faults:
        listed: list[Any] = [None] * len(empty)
        for row, fault in faults.items():
            listed[row] = dict(zip(("column", "value", "rule"), fault, strict=True))
        columns.append(pa.array(listed, FAULT))
    else:
        columns.append(pa.nulls(len(empty), FAULT))
    schema = played_schema(events.schema)
    return pa.Table.from_arrays([*events.columns, *columns], schema=schema)
