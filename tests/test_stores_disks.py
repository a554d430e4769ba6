"""Disks that are full or read-only: what was acknowledged stays, and the rest is told."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import pytest
from disks import Feigned, Mounted, disk
from storing import make_stream, waited
from test_journal import filled, pattern

from calibrant import Journal
from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.errors import NotStored
from calibrant.journal.events import FORECAST, Asked
from calibrant.journal.recover import verified
from calibrant.journal.sqlite import SqliteStore
from calibrant.journal.writer import Writer

__all__ = ["disk"]

Disk = Mounted | Feigned
FULL = "full|disk I/O error"
MOST = 20_000
"""Events for which no such disk has room."""


def test_a_journal_on_a_full_disk_keeps_what_it_acknowledged(disk: Disk) -> None:
    with Journal(disk.place / "streams.db", pattern(), seed=7) as journal:
        told = [journal.forecast("a", k % 10 / 10, id=f"{k}") for k in range(40)]
        disk.fill(journal._store)

        def go_on() -> None:
            for k in range(40, MOST):
                told.append(journal.forecast("a", k % 10 / 10, id=f"{k}"))

        with pytest.raises(NotStored, match=FULL):
            go_on()
        lost = len(told)
        disk.make_room(journal._store)
        # The call that failed may be made again, and what was answered is answered so again.
        assert journal.forecast("a", lost % 10 / 10, id=f"{lost}").number == lost
        for k, ticket in enumerate(told):
            again = journal.forecast("a", k % 10 / 10, id=f"{k}")
            assert (again.value, again.number) == (ticket.value, k)
        assert journal.verify() == lost + 1


def test_a_service_on_a_full_disk_is_not_ready_until_there_is_room(disk: Disk) -> None:
    store = SqliteStore(disk.place / "streams.db", alone=True)
    make_stream(store)
    writer = Writer(store)
    told = [waited(writer, [Asked(1, FORECAST, f"{k}", "k", 0.5)])[0].event for k in range(40)]
    disk.fill(store)

    def go_on() -> None:
        for k in range(40, MOST):
            told.append(waited(writer, [Asked(1, FORECAST, f"{k}", "k", 0.5)])[0].event)

    with pytest.raises(NotStored, match=FULL):
        go_on()
    assert not writer.ready
    disk.make_room(store)
    for k in count():
        with suppress(NotStored):
            waited(writer, [Asked(1, FORECAST, f"later {k}", "k", 0.5)])
        if writer.ready:
            break
    for event in told:
        assert event is not None
        again = waited(writer, [Asked(1, FORECAST, event.id, "k", 0.5)])
        assert again[0].event == event
    assert verified(store) >= len(told)
    writer.close()


def test_a_disk_that_is_read_only_is_told_and_costs_nothing(
    disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    file = disk.place / "streams.db"
    filled(file)
    before = file.read_bytes()

    def write() -> None:
        with Journal(file) as journal:
            journal.forecast("a", 0.4, id="new")

    with disk.read_only():
        with pytest.raises(NotStored, match=f"{file}.*: cannot be written"):
            write()
        capsys.readouterr()
        code = run(["verify", str(file)])
        assert code in (ExitCode.OK, ExitCode.OUTPUT)
        assert len(capsys.readouterr().err.splitlines()) == (code != ExitCode.OK)
    assert file.read_bytes() == before
    with Journal(file) as journal:
        assert journal.forecast("a", 0.4, id="new").id == "new"
        assert journal.verify() == 61
