"""What an expert that reads context saves, and what it costs where there is nothing to read.

Each stream is played by the default and by ``Calibrant(context=True)``, which is told the columns
named here: features of two tables, of an ensemble of weather forecasts, time of year and week; and
made-up streams whose features tell nothing, or another thing from the middle on.

    python -m benchmarks.context
"""

from __future__ import annotations

import argparse
import csv
import datetime
import gzip
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.store import add_store, storing
from calibrant import Calibrant, datasets

Floats = NDArray[np.float64]
Columns = dict[str, Any]
Stream = tuple[str, Floats, NDArray[Any], Columns]


def streams(rounds: int) -> Iterator[Stream]:
    """Yield name, raw forecasts, outcomes and context of each stream."""
    for table in ("bank", "credit_default"):
        stream = datasets.load_drift(table)
        features, _ = datasets.load_drifting_table(table)
        rows = features[len(features) - len(stream.raw) :]
        yield f"{table}, features", stream.raw, stream.outcomes, named(rows)
    stream, (members, _) = datasets.load_rain("frankfurt"), datasets.load_ensemble("frankfurt")
    told = np.column_stack([members.mean(axis=1), members.std(axis=1), members.max(axis=1)])
    yield "Frankfurt, ensemble", stream.raw, stream.outcomes, named(told)
    yield "Frankfurt, year and week", stream.raw, stream.outcomes, season(days())
    yield made("made up, useless features", 0.0, 0.0, rounds)
    yield made("made up, features that jump", 1.0, -1.0, rounds)


def named(rows: Floats) -> Columns:
    """Return rows by the names of their columns."""
    return {f"column {k}": rows[:, k] for k in range(rows.shape[1])}


def days() -> list[datetime.date]:
    """Return the days of the forecasts of Frankfurt."""
    with gzip.open(datasets.path("weather_pop/frankfurt_ecmwf.csv.gz"), "rt") as lines:
        return [datetime.date.fromisoformat(row["date"]) for row in csv.DictReader(lines)]


def season(told: list[datetime.date]) -> Columns:
    """Return where in the year and in the week days are."""
    turn = 2.0 * np.pi * np.array([day.timetuple().tm_yday for day in told]) / 365.25
    week = [day.strftime("%A") for day in told]
    return {"sine": np.sin(turn), "cosine": np.cos(turn), "day": week}


def made(name: str, first: float, then: float, rounds: int, seed: int = 1) -> Stream:
    """Return a stream whose raw forecasts leave out a feature that counts so much.

    That is for the first half of the rounds, and for the second.
    """
    rng = np.random.default_rng(seed)
    told = rng.normal(size=(rounds, 10))
    odds = 1.5 * rng.normal(size=rounds)
    weight = np.where(np.arange(rounds) < rounds // 2, first, then)
    outcomes = rng.random(rounds) < 1.0 / (1.0 + np.exp(-odds - weight * told[:, 0]))
    kinds = rng.choice(["gold", "silver", "none"], rounds).tolist()
    return name, 1.0 / (1.0 + np.exp(-odds)), outcomes.astype(int), named(told) | {"plan": kinds}


def means(raw: Floats, y: NDArray[Any], context: Columns) -> Iterator[Floats]:
    """Yield the raw forecasts, and the means without and with context."""
    yield raw
    yield Calibrant(seed=1).replay(raw, y).mean
    yield Calibrant(seed=1, context=True).replay(raw, y, context=context).mean


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30_000, help="of each stream, at most")
    add_store(parser)
    given = parser.parse_args()
    with storing("context", wanted=given.store):
        print("| stream and context | T | raw | the default | with context | change |")
        print("|---|---|---|---|---|---|")
        for stream in streams(given.rounds):
            print(line(*stream, given.rounds), flush=True)


def line(name: str, raw: Floats, y: NDArray[Any], context: Columns, rounds: int) -> str:
    """Return the line of a stream, of at most so many rounds."""
    raw, y = raw[:rounds], y[:rounds]
    told = {feature: column[: len(raw)] for feature, column in context.items()}
    scores = [float(np.mean((p - y) ** 2)) for p in means(raw, y, told)]
    listed = " | ".join(f"{score:.4f}" for score in scores)
    change = 100.0 * (scores[2] / scores[1] - 1.0)
    return f"| {name} | {len(raw):,} | {listed} | {change:+.2f} % |"


if __name__ == "__main__":
    main()
