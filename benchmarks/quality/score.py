"""How forecasts are scored: by accuracy, and by calibration over all rounds and in blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "brier", "c2", "c2_in_bins", "log_loss", "smooth", "worst_block"]

BLOCK = 5_000
Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]


def brier(forecasts: Floats, outcomes: Bits) -> float:
    """Return the mean squared loss."""
    return float(np.mean((forecasts - outcomes) ** 2))


def log_loss(forecasts: Floats, outcomes: Bits) -> float:
    """Return the mean log loss; forecasts are kept a millionth away from 0 and 1."""
    inside = np.clip(forecasts, 1e-6, 1.0 - 1e-6)
    return float(-np.mean(np.log(np.where(outcomes == 1, inside, 1.0 - inside))))


def c2(forecasts: Floats, outcomes: Bits) -> float:
    """Return the squared calibration error over exact values."""
    places = np.unique(forecasts, return_inverse=True)[1]
    return _error(places, forecasts, outcomes)


def c2_in_bins(forecasts: Floats, outcomes: Bits, bins: int = 20) -> float:
    """Return the squared calibration error over equal bins, with the mean forecast of each."""
    return _error(np.minimum((forecasts * bins).astype(np.int64), bins - 1), forecasts, outcomes)


def _error(places: NDArray[np.int64], forecasts: Floats, outcomes: Bits) -> float:
    counts = np.bincount(places)
    gaps = np.bincount(places, outcomes - forecasts)
    return float(np.sum(gaps**2 / np.maximum(counts, 1)) / len(forecasts))


def worst_block(forecasts: Floats, outcomes: Bits, *, exact: bool) -> float:
    """Return the largest C2 of an aligned block of 5,000 rounds; shorter streams are one block.

    What is left over after the last whole block is not a block.
    """
    measure, rounds = (c2 if exact else c2_in_bins), len(forecasts)
    starts = range(0, max(rounds - BLOCK, 0) + 1, BLOCK)
    return max(measure(forecasts[k : k + BLOCK], outcomes[k : k + BLOCK]) for k in starts)


def smooth(forecasts: Floats, outcomes: Bits) -> float:
    """Return the smooth calibration error of at most the first 20,000 rounds."""
    from calibrant.metrics import smooth_calibration_error

    return float(smooth_calibration_error(forecasts[:20_000], outcomes[:20_000]))
