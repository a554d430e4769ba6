"""Tables: a batch over many keys beside one stream with as many rounds, and what keys cost.

``python -m benchmarks.tables`` prints a table; ``--events`` and ``--keys`` say how much is played.
Events fall on the keys by Zipf's law with exponent 1.1; whose events they are is encoded before.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import cpu_seconds, interleave
from calibrant import Calibrant, Keys, Recalibrator, Table

Make = Callable[..., Any]
MAKES: dict[str, Make] = {
    "foster_hart, N = M = 10": lambda **told: Recalibrator(resolution=10, buckets=10, **told),
    "default": lambda **told: Calibrant(**told),
}
WARM = 30_000
"""Events of a batch that compiles what is measured."""


def events(count: int, keys: int) -> tuple[Any, ...]:
    """Return keys, raw forecasts and outcomes."""
    rng = np.random.default_rng(0)
    share = np.cumsum(1.0 / np.arange(1, keys + 1) ** 1.1)
    whose = rng.permutation(keys)[np.searchsorted(share / share[-1], rng.random(count))]
    raw = rng.random(count)
    return whose, raw, (rng.random(count) < raw**1.3).astype(np.uint8)


def line(name: str, make: Make, given: tuple[Any, ...], repeats: int) -> str:
    """Measure one kind of stream; return a line of the table."""
    whose, raw, outcomes = given
    keys, count = Keys.of(whose), len(raw)

    def lone() -> Any:
        stream = make(seed=1)
        stream.replay(raw[:WARM], outcomes[:WARM])
        return lambda: stream.replay(raw, outcomes)

    def table() -> Any:
        made = Table(make(), seed=1)
        made.replay(Keys.of(whose[:WARM]), raw[:WARM], outcomes[:WARM])
        made._admit(keys)
        return lambda: made.replay(keys, raw, outcomes)

    times = interleave({"lone": lone, "table": table}, rounds=count, repeats=repeats)
    made = Table(make(), seed=1)
    making = cpu_seconds(lambda: made._admit(keys)) / len(keys.names)
    made.replay(keys, raw, outcomes)
    made.to_bytes()
    stored: list[bytes] = []
    saving = cpu_seconds(lambda: stored.append(made.to_bytes())) / len(made)
    loading = cpu_seconds(lambda: Table.from_bytes(stored[0])) / len(made)
    ratio = times.ratio("table", "lone")
    micro = (f"{1e6 * seconds:.1f}" for seconds in (making, saving, loading))
    told = f"{times.nanoseconds('lone'):.0f} | {times.nanoseconds('table'):.0f} | {ratio:.2f}"
    return f"| {name} | {told} | {' | '.join(micro)} | {len(stored[0]) / len(made):.0f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    told = parser.parse_args()
    given = events(told.events, told.keys)
    spent = cpu_seconds(lambda: Keys.of(given[0])) / told.events * 1e9
    print(
        f"{told.events} events, {len(np.unique(given[0]))} keys; reading keys {spent:.0f} ns each"
    )
    print("| stream | alone, ns | table, ns | ratio | make, us | store, us | load, us | bytes |")
    print("|---|---|---|---|---|---|---|---|")
    for name, make in MAKES.items():
        print(line(name, make, given, told.repeats), flush=True)


if __name__ == "__main__":
    main()
