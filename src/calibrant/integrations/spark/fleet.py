"""A made-up fleet of models: a log of forecasts and late outcomes, and a query that plays it.

The demo, the tests and the benchmark play it, each in a session that nobody else can reach.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from calibrant.integrations.spark.stream import recalibrate_stream
from calibrant.recalibrate import Calibrant, Recalibrator, Table
from calibrant.recalibrate.late import Played

SCHEMA: Final = "seq long, kind string, key string, id string, x double"
SEED: Final = 7
SHARDS: Final = 4
MODEL: Final = Recalibrator(resolution=10, buckets=5)
MODELS: Final = {"foster_hart": MODEL, "default": Calibrant()}
"""What a fleet may consist of, by name."""
MOST_STARTS: Final = 4


def session(master: str) -> SparkSession:
    """Return a session that nobody else can reach."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    builder: Any = SparkSession.builder.master(master).appName("calibrant")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def events(rounds: int, keys: int, delay: float, seed: int = 0) -> pa.Table:
    """Return a log in order: forecasts of some keys, and outcomes that are late."""
    rng = np.random.default_rng(seed)
    raw = rng.random(rounds)
    when = np.concatenate([np.arange(rounds), np.arange(rounds) + rng.geometric(1 / delay, rounds)])
    order = np.argsort(when, kind="stable")
    which = np.concatenate([np.arange(rounds)] * 2)[order]
    keyed = [f"model {key}" for key in rng.integers(0, keys, rounds)]
    x = np.concatenate([raw, rng.random(rounds) < raw**1.5]).astype(float)
    columns = {
        "seq": np.arange(2 * rounds),
        "kind": np.array(["forecast", "outcome"])[(order >= rounds).astype(int)],
        "key": [keyed[k] for k in which.tolist()],
        "id": [f"round {k}" for k in which.tolist()],
        "x": x[order],
    }
    return pa.table(columns)


def write(log: pa.Table, folder: Path, files: int, seed: int = 0) -> None:
    """Write a log as files, each a micro-batch, with its rows shuffled."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for k, rows in enumerate(np.array_split(np.arange(log.num_rows), files)):
        file = folder / f"{k:04}.parquet"
        pq.write_table(log.take(pa.array(rng.permutation(rows))), file)
        os.utime(file, (k + 1, k + 1))


def played(log: pa.Table, table: Table | None = None) -> Played:
    """Return what a table says to a log."""
    table = Table(MODEL, seed=SEED) if table is None else table
    key, kind, id, x = (log.column(name).to_pylist() for name in ("key", "kind", "id", "x"))
    return table.play(key, kind, id, x)


def source(spark: SparkSession, folder: Path, schema: str = SCHEMA) -> DataFrame:
    """Return the files of a folder as a stream, each a micro-batch."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def start(frame: DataFrame, folder: Path) -> Any:
    """Start a query that writes its rows to ``out`` and its state to ``checkpoint``."""
    writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start()


def run(spark: SparkSession, folder: Path, schema: str = SCHEMA, **options: Any) -> None:
    """Play what lies in ``folder/in`` to its end.

    Spark gives a Python of its own ten seconds to start, and a busy machine may need more: then
    the query is started again, which changes nothing.
    """
    given: dict[str, Any] = {"model": MODEL, "seed": SEED, "shards": SHARDS} | options
    frame = recalibrate_stream(source(spark, folder / "in", schema), **given)
    left = MOST_STARTS
    while left:
        left -= 1
        try:
            start(frame, folder).awaitTermination()
            left = 0
        except StreamingQueryException as error:
            if not left or "failed to connect back" not in str(error):
                raise


def agrees(out: pa.Table, log: pa.Table, made: Played) -> bool:
    """Say whether rows are those of a log, each once, with what a table said."""
    out = out.sort_by("seq")
    names = log.column_names
    same = [out.column(name).to_pylist() == log.column(name).to_pylist() for name in names]
    same += [
        np.array_equal(out.column("forecast").to_numpy(), made.value),
        np.array_equal(out.column("mean").to_numpy(), made.mean, equal_nan=True),
        np.array_equal(out.column("ticket").to_numpy(), made.number),
        out.column("fault").null_count == out.num_rows,
    ]
    return all(same)


def main(arguments: list[str]) -> None:
    """Play the files of a folder in a session of this master, with models of this name."""
    folder, master, *named = arguments
    run(session(master), Path(folder), model=MODELS[named[0] if named else "foster_hart"])
