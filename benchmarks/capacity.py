"""What a fleet of streams costs: the constants behind ``calibrant capacity``.

``python -m benchmarks.capacity`` prints them; ``--store`` writes the file that the package reads.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tracemalloc
from typing import Any

import numpy as np

from benchmarks.__main__ import machine
from benchmarks.measure import cpu_seconds, interleave
from benchmarks.tables import MAKES, events
from calibrant import Keys, Table
from calibrant.capacity.figures import STORED

NAMES = {"default": "default", "foster_hart": "foster_hart, N = M = 10"}
ROUNDS = (1, 3, 10, 30, 100, 300, 1_000, 3_000)
"""After how many rounds the size of a key is measured."""
SIZED = 40
"""Keys whose mean size is taken."""
OPEN = 20_000
"""Tickets that are left open to be measured."""


def sizes(make: Any) -> list[float]:
    """Return the mean size of a stored key after each number of rounds."""
    empty = len(Table(make(), seed=1).to_bytes())
    return [(len(_played(make, rounds).to_bytes()) - empty) / SIZED for rounds in ROUNDS]


def _played(make: Any, rounds: int) -> Table:
    """Return a table whose keys have made so many rounds each."""
    rng, table = np.random.default_rng(3), Table(make(), seed=1)
    raw = rng.beta(2.0, 3.0, size=SIZED * rounds)
    told = rng.random(len(raw)) < raw**1.3
    table.replay(np.repeat(np.arange(SIZED), rounds), raw, told)
    return table


def key_bytes(make: Any) -> float:
    """Return what a table keeps of a key besides its row or body."""
    count = 20_000
    names = [f"key {k}" for k in range(count)]
    Table(make(), seed=1)._admit(names)
    tracemalloc.start()
    table = Table(make(), seed=1)
    table._admit(names)
    rows = table._tiers.rows.arena.flat().nbytes + 8 * table._tiers.heap.used
    held = tracemalloc.get_traced_memory()[0] - rows
    tracemalloc.stop()
    return max(held / count, 0.0)


def tickets(make: Any) -> tuple[float, float]:
    """Return what an open ticket takes in memory, and stored."""
    table = Table(make(), seed=1)
    table.replay([0], [0.5], [1])
    before, held = len(table.to_bytes()), table._desk.nbytes
    table.forecast_many(np.zeros(OPEN, np.int64), np.full(OPEN, 0.5))
    return (table._desk.nbytes - held) / OPEN, (len(table.to_bytes()) - before) / OPEN


def times(make: Any, count: int, keys: int, repeats: int) -> dict[str, float]:
    """Return CPU times of rounds, and of storing and loading a key."""
    whose, raw, outcomes = events(count, keys)
    read = Keys.of(whose)
    single = raw[:5_000].tolist(), outcomes[:5_000].tolist()

    def lone() -> Any:
        stream = make(seed=1)
        stream.replay(raw, outcomes)
        return lambda: stream.replay(raw, outcomes)

    def table() -> Any:
        made = Table(make(), seed=1)
        made.replay(read, raw, outcomes)
        return lambda: made.replay(read, raw, outcomes)

    def calls() -> Any:
        stream = make(seed=1)
        stream.compile()
        return lambda: [stream.observe(stream.forecast(p), y) for p, y in zip(*single, strict=True)]

    took = interleave({"lone": lone, "table": table, "calls": calls}, rounds=1, repeats=repeats)
    made = Table(make(), seed=1)
    made.replay(read, raw, outcomes)
    data = made.to_bytes()
    storing, loading = cpu_seconds(made.to_bytes), cpu_seconds(lambda: Table.from_bytes(data))
    return {
        "alone_ns": took.nanoseconds("lone") / count,
        "table_ns": took.nanoseconds("table") / count,
        "call_us": took.nanoseconds("calls") / len(single[0]) / 1e3,
        "store_us": storing / len(made) * 1e6,
        "load_us": loading / len(made) * 1e6,
    }


def figures(name: str, count: int, keys: int, repeats: int) -> dict[str, Any]:
    """Return all constants of one kind of stream."""
    make = MAKES[NAMES[name]]
    lone, (held, stored) = make(seed=1), tickets(make)
    told = {"buckets": lone.buckets, **times(make, count, keys, repeats)}
    told |= {"row_bytes": float(lone.spec.layout.fresh.nbytes), "rounds": ROUNDS}
    told |= {"body_bytes": sizes(make), "key_bytes": key_bytes(make)}
    return told | {"ticket_bytes": held, "stored_ticket_bytes": stored}


def split(count: int) -> str:
    """Tell what two threads would gain from the buckets of one key, half of them each.

    Rounds are told apart by bucket, gathered, and their forecasts put back, which one thread does;
    only then there are two halves.
    """
    _, raw, outcomes = events(count, 1)
    stream = MAKES[NAMES["foster_hart"]](seed=1)
    stream.replay(raw, outcomes)
    found = np.empty(count)

    def parted() -> None:
        low = raw < 0.5
        for mine in (low, ~low):
            given = raw[mine], outcomes[mine]
            found[mine] = given[0]

    alone = min(cpu_seconds(lambda: stream.replay(raw, outcomes)) for _ in range(5)) / count
    apart = min(cpu_seconds(parted) for _ in range(5)) / count
    told = f"one stream takes {1e9 * alone:.0f} ns a round, to part it in two {1e9 * apart:.0f} ns"
    return f"{told}: two threads are {alone / (apart + alone / 2):.2f} times as fast"


def options(words: list[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--split", action="store_true", help="only what splitting a hot key gains")
    return parser.parse_args(words)


def main() -> None:
    """Measure, print and store."""
    told = options()
    if told.split:
        print(split(told.events))
        return
    methods = {name: figures(name, told.events, told.keys, told.repeats) for name in NAMES}
    command = shlex.join(["python", "-m", "benchmarks.capacity", *sys.argv[1:]])
    played = {"events": told.events, "keys": told.keys}
    made = {"command": command, **played, "machine": machine()}
    text = json.dumps({**made, "methods": methods}, indent=1, default=float)
    print(text)
    if told.store:
        STORED.write_text(text + "\n")


if __name__ == "__main__":
    main()
