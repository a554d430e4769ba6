"""Bounds of the rules over all pairs of grid points, by exponential and by polynomial weights."""

from __future__ import annotations

import math
from typing import Any

from calibrant.bounds import game
from calibrant.core import check
from calibrant.errors import InvalidInput


def of_swaps(value: float, theorem: str, realised: bool, failure: float | None) -> game.Bound:
    """Return a bound on C2 of the draws if updates are realised, else on that of the mixtures."""
    if failure is not None and not realised:
        raise InvalidInput(f"failure must be None unless realised is true, got {failure!r}")
    if realised:
        return game.Bound(value, "C2", game.probably(failure), theorem, "sharper")
    return game.Bound(value, "pseudo C2", game.PATHWISE, theorem, "sharper")


_EXPONENTIAL = "internal regret by exponential weights"


def internal_regret(
    rounds: int, cells: int, *, buckets: int = 1, step: float | str = "fixed"
) -> game.Bound:
    """Bound the internal regret, per round, of exponential weights over all ordered pairs.

    Parameters
    ----------
    rounds, cells
        Rounds played, T, and actions, or grid points, K of each instance: ``P = K (K - 1)``
        ordered pairs.
    buckets
        Independent instances, M, whose internal regrets are added up.
    step
        ``"fixed"`` for ``sqrt(8 M ln P/T)``, ``"any-time"`` for ``sqrt(8 ln P/t)`` in an
        instance's t-th round, or a number.

    Notes
    -----
    For losses in [0, 1], over T rounds and all instances together, the largest
    ``R_ij = sum_t w_i (l_i - l_j)`` of each instance add up to at most

    - ``M ln P/step + step T/8`` for one step, ``sqrt(M T ln P/2)`` at the best one;
    - ``3 sqrt(M T ln P/8) + M sqrt(ln P/8)`` any time.

    Proof.  The fixed point makes the regrets ``r_ij = w_i (l_i - l_j)`` of one round average
    to 0 under the weights of the pairs; they lie in an interval of length 1, because two
    weights w_i add up to at most 1.  By Hoeffding's lemma a round adds at most ``step/8`` to
    the logarithm of the potential divided by the step.  For steps that shrink, the same sum
    telescopes up to ``ln P/step_T`` (de Rooij and others, 2014, Lemma 2), and
    ``(1/8) sum_t sqrt(8 ln P/t) <= 2 sqrt(T ln P/8)``.  The last term allows a schedule that
    is one round behind.  The book's any-time bound has 4 where we have 3.

    References
    ----------
    Cesa-Bianchi and Lugosi (2006), Prediction, learning, and games, theorem 2.3 and
    section 4.4; de Rooij, van Erven, Grunwald and Koolen (2014), Follow the leader if you
    can, hedge if you must.

    Examples
    --------
    >>> round(10_000 * internal_regret(10_000, cells=11).value, 1)
    153.3
    >>> round(10_000 * internal_regret(10_000, cells=11, step="any-time").value, 1)
    230.7
    """
    sizes = game.game(rounds, cells, 0.0, buckets)
    source: game.Source = "cited" if step == "fixed" else "sharper"
    return game.Bound(_regret(sizes, step) / sizes.T, "regret", game.PATHWISE, _EXPONENTIAL, source)


def exponential_regret(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    step: float | str = "fixed",
    prior: float = 0.0,
    centre: float | None = None,
    realised: bool = False,
    failure: float | None = None,
) -> game.Bound:
    """Bound C2 of the paper's own calibrator, exponential weights over all swaps.

    Parameters
    ----------
    rounds, cells, half_cell, buckets, prior, centre
        T, K, h, M, k0 and c, as in ``foster_hart``.
    step
        As in ``internal_regret``.
    realised
        Whether only the drawn cell was updated.  The bound is then on C2 of the draws, in
        expectation; otherwise on that of the mixtures, on every path.
    failure
        With ``realised``: the probability with which the bound may fail.

    Notes
    -----
    With R the bound of ``internal_regret`` times T,

        pseudo C2 <= h^2 + K R/T + 2 k0 M K max(c, 1 - c)^2/T.

    Proof.  Let j be the grid point nearest to the mean outcome r of cell i.  Then
    ``R_ij = W_i ((r - g_i)^2 - (r - g_j)^2)`` is at least ``W_i ((r - g_i)^2 - h^2)``; add up
    over the K cells.  A prior starts the regrets at ``k0 ((c - g_i)^2 - (c - g_j)^2)``: the
    potential starts higher by the largest of these, and going back from the rule's regrets
    to those of the rounds costs as much again.

    Realised updates keep the value.  Given the draw, regrets still span an interval of
    length 1; their weighted mean is no longer 0, but 0 on average over the draw, and in
    [-1, 1], so Azuma's inequality adds ``K sqrt(2 ln(1/failure)/T)``.

    References
    ----------
    Cesa-Bianchi and Lugosi (2006), sections 4.4 and 4.5; Foster and Vohra (1998),
    Asymptotic calibration.

    Examples
    --------
    >>> round(exponential_regret(10**6, cells=11, half_cell=0.05).value, 5)
    0.01936
    """
    sizes, k0 = game.game(rounds, cells, half_cell, buckets), game.strength(prior)
    total = sizes.K * _regret(sizes, step) + 2.0 * k0 * sizes.cells * game.pull(centre)
    value = sizes.h**2 + total / sizes.T
    if failure is not None:
        value += sizes.K * game.azuma(sizes.T, failure)
    return of_swaps(value, _EXPONENTIAL, realised, failure)


