"""What an expert that reads context would save: time of year and week, and features by name.

The expert is a logistic regression over hashed names, learned online: log-odds of the raw forecast,
a constant, each feature by its value, less its mean so far over its spread, and each third of its
values so far as a name of its own.  A mixture of the raw forecast and this expert goes to the
default in place of the raw forecast, so that the default stays behind.

    python -m benchmarks.context
"""

from __future__ import annotations

import argparse
import csv
import datetime
import gzip
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import Calibrant, datasets

Floats = NDArray[np.float64]
Features = list[dict[str, float]]
SIZE, STEP, CLIP, SHARE = 1 << 12, 0.05, 0.001, 1e-3
NEAR = 0.43
"""Two thirds of a normal law lie farther from its mean than so many spreads, half on each side."""


class Hashed:
    """A logistic regression over hashed names, with the steps of AdaGrad."""

    def __init__(self) -> None:
        self.weights, self.squares = np.zeros(SIZE), np.full(SIZE, 1e-8)
        self.weights[place("raw")] = 1.0
        self.seen: dict[str, tuple[int, float, float]] = {}

    def read(self, raw: float, features: dict[str, float]) -> tuple[NDArray[np.int64], Floats]:
        """Return places and values of a round."""
        p = min(max(raw, CLIP), 1.0 - CLIP)
        told = {"raw": np.log(p / (1.0 - p)), "1": 1.0}
        for name, value in features.items():
            scaled = self.scaled(name, value)
            told[name] = scaled
            told[f"{name} {int(scaled > NEAR) - int(scaled < -NEAR)}"] = 1.0
        return np.array([place(name) for name in told]), np.array([*told.values()])

    def scaled(self, name: str, value: float) -> float:
        """Return a value less the mean so far, over the spread so far."""
        count, mean, square = self.seen.get(name, (0, 0.0, 0.0))
        moved = value - mean
        mean += moved / (count + 1)
        square += moved * (value - mean)
        self.seen[name] = count + 1, mean, square
        spread = np.sqrt(square / (count + 1))
        return float(np.clip((value - mean) / spread, -3.0, 3.0)) if spread > 0.0 else 0.0

    def say(self, at: NDArray[np.int64], values: Floats) -> float:
        """Return the probability."""
        odds = float(np.clip(self.weights[at] @ values, -7.0, 7.0))
        return 1.0 / (1.0 + np.exp(-odds))

    def learn(self, at: NDArray[np.int64], values: Floats, error: float) -> None:
        """Take a step."""
        slope = error * values
        np.add.at(self.squares, at, slope * slope)
        np.add.at(self.weights, at, -STEP * slope / np.sqrt(self.squares[at]))


def place(name: str) -> int:
    """Return where the weight of a name stands."""
    return zlib.crc32(name.encode()) % SIZE


def mixed(raw: Floats, outcomes: NDArray[np.uint8], context: Features) -> Floats:
    """Return mixtures of raw forecasts and the expert with context, weighed by likelihood."""
    expert, weight, made = Hashed(), 0.5, np.empty(len(raw))
    for t, (p, y, told) in enumerate(zip(raw.tolist(), outcomes.tolist(), context, strict=True)):
        at, values = expert.read(p, told)
        q, p = expert.say(at, values), min(max(p, CLIP), 1.0 - CLIP)
        made[t] = weight * q + (1.0 - weight) * p
        own, other = (q, p) if y else (1.0 - q, 1.0 - p)
        weight = weight * own / (weight * own + (1.0 - weight) * other)
        weight = (1.0 - SHARE) * weight + SHARE * 0.5
        expert.learn(at, values, q - y)
    return made


def streams() -> Iterator[tuple[str, Any, Features]]:
    """Yield streams with their context, a dictionary a round."""
    for table in ("bank", "credit_default"):
        stream = datasets.load_drift(table)
        features, _ = datasets.load_drifting_table(table)
        rows = features[len(features) - len(stream.raw) :]
        yield f"{table}, features", stream, named(rows)
    stream, (members, _) = datasets.load_rain("frankfurt"), datasets.load_ensemble("frankfurt")
    yield "Frankfurt, year and week", stream, [season(day) for day in days()]
    told = np.column_stack([members.mean(axis=1), members.std(axis=1), members.max(axis=1)])
    yield "Frankfurt, ensemble", stream, named(told)


def named(rows: Floats) -> Features:
    """Return rows by the names of their columns."""
    names = [f"column {k}" for k in range(rows.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in rows.tolist()]


def days() -> list[datetime.date]:
    """Return the days of the forecasts of Frankfurt."""
    with gzip.open(datasets.path("weather_pop/frankfurt_ecmwf.csv.gz"), "rt") as lines:
        return [datetime.date.fromisoformat(row["date"]) for row in csv.DictReader(lines)]


def season(day: datetime.date) -> dict[str, float]:
    """Return where in the year and in the week a day is."""
    turn = 2.0 * np.pi * day.timetuple().tm_yday / 365.25
    week = {f"weekday {day.weekday()}": 1.0}
    return week | {"sine": float(np.sin(turn)), "cosine": float(np.cos(turn))}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30_000, help="of each stream, at most")
    rounds = parser.parse_args().rounds
    print("| stream and context | T | raw | the default | with context | change |")
    print("|---|---|---|---|---|---|")
    for name, stream, context in streams():
        raw, y = stream.raw[:rounds], stream.outcomes[:rounds]
        made = mixed(raw, y, context[: len(raw)])
        means = [raw, *(Calibrant(seed=1).replay(p, y).mean for p in (raw, made))]
        scores = [float(np.mean((p - y) ** 2)) for p in means]
        told = " | ".join(f"{score:.4f}" for score in scores)
        change = 100.0 * (scores[2] / scores[1] - 1.0)
        print(f"| {name} | {len(raw):,} | {told} | {change:+.1f} % |", flush=True)


if __name__ == "__main__":
    main()
