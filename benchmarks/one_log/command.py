"""The command line: ``calibrant replay --by`` over files of rounds, each replay killed once."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.one_log.log import Event, trait_of
from benchmarks.one_log.ways import SEED, SETTINGS, Result
from calibrant import Table
from calibrant.stream.keyed import KeyedSession

__all__ = ["BY_COMMAND", "by_command", "given_up", "rounds_of"]

BY_COMMAND = ("plain", "never", "early")
"""Keys that a file of rounds can express: a row has one outcome, and it is the last word."""
PARTS = 3
"""Files in which the rounds come."""


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


def by_command(log: list[Event], folder: Path, parts: int = PARTS) -> Result:
    """Replay the log as files of rounds; each replay is killed once and begun again."""
    rows, state = rounds_of(log), folder / "state"
    size = -(-len(rows) // parts)
    answers: dict[str, tuple[float, float]] = {}
    for first in range(0, len(rows), size):
        part, out = rows[first : first + size], folder / f"{first}.csv"
        killed(part, state, out)
        ended(part, state, out)
        with out.open(newline="") as file:
            told = [(float(row["forecast"]), float(row["mean"])) for row in csv.DictReader(file)]
        answers |= dict(zip([row.id for row in part], told, strict=True))
    table = settled(KeyedSession.loaded(state.read_bytes(), "key"), rows)
    return Result(answers, {key: table.body(key) for key in table})


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


def replaying(state: Path, out: Path) -> subprocess.Popen[bytes]:
    """Start a replay of what it will be told."""
    words = [sys.executable, "-m", "calibrant", "replay", "-", "--format", "csv", "--by", "key"]
    words += ["--raw", "raw", "--outcome", "outcome", "--time", "time", "--available", "known"]
    words += [word for name, told in SETTINGS.items() for word in (f"--{name}", str(told))]
    words += ["--seed", str(SEED), "--state", str(state), "--out", str(out), "--force"]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def lines(rows: list[Round]) -> bytes:
    """Return rounds as a file with a head."""
    told = [",".join(map(str, row[1:])) for row in rows]
    return "\n".join(["key,raw,time,outcome,known", *told, ""]).encode()


def killed(rows: list[Round], state: Path, out: Path) -> None:
    """Tell a replay half of the rows, and kill it."""
    with replaying(state, out) as process:
        assert process.stdin is not None
        process.stdin.write(lines(rows[: len(rows) // 2]))
        process.stdin.flush()
        process.send_signal(signal.SIGKILL)


def ended(rows: list[Round], state: Path, out: Path) -> None:
    """Tell a replay all of the rows."""
    with replaying(state, out) as process:
        _, told = process.communicate(lines(rows))
    if process.returncode:
        raise RuntimeError(f"replay must end well, got {told.decode()}")
