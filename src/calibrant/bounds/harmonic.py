"""Partial sums of the harmonic series, shifted and for real starting points."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Reals

_SHIFT = 10


def harmonic(count: ArrayLike, start: float = 0.0) -> Reals:
    """Return ``1/(start + 1) + ... + 1/(start + count)`` without summing.

    Notes
    -----
    The sum is a difference of two values of the digamma function, taken from its
    asymptotic series after shifting the argument up by ten: the error is below 1e-14
    relative to the larger of the two.

    Examples
    --------
    >>> harmonic([0, 1, 2, 4]).round(12).tolist()
    [0.0, 1.0, 1.5, 2.083333333333]
    >>> harmonic(2, start=3.0).round(12).item()
    0.45
    """
    n = np.asarray(count, dtype=np.float64)
    return np.asarray(_digamma(start + 1.0 + n) - _digamma(start + 1.0 + 0.0 * n))


def harmonic_cap(count: float, start: float = 0.0) -> float:
    """Return ``1/(start + 1) + ln((start + count)/(start + 1))``, at least ``harmonic``.

    It is the first term plus an integral, concave in ``count`` and defined for any real
    count of at least 1, as a theorem about the worst way to share out rounds needs.

    Examples
    --------
    >>> harmonic_cap(1), round(harmonic_cap(100), 4), round(float(harmonic(100)), 4)
    (1.0, 5.6052, 5.1874)
    """
    return 1.0 / (1.0 + start) + math.log((count + start) / (1.0 + start))


def _digamma(x: Reals) -> Reals:
    below = sum(1.0 / (x + k) for k in range(_SHIFT))
    z = x + _SHIFT
    w = 1.0 / (z * z)
    # Bernoulli numbers: B_2k / (2k) for k = 1..6.
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w * (1 / 132)))))
    return np.asarray(np.log(z) - 0.5 / z - series - below)
