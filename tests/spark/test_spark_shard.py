"""What workers do, without Spark: pack, play and put away the events of a shard."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Row

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import CorruptState, InvalidInput
from calibrant.integrations.spark import events as parcels
from calibrant.integrations.spark import shard as shards
from calibrant.integrations.spark.events import event_schema, packer, read, unpacker, written
from calibrant.integrations.spark.fleet import MODEL, SEED, agrees, events, played
from calibrant.integrations.spark.shard import Settings, Shard
from calibrant.integrations.spark.shelf import Shelf
from calibrant.integrations.spark.stream import ShardProcessor

SCHEMA = event_schema(pa.string(), pa.string())


def settings(model=MODEL, idle=None, timed=False, seconds=None) -> Settings:
    return Settings(model, SEED, 4, idle, SCHEMA, timed, seconds)


def whole(log: pa.Table) -> pa.Table:
    """Return a log with the columns that travel."""
    rows = log.num_rows
    for name, kind in (("time", pa.float64()), ("body", pa.binary())):
        if name not in log.column_names:
            log = log.append_column(name, pa.nulls(rows, kind))
    return log.select(SCHEMA.names).cast(SCHEMA)


def rows(*told: tuple[object, ...], **more: list[object]) -> pa.Table:
    """Return events: seq, kind, key, id, x."""
    names = ("seq", "kind", "key", "id", "x")
    listed = dict(zip(names, map(list, zip(*told, strict=True)), strict=True)) | more
    columns = [pa.array(listed.get(f.name, [None] * len(told)), f.type) for f in SCHEMA]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def faults(out: pa.Table) -> list[tuple[int, str, str]]:
    found = zip(out.column("seq").to_pylist(), out.column("fault").to_pylist(), strict=True)
    return [(seq, fault["column"], fault["rule"]) for seq, fault in found if fault is not None]


def in_pieces(log: pa.Table, pieces: int, model=MODEL) -> tuple[pa.Table, Shelf]:
    """Play a log in micro-batches, each shuffled, with everything put away in between."""
    rng, shelf, made = np.random.default_rng(1), Shelf(4), []
    for part in np.array_split(np.arange(log.num_rows), pieces):
        shelf = Shelf.from_bytes(shelf.to_bytes(), 4)
        mixed = whole(log).take(pa.array(rng.permutation(part)))
        made.append(Shard(settings(model), shelf).play(mixed))
    return pa.concat_tables(made), shelf


@pytest.mark.parametrize("model", [MODEL, Calibrant(), Calibrant(raw_safe=0.1)], ids=repr)
def test_a_log_in_micro_batches_is_played_as_a_table_plays_it(model) -> None:
    log, table = events(300, 7, 20.0), Table(model, seed=SEED)
    out, shelf = in_pieces(log, 4, model)
    assert agrees(out.drop_columns(["time", "body"]), log, played(log, table))
    assert shelf.bodies == dict(zip(table, table.bodies(), strict=True))


def test_where_a_rule_is_broken_the_rest_is_played_as_if_the_row_were_not_there() -> None:
    log = events(100, 3, 9.0)
    bad = rows(
        (1000, "forecast", "model 0", "bad", 2.0),
        (1001, "outcome", "model 0", "nobody", 1.0),
        (1002, "guess", "model 0", "what", 1.0),
        (1003, "forecast", None, "whose", 1.0),
        (1004, None, "model 1", "what", 1.0),
        (None, "forecast", "model 1", "when", 1.0),
    )
    out = Shard(settings(), Shelf(4)).play(pa.concat_tables([bad, whole(log)]))
    good = out.filter(pa.compute.is_null(out.column("fault")))
    assert agrees(good.drop_columns(["time", "body"]), log, played(log))
    assert faults(out) == [
        (None, "seq", "a whole number"),
        (1000, "x", "a number in [0, 1]"),
        (1001, "id", "that of an open ticket"),
        (1002, "kind", "'forecast' (0) or 'outcome' (1)"),
        (1003, "key", "a string or a whole number"),
        (1004, "kind", "'forecast' (0) or 'outcome' (1)"),
    ]


def test_an_event_that_is_delivered_again_is_told_and_changes_nothing() -> None:
    shelf = Shelf(4)
    first = rows((5, "forecast", "a", "one", 0.5), (5, "forecast", "a", "one", 0.5))
    assert faults(Shard(settings(), shelf).play(first)) == [
        (5, "seq", "after 5, the last of its key")
    ]
    before = shelf.to_bytes()
    again = rows((5, "forecast", "a", "one", 0.5), (4, "outcome", "a", "one", 1.0))
    told = faults(Shard(settings(), shelf).play(again))
    assert told == [(seq, "seq", "after 5, the last of its key") for seq in (4, 5)]
    assert shelf.to_bytes() == before


def test_an_id_with_another_value_is_told() -> None:
    log = rows((1, "forecast", "a", "one", 0.5), (2, "forecast", "a", "one", 0.6))
    assert faults(Shard(settings(), Shelf(4)).play(log)) == [
        (2, "id", "new, got another event under it")
    ]


def test_keys_with_open_tickets_under_one_id_do_not_end_a_query() -> None:
    shelf, job, lone = Shelf(4), settings(), {}
    for seq, key in enumerate("abc"):
        told = Shard(job, shelf).play(rows((seq, "forecast", key, "one", 0.5)))
        assert faults(told) == []
        lone[key] = Table(MODEL, seed=SEED)
        lone[key].observe(lone[key].forecast(key, 0.5, id="one"), 1)
        lone[key].forecast(key, 0.25, id=f"two {key}")
    lone["d"] = Table(MODEL, seed=SEED)
    lone["d"].forecast("d", 0.5, id="new")
    ends = [(9, "outcome", None, "one", 1.0), (8, "outcome", "c", "nobody", 1.0)]
    ends.append((7, "forecast", "d", "new", 0.5))
    for k, key in enumerate("abc"):
        ends.append((10 + k, "outcome", key, "one", 1.0))
        ends.append((20 + k, "forecast", key, f"two {key}", 0.25))
    out = Shard(job, shelf).play(rows(*ends))
    assert sorted(faults(out)) == [
        (8, "id", "that of an open ticket"),
        (9, "key", "a string or a whole number"),
    ]
    assert sorted(out.column("seq").to_pylist()) == sorted(end[0] for end in ends)
    assert shelf.bodies == {key: lone[key].body(key) for key in "abcd"}


def test_idle_keys_go_to_rows_of_their_own_and_can_be_put_back() -> None:
    shelf, job = Shelf(4), settings(idle=10)
    Shard(job, shelf).play(rows((1, "forecast", "a", "one", 0.5)))
    kept = shelf.bodies["a"]
    out = Shard(job, shelf).play(rows((12, "forecast", "b", "two", 0.5)))
    assert out.column("kind").to_pylist() == ["forecast", "idle"]
    assert out.slice(1).select(["seq", "key", "body"]).to_pylist() == [
        {"seq": 1, "key": "a", "body": kept}
    ]
    assert list(shelf.last) == list(shelf.bodies) == ["b"]
    back = rows((13, "body", "a", None, None), (14, "outcome", "a", "one", 1.0), body=[kept, None])
    out = Shard(job, shelf).play(back)
    assert faults(out) == []
    table = Table(MODEL, seed=SEED)
    table.observe(table.forecast("a", 0.5, id="one"), 1)
    assert shelf.bodies["a"] == table.body("a")
    assert shelf.last["a"] == 14


def test_a_body_that_cannot_be_put_back_is_told() -> None:
    shelf = Shelf(4)
    Shard(settings(), shelf).play(rows((1, "forecast", "a", "one", 0.5)))
    kept = shelf.bodies["a"]
    log = [
        (2, "body", "a", None, None),
        (3, "body", "b", None, None),
        (4, "body", None, None, None),
    ]
    log += [
        (5, "body", "c", None, None),
        (6, "forecast", "d", "x", 0.5),
        (7, "body", "d", None, None),
    ]
    out = Shard(settings(), shelf).play(rows(*log, body=[kept, b"torn", kept, None, None, kept]))
    told = [(seq, column) for seq, column, _ in faults(out)]
    assert told == [(2, "key"), (3, "body"), (4, "key"), (5, "body"), (7, "key")]
    assert set(shelf.bodies) == set(shelf.last) == {"a", "d"}


def test_times_reach_a_rule_that_forgets_in_time() -> None:
    model = Recalibrator("fading", unit="time", half_life=9.0)
    log = rows((1, "forecast", "a", "one", 0.5), (2, "forecast", "a", "two", 0.5), time=[3.0, None])
    out = Shard(settings(model, timed=True), Shelf(4)).play(log)
    assert faults(out) == [(2, "time", "given to a rule that forgets in time")]


def test_events_are_packed_by_shard_and_unpacked_again(monkeypatch) -> None:
    monkeypatch.setattr(parcels, "AT_ONCE", 250)
    log = whole(events(200, 9, 5.0))
    where = pa.array(np.arange(log.num_rows) % 3, pa.int32())
    parts = list(packer(SCHEMA)(iter(log.append_column("shard", where).to_batches(100))))
    assert [part.num_rows for part in parts] == [3, 3]
    found = read(parts[0].column("events").to_pylist(), SCHEMA)
    assert found.sort_by("seq") == log.slice(0, 300).sort_by("seq")
    empty = parts[0].slice(0, 0)
    out = list(unpacker(SCHEMA)(iter([empty, *parts])))
    assert pa.Table.from_batches(out).sort_by("seq") == log.sort_by("seq")


def test_chunks_are_written_as_one() -> None:
    log = whole(events(5, 2, 2.0))
    twice = pa.concat_tables([log, log])
    assert read([written(twice, SCHEMA)], SCHEMA) == twice.combine_chunks()


@pytest.mark.parametrize("cut", [3, 30, -1])
def test_a_shelf_that_is_torn_is_refused(cut: int) -> None:
    data = Shelf(4, {"a": 1, "b": 2}, {"a": b"body", "b": b"other"}).to_bytes()
    with pytest.raises(CorruptState, match="state must be a shelf"):
        Shelf.from_bytes(data[:cut], 4)


def test_another_number_of_shards_is_refused() -> None:
    with pytest.raises(InvalidInput, match="shards must be 4, as at the first start, got 8"):
        Shelf.from_bytes(Shelf(4).to_bytes(), 8)


def test_another_model_is_refused() -> None:
    shelf = Shelf(4)
    Shard(settings(), shelf).play(rows((1, "forecast", "a", "one", 0.5)))
    with pytest.raises(CorruptState, match="body of key 'a'"):
        Shard(settings(Calibrant()), shelf).play(rows((2, "forecast", "a", "two", 0.5)))


class Value:
    """Stands for a variable of Spark's state."""

    kept: tuple[bytes] | None = None

    def get(self):
        return self.kept

    def update(self, value):
        self.kept = value


