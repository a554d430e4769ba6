"""The command line: ``calibrant replay --by`` over files of rounds, and a filter of one stream.

A replay of a file is killed when its first row is out: its state must be as it was.  A filter that
writes its state after each row (``--flush --checkpoint 0``) is killed when so many rows are out, as
a rule while it writes: its state must be whole, and hold all that was answered but one row at most.
"""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from benchmarks.one_log.log import Event, trait_of
from benchmarks.one_log.ways import PAPER, SEED, Model, Result, told_once
from calibrant import Table
from calibrant.stream.keyed import KeyedSession
from calibrant.stream.session import read

__all__ = ["BY_COMMAND", "alone", "by_command", "by_filter", "given_up", "rounds_of"]

BY_COMMAND = ("plain", "never", "early")
"""Keys that a file of rounds can express: a row has one outcome, and it is the last word."""
PARTS = 3
"""Files in which the rounds come."""
FILTERED = 600
"""Rounds that go through a filter, the first of all keys, as one stream."""


class Round(NamedTuple):
    """A row of a file: a key, a raw forecast and its time, an outcome and its time, if any."""

    id: str
    key: str
    raw: float
    time: int
    outcome: str
    known: str


def rounds_of(log: list[Event]) -> list[Round]:
    """Return the log as rounds, in the order of their forecasts, with places as times.

    What is told before its forecast is known at its forecast.
    """
    made, outcomes = list[tuple[int, Event]](), dict[str, tuple[int, float]]()
    for place, event in enumerate(log):
        if event.kind == "forecast":
            made.append((place, event))
        elif event.kind == "outcome":
            outcomes.setdefault(event.id, (place, event.x))
    rows = []
    for place, event in made:
        known, y = outcomes.get(event.id, (None, None))
        when = "" if known is None else str(max(known, place))
        rows.append(
            Round(event.id, event.key, event.x, place, "" if y is None else str(int(y)), when)
        )
    return [row for row in rows if trait_of(row.key) in BY_COMMAND]


