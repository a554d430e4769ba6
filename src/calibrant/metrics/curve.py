"""Calibration curves: mean outcome against mean forecast, with counts and bands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Reals, Words
from calibrant.metrics.band import binomial_band
from calibrant.metrics.buckets import Buckets, as_buckets


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """A calibration curve, one entry per bucket: numbers only, ready to be drawn.

    Parameters
    ----------
    lower, upper : ndarray
        The bucket's edges (equal width) or extreme forecasts (equal mass).
    count : ndarray
        Rounds.
    mean_forecast, mean_outcome : ndarray
        nan in empty buckets.
    band_low, band_high : ndarray
        Exact binomial confidence limits of the mean outcome.
    confidence : float
        The level of the bands.
    """

    lower: Reals
    upper: Reals
    count: Words
    mean_forecast: Reals
    mean_outcome: Reals
    band_low: Reals
    band_high: Reals
    confidence: float


def calibration_curve(
    forecasts: ArrayLike,
    outcomes: ArrayLike,
    *,
    buckets: int = 10,
    strategy: str = "width",
    confidence: float = 0.95,
) -> CalibrationCurve:
    """Return mean forecast, mean outcome and its confidence band for each bucket.

    Parameters
    ----------
    forecasts, outcomes, buckets, strategy
        As in :func:`~calibrant.metrics.as_buckets`.
    confidence : float
        Of each band by itself, strictly between 0 and 1.

    Notes
    -----
    A band covers the bucket's mean probability with at least this confidence if
    outcomes are independent with equal probabilities within the bucket.  Against an
    adversary, or under drift, read it as a yardstick for noise only.

    Examples
    --------
    >>> curve = calibration_curve([0.1, 0.2, 0.8, 1.0], [0, 1, 1, 1], buckets=2)
    >>> curve.count.tolist(), curve.mean_outcome.tolist()
    ([2, 2], [0.5, 1.0])
    >>> curve.band_low.round(3).tolist(), curve.band_high.round(3).tolist()
    ([0.013, 0.158], [0.987, 1.0])
    """
    grouped = as_buckets(forecasts, outcomes, buckets=buckets, strategy=strategy)
    return curve_of_buckets(grouped, confidence=confidence)


def curve_of_buckets(buckets: Buckets, *, confidence: float = 0.95) -> CalibrationCurve:
    """Return the calibration curve of sums that are there already."""
    low, high = binomial_band(buckets.ones, buckets.count, confidence=confidence)
    divisor = np.where(buckets.count > 0, buckets.count, np.nan)
    return CalibrationCurve(
        lower=buckets.lower,
        upper=buckets.upper,
        count=buckets.count,
        mean_forecast=buckets.forecast_sum / divisor,
        mean_outcome=buckets.ones / divisor,
        band_low=low,
        band_high=high,
        confidence=float(confidence),
    )
