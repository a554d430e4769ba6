"""A writer killed again and again under load: nothing acknowledged is lost, nothing is there twice.

``python -m benchmarks.kills --cycles 10000`` starts a process that owns a store and has 16 clients
make rounds, and kills it with SIGKILL at a random moment.  Then the store is opened again, which
plays the tail of the log and compares every answer, and everything that was acknowledged is asked
once more: each answer must be in the log, with the same bytes.  ``--postgres ADDRESS`` does so with
an empty database instead of a file of SQLite.  At the end the whole log is played from its
beginning.  The result is printed as a line of JSON, and added to a file with ``--to FILE``.
``--keep FOLDER`` keeps the store and the counts there: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from calibrant import Recalibrator
from calibrant.journal.events import FORECAST, OUTCOME, Asked
from calibrant.journal.ledger import Ledger
from calibrant.journal.opening import open_store
from calibrant.journal.recover import verified
from calibrant.journal.store import Line
from calibrant.journal.writer import Writer

CLIENTS = 16
EVERY = 150
"""After so many events a writer takes a snapshot, so that kills hit snapshots too."""
MOST = 120
"""Answers before a kill, at most."""


def question(cycle: int, client: int, k: int, kind: int) -> Asked:
    """Return what a client asks: it can be asked again from its name."""
    x = (k * 37 % 100) / 100 if kind == FORECAST else float(k % 2)
    return Asked(1, kind, f"{cycle} {client} {k}", None, x)


def work(address: str, cycle: int, pipe: int) -> None:
    """Let clients make rounds for ever; tell each answer once it is acknowledged."""
    writer = Writer(open_store(address, alone=True), every=EVERY)

    def ask(client: int, k: int, kind: int) -> None:
        done, found = threading.Event(), list[Any]()

        def answer(told: Any, error: Exception | None) -> None:
            found.extend((told, error))
            done.set()

        writer.submit([question(cycle, client, k, kind)], answer)
        done.wait()
        event = found[0][0].result()
        os.write(pipe, f"{client} {k} {kind} {event.seq} {event.answer.hex()}\n".encode())

    def run(client: int) -> None:
        with suppress(BrokenPipeError):
            for k in count():
                ask(client, k, FORECAST)
                if k >= 2:
                    ask(client, k - 2, OUTCOME)
        # Nobody listens: whoever started this was stopped, and the store must not stay owned.
        os._exit(1)

    for client in range(CLIENTS):
        threading.Thread(target=run, args=(client,), daemon=True).start()
    threading.Event().wait()


def forked(job: Callable[[int], None]) -> tuple[int, int]:
    """Run something in a child that writes to a pipe; return the child and the other end."""
    there, here = os.pipe()
    child = os.fork()
    if child:
        os.close(here)
        return child, there
    try:
        os.close(there)
        job(here)
    except BaseException as error:
        os.write(here, f"error {error!r}\n".encode())
    finally:
        os._exit(1)


def until_killed(child: int, pipe: int, lines: int) -> list[str]:
    """Kill a child once it has told so many lines; return all that it told."""
    told = b""
    while told.count(b"\n") < lines and (part := os.read(pipe, 1 << 16)):
        told += part
    os.kill(child, signal.SIGKILL)
    while part := os.read(pipe, 1 << 16):
        told += part
    os.close(pipe)
    os.waitpid(child, 0)
    return told.decode().split("\n")[:-1]


def check(address: str, cycle: int, lines: list[str]) -> None:
    """Open the store again, and ask for all that was told: it is there once, as it was told."""
    store = open_store(address, alone=True)
    try:
        ledger = Ledger(store)
        before = ledger.seq
        for line in lines:
            if line.startswith("error"):
                raise RuntimeError(line)
            client, k, kind, seq, answer = line.split()
            asked = question(cycle, int(client), int(k), int(kind))
            (told,), rows = ledger.enter([asked])
            event = told.result()
            if rows or (str(event.seq), event.answer.hex()) != (seq, answer):
                raise RuntimeError(f"{asked} must be answered as before, got {told}")
        if ledger.seq != before:
            raise RuntimeError("nothing new must follow from what was told")
    finally:
        store.close()


class Progress(NamedTuple):
    """What came of the cycles so far; written after each, where a file is given."""

    cycles: int = 0
    acknowledged: int = 0
    seconds: float = 0.0
    starts: int = 0

    @classmethod
    def read(cls, file: Path | None) -> Progress:
        """Return what a file holds; nothing has happened where there is none."""
        if file is None or not file.exists():
            return cls()
        return cls(**json.loads(file.read_text()))

    def write(self, file: Path | None) -> None:
        """Replace what a file holds, all of it or nothing."""
        if file is not None:
            made = file.with_suffix(".new")
            made.write_text(json.dumps(self._asdict()))
            made.replace(file)


def kills(
    address: str, cycles: int, seed: int = 1, seconds: float | None = None, file: Path | None = None
) -> dict[str, Any]:
    """Kill a writer so often, or as often as fits into a time; return what came of it.

    With a file for its progress, a run that was stopped goes on after the last whole cycle.
    """
    so_far, begun = Progress.read(file), time.monotonic()
    so_far = so_far._replace(starts=so_far.starts + 1)
    begin(address)
    while so_far.cycles < cycles and (seconds is None or time.monotonic() - begun < seconds):
        since = time.monotonic()
        lines = one_kill(address, so_far.cycles, seed)
        took = so_far.seconds + time.monotonic() - since
        counts = so_far.cycles + 1, so_far.acknowledged + len(lines), took, so_far.starts
        so_far = Progress(*counts)
        so_far.write(file)
    store = open_store(address, alone=True)
    events = verified(store)
    store.close()
    cycles, acknowledged, took, starts = so_far
    # A cycle in which this program was stopped left its own behind.
    under_way = CLIENTS * cycles + (starts - 1) * (CLIENTS + MOST)
    if not acknowledged <= events <= acknowledged + under_way:
        raise RuntimeError(f"events must be {acknowledged} and those under way, got {events}")
    told = {"cycles": cycles, "acknowledged": acknowledged, "events": events}
    return told | {"seconds": round(took)}


def begin(address: str) -> None:
    """Make the stream, unless it is there."""
    store = open_store(address, alone=True)
    if not store.streams():
        with store.writing():
            store.put_stream(Line(1, "s", "{}", Recalibrator(seed=7).to_bytes()))
    store.close()


def one_kill(address: str, cycle: int, seed: int) -> list[str]:
    """Let a writer work, kill it, and check the store; return what was acknowledged."""
    pair = forked(lambda pipe: work(address, cycle, pipe))
    lines = until_killed(*pair, random.Random(f"{seed} {cycle}").randrange(1, MOST))
    check(address, cycle, lines)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres")
    parser.add_argument("--keep", type=Path, help="a folder for the store, to go on another time")
    parser.add_argument("--to", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        address = asked.postgres or f"{asked.keep or folder}/streams.db"
        file = asked.keep and asked.keep / "progress.json"
        found = kills(address, asked.cycles, asked.seed, asked.seconds, file)
    found = {"store": "PostgreSQL" if asked.postgres else "SQLite", "clients": CLIENTS} | found
    print(json.dumps(found))
    if asked.to is not None:
        with asked.to.open("a") as out:
            out.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
