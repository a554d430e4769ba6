"""Confidences of image classifiers: raw, with a fitted temperature, and recalibrated.

Run as ``python -m benchmarks.images [--data DIR]``, where DIR holds ``image_logits``.  C2 of the
raw confidence is over twenty buckets, ours over exact values.  The second table flattens the
logits' scale halfway: what a temperature fitted on the first half is worth after that.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.store import add_store, storing
from calibrant.classes import TopLabel, metrics
from calibrant.datasets import path
from calibrant.metrics import binned_calibration_error, calibration_error

__all__ = ["load", "softmax"]

DATA: pathlib.Path | None = None
"""What came along, unless a directory is named."""
NETS = {
    "LeNet-5, CIFAR-10": "lenet-5-cifar-10",
    "WRN-16-4, CIFAR-10": "wideresnet-16-4-cifar-10",
    "ResNet-50, CIFAR-10": "cifar10_resnet50_logits",
    "WRN-16-4, CIFAR-100": "wideresnet-16-4-cifar-100_f16",
}
Reals = NDArray[np.float64]
Labels = NDArray[np.int64]


def softmax(logits: Reals) -> Reals:
    """Return probabilities of logits."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    made: Reals = raised / raised.sum(axis=1, keepdims=True)
    return made


def load(data: pathlib.Path | None, name: str) -> tuple[Reals, Labels]:
    """Return raw forecasts and outcomes of one network."""
    with np.load(path(f"image_logits/{name}.npz", data)) as found:
        if "test_logits" in found:
            return softmax(found["test_logits"].astype(float)), found["test_labels"]
        raw = found["predictions"].astype(float)
        return raw / raw.sum(axis=1, keepdims=True), found["ground_truth"]


def rows(data: pathlib.Path | None = DATA) -> Iterator[str]:
    """Yield the table of all networks."""
    heads = ("network", "raw C2", "ours", "class by class", "its floor", "Brier raw", "ours")
    yield _row(heads)
    yield _row(["---"] * len(heads))
    for title, name in NETS.items():
        raw, outcomes = load(data, name)
        run = TopLabel(raw.shape[1], seed=1).replay(raw, outcomes)
        right = raw.argmax(axis=1) == outcomes
        figures = (
            binned_calibration_error(raw.max(axis=1), right, buckets=20, power=2),
            calibration_error(run.confidence, right, power=2),
            metrics.top_class_error(run.forecast, outcomes, tops=run.top, power=2),
            metrics.top_class_floor(run.forecast, tops=run.top),
        )
        scores = metrics.brier(raw, outcomes), metrics.brier(run.mean, outcomes)
        yield _row([title, *(f"{x:.5f}" for x in figures), *(f"{x:.4f}" for x in scores)])


def switched(data: pathlib.Path | None = DATA) -> Iterator[str]:
    """Yield what happens when the logits become five times as steep halfway."""
    yield _row(("network, second half", "raw C2", "temperature of the first half", "ours"))
    yield _row(["---"] * 4)
    for title, name in list(NETS.items())[:2]:
        raw, outcomes = load(data, name)
        half = len(raw) // 2
        stream = raw.copy()
        stream[half:] = heated(raw[half:], 0.2)
        fitted = heated(stream, temperature(raw[:half], outcomes[:half]))
        run = TopLabel(raw.shape[1], seed=1).replay(stream, outcomes)
        right = (run.top == outcomes)[half:]
        found = [
            binned_calibration_error(made[half:].max(axis=1), right, buckets=20, power=2)
            for made in (stream, fitted)
        ]
        found.append(calibration_error(run.confidence[half:], right, power=2))
        yield _row([title, *(f"{x:.5f}" for x in found)])


def temperature(raw: Reals, outcomes: Labels) -> float:
    """Return the best of many temperatures on these rounds."""
    tried = np.linspace(0.5, 5.0, 46).tolist()
    losses = {t: metrics.log_loss(heated(raw, t), outcomes) for t in tried}
    return min(losses, key=losses.__getitem__)


def heated(raw: Reals, t: float) -> Reals:
    """Return forecasts at another temperature."""
    return softmax(np.log(np.maximum(raw, 1e-12)) / t)


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, default=DATA)
    add_store(parser)
    given = parser.parse_args()
    with storing("images", wanted=given.store):
        for line in itertools.chain(rows(given.data), [""], switched(given.data)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
