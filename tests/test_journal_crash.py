"""A journal whose process is killed, or whose disk is full: nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from calibrant import Journal, Recalibrator
from calibrant.errors import NotStored
from calibrant.journal import journal as home

pytestmark = [
    pytest.mark.base,
    pytest.mark.plain,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

CYCLES = int(os.environ.get("CALIBRANT_KILLS", "20"))


def pattern() -> Recalibrator:
    return Recalibrator(resolution=10, buckets=5)


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """Run something in a child that may write to a pipe; return the child and the other end."""
    there, here = os.pipe()
    child = os.fork()
    if child:
        os.close(here)
        return child, there
    try:
        os.close(there)
        work(here)
        os._exit(0)
    except BaseException as error:
        os.write(here, f"error {error!r}\n".encode())
        os._exit(1)


def play_on(file: Path, cycle: int) -> Callable[[int], None]:
    """Return what makes rounds for ever, and tells each answer once it has it."""

    def work(pipe: int) -> None:
        journal, k = Journal(file), 0
        while True:
            ticket = journal.forecast("a", (k * 37 % 100) / 100, id=f"{cycle} {k}")
            os.write(pipe, f"{k} {ticket.value} {ticket.number}\n".encode())
            if k >= 3:
                journal.observe(f"{cycle} {k - 3}", k % 2)
                os.write(pipe, f"{k - 3} learned {k % 2}\n".encode())
            k += 1

    return work


def until_killed(child: int, pipe: int, lines: int) -> list[str]:
    """Kill a child once it has told so many lines; return all that it told."""
    told = b""
    while told.count(b"\n") < lines:
        part = os.read(pipe, 4096)
        assert part, told
        told += part
    os.kill(child, signal.SIGKILL)
    while part := os.read(pipe, 4096):
        told += part
    os.close(pipe)
    os.waitpid(child, 0)
    return told.decode().split("\n")[:-1]


def check_told(journal: Journal, cycle: int, lines: list[str]) -> None:
    """Ask again for all that was told: each answer must be the same."""
    for line in lines:
        k, value, rest = line.split()
        if value == "learned":
            closed = journal.observe(f"{cycle} {k}", int(rest))
            assert closed is not None
            assert closed.outcome == int(rest)
        else:
            again = journal.forecast("a", (int(k) * 37 % 100) / 100, id=f"{cycle} {k}")
            assert (str(again.value), str(again.number)) == (value, rest)


def test_whatever_was_answered_survives_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "EVERY", 13)
    file, dice, acknowledged = tmp_path / "streams.db", random.Random(5), 0
    Journal(file, pattern(), seed=7).close()
    for cycle in range(CYCLES):
        lines = until_killed(*forked(play_on(file, cycle)), dice.randrange(1, 60))
        assert not [line for line in lines if line.startswith("error")]
        with Journal(file) as journal:
            before = journal["a"].issued
            check_told(journal, cycle, lines)
            assert journal["a"].issued == before
        acknowledged += len(lines)
    with Journal(file) as journal:
        # At most one event a cycle was written and not told.
        assert acknowledged <= journal.verify() <= acknowledged + CYCLES


def test_a_full_disk_refuses_and_keeps_what_was_answered(tmp_path: Path) -> None:
    file = tmp_path / "streams.db"
    Journal(file, pattern(), seed=7).close()

    def work(pipe: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        journal = Journal(file)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
        made = 0
        try:
            for made in range(2000):
                journal.forecast("a", 0.4, id=f"0 {made}")
                os.write(pipe, b".")
        except NotStored:
            os.write(pipe, b"full")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        journal.forecast("a", 0.4, id=f"0 {made}")
        os.write(pipe, b"again")

    child, pipe = forked(work)
    told = b""
    while part := os.read(pipe, 4096):
        told += part
    os.close(pipe)
    assert os.waitpid(child, 0)[1] == 0, told
    made = told.count(b".")
    assert told.endswith(b"fullagain")
    assert 0 < made < 2000
    with Journal(file) as journal:
        assert journal.verify() == journal["a"].issued == made + 1
