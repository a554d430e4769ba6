"""Hand-over between a table and the state of a query, both ways, without playing anything again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from calibrant.errors import InvalidInput
from calibrant.integrations.spark.shelf import Shelf
from calibrant.integrations.spark.stream import SHARDS, STATE, shard_of
from calibrant.journal.again import replay_all
from calibrant.journal.opening import open_store
from calibrant.journal.recover import started
from calibrant.journal.store import PAGE
from calibrant.loading import load
from calibrant.recalibrate import Calibrant, Recalibrator, Table
from calibrant.recalibrate.earlier import patterns_of


def initial_state(
    spark: SparkSession,
    table: Table | bytes | Sequence[Table],
    *,
    shards: int = SHARDS,
    seq: int = -1,
) -> DataFrame:
    """Return what the keys of a table remember, as the ``initial`` of a query.

    Parameters
    ----------
    spark
        The session.
    table
        Has the settings and the seed that the query will have; or such a table as bytes, as a
        service gives the state of a stream; or what :func:`.read_tables` gave.
    shards
        Those of the query.
    seq
        Up to where the table has played the log; the query refuses events of its keys up to there.
    """
    given = table if isinstance(table, (list, tuple)) else [table]
    tables = [_table(load(each) if isinstance(each, bytes) else each) for each in given]
    keys = [key for each in tables for key in each]
    if len(set(keys)) < len(keys):
        raise InvalidInput("keys must be in one table each, got one in two")
    if len({type(key) for key in keys}) > 1:
        raise InvalidInput("keys must be all strings or all whole numbers for Spark, got both")
    whole = bool(keys) and isinstance(keys[0], int)
    frame = spark.createDataFrame([(key,) for key in keys], f"key {'long' if whole else 'string'}")
    shelves: defaultdict[int, Shelf] = defaultdict(lambda: Shelf(shards))
    found = frame.select("key", shard_of(shards)).collect()
    bodies = [body for each in tables for body in each.bodies()]
    for (key, shard), body in zip(found, bodies, strict=True):
        shelves[shard].last[key], shelves[shard].bodies[key] = seq, body
    rows = [(shard, shelf.to_bytes()) for shard, shelf in shelves.items()]
    return spark.createDataFrame(rows, "shard int, shelf binary")


def _table(model: Any) -> Table:
    """Return a table, if it is one."""
    if not isinstance(model, Table):
        raise InvalidInput(f"table must be one, or the state of a stream with keys, got {model!r}")
    return model


def read_service(address: str, stream: str) -> tuple[Table, int]:
    """Return a stream of a service as a table, and the place of its last event in the log.

    The service may be at work: the log is read, and every answer behind the latest snapshot is
    compared with what the table says.  ``address`` is that of the service's store, a file or
    ``postgresql://user@host/database``.
    """
    with closing(open_store(address, alone=None)) as store:
        lines = [line for line in store.streams() if line.name == stream]
        if not lines:
            raise InvalidInput(f"stream must be in the log, got {stream!r}")
        fold = started(store.snapshots(), lines)[lines[0].number]
        while found := store.events(lines[0].number, fold.seq, PAGE):
            replay_all(fold, [event.whole() for event in found], store.find)
    if fold.early:
        told = f"got {len(fold.early)} of them"
        raise InvalidInput(f"outcomes must not wait for forecasts that are yet to come, {told}")
    return _table(fold.model), fold.seq


def read_shelves(spark: SparkSession, checkpoint: str, **options: Any) -> Iterator[Shelf]:
    """Yield what each shard of a query remembers, as its checkpoint tells.

    ``options`` are those of Spark's source ``statestore``, such as ``batchId=3``.
    """
    reader = spark.read.format("statestore").option("stateVarName", STATE)
    for name, value in options.items():
        reader = reader.option(name, value)
    for row in reader.load(checkpoint).select("value.shelf").toLocalIterator():
        yield Shelf.from_bytes(bytes(row[0]))


def read_tables(
    spark: SparkSession,
    checkpoint: str,
    *,
    model: Recalibrator | None = None,
    seed: int,
    **options: Any,
) -> list[Table]:
    """Return tables that go on where a query has stopped; model and seed are the query's.

    It is one table unless the model is a default that has changed while the query went on: then
    there is one of the keys that began before, and one of those that began after.
    """
    pattern = Calibrant() if model is None else model
    found = {pattern.spec: Table(pattern, seed=seed)}
    for shelf in read_shelves(spark, checkpoint, **options):
        keys, bodies = list(shelf.bodies), list(shelf.bodies.values())
        forms = [pattern if made is None else made for made in patterns_of(bodies, pattern)]
        for spec, made in {form.spec: form for form in forms}.items():
            some = [k for k, form in enumerate(forms) if form is made]
            table = found.setdefault(spec, Table(made, seed=seed))
            table.take([keys[k] for k in some], [bodies[k] for k in some])
    return [table for table in found.values() if len(table)] or list(found.values())


def read_table(
    spark: SparkSession,
    checkpoint: str,
    *,
    model: Recalibrator | None = None,
    seed: int,
    **options: Any,
) -> Table:
    """Return a table that goes on where a query has stopped; model and seed are the query's."""
    found = read_tables(spark, checkpoint, model=model, seed=seed, **options)
    if len(found) > 1:
        told = "state must be of keys that began under one default"
        raise InvalidInput(f"{told}, got {len(found)}: read_tables gives a table for each")
    return found[0]
