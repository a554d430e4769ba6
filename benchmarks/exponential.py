"""The paper's own subroutine, against NumPy with one eigen-decomposition per round."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bars import Row, at_least
from benchmarks.measure import Job, Run, interleave
from benchmarks.reference import game
from calibrant import Recalibrator

__all__ = ["EigenRegMin", "run"]

RESOLUTION, ETA, BAR = 10, 0.5, 20.0
CHECKED, TOLERANCE = 500, 1e-6


class EigenRegMin:
    """Regrets of all ordered pairs, exponential weights, stationary law: as in the book.

    Cesa-Bianchi and Lugosi (2006), section 4.4, spelled out on K x K arrays; the law is the
    eigenvector of eigenvalue one that NumPy finds.
    """

    def __init__(self, resolution: int, eta: float) -> None:
        self.grid = np.arange(resolution + 1) / resolution
        self.regrets = np.zeros((resolution + 1, resolution + 1))
        self.eta = eta

    def law(self) -> NDArray[np.float64]:
        """Return the probabilities with which the grid points are announced."""
        weights = np.exp(self.eta * (self.regrets - self.regrets.max()))
        np.fill_diagonal(weights, 0.0)
        chain = weights / weights.sum()
        np.fill_diagonal(chain, 1.0 - chain.sum(axis=1))
        values, vectors = np.linalg.eig(chain.T)
        nearest = np.abs(vectors[:, np.argmin(np.abs(values - 1.0))].real)
        return np.asarray(nearest / nearest.sum())

    def learn(self, law: NDArray[np.float64], outcome: int) -> None:
        """Add the round's regrets: its losses, weighted by the law that was announced."""
        losses = (self.grid - outcome) ** 2
        self.regrets += law[:, None] * (losses[:, None] - losses[None, :])


def run(*, rounds: int = 2_000, repeats: int = 15) -> list[Row]:
    """Return a row for batches, which has a bar, and one for single steps."""
    raw, outcomes = game(rounds)
    check_same(raw, outcomes)
    jobs: dict[str, Job] = {
        "eigen": partial(eigen, outcomes),
        "replay": partial(replay, raw, outcomes),
        "predict_one + learn_one": partial(at_once, raw, outcomes),
    }
    times = interleave(jobs, rounds=rounds, repeats=repeats)
    eigen_cost = times.nanoseconds("eigen")
    rows = [
        at_least(
            f"{job}, exponential_regret, N = {RESOLUTION}, to NumPy with eig",
            times.nanoseconds(job),
            eigen_cost,
            times.ratio("eigen", job),
            BAR,
        )
        for job in ("replay", "predict_one + learn_one")
    ]
    return [rows[0], rows[1].without_bar()]


def fresh() -> Recalibrator:
    """Return the same rule in one bucket, without a prior."""
    made = Recalibrator(
        "exponential_regret", resolution=RESOLUTION, eta=ETA, buckets=1, prior=0, seed=1
    )
    return made.compile()


def eigen(outcomes: NDArray[np.uint8]) -> Run:
    """Measure the NumPy version."""
    return partial(play, EigenRegMin(RESOLUTION, ETA), outcomes.tolist())


def play(rule: EigenRegMin, outcomes: list[int]) -> list[float]:
    """Play all rounds; return the means of the laws."""
    means = []
    for outcome in outcomes:
        law = rule.law()
        means.append(float(law @ rule.grid))
        rule.learn(law, outcome)
    return means


def replay(raw: Any, outcomes: Any) -> Run:
    """Measure a batch."""
    return partial(fresh().replay, raw, outcomes)


def at_once(raw: Any, outcomes: Any) -> Run:
    """Measure rounds one at a time."""
    made, rows = fresh(), list(zip(raw.tolist(), outcomes.tolist(), strict=True))

    def steps() -> None:
        for p, y in rows:
            made.predict_one(p)
            made.learn_one(p, y)

    return steps


def check_same(raw: Any, outcomes: Any) -> None:
    """Raise unless both versions announce the same means, up to the eigenvector's accuracy."""
    means = play(EigenRegMin(RESOLUTION, ETA), outcomes[:CHECKED].tolist())
    gap = np.abs(fresh().replay(raw[:CHECKED], outcomes[:CHECKED]).mean - means).max()
    if not gap < TOLERANCE:
        raise AssertionError(f"both versions must announce the same means, got {gap:.2e} apart")