class Handle:
    """Stands for what Spark hands to a processor."""

    def __init__(self) -> None:
        self.value, self.timers = Value(), set[int]()

    def listTimers(self):
        return iter(self.timers)

    def deleteTimer(self, timer):
        self.timers.remove(timer)

    def registerTimer(self, timer):
        self.timers.add(timer)

    def getValueState(self, name, schema):
        assert (name, schema.names) == ("shelf", ["shelf"])
        return self.value


def test_a_processor_keeps_one_shelf_for_each_shard() -> None:
    log, handle, table = events(60, 3, 5.0), Handle(), Table(MODEL, seed=SEED)
    processor = ShardProcessor(settings())
    processor.init(handle)
    played(log.slice(0, 70), table)
    bodies = dict(zip(table, table.bodies(), strict=True))
    begun = Shelf(4, dict.fromkeys(bodies, 69), bodies)
    processor.handleInitialState((1,), Row(shard=1, shelf=bytearray(begun.to_bytes())), None)
    made, rest = [], log.slice(70)
    for part in (rest.slice(0, 20), rest.slice(20)):
        row = Row(shard=1, events=bytearray(written(whole(part), SCHEMA)))
        made += processor.handleInputRows((1,), iter([row]), None)
    out = read([row["events"] for row in made], parcels.played_schema(SCHEMA))
    processor.close()
    assert agrees(out.drop_columns(["time", "body"]), rest, played(rest, table))
    assert handle.value.kept is not None


