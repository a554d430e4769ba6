"""Every adversary of the package against a method, with raw forecasts that tell nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.quality import score
from benchmarks.quality.methods import Factory
from calibrant import simulate

__all__ = ["ROUNDS", "Game", "games", "play"]

ROUNDS = 10_000
RAW = {"uniform": simulate.Uniform(), "Bernoulli(1/2)": simulate.Noise()}
PLAYERS: dict[str, simulate.Adversary] = {
    "threshold": simulate.Threshold(),
    "greedy S^2/n": simulate.GreedyCalibration(power=2),
    "greedy |S|": simulate.GreedyCalibration(power=1),
    "greedy regret": simulate.GreedyAccuracy("regret"),
    "greedy loss": simulate.GreedyAccuracy("loss"),
    "sign preserving": simulate.SignPreserving(),
    "bernoulli": simulate.Bernoulli(),
    "periodic": simulate.Periodic(),
    "drifting": simulate.Drifting(),
    "switching": simulate.Switching(),
    "noisy": simulate.Noisy(),
    "linear": simulate.Linear(),
}


@dataclass(frozen=True)
class Game:
    """An adversary and the raw forecasts that are played with it."""

    adversary: str
    raw: str

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.adversary}, raw {self.raw}"


def games() -> Iterator[Game]:
    """Yield every pair."""
    for adversary in PLAYERS:
        for raw in RAW:
            yield Game(adversary, raw)


def play(factory: Factory, game: Game, *, seeds: int, rounds: int = ROUNDS) -> dict[str, float]:
    """Return the scores of the draws and means, averaged over so many games."""
    rows = []
    for seed in range(seeds):
        parties = RAW[game.raw], PLAYERS[game.adversary]
        record = simulate.play(factory(seed=seed), *parties, rounds, seed=seed)
        rows.append(measure(record))
    return {what: float(np.mean([row[what] for row in rows])) for what in rows[0]}


def measure(record: simulate.Record) -> dict[str, float]:
    """Return the scores of one game."""
    return {
        "raw": score.brier(record.raw, record.outcomes),
        "brier": score.brier(record.mean, record.outcomes),
        "c2": score.c2(record.forecast, record.outcomes),
        "worst_block": score.worst_block(record.forecast, record.outcomes, exact=True),
    }
