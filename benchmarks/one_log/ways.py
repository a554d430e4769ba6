"""Ways through the log: what each is told, what it answers, and what it remembers at the end.

A way returns the forecast and the mean of every round that it was told of, and the body of each of
its keys: what is remembered of the key, open outcomes included.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import calibrant
from benchmarks.one_log.log import Event, batches, trait_of
from calibrant import Recalibrator, Table
from calibrant.stream.keyed import KeyedSession

__all__ = [
    "BY_COMMAND",
    "SEED",
    "Result",
    "by_command",
    "by_service",
    "by_table",
    "given_up",
    "pattern",
    "rounds_of",
]

SEED = 7
SETTINGS = {"method": "foster_hart", "resolution": 10, "buckets": 5}
BY_COMMAND = ("plain", "never", "early")
"""Keys that a file of rounds can express: a row has one outcome, and it is the last word."""
PARTS = 3
"""Files in which the rounds come."""


class Result(NamedTuple):
    """What a way came to: answers by round, bodies by key."""

    answers: dict[str, tuple[float, float]]
    bodies: dict[str, bytes]

    def only(self, traits: tuple[str, ...], keys: dict[str, str]) -> Result:
        """Return what concerns keys with these traits; ``keys`` says whose each round is."""
        answers = {id: told for id, told in self.answers.items() if trait_of(keys[id]) in traits}
        bodies = {key: body for key, body in self.bodies.items() if trait_of(key) in traits}
        return Result(answers, bodies)


def pattern() -> Recalibrator:
    """Return the model that every key begins as."""
    return Recalibrator(resolution=10, buckets=5)


# ------------------------------------------------------------------------- the library


def by_table(log: list[Event]) -> Result:
    """Play the log on a table: batches by ``play``, what may be corrected one by one.

    A table knows no outcome before its forecast, and none twice: the caller keeps early ones
    until the forecast is made, and drops those that are told again, as the service does.  Whoever
    wants to correct an outcome keeps the ticket, which ``play`` does not give.
    """
    table, answers = Table(pattern(), seed=SEED), dict[str, tuple[float, float]]()
    tickets: dict[str, Any] = {}
    for batch in batches(told_once(log)):
        played = batch[0].kind in ("forecast", "outcome")
        many = [event for event in batch if played and trait_of(event.key) != "mended"]
        if many:
            rows = [(event.key, event.kind, event.id, event.x) for event in many]
            made = table.play(*zip(*rows, strict=True))
            told = zip(many, made.value.tolist(), made.mean.tolist(), strict=True)
            answers |= {event.id: (value, mean) for event, value, mean in told}
        for event in batch:
            if not played or trait_of(event.key) == "mended":
                tickets[event.id] = ticket = one_call(table, event, tickets)
                answers[event.id] = (ticket.value, ticket.mean)
    return Result(answers, {key: table.body(key) for key in table})


def one_call(table: Table, event: Event, tickets: dict[str, Any]) -> Any:
    """Let one event happen in a table; return the ticket that it is about."""
    if event.kind == "forecast":
        return table.forecast(event.key, event.x, id=event.id)
    if event.kind == "outcome":
        return table.observe(tickets[event.id], int(event.x))
    if event.kind == "correction":
        return table.correct(tickets[event.id], int(event.x))
    return table.expire(tickets.get(event.id, event.id))


def told_once(log: list[Event]) -> list[Event]:
    """Return the log with early outcomes behind their forecasts, and no outcome twice."""
    made, early = list[Event](), dict[str, Event]()
    known, learned = set[str](), set[str]()
    for event in log:
        if event.kind == "outcome":
            if event.id in learned:
                continue
            learned.add(event.id)
            if event.id not in known:
                early[event.id] = event
                continue
        made.append(event)
        if event.kind == "forecast":
            known.add(event.id)
            made += [early.pop(event.id)] if event.id in early else []
    return made


# ------------------------------------------------------------------------- the command line


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


# ------------------------------------------------------------------------- the service


class Service:
    """A service in a process of its own, which is killed and started again.

    Parameters
    ----------
    address
        A file, or a database of PostgreSQL.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.start()

    def start(self) -> None:
        """Start the process, and wait until it listens."""
        words = [sys.executable, "-m", "calibrant", "serve", self.address, "--port", "0"]
        self.process = subprocess.Popen(
            [*words, "--snapshot", "1000"], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        if " at http://" not in line:
            raise RuntimeError(f"service must start, got {line}{self.process.stderr.read()}")
        self.held = HTTPConnection(line.split("http://")[1].strip(), timeout=600)

    def kill(self) -> None:
        """Kill the process as a power cut would."""
        self.held.close()
        self.process.kill()
        self.process.communicate()

    def send(self, method: str, path: str, body: Any = None) -> None:
        """Ask something."""
        self.held.request(method, path, None if body is None else json.dumps(body))

    def answer(self) -> bytes:
        """Return what is answered."""
        told = self.held.getresponse()
        data = told.read()
        if told.status not in (200, 201):
            raise RuntimeError(f"answer must be 200, got {told.status}: {data[:400]!r}")
        return data

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """Ask something; return what is answered."""
        self.send(method, path, body)
        return self.answer()


ROUTE = "/v1/streams/log"


def requests_of(batch: list[Event]) -> Iterator[tuple[str, str, Any]]:
    """Yield what is asked of a service for events of one kind."""
    kind = batch[0].kind
    if kind == "forecast":
        yield "POST", f"{ROUTE}/forecasts", [{"id": e.id, "key": e.key, "raw": e.x} for e in batch]
    elif kind == "outcome":
        yield "POST", f"{ROUTE}/outcomes", [{"id": e.id, "outcome": int(e.x)} for e in batch]
    for event in batch:
        name = event.id.replace(" ", "%20")
        if kind == "correction":
            yield "PUT", f"{ROUTE}/outcomes/{name}", {"outcome": int(event.x)}
        elif kind == "expiry":
            yield "DELETE", f"{ROUTE}/forecasts/{name}", None


def by_service(log: list[Event], address: str, kills: int) -> Result:
    """Tell a service every event; kill it so many times while it works, and tell it again."""
    asked = [request for batch in batches(log) for request in requests_of(batch)]
    dying = {len(asked) * (k + 1) // (kills + 1) for k in range(kills)}
    service, answers = Service(address), dict[str, tuple[float, float]]()
    try:
        service.ask("PUT", ROUTE, SETTINGS | {"seed": SEED, "keyed": True, "unknown": "keep"})
        for number, request in enumerate(asked):
            if number in dying:
                service.send(*request)
                service.kill()
                service.start()
            told = json.loads(service.ask(*request))
            if request[1].endswith("forecasts"):
                answers |= {each["id"]: (each["forecast"], each["mean"]) for each in told}
            elif isinstance(told, list) and any("status" not in each for each in told):
                raise RuntimeError(f"outcomes must be taken, got {told}")
        table: Any = calibrant.load(service.ask("GET", f"{ROUTE}/state"))
    finally:
        service.kill()
    return Result(answers, {key: table.body(key) for key in table})
