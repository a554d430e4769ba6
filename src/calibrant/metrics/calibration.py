"""The calibration error C^p over exact forecast values, realised and expected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.metrics.cells import Cells, as_cells, mixture_cells


def checked_power(power: Any) -> float:
    """Return ``power`` as a finite float of at least 1."""
    return check.real(power, "power", low=1.0, rule="a finite number of at least 1")


def calibration_error(
    forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None, *, power: float = 1.0
) -> float:
    """Return ``C^p``: how far outcomes were from what was forecast, value by value.

    For each distinct forecast v, take the distance between v and the frequency of
    outcome 1 when v was forecast, to the given power; average over rounds.  No root
    is taken at the end.

    Parameters
    ----------
    forecasts, outcomes
        As in :func:`~calibrant.metrics.as_cells`.
    power : float
        p, at least 1.

    Returns
    -------
    float
        ``sum_v n_v |rho_v - v|**p / T``; nan without rounds.

    Notes
    -----
    Meant for forecasts from a grid.  On a continuum each value is a cell of its own
    and C^1 is near the mean absolute error, however good the forecasts are; use
    :func:`~calibrant.metrics.smooth_calibration_error` or
    :func:`~calibrant.metrics.atb` there.

    References
    ----------
    Kuleshov and Ermon (2017), definition of ``C_T^p``.

    Examples
    --------
    >>> calibration_error([0.3, 0.3, 0.3, 0.3], [1, 0, 1, 0])
    0.2
    >>> round(calibration_error([0.3, 0.3, 0.3, 0.3], [1, 0, 1, 0], power=2), 12)
    0.04
    """
    cells = as_cells(forecasts, outcomes)
    gaps = np.abs(cells.rho - cells.values) ** checked_power(power)
    return cells.average(gaps @ cells.counts)


def mixture_calibration_error(
    values: ArrayLike, weights: ArrayLike, outcomes: ArrayLike, *, power: float = 1.0
) -> float:
    """Return ``C^p`` of announced mixtures, each value counted with its probability.

    Parameters
    ----------
    values : array_like
        The grid, shape ``(cells,)``, or each round's support, ``(rounds, support)``.
    weights : array_like
        Probabilities, shape ``(rounds, support)``.
    outcomes : array_like
        0 or 1 for each round.
    power : float
        p, at least 1.

    Notes
    -----
    Counts and sums of outcomes are replaced by their expectations over the draws.
    Since ``n |s/n|**p`` is convex, the result never exceeds the expectation of the
    realised C^p as long as neither mixtures nor outcomes depend on the draws.

    Examples
    --------
    >>> mixture_calibration_error([0.0, 1.0], [[0.5, 0.5], [0.5, 0.5]], [0, 1])
    0.5
    """
    return calibration_error(mixture_cells(values, weights, outcomes), power=power)


def rho(value: float, forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None) -> float:
    """Return how often the outcome was 1 when ``value`` was forecast.

    nan if it never was.  ``Cells.rho`` has the frequency for all values at once.

    Examples
    --------
    >>> rho(0.3, [0.3, 0.3, 0.5], [1, 0, 1])
    0.5
    """
    cells = as_cells(forecasts, outcomes)
    found = cells.values == check.probability(value, "value")
    return float(cells.rho[found][0]) if found.any() else math.nan
