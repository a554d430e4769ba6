"""A dataframe at once, on Spark: the forecasts of Table.replay, and bad rows aside."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import InvalidInput, InvalidType
from calibrant.integrations.spark import batch, faults, forecasts, recalibrate
from calibrant.integrations.spark.batch import OWN, Partition

MODEL = Recalibrator(resolution=10, buckets=5)


def rounds(count: int, keys: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    raw = rng.random(count)
    return {
        "key": rng.integers(0, keys, count),
        "t": np.arange(count, dtype=np.float64),
        "raw": raw,
        "won": (rng.random(count) < raw**1.5).astype(np.int64),
        "known": np.arange(count) + rng.geometric(0.05, count).astype(float),
    }


def partition(columns: dict[str, np.ndarray], late: bool, names: bool = False) -> pa.Table:
    """Return rounds as they come to a worker: sorted by key, with the columns that travel."""
    keys = [f"key {key:03}" for key in columns["key"]] if names else columns["key"]
    given = [keys, columns["raw"], columns["won"].astype(float), columns["t"], columns["known"]]
    table = pa.table(dict(zip(OWN, given, strict=True)))
    return table.append_column("t", pa.array(columns["t"])).sort_by(
        [("__key", "ascending"), ("t", "ascending")]
    )


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_partition_goes_on_over_batches_of_arrow(monkeypatch, late: bool, names: bool) -> None:
    monkeypatch.setattr(batch, "MOST_KEYS", 3)
    columns = rounds(400, 20)
    table = partition(columns, late, names)
    play = batch.player(MODEL, 7, late, late)
    made = pa.Table.from_batches(list(play(iter(table.to_batches(37)))))
    listed = made.sort_by("t")
    keys = [f"key {key:03}" for key in columns["key"]] if names else columns["key"]
    when = {"time": columns["t"], "available": columns["known"]} if late else {}
    run = Table(MODEL, seed=7).replay(keys, columns["raw"], columns["won"], **when)
    assert np.array_equal(listed.column("forecast").to_numpy(), run.forecast)
    assert np.array_equal(listed.column("mean").to_numpy(), run.mean)
    assert np.array_equal(listed.column("ticket").to_numpy(), run.ticket)
    assert made.column("fault").null_count == made.num_rows


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.large_string()], ids=str)
def test_keys_may_be_narrow_or_large(kind: pa.DataType) -> None:
    columns = rounds(300, 3)
    columns["key"] = columns["key"] * 100 - 100
    table = partition(columns, False)
    given = table.set_column(0, "__key", table.column("__key").cast(kind))
    (made,) = (Partition(MODEL, 7, False, False).played(part) for part in given.to_batches())
    keys = columns["key"].astype(str).tolist() if kind == pa.large_string() else columns["key"]
    run = Table(MODEL, seed=7).replay(keys, columns["raw"], columns["won"])
    listed = pa.Table.from_batches([made]).sort_by("t")
    assert np.array_equal(listed.column("forecast").to_numpy(), run.forecast)


def test_a_batch_of_bad_rows_alone_is_told() -> None:
    table = partition(rounds(3, 2), True)
    bad = table.set_column(1, "__raw", pa.array([2.0, None, np.nan]))
    (made,) = (Partition(MODEL, 7, True, True).played(part) for part in bad.to_batches())
    assert made.column("forecast").null_count == 3
    assert made.column("fault").to_pylist() == [
        {"column": "raw", "value": value, "rule": "a number in [0, 1]"}
        for value in ("2.0", "None", "nan")
    ]


def test_spark_says_what_a_table_says(spark) -> None:
    columns = rounds(2000, 50)
    names = [f"key {key}" for key in columns["key"]]
    listed = list(zip(*(c.tolist() for c in columns.values()), names, strict=True))
    bad = [(1, 9.5, 1.5, 1, 20.0, "key 1"), (1, 9.5, 0.5, 3, 20.0, "key 1")]
    bad += [(1, 9.5, 0.5, 1, 20.0, None), (1, 9.5, 0.5, 1, 9.0, "key 1")]
    frame = spark.createDataFrame([*listed, *bad], [*columns, "name"]).orderBy("raw")
    given = {"key": "name", "order_by": "t", "raw": "raw", "outcome": "won", "available": "known"}
    out = recalibrate(frame, **given, model=MODEL, seed=7).cache()
    made = forecasts(out).orderBy("t").toArrow()
    run = Table(MODEL, seed=7).replay(
        names, columns["raw"], columns["won"], time=columns["t"], available=columns["known"]
    )
    assert np.array_equal(made.column("forecast").to_numpy(), run.forecast)
    assert np.array_equal(made.column("mean").to_numpy(), run.mean)
    told = faults(out).select("column", "value", "rule").collect()
    assert sorted(map(tuple, told)) == [
        ("available", "9.0", "not before the row's own time"),
        ("key", "None", "a string or a whole number"),
        ("outcome", "3.0", "0 or 1"),
        ("raw", "1.5", "a number in [0, 1]"),
    ]


def test_moments_are_seconds_and_the_seed_is_thrown_once(spark) -> None:
    first = datetime.datetime(2026, 1, 1)
    listed = [(1, first + datetime.timedelta(seconds=k), 0.1 * k, k % 2) for k in range(9)]
    frame = spark.createDataFrame(listed, "key int, t timestamp, raw double, won int")
    given = {"key": "key", "order_by": ["t"], "raw": "raw", "outcome": "won"}
    timed = Recalibrator("fading", unit="time", half_life=9.0)
    made = recalibrate(frame, **given, model=timed, seed=7).orderBy("t").toArrow()
    time = [(first - datetime.datetime(1970, 1, 1)).total_seconds() + k for k in range(9)]
    raw, won = [0.1 * k for k in range(9)], [k % 2 for k in range(9)]
    run = Table(timed, seed=7).replay([1] * 9, raw, won, time=time)
    assert np.array_equal(made.column("forecast").to_numpy(), run.forecast)
    out = recalibrate(frame, **given, model=Calibrant())
    assert out.orderBy("t").toArrow() == out.orderBy("t").toArrow()


def test_a_dataframe_that_cannot_be_played_is_refused_at_once(spark) -> None:
    frame = spark.createDataFrame([], "key string, t double, raw string, won int, fault int")
    given = {"key": "key", "order_by": "t", "raw": "won", "outcome": "won"}
    with pytest.raises(
        InvalidInput, match="outcome must be a column of the dataframe, 'y' is miss"
    ):
        recalibrate(frame, **given | {"outcome": "y"})
    with pytest.raises(InvalidType, match=r"raw must be a column of .*, got 'raw' of string"):
        recalibrate(frame, **given | {"raw": "raw"})
    with pytest.raises(InvalidInput, match="order_by must be one column or several"):
        recalibrate(frame, **given | {"order_by": []})
    with pytest.raises(InvalidInput, match="order_by must be one column of times"):
        recalibrate(frame, **given | {"order_by": ["t", "won"], "available": "t"})
    with pytest.raises(InvalidInput, match="columns must not be there already, got fault"):
        recalibrate(frame, **given)
    learned = Recalibrator(seed=1)
    learned.forecast(0.5)
    with pytest.raises(InvalidInput, match="without a forecast"):
        recalibrate(frame, **given, model=learned)
