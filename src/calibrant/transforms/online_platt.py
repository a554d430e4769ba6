"""Slope and intercept of the log-odds, or of both logarithms, learned one step a round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from calibrant.core import check
from calibrant.kernels.portable import log, logit
from calibrant.kernels.transforms import beta, descent, platt
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms
from calibrant.transforms.base import Check, State, Transform, rules
from calibrant.transforms.buckets import remembered


def positive(value: Any, name: str) -> float:
    """Return a parameter that must be above 0."""
    return check.real(value, name, low=1e-12, rule="a finite number above 0")


def clipping(value: Any, name: str) -> float:
    """Return how far raw forecasts are kept away from 0 and 1."""
    return check.real(value, name, low=1e-15, high=0.49, rule="a number from 1e-15 to 0.49")


def newton(least: float, told: str) -> dict[str, Check]:
    """Return what all Newton steps ask of parameters; the ball must hold the start."""
    radius = partial(check.real, low=least, rule=f"a finite number of at least {told}")
    return rules(gamma=positive, rho=positive, radius=radius, clip=clipping)


@dataclass(frozen=True)
class Newton(Transform):
    """What transforms share that learn by Newton steps; see :class:`OnlinePlatt`."""

    checks = newton(1.0, "1")

    gamma: float = 0.1
    rho: float = 100.0
    radius: float = 100.0
    clip: float = 0.01


@transforms.add("online_platt")
@dataclass(frozen=True)
class OnlinePlatt(Newton):
    """Learn slope and intercept of the log-odds, one Newton step a round.

    The forecast is sigmoid(a logit(raw) + b), from a = 1 and b = 0 on: at first the raw
    forecast itself.  Right for forecasts that are systematically too sure, not sure
    enough or shifted; helpless where the error is of another shape.

    Parameters
    ----------
    gamma
        What steps are divided by.
    rho
        Strength of the start: what the sum of squared gradients begins with.
    radius
        The parameters stay within this distance of 0.
    clip
        Raw forecasts are moved into [clip, 1 - clip] first.
    memory
        After how many rounds gradients have lost most of their say, for streams that drift;
        infinite (or None): never.

    Notes
    -----
    Without forgetting, the total log loss exceeds that of the best fixed parameters of norm
    at most B in hindsight by at most 2 (e^B + 10 B) ln T + 1, with gamma and the ball chosen
    for it; whatever the outcomes.  No promise of calibration.

    References
    ----------
    Gupta and Ramdas (2023), "Online Platt Scaling with Calibeating"; Hazan, Agarwal and
    Kale (2007), "Logarithmic regret algorithms for online convex optimization".

    Examples
    --------
    >>> online = OnlinePlatt().online()
    >>> for _ in range(100):
    ...     online.learn_one(0.9, 1)
    ...     online.learn_one(0.9, 0)
    >>> round(online.predict_one(0.9), 1)
    0.5
    """

    checks = Newton.checks | rules(memory=remembered)
    reference = "Gupta and Ramdas 2023"
    guarantee = "log loss <= best fixed slope and intercept's + O(ln T)/T"

    memory: float | None = math.inf

    @property
    def kernel(self) -> Kernel:
        """The functions, with or without platt."""
        return platt.KERNEL if self.memory == math.inf else platt.FORGETTING

    def note_positions(self) -> list[int]:
        """Return where the log-odds of the last prediction are noted."""
        return [platt.FEATURE]

    def fresh(self) -> State:
        """Return slope 1 and intercept 0."""
        start = 1.0 / self.rho
        square = self.radius * self.radius
        reach = -logit(self.clip)
        words: State = [1.0 / self.gamma, reach, square, 1.0, 0.0, start, 0.0, start, 0.0]
        lost = 1.0 / (self.memory or math.inf)
        if lost > 0.0:
            words += [1.0 - lost, lost * self.rho, self.rho, 0.0, self.rho]
        return words

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        own = [platt.STEP, platt.REACH, platt.SQUARE]
        return own if self.memory == math.inf else [*own, platt.KEPT, platt.ADDED]

    def inverses(self) -> list[tuple[int, int]]:
        """Return where the inverse and the sums are, if these are kept."""
        return [] if self.memory == math.inf else [(platt.INVERSE, platt.SUM)]


def platt_of(given: Any) -> OnlinePlatt:
    """Return Platt scaling with the parameters of a transform that begins with it."""
    return OnlinePlatt(gamma=given.gamma, rho=given.rho, clip=given.clip)


SHORTEST: Final = 2.0**0.5


@transforms.add("online_beta")
@dataclass(frozen=True)
class OnlineBeta(Newton):
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

    kernel = beta.KERNEL
    checks = newton(SHORTEST, "sqrt(2)")
    fixed = beta.STEP, beta.LEAST, beta.SQUARE, beta.REACH, beta.MOST
    notes = 2
    reference = "Gupta and Ramdas 2023; Kull, Silva Filho and Flach 2017"
    guarantee = "log loss <= best fixed parameters' + O(ln T)/T"

    rho: float = 25.0

    def fresh(self) -> State:
        """Return the parameters of the raw forecast."""
        start, ends = 1.0 / self.rho, (-logit(self.clip), log(1.0 - self.clip))
        head = [1.0 / self.gamma, log(self.clip), self.radius * self.radius, 1.0, -1.0, 0.0]
        return [*head, start, 0.0, 0.0, start, 0.0, start, *ends, 0.0, 0.0]


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
    ``|(a, b) - start|^2 / (2 step)`` plus step/2 times the sum of squared gradients, whatever
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

    kernel = descent.KERNEL
    checks = rules(start=partial(check.choice, options=tuple(STARTS)), step=positive, clip=clipping)
    fixed = descent.STEP, descent.LOW
    notes = 1
    reference = "Zinkevich 2003"
    guarantee = "log loss <= that of any (a, b) + |(a, b) - start|^2/(2 step T) + step G^2/2"
    assumption = "G bounds the gradients: |(logit(clip), 1)|"

    step: float = 0.01
    start: str = "identity"
    clip: float = 0.01

    def fresh(self) -> State:
        """Return the slope to start from, and intercept 0."""
        return [self.step, self.clip, STARTS[self.start], 0.0, 0.0]
