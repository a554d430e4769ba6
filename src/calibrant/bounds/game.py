"""The terms of every bound: what it says, the sizes of a game, sums of steps, and chance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput

Quantity: TypeAlias = Literal["C1", "C2", "pseudo C1", "pseudo C2", "regret", "pseudo regret"]
Source: TypeAlias = Literal["paper", "cited", "sharper"]


@dataclass(frozen=True)
class Bound:
    """A number that a quantity stays below, per round.

    Attributes
    ----------
    value
        The bound, an average over rounds.
    quantity
        ``C1`` or ``C2`` of the drawn forecasts, or their ``regret``, the average extra loss;
        with ``pseudo`` before it, the same of the announced mixtures.
    assumption
        When the bound holds, in words.
    theorem
        The theorem that the bound comes from.
    source
        ``paper`` for the constants of Kuleshov and Ermon, ``cited`` for those of another
        publication, ``sharper`` for those proved in the docstring at hand.

    Examples
    --------
    >>> from calibrant.bounds import foster_hart
    >>> bound = foster_hart(rounds=10_000, cells=11, half_cell=0.05)
    >>> print(bound)
    C2 <= 0.01109 in expectation over the draws, against an adversary who sees the mixture
    and the past but never the draw (average gap; sharper)
    >>> round(float(bound.as_c1()), 4)
    0.1053
    """

    value: float
    quantity: Quantity
    assumption: str
    theorem: str
    source: Source

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"{self.quantity} <= {self.value:.4g} {self.assumption} ({self.theorem}; {self.source})"
        )

    def as_c1(self) -> Bound:
        """Return what this says about C1: ``C1 <= sqrt(C2)``, by Jensen's inequality."""
        if self.quantity == "C2":
            return replace(self, value=math.sqrt(self.value), quantity="C1")
        if self.quantity == "pseudo C2":
            return replace(self, value=math.sqrt(self.value), quantity="pseudo C1")
        return self


EXPECTED = (
    "in expectation over the draws, against an adversary who sees the mixture and the past "
    "but never the draw"
)
ESTIMATED = (
    "as an estimate, from the counts of this run, of a bound in expectation over the draws, "
    "against an adversary who sees the mixture and the past but never the draw"
)
PATHWISE = "for every sequence of outcomes, whatever the adversary sees"

ABOVE_ZERO = float(np.nextafter(0.0, 1.0))
_BELOW_ONE = float(np.nextafter(1.0, 0.0))


@dataclass(frozen=True)
class Game:
    """Checked sizes of one game; the letters are those of the paper.

    Attributes
    ----------
    T
        Rounds.
    K
        Grid points of one calibrator.
    h
        Half a cell of that calibrator's grid.
    M
        Buckets, each with a calibrator of its own.
    """

    T: int
    K: int
    h: float
    M: int

    @property
    def cells(self) -> int:
        """All grid points of all buckets."""
        return self.K * self.M

    @property
    def visited(self) -> int:
        """Grid points that can have been played, at most."""
        return min(self.cells, self.T)


def game(rounds: Any, cells: Any, half_cell: Any, buckets: Any = 1) -> Game:
    """Return the checked sizes."""
    return Game(
        T=check.whole(rounds, "rounds", low=1),
        K=check.whole(cells, "cells", low=1),
        h=check.real(half_cell, "half_cell", low=0.0, high=1.0, rule="a number in [0, 1]"),
        M=check.whole(buckets, "buckets", low=1),
    )


def half_cell(grid: ArrayLike) -> float:
    """Return the largest distance from a point of [0, 1] to its nearest grid point.

    That is half the widest spacing, or the distance from 0 or 1 to the grid if larger.

    Examples
    --------
    >>> half_cell([0.0, 0.25, 0.5, 0.75, 1.0])
    0.125
    >>> half_cell([0.125, 0.375, 0.625, 0.875])
    0.125
    >>> half_cell([0.5])
    0.5
    """
    points = check.probabilities(grid, "grid")
    if points.size == 0 or (np.diff(points) <= 0.0).any():
        raise InvalidInput(f"grid must be increasing and not empty, got {points.tolist()!r}")
    spacing = np.diff(points, prepend=-points[0], append=2.0 - points[-1])
    return float(spacing.max() / 2.0)


def probable(failure: Any) -> float:
    """Return a failure probability strictly between 0 and 1."""
    return check.real(
        failure, "failure", low=ABOVE_ZERO, high=_BELOW_ONE, rule="a number in (0, 1)"
    )


def probably(failure: float | None) -> str:
    """Return the words for a bound that fails with that probability, or holds in expectation."""
    if failure is None:
        return EXPECTED
    return (
        f"with probability at least {1.0 - failure:g} over the draws, against an adversary who "
        "sees the mixture and the past but never the draw"
    )


