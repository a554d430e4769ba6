"""From expectation to high probability, and from mixtures to draws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from calibrant.bounds.bound import Bound
from calibrant.bounds.game import EXPECTED, game, probable, probably
from calibrant.core import check
from calibrant.errors import InvalidInput


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
    if failure is None:
        return Bound(value, quantity, EXPECTED, theorem, "sharper")
    excess = azuma(rounds, failure)
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
    if failure is None:
        excess, assumption = math.sqrt(sizes.visited / sizes.T), EXPECTED
    else:
        excess, assumption = pinelis(sizes.T, sizes.visited, failure), probably(failure)
    value = bound.as_c1().value + excess
    return replace(bound, value=value, quantity="C1", assumption=assumption, source="sharper")


def _drawn_regret(bound: Bound, failure: float | None) -> Bound:
    if failure is not None:
        raise InvalidInput(f"failure must be None for a bound on regret, got {failure!r}")
    return replace(bound, quantity="regret", assumption=EXPECTED)
