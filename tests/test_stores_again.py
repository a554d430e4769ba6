"""Recovery: the tail of a log as batches, snapshots in pieces, and the filter of ids with them."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

import pytest
from storing import Opened, asked, cluster, make_stream, opened, waited
from test_journal import pattern, some_events

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import DamagedLog, NotStored
from calibrant.journal import again, parts, recover
from calibrant.journal.apart import snapshots_apart
from calibrant.journal.events import CORRECTION, EXPIRY, FORECAST, OUTCOME, Asked, Event
from calibrant.journal.fold import Fold
from calibrant.journal.ledger import Ledger
from calibrant.journal.recover import FILTER, take_snapshots, verified
from calibrant.journal.seen import Seen
from calibrant.journal.settings import Settings
from calibrant.journal.sql import Store
from calibrant.journal.store import Line, Snapshot
from calibrant.journal.writer import Writer

pytestmark = pytest.mark.once

__all__ = ["cluster", "opened"]

MODELS: dict[str, Any] = {
    "lone": lambda: Recalibrator(seed=3),
    "calibrant": lambda: Calibrant(seed=3),
    "safe": lambda: Calibrant(seed=3, raw_safe=0.5),
    "many points": lambda: Recalibrator("polynomial_regret", resolution=5, seed=3),
    "keyed": lambda: Table(pattern(), seed=3),
    "keyed calibrant": lambda: Table(Calibrant(), seed=3),
}


def put_model(store: Store, model: Any) -> None:
    settings = Settings(keyed=isinstance(model, Table), unknown="keep")
    with store.writing():
        store.put_stream(Line(1, "s", settings.to_json(), model.to_bytes()))


def requests(keyed: bool, count: int = 250) -> list[Asked]:
    """Late and early outcomes, corrections, expiries and times."""
    dice, made = random.Random(5), list[Asked]()
    keys = ("a", "b", 7) if keyed else (None,)
    for k in range(count):
        time = float(k) if k % 3 else None
        made.append(Asked(1, FORECAST, f"id {k}", dice.choice(keys), dice.random(), time))
        if k >= 4 and k % 50 != 9:
            made.append(Asked(1, OUTCOME, f"id {k - 4}", None, float(dice.random() < 0.4), time))
        if k % 97 == 96:
            made.append(Asked(1, CORRECTION, f"id {k - 9}", None, 1.0 - outcome_of(made, k - 9)))
            made.append(Asked(1, EXPIRY, f"id {k}", None, 0.0))
            made.append(Asked(1, OUTCOME, f"id {k + 30}", None, 1.0))
    return made


def outcome_of(made: list[Asked], k: int) -> float:
    return next(one.x for one in made if one.kind == OUTCOME and one.id == f"id {k}")


@pytest.fixture
def singly(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes which events are played one by one."""
    found, plain = list[int](), Fold.replay

    def replay(fold: Fold, event: Event, since: int = 0) -> None:
        found.append(event.seq)
        plain(fold, event, since)

    monkeypatch.setattr(Fold, "replay", replay)
    return found


@pytest.mark.parametrize("name", [*MODELS])
def test_a_batch_of_the_log_makes_the_same_state(
    name: str, opened: Opened, singly: list[int]
) -> None:
    store, model = opened(), MODELS[name]()
    put_model(store, model)
    ledger = Ledger(store)
    _, rows = ledger.enter(requests(isinstance(model, Table)))
    ledger.write(rows)
    assert len(rows) > 400
    made = Ledger(store).folds[1]
    assert made.body() == ledger.folds[1].body()
    assert made.seq == ledger.seq
    if name == "many points":
        assert len(singly) == len(rows)
    else:
        assert 0 < len(singly) < 60
    assert verified(store) == len(rows)


