"""Tables of earlier versions, deleted streams and old ids."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster
from golden.make_journals import PLACE, next_answers
from storing import Opened, asked, cluster, counter, make_stream, opened
from test_journal import filled, some_events

from calibrant import Journal
from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.errors import CorruptState, InvalidInput, UnknownTicket
from calibrant.journal.events import FORECAST, OUTCOME, Asked
from calibrant.journal.ledger import Ledger
from calibrant.journal.opening import open_store
from calibrant.journal.purge import purge
from calibrant.journal.recover import FILTER, take_snapshots, verified
from calibrant.journal.schema import VERSION
from calibrant.journal.store import Moment

pytestmark = pytest.mark.once

__all__ = ["cluster", "opened"]

Heard = pytest.CaptureFixture[str]
VERSIONS = sorted(file.stem for file in PLACE.glob("*.db"))


@pytest.fixture(params=["sqlite", "postgres"])
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Returns what makes a store of an earlier version again, and its address."""

    def make(version: str) -> str:
        if request.param == "sqlite":
            return str(shutil.copy(PLACE / f"{version}.db", tmp_path / "old.db"))
        held: Cluster = request.getfixturevalue("cluster")
        address = held.database(f"golden{next(counter)}")
        restore(address, (PLACE / f"{version}.sql").read_text())
        return address

    return make


def restore(address: str, dump: str) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as held:
        held.execute(dump.encode())


@pytest.mark.parametrize("version", VERSIONS)
def test_tables_of_every_version_are_brought_up_to_date(
    version: str, golden: Any, capsys: Heard
) -> None:
    address, follows = golden(version), json.loads((PLACE / f"{version}.json").read_text())
    # What follows a dash says what else is new in it.
    if version.partition("-")[0] != f"v{VERSION}":
        with pytest.raises(CorruptState, match="calibrant migrate"):
            open_store(address, alone=None)
    assert run(["migrate", address]) == ExitCode.OK
    assert run(["migrate", address]) == ExitCode.OK
    assert capsys.readouterr().out.endswith(f"version {VERSION}, after 0 steps\n")
    store = open_store(address, alone=True)
    assert verified(store) == follows["events"]
    ledger = Ledger(store)
    counts = {str(number): [f.issued, f.learned] for number, f in ledger.folds.items()}
    assert counts == follows["counts"]
    names = follows.get("names", {"lone": None, "keyed": None, "gone": 1.5})
    assert {line.name: line.gone for line in store.streams()} == names
    assert [token.name for token in store.tokens()] == ["scoring"]
    assert next_answers(ledger) == follows["next"]
    store.close()


def tables(store: Any) -> Any:
    """Return tables with their columns, and indexes."""
    if hasattr(store, "path"):
        names = store._rows("select type, name from sqlite_master order by type, name")
        found = {name: store._rows(f"pragma table_xinfo({name})") for _, name in names}
        keys = ("name", "type", "notnull", "default", "key")
        columns = {
            n: [dict(zip(keys, r[1:6], strict=True)) for r in rows] for n, rows in found.items()
        }
        return names, columns
    columns = store._rows(
        "select table_name, column_name, data_type, is_nullable, column_default "
        "from information_schema.columns where table_schema = 'public' "
        "order by table_name, ordinal_position"
    )
    found = "select indexdef from pg_indexes where schemaname = 'public' order by indexdef"
    return columns, store._rows(found)


@pytest.mark.parametrize("version", VERSIONS)
def test_old_tables_become_what_new_ones_are(version: str, golden: Any, opened: Opened) -> None:
    address = golden(version)
    old, new = open_store(address, alone=True, old=True), opened()
    if hasattr(old, "path") != hasattr(new, "path"):
        old.close()
        return
    old.migrate()
    assert tables(old) == tables(new)
    old.close()


