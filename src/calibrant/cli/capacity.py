"""``calibrant capacity``: how large a machine a fleet of streams needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from calibrant.capacity import Plan, Rush, measured, plan, rush
from calibrant.capacity.figures import stored
from calibrant.cli import screen
from calibrant.cli.options import among, spread

COLUMNS: Final = {"what": "left", "how much": "right", "why": "left"}
WIDTH: Final = 100
UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True)
class Fleet:
    """How many streams there are, and what they are asked.

    events_per_second RATE
        Forecasts per second, over all keys.
    keys COUNT
        Number of streams.
    delay SECONDS
        Average time until an outcome is known.
    rounds_per_key ROUNDS
        Rounds of each key at which sizes are estimated.
    method NAME
        Kind of the streams: one of {}.
    hot PART
        Fraction of the keys that stays unpacked.
    checkpoint SECONDS
        Time between checkpoints of what has changed.
    burst TIMES
        How many times faster forecasts arrive in bursts, which take a tenth of the time.
    seed SEED
        Seed of the simulation.
    """

    events_per_second: float = 100.0
    keys: int = 1_000
    delay: float = 0.0
    rounds_per_key: float = 100.0
    method: str = among(lambda: list(stored()["methods"]), "default")
    hot: float = 0.1
    checkpoint: float = 60.0
    burst: float = 5.0
    seed: int = 0
    as_json: bool = False


@spread
def capacity(fleet: Fleet) -> None:
    """Estimate memory, cores and disk space for a fleet of streams.

    The constants were measured, and are stored with this version; bursts and slow
    outcomes are simulated, event by event.

    \b
    Example:
      calibrant capacity --events-per-second 5000 --keys 1000000 --delay 86400
    """
    made = plan(
        fleet.events_per_second,
        fleet.keys,
        delay=fleet.delay,
        rounds_per_key=fleet.rounds_per_key,
        method=fleet.method,
        hot=fleet.hot,
        every=fleet.checkpoint,
    )
    seen = rush(made, burst=fleet.burst, seed=fleet.seed)
    if fleet.as_json:
        screen.tell_json({"plan": asdict(made), "simulation": asdict(seen), "source": source()})
        return
    title = f"{fleet.keys:,} keys, {fleet.events_per_second:,g} forecasts a second, {fleet.method}"
    screen.show(COLUMNS, _lines(made, seen), title, width=WIDTH)
    screen.say(f"constants by {stored()['command']}, {source()['machine']['processor']}")


def source() -> dict[str, Any]:
    """Return by which command and where the constants were measured."""
    return {name: told for name, told in stored().items() if name != "methods"}


def _lines(made: Plan, seen: Rush) -> list[list[str]]:
    """Return the rows of the table."""
    figures, times = measured(made.figures.method), f"bursts of {seen.burst:g} times the rate"
    split = f"{made.split_hot_key:,.0f} with its {figures.buckets} buckets on as many cores"
    one = figures.buckets == 1
    return [
        ["open tickets", f"{made.open_tickets:,.0f}", "rate times delay"],
        [
            "  at most",
            f"{max(made.most_open, seen.most_open):,.0f}",
            f"by chance, and with {times}",
        ],
        ["memory", size(made.memory), f"{made.hot:.0%} of keys unpacked, and the tickets"],
        ["cores, batches", f"{made.cores}", f"{figures.table_ns:.0f} ns a round, half busy"],
        ["cores, single calls", f"{made.called_cores}", f"{figures.call_us:.1f} us a round"],
        ["wait, 99 of 100", f"{1e3 * seen.wait_99:.3g} ms", f"simulated, {times}"],
        ["longest wait", f"{1e3 * seen.longest:.3g} ms", "simulated"],
        ["snapshot", size(made.snapshot), f"{made.snapshot_seconds:.3g} s of CPU to pack"],
        ["to open it", f"{made.open_seconds:.3g} s", "of CPU, all keys"],
        ["checkpoint", size(made.checkpoint), f"{made.touched:,.0f} keys in {made.every:g} s"],
        ["one key at most", f"{made.hot_key:,.0f}/s", "cannot be split" if one else split],
    ]


def size(count: float) -> str:
    """Return a number of bytes for people.

    >>> size(999), size(1_500), size(2.34e9)
    ('999 B', '1.5 kB', '2.3 GB')
    """
    power = 0
    while count >= 999.5 and power < len(UNITS) - 1:
        count, power = count / 1e3, power + 1
    return f"{count:.3g} {UNITS[power]}" if power == 0 else f"{count:.1f} {UNITS[power]}"
