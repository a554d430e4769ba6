"""Online temperature scaling."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.kernels.transforms import temperature
from calibrant.registry import transforms
from calibrant.transforms.base import State
from calibrant.transforms.online_platt import Newton


@transforms.add("temperature")
@dataclass(frozen=True)
class Temperature(Newton):
    """Learn one factor on the log-odds: how sure the raw forecasts should have been.

    The forecast is sigmoid(a logit(raw)), from a = 1 on; 1/a is called the temperature.

    Parameters
    ----------
    gamma
        What steps are divided by.
    rho
        Strength of the start.
    radius
        The largest absolute value of the factor.
    clip
        Raw forecasts are moved into [clip, 1 - clip] first.

    Notes
    -----
    The total log loss exceeds that of the best fixed factor by O(ln T), whatever the outcomes.  No
    promise of calibration.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural networks"; Hazan,
    Agarwal and Kale (2007), "Logarithmic regret algorithms for online convex optimization".

    Examples
    --------
    >>> online = Temperature(rho=1.0).online()
    >>> for outcome in (1, 0, 1, 0) * 50:
    ...     online.learn_one(0.9, outcome)
    >>> round(online.predict_one(0.9), 1)
    0.5
    """

    kernel = temperature.KERNEL
    fixed = temperature.STEP, temperature.LOW, temperature.RADIUS
    notes = 1
    reference = "Guo et al. 2017; Hazan, Agarwal and Kale 2007"
    guarantee = "log loss <= best fixed factor's + O(ln T)/T"

    def fresh(self) -> State:
        """Return the factor 1."""
        return [1.0 / self.gamma, self.clip, self.radius, 1.0, self.rho, 0.0]
