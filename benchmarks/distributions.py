"""Forecasts of numbers that are biased, too narrow, adrift or in season: what recalibration does.

Run as ``python -m benchmarks.distributions`` (``--rounds``, ``--seeds``).  A line is a series: the
CRPS of each way over the smallest of all, the CRPS of the default, ``mixed``, over the raw
forecast's, how often 90 % intervals covered, and how often any quantile was infinite.  Experts,
weights and the last stage of the default were chosen on other series with other seeds, which
``--half choose`` plays.

The other ways are the raw forecast, ``pit`` and ``tracker``; ``shift``, one expert of the default
alone (all errors remembered); and ``emos``, the normal distribution whose mean is a line in the
raw mean and whose variance is a line in the raw variance, fitted to the CRPS of the last 100,
300 or 1,000 rounds every 50 rounds (nonhomogeneous Gaussian regression), the best of the three.

``--half late`` plays series whose outcomes are late: because they are high, or because many
forecasts wait for one and the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

from benchmarks.store import add_store, storing
from calibrant.kernels import shifts
from calibrant.regression import Distributions, QuantileRecalibrator, metrics
from calibrant.regression.mixed import _numbers, shifted

__all__ = ["CHOOSE", "REPORT", "ways"]

Reals = NDArray[np.float64]
Series = tuple[Distributions, Reals]
Rng = np.random.Generator

YEAR = 365
WINDOWS = (100, 300, 1000)
EVERY = 50
PARTS = {"report": "", "choose": "choose", "late": "late"}
"""What the file of each half is called, behind the name of the command."""
ENDS = (0.05, 0.95)


def truth(rng: Rng, rounds: int) -> tuple[Reals, Reals]:
    """Return the mean and the spread of a year's weather: seasons, days and doubt."""
    days = np.arange(rounds)
    mean = 10.0 + 3.0 * np.sin(2.0 * np.pi * days / YEAR) + 2.0 * rng.normal(size=rounds)
    return mean, np.exp(0.3 * rng.normal(size=rounds))


def made(
    rng: Rng,
    rounds: int,
    *,
    off: Reals | float = 0.0,
    narrow: Reals | float = 1.0,
    noise: Callable[[Rng, int], Reals] | None = None,
) -> Series:
    """Return normal forecasts that are ``off`` and ``narrow`` times as wide as they should be."""
    mean, sd = truth(rng, rounds)
    drawn = rng.normal(size=rounds) if noise is None else noise(rng, rounds)
    return Distributions.normal(mean + off, sd * narrow), mean + sd * drawn


def season(rounds: int, days: float = YEAR, phase: float = 0.0) -> Reals:
    return np.sin(2.0 * np.pi * np.arange(rounds) / days + phase)


