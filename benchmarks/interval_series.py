"""Series of point forecasts and outcomes for intervals: one half to choose by, the other to judge.

The two halves have no generator in common, and their seeds differ.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibrant.datasets import load_ensemble

__all__ = ["CHOICE", "JUDGED", "Series", "real"]

Reals = NDArray[np.float64]
Pair = tuple[Reals, Reals]
Series = Callable[[np.random.Generator, int], Pair]


def follow(outcomes: Reals, pace: float) -> Reals:
    """Return forecasts that go a part of the way to each outcome: an exponential mean."""
    found, level = np.empty(len(outcomes)), 0.0
    for t, y in enumerate(outcomes.tolist()):
        found[t] = level
        level += pace * (y - level)
    return found


def autoregressive(noise: Reals, *weights: float) -> Reals:
    """Return a series that depends on its own last values."""
    y = np.zeros(len(noise))
    for t in range(len(noise)):
        y[t] = noise[t] + sum(w * y[t - k] for k, w in enumerate(weights, 1) if t >= k)
    return y


def walk(rng: np.random.Generator, rounds: int, sd: float) -> Reals:
    """Return a random walk."""
    return np.cumsum(rng.normal(0.0, sd, rounds))


def held(rng: np.random.Generator, rounds: int, length: float, values: Reals) -> Reals:
    """Return values that hold for a random time each."""
    change = rng.random(rounds) < 1.0 / length
    picked = rng.choice(values, rounds)
    return picked[np.maximum.accumulate(np.where(change, np.arange(rounds), 0))]


# ------------------------------------------------------------------ to choose by


def calm(rng: np.random.Generator, rounds: int) -> Pair:
    """Errors that are normal and all alike."""
    centre = rng.normal(size=rounds)
    return centre, centre + rng.normal(size=rounds)


def drifting(rng: np.random.Generator, rounds: int) -> Pair:
    """An autoregressive series whose mean wanders, forecast by a fixed model."""
    y = autoregressive(rng.normal(size=rounds), 0.7) + walk(rng, rounds, 0.02)
    return np.concatenate([[0.0], 0.7 * y[:-1]]), y


def jumps(rng: np.random.Generator, rounds: int) -> Pair:
    """Errors whose size jumps between three values."""
    size = held(rng, rounds, 400.0, np.array([0.5, 1.0, 3.0]))
    return np.zeros(rounds), size * rng.normal(size=rounds)


def seasons(rng: np.random.Generator, rounds: int) -> Pair:
    """Errors whose size swings with a period of 300 rounds."""
    swing = np.exp(0.8 * np.sin(2 * np.pi * np.arange(rounds) / 300))
    return np.zeros(rounds), swing * rng.normal(size=rounds)


def heavy(rng: np.random.Generator, rounds: int) -> Pair:
    """Errors with heavy tails, Student's of three degrees."""
    return np.zeros(rounds), rng.standard_t(3, rounds)


def clustered(rng: np.random.Generator, rounds: int) -> Pair:
    """Errors whose variance follows the last squares (GARCH)."""
    y, variance = np.empty(rounds), 1.0
    for t, z in enumerate(rng.normal(size=rounds).tolist()):
        y[t] = z * variance**0.5
        variance = 0.05 + 0.15 * y[t] ** 2 + 0.8 * variance
    return np.zeros(rounds), y


def shifts(rng: np.random.Generator, rounds: int) -> Pair:
    """Levels that shift, forecast by a slow exponential mean."""
    y = held(rng, rounds, 250.0, np.arange(-4.0, 5.0)) + rng.normal(size=rounds)
    return follow(y, 0.05), y


def biased(rng: np.random.Generator, rounds: int) -> Pair:
    """Forecasts that are too low, by more and more."""
    centre = rng.normal(size=rounds)
    return centre, centre + np.linspace(0.5, 2.0, rounds) + rng.normal(size=rounds)


def skewed(rng: np.random.Generator, rounds: int) -> Pair:
    """Errors that are rarely and then far above."""
    return np.zeros(rounds), rng.exponential(1.0, rounds) - 0.3


def weekly(rng: np.random.Generator, rounds: int) -> Pair:
    """A week of seven values that the forecast knows nothing of."""
    week = np.array([0.0, 0.5, 0.8, 0.5, 0.0, -2.0, -2.5])
    return np.zeros(rounds), week[np.arange(rounds) % 7] + rng.normal(size=rounds)


CHOICE: dict[str, Series] = {
    made.__name__: made
    for made in (
        calm,
        drifting,
        jumps,
        seasons,
        heavy,
        clustered,
        shifts,
        biased,
        skewed,
        weekly,
    )
}

