"""What goes wrong with a store: kills, damage, a disk that cannot be written, clocks that jump."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cluster import BIN, MISSING, Cluster
from storing import Opened, asked, cluster, make_stream, opened, waited
from test_journal import filled, pattern, some_events

from calibrant import Journal
from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.errors import CorruptState, DamagedLog, NotStored
from calibrant.journal.events import FORECAST, OUTCOME, Asked
from calibrant.journal.ledger import Ledger
from calibrant.journal.purge import purge
from calibrant.journal.recover import take_snapshots, verified
from calibrant.journal.sqlite import SqliteStore
from calibrant.journal.writer import Writer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.kills import CLIENTS, kills

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

__all__ = ["cluster", "opened"]

CYCLES = int(os.environ.get("CALIBRANT_KILLS", "100"))
Heard = pytest.CaptureFixture[str]


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yields the address of an empty store."""
    if request.param == "sqlite":
        yield str(tmp_path / "streams.db")
        return
    if BIN is None:
        pytest.skip(MISSING)
    made = Cluster()
    yield made.database("killed")
    made.close()


@pytest.mark.parametrize("store", ["SQLite", "PostgreSQL"])
def test_the_long_runs_are_stored_as_the_page_says(store: str) -> None:
    path = Path(__file__).parents[1] / "benchmarks" / "kills.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    long = [line for line in lines if line["store"] == store and line["cycles"] >= 10_000]
    page = path.parents[1].joinpath("docs", "how-to", "service.md").read_text()
    assert long
    for line in long:
        # An answer that was never heard may be in the log too, none that was heard is missing.
        assert line["events"] >= line["acknowledged"]
        told = line["acknowledged"], line["in_snapshot"], line["opening"], line["recovered"]
        assert all(f"{number:,}" in page for number in told)


def test_a_hundred_kills_lose_nothing(address: str) -> None:
    found = kills(address, CYCLES)
    assert found["cycles"] == CYCLES
    assert CYCLES < found["acknowledged"] <= found["events"]
    assert found["events"] <= found["acknowledged"] + CLIENTS * CYCLES


def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    file = tmp_path / "streams.db"
    filled(file)
    with Journal(file) as journal:
        held = journal._store._write  # type: ignore[attr-defined]
        # What SQLite finds on a disk that was mounted again for reading alone.
        held.execute("pragma query_only = on")
        with pytest.raises(NotStored, match="readonly"):
            journal.forecast("a", 0.4, id="new")
        held.execute("pragma query_only = off")
        assert journal.forecast("a", 0.4, id="new").id == "new"
        assert journal.verify() == 61


def test_a_service_on_a_disk_that_cannot_be_written_is_not_ready(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "streams.db", alone=True)
    make_stream(store)
    writer = Writer(store)
    first = waited(writer, [Asked(1, FORECAST, "a", "k", 0.5)])
    store._write.execute("pragma query_only = on")
    with pytest.raises(NotStored):
        waited(writer, [Asked(1, FORECAST, "b", "k", 0.5)])
    assert not writer.ready
    store._write.execute("pragma query_only = off")
    while not writer.ready:
        with suppress(NotStored):
            waited(writer, [Asked(1, FORECAST, "c", "k", 0.5)])
    again = waited(writer, [Asked(1, FORECAST, "a", "k", 0.5)])
    assert again[0].event == first[0].event
    writer.close()


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_file_is_refused_and_named(tmp_path: Path, part: float, capsys: Heard) -> None:
    file = tmp_path / "streams.db"
    filled(file, 900)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * part)])
    with pytest.raises((CorruptState, DamagedLog, NotStored)):
        Journal(file).verify()
    assert run(["verify", str(file)]) in (ExitCode.STATE, ExitCode.OUTPUT)
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_flipped_byte_in_the_log_is_named_and_refused(opened: Opened, seed: int) -> None:
    store = opened()
    make_stream(store)
    ledger = Ledger(store)
    ledger.write(ledger.enter(asked(some_events(120)))[1])
    with store.writing():
        take_snapshots(store, ledger, {})
    one = list(store.tail(0))[seed * 13]
    at = seed % len(one.answer)
    answer = one.answer[:at] + bytes([one.answer[at] ^ 1 << seed]) + one.answer[at + 1 :]
    with store.writing():
        store.drop_events([one.seq])
        store.add_events([one._replace(answer=answer)])
    with pytest.raises(DamagedLog, match=f"event {one.seq} must be as it was written"):
        verified(store)
    # Behind a snapshot the start does not read it, but whoever asks for it is told.
    with pytest.raises(DamagedLog, match=f"event {one.seq} must be as it was written"):
        Ledger(store).find(*one[1:4])
    with store.writing():
        store.drop_snapshots(1)
    with pytest.raises(DamagedLog, match=f"event {one.seq} must be as it was written"):
        Ledger(store)


def test_a_clock_that_jumps_changes_no_answer(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([2e9, 5.0, 3e9, -1.0] * 50)
    monkeypatch.setattr("time.time", lambda: next(times))
    store = opened()
    make_stream(store, keep=10.0)
    ledger, events = Ledger(store), some_events(120)
    for start in range(0, 120, 30):
        ledger.write(ledger.enter(asked(events[start : start + 30]))[1])
        with store.writing():
            take_snapshots(store, ledger, {})
    assert Ledger(store).folds[1].body() == ledger.folds[1].body()
    # The clock stood at its latest: what may be younger than it says is kept.
    assert purge(store, 1e9) == (0, 0)
    assert purge(store, 4e9).events > 0
    assert Ledger(store).folds[1].body() == ledger.folds[1].body()


def test_times_that_go_backwards_are_the_callers_own(opened: Opened) -> None:
    store = opened()
    make_stream(store)
    writer = Writer(store)
    told = waited(
        writer,
        [
            Asked(1, FORECAST, "a", "k", 0.5, 100.0),
            Asked(1, FORECAST, "b", "k", 0.5, 50.0),
            Asked(1, OUTCOME, "a", None, 1.0, 99.0),
            Asked(1, OUTCOME, "b", None, 1.0, 50.0),
        ],
    )
    assert [one.status for one in told] == ["made", "made", "refused", "learned"]
    assert "must not be before" in str(told[2].error)
    writer.close()
    assert verified(opened()) == 3


def test_a_second_process_on_the_same_journal_takes_turns(tmp_path: Path) -> None:
    file = tmp_path / "streams.db"
    with Journal(file, pattern(), seed=7) as journal:
        journal.forecast("a", 0.4, id="mine")
        child = os.fork()
        if not child:
            code = 1
            try:
                with Journal(file) as other:
                    other.forecast("a", 0.4, id="theirs")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert journal["a"].issued == 2
        with pytest.raises(NotStored, match="nobody else"):
            SqliteStore(file, alone=True)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no such folder"):
        Journal(tmp_path / "no such folder" / "streams.db", pattern())