def stretches(rng: Rng, rounds: int, length: int) -> Reals:
    """Return numbers that are drawn anew every so many rounds."""
    return rng.normal(size=rounds // length + 1)[np.arange(rounds) // length]


def ensemble(rng: Rng, rounds: int) -> Series:
    """Return 20 members, too high and half as wide as they should be."""
    mean, sd = truth(rng, rounds)
    members = mean[:, None] + 0.8 + 0.5 * sd[:, None] * rng.normal(size=(rounds, 20))
    return Distributions.from_samples(members), mean + sd * rng.normal(size=rounds)


def few_quantiles(rng: Rng, rounds: int) -> Series:
    """Return five quantiles, too low and too narrow."""
    mean, sd = truth(rng, rounds)
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    shape = np.array([NormalDist().inv_cdf(p) for p in levels])
    values = (mean - 1.0)[:, None] + 0.6 * sd[:, None] * shape
    return Distributions.from_quantiles(levels, values), mean + sd * rng.normal(size=rounds)


def sloped(rng: Rng, rounds: int) -> Series:
    """Return forecasts that follow the mean too little."""
    mean, sd = truth(rng, rounds)
    return Distributions.normal(5.0 + 0.7 * mean, sd), mean + sd * rng.normal(size=rounds)


def blind(rng: Rng, rounds: int) -> Series:
    """Return forecasts whose spread says nothing."""
    mean, sd = truth(rng, rounds)
    return Distributions.normal(mean, sd), mean + 1.2 * rng.normal(size=rounds)


def gamma(rng: Rng, rounds: int) -> Reals:
    return (rng.gamma(2.0, size=rounds) - 2.0) / np.sqrt(2.0)


def spiked(rng: Rng, rounds: int) -> Reals:
    wild = np.where(rng.random(rounds) < 0.02, 20.0 * rng.normal(size=rounds), 0.0)
    return rng.normal(size=rounds) + wild


CHOOSE: dict[str, Callable[[Rng, int], Series]] = {
    "right": made,
    "bias": lambda r, n: made(r, n, off=1.5),
    "narrow": lambda r, n: made(r, n, narrow=0.4),
    "drift": lambda r, n: made(r, n, off=0.05 * np.cumsum(r.normal(size=n))),
    "seasons": lambda r, n: made(
        r, n, off=1.5 * season(n), narrow=np.exp(-0.5 * season(n, phase=np.pi / 2))
    ),
    "jump": lambda r, n: made(r, n, off=np.where(np.arange(n) < n // 2, 0.0, 2.0)),
    "tails": lambda r, n: made(r, n, narrow=1.5, noise=lambda g, k: 0.7 * g.standard_t(3, k)),
    "ensemble": ensemble,
}
"""Series on which experts, weights and the last stage were chosen."""

REPORT: dict[str, Callable[[Rng, int], Series]] = {
    "right": made,
    "far": lambda r, n: made(r, n, off=10.0, narrow=0.5),
    "wide": lambda r, n: made(r, n, narrow=2.5),
    "slope": sloped,
    "blind": blind,
    "trend": lambda r, n: made(
        r, n, off=3.0 * np.arange(n) / n, narrow=1.0 / (0.5 + 2.0 * np.arange(n) / n)
    ),
    "quarters": lambda r, n: made(r, n, off=season(n, 90), narrow=0.7),
    "jumps": lambda r, n: made(
        r, n, off=2.0 * stretches(r, n, 400), narrow=np.exp(0.5 * stretches(r, n, 400))
    ),
    "skewed": lambda r, n: made(r, n, off=0.5, noise=gamma),
    "spikes": lambda r, n: made(r, n, off=0.5, noise=spiked),
    "laplace": lambda r, n: made(r, n, noise=lambda g, k: g.laplace(size=k) / np.sqrt(2.0)),
    "quantiles": few_quantiles,
}
"""Series on which nothing was chosen."""


Lags = Callable[[Rng, Distributions, Reals], Reals]


def high(lag: float) -> Lags:
    """Return delays of outcomes above the middle of the forecast."""
    return lambda rng, raw, y: np.where(y > raw.quantile([0.5])[:, 0], lag, 0.0)


def heavy(rng: Rng, raw: Distributions, y: Reals) -> Reals:
    """Return delays with a heavy tail, twenty times as long above the middle of the forecast."""
    scale = np.where(y > raw.quantile([0.5])[:, 0], 20.0, 1.0)
    return np.minimum(np.floor(scale * (rng.random(len(y)) ** (-1 / 1.5) - 1.0)), 5_000.0)


def all_by(lag: float) -> Lags:
    return lambda rng, raw, y: np.full(len(y), lag)


def crowded(
    size: int, **options: float
) -> Callable[[Rng, int], tuple[Distributions, Reals, Reals]]:
    """Return what makes forecasts of which ``size`` in a row share their luck and its time."""

    def make(rng: Rng, rounds: int) -> tuple[Distributions, Reals, Reals]:
        crowd = np.arange(rounds) // size
        raw, y = made(rng, rounds, noise=lambda g, n: g.normal(size=n)[crowd], **options)
        return raw, y, (crowd + 1.0) * size - 0.5

    return make


def delayed(
    lags: Lags, **options: float
) -> Callable[[Rng, int], tuple[Distributions, Reals, Reals]]:
    """Return what makes forecasts whose outcomes are late by so much."""

    def make(rng: Rng, rounds: int) -> tuple[Distributions, Reals, Reals]:
        raw, y = made(rng, rounds, **options)
        return raw, y, np.arange(rounds) + lags(rng, raw, y)

    return make


FAR = {"off": 2.0, "narrow": 0.5}
LATE: dict[str, Callable[[Rng, int], tuple[Distributions, Reals, Reals]]] = {
    **{f"crowds of {n}": crowded(n) for n in (10, 100, 300)},
    **{f"high ones late by {n}": delayed(high(n)) for n in (20, 200)},
    "heavy tail, high ones later": delayed(heavy),
    "all late by 100": delayed(all_by(100.0)),
    "crowds of 10, far": crowded(10, **FAR),
    "high ones late by 20, far": delayed(high(20.0), **FAR),
    "all late by 20, far": delayed(all_by(20.0), **FAR),
    "all late by 100, far": delayed(all_by(100.0), **FAR),
}
"""Series whose outcomes are late; those that are far are 2 off and half as wide as they should."""


def late_row(name: str, rounds: int, seeds: int) -> str:
    """Return the line of a series whose outcomes are late."""
    found, place = [], list(LATE).index(name)
    for seed in range(seeds):
        raw, y, known = LATE[name](np.random.default_rng([3, seed, place]), rounds)
        time, before = np.arange(rounds) * 1.0, metrics.crps(raw, y)
        cells = [covered(raw.quantile(ENDS), y)]
        for when in (time, known):
            run = (
                QuantileRecalibrator(seed=seed).compile().replay(raw, y, time=time, available=when)
            )
            cells += [metrics.crps(run.forecast, y) / before, covered(run.quantiles, y)]
        found.append(cells)
    own, prompt, _, late, after = np.mean(found, axis=0).tolist()
    most = max(cells[3] for cells in found)
    return f"| {name} | {prompt:.3f} | {late:.4f} | {most:.4f} | {own:.3f} | {after:.3f} |"


def late_table(rounds: int, seeds: int) -> None:
    """Print the table of late outcomes."""
    print("| series | at once, over raw | late, over raw | at worst | raw covered | covered |")
    print("|---|---|---|---|---|---|")
    for name in LATE:
        print(late_row(name, rounds, seeds), flush=True)


# -------------------------------------------------------------------------------- the ways


def alone(raw: Distributions, outcomes: Reals) -> Distributions:
    """Return what the first expert by moments says, who remembers all errors alike."""
    numbers, told = _numbers(raw), np.empty((len(outcomes), shifts.TOLD))
    marks, room, said = shifts.fresh(), [0.0] * shifts.ROOM, [0.0] * shifts.SAID
    for t, y in enumerate(outcomes.tolist()):
        row = numbers[t].tolist()
        shifts.announce(marks, 0, row, 0, room, said, told.ravel(), shifts.TOLD * t)
        told[t, 2:] = said[:2]
        shifts.learn(marks, 0, row, 0, room, said, y, 1.0)
    return shifted(raw, told)


def emos(raw: Distributions, outcomes: Reals, window: int) -> Distributions:
    """Return the regression of means and variances, refitted to the last rounds."""
    numbers = _numbers(raw)
    x, v = numbers.mean(axis=1), numbers.var(axis=1) + 1e-9
    mean, sd, fitted = x.copy(), np.sqrt(v), np.array([0.0, 1.0, 0.0, 1.0])
    for t in range(EVERY, len(outcomes), EVERY):
        past, now = slice(max(0, t - window), t), slice(t, t + EVERY)
        found = minimize(emos_loss, fitted, (x[past], v[past], outcomes[past]), "L-BFGS-B")
        fitted = found.x
        mean[now], sd[now] = emos_of(fitted, x[now], v[now])
    return Distributions.normal(mean, sd)


def emos_of(fitted: Reals, x: Reals, v: Reals) -> tuple[Reals, Reals]:
    """Return means and deviations; the variance's line has squares for slopes."""
    a, b, c, d = fitted
    return a + b * x, np.sqrt(1e-6 + c * c + d * d * v)


def emos_loss(fitted: Reals, x: Reals, v: Reals, y: Reals) -> float:
    mean, sd = emos_of(fitted, x, v)
    z = (y - mean) / sd
    density = np.exp(-z * z / 2.0) / np.sqrt(2.0 * np.pi)
    return float((sd * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - np.pi**-0.5)).mean())


def covered(quantiles: Reals, outcomes: Reals) -> float:
    """Return how often outcomes lay between the outermost quantiles."""
    inside = (quantiles[:, 0] <= outcomes) & (outcomes <= quantiles[:, -1])
    return float(inside.mean())


def ways(raw: Distributions, outcomes: Reals, seed: int) -> dict[str, tuple[float, float, float]]:
    """Return CRPS, coverage of the 90 % interval and share of infinite quantiles of each way."""
    found = {}
    plain = {"raw": raw, "shift": alone(raw, outcomes)}
    for name, rows in plain.items():
        found[name] = metrics.crps(rows, outcomes), covered(rows.quantile(ENDS), outcomes), 0.0
    fits = [emos(raw, outcomes, window) for window in WINDOWS]
    best = min(fits, key=lambda rows: metrics.crps(rows, outcomes))
    found["emos"] = metrics.crps(best, outcomes), covered(best.quantile(ENDS), outcomes), 0.0
    for method in ("pit", "tracker", "mixed"):
        run = QuantileRecalibrator(method, seed=seed).replay(raw, outcomes)
        lost = float(np.isinf(run.quantiles).any(axis=1).mean())
        found[method] = (
            metrics.crps(run.forecast, outcomes),
            covered(run.quantiles, outcomes),
            lost,
        )
    return found


def averaged(
    name: str, series: dict[str, Callable[[Rng, int], Series]], told: argparse.Namespace
) -> dict[str, Reals]:
    """Return the means over seeds of all ways of a series."""
    place = list(series).index(name)
    runs = [
        ways(*series[name](np.random.default_rng([told.first, seed, place]), told.rounds), seed)
        for seed in range(told.seeds)
    ]
    return {way: np.mean([run[way] for run in runs], axis=0) for way in runs[0]}


def main() -> None:
    """Print the table, and whether the bars are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--half", choices=("report", "choose", "late"), default="report")
    add_store(parser)
    told = parser.parse_args()
    with storing("distributions", part=PARTS[told.half], wanted=told.store):
        if told.half == "late":
            late_table(told.rounds, told.seeds)
        else:
            whole_table(told)


def whole_table(told: argparse.Namespace) -> None:
    """Print the table of series whose outcomes are prompt, and whether the bars are met."""
    told.first = 1 if told.half == "report" else 2
    series, order = REPORT if told.half == "report" else CHOOSE, []
    names = ("mixed", "raw", "pit", "tracker", "shift", "emos")
    print(
        "| series | "
        + " | ".join(names)
        + " | mixed / raw | covered | pit covered | infinite | tracker infinite |"
    )
    print("|---" * (len(names) + 6) + "|")
    for name in series:
        found = averaged(name, series, told)
        best = min(row[0] for row in found.values())
        ratios = [found[way][0] / best for way in names]
        most = found["mixed"][0] / found["raw"][0]
        order.append((*ratios, most, abs(found["mixed"][1] - 0.9), found["mixed"][2]))
        cells = [f"{r:.3f}" for r in (*ratios, most)]
        cells += [f"{found[way][1]:.3f}" for way in ("mixed", "pit")]
        cells += [f"{found[way][2]:.3f}" for way in ("mixed", "tracker")]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    mean, worst = np.mean(order, axis=0), np.max(order, axis=0)
    print("| mean | " + " | ".join(f"{r:.3f}" for r in mean[:7]) + " | | | | |")
    print(f"\nover the best, on average: {mean[0]:.4f}; bar 1.03")
    print(f"over raw, at worst: {worst[6]:.4f}; bar 1.01")
    print(f"coverage off by, at worst: {worst[7]:.4f}; bar 0.02")
    print(f"infinite quantiles, at worst: {worst[8]:.4f}; bar 0")


if __name__ == "__main__":
    main()
