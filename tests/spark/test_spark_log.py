"""The log of a service in PostgreSQL: read as a stream, and written to once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from cluster import BIN, MISSING, Cluster
from pyspark.sql import types as ty
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from calibrant import Recalibrator, Table
from calibrant.errors import InvalidInput
from calibrant.integrations.spark import (
    PostgresLog,
    initial_state,
    log,
    read_service,
    recalibrate_stream,
)
from calibrant.integrations.spark.events import event_schema, played_schema
from calibrant.integrations.spark.fleet import MODEL, SEED, SHARDS, events, played
from calibrant.integrations.spark.log import Range
from calibrant.journal.events import FORECAST, OUTCOME, Asked, key_text
from calibrant.journal.ledger import Ledger
from calibrant.journal.opening import open_store
from calibrant.journal.recover import take_snapshots
from calibrant.journal.settings import Settings
from calibrant.journal.store import Line

NUMBER = itertools.count()
COLUMNS = ["seq", "kind", "key", "id", "x", "time"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if BIN is None:
        pytest.skip(MISSING)
    made = Cluster()
    yield made
    made.close()


@pytest.fixture
def address(cluster: Cluster) -> str:
    return cluster.database(f"log{next(NUMBER)}")


def fill(address: str, asked: list[Asked], model: Any, keep: int = 0, **more: Any) -> None:
    """Let a service answer, with a snapshot behind so many events."""
    store = open_store(address, alone=True)
    told = Settings(keyed=isinstance(model, Table), **more).to_json()
    with store.writing():
        store.put_stream(Line(1, "fleet", told, model.to_bytes()))
        store.put_stream(Line(2, "other", told, model.to_bytes()))
    ledger = Ledger(store)
    for part in (asked[:keep], asked[keep:]):
        answers, rows = ledger.enter(part)
        for answer in answers:
            answer.result()
        with store.writing():
            ledger.write(rows)
            if part and keep:
                take_snapshots(store, ledger, {})
                keep = 0
        ledger.settle(rows)
    store.close()


def questions(table: pa.Table) -> list[Asked]:
    """Return a log as a service is asked; outcomes tell no key."""
    kinds = {"forecast": FORECAST, "outcome": OUTCOME}
    return [
        Asked(
            1,
            kinds[row["kind"]],
            row["id"],
            row["key"] * (row["kind"] == "forecast") or None,
            row["x"],
        )
        for row in table.to_pylist()
    ]


def rows_of(address: str, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(address) as held:
        return held.execute(text).fetchall()  # type: ignore[arg-type]


def options(address: str, **more: Any) -> dict[str, str]:
    return {"address": address, "stream": "fleet"} | {name: str(v) for name, v in more.items()}


def read(reader: Any, parts: Any) -> list[dict[str, Any]]:
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def test_a_log_is_read_in_parts_and_in_pages(address, monkeypatch) -> None:
    monkeypatch.setattr(log, "PAGE", 8)
    told = events(30, 3, 4.0)
    fill(address, [Asked(2, 0, "x", "elsewhere", 0.5), *questions(told)], Table(MODEL, seed=SEED))
    source = PostgresLog(options(address, parts=3, after=11))
    assert source.name() == "calibrant"
    assert source.schema() == "seq long, kind string, key string, id string, x double, time double"
    reader = source.reader(ty.StructType())
    parts = reader.partitions()
    assert [(part.after, part.upto) for part in parts] == [(11, 27), (27, 44), (44, 61)]
    wanted = told.append_column("time", pa.nulls(60)).slice(10).to_pylist()
    assert read(reader, parts) == [row | {"seq": row["seq"] + 2} for row in wanted]
    assert list(reader.divided(5, 5)) == []
    assert reader.divided(5, 6) == [Range(5, 6)]


def test_a_stream_goes_as_far_as_it_is_told(address) -> None:
    fill(address, questions(events(10, 3, 4.0)), Table(MODEL, seed=SEED))
    reader = PostgresLog(options(address, rows=8)).streamReader(ty.StructType())
    first = reader.initialOffset()
    assert first == {"seq": 0}
    assert reader.getDefaultReadLimit() == ReadMaxRows(8)
    assert reader.latestOffset(first, ReadMaxRows(8)) == {"seq": 8}
    assert reader.latestOffset(first, ReadAllAvailable()) == {"seq": 20}
    assert reader.latestOffset({"seq": 20}, ReadMaxRows(8)) == {"seq": 20}
    assert reader.partitions({"seq": 8}, {"seq": 16}) == [Range(8, 12), Range(12, 16)]
    reader.prepareForTriggerAvailableNow()
    store = open_store(address, alone=True)
    ledger = Ledger(store)
    _, rows = ledger.enter([Asked(1, FORECAST, "later", "a", 0.5)])
    with store.writing():
        ledger.write(rows)
    store.close()
    assert reader.latestOffset({"seq": 12}, ReadAllAvailable()) == {"seq": 20}


@pytest.mark.parametrize(
    ("keys", "wanted"), [("text", ["a", None, "a", None]), ("whole", [None, 7, None, 7])]
)
def test_keys_of_another_kind_are_missing(address, keys: str, wanted: list[Any]) -> None:
    asked = [Asked(1, 0, "x", "a", 0.5), Asked(1, 0, "y", 7, 0.5)]
    asked += [Asked(1, 1, "x", None, 1.0), Asked(1, 1, "y", None, 1.0)]
    fill(address, asked, Table(MODEL, seed=SEED))
    source = PostgresLog(options(address, keys=keys))
    assert ("key long" in source.schema()) == (keys == "whole")
    reader = source.reader(ty.StructType())
    assert [row["key"] for row in read(reader, reader.partitions())] == wanted


def test_events_without_keys_have_the_name_of_their_stream(address) -> None:
    fill(address, [Asked(1, 0, "x", None, 0.5), Asked(1, 1, "x", None, 1.0)], Recalibrator(seed=1))
    reader = PostgresLog(options(address)).reader(ty.StructType())
    assert [row["key"] for row in read(reader, reader.partitions())] == ["fleet", "fleet"]


def test_options_that_are_wrong_are_told(address) -> None:
    for given, told in (
        ({}, "address must be given, as postgresql://"),
        ({"keys": "both"}, "keys must be one of 'text', 'whole', got 'both'"),
        ({"rows": "0"}, "rows must be a whole number from 1"),
        ({"parts": "many"}, "parts must be"),
    ):
        where = {"address": address} if given else {}
        with pytest.raises((InvalidInput, TypeError), match=told):
            PostgresLog(where | given).schema()
    open_store(address, alone=True).close()
    with pytest.raises(InvalidInput, match="stream must be in the log, got 'fleet'"):
        PostgresLog(options(address)).reader(ty.StructType())
    fill(address, [], Recalibrator(seed=7), made={"groups": ["a", "b"]})
    with pytest.raises(InvalidInput, match="single probabilities, got 'fleet' with groups"):
        PostgresLog(options(address)).reader(ty.StructType())
    with pytest.raises(InvalidInput, match="'seq' is missing"):
        PostgresLog(options(address)).streamWriter(ty.StructType(), False)


# ----------------------------------------------------------------------------------- sink


def some_rows() -> pa.Table:
    schema = played_schema(event_schema(pa.string(), pa.string()))
    fault = {"column": "x", "value": "2.0", "rule": "a number in [0, 1]"}
    given: dict[str, list[Any]] = {"seq": [1, 2], "kind": ["idle", "forecast"], "key": ["a", None]}
    given |= {"body": [b"\\x00\n\t", None], "forecast": [None, 0.1], "fault": [None, fault]}
    columns = [pa.array(given.get(field.name, [None, None]), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def sink(address: str, **more: Any) -> Any:
    fields = [ty.StructField(name, ty.StringType()) for name in some_rows().column_names]
    return PostgresLog(options(address, **more)).streamWriter(ty.StructType(fields), False)


def test_a_part_of_a_batch_is_written_once(address, monkeypatch) -> None:
    others = [("q", 3, 1), ("q", 4, 0), ("other", 3, 0)]
    places = iter([("q", 3, 0), ("q", 3, 0), *others])
    monkeypatch.setattr(log, "place_of_task", lambda: next(places))
    rows, writer = some_rows().to_batches(), sink(address, table="My rows")
    assert writer.write(iter(rows)).rows == 2
    taken: list[int] = []
    again = (taken.append(batch.num_rows) or batch for batch in rows)
    assert sink(address, table="My rows").write(again).rows == 0
    assert taken == [2]
    assert [writer.write(iter(rows)).rows for _ in others] == [2, 2, 2]
    found = rows_of(address, 'select * from "My rows" order by seq')
    assert len(found) == 8
    assert found[0] == (1, "idle", '"a"', None, None, None, b"\\x00\n\t", None, None, None, None)
    told = '{"column": "x", "value": "2.0", "rule": "a number in [0, 1]"}'
    assert found[-1] == (2, "forecast", *[None] * 5, 0.1, None, None, told)


def test_a_part_that_fails_leaves_nothing(address, monkeypatch) -> None:
    monkeypatch.setattr(log, "place_of_task", lambda: ("q", 0, 0))

    def torn() -> Iterator[pa.RecordBatch]:
        yield from some_rows().to_batches()
        raise RuntimeError("the machine is gone")

    writer = sink(address)
    with pytest.raises(RuntimeError, match="the machine is gone"):
        writer.write(torn())
    assert rows_of(address, "select * from forecast") == []
    assert writer.write(iter(some_rows().to_batches())).rows == 2


def test_a_task_knows_its_batch(monkeypatch) -> None:
    class Task:
        def getLocalProperty(self, name: str) -> str:
            return {"sql.streaming.queryId": "abc", "streaming.sql.batchId": "12"}[name]

        def partitionId(self) -> int:
            return 5

    monkeypatch.setattr(log.TaskContext, "get", lambda: Task())
    assert log.place_of_task() == ("abc", 12, 5)


# ---------------------------------------------------------------------- both, with Spark


def run(spark: Any, address: str, folder: Path, **more: Any) -> None:
    """Play the log of a service into a table, as far as it goes."""
    spark.dataSource.register(PostgresLog)
    source = spark.readStream.format("calibrant").options(**options(address, rows=200))
    given: dict[str, Any] = {"model": MODEL, "seed": SEED, "shards": SHARDS} | more
    made = recalibrate_stream(source.load(), **given)
    writer = made.writeStream.format("calibrant").options(**options(address))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_a_batch_that_is_played_again_is_written_once(spark, address, tmp_path) -> None:
    told = events(150, 9, 20.0)
    fill(address, questions(told), Table(MODEL, seed=SEED))
    run(spark, address, tmp_path)
    # As if Spark had died after it wrote the last batch, and before it noted that.
    commits = tmp_path / "checkpoint" / "commits"
    assert sorted(int(file.name) for file in commits.glob("[0-9]*")) == [0, 1]
    (commits / "1").unlink()
    (commits / ".1.crc").unlink()
    run(spark, address, tmp_path)
    assert (commits / "1").exists()
    found = rows_of(address, "select seq, id, key, forecast, fault from forecast order by seq")
    made = played(told)
    keys, ids = told.column("key").to_pylist(), told.column("id").to_pylist()
    wanted = zip(range(1, 301), ids, map(key_text, keys), made.value.tolist(), strict=True)
    assert found == [(*row, None) for row in wanted]


def test_a_query_goes_on_where_a_service_stopped(spark, address, tmp_path) -> None:
    told, first = events(100, 5, 20.0), Table(MODEL, seed=None)
    fill(address, questions(told.slice(0, 120)), first, keep=50)
    table, seq = read_service(address, "fleet")
    assert seq == 120
    played(told.slice(0, 120), first)
    assert {key: table.body(key) for key in table} == {key: first.body(key) for key in first}
    state = initial_state(spark, table.to_bytes(), shards=SHARDS, seq=seq)
    store = open_store(address, alone=True)
    ledger = Ledger(store)
    _, rows = ledger.enter(questions(told.slice(120)))
    with store.writing():
        ledger.write(rows)
    store.close()
    run(spark, address, tmp_path, model=table, seed=None, initial=state)
    found = rows_of(address, "select forecast from forecast where fault is null order by seq")
    assert [row[0] for row in found] == played(told.slice(120), first).value.tolist()
    known = rows_of(address, "select count(*) from forecast where seq <= 120 and fault is not null")
    assert known == [(120,)]


def test_a_service_that_cannot_be_taken_over_is_told(spark, address, tmp_path) -> None:
    early = [Asked(1, 1, "x", None, 1.0)]
    fill(address, early, Table(MODEL, seed=SEED), unknown="keep")
    with pytest.raises(InvalidInput, match=r"outcomes must not wait for .*, got 1 of them"):
        read_service(address, "fleet")
    with pytest.raises(InvalidInput, match="stream must be in the log, got 'nobody'"):
        read_service(address, "nobody")
    with pytest.raises(InvalidInput, match="table must be one, or the state of a stream with keys"):
        initial_state(spark, Recalibrator(seed=1).to_bytes())
    with pytest.raises(InvalidInput, match="seed must be left out where a table is given, got 7"):
        recalibrate_stream(spark.createDataFrame([], "seq long"), model=Table(MODEL), seed=7)
