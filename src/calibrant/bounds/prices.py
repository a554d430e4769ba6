"""What a loss charges for miscalibration and for coarse buckets."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.bounds.bound import Bound
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.losses import Loss


@dataclass(frozen=True)
class Prices:
    """Loss per unit of C1, loss per unit of C2, and loss for having buckets at all."""

    swing: float
    curvature: float
    cost: float = 0.0

    def regret(self, calibration: Bound | float) -> float:
        """Return what calibration errors and buckets cost together.

        A number is read as C1.  A bound on C2 is paid for in whichever way is cheaper.
        """
        if not isinstance(calibration, Bound):
            c1 = check.real(calibration, "calibration", low=0.0, rule="a number of at least 0")
            return _times(self.swing, c1) + self.cost
        if calibration.quantity.endswith("regret"):
            told = repr(calibration.quantity)
            raise InvalidInput(f"calibration must be a bound on C1 or C2, got one on {told}")
        regret = _times(self.swing, calibration.as_c1().value)
        if calibration.quantity.endswith("C2"):
            regret = min(regret, _times(self.curvature, calibration.value))
        return regret + self.cost


def prices(loss: Loss, buckets: int, low: float, high: float) -> Prices:
    """Return the prices of a loss for a grid from ``low`` to ``high`` and so many buckets.

    The swing is taken over the grid's range widened to the constants that stand in for
    raw forecasts, since both are compared with each other.

    Examples
    --------
    >>> from calibrant.losses import get_loss
    >>> prices(get_loss("misclassification"), 10, 0.0, 1.0)
    Prices(swing=2.0, curvature=inf, cost=0.0)
    """
    stand_ins, costs = loss.comparison(buckets)
    return Prices(
        swing=loss.swing(min(low, float(stand_ins[0])), max(high, float(stand_ins[-1]))),
        curvature=loss.curvature(low, high),
        cost=float(costs.max()),
    )


def _times(price: float, amount: float) -> float:
    # An infinite price for nothing is still no guarantee.
    return math.inf if math.isinf(price) else price * amount
