"""What other libraries cost beside ours: time, memory, many keys, and a service.

    python -m benchmarks.peers.beside speed    rounds one by one and in batches
    python -m benchmarks.peers.beside memory   bytes of a model, live and stored
    python -m benchmarks.peers.beside scale    a model for each of many keys
    python -m benchmarks.peers.beside service  River behind Starlette, with SQLite and without

Each contender runs in an environment and a process of its own, with one thread, on the same rounds;
all take turns.  A cost is the median of all turns, a ratio to ours the median of those within a
turn: above 1 the other costs more.  What is done is kept by commit, pins and settings, so that a
run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import __main__ as peers
from benchmarks.peers.inside import FITS
from benchmarks.store import add_store, commit, storing

__all__ = ["COMPARED", "Compared", "main", "table"]

HAND, PLAIN = "online_platt", "calibrant_plain"
LIGHT = ("sklearn_isotonic", "sklearn_platt", "netcal_scaling")
SLOW = (*LIGHT, "sklearn_calibrated")
STACK = " ".join(peers.PINS["afternoon"].replace("==", " ").split()[:6])
LOADS = {"single": (32, 1), "bulk of 100": (8, 100)}
"""Connections of a load, and events in a request."""


class Compared(NamedTuple):
    """A comparison: of whom, and what is measured.

    ``measures`` say what each is called, how it is shown, and what its ratio is called if that
    counts.  ``label`` is what the first column tells.
    """

    label: str
    names: tuple[str, ...]
    measures: dict[str, tuple[str, Callable[[float], str], str]]

    def base(self, name: str) -> str:
        """Return whom a contender is compared with: ours, with the same storage."""
        storage = name.partition(", ")[2]
        return next(one for one in self.names if one.partition(", ")[2] == storage)


def whole(value: float) -> str:
    """Show a whole number."""
    return f"{value:,.0f}"


def rate(seconds: float) -> str:
    """Show how many there are in a second."""
    return whole(1 / seconds)


def milli(seconds: float) -> str:
    """Show thousandths."""
    return f"{1e3 * seconds:.1f}"


def micro(seconds: float) -> str:
    """Show millionths."""
    return whole(1e6 * seconds)


COMPARED = {
    "speed": Compared(
        "rounds",
        ("calibrant", PLAIN, "river", HAND, *SLOW),
        {
            "one": ("one by one, ns", whole, "to ours, one by one"),
            "batch": ("batch, ns", whole, "to ours, batch"),
        },
    ),
    "memory": Compared(
        "rounds",
        ("calibrant", "calibrant_table", "river", HAND, *LIGHT),
        {
            "live": ("live, bytes", whole, "to ours, live"),
            "stored": ("stored, bytes", whole, "to ours, stored"),
        },
    ),
    "scale": Compared(
        "keys",
        ("calibrant_play", "calibrant_one", "river", HAND),
        {
            "event": ("events a second", rate, "to ours, time"),
            "peak": ("peak, bytes a key", whole, "to ours, memory"),
        },
    ),
    "service": Compared(
        "load",
        ("calibrant, SQLite", "calibrant, none", "afternoon, SQLite", "afternoon, none"),
        {
            "event": ("events a second", rate, "to ours, time"),
            "cpu": ("CPU a request, us", micro, "to ours, CPU"),
            "p50": ("p50, ms", milli, ""),
            "p99": ("p99, ms", milli, "to ours, p99"),
        },
    ),
}
Found = dict[str, dict[str, list[dict[str, Any]]]]
"""What was measured in each turn, by label and name."""


def main(arguments: list[str] | None = None) -> int:
    """Measure what is missing; print the table; return how many contenders could not be run."""
    told = parse(arguments)
    place = kept_in(told)
    if told.again:
        shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, exist_ok=True)
    found, failed = (services if told.what == "service" else works)(told, place)
    words = ["benchmarks.peers.beside", told.what]
    with storing("peers", part=told.what, wanted=told.store, words=words):
        print("\n".join([table(COMPARED[told.what], found), *notes(found)]))
    return failed


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.beside", description=__doc__)
    parser.add_argument("what", choices=list(COMPARED))
    parser.add_argument("--quick", action="store_true", help="less of all, in one turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="also what is done already")
    add_store(parser)
    told = parser.parse_args(arguments)
    if told.quick and told.store:
        parser.error("--store must come without --quick: pages show whole runs")
    told.turns = 1 if told.quick else told.turns
    return told


def kept_in(told: argparse.Namespace) -> Path:
    """Return where turns are kept that were measured with the same code, pins and settings."""
    settings = json.dumps([peers.PINS, commit(), told.quick]).encode()
    return peers.RESULTS / f"{told.what}-{hashlib.sha256(settings).hexdigest()[:12]}"


def works(told: argparse.Namespace, place: Path) -> tuple[Found, int]:
    """Let all contenders of a comparison work in turns."""
    found: Found = {}
    failed = set[str]()
    for label, given in GIVEN[told.what](told.quick).items():
        stream = place / f"{label}.npz"
        np.savez(stream, **given)
        for turn in range(told.turns):
            for name in turned(COMPARED[told.what].names, turn):
                path = place / f"{label}-{name}-{turn}.json"
                peers.say(f"{told.what}, {label}, turn {turn + 1} of {told.turns}: {name}")
                if path.exists() or worked(told.what, name, stream, path):
                    found.setdefault(label, {}).setdefault(name, []).append(read(path))
                else:
                    failed.add(name)
    return found, len(failed)


def turned(names: tuple[str, ...], turn: int) -> tuple[str, ...]:
    """Return names with another one first in each turn."""
    first = turn % len(names)
    return names[first:] + names[:first]


def worked(what: str, name: str, stream: Path, path: Path) -> bool:
    """Run a contender in its environment; say whether it could be run."""
    package = "river" if name == "river" else FITS[name][0] if name in FITS else None
    python = sys.executable if package is None else peers.environment(package)
    command = [str(python), "-m", "benchmarks.peers.work", what, name, str(stream)]
    settings = {"CALIBRANT_COMPILE": "off"} if name == PLAIN else {}
    return python is not None and peers.kept(name, command, path, **settings)


def read(path: Path) -> Any:
    """Return what is kept in a file."""
    return json.loads(path.read_text())


# ------------------------------------------------------------------------------ rounds


def speed_given(quick: bool) -> dict[str, dict[str, Any]]:
    """Return the rounds whose time is measured."""
    rounds = 3_000 if quick else 10_000
    return {f"{rounds:,}": drawn(rounds)}


def memory_given(quick: bool) -> dict[str, dict[str, Any]]:
    """Return the rounds that each of many models plays."""
    models = 200 if quick else 2_000
    return {f"{rounds:,}": {**drawn(rounds), "models": models} for rounds in (20, 1_000)}


def scale_given(quick: bool) -> dict[str, dict[str, Any]]:
    """Return rounds of keys by Zipf's law with exponent 1.1."""
    from benchmarks.tables import events

    keys, raw, outcomes = events(*((20_000, 2_000) if quick else (500_000, 50_000)))
    given = {"keys": keys, "raw": raw, "outcomes": outcomes, "behind": 200}
    return {f"{len(np.unique(keys)):,}": given}


