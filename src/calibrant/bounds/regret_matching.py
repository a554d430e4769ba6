"""C1 of regret matching on adjacent swaps (calibrator ``regret_matching``)."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from calibrant.bounds.bound import Bound
from calibrant.bounds.game import EXPECTED, Game, game, prior_costs, probable, probably, strength
from calibrant.core import check
from calibrant.errors import InvalidInput

_THEOREM = "regret matching on adjacent swaps"


def regret_matching(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    prior: float = 0.0,
    prior_scores: ArrayLike | None = None,
    delay: int = 0,
    failure: float | None = None,
) -> Bound:
    """Bound C1 of regret matching on adjacent swaps, whatever the outcomes.

    Parameters
    ----------
    rounds, cells, half_cell, buckets
        T, K, h and M, as in ``foster_hart``.
    prior
        Pseudo-rounds per grid point with which each instance starts, k0.
    prior_scores
        The signed gaps ``k0 (c - g_i)`` with which the cells start, all buckets together;
        without them each is taken to be k0 in size.
    delay
        How many outcomes may be outstanding when a forecast is made, D.
    failure
        The probability with which the bound may fail; ``None`` bounds the expectation.

    Notes
    -----
    With ``k = min(M K, T)`` and without prior, delay and failure,

        E C1 <= h + (1 + h) sqrt(k/T).

    Proof.  Let ``x_i = max(|S_i| - h n_i, 0)`` and ``P = sum_i x_i^2``.  A visit of a cell
    with ``S_i > h n_i`` turns x_i into at most ``|x_i + v - h|``; with the sign reversed,
    ``|x_i - v - h|``.  So P grows by at most ``2 x_i (v - h) + (1 + h)^2`` or its mirror
    image.  The rule plays i and i+1 with probabilities proportional to ``x_{i+1}`` and
    ``x_i``, which makes the mean of the first part proportional to
    ``(g_{i+1} - g_i) - 2h <= 0`` for either outcome; it is 0 for a cell with x = 0, and not
    positive for an end cell within h of 0 or 1.  Hence ``E P <= T (1 + h)^2``, and
    ``T C1 = sum |S_i| <= h T + sum x_i <= h T + sqrt(k P)``.

    Prior.  The proof speaks of ``S_i + s_i`` and ``n_i + k0`` and starts at
    ``P_0 = sum_i max(|s_i| - h k0, 0)^2``; going back to S costs ``sum |s_i|``:

        T E C1 <= h (T + k0 k) + sqrt(k (P_0 + T (1 + h)^2)) + sum_i |s_i|.

    Cells in use.  k is the number of cells that were visited: give it as ``cells``, with one
    bucket and the prior scores of these cells alone, for a bound tightened by a run.  In
    expectation it stands for its own mean; with ``failure`` and no prior the bound holds for
    the number at hand.

    Delay.  Scores that miss at most D visits are wrong by at most ``D (1 + h)``, so P grows
    by up to ``2 D (1 + h)^2`` more in each round: T becomes ``(1 + 2D) T`` under the root.

    Failure.  ``cosh(s sqrt P)`` grows on average by at most the factor
    ``exp(s^2 (1 + h)^2/2)`` a round, by Pinelis' argument, which asks of the drift only that
    it not be positive.  So ``sqrt P <= sqrt P_0 + (1 + h) sqrt(2 T ln(2/failure))`` with
    probability at least ``1 - failure``.  This form is not given for a delay.

    References
    ----------
    Hart and Mas-Colell (2000), A simple adaptive procedure leading to correlated
    equilibrium; Foster (1999); Pinelis (1994).

    Examples
    --------
    >>> round(regret_matching(10_000, cells=11, half_cell=0.05).value, 5)
    0.08482
    >>> round(regret_matching(10_000, cells=11, half_cell=0.05, failure=0.01).value, 5)
    0.16336
    """
    sizes, k0, D = game(rounds, cells, half_cell, buckets), strength(prior), _delay(delay, failure)
    shift, before = prior_costs(sizes, k0, prior_scores)
    reach = math.sqrt(sizes.visited) * _reach(sizes, before, D, failure)
    total = sizes.h * (sizes.T + k0 * sizes.visited) + reach + shift
    assumption = EXPECTED if failure is None else probably(failure)
    return Bound(total / sizes.T, "C1", assumption, _THEOREM, "sharper")


def _reach(sizes: Game, before: float, delay: int, failure: float | None) -> float:
    step = 1.0 + sizes.h
    if failure is None:
        return math.sqrt(before + (1 + 2 * delay) * sizes.T * step**2)
    deviation = math.sqrt(2.0 * sizes.T * math.log(2.0 / probable(failure)))
    return math.sqrt(before) + step * deviation


def _delay(delay: Any, failure: float | None) -> int:
    D = check.whole(delay, "delay")
    if D and failure is not None:
        raise InvalidInput(f"delay must be 0 where a failure probability is given, got {delay!r}")
    return D
