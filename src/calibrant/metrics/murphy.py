"""The Brier score and what it is made of, after Murphy (1973)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.errors import InvalidType
from calibrant.metrics.buckets import Buckets, as_buckets
from calibrant.metrics.calibration import calibration_error
from calibrant.metrics.cells import Cells, as_cells


@dataclass(frozen=True)
class Decomposition:
    """The parts of the mean squared error of forecasts.

    ``brier == reliability - resolution + uncertainty + within_variance
    - within_covariance`` up to rounding.

    Parameters
    ----------
    brier : float
        The mean squared error.
    reliability : float
        Mean squared distance of the frequency of 1 from the forecast, per cell: C^2.
    resolution : float
        Variance of these frequencies: how much the cells differ.
    uncertainty : float
        Variance of the outcomes.
    refinement : float
        ``uncertainty - resolution``: the loss of the same cells, forecast without error.
    sharpness : float
        Variance of the forecasts.
    within_variance : float
        Mean squared distance of a forecast from its bucket's mean; 0 for exact values.
    within_covariance : float
        Twice the covariance of forecast and outcome within buckets; 0 for exact values.
    """

    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    refinement: float
    sharpness: float
    within_variance: float = 0.0
    within_covariance: float = 0.0


def brier(forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None) -> float:
    """Return the mean squared distance of forecast and outcome.

    nan without rounds.

    Examples
    --------
    >>> brier([0.5, 1.0], [0, 1])
    0.125
    """
    cells = as_cells(forecasts, outcomes)
    return cells.average(cells.ones @ (1.0 - cells.values) ** 2 + cells.zeros @ cells.values**2)


def decomposition(
    forecasts: ArrayLike | Cells,
    outcomes: ArrayLike | None = None,
    *,
    buckets: int | None = None,
    strategy: str = "width",
) -> Decomposition:
    """Split the Brier score into reliability, resolution and uncertainty.

    Parameters
    ----------
    forecasts, outcomes
        As in :func:`~calibrant.metrics.as_cells`.
    buckets : int, optional
        How many buckets; without it each distinct forecast is a cell of its own.
    strategy : {"width", "mass"}
        The kind of buckets, see :func:`~calibrant.metrics.as_buckets`.

    Notes
    -----
    With buckets, the three terms of Murphy use bucket means and do not add up to the
    Brier score; the two within-bucket terms of Stephenson, Coelho and Jolliffe (2008)
    close the gap exactly.  Without rounds everything is nan.

    Examples
    --------
    >>> parts = decomposition([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 1])
    >>> parts.brier, parts.reliability, parts.resolution, parts.uncertainty
    (0.0625, 0.0625, 0.25, 0.25)
    """
    if buckets is None:
        cells = as_cells(forecasts, outcomes)
        return _murphy(cells, brier(cells), 0.0, 0.0)
    if isinstance(forecasts, Cells) or outcomes is None:
        raise InvalidType("forecasts and outcomes must be arrays if there are buckets, got Cells")
    grouped = as_buckets(forecasts, outcomes, buckets=buckets, strategy=strategy)
    return decomposition_of_buckets(grouped)


def brier_of_buckets(buckets: Buckets) -> float:
    """Return the Brier score from sums in buckets; bucketing loses nothing of the score."""
    squares = buckets.square_sum - 2.0 * buckets.product_sum + buckets.ones
    return buckets.cells.average(squares.sum())


def decomposition_of_buckets(buckets: Buckets) -> Decomposition:
    """Return the decomposition of sums that are there already."""
    divisor = np.maximum(buckets.count, 1)
    variance = buckets.square_sum - buckets.forecast_sum**2 / divisor
    covariance = buckets.product_sum - buckets.forecast_sum * buckets.ones / divisor
    cells, sums = buckets.cells, (np.maximum(variance, 0.0).sum(), 2.0 * covariance.sum())
    return _murphy(cells, brier_of_buckets(buckets), *map(cells.average, sums))


def _murphy(cells: Cells, score: float, variance: float, covariance: float) -> Decomposition:
    """Split a Brier score, given variance and covariance within the cells."""
    mean = cells.average(cells.ones.sum())
    resolution = cells.average(cells.counts @ (cells.rho - mean) ** 2)
    uncertainty = mean * (1.0 - mean)
    said = cells.average(cells.counts @ cells.values)
    spread = cells.average(cells.counts @ (cells.values - said) ** 2)
    parts = calibration_error(cells, power=2.0), resolution, uncertainty, uncertainty - resolution
    within = variance, covariance
    return Decomposition(score, *parts, spread + variance, *within)
