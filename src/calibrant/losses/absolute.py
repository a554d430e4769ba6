"""The absolute loss, which is not proper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.losses.base import Array, OrderedLoss, ends_of


@dataclass(frozen=True)
class Absolute(OrderedLoss):
    """``|y - p|``: improper; the best answer to a belief below one half is 0.

    Notes
    -----
    This is the paper's example: on 0, 0, 1 repeated the calibrated forecast 1/3 loses 4/9
    a round and the constant 0 only 1/3.

    Examples
    --------
    >>> loss = Absolute()
    >>> loss(1, 0.25), loss.proper
    (0.75, False)
    """

    name = "absolute"
    proper = False

    def given_zero(self, forecast: Array) -> Array:
        """Return ``p``."""
        return np.asarray(forecast, dtype=np.float64)

    def given_one(self, forecast: Array) -> Array:
        """Return ``1 - p``."""
        return 1.0 - forecast

    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return 1."""
        ends_of(low, high)
        return 1.0

    def curvature(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return infinity: without properness no such constant exists."""
        ends_of(low, high)
        return np.inf
