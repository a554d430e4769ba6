"""The events of a shard in one micro-batch: sorted by sequence, played at once, put away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.core.arrays import Mask, Words
from calibrant.errors import CalibrantError, RepeatedTicket
from calibrant.integrations.spark.events import Fault, faults_column, played_schema
from calibrant.integrations.spark.shelf import Shelf
from calibrant.kernels import bodies
from calibrant.kernels.compile import SHORT, available
from calibrant.recalibrate import Recalibrator, Table
from calibrant.recalibrate.earlier import earlier_patterns, patterns_of
from calibrant.recalibrate.keyed import Key, Keys
from calibrant.recalibrate.late import KINDS, Played
from calibrant.recalibrate.sieve import sieve

BODY: Final = "body"
"""Kind of an event that puts a key's body back."""
IDLE: Final = "idle"
"""Kind of a row that tells the body of a key which went."""
KINDS_HERE: Final = KINDS | {BODY: 2}
BEFORE: Final = -(1 << 63)
"""Comes before every sequence number."""


@dataclass(frozen=True)
class Settings:
    """What all shards of a job have in common."""

    pattern: Recalibrator
    seed: int
    shards: int
    idle: int | None
    schema: pa.Schema
    timed: bool
    idle_seconds: float | None = None


_seen = [0]
"""How many events this process has played."""


def warm(pattern: Recalibrator, events: int) -> None:
    """Start the compiler once this process has played as many events as are worth it.

    A shard's share of a micro-batch is short, but a worker plays many of them.
    """
    _seen[0] += events
    if _seen[0] > SHORT and available():
        _ = pattern.spec.program.rows
        bodies.machine_of_rows()


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
        made = [table for shard, part in self._by_model(events) for table in shard._in_parts(part)]
        return pa.concat_tables([*made, self._idle()])

    def _by_model(self, events: pa.Table) -> list[tuple[Shard, pa.Table]]:
        """Return events by what their keys began as: the model, or what it was at an earlier time.

        A key goes on as it began, whichever keys are in its shard; a new one begins as the model.
        """
        pattern, (names, codes) = self.settings.pattern, encoded(events.column("key"))
        if not any(True for _ in earlier_patterns(pattern)):
            return [(self, events)]
        came = Log(events).first_bodies()
        found = patterns_of([self.shelf.bodies.get(n, came.get(n)) for n in names], pattern)
        forms = np.array([id(pattern if each is None else each) for each in found] + [id(pattern)])
        parts = list[tuple[Shard, pa.Table]]()
        for made in {id(each): each for each in (pattern, *found) if each is not None}.values():
            some = forms[codes] == id(made)
            if some.any():
                shard = Shard(replace(self.settings, pattern=made), self.shelf)
                parts.append((shard, events.filter(pa.array(some))))
        return parts

    def _in_parts(self, events: pa.Table) -> list[pa.Table]:
        """Play events that are in order, together if that is possible."""
        try:
            return [self._together(events)]
        except RepeatedTicket:
            parts = self._parts(events)
            return [Shard(self.settings, self.shelf)._together(part) for part in parts]

    def _parts(self, events: pa.Table) -> list[pa.Table]:
        """Return events in parts, no two keys of which have open tickets under one id.

        Who opens the second of them is not told if the key of the first one has no event in the
        same batch, so that both may come together later.  A table cannot hold both.
        """
        table, alone = Table(self.settings.pattern, seed=self.settings.seed), list[int]()
        names, codes = encoded(events.column("key"))
        for code, key in enumerate(names):
            if key in self.shelf.bodies:
                try:
                    table.take([key], [self.shelf.bodies[key]])
                except RepeatedTicket:
                    alone.append(code)
        parts = [np.isin(codes, alone, invert=True), *(codes == code for code in alone)]
        return [events.filter(pa.array(part)) for part in parts]

    def _together(self, events: pa.Table) -> pa.Table:
        """Play events that are in order; return them with what came of them."""
        log = Log(events)
        self._refuse_known(log)
        known = [key for key in log.names if key in self.shelf.bodies]
        self.table.take(known, [self.shelf.bodies[key] for key in known])
        self._put_back(log)
        warm(self.settings.pattern, len(log.seq))
        rows, played = self._played(log)
        self._put_away(log)
        return told(events, log.faults, rows, played)

    def _refuse_known(self, log: Log) -> None:
        """Refuse events that are not after the last one of their key: they were played before."""
        for row in np.flatnonzero(log.seq_missing).tolist():
            log.refuse(row, "seq", None, "a whole number")
        last = np.array([self.shelf.last.get(name, BEFORE) for name in log.names] + [BEFORE])
        before = last[log.codes]
        by_key = np.lexsort((log.seq, log.codes))
        again = (np.diff(log.codes[by_key]) == 0) & (np.diff(log.seq[by_key]) == 0)
        later = by_key[1:][again]
        before[later] = log.seq[later]
        for row in np.flatnonzero((log.seq <= before) & log.fine).tolist():
            log.refuse(row, "seq", int(log.seq[row]), f"after {before[row]}, the last of its key")

    def _put_back(self, log: Log) -> None:
        """Take over bodies that come back, of keys that have no event before."""
        for row in np.flatnonzero((log.kind == KINDS_HERE[BODY]) & log.fine).tolist():
            key, body = log.key(row), log.bodies[row].as_py() or b""
            there = key is None or key in self.table or (log.codes[:row] == log.codes[row]).any()
            if there:
                log.refuse(row, "key", key, "one that is not there")
                continue
            try:
                self.table.take([key], [body])
            except CalibrantError as error:
                log.refuse(row, "body", body[:16], str(error))

    def _played(self, log: Log) -> tuple[Words, Played]:
        """Play what can be played; return its rows, and what came of it."""
        rows = log.rounds()
        try:
            if (log.codes[rows] < 0).any() or (log.kind[rows] < 0).any():
                raise CalibrantError("rows without a key or a kind")
            return rows, self.table.play(*log.columns(rows, self.settings.timed))
        except CalibrantError:
            for row, *fault in sieve(self.table, *log.lists(rows.tolist())):
                log.faults[int(rows[row])] = fault[0], fault[1], fault[2]
                log.fine[rows[row]] = False
        rows = log.rounds()
        return rows, self.table.play(*log.columns(rows, self.settings.timed))

    def _put_away(self, log: Log) -> None:
        """Note what the keys that were touched remember now, and when that was."""
        keys = list(self.table)
        self.shelf.bodies.update(zip(keys, self.table.bodies(keys), strict=True))
        last = np.full(len(log.names), BEFORE)
        np.maximum.at(last, log.codes[log.fine], log.seq[log.fine])
        for name, seq in zip(log.names, last.tolist(), strict=True):
            if seq > BEFORE:
                self.shelf.last[name] = seq

    def _idle(self) -> pa.Table:
        """Let keys go that had no event for long; return their bodies as rows."""
        gone: list[Key] = []
        if self.settings.idle is not None:
            oldest = max(self.shelf.last.values(), default=0) - self.settings.idle
            gone = [key for key, seq in self.shelf.last.items() if seq < oldest]
        return self.let_go(gone)

    def let_go(self, gone: list[Key]) -> pa.Table:
        """Forget keys; return their bodies as rows."""
        given: dict[str, Any] = {"kind": [IDLE] * len(gone), "key": gone}
        given["seq"] = [self.shelf.last.pop(key) for key in gone]
        given["body"] = [self.shelf.bodies.pop(key) for key in gone]
        schema = played_schema(self.settings.schema)
        columns = [
            pa.array(given[f.name], f.type) if f.name in given else pa.nulls(len(gone), f.type)
            for f in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)


