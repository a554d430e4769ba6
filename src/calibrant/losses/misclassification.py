"""The misclassification loss of the decision "at least one half"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.losses.base import Array, OrderedLoss, ends_of


@dataclass(frozen=True)
class Misclassification(OrderedLoss):
    """1 if the forecast is on the wrong side of one half, else 0: proper, with one jump.

    Notes
    -----
    The paper's formula has its two indicators exchanged and charges right decisions.  With
    an even number of buckets one half is a bucket edge, the loss is constant inside each
    bucket and buckets cost nothing; with an odd number the middle bucket costs 1, and no
    bound holds better than trivially.

    Examples
    --------
    >>> loss = Misclassification()
    >>> loss(1, 0.5), loss(0, 0.5), loss(1, 0.4)
    (0.0, 1.0, 1.0)
    >>> loss.lipschitz(0.4, 0.5), loss.lipschitz(0.4, 0.6)
    (0.0, inf)
    """

    name = "misclassification"
    proper = True

    def given_zero(self, forecast: Array) -> Array:
        """Return 1 where the forecast is at least one half."""
        return np.asarray(forecast >= 0.5, dtype=np.float64)

    def given_one(self, forecast: Array) -> Array:
        """Return 1 where the forecast is below one half."""
        return np.asarray(forecast < 0.5, dtype=np.float64)

    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return 0 on one side of one half, infinity across it."""
        bottom, top = ends_of(low, high)
        return np.inf if bottom < 0.5 < top else 0.0

    def curvature(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return infinity: next to the jump a small gap costs more than its square."""
        ends_of(low, high)
        return np.inf
