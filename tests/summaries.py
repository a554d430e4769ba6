"""Summaries with known endings, made of groups of rounds whose frequencies are exact."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import Calibrant, Recalibrator
from calibrant.summary import Summary, summarise


@dataclass(frozen=True)
class Group:
    """Rounds with one raw forecast, one announced forecast and one frequency of outcome 1."""

    raw: float
    forecast: float
    rate: float
    rounds: int

    def outcomes(self) -> NDArray[np.int64]:
        """0 and 1 as evenly as they go: of the first t rounds floor(rate * t) are 1."""
        so_far = np.floor(self.rate * np.arange(self.rounds + 1) + 1e-9)
        return np.diff(so_far).astype(np.int64)


def shuffled(*groups: Group) -> tuple[NDArray[np.float64], ...]:
    """Raw forecasts, forecasts and outcomes of all groups, evenly mixed."""
    places = np.concatenate([(np.arange(g.rounds) + 0.5) / max(g.rounds, 1) for g in groups])
    order = np.argsort(places, kind="stable")
    raw = np.concatenate([np.full(g.rounds, g.raw) for g in groups])[order]
    forecast = np.concatenate([np.full(g.rounds, g.forecast) for g in groups])[order]
    return raw, forecast, np.concatenate([g.outcomes() for g in groups])[order]


def told(*groups: Group) -> Summary:
    """The summary of these rounds, as if forecasts from a grid of twentieths had been drawn."""
    raw, forecast, outcomes = shuffled(*groups)
    return summarise(Recalibrator(seed=1), raw, forecast, forecast, outcomes, seed=1)


def overconfident(rounds: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Raw forecasts too close to 0 and 1, and outcomes."""
    dice = np.random.default_rng(seed)
    truth = dice.beta(1.2, 1.2, rounds)
    odds = (truth / (1.0 - truth)) ** 2.2
    return odds / (1.0 + odds), (dice.random(rounds) < truth).astype(np.int64)


def replayed(
    raw: NDArray[np.float64], outcomes: NDArray[np.int64], method: str = "foster_hart"
) -> Summary:
    """The summary of a real run."""
    rec = Recalibrator(method, seed=1)
    run = rec.replay(raw, outcomes)
    return summarise(rec, raw, run.forecast, run.mean, outcomes, seed=1)


def chained(
    raw: NDArray[np.float64],
    outcomes: NDArray[np.int64],
    available: NDArray[np.float64] | None = None,
    **options: Any,
) -> Summary:
    """The summary of a real run of the default."""
    model = Calibrant(seed=1, **options)
    run = model.replay(raw, outcomes, available=available)
    return summarise(model, raw, run.forecast, run.mean, outcomes, seed=1)


@functools.cache
def awkward() -> dict[str, Summary]:
    """Runs that break careless pictures and sentences."""
    dice = np.random.default_rng(5)
    few = overconfident(10)
    return {
        "nothing": replayed(np.zeros(0), np.zeros(0, np.int64)),
        "one round": replayed(np.array([0.3]), np.array([1])),
        "ten rounds": replayed(*few),
        "always one": replayed(dice.beta(8.0, 2.0, 300), np.ones(300, np.int64)),
        "always zero": replayed(np.zeros(300), np.zeros(300, np.int64)),
        "one score": replayed(np.full(400, 0.7), (dice.random(400) < 0.55).astype(np.int64)),
        "never right": replayed(np.ones(200), np.zeros(200, np.int64)),
        "no promise": replayed(*overconfident(700), method="running_mean"),
    }
