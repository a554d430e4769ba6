"""A stream of events on Spark: restarts, hand-over both ways, idle keys, bad rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from calibrant import Calibrant, Table
from calibrant.errors import InvalidInput, InvalidType
from calibrant.integrations.spark import (
    committed_files,
    fleet,
    initial_state,
    read_committed,
    read_shelves,
    read_table,
    recalibrate_stream,
)
from calibrant.integrations.spark.fleet import (
    MODEL,
    SCHEMA,
    SEED,
    SHARDS,
    agrees,
    events,
    played,
    run,
    source,
    write,
)

ROWS = ["seq", "kind", "key", "id", "x", "forecast", "mean", "ticket", "fault"]


@pytest.fixture(scope="module")
def stopped(spark, tmp_path_factory):
    """A query that was stopped after half of its log and started again; log and table."""
    folder, log = tmp_path_factory.mktemp("stream"), events(600, 20, 30.0)
    write(log, folder / "all", 3)
    (folder / "in").mkdir()
    for names in (["0000", "0001"], ["0002"]):
        for name in names:
            (folder / "all" / f"{name}.parquet").rename(folder / "in" / f"{name}.parquet")
        run(spark, folder)
    table = Table(MODEL, seed=SEED)
    return folder, log, table, played(log, table)


def test_a_restart_changes_nothing(stopped) -> None:
    folder, log, _, made = stopped
    assert agrees(read_committed(folder / "out").select(ROWS), log, made)


def test_the_state_of_a_query_becomes_a_table(spark, stopped) -> None:
    folder, log, table, _ = stopped
    found = read_table(spark, str(folder / "checkpoint"), model=MODEL, seed=SEED)
    assert {key: found.body(key) for key in found} == {key: table.body(key) for key in table}
    early = Table(MODEL, seed=SEED)
    played(log.slice(0, 400), early)
    shelves = list(read_shelves(spark, str(folder / "checkpoint"), batchId=0))
    bodies = {key: body for shelf in shelves for key, body in shelf.bodies.items()}
    assert bodies == {key: early.body(key) for key in early}
    assert max(seq for shelf in shelves for seq in shelf.last.values()) == 399


def test_the_state_of_a_query_becomes_a_file_that_a_table_opens(spark, stopped, tmp_path) -> None:
    folder, _, table, _ = stopped
    read_table(spark, str(folder / "checkpoint"), model=MODEL, seed=SEED).save(tmp_path / "table")
    opened, more = Table.open(tmp_path / "table"), events(200, 20, 30.0, seed=1)
    assert {key: opened.body(key) for key in opened} == {key: table.body(key) for key in table}
    wanted, found = played(more, table.copy()), played(more, opened)
    assert found.value.tolist() == wanted.value.tolist()


def test_state_that_was_divided_anew_goes_on(spark, stopped, tmp_path) -> None:
    folder, log, table, _ = stopped
    for name in ("in", "out", "checkpoint"):
        shutil.copytree(folder / name, tmp_path / name)
    spark._streamingCheckpointManager.repartition(str(tmp_path / "checkpoint"), 3)
    more = table_of(log.num_rows, [("forecast", f"model {k}", f"more {k}", 0.5) for k in range(20)])
    write(more, tmp_path / "more", 1)
    (tmp_path / "more" / "0000.parquet").rename(tmp_path / "in" / "more.parquet")
    run(spark, tmp_path)
    found = read_table(spark, str(tmp_path / "checkpoint"), model=MODEL, seed=SEED)
    both = table.copy()
    played(more, both)
    assert {key: found.body(key) for key in found} == {key: both.body(key) for key in both}


def table_of(first: int, told: list[tuple[str, str, str, float]]) -> pa.Table:
    columns = dict(zip(("kind", "key", "id", "x"), map(list, zip(*told, strict=True)), strict=True))
    return pa.table({"seq": np.arange(first, first + len(told)), **columns})


def test_a_query_goes_on_where_a_table_stopped(spark, tmp_path) -> None:
    log, table = events(300, 20, 30.0), Table(MODEL, seed=SEED)
    played(log.slice(0, 250), table)
    state = initial_state(spark, table, shards=SHARDS, seq=249)
    write(log.slice(200), tmp_path / "in", 1)
    run(spark, tmp_path, initial=state)
    out = read_committed(tmp_path / "out").sort_by("seq").select(ROWS)
    again = out.slice(0, 50).column("fault").to_pylist()
    assert {fault["column"] for fault in again} == {"seq"}
    rest = log.slice(250)
    assert agrees(out.slice(50), rest, played(rest, table))


@pytest.fixture
def no_empty_batches(spark) -> Iterator[None]:
    """A query with timers ends where its log does."""
    name = "spark.sql.streaming.noDataMicroBatches.enabled"
    spark.conf.set(name, "false")
    yield
    spark.conf.unset(name)


def test_keys_of_two_kinds_cannot_be_handed_over(spark) -> None:
    table = Table(MODEL, seed=SEED)
    table.forecast_many(["a", 1], [0.5, 0.5])
    with pytest.raises(InvalidInput) as refused:
        initial_state(spark, table, shards=SHARDS)
    told = "keys must be all strings or all whole numbers for Spark, got both"
    assert str(refused.value) == told


def test_a_shard_that_is_quiet_goes_by_a_timer(spark, tmp_path, no_empty_batches) -> None:
    table = Table(MODEL, seed=SEED)
    log = table_of(0, [("forecast", f"model {k}", f"first {k}", 0.5) for k in range(20)])
    write(log, tmp_path / "in", 1)
    played(log, table)
    more = table_of(20, [("forecast", "model 0", "later", 0.5)])
    write(more, tmp_path / "more", 1)
    run(spark, tmp_path, idle_seconds=0)
    (tmp_path / "more" / "0000.parquet").rename(tmp_path / "in" / "more.parquet")
    run(spark, tmp_path, idle_seconds=0)
    out = read_committed(tmp_path / "out")
    gone = out.filter(pa.compute.equal(out.column("kind"), "idle")).to_pylist()
    stay = read_table(spark, str(tmp_path / "checkpoint"), model=MODEL, seed=SEED)
    assert gone
    assert {row["key"] for row in gone} | set(stay) == set(table)
    assert all(row["body"] == table.body(row["key"]) for row in gone if row["key"] != "model 0")


def test_whole_numbers_moments_and_bodies_travel(spark, tmp_path) -> None:
    (tmp_path / "in").mkdir()
    table = Table(Calibrant(), seed=SEED)
    table.observe(table.forecast(5, 0.25), 1)
    columns = {
        "seq": pa.array([0, 1, 2, 3], pa.int32()),
        "kind": ["body", "forecast", "outcome", "forecast"],
        "key": [5, 5, 5, 6],
        "id": [None, None, 1, None],
        "x": pa.array([0.0, 0.5, 1.0, 2.0], pa.float32()),
        "time": pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC")),
        "body": [table.body(5), None, None, None],
    }
    pq.write_table(pa.table(columns), tmp_path / "in" / "a.parquet")
    schema = "seq int, kind string, key long, id long, x float, time timestamp, body binary"
    run(spark, tmp_path, model=Calibrant(), schema=schema)
    out = read_committed(tmp_path / "out").sort_by("seq")
    made = table.play([5, 5], ["forecast", "outcome"], [None, 1], [0.5, 1.0])
    assert np.array_equal(out.column("forecast").to_numpy()[1:3], made.value)
    assert out.column("ticket").to_pylist() == [None, 1, 1, None]
    assert out.column("fault").to_pylist()[3]["rule"] == "a number in [0, 1]"


def test_a_stream_that_cannot_be_played_is_refused_at_once(spark, tmp_path) -> None:
    (tmp_path / "in").mkdir()
    lacking = source(spark, tmp_path / "in", "seq long, kind string, id string, x double")
    with pytest.raises(InvalidInput, match="key must be a column of the dataframe, 'key' is miss"):
        recalibrate_stream(lacking, seed=SEED)
    wrong = source(spark, tmp_path / "in", SCHEMA + ", body string")
    with pytest.raises(InvalidType, match="body must be a column of binary, got 'body' of string"):
        recalibrate_stream(wrong, seed=SEED)
    fine = source(spark, tmp_path / "in")
    with pytest.raises(InvalidInput, match="shards must be a whole number from 1"):
        recalibrate_stream(fine, seed=SEED, shards=0)
    with pytest.raises(InvalidInput, match="idle must be a whole number of at least 1"):
        recalibrate_stream(fine, seed=SEED, idle=0)
    with pytest.raises(InvalidInput, match="idle_seconds must be a number of seconds, from 0 on"):
        recalibrate_stream(fine, seed=SEED, idle_seconds=-1)
    with pytest.raises(InvalidType, match="seed must be a whole number"):
        recalibrate_stream(fine)


def test_a_query_whose_python_starts_too_late_is_started_again(
    spark, tmp_path, monkeypatch
) -> None:
    (tmp_path / "in").mkdir()
    told: list[str] = []

    class Query:
        def awaitTermination(self) -> None:
            if told:
                raise StreamingQueryException(told.pop())

    monkeypatch.setattr(fleet, "start", lambda frame, folder: Query())
    late = "Python worker failed to connect back."
    told[:] = [late, late]
    fleet.main([str(tmp_path), "local[2]"])
    assert not told
    told[:] = [late] * 4
    with pytest.raises(StreamingQueryException, match="failed to connect back"):
        run(spark, tmp_path)
    told[:] = [late, "another error"]
    with pytest.raises(StreamingQueryException, match="another error"):
        run(spark, tmp_path)


def test_files_that_were_never_committed_are_not_read(stopped, tmp_path) -> None:
    folder = stopped[0]
    files = committed_files(folder / "out")
    left = folder / "out" / "part-of-a-batch-that-died.parquet"
    left.write_bytes(b"torn")
    assert left not in committed_files(folder / "out") == files
    left.unlink()
    with pytest.raises(InvalidInput, match="path must be a folder that a query has written"):
        committed_files(tmp_path)
    (tmp_path / "_spark_metadata").mkdir()
    with pytest.raises(InvalidInput, match="path must hold a batch that was committed"):
        read_committed(tmp_path)


def test_a_log_of_the_sink_that_was_made_compact_is_read_once(tmp_path) -> None:
    folder = tmp_path / "_spark_metadata"
    folder.mkdir()
    entry = '{{"path":"file:///out/{}%20file.parquet","size":1,"action":"add"}}'
    for name, files in (("0", "a"), ("1", "b"), ("2.compact", "abc"), ("3", "d")):
        (folder / name).write_text("\n".join(["v1", *map(entry.format, files)]))
    (folder / ".3.crc").write_bytes(b"crc")
    assert [path.name[0] for path in committed_files(tmp_path)] == ["a", "b", "c", "d"]
