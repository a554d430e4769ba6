"""A writer killed again and again under load: nothing acknowledged is lost, nothing is there twice.

``python -m benchmarks.kills --cycles 10000`` starts a process that owns a store and has 16 clients
make rounds, and kills it with SIGKILL at a random moment.  Then the store is opened again, which
plays the tail of the log and compares every answer, and everything that was acknowledged is asked
once more: each answer must be in the log, with the same bytes.  ``--postgres ADDRESS`` does so with
an empty database instead of a file of SQLite.  At the end the whole log is played from its
beginning.  The result is printed as a line of JSON, and added to a file with ``--to FILE``.
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
from pathlib import Path
from typing import Any

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
        k = 0
        while True:
            ask(client, k, FORECAST)
            if k >= 2:
                ask(client, k - 2, OUTCOME)
            k += 1

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


def kills(address: str, cycles: int, seed: int = 1, seconds: float | None = None) -> dict[str, Any]:
    """Kill a writer so often, or as often as fits into a time; return what came of it."""
    store = open_store(address, alone=True)
    with store.writing():
        store.put_stream(Line(1, "s", "{}", Recalibrator(seed=7).to_bytes()))
    store.close()
    dice, acknowledged, begun, done = random.Random(seed), 0, time.monotonic(), 0
    while done < cycles and (seconds is None or time.monotonic() - begun < seconds):
        pair = forked(lambda pipe, cycle=done: work(address, cycle, pipe))  # type: ignore[misc]
        lines = until_killed(*pair, dice.randrange(1, MOST))
        check(address, done, lines)
        acknowledged += len(lines)
        done += 1
    store = open_store(address, alone=True)
    events = verified(store)
    store.close()
    if not acknowledged <= events <= acknowledged + CLIENTS * done:
        raise RuntimeError(f"events must be {acknowledged} and those under way, got {events}")
    took = time.monotonic() - begun
    return {"cycles": done, "acknowledged": acknowledged, "events": events, "seconds": round(took)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres")
    parser.add_argument("--to", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        address = asked.postgres or f"{folder}/streams.db"
        found = kills(address, asked.cycles, asked.seed, asked.seconds)
    found = {"store": "PostgreSQL" if asked.postgres else "SQLite", "clients": CLIENTS} | found
    print(json.dumps(found))
    if asked.to is not None:
        with asked.to.open("a") as file:
            file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