def by_command(log: list[Event], folder: Path, model: Model = PAPER, parts: int = PARTS) -> Result:
    """Replay the log as files of rounds; each replay is killed once and begun again."""
    rows, state = rounds_of(log), folder / "state"
    size = -(-len(rows) // parts)
    answers: dict[str, tuple[float, float]] = {}
    for first in range(0, len(rows), size):
        part, out = rows[first : first + size], folder / f"{first}.csv"
        killed(part, model, state)
        ended(part, model, state, out)
        with out.open(newline="") as file:
            answers |= dict(zip([row.id for row in part], told_in(file), strict=True))
    table = settled(KeyedSession.loaded(state.read_bytes(), "key"), rows)
    return Result(answers, {key: table.body(key) for key in table})


def told_in(lines: Iterable[str]) -> list[tuple[float, float]]:
    """Return forecast and mean of each row."""
    return [(float(row["forecast"]), float(row["mean"])) for row in csv.DictReader(lines)]


def settled(session: KeyedSession, rows: list[Round]) -> Table:
    """Return the table of a session once nothing is open any more.

    A replay learns what is known at the time of its last row; what was to be known later waits
    in its state, and is learned here.  What is never known is given up.
    """
    table, waits, counts = session.table, session.waiting, Counter[str]()
    for place in np.argsort(waits.available, kind="stable").tolist():
        table.observe((waits.key[place], int(waits.number[place])), int(waits.outcome[place]))
    for row in rows:
        if not row.outcome:
            table.expire((row.key, counts[row.key]))
        counts[row.key] += 1
    return table


def given_up(log: list[Event]) -> list[Event]:
    """Return the log with an expiry of every round whose outcome never comes, at its end."""
    known = {event.id for event in log if event.kind in ("outcome", "expiry")}
    never = [event for event in log if event.kind == "forecast" and event.id not in known]
    return [*log, *(Event("expiry", event.key, event.id, 0.0) for event in never)]


def replaying(model: Model, state: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a replay of what it will be told."""
    words = [sys.executable, "-m", "calibrant", "replay", "-", "--format", "csv", "--force"]
    words += ["--raw", "raw", "--outcome", "outcome", "--time", "time", "--available", "known"]
    words += [word for name, told in model.settings.items() for word in (f"--{name}", str(told))]
    words += ["--seed", str(SEED), "--state", str(state), *more]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def lines(rows: list[Round]) -> bytes:
    """Return rounds as a file with a head."""
    told = [",".join(map(str, row[1:])) for row in rows]
    return "\n".join(["key,raw,time,outcome,known", *told, ""]).encode()


def killed(rows: list[Round], model: Model, state: Path) -> None:
    """Tell a replay all rows, and kill it when the first is out: nothing is kept of it."""
    before = state.read_bytes() if state.exists() else None
    more = ("--by", "key", "--out", "-", "--batch-rows", str(max(1, len(rows) // 4)))
    with replaying(model, state, *more) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        feeder = threading.Thread(target=fed, args=(process.stdin, lines(rows)))
        feeder.start()
        process.stdout.readline()
        if not process.stdout.readline():
            raise RuntimeError("replay must answer before it is killed, got nothing")
        process.send_signal(signal.SIGKILL)
        process.stdout.read()
        feeder.join()
    if before != (state.read_bytes() if state.exists() else None):
        raise RuntimeError("state must be as it was before a replay that was killed, got another")


def fed(pipe: IO[bytes], data: bytes) -> None:
    """Write data to a process that may die meanwhile."""
    with suppress(BrokenPipeError):
        pipe.write(data)
        pipe.close()


def ended(rows: list[Round], model: Model, state: Path, out: Path) -> None:
    """Tell a replay all of the rows."""
    with replaying(model, state, "--by", "key", "--out", str(out)) as process:
        _, told = process.communicate(lines(rows))
    if process.returncode:
        raise RuntimeError(f"replay must end well, got {told.decode()}")


# A filter: one stream, each row answered before the next is read.


def by_filter(
    log: list[Event], folder: Path, model: Model = PAPER, kills: int = 5, first: int = FILTERED
) -> Result:
    """Send the first rounds through a filter, which is killed so many times."""
    rows, state = rounds_of(log)[:first], folder / "filtered"
    answers: list[tuple[float, float]] = []
    held = 0
    for k in range(kills + 1):
        until = (k + 1) * len(rows) // (kills + 1)
        told = filtered(rows[held:], model, state, until - held, kill=k < kills)
        answers[held:] = told
        session: Any = read(str(state), None, None)
        held = session.recalibrator.issued
        if not len(answers) - 1 <= held <= len(answers):
            raise RuntimeError(f"state must hold {len(answers)} rounds, got {held}")
    made, waits = session.recalibrator, session.pending
    for place in np.argsort(waits.available, kind="stable").tolist():
        made.observe(int(waits.number[place]), int(waits.outcome[place]))
    for number, row in enumerate(rows):
        if not row.outcome:
            made.expire(number)
    ids = [row.id for row in rows]
    return Result(dict(zip(ids, answers, strict=True)), {"stream": made.to_bytes()})


def filtered(
    rows: list[Round], model: Model, state: Path, until: int, *, kill: bool
) -> list[tuple[float, float]]:
    """Send rows through a filter; return what was answered, until it was killed or to the end."""
    more = ("--flush", "--checkpoint", "0", "--out", "-")
    with replaying(model, state, *more) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        feeder = threading.Thread(target=fed, args=(process.stdin, lines(rows)))
        feeder.start()
        heard = [process.stdout.readline() for _ in range(until + 1)] if kill else []
        if kill:
            process.send_signal(signal.SIGKILL)
        heard += process.stdout.readlines()
        feeder.join()
        told = process.stderr.read() if process.stderr else b""
    if process.returncode != (-signal.SIGKILL if kill else 0):
        raise RuntimeError(f"filter must be killed or end well, got {told.decode()}")
    return told_in(line.decode() for line in heard if line.endswith(b"\n"))


def alone(log: list[Event], model: Model = PAPER, first: int = FILTERED) -> Result:
    """Return what the library makes of the rounds that go through the filter."""
    ids = {row.id for row in rounds_of(log)[:first]}
    made = model.make(seed=SEED)
    kept = [event for event in told_once(given_up(log)) if event.id in ids]
    answers = dict[str, tuple[float, float]]()
    for event in kept:
        if event.kind == "forecast":
            ticket = made.forecast(event.x, id=event.id)
            answers[event.id] = ticket.value, ticket.mean
        elif event.kind == "outcome":
            made.observe(event.id, int(event.x))
        else:
            made.expire(event.id)
    return Result(answers, {"stream": made.to_bytes()})
