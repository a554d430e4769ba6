"""A writer killed again and again under load: nothing acknowledged is lost, nothing is there twice.

``python -m benchmarks.kills --cycles 10000`` starts a process that owns a store and has 16 clients
make rounds, and kills it with SIGKILL at a random moment: up to 5 ms after one of its answers, and
in one cycle of ten within 50 ms of its start, while it opens the store and plays the tail of the
log.  It writes snapshots all the time, so that kills hit them too.  Then the store is opened again,
which plays the tail and compares every answer, and everything that was acknowledged is asked once
more: each answer must be in the log, with the same bytes.  What was under way is asked again in the
next cycle, as a client would, and outcomes that were not told yet are told there, of tickets that
were recovered.

A store takes 1,000 cycles, the first one 2,500, and then its whole log is played from the
beginning.  ``--jobs 2`` works on two stores at a time.  ``--postgres ADDRESS`` makes databases
beside the one it names instead of files of SQLite, ``--postgres own`` starts a cluster of its own
with ``fsync`` on.  The result is printed as a line of JSON, and added to a file with ``--to FILE``.
``--keep FOLDER`` keeps stores and counts there: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.places import Database, commit, databases, file_system
from calibrant import Recalibrator
from calibrant.journal.events import FORECAST, OUTCOME, Asked
from calibrant.journal.ledger import Ledger
from calibrant.journal.opening import open_store
from calibrant.journal.recover import verified
from calibrant.journal.store import Line
from calibrant.journal.writer import Writer

CLIENTS = 16
EVERY = 20
"""After so many events a writer takes a snapshot, so that kills hit snapshots too."""
MOST = 120
"""Answers before a kill, at most."""
SOON = 10
"""In one cycle of so many the kill comes right after the start."""
STORE = 1_000
"""Cycles of a store."""
FIRST = 2_500
"""Cycles of the first store."""
SHOWN = 100
"""After so many cycles a line tells how far a store is."""


class Ask(NamedTuple):
    """What a client asks, by which it can be asked again: in which cycle it was asked first."""

    cycle: int
    client: int
    k: int
    kind: int

    def asked(self) -> Asked:
        """Return it as the writer takes it."""
        x = (self.k * 37 % 100) / 100 if self.kind == FORECAST else float(self.k % 2)
        return Asked(1, self.kind, f"{self.cycle} {self.client} {self.k}", None, x)


def script(cycle: int, client: int, left: Sequence[Ask]) -> Iterator[Ask]:
    """Yield what a client asks in a cycle: what is left of the one before, then new rounds."""
    yield from left
    for k in count():
        yield Ask(cycle, client, k, FORECAST)
        if k >= 2:
            yield Ask(cycle, client, k - 2, OUTCOME)


def left_over(cycle: int, client: int, left: Sequence[Ask], done: Sequence[Ask]) -> list[Ask]:
    """Return what a client still has to ask once so much of its script was acknowledged.

    First what was under way and may be in the log, then the outcomes of its open forecasts.
    """
    if len(done) < len(left):
        return list(left[len(done) :])
    whole = script(cycle, client, left)
    asked = [next(whole) for _ in done]
    if asked != list(done):
        raise RuntimeError(f"a client must be answered in order, got {done}")
    own, under_way = asked[len(left) :], next(whole)
    first = [under_way] if under_way.kind == FORECAST else []
    made = [one._replace(kind=OUTCOME) for one in [*own, *first] if one.kind == FORECAST]
    return first + [one for one in made if one not in own]


class Noisy(Writer):
    """A writer that says when it takes a snapshot."""

    pipe: int

    def _take_snapshots(self) -> None:
        os.write(self.pipe, b"begun\n")
        super()._take_snapshots()
        os.write(self.pipe, b"ended\n")


def work(address: str, cycle: int, left: Sequence[Sequence[Ask]], pipe: int) -> None:
    """Let clients make rounds for ever; tell each answer once it is acknowledged."""
    Noisy.pipe = pipe
    writer = Noisy(open_store(address, alone=True), every=EVERY)

    def ask(one: Ask) -> None:
        done, found = threading.Event(), list[Any]()

        def answer(told: Any, error: Exception | None) -> None:
            found.extend((told, error))
            done.set()

        writer.submit([one.asked()], answer)
        done.wait()
        event = found[0][0].result()
        said = " ".join(map(str, one))
        os.write(pipe, f"{said} {event.seq} {event.answer.hex()}\n".encode())

    def run(client: int) -> None:
        with suppress(BrokenPipeError):
            for one in script(cycle, client, left[client]):
                ask(one)
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


def until_killed(child: int, pipe: int, dice: random.Random) -> list[str]:
    """Kill a child at a random moment; return all that it told."""
    soon = dice.randrange(SOON) == 0
    told, lines = b"", 0 if soon else dice.randrange(1, MOST)
    while told.count(b"\n") < lines and (part := os.read(pipe, 1 << 16)):
        told += part
    told += _read_for(pipe, dice.uniform(0.0, 0.05 if soon else 0.005))
    os.kill(child, signal.SIGKILL)
    while part := os.read(pipe, 1 << 16):
        told += part
    os.close(pipe)
    os.waitpid(child, 0)
    return told.decode().split("\n")[:-1]


def _read_for(pipe: int, seconds: float) -> bytes:
    """Return what a pipe tells within some time."""
    told, end = b"", time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0:
        if select.select([pipe], [], [], rest)[0]:
            part = os.read(pipe, 1 << 16)
            if not part:
                break
            told += part
    return told


def check(address: str, lines: Sequence[str]) -> list[Ask]:
    """Open the store again, and ask for all that was told: it is there once, as it was told."""
    store, done = open_store(address, alone=True), list[Ask]()
    try:
        ledger = Ledger(store)
        before = ledger.seq
        for line in lines:
            *asked, seq, answer = line.split()
            done.append(Ask(*map(int, asked)))
            (told,), rows = ledger.enter([done[-1].asked()])
            event = told.result()
            if rows or (str(event.seq), event.answer.hex()) != (seq, answer):
                raise RuntimeError(f"{done[-1]} must be answered as before, got {told}")
        if ledger.seq != before:
            raise RuntimeError("nothing new must follow from what was told")
    finally:
        store.close()
    return done


class Progress(NamedTuple):
    """What came of the cycles of a store so far; written after each, where a file is given.

    ``opening`` counts kills before the first answer, ``in_snapshot`` those while a snapshot was
    being taken, ``recovered`` outcomes of forecasts of an earlier cycle; ``left`` is what clients
    still have to ask, ``events`` how many there were when the whole log was played again.
    """

    cycles: int = 0
    acknowledged: int = 0
    recovered: int = 0
    opening: int = 0
    snapshots: int = 0
    in_snapshot: int = 0
    seconds: float = 0.0
    starts: int = 0
    events: int = 0
    left: Any = ((),) * CLIENTS

    @classmethod
    def read(cls, file: Path | None) -> Progress:
        """Return what a file holds; nothing has happened where there is none."""
        if file is None or not file.exists():
            return cls()
        found = cls(**json.loads(file.read_text()))
        return found._replace(left=[[Ask(*one) for one in some] for some in found.left])

    def write(self, file: Path | None) -> None:
        """Replace what a file holds, all of it or nothing."""
        if file is not None:
            made = file.with_suffix(".new")
            made.write_text(json.dumps(self._asdict()))
            made.replace(file)

    def after(self, lines: Sequence[str], done: Sequence[Ask], seconds: float) -> Progress:
        """Return what came of one cycle more."""
        notes = [line for line in lines if line in ("begun", "ended")]
        at = self.cycles
        left = [
            left_over(at, n, self.left[n], [one for one in done if one.client == n])
            for n in range(CLIENTS)
        ]
        late = sum(one.kind == OUTCOME and one.cycle < at for one in done)
        return self._replace(
            cycles=at + 1,
            acknowledged=self.acknowledged + len(done),
            recovered=self.recovered + late,
            opening=self.opening + (not done),
            snapshots=self.snapshots + notes.count("begun"),
            in_snapshot=self.in_snapshot + (notes[-1:] == ["begun"]),
            seconds=self.seconds + seconds,
            left=left,
        )


def one_kill(address: str, so_far: Progress, seed: int) -> Progress:
    """Let a writer work, kill it, and check the store; return what came of the cycles so far."""
    begun, at = time.monotonic(), so_far.cycles
    pair = forked(lambda pipe: work(address, at, so_far.left, pipe))
    lines = until_killed(*pair, random.Random(f"{seed} {at}"))
    errors = [line for line in lines if line.startswith("error")]
    if errors:
        raise RuntimeError(f"cycle {at} of seed {seed}: {errors[0]}")
    done = check(address, [line for line in lines if line not in ("begun", "ended")])
    return so_far.after(lines, done, time.monotonic() - begun)


def kills(
    address: str,
    cycles: int,
    seed: int = 1,
    over: Callable[[], bool] = lambda: False,
    file: Path | None = None,
) -> dict[str, Any]:
    """Kill a writer so often, or until it is over; return what came of it.

    With a file for its progress, a run that was stopped goes on after the last whole cycle.
    """
    so_far = Progress.read(file)
    if so_far.cycles < cycles or not so_far.events:
        so_far = so_far._replace(starts=so_far.starts + 1, events=0)
        begin(address)
        while so_far.cycles < cycles and not over():
            so_far = one_kill(address, so_far, seed)
            so_far.write(file)
            if file is not None and so_far.cycles % SHOWN == 0:
                show(file, so_far, cycles)
        so_far = so_far._replace(events=played(address, so_far))
        so_far.write(file)
    told = so_far._asdict()
    del told["starts"], told["left"]
    return told | {"seconds": round(so_far.seconds)}


def show(file: Path, so_far: Progress, cycles: int) -> None:
    """Tell how far a store is."""
    told = f"{so_far.cycles:,} of {cycles:,} cycles, {so_far.acknowledged:,} acknowledged"
    print(f"{file.parent.name}: {told}, {so_far.seconds:.0f} s", file=sys.stderr, flush=True)


def played(address: str, so_far: Progress) -> int:
    """Play the whole log of a store again; return how many events it has: not one too many."""
    store = open_store(address, alone=True)
    events = verified(store)
    store.close()
    # What the last kill left under way; a cycle in which this program was stopped left its own.
    under_way = CLIENTS + (so_far.starts - 1) * (CLIENTS + MOST)
    if not so_far.acknowledged <= events <= so_far.acknowledged + under_way:
        told = f"events must be {so_far.acknowledged} and up to {under_way} under way"
        raise RuntimeError(f"{told}, got {events}")
    return events


def begin(address: str) -> None:
    """Make the stream, unless it is there."""
    store = open_store(address, alone=True)
    if not store.streams():
        with store.writing():
            store.put_stream(Line(1, "s", "{}", Recalibrator(seed=7).to_bytes()))
    store.close()


class Store(NamedTuple):
    """A store of a run: where it is, how many cycles it takes, and its seed."""

    address: str
    folder: Path
    cycles: int
    seed: int

    def run(self, over: Callable[[], bool]) -> dict[str, Any]:
        """Kill its writer, and play its log again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return kills(self.address, self.cycles, self.seed, over, self.folder / "progress.json")