def estimated(bound: Bound | None) -> Bound | None:
    """Say of a bound in expectation that counts of one run stand in it for their means.

    What is proved is ``E C2 <= E B(counts)``.  So ``B(counts)`` estimates a bound; it bounds
    neither the expectation nor this run, and since ``E sqrt(B) <= sqrt(E B)`` its root estimates
    one on C1 that is rather too low.
    """
    if bound is None or bound.assumption != EXPECTED:
        return bound
    return replace(bound, assumption=ESTIMATED)


def share(failure: float, parts: float) -> float:
    """Return an equal part of a failure probability; never 0, of which no bound can speak.

    A share that is too small for a number becomes the least number, of which bounds are infinite.

    Examples
    --------
    >>> share(0.05, 2), share(1e-320, 1e9) > 0.0
    (0.025, True)
    """
    return max(probable(failure) / parts, ABOVE_ZERO)


def by_chance(failure: float, rounds: int) -> float:
    """Return the failure probability to use where the number of rounds was left to chance.

    Azuma's and Pinelis' inequalities speak of a number that was fixed beforehand.  If somebody
    chooses round by round who plays, let them speak of every ``2**j``, each with a share of
    ``1/((j + 1)(j + 2))`` of the failure, and take the first ``2**j`` that is large enough.  It is
    below twice the rounds there were, which half the square of that share makes up for.

    Examples
    --------
    >>> by_chance(0.05, 1000) < 0.05**2
    True
    """
    j = max(0, math.ceil(math.log2(max(rounds, 1))))
    return max(share(failure, (j + 1) * (j + 2)) ** 2 / 2.0, ABOVE_ZERO)


def strength(prior: Any) -> float:
    """Return the number of pseudo-rounds per grid point, at least 0."""
    return check.real(prior, "prior", low=0.0, rule="a number of at least 0")


def pull(centre: Any) -> float:
    """Return the largest squared distance of a frequency from the prior's mean.

    ``None`` stands for a mean that is not known, or differs between buckets: 1.
    """
    if centre is None:
        return 1.0
    c = check.probability(centre, "centre")
    return max(c, 1.0 - c) ** 2


def prior_costs(sizes: Game, k0: float, given: Any) -> tuple[float, float]:
    """Return sum |s_i| and sum max(|s_i| - h k0, 0)^2 over the gaps s_i that cells start with.

    Where none are given each is taken to be k0 in size, the worst.
    """
    if given is None:
        return sizes.cells * k0, sizes.cells * (k0 * (1.0 - sizes.h)) ** 2
    gaps = np.abs(np.asarray(given, dtype=np.float64).ravel())
    if gaps.size != sizes.cells or not np.isfinite(gaps).all():
        raise InvalidInput(f"prior_scores must be {sizes.cells} finite numbers, got {given!r}")
    return float(gaps.sum()), float((np.maximum(gaps - sizes.h * k0, 0.0) ** 2).sum())


def azuma(rounds: int, failure: float) -> float:
    """Return ``sqrt(2 ln(1/failure)/rounds)``, the excess of a mean of numbers in [-1, 1].

    If each number has conditional mean at most 0 given the past, their average exceeds
    this with probability at most ``failure``.

    References
    ----------
    Azuma (1967); Hoeffding (1963).

    Examples
    --------
    >>> round(azuma(10_000, 0.05), 5)
    0.02448
    """
    T = check.whole(rounds, "rounds", low=1)
    return math.sqrt(2.0 * math.log(1.0 / probable(failure)) / T)


def over_draws(
    value: float, quantity: Literal["C1", "C2"], theorem: str, rounds: int, failure: float | None
) -> Bound:
    """Return a bound in expectation over the draws, or one that fails with a small probability.

    The second is for quantities of which a draw changes a round's share by numbers in [-1, 1].

    Examples
    --------
    >>> over_draws(0.01, "C2", "average gap", 10_000, None).value
    0.01
    >>> round(over_draws(0.01, "C2", "average gap", 10_000, 0.05).value, 5)
    0.03448
    """
    excess = 0.0 if failure is None else azuma(rounds, failure)
    return Bound(value + excess, quantity, probably(failure), theorem, "sharper")


