"""C1 of Foster's rule of 1999, average gaps with half a cell of slack (``foster99``)."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from calibrant.bounds.bound import Bound
from calibrant.bounds.game import EXPECTED, Game, game, prior_costs, strength
from calibrant.bounds.harmonic import harmonic_cap

_THEOREM = "Foster (1999)"


def foster99(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    prior: float = 0.0,
    prior_scores: ArrayLike | None = None,
    visited: int | None = None,
) -> Bound:
    """Bound C1 of Foster's rule of 1999, whatever the outcomes.

    Parameters
    ----------
    rounds, cells, half_cell, buckets, prior, prior_scores
        As in ``regret_matching``.
    visited
        How many cells of all buckets were visited, for a bound tightened by a run; the prior
        scores are then those of these cells.

    Notes
    -----
    The smaller of two bounds.  The quoted one, for m cells with midpoints and e = 1/m, is
    ``E C1 <= e/2 + 2/sqrt(e T)``, here ``h + 2 sqrt(k/T)``; it is for a start from nothing
    and for no other grid, so it counts only where ``2 K h = 1``, which only midpoints have.
    The other one follows as for the average gap, with ``k = min(M K, T)`` or ``visited``, on
    every grid:

        E C1 <= h + sqrt(k (1 + ln(T/k))/T).

    Proof.  Let ``x_i = max(|S_i|/n_i - h, 0)`` and ``Q = sum_i n_i x_i^2``.  A visit with
    ``u = v - h`` (``-v - h`` if S_i is negative) adds at most
    ``2 x_i u - x_i^2 + (u - x_i)^2/(n_i + 1)``; the slack makes the mean of ``x_i u`` at most 0
    for either outcome, and ``u - x_i`` is y minus the mean outcome so far, or its negative.
    So ``E Q`` is at most the sum of ``1 + 1/2 + ... + 1/n_i``, and
    ``sum |S_i| <= h T + sum n_i x_i <= h T + sqrt(T Q)``.  A prior starts Q at
    ``sum_i max(|s_i| - h k0, 0)^2/k0``, lets the visited cells count ``k0 k`` pseudo-rounds
    more, and costs ``sum |s_i|`` on the way back.

    References
    ----------
    Foster (1999), A proof of calibration via Blackwell's approachability theorem; quoted
    as in Gupta and Ramdas (2023), Online Platt scaling with calibeating, appendix C.

    Examples
    --------
    >>> round(foster99(100, cells=10, half_cell=0.05).value, 4)
    0.6247
    >>> foster99(100, cells=10, half_cell=0.05).source
    'sharper'
    >>> foster99(10_000, cells=10, half_cell=0.05).source
    'cited'
    >>> foster99(10_000, cells=11, half_cell=0.05).source
    'sharper'
    """
    sizes, k0 = game(rounds, cells, half_cell, buckets), strength(prior)
    used = sizes if visited is None else game(rounds, visited, half_cell)
    derived, quoted = _derived(used, k0, prior_scores), _quoted(sizes, k0)
    if derived < quoted:
        return Bound(derived, "C1", EXPECTED, _THEOREM, "sharper")
    return Bound(quoted, "C1", EXPECTED, _THEOREM, "cited")


def _quoted(sizes: Game, k0: float) -> float:
    # K intervals of length 2h cover [0, 1] without overlap exactly if their centres are midpoints.
    if k0 > 0.0 or not math.isclose(2.0 * sizes.K * sizes.h, 1.0):
        return math.inf
    return sizes.h + 2.0 * math.sqrt(sizes.visited / sizes.T)


def _derived(sizes: Game, k0: float, prior_scores: ArrayLike | None) -> float:
    (shift, before), k = prior_costs(sizes, k0, prior_scores), sizes.visited
    weight, grown = sizes.T + k0 * k, k * harmonic_cap(sizes.T / k, k0)
    grown += before / k0 if k0 > 0.0 else 0.0
    return (sizes.h * weight + math.sqrt(weight * grown) + shift) / sizes.T
