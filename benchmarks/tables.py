"""Tables: a batch over many keys beside one stream with as many rounds, and what keys cost.

``python -m benchmarks.tables`` prints a table: what was found, and the bar for it if there is one.
``--events`` and ``--keys`` say how much is played.  Batches play those of each key together.
Events fall on the keys by Zipf's law with exponent 1.1; whose events they are is encoded before.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import cpu_seconds, interleave
from benchmarks.reference import c_compiler, c_loops
from benchmarks.store import storing
from calibrant import Calibrant, Keys, Recalibrator, Table
from calibrant.core.codec import Document
from calibrant.recalibrate.keyed_batches import HELD
from calibrant.recalibrate.keyed_parts import Parts

Make = Callable[..., Any]
MAKES: dict[str, Make] = {
    "foster_hart, N = M = 10": lambda **told: Recalibrator(resolution=10, buckets=10, **told),
    "default": lambda **told: Calibrant(**told),
}
WARM = 30_000
"""Events of a batch that compiles what is measured."""
MADE = 5_000
"""Keys that are made to see what that costs."""
ORDERED = 300_000
"""Events that are played in two orders."""
SINGLE = 30_000
"""Keys that have one event each."""
OTHERS = 0.1
"""What other processes may use of one core while two threads are measured by the clock."""
TRIES = 12
"""How often that is tried."""
EVERYWHERE = 300
"""Rounds of a key that uses all its buckets."""
BARS: dict[str, tuple[str, str, str, str, str]] = {
    "foster_hart, N = M = 10": ("7", "", "300", "1400", ""),
    "default": ("2", "3.5", "1100", "4300", "2.7"),
}
"""Times one stream with all keys hot, and with all packed in between; bytes of a key, and of one
that was used everywhere; times one stream in the order of arrival."""


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

    def arrival() -> Any:
        return by_arrival(Table(make(), seed=1, hot=len(keys.names)), keys, raw, outcomes)

    jobs = {
        "lone": lone,
        "arrival": arrival,
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
        "in the order of arrival, times one stream": (
            f"{times.ratio('arrival', 'lone'):.2f}",
            BARS[name][4],
        ),
        "hot keys by default, times one stream": (f"{times.ratio('default', 'lone'):.2f}", ""),
        "all packed in between, times one stream": (
            f"{times.ratio('packed', 'lone'):.2f}",
            BARS[name][1],
        ),
        "making a key, us": (f"{1e6 * making:.2f}", "1.5"),
    } | memory(made, BARS[name][2])
    if made._spec.transform is None and c_compiler() is not None:
        told |= beside_c(make, keys, raw, outcomes, repeats)
    told |= threads(make, keys, raw, outcomes) | orders(make, keys, raw, outcomes)
    told |= single_events(make) | snapshots(made, keys, raw, outcomes)
    told |= used_everywhere(make, BARS[name][3])
    return [f"| {name} | {what} | {found} | {bar} |" for what, (found, bar) in told.items()]


def memory(made: Table, bar: str) -> dict[str, tuple[str, str]]:
    """Tell what the keys of a table take."""
    tiers = made._tiers
    parts = {
        "state": _state(made),
        "of which packed rows": 8 * tiers.heap.used,
        "of which hot rows": tiers.rows.arena.flat().nbytes,
        "names": _names(made),
    }
    bars = {"state": bar}
    return {
        f"bytes a key, {what}": (f"{size / len(made):.0f}", bars.get(what, ""))
        for what, size in parts.items()
    }


def memory_alone(name: str, make: Make, given: tuple[Any, ...]) -> list[str]:
    """Play a batch, and tell what the keys take."""
    made = Table(make(), seed=1)
    made.replay(*given)
    found = memory(made, BARS[name][2])
    return [f"| {name} | {what} | {size} | {bar} |" for what, (size, bar) in found.items()]


def beside_c(
    make: Make, keys: Keys, raw: Any, outcomes: Any, repeats: int
) -> dict[str, tuple[str, str]]:
    """Measure the loop over rows beside the same loop in C on a copy of the arena.

    Both must leave the same forecasts, means and rows.  Tables play grouped by key.
    """
    table = Table(make(), seed=1, hot=len(keys.names))
    table.replay(keys, raw, outcomes)
    parts, found = Parts.of(table._rows_of(keys), len(table)), {}
    grouped = table._tiers.places(parts.rows), parts.bounds, raw[parts.order], outcomes[parts.order]
    arrival = table._tiers.places(table._rows_of(keys)), np.arange(len(raw) + 1), raw, outcomes
    told = ("grouped by key", grouped, "1.1"), ("in the order of arrival", arrival, "")
    for name, given, bar in told:
        ratio, each = _loop_ratio(table, given, repeats)
        found[f"the loop alone {name}, ns an event"] = (f"{each:.0f}", "")
        found[f"the loop alone {name}, times the same in C"] = (f"{ratio:.2f}", bar)
    return found


def _loop_ratio(table: Table, given: tuple[Any, ...], repeats: int) -> tuple[float, float]:
    places, bounds, raw, outcomes = given
    loop = c_loops("foster_hart_rows")["foster_hart_rows"]
    ours, its = table._rows.arena.flat(), table._rows.arena.flat().copy()
    made = [np.zeros(len(raw)) for _ in range(4)]

    played = loop_of(table, bounds, raw, outcomes, *made[:2], np.empty(0))
    machine = partial(played, ours, places)

    def c() -> None:
        loop(its, raw, outcomes, *made[2:], places, bounds)

    machine()
    c()
    start = table._spec.layout.row
    for mine, other in (made[::2], made[1::2], (ours[start:], its[start:])):
        np.testing.assert_array_equal(mine.view(np.int64), other.view(np.int64))
    times = interleave({"ours": lambda: machine, "c": lambda: c}, rounds=len(raw), repeats=repeats)
    return times.ratio("ours", "c"), times.nanoseconds("ours")


def threads(make: Make, keys: Keys, raw: Any, outcomes: Any) -> dict[str, tuple[str, str]]:
    """Measure two threads beside one: by the clock where two cores are idle, else by CPU time.

    By CPU time the batch takes what the calling thread spends, and half of what the two others do.
    """
    made = [Table(make(), seed=1, hot=len(keys.names), jobs=jobs) for jobs in (1, 2)]
    clock, spent = [np.inf, np.inf], [np.inf, np.inf]
    for _ in range(TRIES):
        for k, table in enumerate(made):
            before = time.perf_counter(), time.process_time(), time.thread_time(), _all_seconds()
            table.replay(keys, raw, outcomes)
            after = time.perf_counter(), time.process_time(), time.thread_time(), _all_seconds()
            took, both, own, all_of_them = (b - a for a, b in zip(before, after, strict=True))
            spent[k] = min(spent[k], own + (both - own) / (k + 1))
            if all_of_them - both <= OTHERS * took:
                clock[k] = min(clock[k], took)
    what = "two threads, times as fast as one"
    if max(clock) < np.inf:
        return {f"{what}, by the clock": (f"{clock[0] / clock[1]:.2f}", "1.7")}
    return {f"{what}, by CPU time (cores were not idle)": (f"{spent[0] / spent[1]:.2f}", "")}


def _all_seconds() -> float:
    """Return the CPU seconds of all processes so far; infinitely many where that is not told."""
    try:
        told = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return np.inf
    # User, nice, system, then idle twice, then interrupts and what the host took.
    return sum(int(told[k]) for k in (1, 2, 3, 6, 7, 8)) / os.sysconf("SC_CLK_TCK")


def orders(make: Make, keys: Keys, raw: Any, outcomes: Any) -> dict[str, tuple[str, str]]:
    """Measure the loop over events in the order of arrival beside that over keys.

    The order of arrival spares sorting, and goes to another row with every event.
    """
    found = {}
    for count in (100, 10_000, len(keys.names)):
        some = np.flatnonzero(keys.codes < count)[:ORDERED]
        named = Keys.of(keys.codes[some])
        ratio = _two_orders(make, named, raw[some], outcomes[some])
        found[f"in the order of arrival, times grouped, {len(named.names)} keys"] = (ratio, "")
    return found


def _two_orders(make: Make, keys: Keys, raw: Any, outcomes: Any) -> str:
    table = Table(make(), seed=1, hot=len(keys.names))
    arrival = by_arrival(table, keys, raw, outcomes)

    def grouped() -> None:
        table.replay(keys, raw, outcomes)

    jobs: dict[str, Any] = {"arrival": lambda: arrival, "grouped": lambda: grouped}
    return f"{interleave(jobs, rounds=len(raw), repeats=3).ratio('arrival', 'grouped'):.2f}"


def by_arrival(table: Table, keys: Keys, raw: Any, outcomes: Any) -> Callable[[], None]:
    """Return what plays a batch in the order of arrival in a table that is empty yet.

    The table plays it once in groups before, so that its rows are hot.
    """
    table.replay(keys, raw, outcomes)
    bounds, made = np.arange(len(raw) + 1), [np.empty(len(raw)) for _ in range(3)]
    if table._spec.transform is None:
        made[2] = np.empty(0)

    loop, flat = loop_of(table, bounds, raw, outcomes, *made), table._rows.arena.flat()
    return lambda: loop(flat, table._tiers.places(table._rows_of(keys)))


def loop_of(
    table: Table, bounds: Any, raw: Any, outcomes: Any, *made: Any, replay: Any = None
) -> Callable[[Any, Any], None]:
    """Return what plays rounds that stand in the order of their rows, on words and places.

    The table's own loop is compiled, or that which is given.
    """
    size, machine = min(HELD, len(raw)), table._rows.program.rows
    assert machine is not None
    replay = replay or machine.replay
    order, numbers = np.arange(len(raw)), np.empty(len(raw), np.int64)
    held = np.empty(size), np.empty(size, outcomes.dtype), np.empty(size), np.empty(size)
    own = *held, np.empty(min(size, len(made[2])))
    issued, told = np.zeros(len(bounds) - 1, np.int64), ((raw, outcomes), (*made, numbers), own)

    def loop(flat: Any, places: Any) -> None:
        replay(flat, flat.view(np.float64), places, bounds, order, issued, *told)

    return loop


def single_events(make: Make) -> dict[str, tuple[str, str]]:
    """Measure batches with one event for each key."""
    rng, keys = np.random.default_rng(2), Keys.of(np.arange(SINGLE))
    raw = rng.random(SINGLE)
    told = keys, raw, (rng.random(SINGLE) < raw).astype(np.uint8)
    old = Table(make(), seed=1, hot=2_000)
    old.replay(*told)
    cold = min(cpu_seconds(lambda: old.replay(*told)) for _ in range(4))
    new = min(cpu_seconds(lambda: Table(make(), seed=1, hot=2_000).replay(*told)) for _ in range(4))
    return {
        "one event a key, all keys new, us": (f"{1e6 * new / SINGLE:.2f}", ""),
        "one event a key, all keys packed, us": (f"{1e6 * cold / SINGLE:.2f}", ""),
    }


def _making(make: Make) -> float:
    """Return the seconds of making a key, and its row, in memory that the process has already."""
    some = Keys.of(np.arange(MADE))

    def made(table: Table) -> None:
        table._admit(table._new(some))
        table._tiers.warm(np.arange(MADE), table._stamps)

    return min(cpu_seconds(lambda: made(Table(make(), seed=1, hot=MADE))) for _ in range(5)) / MADE


def _state(table: Table) -> int:
    """Bytes of rows, hot and packed, of what finds them, and of when each was touched."""
    return int(table._tiers.nbytes + table._stamps.nbytes)


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
    return {"bytes a key, all used": (f"{_state(made) / keys:.0f}", bar)}


def main() -> None:
    """Print the table."""
    with storing("tables", wanted="--store" in sys.argv):
        measure()


def measure() -> None:
    """Measure and print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", action="store_true", help="only what keys take")
    parser.add_argument("--store", action="store_true", help="keep the table for the page")
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
        if told.memory:
            found = memory_alone(name, make, given)
        else:
            found = line(name, make, given, told.repeats)
        print("\n".join(found), flush=True)


if __name__ == "__main__":
    main()
