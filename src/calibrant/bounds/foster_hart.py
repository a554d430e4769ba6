"""C2 of the average-gap rule (calibrator ``foster_hart``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds.bound import Bound
from calibrant.bounds.concentration import over_draws
from calibrant.bounds.game import game, pull, strength
from calibrant.bounds.harmonic import harmonic, harmonic_cap
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput

_THEOREM = "average gap"


def foster_hart(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    prior: float = 0.0,
    centre: float | None = None,
    delay: int = 0,
    failure: float | None = None,
) -> Bound:
    """Bound C2 of the average-gap rule after so many rounds, whatever the outcomes.

    Parameters
    ----------
    rounds
        Rounds played, T.
    cells
        Grid points of one calibrator, K.
    half_cell
        Half a cell of the calibrator's grid, h.
    buckets
        Instances of the calibrator, one per bucket of Algorithm 1, M.
    prior, centre
        Pseudo-rounds per grid point with which each instance starts, k0, and their mean
        outcome c; ``None`` for a mean that is not known or differs between buckets.
    delay
        How many outcomes may be outstanding when a forecast is made, D.
    failure
        The probability with which the bound may fail; ``None`` bounds the expectation.

    Returns
    -------
    Bound
        A bound on C2; use ``as_c1`` for C1.  Under ``buckets`` it bounds the average of the
        instances' C2, weighted by their rounds, and so the C2 of all rounds together.

    Notes
    -----
    With ``k = min(M K, T)`` cells that can have been visited, and without prior or delay,

        E C2 <= h^2 + k (1 + ln(T/k))/T.

    Proof.  Let ``Q = sum_i S_i^2/n_i``, so that ``C2 = Q/T``, and ``e_i = S_i/n_i``.  A visit
    of cell i with ``v = y - g_i`` adds ``2 e_i v - e_i^2 + (v - e_i)^2/(n_i + 1)``.  If i and
    i+1 at distance d are played with probabilities proportional to ``b = -e_{i+1}`` and
    ``a = e_i``, the first two terms have mean ``2 a b d/(a + b) - a b``, which is at most
    ``d^2/4 <= h^2`` for either outcome.  A cell with gap 0 gives 0, and the first or last
    cell, played alone because its gap points out of the grid, at most ``2|e| h - e^2 <= h^2``.
    In the last term ``v - e_i`` is ``y`` minus the mean outcome so far, so the visits of one
    cell add at most ``1 + 1/2 + ... + 1/n_i``; sums of concave functions of counts that add
    up to T are largest for equal counts.

    Prior.  The rule then works with ``n_i + k0`` and ``S_i + k0 (c - g_i)``.  The same proof
    bounds the growth of the potential of those; and since
    ``n (r - g)^2 + k0 (c - g)^2 = (n + k0) (r' - g)^2 + k0 n/(n + k0) (r - c)^2`` for the two
    means r, c and their mixture r', the growth is Q minus the sum of the last terms.  Each
    visited cell thus has ``1/(k0 + 1) + ... + 1/(k0 + n)`` and ``k0 n/(n + k0) (r - c)^2``.

    Delay.  The mixture is made from gaps that miss up to D visits.  If m visits of a cell
    are missing its mean is off by at most ``m/n``, which adds at most ``2 min(D, n)/n`` to
    the drift and turns the factor 1 of the harmonic sum into ``1 + 2D``.

    Failure.  ``2 e v - e^2 = (y - g)^2 - (y - r)^2`` lies in [-1, 1]; Azuma's inequality adds
    ``sqrt(2 ln(1/failure)/T)``.

    References
    ----------
    Foster (1999), A proof of calibration via Blackwell's approachability theorem; Foster
    and Hart (2021), Forecast hedging and calibration.

    Examples
    --------
    >>> round(foster_hart(10_000, cells=11, half_cell=0.05).value, 5)
    0.01109
    >>> round(foster_hart(10_000, cells=11, half_cell=0.05, buckets=10).value, 5)
    0.06311
    """
    sizes = game(rounds, cells, half_cell, buckets)
    k0, k, each = strength(prior), sizes.visited, sizes.T / sizes.visited
    bias = pull(centre) * k0 * each / (each + k0)
    total = k * (_staleness(delay) * harmonic_cap(each, k0) + bias)
    return _bound(sizes.T, sizes.h, total, failure)


def foster_hart_measured(
    counts: ArrayLike,
    half_cell: float,
    *,
    prior: float = 0.0,
    means: ArrayLike | None = None,
    centre: ArrayLike | None = None,
    delay: int = 0,
    failure: float | None = None,
) -> Bound:
    """Bound C2 of the average-gap rule from how often each cell was visited.

    Parameters
    ----------
    counts
        Visits per cell, prior left out, in any shape: all buckets together.
    half_cell
        Half a cell of the grid, h.
    prior
        Pseudo-rounds per grid point with which each instance started, k0.
    means
        Mean outcome of each cell's visits, same shape; what is said of a cell never
        visited does not matter.  Without it the worst is assumed.
    centre
        Mean outcome of the pseudo-rounds: a number, or an array that broadcasts against
        ``counts``, such as a column with one entry per bucket.
    delay, failure
        As in ``foster_hart``.

    Notes
    -----
    The proof of ``foster_hart``, stopped before the worst case is taken:

        E C2 <= h^2 + (1/T) E sum_visited [(1 + 2D)(H_{n + k0} - H_{k0})
                                           + k0 n/(n + k0) (r - c)^2].

    With ``failure`` the same holds for the very counts at hand: only the drift is random.

    Examples
    --------
    >>> counts = [0, 0, 60, 30, 10, 0]
    >>> round(foster_hart_measured(counts, 0.1).value, 4)
    0.126
    >>> means = [0, 0, 0.45, 0.55, 0.5, 0]
    >>> round(foster_hart_measured(counts, 0.1, prior=2, means=means, centre=0.5).value, 4)
    0.0838
    """
    n = visits(counts)
    T = int(n.sum())
    h = game(T, 1, half_cell).h
    k0 = strength(prior)
    log = _staleness(delay) * harmonic(n, k0)
    bias = k0 * n / np.maximum(n + k0, 1.0) * _distances(n, means, centre)
    return _bound(T, h, float(log.sum() + bias.sum()), failure)


def _bound(rounds: int, h: float, total: float, failure: float | None) -> Bound:
    value = h * h + total / rounds
    return over_draws(value, "C2", _THEOREM, rounds, failure)


def _staleness(delay: Any) -> float:
    return 1.0 + 2.0 * check.whole(delay, "delay")


def visits(counts: ArrayLike) -> Reals:
    """Return how often each cell was visited, checked."""
    n = np.asarray(counts, dtype=np.float64)
    if not (np.isfinite(n) & (n >= 0.0) & (n == np.floor(n))).all() or n.sum() < 1.0:
        raise InvalidInput(f"counts must be whole numbers with a sum above 0, got {counts!r}")
    return n


def _distances(n: Reals, means: ArrayLike | None, centre: ArrayLike | None) -> Reals:
    if means is None or centre is None:
        return np.ones_like(n)
    r = np.where(n > 0.0, np.asarray(means, dtype=np.float64), 0.0)
    return np.asarray((r - np.asarray(centre, dtype=np.float64)) ** 2)