class Log:
    """Events in order, and which of them break a rule.

    Attributes
    ----------
    names, codes
        The keys, each once, and which one stands in each row; -1 for none.
    kind
        What each event is; -1 if nothing that is known.
    fine
        Which events break no rule, as far as is known.
    faults
        What is wrong with the others, by row.
    """

    def __init__(self, events: pa.Table) -> None:
        self.names, self.codes = encoded(events.column("key"))
        kinds, codes = encoded(events.column("kind"))
        self.kind = np.array([*(KINDS_HERE.get(kind, -1) for kind in kinds), -1])[codes]
        self._kinds = np.array([*kinds, None], object)[codes]
        seq = events.column("seq")
        self.seq, self.seq_missing = pc.fill_null(seq, 0).to_numpy(), seq.is_null().to_numpy()
        self.ids = events.column("id").to_pylist()
        self.x, self.time = events.column("x").to_numpy(), events.column("time").to_numpy()
        self.bodies = events.column("body")
        self.fine, self.faults = np.ones(len(self.seq), bool), dict[int, Fault]()

    def key(self, row: int) -> Any:
        """Return the key of an event."""
        code = int(self.codes[row])
        return None if code < 0 else self.names[code]

    def first_bodies(self) -> dict[Any, bytes]:
        """Return the first body that comes back for each key."""
        rows = np.flatnonzero((self.kind == KINDS_HERE[BODY]) & (self.codes >= 0)).tolist()
        return {self.key(row): self.bodies[row].as_py() or b"" for row in reversed(rows)}

    def refuse(self, row: int, column: str, value: Any, rule: str) -> None:
        """Note that an event breaks a rule."""
        self.faults[row], self.fine[row] = (column, repr(value), rule), False

    def rounds(self) -> Words:
        """Return the rows of events that are to be played."""
        return np.flatnonzero(self.fine & (self.kind != KINDS_HERE[BODY]))

    def columns(self, rows: Words, timed: bool) -> tuple[Any, ...]:
        """Return some events as a table plays them."""
        ids, time = [self.ids[k] for k in rows.tolist()], self.time[rows] if timed else None
        return Keys(self.names, self.codes[rows]), self.kind[rows], ids, self.x[rows], time

    def lists(self, rows: list[int]) -> list[list[Any]]:
        """Return some events as the sieve takes them."""
        keys = [self.key(row) for row in rows]
        columns = self._kinds.tolist(), self.ids, self.x.tolist(), self.time.tolist()
        return [keys, *([column[row] for row in rows] for column in columns)]


def encoded(column: pa.ChunkedArray) -> tuple[list[Any], Words]:
    """Return the values of a column, each once, and which one stands in each row; -1 for none."""
    array = column.combine_chunks().dictionary_encode()
    return array.dictionary.to_pylist(), array.indices.fill_null(-1).to_numpy().astype(np.int64)


def told(events: pa.Table, faults: dict[int, Fault], rows: Words, played: Played) -> pa.Table:
    """Return events with their forecasts and faults."""
    empty = np.ones(events.num_rows, bool)
    empty[rows] = False
    columns = [spread(part, empty) for part in (played.value, played.mean, played.number)]
    columns.append(faults_column(faults, len(empty)))
    schema = played_schema(events.schema)
    return pa.Table.from_arrays([*events.columns, *columns], schema=schema)


def spread(values: Any, empty: Mask) -> pa.Array:
    """Return a column that is null in some rows, and elsewhere has these values."""
    column = np.zeros(len(empty), values.dtype)
    column[~empty] = values
    return pa.array(column, mask=empty)
