"""Hand-over between a table and the state of a query, both ways, without playing anything again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from calibrant.integrations.spark.shelf import Shelf
from calibrant.integrations.spark.stream import SHARDS, STATE, shard_of
from calibrant.recalibrate import Calibrant, Recalibrator, Table


def initial_state(
    spark: SparkSession, table: Table, *, shards: int = SHARDS, seq: int = -1
) -> DataFrame:
    """Return what the keys of a table remember, as the ``initial`` of a query.

    Parameters
    ----------
    spark
        The session.
    table
        Has the settings and the seed that the query will have.
    shards
        Those of the query.
    seq
        Up to where the table has played the log; the query refuses events of its keys up to there.
    """
    keys = list(table)
    whole = bool(keys) and isinstance(keys[0], int)
    frame = spark.createDataFrame([(key,) for key in keys], f"key {'long' if whole else 'string'}")
    shelves: defaultdict[int, Shelf] = defaultdict(lambda: Shelf(shards))
    found = frame.select("key", shard_of(shards)).collect()
    for (key, shard), body in zip(found, table.bodies(keys), strict=True):
        shelves[shard].last[key], shelves[shard].bodies[key] = seq, body
    rows = [(shard, shelf.to_bytes()) for shard, shelf in shelves.items()]
    return spark.createDataFrame(rows, "shard int, shelf binary")


def read_shelves(spark: SparkSession, checkpoint: str, **options: Any) -> Iterator[Shelf]:
    """Yield what each shard of a query remembers, as its checkpoint tells.

    ``options`` are those of Spark's source ``statestore``, such as ``batchId=3``.
    """
    reader = spark.read.format("statestore").option("stateVarName", STATE)
    for name, value in options.items():
        reader = reader.option(name, value)
    for row in reader.load(checkpoint).select("value.shelf").toLocalIterator():
        yield Shelf.from_bytes(bytes(row[0]))


def read_table(
    spark: SparkSession,
    checkpoint: str,
    *,
    model: Recalibrator | None = None,
    seed: int,
    **options: Any,
) -> Table:
    """Return a table that goes on where a query has stopped; model and seed are the query's."""
    table = Table(Calibrant() if model is None else model, seed=seed)
    for shelf in read_shelves(spark, checkpoint, **options):
        table.take(shelf.bodies, shelf.bodies.values())
    return table