# ---------------------------------------------------------------------- to judge


def changing(rng: np.random.Generator, rounds: int) -> Pair:
    """An autoregressive series whose dependence turns round half-way, forecast by the old one."""
    noise = rng.normal(size=rounds)
    half = rounds // 2
    y = np.concatenate(
        [autoregressive(noise[:half], 0.5, 0.3), autoregressive(noise[half:], -0.4, 0.2)]
    )
    last, before = np.roll(y, 1), np.roll(y, 2)
    centre = 0.5 * last + 0.3 * before
    centre[:2] = 0.0
    return centre, y


def volatile(rng: np.random.Generator, rounds: int) -> Pair:
    """A random walk with stochastic volatility, forecast by its last value."""
    logs = autoregressive(rng.normal(0.0, 0.15, rounds), 0.98)
    y = np.cumsum(np.exp(logs) * rng.standard_t(5, rounds))
    return np.concatenate([[0.0], y[:-1]]), y


def sawtooth(rng: np.random.Generator, rounds: int) -> Pair:
    """Errors that grow for 500 rounds and start small again."""
    size = 0.3 + 2.0 * (np.arange(rounds) % 500) / 500
    return np.zeros(rounds), size * rng.laplace(size=rounds)


def counts(rng: np.random.Generator, rounds: int) -> Pair:
    """Counts whose rate has a daily and a slow rhythm, forecast by an exponential mean."""
    t = np.arange(rounds)
    rate = 8.0 * np.exp(0.4 * np.sin(2 * np.pi * t / 24) + 0.5 * np.sin(2 * np.pi * t / 1_700))
    y = rng.poisson(rate).astype(np.float64)
    return follow(y, 0.1), y


def skewed_drift(rng: np.random.Generator, rounds: int) -> Pair:
    """Lognormal errors whose side changes slowly from above to below."""
    error = rng.lognormal(0.0, 0.6, rounds) - 1.0
    side = np.cos(2 * np.pi * np.arange(rounds) / rounds)
    return np.zeros(rounds), side * error + 0.3 * rng.normal(size=rounds)


def outliers(rng: np.random.Generator, rounds: int) -> Pair:
    """Normal errors with a few that are twenty times as large."""
    y = rng.normal(size=rounds)
    wild = rng.random(rounds) < 0.01
    return np.zeros(rounds), np.where(wild, 20.0 * y, y)


def trend(rng: np.random.Generator, rounds: int) -> Pair:
    """A trend that breaks, forecast by an exponential mean that lags behind."""
    slope = held(rng, rounds, 600.0, np.array([-0.1, 0.0, 0.1]))
    y = np.cumsum(slope) + rng.normal(size=rounds)
    return follow(y, 0.1), y


def burst(rng: np.random.Generator, rounds: int) -> Pair:
    """Calm with short bursts in which errors are five times as large."""
    size = held(rng, rounds, 60.0, np.array([1.0] * 9 + [5.0]))
    return np.zeros(rounds), size * rng.normal(size=rounds)


def learner(rng: np.random.Generator, rounds: int) -> Pair:
    """A linear model that learns by gradient steps while its weights wander."""
    x = rng.normal(size=(rounds, 5))
    weights = np.cumsum(rng.normal(0.0, 0.03, (rounds, 5)), axis=0)
    y = (x * weights).sum(axis=1) + rng.normal(size=rounds)
    centre, model = np.empty(rounds), np.zeros(5)
    for t in range(rounds):
        centre[t] = model @ x[t]
        model += 0.02 * (y[t] - centre[t]) * x[t]
    return centre, y


def chaos(rng: np.random.Generator, rounds: int) -> Pair:
    """The logistic map with noise, forecast by its mean: errors within bounds."""
    y, x = np.empty(rounds), 0.3
    for t, z in enumerate(rng.normal(0.0, 0.05, rounds).tolist()):
        x = 3.9 * x * (1.0 - x)
        y[t] = x + z
    return np.full(rounds, 0.5), y


JUDGED: dict[str, Series] = {
    made.__name__: made
    for made in (
        changing,
        volatile,
        sawtooth,
        counts,
        skewed_drift,
        outliers,
        trend,
        burst,
        learner,
        chaos,
    )
}


def real(data: Path | None = None) -> dict[str, Pair]:
    """Return rain and its ensemble mean, Frankfurt 3,617 days and the monsoon 517."""
    found = {place: load_ensemble(place, data=data) for place in ("frankfurt", "monsoon")}
    return {place: (members.mean(axis=1), fell) for place, (members, fell) in found.items()}