def _regret(sizes: game.Game, step: Any) -> float:
    # A single action has nothing to be swapped for: the logarithm of one pair, 0.
    log = math.log(max(sizes.K * (sizes.K - 1), 1))
    if step == "fixed":
        return math.sqrt(sizes.M * sizes.T * log / 2.0)
    if step == "any-time":
        return (3.0 * math.sqrt(sizes.M * sizes.T) + sizes.M) * math.sqrt(log / 8.0)
    rule = "'fixed', 'any-time' or a number above 0"
    eta = check.real(step, "step", low=game.ABOVE_ZERO, rule=rule)
    return sizes.M * log / eta + eta * sizes.T / 8.0


_POLYNOMIAL = "regret matching on all swaps"


def polynomial_regret(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    prior: float = 0.0,
    centre: float | None = None,
    realised: bool = False,
    failure: float | None = None,
) -> game.Bound:
    """Bound C2 of regret matching on all ordered pairs, with the quadratic potential.

    Parameters
    ----------
    rounds, cells, half_cell, buckets, prior, centre, realised, failure
        T, K, h, M, k0, c and the others, as in ``exponential_regret``.

    Notes
    -----
    Without prior,

        pseudo C2 <= h^2 + sqrt(M K (K - 1)/T).

    Proof.  Let ``P = sum max(R_ij, 0)^2`` over all buckets and ordered pairs.  The stationary
    law of the flows ``max(R_ij, 0)`` makes ``sum max(R_ij, 0) r_ij`` vanish, so P grows by
    at most ``sum r_ij^2 = sum_i w_i^2 sum_j (l_i - l_j)^2 <= K - 1`` a round, and
    ``P <= T (K - 1)``.  As for ``exponential_regret``, T C2 is at most ``h^2 T`` plus one
    regret per cell, and M K of them add up to at most ``sqrt(M K P)``: the sum of squares
    saves a factor ``sqrt K`` against M K times the largest.

    Prior.  The regrets start at no more than ``a = k0 max(c, 1 - c)^2`` in size, and only
    one of R_ij and R_ji is positive: P starts at no more than ``a^2 M K (K - 1)/2``, and
    going back to the regrets of the rounds costs ``a M K``.

    Realised updates have ``sum r_ij^2 <= K - 1`` as well, and the mixed term vanishes on
    average, so the value is kept in expectation.  With ``failure``, by Pinelis' argument as
    for ``regret_matching``, ``sqrt P <= sqrt P_0 + sqrt(2 T (K - 1) ln(2/failure))``.

    References
    ----------
    Foster and Vohra (1998), Asymptotic calibration; Hart and Mas-Colell (2000), A simple
    adaptive procedure leading to correlated equilibrium; Pinelis (1994).

    Examples
    --------
    >>> round(polynomial_regret(10**6, cells=11, half_cell=0.05).value, 5)
    0.01299
    """
    sizes = game.game(rounds, cells, half_cell, buckets)
    start = game.strength(prior) * game.pull(centre)
    reach = math.sqrt(sizes.cells) * _reach(sizes, start, failure)
    value = sizes.h**2 + (reach + start * sizes.cells) / sizes.T
    return of_swaps(value, _POLYNOMIAL, realised, failure)


def _reach(sizes: game.Game, start: float, failure: float | None) -> float:
    before, others = start**2 * sizes.cells * (sizes.K - 1) / 2.0, sizes.K - 1
    if failure is None:
        return math.sqrt(before + others * sizes.T)
    deviation = math.sqrt(2.0 * sizes.T * others * math.log(2.0 / game.probable(failure)))
    return math.sqrt(before) + deviation
