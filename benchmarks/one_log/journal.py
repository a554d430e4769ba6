"""A journal: every event by the library in a process of its own, with kill -9 while it writes.

    python -m benchmarks.one_log.journal FILE EVENTS KEYS MODEL

plays the log into a journal, prints a line after each batch, and goes on with what comes next: to
tell a journal again what it has learned does no harm.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.one_log.log import Event, batches, made_log
from benchmarks.one_log.ways import MODELS, PAPER, SEED, Model, Result
from calibrant import Journal

__all__ = ["by_journal"]


def by_journal(
    log: list[Event], path: Path, kills: int, model: Model = PAPER, *, size: tuple[int, int]
) -> Result:
    """Let a process write the log into a journal; kill it so many times, and begin again.

    ``size`` is that of the log: events and keys.
    """
    parts = len(batches(log))
    for k in range(kills):
        written(path, size, model, until=parts * (k + 1) // (kills + 1))
    written(path, size, model, until=None)
    with Journal(path, unknown="keep") as journal:
        answers, table = answered(journal, log), journal.state()
    return Result(answers, {key: table.body(key) for key in table})


def written(path: Path, size: tuple[int, int], model: Model, until: int | None) -> None:
    """Run the process to its end, or kill it when so many batches are written."""
    words = [sys.executable, "-m", "benchmarks.one_log.journal", path, *size, model.name]
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(until or 0):
            process.stdout.readline()
        if until is not None:
            process.send_signal(signal.SIGKILL)
        process.stdout.read()
    if process.returncode != (0 if until is None else -signal.SIGKILL):
        raise RuntimeError(f"journal must be written to its end, got {process.returncode}")


def answered(journal: Journal, log: list[Event]) -> dict[str, tuple[float, float]]:
    """Ask for every forecast once more; under its id the answer is the same."""
    made = [event for event in log if event.kind == "forecast"]
    rows = [(event.key, event.kind, event.id, event.x) for event in made]
    tickets = journal.play(*zip(*rows, strict=True))
    pairs = zip(made, tickets, strict=True)
    return {event.id: (ticket.value, ticket.mean) for event, ticket in pairs}


def enter(journal: Journal, batch: list[Event]) -> None:
    """Write a batch of one kind."""
    if batch[0].kind in ("forecast", "outcome"):
        keys = [event.key if event.kind == "forecast" else None for event in batch]
        rows: Any = zip(*[(event.kind, event.id, event.x) for event in batch], strict=True)
        journal.play(keys, *rows)
        return
    for event in batch:
        if event.kind == "correction":
            journal.correct(event.id, int(event.x))
        else:
            journal.expire(event.id)


def main(path: str, events: str, keys: str, model: str) -> None:
    """Write the log into a journal."""
    log = made_log(int(events), int(keys))
    pattern = MODELS[model].pattern
    with Journal(path, pattern, seed=SEED, unknown="keep") as journal:
        for batch in batches(log):
            enter(journal, batch)
            print("written", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
