"""Forecasts over classes: time a round, and what making numbers sum to 1 costs in calibration.

Run as ``python -m benchmarks.classes`` (``--rounds 1000000`` for a long stream).  The stream is
a classifier that is too sure.  Calibration of what is drawn is the class-wise and the
confidence's C2 over twenty buckets.  A second stream, of a classifier that confuses two of three
classes, shows what renormalisation can do to numbers that were right one by one.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.classes import OneVsRest, SimplexRecalibrator, TopLabel, metrics
from calibrant.metrics import calibration_error

__all__ = ["confused", "renormalised", "run", "stream"]

Reals = NDArray[np.float64]
BUCKETS = 20


def stream(rounds: int, classes: int, seed: int = 0) -> tuple[Reals, NDArray[np.int64]]:
    """Return raw forecasts twice as steep on the logits as they should be, and outcomes."""
    rng = np.random.default_rng(seed)
    chances = np.exp(1.5 * rng.normal(size=(rounds, classes)))
    chances /= chances.sum(axis=1, keepdims=True)
    outcomes = (chances.cumsum(axis=1) < rng.random((rounds, 1))).sum(axis=1)
    raw = chances**2
    return raw / raw.sum(axis=1, keepdims=True), np.minimum(outcomes, classes - 1)


def run(rounds: int, classes: int) -> Iterator[str]:
    """Yield a line for each recalibrator."""
    raw, outcomes = stream(rounds, classes)
    # Compile before the clock runs.
    TopLabel(classes, seed=0).replay(raw, outcomes)
    yield f"{'what':26} {'us/round':>9} {'Brier':>8} {'class-wise':>11} {'confidence':>11}"
    yield line("raw", 0.0, raw, outcomes)
    for renormalise in ("none", "divide", "project"):
        rec = OneVsRest(classes, renormalise=renormalise, seed=1)
        cost, made = timed(lambda rec=rec: rec.replay(raw, outcomes), rounds)
        yield line(f"OneVsRest, {renormalise}", cost, made.forecast, outcomes)
    for conditional in (True, False):
        top = TopLabel(classes, conditional=conditional, seed=1)
        cost, made = timed(lambda top=top: top.replay(raw, outcomes), rounds)
        name = "TopLabel" if conditional else "TopLabel, not conditional"
        yield line(name, cost, made.forecast, outcomes)
        right = made.top == outcomes
        own = calibration_error(made.confidence, right, power=2)
        yield f"{'  its confidence alone':26} {'':9} {'':8} {'':11} {own:11.6f}"


def confused(rounds: int, seed: int = 0) -> tuple[Reals, NDArray[np.int64]]:
    """Return raw forecasts that are right about class 0 and confuse the other two, and outcomes."""
    rng = np.random.default_rng(seed)
    sure, split = rng.random(rounds), rng.random(rounds)
    raw = np.column_stack([sure, (1.0 - sure) * split, (1.0 - sure) * (1.0 - split)])
    outcomes = (raw[:, [0, 2, 1]].cumsum(axis=1) < rng.random((rounds, 1))).sum(axis=1)
    return raw, np.minimum(outcomes, 2)


def renormalised(rounds: int) -> Iterator[str]:
    """Yield the class-wise error of each way to make numbers sum to 1."""
    raw, outcomes = confused(rounds)
    yield "a classifier that confuses two of three classes:"
    yield line("raw", 0.0, raw, outcomes)
    for renormalise in ("none", "divide", "project"):
        rec = OneVsRest(3, renormalise=renormalise, seed=1)
        cost, made = timed(lambda rec=rec: rec.replay(raw, outcomes), rounds)
        yield line(f"OneVsRest, {renormalise}", cost, made.forecast, outcomes)


def simplex(rounds: int) -> Iterator[str]:
    """Yield what the grid over the simplex costs, for three classes."""
    raw, outcomes = stream(rounds, 3)
    rec = SimplexRecalibrator(3, seed=1)
    cost, made = timed(lambda: rec.replay(raw, outcomes), rounds)
    full = metrics.full_error(made.forecast, outcomes, power=2)
    yield f"SimplexRecalibrator, K = 3, {rounds} rounds: {cost:.0f} us/round, full C2 {full:.6f}"


def timed(work: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    start = time.process_time()
    made = work()
    return 1e6 * (time.process_time() - start) / rounds, made


def line(name: str, cost: float, forecasts: Reals, outcomes: NDArray[np.int64]) -> str:
    score = metrics.brier(forecasts, outcomes)
    wise = metrics.classwise_error(forecasts, outcomes, power=2, buckets=BUCKETS)
    sure = metrics.confidence_error(forecasts, outcomes, power=2, buckets=BUCKETS)
    return f"{name:26} {cost:9.2f} {score:8.4f} {wise:11.6f} {sure:11.6f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=10)
    told = parser.parse_args()
    parts = (run(told.rounds, told.classes), renormalised(told.rounds))
    for row in itertools.chain(*parts, simplex(min(told.rounds, 1_000))):
        print(row, flush=True)


if __name__ == "__main__":
    main()
