"""One log, four ways: 200,000 events of 2,000 keys, with kill -9 in between.

    python -m benchmarks.one_log                          library, command line, service on SQLite
    python -m benchmarks.one_log --postgres own           and on a PostgreSQL of its own
    python -m benchmarks.one_log --spark .venv-spark/bin/python
    python -m benchmarks.one_log --events 2000 --keys 50  smaller

Every way is told of the keys that it can express (see ``log.py``): the service of all; the command
line of all but those whose outcomes are corrected or whose forecasts are given up, for a row holds
one outcome; Spark of those whose outcomes come late, again or never.  Answers and bodies must be
those of ``calibrant.Table``, bit for bit.  The exit status is 1 if any differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.one_log.command import BY_COMMAND, by_command, given_up
from benchmarks.one_log.log import Event, made_log
from benchmarks.one_log.service import by_service
from benchmarks.one_log.ways import Result, by_table

ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Go all ways that are asked for; return how many came to something else."""
    told = parse(arguments)
    log = made_log(told.events, told.keys)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in Counter(e.kind for e in log).items())
    print(f"{len(log):,} events of {told.keys:,} keys: {kinds}", flush=True)
    table = timed("library", lambda: by_table(log))
    with tempfile.TemporaryDirectory(prefix="calibrant-log-") as folder:
        failed = compared("replay --by", lambda: by_command(log, Path(folder)), for_command(log))
        store = str(Path(folder, "log.db"))
        failed += compared("service on SQLite", lambda: by_service(log, store, told.kills), table)
        if told.postgres:
            failed += on_postgres(log, told, table)
        if told.spark:
            words = [str(Path(folder, "spark")), told.events, told.keys, told.kills]
            command = [told.spark, "-m", "benchmarks.one_log.spark", *map(str, words)]
            failed += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return failed


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_log", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=5, help="how often each process is killed")
    parser.add_argument("--postgres", metavar="ADDRESS", help="an empty database, or: own")
    parser.add_argument("--spark", metavar="PYTHON", help="one that has PySpark")
    return parser.parse_args(arguments)


def for_command(log: list[Event]) -> Result:
    """Return what a table comes to on the keys that a file of rounds can express."""
    keys = {event.id: event.key for event in log}
    return by_table(given_up(log)).only(BY_COMMAND, keys)


def compared(name: str, way: Callable[[], Result], table: Result) -> int:
    """Go one way; return 1 if it comes to something else than a table."""
    found = timed(name, way)
    answers, bodies = found.answers == table.answers, found.bodies == table.bodies
    same = {True: "same", False: "DIFFER"}
    told = f"{len(found.answers):,} answers {same[answers]}, {len(found.bodies):,} bodies"
    print(f"{name}: {told} {same[bodies]}", flush=True)
    return int(not (answers and bodies))


def on_postgres(log: list[Event], told: Any, table: Result) -> int:
    """Go the way of the service on PostgreSQL, in a cluster of its own if that is asked for."""
    name = "service on PostgreSQL"
    if told.postgres != "own":
        return compared(name, lambda: by_service(log, told.postgres, told.kills), table)
    sys.path.insert(0, str(ROOT / "tests"))
    from cluster import Cluster

    cluster = Cluster()
    try:
        address = cluster.database("log")
        return compared(name, lambda: by_service(log, address, told.kills), table)
    finally:
        cluster.close()


def timed(name: str, way: Callable[[], Result]) -> Result:
    """Go one way; tell how long it took on the error stream."""
    start = time.perf_counter()
    found = way()
    print(f"calibrant: {name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
