"""How much the service carries: the same routes with storage off, on SQLite and on PostgreSQL.

``python -m benchmarks.service`` prints a table: requests (or events) a second, the ratio to the
same routes with storage off, CPU of the server a request, and the 99th percentile of the time of a
request, beside the time of an ``fdatasync`` measured in the same run.  32 connections alternate
forecasts and outcomes 200 later; in bulk, 8 connections send 100 events at a time.  ``wrk`` makes
the load where it is installed (``apt-get install wrk``); elsewhere, and with ``--client python``,
a client of this file does, which takes more of the machine from the server.
``--postgres ADDRESS`` adds a database, ``--postgres own`` one in a cluster of its own with
``fsync`` on, and says what it syncs, ``--recovery N`` measures how long N events take to be
played again, ``--kinds N`` the same for groups and classes, ``--open N`` how long a snapshot with
N open tickets stops the writer, ``--idle N`` how soon a service answers beside N connections that
say nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn

from benchmarks.places import Database, commit, databases, file_system
from benchmarks.store import storing
from calibrant import Recalibrator
from calibrant.classes import ClassCalibrant
from calibrant.groups import GroupRecalibrator
from calibrant.journal.apart import snapshots_apart
from calibrant.journal.events import Asked, Event
from calibrant.journal.ledger import Ledger
from calibrant.journal.opening import open_store
from calibrant.journal.sqlite import SqliteStore
from calibrant.journal.store import Line, Moment, Named, Pass, Snapshot
from calibrant.journal.writer import Writer
from calibrant.kernels.compile import available
from calibrant.serve import Options, make_app
from calibrant.serve.chronicle import catch_up, chronicle_of
from calibrant.serve.run import seldom

BARS = {
    ("single", "SQLite"): 0.55,
    ("bulk of 100", "SQLite"): 0.6,
    ("single", "PostgreSQL"): 0.4,
    ("bulk of 100", "PostgreSQL"): 0.35,
}
"""At least so much of the rate with storage off."""
MOST_CPU = 1.8
"""At most so much of the CPU a request with storage off."""
METHOD = "foster_hart"
"""What plays the stream, unless another method is named."""
BEHIND = 200
"""How many forecasts later an outcome is told."""
TRIES = 5
"""How often recovery is measured: other work on the machine only ever adds to its time."""
SCRIPT = Path(__file__).with_name("wrk.lua")
"""What wrk asks."""
HEAD = "POST /v1/streams/s/{} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n"


class Nowhere:
    """A store that forgets: what the routes cost without one."""

    def __init__(self) -> None:
        self._lines: list[Line] = []

    @contextmanager
    def writing(self) -> Iterator[None]:
        yield

    def add_events(self, events: Sequence[Event]) -> None:
        pass

    def last(self) -> int:
        return 0

    def tail(self, after: int, upto: int | None = None) -> Iterator[Event]:
        return iter(())

    def leave(self) -> None:
        pass

    def events(self, stream: int, after: int, limit: int) -> list[Event]:
        return []

    def names(self, after: int = 0, upto: int | None = None) -> Iterator[Named]:
        return iter(())

    def find(self, wanted: Iterable[Named]) -> dict[Named, Event]:
        return {}

    def streams(self) -> list[Line]:
        return self._lines

    def put_stream(self, line: Line) -> None:
        self._lines.append(line)

    def purge(self, number: int) -> None:
        pass

    def snapshots(self) -> list[Snapshot]:
        return []

    def put_snapshots(self, new: Sequence[Snapshot], upto: int) -> None:
        pass

    def tokens(self) -> list[Pass]:
        return []

    def put_token(self, token: Pass) -> None:
        pass

    def put_moment(self, moment: Moment) -> None:
        pass

    def tidy(self) -> None:
        pass

    def close(self) -> None:
        pass


class Measured(NamedTuple):
    """What a load amounted to."""

    rate: float
    cpu: float
    p99: float
    p50: float


@contextmanager
def server(address: str | None) -> Iterator[tuple[int, int]]:
    """Serve a store, or none, in a process of its own; yields its number and its port."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(2048)
        child = os.fork()
        if not child:
            store: Any = Nowhere() if address is None else open_store(address, alone=True)
            app = make_app(store, Options(open=True, every=1 << 40, fast=available()))
            config = uvicorn.Config(
                app, http="httptools", loop="uvloop", access_log=False, log_level="warning"
            )
            with seldom():
                uvicorn.Server(config).run(sockets=[held])
            os._exit(0)
        port = held.getsockname()[1]
    try:
        yield child, port
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def cpu_of(process: int) -> float:
    """Return the seconds of CPU that a process has used."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send a request and read its answer, which must be a good one."""
    writer.write(data)
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(size)
    if not head.startswith(b"HTTP/1.1 20"):
        raise RuntimeError(f"service must answer, got {head!r} {body!r}")