@pytest.mark.parametrize("length", [0, -8, 8])
def test_an_answer_that_differs_within_a_batch_is_named(opened: Opened, length: int) -> None:
    store = opened()
    make_stream(store)
    _, rows = Ledger(store).enter(asked(some_events(200)))
    one = [row for row in rows if row.kind == FORECAST][60]
    told = bytes([one.told[8] ^ 1]).join((one.told[:8], one.told[9:]))
    told = told[:length] if length < 0 else told + bytes(length)
    forged = one._replace(answer=told).sealed()
    with store.writing():
        store.add_events([forged if row.seq == one.seq else row for row in rows])
    with pytest.raises(DamagedLog, match=r"event [0-9]+ \(forecast") as found:
        Ledger(store)
    assert length or f"event {one.seq} " in str(found.value)


def test_an_event_that_cannot_be_within_a_batch_is_named(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    _, rows = Ledger(store).enter(asked(some_events(200)))
    lost = next(row for row in rows[100:] if row.kind == OUTCOME)
    gone = next(row for row in rows if row.kind == FORECAST and row.id == lost.id)
    with store.writing():
        store.add_events([row for row in rows if row.seq != gone.seq])
    with pytest.raises(DamagedLog, match=r"event [0-9]+ "):
        Ledger(store)


def test_a_stream_without_keys_has_none_in_its_log(opened: Opened) -> None:
    store = opened()
    put_model(store, Recalibrator(seed=3))
    _, rows = Ledger(store).enter(requests(False, 60))
    one = [row for row in rows if row.kind == FORECAST][30]
    keyed = one._replace(key='"a"', answer=one.told).sealed()
    with store.writing():
        store.add_events([keyed if row.seq == keyed.seq else row for row in rows])
    with pytest.raises(DamagedLog, match=f"event {keyed.seq} must be possible"):
        Ledger(store)


# ---------------------------------------------------------------------- the filter of ids


def noted(store: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note which names are read from the store, and which events."""
    found, plain = list[Any](), store._paged
    monkeypatch.setattr(
        store, "_paged", lambda *told: (found.append(row[0]) or row for row in plain(*told))
    )
    return found


def test_only_the_tail_is_read_at_the_start(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    make_stream(store)
    ledger = Ledger(store)
    ledger.write(ledger.enter(asked(some_events(100)))[1])
    with store.writing():
        take_snapshots(store, ledger, {})
    ledger.write(ledger.enter([Asked(1, FORECAST, f"new {k}", "a", 0.5) for k in range(9)])[1])
    read = noted(store, monkeypatch)
    again = Ledger(store)
    assert read == list(range(101, 110))
    assert all(name in again.seen for name in store.names())
    assert sum((1, FORECAST, f"nobody {k}") in again.seen for k in range(1000)) < 40


@pytest.mark.parametrize("at", [0, 20, 5000, -1])
def test_a_damaged_filter_is_made_again_from_the_log(opened: Opened, at: int) -> None:
    store = opened()
    make_stream(store)
    ledger = Ledger(store)
    ledger.write(ledger.enter(asked(some_events(100)))[1])
    body = bytearray(ledger.seen.body())
    body[at] ^= 1
    with store.writing():
        store.put_snapshots([Snapshot(FILTER, 100, recover.IDS, bytes(body))], 100)
    again = Ledger(store)
    assert all(name in again.seen for name in store.names())
    with pytest.raises(DamagedLog, match="filter of ids at event 100 must be as it was written"):
        verified(store)
    with store.writing():
        store.put_snapshots([Snapshot(FILTER, 100, recover.IDS, Seen().body())], 100)
    with pytest.raises(DamagedLog, match="must hold every id, got one without"):
        verified(store)


def test_a_filter_is_the_same_after_a_restart() -> None:
    seen = Seen()
    for k in range(40_000):
        seen.add((1, 0, str(k)))
    assert seen.is_due()
    again = Seen.from_body(seen.body())
    assert not seen.is_due()
    for filter in (seen, again):
        for k in range(40_000, 42_000):
            filter.add((1, 0, str(k)))
    assert again.body() == seen.body()
    assert not seen.is_due()
    with pytest.raises(ValueError, match="whole layers"):
        Seen.from_body(parts.closed(parts.opened(seen.body())[:-8]))


# ---------------------------------------------------------------------- snapshots


def test_snapshots_are_written_in_pieces_and_half_of_one_is_none(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts.cut, "__defaults__", (100,))
    store = opened()
    make_stream(store)
    writer = Writer(store, every=1 << 40)
    waited(writer, asked(some_events(100)))
    writer._take_snapshots()
    assert writer.trouble == ""
    found = [one for one in store.snapshots() if one.stream == 1]
    assert len(found[0].body) > 300
    assert Fold.from_body(found[0].body, 100).body() == writer.ledger.folds[1].body()
    waited(writer, [Asked(1, FORECAST, f"new {k}", "a", 0.5) for k in range(20)])
    made = recover.fresh_snapshots(store, store.last())
    with store.writing():
        store.put_pieces(next(parts.cut(made)))
    assert [one for one in store.snapshots() if one.stream == 1] == found
    assert Ledger(store).folds[1].body() == writer.ledger.folds[1].body()
    writer.close()
    assert verified(opened()) == 120


def test_snapshots_of_another_process_are_the_same(opened: Opened) -> None:
    address = opened.address  # type: ignore[attr-defined]
    store = opened()
    make_stream(store)
    apart = partial(snapshots_apart, address, "calibrant.journal.apart")
    writer = Writer(store, every=1 << 40, apart=apart)
    waited(writer, asked(some_events(100)))
    assert apart(100) == recover.fresh_snapshots(store, 100)
    writer._take_snapshots()
    assert (writer.trouble, store.snapshots()[0].seq) == ("", 100)
    one = next(row for row in store.tail(0) if row.kind == FORECAST)
    with store.writing():
        store.drop_snapshots(1)
        store.drop_events([one.seq])
        store.add_events([one._replace(x=0.123)])
    with pytest.raises(NotStored, match=f"event {one.seq} must be as it was written"):
        apart(100)
    writer._take_snapshots()
    assert f"event {one.seq}" in writer.trouble
    writer.close()


def test_pages_of_a_stream_are_found_by_an_index(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    query = "select seq from event where stream = 1 and seq > 5 order by seq limit 3"
    if hasattr(store, "path"):
        (plan,) = store._rows(f"explain query plan {query}")
        assert "USING COVERING INDEX event_by_stream (stream=? AND seq>?)" in plan[3]
        return
    ((plan,),) = store._rows(f"explain (format json) {query}")
    assert "event_by_stream" in json.dumps(plan)
    assert "Sort" not in json.dumps(plan)


def test_questions_to_a_store_are_too_small_to_be_compiled(opened: Opened) -> None:
    store = opened()
    if not hasattr(store, "path"):
        ((plan,),) = store._rows("explain (analyze, format json) select version from schema")
        assert "JIT" not in plan[0]


def test_few_events_are_played_one_by_one(opened: Opened, singly: list[int]) -> None:
    store = opened()
    make_stream(store)
    ledger = Ledger(store)
    ledger.write(ledger.enter(asked(some_events(again.FEW)))[1])
    Ledger(store)
    assert len(singly) == again.FEW


@pytest.mark.parametrize("many", [1, 99, 100, 30_000])
def test_ids_added_together_are_those_added_one_by_one(many: int) -> None:
    names = [(1, k % 2, f"order {k} \udc80") for k in range(many)]
    one_by_one, together = Seen(), Seen()
    together._set_key(one_by_one._key)
    for seen in (one_by_one, together):
        seen.add((2, 0, "before"))
    for name in names:
        one_by_one.add(name)
    together.add_all(iter(names))
    assert together.count == many + 1
    assert together.body() == one_by_one.body()