def test_a_processor_without_a_state_begins_anew() -> None:
    log, handle, table = events(20, 3, 5.0), Handle(), Table(MODEL, seed=SEED)
    processor = ShardProcessor(settings())
    processor.init(handle)
    row = Row(shard=1, events=bytearray(written(whole(log), SCHEMA)))
    (made,) = processor.handleInputRows((1,), iter([row]), None)
    out = read([made["events"]], parcels.played_schema(SCHEMA))
    assert agrees(out.drop_columns(["time", "body"]), log, played(log, table))
    found = Shelf.from_bytes(handle.value.kept[0])
    assert found.bodies == dict(zip(table, table.bodies(), strict=True))


class Now:
    """Stands for the time that Spark tells."""

    def __init__(self, now: int) -> None:
        self.now = now

    def getCurrentProcessingTimeInMs(self) -> int:
        return self.now


def parcel(*told: tuple[object, ...]) -> Row:
    return Row(shard=1, events=bytearray(written(rows(*told), SCHEMA)))


def test_a_shard_that_is_quiet_for_long_goes_to_rows_of_its_own() -> None:
    handle, processor = Handle(), ShardProcessor(settings(seconds=2.5))
    processor.init(handle)
    first = parcel((1, "forecast", "a", "one", 0.5), (2, "forecast", "b", "two", 0.5))
    list(processor.handleInputRows((1,), iter([first]), Now(1000)))
    assert handle.timers == {3501}
    list(
        processor.handleInputRows((1,), iter([parcel((3, "outcome", "a", "one", 1.0))]), Now(2000))
    )
    assert handle.timers == {4501}
    kept = Shelf.from_bytes(handle.value.kept[0]).bodies
    (gone,) = processor.handleExpiredTimer((1,), Now(4501), None)
    out = read([gone["events"]], parcels.played_schema(SCHEMA))
    assert out.select(["kind", "seq", "key", "body"]).to_pylist() == [
        {"kind": "idle", "seq": 3, "key": "a", "body": kept["a"]},
        {"kind": "idle", "seq": 2, "key": "b", "body": kept["b"]},
    ]
    assert Shelf.from_bytes(handle.value.kept[0]) == Shelf(4)


def test_without_seconds_there_are_no_timers() -> None:
    handle, processor = Handle(), ShardProcessor(settings())
    processor.init(handle)
    list(processor.handleInputRows((1,), iter([parcel((1, "forecast", "a", "one", 0.5))]), None))
    assert handle.timers == set()


def test_the_compiler_starts_once_enough_was_played(monkeypatch) -> None:
    started = []
    monkeypatch.setattr(shards, "_seen", [0])
    monkeypatch.setattr(shards, "available", lambda: True)
    monkeypatch.setattr(shards.bodies, "machine_of_rows", lambda: started.append(1))
    shards.warm(MODEL, shards.SHORT)
    assert not started
    shards.warm(MODEL, 1)
    assert started


def test_packing_nothing_makes_nothing() -> None:
    assert list(packer(SCHEMA)(iter([]))) == []
