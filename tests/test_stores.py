"""One suite over every store: SQLite and PostgreSQL keep the same log."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster
from storing import Opened, asked, cluster, counter, make_stream, opened, waited
from test_journal import columns, pattern, some_events

from calibrant import Table
from calibrant.errors import CorruptState, DamagedLog, NotStored, UnknownTicket
from calibrant.journal.events import FORECAST, OUTCOME, Asked, Event, Told, code_digest
from calibrant.journal.ledger import Ledger
from calibrant.journal.opening import open_store
from calibrant.journal.recover import FILTER, take_snapshots, verified
from calibrant.journal.store import Pass, Snapshot
from calibrant.journal.writer import Writer
from calibrant.kernels.compile import digest

pytestmark = pytest.mark.once

__all__ = ["cluster", "opened"]


def test_what_is_put_is_found(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    events = [
        Event(seq, 1, seq % 2, f"id {seq // 2}", '"k"', seq / 8, None, b"abc", 5).sealed()
        for seq in range(1, 40)
    ]
    with store.writing():
        store.add_events(events)
    assert store.last() == 39
    assert list(store.tail(0)) == events
    assert list(store.tail(10, 12)) == events[10:12]
    assert store.events(1, 5, 3) == events[5:8]
    assert store.events(2, 0, 3) == []
    assert {*store.names()} == {event[1:4] for event in events}
    wanted = [(1, 0, "id 3"), (1, 1, "id 3"), (2, 0, "id 3"), (1, 0, "nobody")]
    assert {*store.find(wanted)} == {(1, 0, "id 3"), (1, 1, "id 3")}
    assert store.find([]) == {}
    token = Pass(b"hash", "me", "read", "*", 1.5)
    with store.writing():
        store.put_token(token)
        store.put_token(token._replace(revoked=2.5))
        store.put_snapshots([Snapshot(1, 20, "a", b"x")], 20)
        store.put_snapshots([Snapshot(1, 30, "a", b"y")], 30)
        store.put_snapshots([Snapshot(1, 35, "a", b"z")], 35)
        store.put_snapshots([], 39)
    assert store.tokens() == [token._replace(revoked=2.5)]
    assert [(one.seq, one.body) for one in store.snapshots()] == [(39, b"z"), (30, b"y")]
    with store.writing():
        store.purge(1)
    assert (store.streams(), store.last(), store.snapshots()) == ([], 0, [])


def test_who_reads_the_whole_log_hides_nothing_from_others(opened: Opened) -> None:
    store, done = opened(), threading.Event()
    make_stream(store)

    def line(seq: int) -> Event:
        return Event(seq, 1, 0, f"id {seq}", None, 0.5, None, b"abc" * 50, 5).sealed()

    def read() -> None:
        while not done.is_set():
            list(store.tail(0))

    with store.writing():
        store.add_events([line(seq) for seq in range(1, 4001)])
    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for seq in range(4001, 4021):
            with store.writing():
                store.add_events([line(seq)])
            assert store.last() == seq
            assert store.find([(1, 0, f"id {seq}")])
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_a_transaction_that_fails_leaves_no_trace(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    event = Event(1, 1, 0, "a", None, 0.5, None, b"", 5).sealed()

    def interrupted() -> None:
        with store.writing():
            store.add_events([event])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert store.last() == 0
    with pytest.raises(NotStored), store.writing():
        store.add_events([event, event._replace(seq=2)])
    assert store.last() == 0


def test_library_and_stores_give_the_same_answers_and_bodies(opened: Opened) -> None:
    events = some_events(300)
    table = Table(pattern(), seed=7)
    played = table.play(*columns(events))
    store = opened()
    make_stream(store)
    writer = Writer(store, every=50)
    told = list[Told]()
    for start in range(0, 300, 37):
        told += waited(writer, asked(events[start : start + 37]))
    fold = writer.ledger.folds[1]
    values = [fold.ticket(one.result()).value for one in told if one.result().kind == FORECAST]
    assert values == [v for v, event in zip(played.value, events, strict=True) if event[1] == 0]
    assert fold.model == table
    writer.close()
    store = opened()
    assert Ledger(store).folds[1].model.to_bytes() == table.to_bytes()
    assert verified(store) == 300


def killed(writer: Writer) -> None:
    """Let go of the store without writing snapshots, as a kill does."""
    writer.ready = False
    writer.close()


def test_who_is_killed_again_and_again_still_takes_snapshots(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody lives until a snapshot beside the writer is done: one is made at the fourth start.
    monkeypatch.setattr(Writer, "_take_snapshots", lambda self: None)
    for cycle in range(5):
        store = opened()
        if not cycle:
            make_stream(store)
        writer = Writer(store, every=10)
        assert writer.ledger.tail == (0, 4, 8, 0, 4)[cycle]
        waited(writer, [Asked(1, FORECAST, f"{cycle} {k}", "k", 0.5) for k in range(4)])
        killed(writer)
    store = opened()
    assert {one.stream: one.seq for one in store.snapshots()} == {FILTER: 12, 1: 12}
    assert Ledger(store).tail == 8
    assert verified(store) == 20


def test_a_snapshot_that_failed_at_the_start_is_not_taken_for_written(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    make_stream(store, 1)
    make_stream(store, 2)
    ledger, log = Ledger(store), asked(some_events(60))
    ledger.write(ledger.enter(log[:20])[1])
    with store.writing():
        take_snapshots(store, ledger, {})
    ledger.write(ledger.enter(log[20:])[1])

    def fail(*given: Any) -> None:
        raise NotStored("disk must have room, got none")

    # Nor does one beside the writer succeed.
    monkeypatch.setattr(Writer, "_take_snapshots", lambda self: None)
    with monkeypatch.context() as patch:
        patch.setattr(store, "put_snapshots", fail)
        writer = Writer(store, every=10)
    # Stream 1 has nothing new since then; its old snapshot must not be called one of today.
    waited(writer, [Asked(2, FORECAST, "new", "k", 0.5)])
    states = [fold.body() for fold in writer.ledger.folds.values()]
    writer.close()
    store = opened()
    assert [fold.body() for fold in Ledger(store).folds.values()] == states
    assert verified(store) == 61


def test_a_stream_without_events_does_not_make_the_whole_log_a_tail(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    make_stream(store, 2)
    writer = Writer(store, every=10)
    waited(writer, [Asked(1, FORECAST, f"{k}", "k", 0.5) for k in range(12)])
    killed(writer)
    store = opened()
    assert {one.stream for one in store.snapshots()} == {FILTER, 1, 2}
    assert Ledger(store).tail == 0


def test_an_event_that_fails_is_answered_by_itself(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    writer = Writer(store)
    told = waited(
        writer,
        [
            Asked(1, FORECAST, "a", "k", 0.5),
            Asked(1, OUTCOME, "nobody", None, 1),
            Asked(1, FORECAST, "a", "k", 0.5),
            Asked(1, FORECAST, "b", "k", 0.5),
            Asked(1, OUTCOME, "b", None, 1),
        ],
    )
    assert [one.status for one in told] == ["made", "refused", "repeated", "made", "learned"]
    assert isinstance(told[1].error, UnknownTicket)
    assert told[0].event == told[2].event
    assert store.last() == 3
    writer.close()


def test_requests_of_many_threads_are_each_answered_once(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    writer, found = Writer(store, every=40), dict[str, Event]()

    def run(name: int) -> None:
        for k in range(15):
            (told,) = waited(writer, [Asked(1, FORECAST, f"{name} {k}", "k", 0.5)])
            found[f"{name} {k}"] = told.result()
            waited(writer, [Asked(1, OUTCOME, f"{name} {k}", None, 1)])

    threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = waited(writer, [Asked(1, FORECAST, id, "k", 0.5) for id in found])
    assert [one.event for one in again] == list(found.values())
    assert {one.status for one in again} == {"repeated"}
    writer.close()
    assert verified(opened()) == 180


def test_a_second_owner_is_refused_and_readers_are_not(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    with pytest.raises(NotStored, match="nobody else must be at work"):
        opened()
    beside = opened(alone=None)
    with beside.writing():
        beside.put_token(Pass(b"hash", "me", "read", "*", 1.5))
    assert [token.name for token in store.tokens()] == ["me"]
    assert verified(beside) == 0


def test_an_answer_that_differs_stops_the_start_and_is_named(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    ledger = Ledger(store)
    _, rows = ledger.enter(asked(some_events(30)))
    one = next(row for row in rows[6:] if row.kind == FORECAST)
    forged = one._replace(x=1.0 - one.x, answer=one.told).sealed()
    with store.writing():
        store.add_events([forged if row.seq == one.seq else row for row in rows])
    code = f"{code_digest():012x}"
    told = rf"event {one.seq} \(forecast .* given by code {code}, this is {code}"
    with pytest.raises(DamagedLog, match=told):
        Ledger(store)


def test_the_code_of_an_answer_is_that_of_all_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set[str]()
    for part in ("nothing", "gaps.py", "transforms/platt.py"):
        with monkeypatch.context() as patched:
            read = Path.read_bytes
            patched.setattr(
                Path, "read_bytes", lambda of, part=part, read=read: read(of)[of.match(part) :]
            )
            found.add(digest.__wrapped__())
    assert len(found) == 3
    assert f"{code_digest():012x}" == digest()[:12]


# ---------------------------------------------------------------------- PostgreSQL alone


def test_an_owner_that_was_asleep_cannot_write_after_a_takeover(cluster: Cluster) -> None:
    address = cluster.database(f"db{next(counter)}")
    asleep: Any = open_store(address, alone=True)
    make_stream(asleep)
    with asleep.writing():
        pass
    # Its connection is lost, another owner takes over and leaves again.
    asleep._writer.close()
    other: Any = open_store(address, alone=True)
    with other.writing():
        pass
    with pytest.raises(NotStored, match="nobody else"), asleep.writing():
        pass
    other.close()
    with pytest.raises(NotStored, match="another owner that took over"), asleep.writing():
        pass
    asleep.close()


def test_a_server_that_was_killed_and_is_back_is_used_again(cluster: Cluster) -> None:
    address = cluster.database(f"db{next(counter)}")
    store = open_store(address, alone=True)
    make_stream(store)
    writer = Writer(store)
    first = waited(writer, [Asked(1, FORECAST, "a", "k", 0.5)])
    cluster.kill()
    with pytest.raises(NotStored):
        waited(writer, [Asked(1, FORECAST, "b", "k", 0.5)])
    assert not writer.ready
    cluster.start()
    while not writer.ready:
        with suppress(NotStored):
            waited(writer, [Asked(1, FORECAST, "c", "k", 0.5)])
    told = waited(writer, [Asked(1, FORECAST, "a", "k", 0.5)])
    assert told[0].event == first[0].event
    writer.close()
    store = open_store(address, alone=True)
    assert verified(store) >= 1
    store.close()


def test_a_later_version_of_the_tables_is_refused(cluster: Cluster) -> None:
    address = cluster.database(f"db{next(counter)}")
    store: Any = open_store(address, alone=None)
    store._run("update schema set version = 99")
    store.close()
    with pytest.raises(CorruptState, match="version"):
        open_store(address, alone=None)
