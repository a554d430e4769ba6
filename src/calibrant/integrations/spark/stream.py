"""A stream of events: each shard of keys in Spark's own state, exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql
from pyspark.sql import types as ty
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.errors import InvalidInput
from calibrant.integrations.spark.columns import EVENTS, MADE, MOMENT, check_column, moment, number
from calibrant.integrations.spark.events import (
    event_schema,
    packer,
    played_schema,
    read,
    unpacker,
    written,
)
from calibrant.integrations.spark.shard import Settings, Shard
from calibrant.integrations.spark.shelf import Shelf
from calibrant.recalibrate import Calibrant, Recalibrator, Table

SHARDS: Final = 32
STATE: Final = "shelf"
"""Name of the variable in Spark's state."""
TIMERS: Final = "ProcessingTime"
PACKED: Final = "shard int, events binary"


def recalibrate_stream(
    events: DataFrame,
    *,
    model: Recalibrator | Table | None = None,
    seed: int | None = None,
    shards: int = SHARDS,
    idle: int | None = None,
    idle_seconds: float | None = None,
    initial: DataFrame | None = None,
) -> DataFrame:
    """Return a stream of events with the forecasts that came of them.

    The events of each key are played in the order of ``seq``; the state of all keys is Spark's, so
    that a query goes on after a restart as if nothing had happened.  Forecasts are, to the bit,
    those of :meth:`calibrant.Table.play` with the same events in order.

    Parameters
    ----------
    events
        A stream with the columns ``seq`` (place in the log), ``kind`` (``"forecast"`` or
        ``"outcome"``), ``key``, ``id`` (name of the ticket, or its number), ``x`` (raw forecast or
        outcome), and if wanted ``time`` and ``body``.
    model
        The pattern of all keys, which has made no forecast; a :class:`calibrant.Calibrant` if
        None.  A table stands for its pattern and seed.
    seed
        What the draws depend on, with the keys: the same at every start.
    shards
        Into how many groups keys are divided: the same at every start.
    idle
        Keys whose last event is this many sequence numbers behind that of their shard go: a row of
        kind ``"idle"`` tells their ``body``, which an event of kind ``"body"`` puts back.
    idle_seconds
        All keys of a shard that had no event for so long go in the same way, by timers of Spark;
        without it there are none.
    initial
        What keys remember before the first event: see :func:`.initial_state`.

    Notes
    -----
    A row that breaks a rule has a ``fault`` instead of a forecast: column, value and rule.  So has
    one whose ``seq`` is not after the last one of its key, as when it is delivered again.
    """
    pattern, coins = _chosen(model, seed)
    check.whole(shards, "shards", low=1, high=1 << 30)
    given, schema = _columns(events)
    least = None if idle is None else check.whole(idle, "idle", low=1)
    rule = "a number of seconds, from 0 on"
    wait = None
    if idle_seconds is not None:
        wait = check.real(idle_seconds, "idle_seconds", low=0.0, rule=rule)
    settings = Settings(pattern, coins, shards, least, schema, "time" in events.columns, wait)
    packed = given.withColumn("shard", shard_of(shards)).mapInArrow(packer(schema), PACKED)
    groups = None if initial is None else initial.groupBy("shard")
    played = packed.groupBy("shard").transformWithState(
        ShardProcessor(settings), PACKED, "append", "None" if wait is None else TIMERS, groups
    )
    out = ty.StructType([*given.schema.fields, *MADE])
    return played.mapInArrow(unpacker(played_schema(schema)), out)


def _chosen(model: Recalibrator | Table | None, seed: int | None) -> tuple[Recalibrator, int]:
    """Return the pattern and the seed of a query."""
    if isinstance(model, Table):
        if seed is not None:
            raise InvalidInput(f"seed must be left out where a table is given, got {seed!r}")
        kind, told = model._made, model._settings()["pattern"]
        return kind._unborn(Document(kind.kind, told, {}, kind.version)), model._seed
    pattern = Calibrant() if model is None else model
    coins = check.whole(seed, "seed", low=-(1 << 127))
    Table(pattern, seed=coins)
    return pattern, coins


def shard_of(shards: int) -> Any:
    """Return the shard of a column ``key``: it depends on the key and on their number alone."""
    return sql.pmod(sql.xxhash64(sql.col("key")), sql.lit(shards)).cast("int")


def _columns(events: DataFrame) -> tuple[DataFrame, pa.Schema]:
    """Return the columns of events, as they travel, and what Arrow calls them."""
    schema = events.schema
    found = {name: check_column(schema, name, kinds, name) for name, kinds in EVENTS.items()}
    if "time" in schema.names:
        check_column(schema, "time", MOMENT, "time")
    if "body" in schema.names:
        check_column(schema, "body", (ty.BinaryType,), "body")
    kinds = {name: _kind(found[name]) for name in ("key", "id")}
    time = moment(events, "time") if "time" in schema.names else sql.lit(None).cast("double")
    body = sql.col("body") if "body" in schema.names else sql.lit(None).cast("binary")
    chosen = events.select(
        sql.col("seq").cast("long"),
        "kind",
        sql.col("key").cast(kinds["key"]),
        sql.col("id").cast(kinds["id"]),
        number("x").alias("x"),
        time.alias("time"),
        body.alias("body"),
    )
    arrow = {"string": pa.string(), "long": pa.int64()}
    return chosen, event_schema(arrow[kinds["key"]], arrow[kinds["id"]])


def _kind(found: ty.DataType) -> str:
    return "string" if isinstance(found, ty.StringType) else "long"


class ShardProcessor(StatefulProcessor):
    """Plays the events of a shard: all of a micro-batch at once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Ask for the state of a shard: one value."""
        self.handle = handle
        schema = ty.StructType([ty.StructField("shelf", ty.BinaryType())])
        self.state = handle.getValueState(STATE, schema)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Play the events of a shard."""
        events = read([bytes(row["events"]) for row in rows], self.settings.schema)
        shelf = self._shelf()
        made = Shard(self.settings, shelf).play(events)
        self.state.update((shelf.to_bytes(),))
        self._wind_up(timerValues)
        yield Row(shard=key[0], events=written(made, made.schema))

    def _wind_up(self, now: Any) -> None:
        """Reset the timer of a shard, if timers are asked for."""
        wait = self.settings.idle_seconds
        if wait is not None:
            for timer in list(self.handle.listTimers()):
                self.handle.deleteTimer(timer)
            self.handle.registerTimer(now.getCurrentProcessingTimeInMs() + round(1000 * wait) + 1)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Let all keys of a shard go that had no event for long."""
        shelf = self._shelf()
        gone = Shard(self.settings, shelf).let_go(list(shelf.last))
        self.state.update((shelf.to_bytes(),))
        yield Row(shard=key[0], events=written(gone, gone.schema))

    def _shelf(self) -> Shelf:
        found = self.state.get()
        if found is None:
            return Shelf(self.settings.shards)
        return Shelf.from_bytes(bytes(found[0]), self.settings.shards)

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:
        """Begin a shard with what its keys remember."""
        shelf = Shelf.from_bytes(bytes(initialState["shelf"]), self.settings.shards)
        self.state.update((shelf.to_bytes(),))

    def close(self) -> None:
        """Do nothing: the state is Spark's."""
