"""Online beta scaling by Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from calibrant.kernels.portable import log, logit
from calibrant.kernels.transforms import beta
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.online_platt import checked

SHORTEST: Final = 2.0**0.5


@transforms.add("online_beta")
@dataclass(frozen=True)
class OnlineBeta(Transform):
    """Learn three parameters: one for each side of 1/2, and a shift.

    The forecast is sigmoid(a log(raw) + b log(1 - raw) + c), from (1, -1, 0) on, which is the
    raw forecast.  It can bend where Platt scaling is straight.

    Parameters
    ----------
    gamma, rho, radius, clip
        As in :class:`~calibrant.transforms.OnlinePlatt`.

    Notes
    -----
    The total log loss exceeds that of the best fixed parameters in hindsight by O(ln T), whatever
    the outcomes.  No promise of calibration.  The paper prints (1, 1, 0) as the start, which
    is not the raw forecast.

    References
    ----------
    Gupta and Ramdas (2023), "Online Platt Scaling with Calibeating"; Kull, Silva Filho and
    Flach (2017), "Beta calibration".

    Examples
    --------
    >>> online = OnlineBeta().online()
    >>> round(online.predict_one(0.3), 12)
    0.3
    """

    name = "online_beta"
    kernel = beta.KERNEL
    notes = beta.NOTES
    reference = "Gupta and Ramdas 2023; Kull, Silva Filho and Flach 2017"
    guarantee = "log loss <= best fixed parameters' + O(ln T)/T"
    assumption = "none"
    cost = "O(1) a round"

    gamma: float = 0.1
    rho: float = 25.0
    radius: float = 100.0
    clip: float = 0.01

    def __post_init__(self) -> None:
        self._set(**checked(self, SHORTEST, "sqrt(2)"))

    def fresh(self) -> State:
        """Return the parameters of the raw forecast."""
        start, ends = 1.0 / self.rho, (-logit(self.clip), log(1.0 - self.clip))
        head = [1.0 / self.gamma, log(self.clip), self.radius * self.radius, 1.0, -1.0, 0.0]
        return [*head, start, 0.0, 0.0, start, 0.0, start, *ends, 0.0, 0.0]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [beta.STEP, beta.LEAST, beta.SQUARE, beta.REACH, beta.MOST]
