"""Tables: a batch over many keys beside one stream with as many rounds, and what keys cost.

``python -m benchmarks.tables`` prints a table: what was found, and the bar for it if there is one.
``--events`` and ``--keys`` say how much is played.  Batches play those of each key together.
Events fall on the keys by Zipf's law with exponent 1.1; whose events they are is encoded before.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import cpu_seconds, interleave
from calibrant import Calibrant, Keys, Recalibrator, Table
from calibrant.core.codec import Document

Make = Callable[..., Any]
MAKES: dict[str, Make] = {
    "foster_hart, N = M = 10": lambda **told: Recalibrator(resolution=10, buckets=10, **told),
    "default": lambda **told: Calibrant(**told),
}
WARM = 30_000
"""Events of a batch that compiles what is measured."""
MADE = 5_000
"""Keys that are made to see what that costs."""
EVERYWHERE = 300
"""Rounds of a key that uses all its buckets."""
BARS: dict[str, tuple[str, str, str, str]] = {
    "foster_hart, N = M = 10": ("7", "", "300", "1400"),
    "default": ("2", "3.5", "1100", "4300"),
}
"""Times one stream with all keys hot, and with all packed in between; bytes of a key, and of one
that was used everywhere."""


def events(count: int, keys: int) -> tuple[Any, ...]:
    """Return keys, raw forecasts and outcomes."""
    rng = np.random.default_rng(0)
    share = np.cumsum(1.0 / np.arange(1, keys + 1) ** 1.1)
    whose = rng.permutation(keys)[np.searchsorted(share / share[-1], rng.random(count))]
    raw = rng.random(count)
    return whose, raw, (rng.random(count) < raw**1.3).astype(np.uint8)


def line(name: str, make: Make, given: tuple[Any, ...], repeats: int) -> list[str]:
    """Measure one kind of stream; return lines of the table."""
    whose, raw, outcomes = given
    keys, count, few = Keys.of(whose), len(raw), Keys.of(whose[:WARM])

    def lone() -> Any:
        stream = make(seed=1)
        stream.replay(raw[:WARM], outcomes[:WARM])
        return lambda: stream.replay(raw, outcomes)

    def table(hot: int | None) -> Any:
        made = Table(make(), seed=1, hot=hot)
        made.replay(few, raw[:WARM], outcomes[:WARM])
        made.replay(keys, raw, outcomes)
        return lambda: made.replay(keys, raw, outcomes)

    jobs = {
        "lone": lone,
        "hot": lambda: table(len(keys.names)),
        "default": lambda: table(None),
        "packed": lambda: table(1_000),
    }
    times = interleave(jobs, rounds=count, repeats=repeats)
    made = Table(make(), seed=1)
    made.replay(few, raw[:WARM], outcomes[:WARM])
    making = _making(make)
    made.replay(keys, raw, outcomes)
    told = {
        "one stream, ns an event": (f"{times.nanoseconds('lone'):.0f}", ""),
        "all keys hot, times one stream": (f"{times.ratio('hot', 'lone'):.2f}", BARS[name][0]),
        "hot keys by default, times one stream": (f"{times.ratio('default', 'lone'):.2f}", ""),
        "all packed in between, times one stream": (
            f"{times.ratio('packed', 'lone'):.2f}",
            BARS[name][1],
        ),
        "making a key, us": (f"{1e6 * making:.2f}", "1.5"),
        "bytes a key, state": (f"{made._tiers.nbytes / len(made):.0f}", BARS[name][2]),
        "bytes a key, names": (f"{_names(made) / len(made):.0f}", ""),
    }
    told |= snapshots(made, keys, raw, outcomes) | used_everywhere(make, BARS[name][3])
    return [f"| {name} | {what} | {found} | {bar} |" for what, (found, bar) in told.items()]


def _making(make: Make) -> float:
    """Return the seconds of making a key, and its row, in memory that the process has already."""
    some = Keys.of(np.arange(MADE))

    def made(table: Table) -> None:
        table._admit(some)
        table._tiers.warm(np.arange(MADE), table._stamps)

    return min(cpu_seconds(lambda: made(Table(make(), seed=1, hot=MADE))) for _ in range(5)) / MADE


def _names(table: Table) -> int:
    """Bytes of the keys and of the dictionary that finds them."""
    return sys.getsizeof(table._numbers) + sys.getsizeof(table._keys) + 64 * len(table)


def snapshots(made: Table, keys: Keys, raw: Any, outcomes: Any) -> dict[str, tuple[str, str]]:
    """Measure what leaves a table and comes back."""
    made.bodies()
    since = made.mark()
    made.replay(keys, raw, outcomes)
    found: list[Any] = []
    changes = cpu_seconds(lambda: found.append(made.changes(since))) / len(made)
    other = Table.from_bytes(Table(_pattern(made), seed=1).to_bytes())
    names, bodies = zip(*found[0], strict=True)
    taking = cpu_seconds(lambda: other.take(names, bodies)) / len(made)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table"
        saving = cpu_seconds(lambda: made.save(path)) / len(made)
        opening = cpu_seconds(lambda: Table.open(path)) / len(made)
        size = path.stat().st_size / len(made)
    return {
        "whole snapshot, us a key": (f"{1e6 * saving:.2f}", "2"),
        "opening it, us a key": (f"{1e6 * opening:.2f}", ""),
        "bytes a key in the file": (f"{size:.0f}", ""),
        "what changed, us a touched key": (f"{1e6 * changes:.2f}", "3"),
        "taking it in, us a key": (f"{1e6 * taking:.2f}", ""),
    }


def _pattern(table: Table) -> Any:
    return table._made._unborn(
        Document(table._made.kind, table._settings()["pattern"], {}, table._made.version)
    )


def used_everywhere(make: Make, bar: str) -> dict[str, tuple[str, str]]:
    """Measure the memory of keys all of whose buckets are used."""
    rng, keys = np.random.default_rng(1), 2_000
    whose, raw = np.repeat(np.arange(keys), EVERYWHERE), rng.random(keys * EVERYWHERE)
    made = Table(make(), seed=1, hot=1)
    made.replay(whose, raw, (rng.random(len(raw)) < raw).astype(np.uint8))
    made._tiers.heap.limit = 0
    made._tiers.tidy()
    return {"bytes a key, all used": (f"{made._tiers.nbytes / keys:.0f}", bar)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    told = parser.parse_args()
    given = events(told.events, told.keys)
    spent = cpu_seconds(lambda: Keys.of(given[0])) / told.events * 1e9
    text = np.char.mod("key %d", given[0]).tolist()
    more = cpu_seconds(lambda: Keys.of(text)) / told.events * 1e9
    live = len(np.unique(given[0]))
    print(f"{told.events} events, {live} keys; encoding keys takes {spent:.0f} ns an event,")
    print(f"{more:.0f} ns where they are strings")
    print("| stream | what | found | bar |")
    print("|---|---|---|---|")
    for name, make in MAKES.items():
        print("\n".join(line(name, make, given, told.repeats)), flush=True)


if __name__ == "__main__":
    main()
