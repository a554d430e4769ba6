"""Rows of a table that are fetched before their turn, beside rows that are not.

``python -m benchmarks.arrival`` plays a batch over many keys in the order of arrival, and grouped
by key, by the table's compiled loop and by the same loop without :mod:`calibrant.kernels.fetch`.
All take turns on the same hot rows.  ``--events`` and ``--keys`` are those of ``tables``.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.measure import interleave
from benchmarks.store import storing
from benchmarks.tables import BARS, MAKES, Make, events, loop_of
from calibrant import Keys, Table
from calibrant.kernels import tables
from calibrant.kernels.compile import compiled
from calibrant.kernels.rounds import _make_replay
from calibrant.recalibrate.keyed_parts import Parts

NEVER = 1 << 40
"""So many rows before its turn no row is fetched."""
WARM = 30_000
PIECE = 200_000
"""Rounds that one stream plays at a time: new columns for all would be charged to it alone."""


def unfetched(table: Table, raw: Any, outcomes: Any) -> Any:
    """Return the loop over rows as it is if none is fetched before its turn, compiled."""
    program = table._rows.program
    steps = _make_replay(program.rule, program.kernel, program.safe)
    with mock.patch.object(tables, "AHEAD", NEVER):
        made = compiled(tables.make_replay_rows(steps), f"{program.name}_unfetched", nogil=True)
        # The first call compiles it, with the constants of now.
        flat, columns = table._rows.arena.flat(), _columns(table, 1)
        loop = loop_of(table, np.arange(2), raw[:1], outcomes[:1], *columns, replay=made)
        loop(flat, table._tiers.places(np.zeros(1, np.int64)))
    return made


def _columns(table: Table, size: int) -> list[Any]:
    return [np.empty(size), np.empty(size), np.empty(size if table._spec.transform else 0)]


def line(name: str, make: Make, given: tuple[Any, ...], repeats: int) -> list[str]:
    """Measure one kind of stream; return lines of the table."""
    whose, raw, outcomes = given
    keys, lone = Keys.of(whose), make(seed=1)
    lone.replay(raw[:WARM], outcomes[:WARM])
    table = Table(make(), seed=1, hot=len(keys.names))
    table.replay(keys, raw, outcomes)
    rows, made, flat = table._rows_of(keys), _columns(table, len(raw)), table._rows.arena.flat()
    parts, without = Parts.of(rows, len(table)), unfetched(table, raw, outcomes)
    sorted_columns = raw[parts.order], outcomes[parts.order]
    orders = {
        "in the order of arrival": (rows, np.arange(len(raw) + 1), raw, outcomes),
        "grouped by key": (parts.rows, parts.bounds, *sorted_columns),
    }

    def alone() -> None:
        for first in range(0, len(raw), PIECE):
            lone.replay(raw[first : first + PIECE], outcomes[first : first + PIECE])

    runs: dict[str, Any] = {"lone": alone}
    for order, (whom, *told) in orders.items():
        for how, replay in (("", None), (", not fetched", without)):
            loop = loop_of(table, *told, *made, replay=replay)
            runs[order + how] = partial(loop, flat, table._tiers.places(whom))
    times = interleave(
        {what: lambda run=run: run for what, run in runs.items()}, rounds=len(raw), repeats=repeats
    )
    found = [f"| {name} | one stream, ns an event | {times.nanoseconds('lone'):.0f} | |"]
    for what in list(runs)[1:]:
        bar = BARS[name][4] if what == "in the order of arrival" else ""
        found.append(f"| {name} | {what}, ns an event | {times.nanoseconds(what):.0f} | |")
        ratio = times.ratio(what, "lone")
        found.append(f"| {name} | {what}, times one stream | {ratio:.2f} | {bar} |")
    return found


def main() -> None:
    """Print the table."""
    with storing("arrival", wanted="--store" in sys.argv):
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--events", type=int, default=2_000_000)
        parser.add_argument("--keys", type=int, default=200_000)
        parser.add_argument("--repeats", type=int, default=3)
        parser.add_argument("--store", action="store_true", help="keep the table for the page")
        parser.add_argument("--only", choices=MAKES, help="only this kind of stream")
        told = parser.parse_args()
        given = events(told.events, told.keys)
        print(f"{told.events} events, {len(np.unique(given[0]))} keys")
        print("| stream | what | found | bar |")
        print("|---|---|---|---|")
        for name in [told.only] if told.only else MAKES:
            make = MAKES[name]
            print("\n".join(line(name, make, given, told.repeats)), flush=True)


if __name__ == "__main__":
    main()
