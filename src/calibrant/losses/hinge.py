"""The hinge loss of a probability read as a margin, which is not proper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.losses.base import Array, OrderedLoss, ends_of


@dataclass(frozen=True)
class Hinge(OrderedLoss):
    """``max(0, 1 - (2y - 1)(2p - 1))``: improper.

    Notes
    -----
    A probability gives a margin ``2p - 1`` in [-1, 1], where the hinge never bends: the
    loss is twice the absolute one, and fails on the same sequences.

    Examples
    --------
    >>> loss = Hinge()
    >>> loss(1, 0.25), loss(0, 0.0), loss.proper
    (1.5, 0.0, False)
    """

    name = "hinge"
    proper = False

    def given_zero(self, forecast: Array) -> Array:
        """Return ``2p``."""
        return 2.0 * forecast

    def given_one(self, forecast: Array) -> Array:
        """Return ``2 (1 - p)``."""
        return 2.0 * (1.0 - forecast)

    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return 2."""
        ends_of(low, high)
        return 2.0

    def curvature(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return infinity: without properness no such constant exists."""
        ends_of(low, high)
        return np.inf