GIVEN = {"speed": speed_given, "memory": memory_given, "scale": scale_given}


def drawn(rounds: int) -> dict[str, Any]:
    """Return raw forecasts that are off, and outcomes."""
    rng = np.random.default_rng(0)
    raw = rng.uniform(0.02, 0.98, rounds)
    return {"raw": raw, "outcomes": (rng.random(rounds) < raw**1.3).astype(np.uint8)}


# ----------------------------------------------------------------------------- service


def services(told: argparse.Namespace, place: Path) -> tuple[Found, int]:
    """Ask all services in turns, each in a process of its own."""
    python = peers.environment("afternoon")
    if python is None:
        return {}, 2
    found: Found = {}
    client = "wrk" if shutil.which("wrk") else "python"
    seconds = 1 if told.quick else 6
    for load in LOADS:
        for turn in range(told.turns):
            path = place / f"{load}-{turn}.json"
            peers.say(f"service, {load}, turn {turn + 1} of {told.turns}, load by {client}")
            if not path.exists():
                path.write_text(json.dumps(asked(python, turn, client, *LOADS[load], seconds)))
            for name, one in read(path).items():
                found.setdefault(load, {}).setdefault(name, []).append(one)
    return found, 0


def asked(python: str, turn: int, client: str, *load: Any) -> dict[str, dict[str, Any]]:
    """Return what each service carries in one turn, with files of its own."""
    from benchmarks import service

    with tempfile.TemporaryDirectory(dir=peers.ROOT, prefix="load-") as folder:
        file = str(Path(folder) / "ours.db"), str(Path(folder) / "theirs.db")
        sync = service.sync_time(Path(folder))
        serve: dict[str, Any] = {
            "calibrant, SQLite": partial(service.server, file[0]),
            "calibrant, none": partial(service.server, None),
            "afternoon, SQLite": partial(afternoon, python, file[1]),
            "afternoon, none": partial(afternoon, python),
        }
        serve = {name: serve[name] for name in turned(tuple(serve), turn)}
        made = service.rounds(serve, 1, client, *load, method="calibrant")
    version = dict.fromkeys(serve, "calibrant")
    version |= dict.fromkeys(("afternoon, SQLite", "afternoon, none"), STACK)
    return {
        name: {**one._asdict(), "event": 1 / one.rate, "version": version[name], "sync": sync}
        for name, one in made.items()
    }


