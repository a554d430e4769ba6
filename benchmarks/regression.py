"""Forecasts of numbers: weather ensembles, a stream of normals, and an adversary.

Run as ``python -m benchmarks.regression`` (``--data DIR`` names a directory of real streams,
instead of those that came along).
Calibration is the PIT's: the sum of squared differences to equal shares of ten intervals, and the
distance of coverage from its level, averaged over 19 levels.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.store import add_store, storing
from calibrant.datasets import load_ensemble
from calibrant.regression import (
    ConformalInterval,
    Distributions,
    IntervalCertificate,
    QuantileRecalibrator,
    interval_methods,
    metrics,
)

__all__ = ["adversary", "dressed", "intervals", "recalibrated", "stream"]

Reals = NDArray[np.float64]
LEVELS = 19
SCALED = ("aci", "saocp", "sf_ogd")


def dressed(members: Reals) -> Distributions:
    """Return ensembles of rain with one dry member more, straight between and above members.

    Rain is often 0 where no member is: without an atom there, nothing could become one.
    """
    count = members.shape[1] + 2
    dry = np.zeros((len(members), 2))
    values = np.column_stack([dry, np.sort(members, axis=1)])
    return Distributions.from_quantiles(np.arange(count) / count, values)


def stream(rounds: int, seed: int = 0) -> tuple[Distributions, Reals]:
    """Return normal forecasts half as wide as they should be and too low, and outcomes."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=rounds)
    raw = Distributions.normal(mean, np.full(rounds, 0.5))
    return raw, mean + 0.3 + rng.normal(size=rounds)


def recalibrated(name: str, raw: Distributions, outcomes: Reals) -> Iterator[str]:
    """Yield a line for the raw forecasts and one for each method."""
    levels = np.arange(1, LEVELS + 1) / (LEVELS + 1)
    pit = metrics.pit_histogram(raw, outcomes, intervals=10)
    found = metrics.pit(raw, outcomes)
    off = np.abs((found[:, None] <= levels).mean(axis=0) - levels).mean()
    yield line(name, "raw", metrics.crps(raw, outcomes), pit.error, off, "")
    for method in ("mixed", "pit", "tracker"):
        rec = QuantileRecalibrator(method, levels=LEVELS, seed=1)
        run = rec.replay(raw, outcomes)
        pit = metrics.pit_histogram(run.forecast, outcomes, intervals=10)
        crps, record = metrics.crps(run.forecast, outcomes), rec.certificate()
        held = "holds" if record.holds else "BROKEN"
        yield line(name, method, crps, pit.error, record.error, held)


def line(name: str, method: str, crps: float, pit: float, off: float, more: str) -> str:
    """Return a line of the first table."""
    return f"| {name} | {method} | {crps:.4f} | {pit:.4f} | {off:.4f} | {more} |"


def intervals(name: str, centres: Reals, outcomes: Reals) -> Iterator[str]:
    """Yield a line for each conformal method at coverage 0.9."""
    for method in interval_methods.names():
        band = ConformalInterval(method, coverage=0.9, seed=1)
        run, record = band.replay(centres, outcomes), band.certificate()
        worst = np.abs(metrics.windowed_coverage(run.covered, window=100) - 0.9).max()
        half = (run.high - run.low) / 2.0
        finite = np.isfinite(half)
        bound = limit(record, 4)
        told = f"{record.coverage:.4f} | {worst:.4f} | {half[finite].mean():.3f}"
        yield f"| {name} | `{method}` | {told} | {(~finite).mean():.4f} | {bound} |"


def adversary(rounds: int = 2_000) -> Iterator[str]:
    """Yield how far an adversary who sees the quantile or the radius gets, and the bound."""
    yield "| method | wanted | off by | at most |\n|---|---|---|---|"
    raw = Distributions.normal([0.0], [1.0])[0]
    rec = QuantileRecalibrator("tracker", levels=[0.5, 0.9], seed=1)
    for _ in range(rounds):
        ticket = rec.forecast(raw)
        aim = float(ticket.tracked[0])
        rec.observe(ticket, aim + 1e-6 if np.isfinite(aim) else 0.0)
    for row in rec.certificate().levels:
        assert row.bound is not None
        yield f"| `tracker` | {row.level} | {row.measured:.5f} | {row.bound.value:.5f} |"
    for method in interval_methods.names():
        options: dict[str, Any] = {"scale": 1.0} if method in SCALED else {}
        band = ConformalInterval(method, coverage=0.9, score="given", seed=1, **options)
        for _ in range(rounds):
            made = band.forecast()
            band.observe(made, min(max(made.radius + 1e-9, 0.0), 1.0))
        record = band.certificate()
        off = abs(record.coverage - 0.9)
        yield f"| `{method}` | 0.9 | {off:.5f} | {limit(record, 5)} |"


def limit(record: IntervalCertificate, digits: int) -> str:
    """Return by how much coverage may be off; a bound on regret says nothing about that."""
    if record.bound is None or record.quantity == "regret":
        return "none"
    return f"{record.bound.value:.{digits}f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--data", type=Path)
    add_store(parser)
    told = parser.parse_args()
    weather = {"Frankfurt": load_ensemble("frankfurt", data=told.data)}
    for lead in (1, 5, 10):
        weather[f"monsoon {lead} d"] = load_ensemble("monsoon", lead=lead, data=told.data)
    with storing("regression", wanted=told.store):
        for rows in (distributions(weather, told.rounds), bands(weather, told.rounds), adversary()):
            for row in rows:
                print(row, flush=True)
            print()


Weather = dict[str, tuple[Reals, Reals]]


def distributions(weather: Weather, rounds: int) -> Iterator[str]:
    """Yield the table of recalibrated distributions."""
    yield "| stream | method | CRPS | PIT | coverage | certificate |\n|---|---|---|---|---|---|"
    for name, (members, outcomes) in weather.items():
        yield from recalibrated(name, dressed(members), outcomes)
    yield from recalibrated("normals", *stream(rounds))


def bands(weather: Weather, rounds: int) -> Iterator[str]:
    """Yield the table of intervals."""
    yield "| stream | method | coverage | window | half-width | infinite | bound |"
    yield "|---|---|---|---|---|---|---|"
    for name, (members, outcomes) in list(weather.items())[:2]:
        yield from intervals(name, members.mean(axis=1), outcomes)
    raw, outcomes = stream(rounds)
    yield from intervals("normals", raw.values[:, 0], outcomes)


if __name__ == "__main__":
    main()