def sizes(cycles: int) -> list[int]:
    """Return over how many stores cycles go, and how many each has.

    >>> sizes(4000), sizes(100)
    ([2500, 1000, 500], [100])
    """
    first = min(cycles, FIRST)
    rest = range(first, cycles, STORE)
    return [first, *(min(STORE, cycles - start) for start in rest)]


def dealt(stores: Sequence[Store], jobs: int) -> list[list[Store]]:
    """Return which job has which stores: each goes to the one that has the least to do."""
    hands: list[list[Store]] = [[] for _ in range(jobs)]
    for store in stores:
        min(hands, key=lambda hand: sum(one.cycles for one in hand)).append(store)
    return [hand for hand in hands if hand]


def run_some(hand: Sequence[Store], over: Callable[[], bool]) -> None:
    """Run a job in a process of its own, which ends here."""
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for store in hand:
            if not over():
                store.run(over)
        code = 0
    except Exception as error:
        print(f"failed: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def run_all(hands: Sequence[Sequence[Store]], seconds: float | None) -> None:
    """Run all jobs, and wait for them; they end if this is ended."""
    end, parent = time.monotonic() + (seconds or float("inf")), os.getpid()
    children = []
    for hand in hands:
        child = os.fork()
        if not child:
            run_some(hand, lambda: os.getppid() != parent or time.monotonic() > end)
        children.append(child)
    try:
        codes = [os.waitpid(child, 0)[1] for child in children]
    except BaseException:
        for child in children:
            with suppress(OSError):
                os.kill(child, signal.SIGTERM)
        raise
    if any(codes):
        raise SystemExit("a store failed, or its job was ended: see above")


def added(stores: Sequence[Store]) -> dict[str, Any]:
    """Return the counts of all stores whose log was played again, added."""
    found = [Progress.read(store.folder / "progress.json") for store in stores]
    found = [one for one in found if one.events]
    names = [name for name in Progress._fields if name not in ("starts", "left")]
    told = {name: round(sum(getattr(one, name) for one in found)) for name in names}
    return {"stores": len(found)} | told


def stores_of(asked: argparse.Namespace, place: Path, database: Database | None) -> list[Store]:
    """Return the stores of a run."""
    made = []
    for n, cycles in enumerate(sizes(asked.cycles)):
        folder = place / f"store {n}"
        address = str(folder / "streams.db") if database is None else database.named(f"kills_{n}")
        made.append(Store(address, folder, cycles, asked.seed + n))
    return made


def _stop(*_: object) -> None:
    raise SystemExit("stopped")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--seed", type=int, default=1, help="of the first store")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--postgres")
    parser.add_argument("--keep", type=Path, help="a folder for the stores, to go on another time")
    parser.add_argument("--to", type=Path)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    with ExitStack() as stack:
        place = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place.mkdir(parents=True, exist_ok=True)
        database = stack.enter_context(databases(asked.postgres, place)) if asked.postgres else None
        stores = stores_of(asked, place, database)
        begun, code = time.monotonic(), commit()
        run_all(dealt(stores, asked.jobs), asked.seconds)
        where = {"file_system": file_system(place)} if database is None else database.settings()
        name = "SQLite" if database is None else "PostgreSQL"
        found = {"store": name, "clients": CLIENTS} | added(stores)
    found |= {"jobs": asked.jobs, "elapsed": round(time.monotonic() - begun), "seed": asked.seed}
    found |= {"commit": code, "date": time.strftime("%Y-%m-%d", time.gmtime())} | where
    print(json.dumps(found))
    if asked.to is not None:
        with asked.to.open("a") as out:
            out.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
