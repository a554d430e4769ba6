"""Spark: CPU seconds of our jobs beside jobs of the same shape that do nothing, in one run.

``python -m benchmarks.spark batch stream`` prints two tables; ``crash`` kills a query three times
in mid-batch and compares every row with a table's; ``million`` fills the state with many keys.
``--store`` keeps what is printed for the page about Spark.  Needs the environment that
``script/test`` makes for Spark, ``.venv-spark``.  CPU seconds are those of all processes of the
session: driver, Java and Python workers.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as ty
from pyspark.sql.streaming import StatefulProcessor

from benchmarks.store import storing
from calibrant import Calibrant, Recalibrator
from calibrant.integrations.spark import batch, demo, stream
from calibrant.integrations.spark.events import Batches, played_schema, read, written
from calibrant.integrations.spark.fleet import agrees, events, played, session, source, start, write
from calibrant.integrations.spark.shard import Settings, Shard
from calibrant.integrations.spark.shelf import Shelf
from calibrant.integrations.spark.sink import read_committed

MODELS: dict[str, Recalibrator] = {
    "Recalibrator(10, 10)": Recalibrator(resolution=10, buckets=10),
    "Calibrant()": Calibrant(),
}
TICKS = os.sysconf("SC_CLK_TCK")
NAMES = "batch", "stream", "crash", "million"
TITLES = "| {} | CPU seconds | µs a row | share |\n|---|---|---|---|"
Lines = Iterator[str]


def cpu() -> float:
    """Return the CPU seconds of this process and all that descend from it, the dead included."""
    found: dict[int, tuple[int, int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            told = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(place.name)] = int(told[1]), sum(map(int, told[11:15]))
    mine, total = {os.getpid()}, 0
    for _ in range(8):
        mine |= {pid for pid, (parent, _) in found.items() if parent in mine}
    for pid in mine:
        total += found.get(pid, (0, 0))[1]
    return total / TICKS


def measured(
    jobs: dict[str, Callable[[], object]], repeats: int, warm: int = 1
) -> dict[str, list[float]]:
    """Return the CPU seconds of each job in each repeat, after some that do not count."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for repeat in range(-warm, repeats):
        for name, job in jobs.items():
            spent = once(job)
            if repeat >= 0:
                found[name].append(spent)
    return found


def once(job: Callable[[], object]) -> float:
    """Return the CPU seconds of a job; one whose Python did not start in time is run again."""
    while True:
        before = cpu()
        try:
            job()
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise
        else:
            return cpu() - before


def shown(title: str, found: dict[str, list[float]], floor: str, rows: int) -> Lines:
    """Yield CPU seconds of jobs as a table, and their shares of the one that does nothing."""
    yield TITLES.format(title)
    for name, seconds in found.items():
        pairs = zip(found[floor], seconds, strict=True)
        ratio = statistics.median(least / own for least, own in pairs)
        median = statistics.median(seconds)
        yield f"| {name} | {median:.1f} | {median / rows * 1e6:.1f} | {ratio:.2f} |"
    yield ""


def told(name: str, lines: Lines, store: bool) -> None:
    """Print what was measured, and keep it for the page if asked."""
    given = [word for word in sys.argv[1:] if word not in (*NAMES, "--store")]
    with storing(f"spark_{name}", wanted=store, words=["benchmarks.spark", name, *given]):
        for line in lines:
            print(line, flush=True)


# ------------------------------------------------------------------------------- batch


