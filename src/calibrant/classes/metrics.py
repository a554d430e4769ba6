"""How good forecasts over classes were.

Calibration errors come in four strengths.  *Confidence*: the largest probability against how
often its class was right.  *Top class*: the same for each class that came first, averaged by
rounds.  *Class-wise*: each column against its class, averaged over classes.  *Full*: whole
vectors against the frequencies of all classes.

All take ``buckets``: None compares over exact values, which suits forecasts from a grid; a number
compares means over so many buckets of equal width, which raw forecasts need.  No root is taken.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.classes import vectors
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.place import buckets_of
from calibrant.metrics import binned_calibration_error, calibration_error
from calibrant.metrics.calibration import checked_power


def brier(forecasts: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the mean squared distance of forecast and outcome, summed over classes.

    From 0 to 2; for two classes twice the binary Brier score.  nan without rounds.

    >>> round(brier([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]], [0, 2]), 12)
    0.8
    """
    table, told = _rounds(forecasts, outcomes)
    right = table[np.arange(len(told)), told]
    return _average((table**2).sum(axis=1) - 2.0 * right + 1.0)


def log_loss(forecasts: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the mean of minus the logarithm of what the class that came was given.

    Infinite if a class came that was given 0; nan without rounds.

    >>> round(log_loss([[0.5, 0.5], [0.25, 0.75]], [0, 0]), 6)
    1.039721
    """
    table, told = _rounds(forecasts, outcomes)
    right = table[np.arange(len(told)), told]
    return math.inf if (right == 0.0).any() else _average(-np.log(right))


def classwise_error(
    forecasts: ArrayLike, outcomes: ArrayLike, *, power: float = 1.0, buckets: int | None = None
) -> float:
    """Return the calibration error of each class's numbers, averaged over classes.

    >>> classwise_error([[0.5, 0.5], [0.5, 0.5]], [0, 0])
    0.5
    """
    table, told = _rounds(forecasts, outcomes)
    each = [_error(table[:, k], told == k, power, buckets) for k in range(table.shape[1])]
    return float(np.mean(each))


def confidence_error(
    forecasts: ArrayLike, outcomes: ArrayLike, *, power: float = 1.0, buckets: int | None = None
) -> float:
    """Return the calibration error of the largest probability, as that of being right.

    Of equal classes the lowest number comes first.  For a confidence that stands on its own
    use :func:`calibrant.metrics.calibration_error`.

    >>> confidence_error([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]], [0, 0])
    0.5
    """
    table, told = _rounds(forecasts, outcomes)
    return _error(table.max(axis=1), told == table.argmax(axis=1), power, buckets)


def top_class_error(
    forecasts: ArrayLike,
    outcomes: ArrayLike,
    *,
    tops: ArrayLike | None = None,
    power: float = 1.0,
    buckets: int | None = None,
) -> float:
    """Return the confidence's error in the rounds of each first class, averaged by rounds.

    Parameters
    ----------
    tops : array_like, optional
        The class that came first in each round; by default the largest of the row.

    Examples
    --------
    >>> rows = [[0.75, 0.25], [0.25, 0.75], [0.75, 0.25], [0.25, 0.75]]
    >>> confidence_error(rows, [0, 0, 0, 1]), top_class_error(rows, [0, 0, 0, 1])
    (0.0, 0.25)
    """
    table, told = _rounds(forecasts, outcomes)
    first = _tops(table, tops)
    sure = table[np.arange(len(first)), first]
    parts = [(first == k) for k in np.unique(first).tolist()]
    errors = [_error(sure[at], (told == first)[at], power, buckets) for at in parts]
    total = sum(error * int(at.sum()) for error, at in zip(errors, parts, strict=True))
    return total / len(first) if len(first) else math.nan


def top_class_floor(forecasts: ArrayLike, *, tops: ArrayLike | None = None) -> float:
    """Return what :func:`top_class_error` with power 2 would be on average if all were right.

    A value v that was announced n times adds ``n * v (1 - v) / n``, however large n is: the
    error of few rounds spread over many classes is not much else than this.  Over exact values.

    >>> top_class_floor([[0.5, 0.5], [0.5, 0.5]])
    0.125
    """
    table = _table(forecasts)
    first = _tops(table, tops)
    sure = table[np.arange(len(first)), first]
    distinct = np.unique(np.column_stack([first, sure]), axis=0)[:, 1]
    return float((distinct * (1.0 - distinct)).sum()) / len(first) if len(first) else math.nan


def full_error(
    forecasts: ArrayLike, outcomes: ArrayLike, *, power: float = 1.0, buckets: int | None = None
) -> float:
    """Return how far whole vectors were from the frequencies of all classes.

    For each group of rounds, sum over classes the distance of mean forecast and frequency to
    ``power``; average over rounds.  A group is one exact vector, or one combination of
    buckets: there are so many that beyond a few classes almost every round is alone.

    >>> full_error([[0.5, 0.5, 0.0]] * 4, [0, 0, 0, 1])
    0.5
    """
    table, told = _rounds(forecasts, outcomes)
    exponent = checked_power(power)
    keys: NDArray[Any] = table if buckets is None else _places(table, buckets)
    _, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    excess = table.copy()
    excess[np.arange(len(told)), told] -= 1.0
    counts = np.bincount(group)
    sums = np.column_stack([np.bincount(group, column) for column in excess.T])
    gaps = np.abs(sums / np.maximum(counts, 1)[:, None]) ** exponent
    return float(counts @ gaps.sum(axis=1)) / len(told) if len(told) else math.nan


def _places(table: Reals, buckets: Any) -> Words:
    number = check.whole(buckets, "buckets", low=1)
    return np.column_stack([buckets_of(np.ascontiguousarray(column), number) for column in table.T])


def _error(forecasts: Reals, outcomes: Any, power: float, buckets: int | None) -> float:
    if buckets is None:
        return calibration_error(forecasts, outcomes, power=power)
    return binned_calibration_error(forecasts, outcomes, buckets=buckets, power=power)


def _rounds(forecasts: ArrayLike, outcomes: ArrayLike) -> tuple[Reals, Words]:
    table = _table(forecasts)
    told = vectors.outcomes(outcomes, table.shape[1])
    check.same_length(forecasts=table, outcomes=told)
    return table, told


def _table(forecasts: ArrayLike) -> Reals:
    # Numbers calibrated class by class need not sum to 1.
    return vectors.matrix(forecasts, None, "forecasts", sums=False)


def _tops(table: Reals, tops: ArrayLike | None) -> Words:
    first: Words = np.argmax(table, axis=1)
    if tops is not None:
        first = vectors.outcomes(tops, table.shape[1])
    check.same_length(forecasts=table, tops=first)
    return first


def _average(values: Reals) -> float:
    return float(values.mean()) if len(values) else math.nan
