"""Online Platt scaling by gradient steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from calibrant.core import check
from calibrant.kernels.transforms import descent
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.online_platt import clipping, positive

STARTS: Final = {"identity": 1.0, "zero": 0.0}


@transforms.add("platt_sgd")
@dataclass(frozen=True)
class PlattSGD(Transform):
    """Learn slope and intercept of the log-odds, one gradient step a round.

    What an online logistic regression on the log-odds of the raw forecast does, such as River's.
    A constant step never settles, and so follows drift.

    Parameters
    ----------
    step
        The step.
    start
        ``"identity"``: slope 1, so that the first forecasts are the raw ones.  ``"zero"``: slope 0,
        as River starts.
    clip
        Raw forecasts are moved into [clip, 1 - clip] first.

    Notes
    -----
    For parameters (a, b) fixed in hindsight the total log loss is at most theirs plus
    |(a, b) - start|^2 / (2 step) plus step/2 times the sum of squared gradients, whatever
    the outcomes.  No promise of calibration.

    References
    ----------
    Zinkevich (2003), "Online convex programming and generalized infinitesimal gradient ascent".

    Examples
    --------
    >>> online = PlattSGD().online()
    >>> for _ in range(1000):
    ...     online.learn_one(0.9, 0)
    >>> online.predict_one(0.9) < 0.1
    True
    """

    name = "platt_sgd"
    kernel = descent.KERNEL
    notes = descent.NOTES
    reference = "Zinkevich 2003"
    guarantee = "log loss <= that of any (a, b) + |(a, b) - start|^2/(2 step T) + step G^2/2"
    assumption = "G bounds the gradients: |(logit(clip), 1)|"
    cost = "O(1) a round"

    step: float = 0.01
    start: str = "identity"
    clip: float = 0.01

    def __post_init__(self) -> None:
        check.choice(self.start, "start", tuple(STARTS))
        self._set(step=positive(self.step, "step"), clip=clipping(self.clip))

    def fresh(self) -> State:
        """Return the slope to start from, and intercept 0."""
        return [self.step, self.clip, STARTS[self.start], 0.0, 0.0]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [descent.STEP, descent.LOW]