def pinelis(rounds: int, cells: int, failure: float) -> float:
    """Return ``2 sqrt(cells ln(2/failure)/rounds)``: how far draws stray from mixtures in C1.

    Notes
    -----
    In one round the vector of signed gaps gets ``(e_k - w) (y - g)`` more from the draw k
    than from the mixture w, of Euclidean length at most ``sqrt 2`` and mean 0.  A Hilbert
    space martingale with such steps is longer than ``2 sqrt(T ln(2/failure))`` with
    probability at most ``failure``, and its l1 length is at most ``sqrt(cells)`` times that.

    References
    ----------
    Pinelis (1994), Optimum bounds for the distributions of martingales in Banach spaces,
    Theorem 3.5.

    Examples
    --------
    >>> round(pinelis(10_000, 11, 0.05), 5)
    0.1274
    """
    T, K = check.whole(rounds, "rounds", low=1), check.whole(cells, "cells", low=1)
    return 2.0 * math.sqrt(K * math.log(2.0 / probable(failure)) / T)


def drawn(
    bound: Bound, rounds: int, cells: int, *, buckets: int = 1, failure: float | None = None
) -> Bound:
    """Turn a bound on mixtures into one on draws: on C1, or on regret from pseudo regret.

    Parameters
    ----------
    bound
        A bound on pseudo C1, pseudo C2 or pseudo regret.
    rounds, cells, buckets
        The sizes of the game.
    failure
        The probability with which the result may fail; ``None`` bounds the expectation.
        Not for regret.

    Notes
    -----
    Calibration.  In expectation the difference is at most ``sqrt(K/T)``: the variance of one
    step is ``sum_i w_i (1 - w_i) (y - g_i)^2 <= 1``, and Cauchy-Schwarz over the K cells does
    the rest.  With high probability ``pinelis`` is added instead.

    Regret.  If the outcome is chosen without sight of the draw, the draw's expected loss is
    that of the mixture in each round, so the bound keeps its value in expectation.

    Examples
    --------
    >>> from calibrant.bounds import exponential_regret
    >>> pseudo = exponential_regret(10**6, cells=11, half_cell=0.05)
    >>> round(float(pseudo.as_c1()), 4), round(float(drawn(pseudo, 10**6, 11)), 4)
    (0.1392, 0.1425)
    >>> from calibrant.bounds import regret_bound
    >>> drawn(regret_bound(pseudo, "squared", 10), 10**6, 11, buckets=10).quantity
    'regret'
    """
    sizes = game(rounds, cells, 0.0, buckets)
    if not bound.quantity.startswith("pseudo"):
        told = repr(bound.quantity)
        raise InvalidInput(f"bound must be one of pseudo C1, C2 or regret, got {told}")
    if bound.quantity == "pseudo regret":
        return _drawn_regret(bound, failure)
    T, k = sizes.T, sizes.visited
    excess = math.sqrt(k / T) if failure is None else pinelis(T, k, failure)
    value, told = bound.as_c1().value + excess, probably(failure)
    return replace(bound, value=value, quantity="C1", assumption=told, source="sharper")


def _drawn_regret(bound: Bound, failure: float | None) -> Bound:
    if failure is not None:
        raise InvalidInput(f"failure must be None for a bound on regret, got {failure!r}")
    return replace(bound, quantity="regret", assumption=EXPECTED)


_SHIFT = 10


def harmonic(count: ArrayLike, start: float = 0.0) -> Reals:
    """Return ``1/(start + 1) + ... + 1/(start + count)`` without summing.

    Notes
    -----
    The sum is a difference of two values of the digamma function, taken from its
    asymptotic series after shifting the argument up by ten: the error is below 1e-14
    relative to the larger of the two.

    Examples
    --------
    >>> harmonic([0, 1, 2, 4]).round(12).tolist()
    [0.0, 1.0, 1.5, 2.083333333333]
    >>> harmonic(2, start=3.0).round(12).item()
    0.45
    """
    n = np.asarray(count, dtype=np.float64)
    return np.asarray(_digamma(start + 1.0 + n) - _digamma(start + 1.0 + 0.0 * n))


def harmonic_cap(count: float, start: float = 0.0) -> float:
    """Return ``1/(start + 1) + ln((start + count)/(start + 1))``, at least ``harmonic``.

    It is the first term plus an integral, concave in ``count`` and defined for any real
    count of at least 1, as a theorem about the worst way to share out rounds needs.

    Examples
    --------
    >>> harmonic_cap(1), round(harmonic_cap(100), 4), round(float(harmonic(100)), 4)
    (1.0, 5.6052, 5.1874)
    """
    return 1.0 / (1.0 + start) + math.log((count + start) / (1.0 + start))


def _digamma(x: Reals) -> Reals:
    below = sum(1.0 / (x + k) for k in range(_SHIFT))
    z = x + _SHIFT
    w = 1.0 / (z * z)
    # Bernoulli numbers: B_2k / (2k) for k = 1..6.
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w * (1 / 132)))))
    return np.asarray(np.log(z) - 0.5 / z - series - below)