def rounds(spark: SparkSession, keys: int, each: int, folder: str) -> DataFrame:
    """Return rounds of many keys, from files."""
    rng = np.random.default_rng(0)
    size = keys * each
    raw = rng.random(size)
    table = pa.table(
        {
            "key": [
                f"model {k}" for k in rng.permutation(np.repeat(np.arange(keys), each)).tolist()
            ],
            "t": np.arange(size),
            "raw": raw,
            "won": (rng.random(size) < raw**1.5).astype(np.int8),
        }
    )
    place = Path(folder) / f"rounds-{keys}-{each}"
    place.mkdir()
    for k in range(4):
        pa.parquet.write_table(table.slice(k * size // 4, size // 4), place / f"{k}.parquet")
    return spark.read.parquet(str(place))


def nothing(batches: Batches) -> Batches:
    """Return rows as they are, with columns as ours has them."""
    for part in batches:
        kept = [name for name in part.schema.names if name not in batch.OWN]
        reals, number = (
            pa.array(np.zeros(part.num_rows)),
            pa.array(np.zeros(part.num_rows, np.int64)),
        )
        made = [reals, reals, number, batch.faults_column({}, part.num_rows)]
        names = [*kept, *(field.name for field in batch.MADE)]
        columns = [part.column(name) for name in kept]
        yield pa.RecordBatch.from_arrays([*columns, *made], names=names)


def batches(spark: SparkSession, folder: str, repeats: int) -> Lines:
    """Compare batches with the same job that does nothing."""
    player = batch.player
    for keys, each in ((30_000, 10), (300, 1_000)):
        frame = rounds(spark, keys, each, folder)

        def job(model: Recalibrator | None, frame: DataFrame = frame) -> None:
            batch.player = player if model is not None else lambda *given: nothing
            given = {"key": "key", "order_by": "t", "raw": "raw", "outcome": "won"}
            made = batch.recalibrate(frame, **given, model=model, seed=7)
            made.write.format("noop").mode("overwrite").save()

        jobs = {"nothing": lambda job=job: job(None)}
        jobs |= {name: lambda m=model, job=job: job(m) for name, model in MODELS.items()}
        title = f"dataframe: {keys:,} keys of {each:,} rows"
        yield from shown(title, measured(jobs, repeats), "nothing", keys * each)
    batch.player = player


# ------------------------------------------------------------------------------ stream


class Floor(stream.ShardProcessor):
    """Reads and writes states as large as ours, and passes events on."""

    size: int

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Read and write; play nothing."""
        told = read([bytes(row["events"]) for row in rows], self.settings.schema)
        found = self.state.get()
        self.state.update((bytes(self.size) if found is None else bytes(found[0]),))
        schema = played_schema(self.settings.schema)
        rest = [pa.nulls(told.num_rows, field.type) for field in list(schema)[len(told.columns) :]]
        made = pa.Table.from_arrays([*told.columns, *rest], schema=schema)
        yield Row(shard=key[0], events=written(made, schema))


class Mapped(StatefulProcessor):
    """Keeps the body of each key as a value of its own, and touches those of the batch alone."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def init(self, handle: Any) -> None:
        """Ask for a map of keys."""
        text = ty.StructType([ty.StructField("key", ty.StringType())])
        value = [ty.StructField("seq", ty.LongType()), ty.StructField("body", ty.BinaryType())]
        self.state = handle.getMapState("keys", text, ty.StructType(value))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Play the events of a shard."""
        told = read([bytes(row["events"]) for row in rows], self.settings.schema)
        shelf, names = Shelf(self.settings.shards), told.column("key").unique().to_pylist()
        for name in names:
            found = self.state.getValue((name,))
            if found is not None:
                shelf.last[name], shelf.bodies[name] = found[0], bytes(found[1])
        made = Shard(self.settings, shelf).play(told)
        for name in names:
            self.state.updateValue((name,), (shelf.last[name], shelf.bodies[name]))
        yield Row(shard=key[0], events=written(made, made.schema))

    def close(self) -> None:
        """Do nothing."""


def streams(
    spark: SparkSession, folder: str, repeats: int, many: int, files: int, shards: int
) -> Lines:
    """Compare streams with a job of the same shape that only reads and writes states."""
    log = events(many // 2, 1_000, many / 100)
    write(log, Path(folder) / "in", files)
    ours, sizes = stream.ShardProcessor, {name: [0] for name in MODELS}
    seconds: dict[str, list[float]] = {}

    def job(name: str, processor: Any, model: Recalibrator, shards: int) -> None:
        stream.ShardProcessor = processor  # type: ignore[misc]
        place = Path(tempfile.mkdtemp(dir=folder))
        frame = source(spark, Path(folder) / "in")
        made = stream.recalibrate_stream(frame, model=model, seed=7, shards=shards)
        began = time.perf_counter()
        query = start(made, place)
        query.awaitTermination()
        seconds.setdefault(name, []).append(time.perf_counter() - began)
        if processor is ours:
            parts = spark.read.format("statestore").option("stateVarName", stream.STATE)
            values = parts.load(str(place / "checkpoint")).select("value.shelf").collect()
            sizes[name] = [len(value[0]) for value in values]

    for name, model in MODELS.items():
        # The first run compiles what is not compiled yet, and tells how large the state is.
        once(functools.partial(job, name, ours, model, shards))
        Floor.size = int(statistics.mean(sizes[name]))
        jobs = {
            "reads and writes states": lambda m=model: job("floor", Floor, m, shards),
            name: lambda t=name, m=model: job(t, ours, m, shards),
            f"{name}, a value a key": lambda m=model: job("mapped", Mapped, m, shards),
        }
        found = measured(jobs, repeats, warm=0)
        title = f"stream: {log.num_rows:,} events, 1,000 keys, {shards} shards, {files} batches"
        yield from shown(title, found, "reads and writes states", log.num_rows)
    stream.ShardProcessor = ours  # type: ignore[misc]
    yield "| stream | state, MB | events a second, at best |\n|---|---|---|"
    for name in MODELS:
        rate = log.num_rows / min(seconds[name])
        yield f"| {name} | {sum(sizes[name]) / 1e6:.1f} | {rate:,.0f} |"


def crash(folder: str, many: int, files: int) -> Lines:
    """Kill a query three times in mid-batch; compare every row with a table's."""
    place, log = Path(folder) / "crash", events(many // 2, 1_000, many / 100)
    write(log, place / "in", files)
    began = time.perf_counter()
    demo.play(place, 3, files, print)
    took = time.perf_counter() - began
    out = read_committed(place / "out").drop_columns(["time", "body"])
    left = len(demo.uncommitted(place))
    same = "yes" if agrees(out, log, played(log)) else "NO"
    yield "| three kill -9 in mid-batch | |\n|---|---|"
    yield f"| events, late and shuffled; keys; batches | {log.num_rows:,}; 1,000; {files} |"
    yield f"| rows that came out | {out.num_rows:,} |"
    yield f"| each once, to the bit as a table's | {same} |"
    yield f"| files of batches that died, beside the committed ones | {left} |"
    yield f"| seconds | {took:.0f} |"


def million(spark: SparkSession, folder: str, keys: int, files: int) -> Lines:
    """Fill the state with many keys; tell its size, the time of a batch, and that of a restart."""
    place, log = Path(folder) / "million", events(keys, 1, 1_000.0)
    whose = [f"model {id[6:]}" for id in log.column("id").to_pylist()]
    log = log.set_column(2, "key", [whose])
    write(log, place / "in", files)
    frame = stream.recalibrate_stream(
        source(spark, place / "in"), model=MODELS["Recalibrator(10, 10)"], seed=7, shards=256
    )
    query, began = start(frame, place), cpu()
    query.awaitTermination()
    spent = cpu() - began
    seconds = [progress["batchDuration"] / 1000 for progress in query.recentProgress]
    size = sum(file.stat().st_size for file in (place / "checkpoint").rglob("*") if file.is_file())
    parts = spark.read.format("statestore").option("stateVarName", stream.STATE)
    state = parts.load(str(place / "checkpoint")).selectExpr("sum(length(value.shelf))").first()[0]
    more = log.slice(0, 1_000).set_column(0, "seq", [np.arange(1_000) + log.num_rows])
    more = more.set_column(3, "id", [[f"more {k}" for k in range(1_000)]])
    write(more, place / "more", 1)
    (place / "more" / "0000.parquet").rename(place / "in" / "more.parquet")
    again = time.perf_counter()
    start(frame, place).awaitTermination()
    restart = time.perf_counter() - again
    yield "| a million keys | |\n|---|---|"
    yield f"| events, keys, shards, batches | {log.num_rows:,}, {keys:,}, 256, {files} |"
    yield f"| state | {state / 1e6:.0f} MB, {state / keys:.0f} bytes a key |"
    yield f"| checkpoint on disk, with what it keeps of earlier batches | {size / 1e6:.0f} MB |"
    yield f"| seconds a batch | {', '.join(f'{took:.0f}' for took in seconds)} |"
    yield f"| CPU seconds in all | {spent:.0f} |"
    yield f"| restart, with a batch of 1,000 events | {restart:.0f} s |\n"


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", default=["batch", "stream"], metavar="NAME", help=", ".join(NAMES)
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--store", action="store_true", help="keep the tables for pages")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if "crash" in chosen.names:
            told("crash", crash(folder, chosen.events, chosen.files), chosen.store)
        if {"batch", "stream", "million"} & set(chosen.names):
            in_session(chosen, folder)


def in_session(chosen: argparse.Namespace, folder: str) -> None:
    """Run what shares a session."""
    spark = session("local[2]")
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    if "batch" in chosen.names:
        told("batch", batches(spark, folder, chosen.repeats), chosen.store)
    if "stream" in chosen.names:
        given = chosen.repeats, chosen.events, chosen.files, chosen.shards
        told("stream", streams(spark, folder, *given), chosen.store)
    if "million" in chosen.names:
        told("million", million(spark, folder, chosen.keys, chosen.files), chosen.store)


if __name__ == "__main__":
    main()
