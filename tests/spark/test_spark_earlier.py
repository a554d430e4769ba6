"""A query that was begun under an earlier default: every key goes on as it began."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from golden.make_files import FILES, HALF, ROUNDS, SEED, part

from calibrant import Calibrant, Table
from calibrant.errors import CorruptState, InvalidInput
from calibrant.integrations.spark import initial_state, read_committed, read_table, read_tables
from calibrant.integrations.spark.events import event_schema
from calibrant.integrations.spark.fleet import SHARDS, agrees, events, played, run, write
from calibrant.integrations.spark.shard import Settings, Shard
from calibrant.integrations.spark.shelf import Shelf
from calibrant.recalibrate.earlier import earlier_patterns

SCHEMA = event_schema(pa.string(), pa.string())
*_, THEN = earlier_patterns(Calibrant())
"""What Calibrant() was when the files of version 2 were written, some defaults ago."""
VERSIONS = sorted(path.name for path in FILES.iterdir())
ROWS = ["seq", "kind", "key", "id", "x", "forecast", "mean", "ticket", "fault"]


def shard(shelf: Shelf, model=None) -> Shard:
    pattern = Calibrant() if model is None else model
    return Shard(Settings(pattern, SEED, 4, None, SCHEMA, False), shelf)


def log_of(first: int, last: int) -> pa.Table:
    """Return some events of the golden log as they travel."""
    key, kind, id, x = part(first, last)
    return told(list(range(first, last)), kind, key, id, x)


def told(seq, kind, key, id, x, body=None) -> pa.Table:
    given = {"seq": seq, "kind": kind, "key": key, "id": id, "x": x, "body": body}
    blank = [None] * len(seq)
    return pa.table([pa.array(given.get(f.name) or blank, f.type) for f in SCHEMA], schema=SCHEMA)


def shelf_of(version: str) -> Shelf:
    """Return what a shard of the default was at the time of a version."""
    found = json.loads((FILES / version / "bodies_calibrant.json").read_text())
    bodies = {key: bytes.fromhex(body) for key, body in found.items()}
    return Shelf(4, dict.fromkeys(bodies, HALF - 1), bodies)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_shelf_of_an_earlier_default_goes_on_as_it_would_have(version: str) -> None:
    wanted = json.loads((FILES / version / "answers.json").read_text())["bodies_calibrant.json"]
    shelf, out = shelf_of(version), []
    for first in range(HALF, 2 * ROUNDS, 10):
        shelf = Shelf.from_bytes(shelf.to_bytes(), 4)
        out.append(shard(shelf).play(log_of(first, first + 10)))
    rows = pa.concat_tables(out).sort_by("seq")
    assert rows.column("fault").null_count == rows.num_rows
    for column, name in (("forecast", "value"), ("mean", "mean")):
        assert [float(x).hex() for x in rows.column(column).to_pylist()] == wanted[name]
    assert rows.column("ticket").to_pylist() == wanted["number"]


def test_new_keys_begin_as_the_model_is_now_whoever_shares_their_shard() -> None:
    shelf, today = shelf_of("v2"), Table(Calibrant(), seed=SEED)
    kinds, names = ["forecast", "forecast"], ["site 0", "new"]
    shard(shelf).play(told([200, 201], kinds, names, ["p", "q"], [0.3, 0.4]))
    shard(shelf).play(told([202], ["outcome"], ["new"], ["q"], [1.0]))
    today.observe(today.forecast("new", 0.4, id="q"), 1)
    assert shelf.bodies["new"] == today.body("new")
    then = Table(THEN, seed=SEED)
    then.take(["site 0"], [shelf_of("v2").bodies["site 0"]])
    then.forecast("site 0", 0.3, id="p")
    assert shelf.bodies["site 0"] == then.body("site 0")


def test_an_old_body_that_is_put_back_goes_on_beside_new_keys() -> None:
    old, shelf = shelf_of("v2").bodies["site 1"], Shelf(4)
    kinds, names = ["forecast", "body", "forecast"], ["new", "site 1", "site 1"]
    log = told([1, 2, 3], kinds, names, ["a", None, "b"], [0.5, None, 0.25], [None, old, None])
    out = shard(shelf).play(log)
    assert out.column("fault").null_count == 3
    today, then = Table(Calibrant(), seed=SEED), Table(THEN, seed=SEED)
    today.forecast("new", 0.5, id="a")
    then.take(["site 1"], [old])
    then.forecast("site 1", 0.25, id="b")
    assert shelf.bodies == {"new": today.body("new"), "site 1": then.body("site 1")}


def test_a_shelf_of_another_model_is_refused() -> None:
    for model in (Calibrant(buckets=2), Calibrant(max_open=5)):
        with pytest.raises(CorruptState, match="body of key 'site 0' must be what a table with"):
            shard(shelf_of("v2"), model).play(told([200], ["forecast"], ["site 0"], ["p"], [0.3]))


@pytest.fixture(scope="module")
def upgraded(spark, tmp_path_factory):
    """A query that was begun with what the default was, and went on with what it is."""
    folder, log = tmp_path_factory.mktemp("upgraded"), events(300, 10, 30.0)
    write(log, folder / "all", 2)
    (folder / "in").mkdir()
    for name, model in (("0000", THEN), ("0001", Calibrant())):
        (folder / "all" / f"{name}.parquet").rename(folder / "in" / f"{name}.parquet")
        run(spark, folder, model=model)
    return folder, log


def test_a_query_of_an_earlier_default_is_started_again(spark, upgraded) -> None:
    folder, log = upgraded
    then = Table(THEN, seed=SEED)
    assert agrees(read_committed(folder / "out").select(ROWS), log, played(log, then))
    found = read_table(spark, str(folder / "checkpoint"), seed=SEED)
    assert {key: found.body(key) for key in found} == {key: then.body(key) for key in then}


def test_keys_of_two_defaults_leave_a_query_as_two_tables(spark, upgraded, tmp_path) -> None:
    folder, _ = upgraded
    (then,) = read_tables(spark, str(folder / "checkpoint"), seed=SEED)
    more = pa.table(
        {"seq": [900, 901], "kind": ["forecast"] * 2, "key": ["new", "model 1"], "id": ["p", "q"]}
        | {"x": [0.5, 0.5]}
    )
    write(more, tmp_path / "in", 1)
    state = initial_state(spark, then, shards=SHARDS, seq=899)
    run(spark, tmp_path, model=Calibrant(), initial=state)
    checkpoint = str(tmp_path / "checkpoint")
    with pytest.raises(InvalidInput, match="state must be of keys that began under one default"):
        read_table(spark, checkpoint, seed=SEED)
    tables = read_tables(spark, checkpoint, seed=SEED)
    assert sorted(map(len, tables)) == [1, len(then)]
    then.forecast("model 1", 0.5, id="q")
    today = Table(Calibrant(), seed=SEED)
    today.forecast("new", 0.5, id="p")
    bodies = {key: table.body(key) for table in tables for key in table}
    assert bodies == {key: table.body(key) for table in (then, today) for key in table}
    rows = initial_state(spark, tables, shards=SHARDS).collect()
    shelves = [Shelf.from_bytes(bytes(row["shelf"]), SHARDS) for row in rows]
    assert {k: b for shelf in shelves for k, b in shelf.bodies.items()} == bodies
    with pytest.raises(InvalidInput, match="keys must be in one table each, got one in two"):
        initial_state(spark, [today, today], shards=SHARDS)
