"""The squared loss, or Brier score of one round."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.losses.base import Array, OrderedLoss, ends_of


@dataclass(frozen=True)
class Squared(OrderedLoss):
    """``(y - p)^2``: proper, at most 1, with slope at most 2.

    Notes
    -----
    A forecast p made where the frequency was r loses exactly ``(r - p)^2`` to the best
    constant, hence curvature 1, and swap regret over all of [0, 1] is the number of rounds
    times C2.  The price of M buckets is at most ``1/(2M) - 1/(4M^2)``: with bucket width w
    and centre c it is ``w (2 - w) c (1 - c)``.

    References
    ----------
    Brier (1950), Verification of forecasts expressed in terms of probability.

    Examples
    --------
    >>> loss = Squared()
    >>> loss(0, 0.5), loss.bound(), loss.lipschitz(), loss.curvature()
    (0.25, 1.0, 2.0, 1.0)
    """

    name = "squared"
    proper = True

    def given_zero(self, forecast: Array) -> Array:
        """Return ``p^2``."""
        return forecast * forecast

    def given_one(self, forecast: Array) -> Array:
        """Return ``(1 - p)^2``."""
        return (1.0 - forecast) * (1.0 - forecast)

    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return ``2 max(high, 1 - low)``."""
        bottom, top = ends_of(low, high)
        return float(2.0 * max(top, 1.0 - bottom))

    def curvature(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return 1."""
        ends_of(low, high)
        return 1.0
