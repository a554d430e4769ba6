"""The spherical loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.losses.base import Array, OrderedLoss, ends_of

# Where (1 - p)/|(p, 1 - p)|^3 is largest: the smaller root of 4 p^2 - 7 p + 2.
_STEEPEST = (7.0 - math.sqrt(17.0)) / 8.0


@dataclass(frozen=True)
class Spherical(OrderedLoss):
    """``1 - p_y / |(p, 1 - p)|`` with ``p_1 = p`` and ``p_0 = 1 - p``: proper and at most 1.

    Notes
    -----
    With s(p) the length of (p, 1 - p), the curve under 1 has slope ``-(1 - p)/s^3``, and
    the Bayes risk ``1 - s(p)`` has second derivative ``-1/s^3``, hence curvature
    ``1/(2 s(1/2)^3) = sqrt(2)``.

    References
    ----------
    Good (1971), in Foundations of Statistical Inference; Gneiting and Raftery (2007),
    Strictly proper scoring rules, prediction, and estimation.

    Examples
    --------
    >>> loss = Spherical()
    >>> loss(1, 1.0), loss(1, 0.0), round(loss(1, 0.5), 4)
    (0.0, 1.0, 0.2929)
    >>> round(loss.lipschitz(), 4), round(loss.curvature(), 4)
    (1.6164, 1.4142)
    """

    name = "spherical"
    proper = True

    def given_zero(self, forecast: Array) -> Array:
        """Return ``1 - (1 - p)/s(p)``."""
        return 1.0 - (1.0 - forecast) / np.hypot(forecast, 1.0 - forecast)

    def given_one(self, forecast: Array) -> Array:
        """Return ``1 - p/s(p)``."""
        return 1.0 - forecast / np.hypot(forecast, 1.0 - forecast)

    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the slope at the point of the range nearest to where it is steepest."""
        bottom, top = ends_of(low, high)
        rising = _slope(min(max(_STEEPEST, bottom), top))
        falling = _slope(min(max(_STEEPEST, 1.0 - top), 1.0 - bottom))
        return max(rising, falling)

    def curvature(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the square root of 2."""
        ends_of(low, high)
        return math.sqrt(2.0)


def _slope(p: float) -> float:
    return float((1.0 - p) / math.hypot(p, 1.0 - p) ** 3)
