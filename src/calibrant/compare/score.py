"""How forecasts are scored: accuracy of the mean, calibration of what is announced."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from calibrant import metrics
from calibrant.core.arrays import Bits, Reals

BUCKETS: Final = 20
"""Buckets of equal width in which forecasts are compared that may be any numbers."""
WINDOW: Final = 5_000
LEAST_WINDOW: Final = 100
ENOUGH_WINDOWS: Final = 8
SURE: Final = 1e-15
"""What the probability of an outcome counts as where it was less."""
MANY: Final = 50_000
"""Forecasts above which they are rounded before their smooth error is computed."""
FINE: Final = 10_000


def calibration(forecasts: Reals, outcomes: Bits, *, power: float, exact: bool) -> float:
    """Return C1 or C2, over exact values or over equal buckets at the mean forecast of each.

    >>> calibration(np.array([0.25, 0.25]), np.array([1, 0], np.uint8), power=1, exact=True)
    0.25
    """
    if exact:
        return metrics.calibration_error(forecasts, outcomes, power=power)
    return metrics.binned_calibration_error(forecasts, outcomes, buckets=BUCKETS, power=power)


def window_for(rounds: int) -> int:
    """Return how long windows are: 5,000 rounds, or less so that there are eight; 0 if none.

    >>> window_for(100_000), window_for(8_000), window_for(120), window_for(99)
    (5000, 1000, 100, 0)
    """
    if rounds < LEAST_WINDOW:
        return 0
    return min(WINDOW, max(LEAST_WINDOW, rounds // ENOUGH_WINDOWS))


def worst_window(forecasts: Reals, outcomes: Bits, window: int, *, exact: bool) -> float:
    """Return the largest C2 of a window; rounds after the last whole one are left out."""
    if not window:
        return math.nan
    starts = range(0, len(forecasts) - window + 1, window)
    parts = (slice(start, start + window) for start in starts)
    errors = (calibration(forecasts[p], outcomes[p], power=2, exact=exact) for p in parts)
    return max(errors, default=math.nan)


def log_loss(forecasts: Reals, outcomes: Bits) -> float:
    """Return the mean log loss; an outcome's probability counts as 1e-15 where it was less."""
    given = np.where(outcomes == 1, forecasts, 1.0 - forecasts)
    return float(-np.mean(np.log(np.maximum(given, SURE))))


def smooth(forecasts: Reals, outcomes: Bits) -> float:
    """Return the smooth calibration error; many forecasts count to four digits."""
    if len(forecasts) > MANY:
        forecasts = np.round(forecasts * FINE) / FINE
    return metrics.smooth_calibration_error(forecasts, outcomes)
