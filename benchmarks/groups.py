"""Forecasts by group on real streams: calibration errors before and after, group by group.

Run as ``python -m benchmarks.groups [--data DIR]``.  Errors are C2 in
10 equal buckets, averaged over ten seeds after recalibration; a group of few rounds has a floor of
noise, about 10 y (1 - y)/rounds.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.store import add_store, storing
from calibrant.datasets.loaders import rows_of
from calibrant.groups import GroupRecalibrator
from calibrant.metrics import binned_calibration_error, brier

__all__ = ["Stream", "measured", "recalibrated", "recidivism", "survey", "table"]

SEEDS: Final = 10
FEWEST: Final = 80
"""Rounds below which a group is left out of the table: its error is mostly noise."""
BUCKETS: Final = 10
PIECE: Final = 10_000
"""Rounds of a batch: too few to start the compiler, which would take longer than they do."""

Reals = NDArray[np.float64]
Names = tuple[str, ...]


@dataclass(frozen=True)
class Stream:
    """Raw forecasts, outcomes and groups, in order; days are None where all is known at once."""

    title: str
    raw: Reals
    outcomes: NDArray[np.int64]
    groups: list[Names]
    issued: list[int] | None = None
    known: list[int] | None = None

    def members(self, group: str) -> NDArray[np.bool_]:
        """Return which rounds belong to a group."""
        return np.array([group in names for names in self.groups])

    @property
    def names(self) -> list[str]:
        """Groups that are large enough to be judged."""
        counts: dict[str, int] = {}
        for names in self.groups:
            for name in names:
                counts[name] = counts.get(name, 0) + 1
        return sorted(name for name, count in counts.items() if count >= FEWEST)


def recidivism(data: Path | None = None, column: str = "mturkpredprobs") -> Stream:
    """Return 1,000 forecasts about defendants, in the order of the file; groups as coded there."""
    rows = rows_of("recidivism/recid.csv.gz", data)
    ages = [int(row["age"]) for row in rows]
    bands = ["under 25" if age < 25 else "over 45" if age > 45 else "25 to 45" for age in ages]
    pairs = zip(rows, bands, strict=True)
    return Stream(
        f"recidivism, {column}",
        np.array([float(row[column]) for row in rows]),
        np.array([int(row["two_year_recid"]) for row in rows]),
        [(f"sex={row['sex']}", f"race={row['race']}", f"age {band}") for row, band in pairs],
    )


def survey(data: Path | None = None, *, late: bool = True) -> Stream:
    """Return the forecasts of recession by horizon and industry, with their true delays or none.

    The outcome of a quarter is known when the next one has begun, in which it is published.
    Without delays forecasters learn from each other's outcomes in the same quarter, which
    nobody could have had: it shows what delay costs.
    """
    rows = rows_of("spf_recession/spf_recession_probabilities.csv.gz", data)
    rows.sort(key=lambda row: row["DATE.issued"])
    due = [_quarter(row["DATE.FC.due"]) for row in rows]
    made = Stream(
        "survey of professional forecasters",
        np.array([float(row["Prob.Forecast"]) for row in rows]),
        np.array([int(row["gdp.first.recess"]) for row in rows]),
        [(f"horizon={row['FC.Horizon']}", f"industry={row['INDUSTRY']}") for row in rows],
        [_quarter(row["DATE.issued"]) for row in rows],
        [quarter + 1 for quarter in due],
    )
    return made if late else replace(made, issued=None, known=None)


def _quarter(text: str) -> int:
    day = date.fromisoformat(text)
    return day.year * 4 + (day.month - 1) // 3


def recalibrated(stream: Stream, seed: int) -> Reals:
    """Return the drawn forecasts, each outcome learned when it was known."""
    rec = GroupRecalibrator(seed=seed)
    if stream.issued is None or stream.known is None:
        parts = [slice(at, at + PIECE) for at in range(0, len(stream.raw), PIECE)]
        runs = [
            rec.replay(stream.raw[part], stream.outcomes[part], groups=stream.groups[part])
            for part in parts
        ]
        return np.concatenate([run.forecast for run in runs])
    drawn, waiting = np.empty(len(stream.raw)), list[tuple[int, int]]()
    for t, (raw, groups, now) in enumerate(
        zip(stream.raw.tolist(), stream.groups, stream.issued, strict=True)
    ):
        while waiting and waiting[0][0] <= now:
            number = heapq.heappop(waiting)[1]
            rec.observe(number, int(stream.outcomes[number]))
        drawn[t] = rec.forecast(raw, groups=groups).value
        heapq.heappush(waiting, (stream.known[t], t))
    return drawn


def measured(stream: Stream, forecasts: Reals) -> dict[str, float]:
    """Return C2 of all rounds and of each group."""
    found = {"all": np.ones(len(forecasts), np.bool_)}
    found |= {name: stream.members(name) for name in stream.names}
    return {
        name: binned_calibration_error(
            forecasts[inside], stream.outcomes[inside], buckets=BUCKETS, power=2.0
        )
        for name, inside in found.items()
    }


def table(ways: dict[str, Stream], seeds: int = SEEDS) -> Iterator[str]:
    """Yield a table of a stream that is played in some ways: C2 before, and after each of them."""
    first = next(iter(ways.values()))
    runs = {way: [recalibrated(played, seed) for seed in range(seeds)]
            for way, played in ways.items()}  # fmt: skip
    before = measured(first, first.raw)
    after = {way: [measured(first, run) for run in each] for way, each in runs.items()}
    raw = brier(first.raw, first.outcomes)
    scores = [np.mean([brier(run, first.outcomes) for run in each]) for each in runs.values()]
    told = " | ".join(f"{score:.4f}" for score in (raw, *scores))
    yield f"| {first.title} | rounds | before | {' | '.join(ways)} |"
    yield f"|---|---|---|{'---|' * len(ways)}"
    yield f"| Brier score | {len(first.raw):,} | {told} |"
    for name, error in before.items():
        rounds = len(first.raw) if name == "all" else int(first.members(name).sum())
        now = [float(np.mean([each[name] for each in found])) for found in after.values()]
        cells = " | ".join(f"{value:.4f}" for value in (error, *now))
        yield f"| C2, {name} | {rounds:,} | {cells} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    add_store(parser)
    given = parser.parse_args()
    columns = ("mturkpredprobs", "compaspredprobs.linear")
    tables = [{"after": recidivism(given.data, column)} for column in columns]
    late, prompt = (survey(given.data, late=late) for late in (True, False))
    tables.append({"after, true delays": late, "after, as if known at once": prompt})
    with storing("groups", wanted=given.store):
        for ways in tables:
            for line in table(ways, given.seeds):
                print(line, flush=True)
            print()


if __name__ == "__main__":
    main()
