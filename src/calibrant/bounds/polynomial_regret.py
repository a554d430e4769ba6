"""C2 of regret matching on all swaps (calibrator ``polynomial_regret``)."""

from __future__ import annotations

import math

from calibrant.bounds.bound import Bound
from calibrant.bounds.game import Game, game, probable, pull, strength
from calibrant.bounds.swaps import of_swaps

_THEOREM = "regret matching on all swaps"


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
) -> Bound:
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
    sizes = game(rounds, cells, half_cell, buckets)
    start = strength(prior) * pull(centre)
    reach = math.sqrt(sizes.cells) * _reach(sizes, start, failure)
    value = sizes.h**2 + (reach + start * sizes.cells) / sizes.T
    return of_swaps(value, _THEOREM, realised, failure)


def _reach(sizes: Game, start: float, failure: float | None) -> float:
    before, others = start**2 * sizes.cells * (sizes.K - 1) / 2.0, sizes.K - 1
    if failure is None:
        return math.sqrt(before + others * sizes.T)
    deviation = math.sqrt(2.0 * sizes.T * others * math.log(2.0 / probable(failure)))
    return math.sqrt(before) + deviation
