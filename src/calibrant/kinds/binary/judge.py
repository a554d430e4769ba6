"""What the numbers allow to be said, before it is put into words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Mask
from calibrant.metrics import CalibrationCurve, binomial_band
from calibrant.report.tables import number
from calibrant.summary import Summary

Calibration: TypeAlias = Literal["fine", "fixed", "better", "worse", "unclear"]
Accuracy: TypeAlias = Literal[
    "unknown", "same", "unclear", "improved", "slightly improved", "worse", "slightly worse"
]

LEVEL: Final = 0.05
"""Probability, at most, of calling calibrated independent forecasts miscalibrated."""
FEWEST: Final = 0.05
"""Share of the rounds that must be off before forecasts are called miscalibrated."""
NEAR: Final = 0.01
"""Distances between forecast and frequency that are too small to matter, but for rare events."""
PART: Final = 0.2
"""Of the probability of the rarer outcome: what is too small to matter there."""
SLIGHT: Final = 0.005
"""Differences of Brier scores that are too small to matter, but for small scores."""
SHARE: Final = 0.025
"""Of the Brier score: what is too small to matter there."""


def matters(said: ArrayLike, rate: ArrayLike) -> Mask:
    """Say where forecast and frequency differ by enough to matter.

    By more than 0.01, or a fifth of the rarer outcome's probability where that is less.

    Examples
    --------
    >>> matters([0.505, 0.53, 0.01], [0.5, 0.5, 0.001]).tolist()
    [False, True, True]
    """
    p, q = np.asarray(said, np.float64), np.asarray(rate, np.float64)
    rarer = np.maximum(np.minimum(p, 1.0 - p), np.minimum(q, 1.0 - q))
    return np.asarray(np.abs(p - q) > np.minimum(NEAR, PART * rarer))


def beyond_noise(curve: CalibrationCurve) -> Mask:
    """Say of each bucket whether noise alone hardly explains its distance.

    The exact binomial limits of all k used buckets hold at once with probability 95 %:
    each is taken at ``1 - 0.05 / k``.

    Examples
    --------
    >>> from calibrant.metrics import calibration_curve
    >>> beyond_noise(calibration_curve([0.8] * 100 + [0.2], [1, 0] * 50 + [0], buckets=2)).tolist()
    [False, True]
    """
    used = curve.count > 0
    ones = np.rint(np.where(used, curve.mean_outcome, 0.0) * curve.count)
    level = LEVEL / max(1, int(used.sum()))
    low, high = binomial_band(ones, curve.count, confidence=1.0 - level)
    return np.asarray(used & ((curve.mean_forecast < low) | (curve.mean_forecast > high)))


def off(curve: CalibrationCurve, allowed: float = 0.0) -> bool:
    """Say whether a twentieth of the rounds is off, beyond noise and by enough to matter.

    Buckets that hardly any round fell into do not make a forecaster miscalibrated, nor do
    distances up to ``allowed``.

    Examples
    --------
    >>> from calibrant.metrics import calibration_curve
    >>> off(calibration_curve([0.8] * 100, [1, 0] * 50))
    True
    >>> off(calibration_curve([0.8] * 10, [1, 0] * 5))
    False
    """
    far = np.abs(curve.mean_forecast - curve.mean_outcome) > allowed
    wrong = far & beyond_noise(curve) & matters(curve.mean_forecast, curve.mean_outcome)
    rounds = int(curve.count[wrong].sum())
    return rounds > 0 and rounds >= FEWEST * int(curve.count.sum())


def spread(curve: CalibrationCurve) -> float:
    """Return the average distance of frequency and forecast over the curve's buckets.

    Examples
    --------
    >>> from calibrant.metrics import calibration_curve
    >>> round(spread(calibration_curve([0.8, 0.8], [1, 0])), 12)
    0.3
    """
    used = curve.count > 0
    gaps = np.abs(curve.mean_outcome - curve.mean_forecast)[used]
    rounds = int(curve.count.sum())
    return float(gaps @ curve.count[used] / rounds) if rounds else math.nan


@dataclass(frozen=True)
class Finding:
    """Whether forecasts are off and by how much on average, before and after.

    ``now_far`` is whether they are off by more than half a step of the grid, which is as
    close as forecasts from a grid can be made to come.
    """

    raw_off: bool
    now_off: bool
    now_far: bool
    raw_gap: float
    now_gap: float
    margin: float

    @property
    def ending(self) -> Calibration:
        """What happened to calibration."""
        closer = self.now_gap < self.raw_gap
        if self.raw_off and closer:
            return "better" if self.now_far else "fixed"
        if self.now_off and self.now_gap > self.raw_gap + self.margin:
            return "worse"
        return "unclear" if self.raw_off else "fine"


def calibration(summary: Summary) -> Finding:
    """Measure calibration before and after in the same equal buckets."""
    raw, now = summary.curves["raw"], summary.curves["forecast"]
    rate = number(summary["base_rate"])
    margin = min(NEAR, PART * min(rate, 1.0 - rate))
    far = off(now, half_step(summary))
    return Finding(off(raw), off(now), far, spread(raw), spread(now), margin)


def half_step(summary: Summary) -> float:
    """Return half the distance of neighbours on the grid of forecasts."""
    return 0.5 / float(summary["resolution"])


def accuracy(summary: Summary) -> Accuracy:
    """Say what happened to the Brier score, by its interval.

    ``unknown`` without an interval; ``same`` if every plausible change is too small to
    matter; ``improved`` or ``worse`` if the interval leaves 0 out, ``slightly`` so if it
    hardly matters; else ``unclear``.
    """
    told = summary["regret_brier"]
    value, low, high = (number(told[key]) for key in ("value", "low", "high"))
    if math.isnan(low) or math.isnan(high):
        return "unknown"
    slight = min(SLIGHT, SHARE * number(summary["raw"]["brier"]))
    if max(-low, high) <= slight and (low <= 0.0 <= high or abs(value) <= slight / 5.0):
        return "same"
    if low <= 0.0 <= high:
        return "unclear"
    if abs(value) <= slight:
        return "slightly improved" if high < 0.0 else "slightly worse"
    return "improved" if high < 0.0 else "worse"