def request(what: str, body: Any) -> bytes:
    data = json.dumps(body).encode()
    return HEAD.format(what, len(data)).encode() + data


async def connection(port: int, name: int, size: int, end: float, taken: list[float]) -> None:
    """Alternate forecasts and outcomes until the time is over; note how long each request took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    k = 0
    while time.perf_counter() < end:
        rows = range(k, k + size)
        forecasts = [{"id": f"{name} {n}", "raw": (n * 37 % 100) / 100} for n in rows]
        old = [n - BEHIND for n in rows if n >= BEHIND]
        outcomes = [{"id": f"{name} {n}", "outcome": n % 2} for n in old]
        for what, body in (("forecasts", forecasts), ("outcomes", outcomes)):
            if body:
                begun = time.perf_counter()
                told = body[0] if size == 1 else body
                await ask(reader, writer, request(what, told))
                taken.append(time.perf_counter() - begun)
        k += size
    writer.close()


async def prepare(port: int, method: str) -> None:
    """Make the stream that is asked."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    stream = json.dumps({"method": method, "seed": 7}).encode()
    head = f"PUT /v1/streams/s HTTP/1.1\r\nHost: a\r\nContent-Length: {len(stream)}\r\n\r\n"
    await ask(reader, writer, head.encode() + stream)
    writer.close()


def wrk(
    process: int, port: int, clients: int, size: int, seconds: float, method: str = METHOD
) -> Measured:
    """Let wrk ask for so long, in one thread."""
    asyncio.run(prepare(port, method))
    behind = max(BEHIND, 2 * clients * size if size > 1 else 0)
    how = "-t1", f"-c{clients}", f"-d{max(1, round(seconds))}s", "-s", str(SCRIPT)
    told = "--", str(size), str(behind), str(time.time_ns())
    before = cpu_of(process)
    done = subprocess.run(
        ["wrk", *how, f"http://127.0.0.1:{port}/", *told],
        capture_output=True,
        text=True,
        check=True,
    )
    used = cpu_of(process) - before
    words = next(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("told"))
    requests, micro, p99, wrong, p50 = map(int, words)
    if wrong or not requests:
        raise RuntimeError(f"service must answer, got {wrong} problems in {requests} requests")
    return Measured(requests * size / (micro / 1e6), used / requests, p99 / 1e6, p50 / 1e6)


async def load(
    process: int, port: int, clients: int, size: int, seconds: float, method: str = METHOD
) -> Measured:
    """Let clients of this file ask for so long."""
    await prepare(port, method)
    taken, before, begun = list[float](), cpu_of(process), time.perf_counter()
    end, first = begun + seconds, time.time_ns()
    jobs = (connection(port, first + n, size, end, taken) for n in range(clients))
    await asyncio.gather(*jobs)
    used, seconds = cpu_of(process) - before, time.perf_counter() - begun
    shares = statistics.quantiles(taken, n=100)
    return Measured(len(taken) * size / seconds, used / len(taken), shares[-1], shares[49])


def loaded(client: str, *how: Any) -> Measured:
    """Return what the load of a client amounted to."""
    return wrk(*how) if client == "wrk" else asyncio.run(load(*how))


def sync_time(place: Path, tries: int = 200) -> float:
    """Return the median time of an ``fdatasync`` after a page was written."""
    found = []
    with (place / "sync").open("wb") as file:
        for _ in range(tries):
            file.write(bytes(4096))
            file.flush()
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            found.append(time.perf_counter() - begun)
    return statistics.median(found)


def filled(place: Path, model: Any, asked: Iterable[Asked]) -> SqliteStore:
    """Return a store of one stream in which this was asked."""
    store = SqliteStore(place / f"{time.time_ns()}.db", alone=True)
    with store.writing():
        store.put_stream(Line(1, "s", '{"keyed": false}', model.to_bytes()))
    ledger, rest = Ledger(store), iter(asked)
    while some := list(itertools.islice(rest, 2000)):
        ledger.write(ledger.enter(some)[1])
    return store


GROUPS = [("north", "late"), ("south", "late"), ("north", "early"), ("south", "west")]
VECTORS = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
KINDS: dict[str, Any] = {
    "two groups of five": (partial(GroupRecalibrator, seed=7), [{"groups": g} for g in GROUPS]),
    "three classes": (partial(ClassCalibrant, 3, seed=7), [{"x": x} for x in VECTORS]),
}
"""Streams whose events are played one by one, and what their forecasts say besides."""


