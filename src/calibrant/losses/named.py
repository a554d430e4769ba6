"""The losses that have a name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from calibrant.errors import InvalidType, UnknownName
from calibrant.losses.base import Array, Loss, OrderedLoss, ends_of
from calibrant.losses.custom import CustomLoss


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
    bend = 1.0

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


# Where (1 - p)/|(p, 1 - p)|^3 is largest: the smaller root of 4 p^2 - 7 p + 2.
_STEEPEST = (7.0 - math.sqrt(17.0)) / 8.0


@dataclass(frozen=True)
class Spherical(OrderedLoss):
    """``1 - p_y / |(p, 1 - p)|`` with ``p_1 = p`` and ``p_0 = 1 - p``: proper and at most 1.

    Notes
    -----
    With s(p) the length of (p, 1 - p), the curve under 1 has slope ``-(1 - p)/s^3``, and
    the Bayes risk ``1 - s(p)`` has second derivative ``-1/s^3``, hence curvature
    ``1/(2 s(1/2)^3) = sqrt(2)``.

    References
    ----------
    Good (1971), in Foundations of Statistical Inference; Gneiting and Raftery (2007),
    Strictly proper scoring rules, prediction, and estimation.

    Examples
    --------
    >>> loss = Spherical()
    >>> loss(1, 1.0), loss(1, 0.0), round(loss(1, 0.5), 4)
    (0.0, 1.0, 0.2929)
    >>> round(loss.lipschitz(), 4), round(loss.curvature(), 4)
    (1.6164, 1.4142)
    """

    name = "spherical"
    proper = True
    bend = math.sqrt(2.0)

    def given_zero(self, forecast: Array) -> Array:
        """Return ``1 - (1 - p)/s(p)``."""
        return 1.0 - (1.0 - forecast) / np.hypot(forecast, 1.0 - forecast)

    def given_one(self, forecast: Array) -> Array:
        """Return ``1 - p/s(p)``."""
        return 1.0 - forecast / np.hypot(forecast, 1.0 - forecast)

    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the slope at the point of the range nearest to where it is steepest."""
        bottom, top = ends_of(low, high)
        rising = _slope(min(max(_STEEPEST, bottom), top))
        falling = _slope(min(max(_STEEPEST, 1.0 - top), 1.0 - bottom))
        return max(rising, falling)


def _slope(p: float) -> float:
    return float((1.0 - p) / math.hypot(p, 1.0 - p) ** 3)


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
    slope = 1.0

    def given_zero(self, forecast: Array) -> Array:
        """Return ``p``."""
        return np.asarray(forecast, dtype=np.float64)

    def given_one(self, forecast: Array) -> Array:
        """Return ``1 - p``."""
        return 1.0 - forecast


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
    slope = 2.0

    def given_zero(self, forecast: Array) -> Array:
        """Return ``2p``."""
        return 2.0 * forecast

    def given_one(self, forecast: Array) -> Array:
        """Return ``2 (1 - p)``."""
        return 2.0 * (1.0 - forecast)


LossLike: TypeAlias = str | Loss | Callable[[Any, Any], Any]

_LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (Squared(), Log(), Misclassification(), Spherical(), Absolute(), Hinge())
}


def loss_names() -> tuple[str, ...]:
    """Return the names that ``get_loss`` knows, proper losses first.

    Examples
    --------
    >>> loss_names()
    ('squared', 'log', 'misclassification', 'spherical', 'absolute', 'hinge')
    """
    return tuple(_LOSSES)


def get_loss(loss: LossLike) -> Loss:
    """Return the loss of that name, the loss itself, or one made from a function.

    Examples
    --------
    >>> get_loss("squared")
    Squared()
    >>> get_loss(lambda outcome, forecast: abs(outcome - forecast) ** 3).proper
    False
    >>> get_loss("quadratic")
    Traceback (most recent call last):
    calibrant.errors.UnknownName: loss must be one of 'squared', 'log', 'misclassification',
    'spherical', 'absolute', 'hinge', got 'quadratic'
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return _named(loss)
    if callable(loss):
        return CustomLoss(loss)
    raise InvalidType(f"loss must be a name, a loss or a function, got {loss!r}")


def registered_name(loss: Loss) -> str | None:
    """Return the name of a registered loss; None for any other, whatever it calls itself.

    Examples
    --------
    >>> registered_name(get_loss("squared"))
    'squared'
    >>> def squared(outcome, forecast):
    ...     return 100 * (outcome - forecast) ** 2
    >>> print(registered_name(get_loss(squared)))
    None
    """
    return loss.name if _LOSSES.get(loss.name) == loss else None


def _named(name: str) -> Loss:
    if name not in _LOSSES:
        known = ", ".join(repr(known) for known in _LOSSES)
        raise UnknownName(f"loss must be one of {known}, got {name!r}")
    return _LOSSES[name]