@contextmanager
def afternoon(python: str, *path: str) -> Iterator[tuple[int, int]]:
    """Serve what is in ``afternoon.py``; yield the number of the process and its port."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(2048)
        port, number = held.getsockname()[1], held.fileno()
        command = [python, "-m", "benchmarks.peers.afternoon", str(number), *path]
        child = subprocess.Popen(command, pass_fds=[number], cwd=peers.ROOT)
    try:
        yield child.pid, port
    finally:
        child.kill()
        child.wait()


# ------------------------------------------------------------------------------- table


def table(compared: Compared, found: Found) -> str:
    """Return medians of all turns as Markdown, each beside the median of its ratios to ours."""
    measures = compared.measures.values()
    heads = [
        compared.label,
        "method",
        *(one for head, _, ratio in measures for one in (head, ratio)),
    ]
    heads = [*filter(None, heads), "version"]
    lines = [heads, ["---"] * len(heads)]
    for label, by in found.items():
        for name in (name for name in compared.names if name in by):
            own, ours = by[name], by.get(compared.base(name), [])
            each = (measured(compared, what, own, ours) for what in compared.measures)
            cells = [cell for both in each for cell in both]
            lines.append([label, f"`{name}`", *cells, own[0]["version"]])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def notes(found: Found) -> Iterator[str]:
    """Yield what else a reader needs: how long the disk takes to keep something."""
    every = [one for by in found.values() for turns in by.values() for one in turns]
    if sync := [one["sync"] for one in every if "sync" in one]:
        yield f"fdatasync: {milli(statistics.median(sync))} ms"


def measured(
    compared: Compared, what: str, own: list[dict[str, Any]], ours: list[dict[str, Any]]
) -> list[str]:
    """Return the cells of a measure: its median and, where that counts, its ratio."""
    _, show, ratio = compared.measures[what]
    if what not in own[0]:
        return ["", ""] if ratio else [""]
    cells = [show(statistics.median(one[what] for one in own))]
    if ratio:
        pairs = [one[what] / other[what] for one, other in zip(own, ours, strict=False)]
        middle = statistics.median(pairs) if pairs else math.nan
        digits = 3 if middle < 0.1 else 2 if middle < 100 else 0
        cells.append(f"{middle:,.{digits}f}" if pairs else "")
    return cells


if __name__ == "__main__":
    sys.exit(main())