class Recovered(NamedTuple):
    """CPU for an event of the log that is played again, in seconds.

    ``bare`` without anybody who follows the stream, as in a journal; ``ready`` as in a service,
    and ``caught_up`` until all that report and alarms show is worked off, too.
    """

    bare: float
    ready: float
    caught_up: float


def recovery(
    place: Path, events: int, model: Any = None, told: Sequence[dict[str, Any]] = ({},)
) -> list[Recovered]:
    """Return what an event of the log takes that is played again: the first time and once loaded.

    The first time holds what machine code takes to be loaded; then the least of :data:`TRIES`.
    """
    asked = (
        one
        for k in range(events // 2)
        for one in (
            Asked(1, 0, f"order {k}", None, (k * 37 % 100) / 100)._replace(**told[k % len(told)]),
            Asked(1, 1, f"order {k - BEHIND}", None, k % 2),
        )
        if one.kind == 0 or k >= BEHIND
    )
    store, took = filled(place, model or Recalibrator(seed=7), asked), []
    for _ in range(1 + TRIES):
        at = [time.process_time()]
        Ledger(store)
        at.append(time.process_time())
        ledger = Ledger(store, partial(chronicle_of, fast=available()))
        at.append(time.process_time())
        catch_up(list(ledger.folds.values()))
        at.append(time.process_time())
        ends = at[1] - at[0], at[2] - at[1], at[3] - at[1]
        took.append(Recovered(*(seconds / store.last() for seconds in ends)))
        # Not within the next measurement.
        del ledger
    store.close()
    return [took[0], Recovered(*map(min, zip(*took[1:], strict=True)))]


def show_recovery(place: Path, name: str, events: int, *kind: Any) -> None:
    """Print what an event of the tail takes at the start."""
    for when, took in zip(("first", "once loaded"), recovery(place, events, *kind), strict=True):
        bare, ready, caught_up = (f"{1e6 * seconds:.1f}" for seconds in took)
        told = f"{bare} us of CPU an event, {ready} with who follows, {caught_up} until caught up"
        print(f"{name} of {events:,} events, {when}: {told}", flush=True)


def waits(place: Path, open: int, seconds: float) -> tuple[list[float], list[float], list[float]]:
    """Return how long single events waited beside no snapshot and beside some, and the holds.

    The holds are how long the snapshot kept the store from the writer, transaction by transaction.
    """
    asked = (Asked(1, 0, f"open {k}", None, (k * 37 % 100) / 100) for k in range(open))
    store = filled(place, Recalibrator(seed=7, max_open=2 * open), asked)
    apart = partial(snapshots_apart, str(store.path), "calibrant.journal.apart")
    writer = Writer(store, every=1 << 40, apart=apart)
    found = (list[float](), list[float]())
    held, plain = list[float](), store.writing

    @contextmanager
    def timed() -> Iterator[None]:
        with plain():
            begun = time.perf_counter()
            yield
        if threading.current_thread().name == "snapshot":
            held.append(time.perf_counter() - begun)

    store.writing = timed  # type: ignore[method-assign]
    for which in (0, 1):
        helper = threading.Thread(target=writer._take_snapshots, name="snapshot")
        end = time.perf_counter() + seconds
        if which:
            helper.start()
        while helper.is_alive() if which else time.perf_counter() < end:
            done, begun = threading.Event(), time.perf_counter()
            one = Asked(1, 0, f"{which} {begun}", None, 0.5)
            writer.submit([one], lambda told, error, done=done: done.set())  # type: ignore[misc]
            done.wait()
            found[which].append(time.perf_counter() - begun)
    writer.close()
    return *found, held


def show_waits(place: Path, open: int, seconds: float) -> None:
    """Print how long the writer waits for a snapshot."""
    without, beside, held = waits(place, open, seconds)
    for name, took in (("without", without), ("beside", beside)):
        p99, most = statistics.quantiles(took, n=100)[-1], max(took)
        print(f"an event {name} a snapshot: p99 {p99 * 1e3:.1f} ms, most {most * 1e3:.1f} ms")
    print(f"a snapshot of {open:,} open tickets: {len(held)} transactions")
    middle, most = statistics.median(held), max(held)
    print(f"the writer waits for one {middle * 1e3:.1f} ms, at most {most * 1e3:.1f} ms")


async def idle(port: int, connections: int) -> list[float]:
    """Return how long single requests take beside so many connections that say nothing."""
    held = []
    for start in range(0, connections, 500):
        some = (asyncio.open_connection("127.0.0.1", port) for _ in range(500))
        held += await asyncio.gather(*some)
        if len(held) < start:
            raise RuntimeError("connections must stay open")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken = []
    for _ in range(200):
        begun = time.perf_counter()
        await ask(reader, writer, b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
        taken.append(time.perf_counter() - begun)
    for _, one in [*held, (reader, writer)]:
        one.close()
    return taken


def show_idle(place: Path, connections: int) -> None:
    """Print what a service does beside idle connections."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with server(str(place / "idle.db")) as (process, port):
        taken = asyncio.run(idle(port, connections))
        status = Path(f"/proc/{process}/status").read_text()
    size = int(status.partition("VmRSS:")[2].split()[0])
    p99 = statistics.quantiles(taken, n=100)[-1]
    told = f"p99 of a request {p99 * 1e3:.1f} ms, {size / 1024:.0f} MB"
    print(f"beside {connections:,} idle connections: {told}")


def judged(name: str, store: str, made: Measured, first: Measured, sync: float) -> str:
    """Say whether a load keeps to its bar: a share of the rate, or what the disk allows."""
    bar = BARS.get((name, store))
    if bar is None:
        return ""
    least = min(bar * first.rate, 0.9 * 32 / sync) if name == "single" else bar * first.rate
    kept = made.rate >= least and (name != "single" or made.cpu <= MOST_CPU * first.cpu)
    return f"{'kept' if kept else 'missed'}: {least:,.0f}"


def show_loads(
    place: Path, client: str, seconds: float, repeats: int, database: Database | None
) -> None:
    """Print what each store carries, beside the same routes without one."""
    sync = sync_time(place)
    print(f"fdatasync: {sync * 1e3:.2f} ms, {32 / sync:,.0f} single requests a second at most")
    print(f"load by {client}")
    print("| load | store | a second | ratio | CPU a request, us | ratio | p99, ms | bar |")
    print("|---|---|---|---|---|---|---|---|")
    for name, clients, size in (("single", 32, 1), ("bulk of 100", 8, 100)):
        stores = {"none": None, "SQLite": str(place / f"{size}.db")}
        if database is not None:
            stores["PostgreSQL"] = database.named(f"load_{time.time_ns()}")
        servers = {store: partial(server, address) for store, address in stores.items()}
        made = rounds(servers, repeats, client, clients, size, seconds)
        first = made["none"]
        for store, one in made.items():
            ratios = one.rate / first.rate, one.cpu / first.cpu
            print(
                f"| {name} | {store} | {one.rate:,.0f} | {ratios[0]:.2f} "
                f"| {one.cpu * 1e6:.0f} | {ratios[1]:.2f} | {one.p99 * 1e3:.1f} "
                f"| {judged(name, store, one, first, sync)} |",
                flush=True,
            )


def rounds(
    servers: Mapping[str, Callable[[], AbstractContextManager[tuple[int, int]]]],
    repeats: int,
    client: str,
    clients: int,
    size: int,
    seconds: float,
    method: str = METHOD,
) -> dict[str, Measured]:
    """Return the medians of what each server carries, measured in turn.

    Before each measurement the server is asked for two seconds that do not count: machine code is
    loaded by then.
    """
    found: dict[str, list[Measured]] = {name: [] for name in servers}
    for _ in range(repeats):
        for name, served in servers.items():
            with served() as (process, port):
                loaded(client, process, port, clients, size, 2, method)
                found[name].append(loaded(client, process, port, clients, size, seconds, method))
    return {
        name: Measured(*map(statistics.median, zip(*some, strict=True)))
        for name, some in found.items()
    }


def main() -> None:
    """Print the table, and what else was measured."""
    with storing("service", wanted="--store" in sys.argv):
        measure()


def measure() -> None:
    """Measure and print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--postgres")
    parser.add_argument("--recovery", type=int, default=100_000)
    parser.add_argument("--kinds", type=int, default=20_000)
    parser.add_argument("--open", type=int, default=100_000)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--no-load", action="store_true")
    parser.add_argument("--store", action="store_true", help="keep the table for the page")
    usual = "wrk" if shutil.which("wrk") else "python"
    parser.add_argument("--client", choices=("wrk", "python"), default=usual)
    asked = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=".", prefix="load-")))
        database = stack.enter_context(databases(asked.postgres, place)) if asked.postgres else None
        print(f"commit {commit()}, file system {file_system(place)}")
        if database is not None:
            told = (f"{name} {value}" for name, value in database.settings().items())
            print(f"PostgreSQL: {', '.join(told)}")
        if not asked.no_load:
            show_loads(place, asked.client, asked.seconds, asked.repeats, database)
        if asked.recovery:
            show_recovery(place, "recovery", asked.recovery)
        for name, (model, told) in KINDS.items() if asked.kinds else ():
            show_recovery(place, name, asked.kinds, model(), told)
        if asked.open:
            show_waits(place, asked.open, asked.seconds)
        if asked.idle:
            show_idle(place, asked.idle)


if __name__ == "__main__":
    main()