def test_a_step_that_fails_leaves_the_tables_as_they_were(tmp_path: Path, capsys: Heard) -> None:
    file = str(shutil.copy(PLACE / "v1.db", tmp_path / "streams.db"))
    with closing(sqlite3.connect(file)) as held, held:
        held.execute("create table moment (a)")
    held.close()
    assert run(["migrate", file]) != ExitCode.OK
    store = open_store(file, alone=None, old=True)
    assert store.version() == 1
    assert ("kept",) not in store._rows("select name from sqlite_master")  # type: ignore[attr-defined]
    assert len(store._rows("select * from snapshot")[0]) == 4  # type: ignore[attr-defined]
    store.close()


# ---------------------------------------------------------------------- purge


def test_a_deleted_stream_is_gone_after_a_purge(opened: Opened) -> None:
    store = opened()
    for number in (1, 2):
        make_stream(store, number)
    ledger = Ledger(store)
    for stream in (1, 2):
        ledger.write(ledger.enter(asked(some_events(60), stream))[1])
    with store.writing():
        take_snapshots(store, ledger, {})
        store.put_stream(store.streams()[1]._replace(gone=5.0))
    assert purge(store, 9.0) == (1, 0)
    assert purge(store, 9.0) == (0, 0)
    assert [line.number for line in store.streams()] == [1]
    assert {event.stream for event in store.tail(0)} == {1}
    assert {one.stream for one in store.snapshots()} == {1, FILTER}
    assert store.last() == 120
    assert verified(store) == 60
    assert Ledger(store).folds[1].body() == ledger.folds[1].body()


def test_old_ids_are_forgotten_and_the_state_is_not(opened: Opened) -> None:
    store = opened()
    make_stream(store, keep=100.0, unknown="keep")
    make_stream(store, 2)
    ledger, events = Ledger(store), some_events(200)
    ledger.write(ledger.enter(asked(events, 2))[1])
    first = [*asked(events[:60]), Asked(1, OUTCOME, "early", None, 1.0)]
    ledger.write(ledger.enter(first)[1])
    closed = next(id for _, kind, id, _ in events[:60] if kind == OUTCOME)
    with store.writing():
        store.put_moment(Moment(ledger.seq, 1000.0))
    ledger.write(ledger.enter(asked(events[60:]))[1])
    before = [fold.body() for fold in ledger.folds.values()]
    assert purge(store, 1050.0) == (0, 0)
    gone = purge(store, 1150.0)
    assert gone.streams == 0
    # Four forecasts were open then, and an outcome had come before its forecast.
    assert gone.events == 56
    assert purge(store, 1150.0) == (0, 0)
    again = Ledger(store)
    assert [fold.body() for fold in again.folds.values()] == before
    assert verified(store) == 401 - gone.events
    open_then = ("id 42", "id 46", "id 56", "id 59")
    assert all(again.find(1, FORECAST, id) is not None for id in open_then)
    assert again.find(1, OUTCOME, "early") is not None
    assert again.find(1, FORECAST, closed) is None
    assert again.find(2, FORECAST, closed) is not None
    (told,), _ = again.enter([Asked(2, OUTCOME, "nobody", None, 1)])
    assert isinstance(told.error, UnknownTicket)
    waiting = next(id for _, _, id, _ in events if again.folds[1].waits(id))
    (told,), rows = again.enter([Asked(1, OUTCOME, waiting, None, 1)])
    again.write(rows)
    assert told.status == "learned"
    assert verified(store) == 402 - gone.events


def test_the_command_purges_what_nobody_works_on(tmp_path: Path, capsys: Heard) -> None:
    file = tmp_path / "streams.db"
    filled(file)
    with Journal(file):
        assert run(["purge", str(file)]) != ExitCode.OK
    capsys.readouterr()
    assert run(["purge", str(file)]) == ExitCode.OK
    assert capsys.readouterr().out == "removed 0 streams, and 0 events of other streams\n"
    with pytest.raises(InvalidInput, match="keep must be above 0"):
        Journal(file, stream="other", keep=0.0)
