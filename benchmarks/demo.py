"""The stream of the demo with other seeds: is the one that is shown a lucky one?

``python -m benchmarks.demo`` plays it with the seeds 0 to 19 and prints the least, the median and
the most of each figure beside those of the seed that the demo has; ``--rounds`` and ``--seeds``
say how much.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.store import add_store, storing
from calibrant import Calibrant, metrics
from calibrant.demo.scanner import scan

SHOWN = 7
"""The seed of the demo."""
WINDOW = 5_000
FIGURES = {
    "Brier score, forecast minus raw": "+.3f",
    "binned error, raw": ".3f",
    "binned error, forecast": ".3f",
    "AUC, forecast minus raw": "+.3f",
    f"windows of {WINDOW:,} rounds worse than raw": ".0f",
}


def measured(seed: int, rounds: int) -> list[float]:
    """Return the figures of one seed, in the order of their names."""
    stream = scan(rounds=rounds, seed=seed)
    raw, y = stream.raw, stream.outcome
    drawn = Calibrant(seed=seed).replay(raw, y).forecast
    worse = losses(drawn, y) > losses(raw, y)
    return [
        metrics.brier(drawn, y) - metrics.brier(raw, y),
        metrics.binned_calibration_error(raw, y),
        metrics.binned_calibration_error(drawn, y),
        metrics.auc(drawn, y) - metrics.auc(raw, y),
        float(worse.sum()),
    ]


def losses(forecasts: NDArray[np.float64], y: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the Brier scores of whole windows."""
    whole = len(y) // WINDOW * WINDOW
    return ((forecasts - y)[:whole] ** 2).reshape(-1, WINDOW).mean(axis=1)


def rows(seeds: int, rounds: int) -> Iterator[str]:
    """Yield the table."""
    yield f"| | least | median | most | seed {SHOWN} |"
    yield "|---|---|---|---|---|"
    found = np.array([measured(seed, rounds) for seed in range(seeds)])
    shown = measured(SHOWN, rounds)
    for k, (name, how) in enumerate(FIGURES.items()):
        told = found[:, k].min(), np.median(found[:, k]), found[:, k].max(), shown[k]
        yield f"| {name} | {' | '.join(format(value, how) for value in told)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=20)
    add_store(parser)
    given = parser.parse_args()
    with storing("demo", wanted=given.store):
        for row in rows(given.seeds, given.rounds):
            print(row, flush=True)


if __name__ == "__main__":
    main()
