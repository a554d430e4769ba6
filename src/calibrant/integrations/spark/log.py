"""The log of a service in PostgreSQL as a source, and a table there that is written once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql import types as ty
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

from calibrant.core import check
from calibrant.errors import InvalidInput, needed
from calibrant.integrations.spark.columns import check_column
from calibrant.integrations.spark.events import event_schema, played_schema
from calibrant.journal.events import KINDS, key_text, read_key
from calibrant.journal.settings import Settings
from calibrant.journal.store import PAGE
from calibrant.recalibrate.keyed import Key

KEYS: Final = {"text": (str, "string", pa.string()), "whole": (int, "long", pa.int64())}
"""What keys of a stream are: in Python, for Spark and in Arrow."""
LARGEST: Final = (1 << 62) - 1
BATCH: Final = "streaming.sql.batchId"
QUERY: Final = "sql.streaming.queryId"
"""Properties of a task by which Spark tells which batch of which query it belongs to."""
SETTING_UP: Final = 0x63616C6B
"""The advisory lock of who makes the tables of a sink."""
# An outcome tells no key: it is that of its forecast.
READ: Final = """select e.seq, e.kind, coalesce(e.key, f.key), e.id, e.x, e.time from event e
    left join event f on e.kind > 0 and f.stream = e.stream and f.kind = 0 and f.id = e.id
    and f.seq < e.seq where e.stream = %s and e.seq > %s and e.seq <= %s order by e.seq limit %s"""
AHEAD: Final = """select max(seq) from (select seq from event where stream = %s and seq > %s
    and seq <= %s order by seq limit %s) as ahead"""
SINK: Final = """create table {table} (
    seq bigint, kind text, key text, id text, x double precision, time double precision, body bytea,
    forecast double precision, mean double precision, ticket bigint, fault text
)"""
FENCE: Final = """create table {fence} (
    query text, batch bigint, part integer, primary key (query, batch, part)
)"""
FIRST: Final = "insert into {fence} values (%s, %s, %s) on conflict do nothing"


class PostgresLog(datasource.DataSource):
    """The log of a service as a stream of events, and a table for what came of them.

    Register it with ``spark.dataSource.register(PostgresLog)``; its format is ``"calibrant"``.

    Options
    -------
    address
        As ``postgresql://user@host/database``.  Spark shows options in its plans: leave a password
        to ``PGPASSFILE``.
    stream
        Name of the stream to be read.  Events of a stream without keys have its name as their key.
    keys
        ``"text"`` or ``"whole"``: what the keys of the stream are.  Others are read as missing.
    after
        The position in the log after which to begin; 0 by default.
    rows
        How many events a micro-batch has at most; 100,000 by default.
    parts
        How many parts of a batch are read in parallel; 2 by default.
    table
        Name of the table to be written, ``"forecast"`` by default.  Beside it lies a
        *fence*: which part of which batch was written.
    """

    @classmethod
    def name(cls) -> str:
        """Return what the format is called."""
        return "calibrant"

    def schema(self) -> str:
        """Return the columns that are read."""
        key = KEYS[Options.of(self.options).keys][1]
        return f"seq long, kind string, key {key}, id string, x double, time double"

    def reader(self, schema: ty.StructType) -> WholeLog:
        """Return what reads the log as far as it goes now."""
        return WholeLog(Options.of(self.options))

    def streamReader(self, schema: ty.StructType) -> GrowingLog:
        """Return what reads the log while it grows."""
        return GrowingLog(Options.of(self.options))

    def streamWriter(self, schema: ty.StructType, overwrite: bool) -> Sink:
        """Return what writes forecasts."""
        for name in played_schema(event_schema(pa.string(), pa.string())).names:
            check_column(schema, name, (ty.DataType,), name)
        return Sink(Options.of(self.options), schema.names)


@dataclass(frozen=True)
class Options:
    """What a user says of a log; see :class:`PostgresLog`."""

    address: str
    stream: str
    keys: str
    after: int
    rows: int
    parts: int
    table: str

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """Return options that were checked."""
        address = given.get("address")
        if not address:
            raise InvalidInput("address must be given, as postgresql://user@host/database")
        keys = given.get("keys", "text")
        check.choice(keys, "keys", tuple(KEYS))
        after = _whole(given, "after", 0, low=0)
        rows, parts = _whole(given, "rows", 100_000), _whole(given, "parts", 2)
        table = given.get("table", "forecast")
        return cls(address, given.get("stream", "main"), keys, after, rows, parts, table)

    def connected(self) -> Any:
        """Return a connection, within which all or nothing happens."""
        needed("psycopg", "PostgreSQL needs psycopg", "postgres")
        import psycopg

        return psycopg.connect(self.address)

    def line(self, held: Any) -> tuple[int, bool]:
        """Return the number of the stream, and whether it has keys."""
        asked = "select number, settings from stream where name = %s"
        found = held.execute(asked, (self.stream,)).fetchone()
        if found is None:
            raise InvalidInput(f"stream must be in the log, got {self.stream!r}")
        settings = Settings.from_json(found[1])
        if settings.labels is not None or settings.made.get("groups"):
            told = "stream must be of single probabilities"
            raise InvalidInput(f"{told}, got {self.stream!r} with groups or classes")
        return found[0], settings.keyed


def _whole(given: Mapping[str, str], name: str, usual: int, low: int = 1) -> int:
    text = given.get(name, str(usual))
    return check.whole(int(text) if text.isdecimal() else text, name, low=low, high=LARGEST)


# --------------------------------------------------------------------------------- source


@dataclass
class Range(datasource.InputPartition):
    """Events behind one place, up to another."""

    after: int
    upto: int


class Reading:
    """Reads parts of a log; it travels to the workers."""

    def __init__(self, options: Options) -> None:
        self.options = options
        with options.connected() as held:
            self.number, self.keyed = options.line(held)

    def ahead(self, after: int, upto: int, most: int | None) -> int:
        """Return the place of the last of that many events behind a place, or this place."""
        with self.options.connected() as held:
            found = held.execute(AHEAD, (self.number, after, upto, most)).fetchone()
        return after if found[0] is None else int(found[0])

    def divided(self, after: int, upto: int) -> Sequence[Range]:
        """Return a part of the log in ranges of about the same length."""
        parts = min(self.options.parts, upto - after)
        cuts = [after + (upto - after) * k // parts for k in range(parts + 1)] if parts > 0 else []
        return [Range(low, high) for low, high in pairwise(cuts)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the events of a range, in order."""
        after, rows = partition.after, [()] * PAGE
        with self.options.connected() as held:
            while len(rows) == PAGE:
                asked = self.number, after, partition.upto, PAGE
                rows = held.execute(READ, asked).fetchall()
                if rows:
                    after = rows[-1][0]
                    yield self._batch(rows)

    def _batch(self, rows: list[Any]) -> pa.RecordBatch:
        kind, _, key_type = KEYS[self.options.keys]
        schema = pa.schema(list(event_schema(key_type, pa.string()))[:6])
        seq, kinds, texts, ids, x, time = (list(column) for column in zip(*rows, strict=True))
        keys: list[Key | None] = [self.options.stream] * len(seq)
        if self.keyed:
            keys = [read_key(text) for text in texts]
        keys = [key if isinstance(key, kind) else None for key in keys]
        columns = [seq, [KINDS[kind] for kind in kinds], keys, ids, x, time]
        return pa.record_batch(
            [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
        )


class WholeLog(Reading, datasource.DataSourceReader):
    """The log as far as it goes now."""

    def partitions(self) -> Sequence[Range]:
        """Return what workers read."""
        first = self.options.after
        return self.divided(first, self.ahead(first, LARGEST, None))


class GrowingLog(Reading, datasource.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The log as a stream: an offset is the place of an event, which one writer gives in order."""

    last = LARGEST

    def initialOffset(self) -> dict[str, int]:
        """Return where to begin."""
        return {"seq": self.options.after}

    def getDefaultReadLimit(self) -> ReadMaxRows:
        """Return how many events a micro-batch has at most."""
        return ReadMaxRows(self.options.rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note how far the log goes now: nothing behind it is read."""
        self.last = self.ahead(self.options.after, LARGEST, None)

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        """Return up to where the next micro-batch goes."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return {"seq": self.ahead(start["seq"], self.last, most)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Range]:
        """Return what workers read in a micro-batch."""
        return self.divided(start["seq"], end["seq"])


# ----------------------------------------------------------------------------------- sink


@dataclass
class Written(datasource.WriterCommitMessage):
    """How many rows of a part of a batch were written; none if they were there."""

    rows: int


def place_of_task() -> tuple[str, int, int]:
    """Return query, batch and part that this task writes."""
    task: Any = TaskContext.get()
    query, batch = (task.getLocalProperty(name) for name in (QUERY, BATCH))
    return query, int(batch), task.partitionId()


class Sink(datasource.DataSourceStreamArrowWriter):
    """Writes the rows of each part of a batch once, however often Spark plays the batch.

    Rows and the line of the fence are one transaction.  Spark makes the same rows of a batch again
    after a crash; a part whose line is there is not written again.
    """

    def __init__(self, options: Options, names: list[str]) -> None:
        self.options, self.names = options, names
        with options.connected() as held:
            held.execute("select pg_advisory_xact_lock(%s)", (SETTING_UP,))
            for text, name in ((SINK, options.table), (FENCE, f"{options.table}_fence")):
                made = held.execute("select to_regclass(quote_ident(%s))", (name,)).fetchone()
                if made[0] is None:
                    held.execute(self._named(text))

    def _named(self, text: str) -> Any:
        """Return a statement about the tables of the sink."""
        from psycopg import sql

        table = self.options.table
        names = {"table": sql.Identifier(table), "fence": sql.Identifier(f"{table}_fence")}
        return sql.SQL(text).format(**names)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write a part of a batch, unless that was done; take all rows either way.

        Spark puts a state away when the last row that came of it was taken.
        """
        count = 0
        with self.options.connected() as held:
            fresh = held.execute(self._named(FIRST), place_of_task()).rowcount == 1
            for batch in iterator:
                if fresh:
                    self._copy(held, batch)
                    count += batch.num_rows
        return Written(count)

    def _copy(self, held: Any, batch: pa.RecordBatch) -> None:
        order = ", ".join(self.names)
        columns = [_sent(name, batch.column(name)) for name in self.names]
        text = self._named(f"copy {{table}} ({order}) from stdin")
        with held.cursor() as cursor, cursor.copy(text) as copy:
            for row in zip(*columns, strict=True):
                copy.write_row(row)


def _sent(name: str, column: pa.Array) -> list[Any]:
    """Return a column as the table holds it: keys and faults as JSON."""
    values: list[Any] = column.to_pylist()
    if name == "key":
        return [key_text(value) for value in values]
    if name == "fault":
        return [None if value is None else json.dumps(value) for value in values]
    return values
