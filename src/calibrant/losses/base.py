"""What a loss is: two curves over the forecast, one for each outcome, and four constants.

Write ``l(y, p)`` for the loss of forecast ``p`` under outcome ``y`` and
``D(p) = l(1, p) - l(0, p)`` for what the outcome makes of it.  A theorem asks one of four
things of a loss, always on the range of forecasts that it meets:

``bound``
    the largest value, the paper's B;
``swing``
    the largest difference between two values of D.  It is at most 2B, and it is all
    that Lemma 1 needs where the paper writes 2B;
``lipschitz``
    the steepest slope in p, which Lemma 2 needs;
``curvature``
    the smallest known k such that a forecast p made where the frequency was r loses at
    most k (r - p)^2 to the best constant: the way from C2 to accuracy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core import check
from calibrant.core.arrays import Reals

Array: TypeAlias = Reals

_HALVINGS = 60
_UP_TO_ONE = "a number from low to 1"


class Loss(ABC):
    """A loss of a forecast in [0, 1] under an outcome of 0 or 1.

    Call it with two scalars for a float, or with arrays, which are broadcast.  A subclass
    gives the two curves and the constants; nothing else is meant to be overridden.

    Examples
    --------
    >>> from calibrant.losses import Squared
    >>> Squared()(1, 0.25)
    0.5625
    >>> Squared()([0, 1], 0.25)
    array([0.0625, 0.5625])
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The word by which the registry and error messages know the loss."""

    @property
    @abstractmethod
    def proper(self) -> bool:
        """Whether the true probability minimises the expected loss, for every probability."""

    @abstractmethod
    def given_zero(self, forecast: Array) -> Array:
        """Return the loss of each forecast under the outcome 0."""

    @abstractmethod
    def given_one(self, forecast: Array) -> Array:
        """Return the loss of each forecast under the outcome 1."""

    @abstractmethod
    def bound(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the largest size of the loss over forecasts in [low, high]."""

    @abstractmethod
    def swing(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the largest minus the smallest ``l(1, p) - l(0, p)`` for p in [low, high]."""

    @abstractmethod
    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the steepest slope over forecasts in [low, high), infinite across a jump."""

    @abstractmethod
    def curvature(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return k with ``E_r l(y, p) - E_r l(y, r) <= k (r - p)^2``, p in [low, high], any r."""

    @overload
    def __call__(self, outcome: float, forecast: float) -> float: ...
    @overload
    def __call__(self, outcome: ArrayLike, forecast: NDArray[Any]) -> Array: ...
    @overload
    def __call__(self, outcome: NDArray[Any], forecast: ArrayLike) -> Array: ...
    def __call__(self, outcome: ArrayLike, forecast: ArrayLike) -> float | Array:
        """Return the loss; scalars give a float, arrays are broadcast against each other."""
        if np.ndim(outcome) == 0 and np.ndim(forecast) == 0:
            curve = self.given_one if check.outcome(outcome) else self.given_zero
            return float(curve(np.asarray(check.probability(forecast, "forecast"))))
        ones = _shaped(check.outcomes(np.ravel(outcome)), outcome)
        values = _shaped(check.probabilities(np.ravel(forecast), "forecasts"), forecast)
        return np.where(ones == 1, self.given_one(values), self.given_zero(values))

    def expected(self, belief: ArrayLike, forecast: ArrayLike) -> Array:
        """Return the mean loss of ``forecast`` if the outcome is 1 with probability ``belief``.

        Examples
        --------
        >>> from calibrant.losses import Log
        >>> Log().expected(0.0, 0.0).item()
        0.0
        """
        values = np.asarray(forecast, dtype=np.float64)
        return weighed(np.asarray(belief), self.given_zero(values), self.given_one(values))

    def comparators(self, buckets: int) -> Array:
        """Return, for each bucket, the constant that stands in best for a raw forecast in it.

        It is the q that makes the larger of ``l(1, q) - l(1, top)`` and
        ``l(0, q) - l(0, bottom)`` smallest, found by halving the bucket where the first
        falls below the second.  The paper compares with the bucket's lower edge instead.

        Examples
        --------
        >>> from calibrant.losses import Log, Squared
        >>> Squared().comparators(2).round(6).tolist()
        [0.375, 0.625]
        >>> Log().comparators(2).round(6).tolist()
        [0.333333, 0.666667]
        """
        return self.comparison(buckets)[0]

    def bucket_cost(self, buckets: int) -> float:
        """Return what the comparators lose at most, in one round, to the raw forecast.

        This is the price of ``buckets`` buckets in the accuracy bound of Algorithm 1, for
        losses whose curves are monotone, as those of every proper loss are.

        Examples
        --------
        >>> import math
        >>> from calibrant.losses import Log, Misclassification, Squared
        >>> round(Squared().bucket_cost(10), 6)
        0.047025
        >>> round(Log().bucket_cost(10), 6), round(math.log(1 + 1 / 10), 6)
        (0.09531, 0.09531)
        >>> Misclassification().bucket_cost(10), Misclassification().bucket_cost(11)
        (0.0, 1.0)
        """
        return float(self.comparison(buckets)[1].max())

    def comparison(self, buckets: int) -> tuple[Array, Array]:
        """Return the comparator of each bucket, and what it loses at most in one round."""
        bottom, top = _edges(check.whole(buckets, "buckets", low=1))
        best_one, best_zero = self.given_one(top), self.given_zero(bottom)
        low, high = bottom, top
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            falling = self.given_one(middle) - best_one > self.given_zero(middle) - best_zero
            low, high = np.where(falling, middle, low), np.where(falling, high, middle)
        costs = [
            np.maximum(self.given_one(q) - best_one, self.given_zero(q) - best_zero)
            for q in (low, high)
        ]
        return np.where(costs[0] < costs[1], low, high), np.minimum(costs[0], costs[1])


class OrderedLoss(Loss):
    """A loss that never grows when the forecast moves towards the outcome.

    Its curves and ``l(1, p) - l(0, p)`` are monotone, so bound and swing sit at the ends
    of the range.
    """

    slope: ClassVar[float] = math.inf
    """The steepest slope, where it is the same on every range."""
    bend: ClassVar[float] = math.inf
    """The curvature, where it is the same on every range."""

    def bound(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the larger of ``l(1, low)`` and ``l(0, high)``.

        Examples
        --------
        >>> from calibrant.losses import Log
        >>> Log().bound(), round(Log().bound(0.05, 0.95), 4)
        (inf, 2.9957)
        """
        ends = ends_of(low, high)
        return float(max(self.given_one(ends)[0], self.given_zero(ends)[1]))

    def swing(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return ``D(low) - D(high)`` with ``D(p) = l(1, p) - l(0, p)``.

        Examples
        --------
        >>> from calibrant.losses import Squared
        >>> Squared().swing(), Squared().swing(0.25, 0.75)
        (2.0, 1.0)
        """
        ends = ends_of(low, high)
        difference = self.given_one(ends) - self.given_zero(ends)
        return float(difference[0] - difference[1])

    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the steepest slope, which does not depend on the range."""
        ends_of(low, high)
        return self.slope

    def curvature(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the curvature, which does not depend on the range."""
        ends_of(low, high)
        return self.bend


def weighed(belief: ArrayLike, zero: Array, one: Array) -> Array:
    """Return ``(1 - belief) zero + belief one``; a weight of 0 cancels even an infinite loss."""
    belief = np.asarray(belief, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        misses = np.where(belief == 1.0, 0.0, (1.0 - belief) * zero)
        hits = np.where(belief == 0.0, 0.0, belief * one)
        return np.asarray(misses + hits, dtype=np.float64)


def ends_of(low: float, high: float) -> Array:
    """Return ``[low, high]`` after checking that they are two ordered probabilities."""
    bottom = check.probability(low, "low")
    return np.array([bottom, check.real(high, "high", low=bottom, high=1.0, rule=_UP_TO_ONE)])


def _edges(buckets: int) -> tuple[Array, Array]:
    # Buckets are half open, the last one closed: the largest float inside is their top.
    edges = np.arange(buckets + 1) / buckets
    top = np.nextafter(edges[1:], 0.0)
    top[-1] = 1.0
    return edges[:-1], top


def _shaped(flat: NDArray[Any], like: ArrayLike) -> NDArray[Any]:
    return flat.reshape(np.shape(like))
