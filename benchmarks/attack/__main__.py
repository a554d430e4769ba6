"""Run all attacks, or those whose names are given, and print their table."""

from __future__ import annotations

import argparse
import random
import sys
import time

from benchmarks.attack import coins, interrupts, people, states, systems
from benchmarks.attack.registry import ATTACKS, Entry
from benchmarks.store import add_store, storing

__all__ = ["coins", "interrupts", "main", "people", "states", "systems"]

HEADINGS = ("attack", "tries", "damage", "what would be damage")


def main(arguments: list[str] | None = None) -> int:
    """Attack, print, and return 1 if anything did damage."""
    reader = argparse.ArgumentParser(prog="script/attack", description=__doc__)
    reader.add_argument("names", nargs="*", help="attacks; all without one")
    reader.add_argument("--quick", action="store_true", help="a few tries of each")
    reader.add_argument("--seed", type=int, default=1)
    add_store(reader)
    chosen = reader.parse_args(arguments)
    rows, total = [], 0
    for entry in ATTACKS:
        if not chosen.names or entry.name in chosen.names:
            tries, damage = attacked(entry, chosen.quick, chosen.seed)
            total += damage
            rows.append((entry.name, f"{tries:,}", f"{damage:,}", entry.damage))
    if not rows:
        reader.error(f"names must be among {', '.join(entry.name for entry in ATTACKS)}")
    with storing("attack", wanted=chosen.store):
        print(table(rows))
    return int(total > 0)


def attacked(entry: Entry, quick: bool, seed: int) -> tuple[int, int]:
    """Run an attack; return how often it tried, and how often it did damage."""
    tries = entry.quick if quick else entry.tries
    start = time.perf_counter()
    damage = entry.run(tries, random.Random(f"{seed} {entry.name}"))
    print(f"{entry.name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return tries, damage


def table(rows: list[tuple[str, ...]]) -> str:
    """Return rows as a table of Markdown."""
    lines = [HEADINGS, ("---", "---:", "---:", "---"), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
