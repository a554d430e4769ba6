"""The logarithmic loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.losses.base import Array, OrderedLoss, ends_of


@dataclass(frozen=True)
class Log(OrderedLoss):
    """``-ln p`` under 1 and ``-ln (1 - p)`` under 0: proper, and infinite at a sure mistake.

    Announce values away from 0 and 1, for example midpoints of m cells: the loss is then
    at most ``ln 2m``.  The raw forecast may still be 0 or 1.

    Notes
    -----
    The paper prints the loss without its minus sign.  The price of M buckets is
    ``ln(1 + 1/M)`` in every bucket, although the slope is unbounded: ``(j + 1)/(M + 1)``
    stands in for bucket j.  The curvature ``1/(p (1 - p))`` is the chi-square bound on the
    Kullback-Leibler divergence.

    References
    ----------
    Good (1952), Rational decisions.

    Examples
    --------
    >>> loss = Log()
    >>> round(loss(1, 0.5), 4), loss(1, 0.0), loss(0, 0.0)
    (0.6931, inf, 0.0)
    >>> round(loss.bound(0.05, 0.95), 4), loss.lipschitz(0.25, 0.75)
    (2.9957, 4.0)
    """

    name = "log"
    proper = True

    def given_zero(self, forecast: Array) -> Array:
        """Return ``-ln(1 - p)``."""
        with np.errstate(divide="ignore"):
            return np.abs(np.log1p(-forecast))

    def given_one(self, forecast: Array) -> Array:
        """Return ``-ln p``."""
        with np.errstate(divide="ignore"):
            return np.abs(np.log(forecast))

    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return ``max(1/low, 1/(1 - high))``."""
        bottom, top = ends_of(low, high)
        return _inverse(min(bottom, 1.0 - top))

    def curvature(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the larger ``1/(p (1 - p))`` of the two ends."""
        ends = ends_of(low, high)
        return _inverse(float((ends * (1.0 - ends)).min()))


def _inverse(number: float) -> float:
    return float(1.0 / number) if number > 0.0 else np.inf
