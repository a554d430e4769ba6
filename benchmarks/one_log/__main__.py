"""One log, several ways: 200,000 events of 2,000 keys, with kill -9 in between.

    python -m benchmarks.one_log                          library, journal, command line, SQLite
    python -m benchmarks.one_log --postgres own           and the service on a PostgreSQL of its own
    python -m benchmarks.one_log --spark .venv-spark/bin/python
    python -m benchmarks.one_log --events 2000 --keys 50  smaller
    python -m benchmarks.one_log --store                  keep the table for the page about logs

Every way is told of the keys that it can express (see ``log.py``): journal and service of all; the
command line of all but those whose outcomes are corrected or whose forecasts are given up, for a
row holds one outcome; Spark of those whose outcomes come late, again or never.  Answers and bodies
must be those of ``calibrant.Table``, bit for bit, and those of a filter of one stream
(``--flush --checkpoint 0``) those of a lone model.  Every model goes every way.  The exit status is
the number of ways that came to something else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.one_log.command import (
    BY_COMMAND,
    PARTS,
    alone,
    by_command,
    by_filter,
    given_up,
)
from benchmarks.one_log.journal import by_journal
from benchmarks.one_log.log import Event, made_log
from benchmarks.one_log.service import by_service
from benchmarks.one_log.ways import MODELS, PAPER, Model, Result, by_table
from benchmarks.store import storing

ROOT = Path(__file__).parents[2]
HEAD = ("way", "model", "answers", "bodies", "kill -9", "seconds")
SAME = {True: "same", False: "DIFFER"}
DEFAULTS = {"events": 200_000, "keys": 2_000, "kills": 5}


def main(arguments: list[str] | None = None) -> int:
    """Go all ways that are asked for; return how many came to something else."""
    told = parse(arguments)
    log = made_log(told.events, told.keys)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in Counter(e.kind for e in log).items())
    print(f"{len(log):,} events of {told.keys:,} keys: {kinds}", flush=True)
    return sum(compared(log, told, MODELS[name]) for name in told.models)


def compared(log: list[Event], told: Any, model: Model) -> int:
    """Print the table of one model, which has a file of its own; return how many ways differ."""
    words = ["benchmarks.one_log", "--models", model.name, *not_models(told)]
    with storing("one_log", wanted=told.store, part=model.name, words=words):
        print(f"| {' | '.join(HEAD)} |\n{'|---' * len(HEAD)}|", flush=True)
        return sum(ways(log, told, model))


def not_models(told: Any) -> Iterator[str]:
    """Yield the options that were given, apart from those of models and of storing."""
    for name in ("events", "keys", "kills", "postgres", "spark"):
        value = getattr(told, name)
        if value != DEFAULTS.get(name):
            yield from (f"--{name}", str(value))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_log", description=__doc__)
    parser.add_argument("--events", type=int)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--kills", type=int, help="how often each process is killed")
    parser.add_argument("--models", nargs="+", default=[*MODELS], choices=[*MODELS])
    parser.add_argument("--postgres", metavar="ADDRESS", help="an empty database, or: own")
    parser.add_argument("--spark", metavar="PYTHON", help="one that has PySpark")
    parser.add_argument("--store", action="store_true", help="keep the table for the pages")
    parser.set_defaults(**DEFAULTS)
    return parser.parse_args(arguments)


def ways(log: list[Event], told: Any, model: Model) -> Iterator[int]:
    """Go every way with one model; yield 1 for each that comes to something else, else 0."""
    kills, size = told.kills, (told.events, told.keys)
    table = by_table(log, model)
    with tempfile.TemporaryDirectory(prefix="calibrant-log-") as folder:
        place = Path(folder)
        row = Row(model, kills)
        yield row.compared(
            "Journal", lambda: by_journal(log, place / "journal.db", kills, model, size=size), table
        )
        yield Row(model, PARTS).compared(
            "calibrant replay --by", lambda: by_command(log, place, model), for_command(log, model)
        )
        yield row.compared(
            "calibrant replay --flush --checkpoint 0",
            lambda: by_filter(log, place, model, kills),
            alone(log, model),
        )
        store = str(place / "log.db")
        yield row.compared("service on SQLite", lambda: by_service(log, store, kills, model), table)
        if told.postgres:
            yield on_postgres(log, told, row, table)
        if told.spark:
            yield on_spark(told, row, place)


def for_command(log: list[Event], model: Model = PAPER) -> Result:
    """Return what a table comes to on the keys that a file of rounds can express."""
    keys = {event.id: event.key for event in log}
    return by_table(given_up(log), model).only(BY_COMMAND, keys)


class Row:
    """Rows of the table: one model, killed so many times on each way."""

    def __init__(self, model: Model, kills: int) -> None:
        self.model, self.kills = model, kills

    def compared(self, name: str, way: Callable[[], Result], table: Result) -> int:
        """Go one way; return 1 if it comes to something else than a table."""
        start = time.perf_counter()
        found = way()
        counts = len(found.answers), len(found.bodies)
        same = found.answers == table.answers, found.bodies == table.bodies
        return self.told(name, counts, same, time.perf_counter() - start)

    def told(
        self, name: str, counts: tuple[int, int], same: tuple[bool, bool], seconds: float
    ) -> int:
        """Print a row; return 1 if anything differs."""
        cells = [f"{count:,} {SAME[is_so]}" for count, is_so in zip(counts, same, strict=True)]
        row = [name, self.model.name, *cells, str(self.kills), f"{seconds:.0f}"]
        print(f"| {' | '.join(row)} |", flush=True)
        return int(not all(same))


def on_postgres(log: list[Event], told: Any, row: Row, table: Result) -> int:
    """Go the way of the service on PostgreSQL, in a cluster of its own if that is asked for."""
    name = "service on PostgreSQL"
    if told.postgres != "own":
        return row.compared(
            name, lambda: by_service(log, told.postgres, told.kills, row.model), table
        )
    sys.path.insert(0, str(ROOT / "tests"))
    from cluster import Cluster

    cluster = Cluster()
    try:
        address = cluster.database("log")
        return row.compared(name, lambda: by_service(log, address, told.kills, row.model), table)
    finally:
        cluster.close()


def on_spark(told: Any, row: Row, place: Path) -> int:
    """Go the way of Spark, in a process of its own."""
    words = [place / "spark", told.events, told.keys, told.kills, row.model.name]
    command = [told.spark, "-m", "benchmarks.one_log.spark", *map(str, words)]
    start = time.perf_counter()
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    if not ran.stdout.strip():
        raise RuntimeError(f"Spark must come to an end, got exit status {ran.returncode}")
    found = json.loads(ran.stdout.splitlines()[-1])
    counts, same = found["counts"], found["same"]
    both = counts["answers"], counts["bodies"]
    alike = same["answers"] and same["aside"], same["bodies"]
    return row.told("Spark", both, alike, time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())
