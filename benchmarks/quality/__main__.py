"""Hold a method against the bars, stream by stream and adversary by adversary."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.quality import adversaries, bars, comparators, page, score
from benchmarks.quality.methods import Factory, find, resolution
from benchmarks.quality.streams import DATA, Stream, panel
from benchmarks.store import add_store, storing

SEEDS, QUICK_SEEDS = 10, 2
QUICK_ROUNDS = 20_000
SETS = {
    "short": ("free917", "recidivism", "truthfulqa", "flares", "weather", "538", "paper",
              "drift data fetal"),
    "late": ("SPF", "ForecastBench"),
    "long": (),
    "games": (),
}  # fmt: skip
"""Streams by how their names begin; the long ones are the rest, and games are no streams."""


def main(arguments: list[str] | None = None) -> None:
    """Run, print and save; a bar that is missed is marked and does not stop anything."""
    chosen = parse(arguments)
    factory = find(chosen.method)
    streams, absent = panel(chosen.data)
    lines = list(all_lines(factory, streams, chosen))
    print(bars.table(lines))
    for source in absent:
        print(f"absent: {source}")
    missed = sum(line.binding and not line.met for line in lines)
    print(f"{len(lines)} figures, {missed} bars missed")
    save(chosen.method, lines, absent)
    if chosen.store:
        with storing("quality", part=chosen.set or "", wanted=True):
            print("\n".join(page.tables(lines)))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--method", default="calibrant", help="calibrant, or a calibrator's name")
    parser.add_argument("--data", type=pathlib.Path, default=DATA, help="directory of real data")
    parser.add_argument("--only", default="", help="streams and games named so, commas between")
    parser.add_argument("--set", choices=SETS, help="one of the sets that the page shows")
    parser.add_argument("--quick", action="store_true", help="fewer seeds, no long refits")
    parser.add_argument("--seeds", type=int, help="of the draws: 10, or 2 if quick")
    add_store(parser)
    chosen = parser.parse_args(arguments)
    if chosen.store and (chosen.only or chosen.quick):
        parser.error("--store must come without --only and --quick: the page shows whole sets")
    return chosen


def is_in(name: str, which: str | None) -> bool:
    """Say whether a stream is in a set."""
    found = [key for key, begins in SETS.items() if name.startswith(begins or "\n")]
    return which in (None, *(found or ["long"]))


def all_lines(
    factory: Factory, streams: list[Stream], chosen: argparse.Namespace
) -> Iterator[bars.Line]:
    """Yield the figures of all streams, then of all games."""
    usual = QUICK_SEEDS if chosen.quick else SEEDS
    seeds, N = chosen.seeds or usual, resolution(factory(seed=0))
    for stream in streams:
        if wanted(stream.name, chosen.only) and is_in(stream.name, chosen.set):
            told(stream.name)
            ours = scores(factory, stream, seeds)
            yield from bars.stream_lines(stream, *rivals(stream, chosen.quick), ours, N)
    for game in adversaries.games():
        if wanted(game.name, chosen.only) and chosen.set in (None, "games"):
            told(game.name)
            ours = adversaries.play(factory, game, seeds=seeds)
            yield from bars.game_lines(game.name, ours, adversaries.ROUNDS, N)


def wanted(name: str, only: str) -> bool:
    """Say whether a name has one of these parts in it."""
    return any(part in name for part in only.split(","))


def told(name: str) -> None:
    """Say on the error stream what is being done."""
    print(f"\r\033[K{name}", end="", file=sys.stderr, flush=True)


def rivals(stream: Stream, quick: bool) -> tuple[bars.Field, bars.Field]:
    """Return the scores of all outsiders, and of the package's own methods.

    A quick run leaves out the latter on long streams.
    """
    slow, fields = quick and len(stream) > QUICK_ROUNDS, (dict[str, bars.Scores](), {})
    for rival in comparators.competitors():
        if not (slow and rival.ours):
            fields[rival.ours][rival.name] = comparators.scores(rival, stream)
    return fields


def scores(factory: Factory, stream: Stream, seeds: int) -> dict[str, float]:
    """Return the scores of the mean forecast and of the draws, averaged over seeds."""
    timing = {"time": stream.issued, "available": stream.available} if stream.delayed else {}
    rows = []
    for seed in range(seeds):
        run = factory(seed=seed).replay(stream.raw, stream.outcomes, **timing)
        rows.append(measure(run.mean, run.forecast, stream.outcomes))
    return {what: float(np.mean([row[what] for row in rows])) for what in rows[0]}


def measure(mean: score.Floats, drawn: score.Floats, outcomes: score.Bits) -> dict[str, float]:
    """Return the scores of one run."""
    return {
        "brier": score.brier(mean, outcomes),
        "log_loss": score.log_loss(mean, outcomes),
        "c2": score.c2(drawn, outcomes),
        "c2_in_bins": score.c2_in_bins(mean, outcomes),
        "worst_block": score.worst_block(drawn, outcomes, exact=True),
        "worst_block_of_means": score.worst_block(mean, outcomes, exact=False),
        "smooth": score.smooth(mean, outcomes),
    }


def save(method: str, lines: list[bars.Line], absent: list[str]) -> None:
    """Write the figures to ``results/table-<method>.json``."""
    comparators.RESULTS.mkdir(exist_ok=True)
    data = {"method": method, "absent": absent, "lines": [line.to_dict() for line in lines]}
    path = comparators.RESULTS / f"table-{method}.json"
    path.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
