"""Bounds of the rules over gaps: average gap, Foster (1999) and regret matching."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds import game
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput

_AVERAGE_GAP = "average gap"


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
) -> game.Bound:
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
    sizes = game.game(rounds, cells, half_cell, buckets)
    k0, k, each = game.strength(prior), sizes.visited, sizes.T / sizes.visited
    bias = game.pull(centre) * k0 * each / (each + k0)
    total = k * (_staleness(delay) * game.harmonic_cap(each, k0) + bias)
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
) -> game.Bound:
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
    h = game.game(T, 1, half_cell).h
    k0 = game.strength(prior)
    log = _staleness(delay) * game.harmonic(n, k0)
    bias = k0 * n / np.maximum(n + k0, 1.0) * _distances(n, means, centre)
    return _bound(T, h, float(log.sum() + bias.sum()), failure)


def _bound(rounds: int, h: float, total: float, failure: float | None) -> game.Bound:
    value = h * h + total / rounds
    return game.over_draws(value, "C2", _AVERAGE_GAP, rounds, failure)


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


_FOSTER = "Foster (1999)"


def foster99(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    prior: float = 0.0,
    prior_scores: ArrayLike | None = None,
    visited: int | None = None,
    failure: float | None = None,
) -> game.Bound:
    """Bound C1 of Foster's rule of 1999, whatever the outcomes.

    Parameters
    ----------
    rounds, cells, half_cell, buckets, prior, prior_scores
        As in ``regret_matching``.
    visited
        How many cells of all buckets were visited, for a bound tightened by a run; the prior
        scores are then those of these cells.
    failure
        The probability with which the bound may fail; ``None`` bounds the expectation.

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

    Failure.  ``2 x u - x^2 = u^2 - (u - x)^2`` lies in [-1, 1]: it is at most ``(1 - h)^2`` where
    it is positive, and ``u - x`` is in [-1, 1].  Azuma's inequality adds
    ``sqrt(2 T ln(1/failure))`` to Q, for the cells at hand.  The quoted bound has no such form.

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
    sizes, k0 = game.game(rounds, cells, half_cell, buckets), game.strength(prior)
    used = sizes if visited is None else game.game(rounds, visited, half_cell)
    more = 0.0 if failure is None else sizes.T * game.azuma(sizes.T, failure)
    derived, quoted = _derived(used, k0, prior_scores, more), _quoted(sizes, k0)
    if failure is not None or derived < quoted:
        return game.Bound(derived, "C1", game.probably(failure), _FOSTER, "sharper")
    return game.Bound(quoted, "C1", game.EXPECTED, _FOSTER, "cited")


def _quoted(sizes: game.Game, k0: float) -> float:
    # K intervals of length 2h cover [0, 1] without overlap exactly if their centres are midpoints.
    if k0 > 0.0 or not math.isclose(2.0 * sizes.K * sizes.h, 1.0):
        return math.inf
    return sizes.h + 2.0 * math.sqrt(sizes.visited / sizes.T)


def _derived(sizes: game.Game, k0: float, prior_scores: ArrayLike | None, more: float) -> float:
    (shift, before), k = game.prior_costs(sizes, k0, prior_scores), sizes.visited
    weight, grown = sizes.T + k0 * k, more + k * game.harmonic_cap(sizes.T / k, k0)
    grown += before / k0 if k0 > 0.0 else 0.0
    return (sizes.h * weight + math.sqrt(weight * grown) + shift) / sizes.T


_MATCHING = "regret matching on adjacent swaps"


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
) -> game.Bound:
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

        ``T E C1 <= h (T + k0 k) + sqrt(k (P_0 + T (1 + h)^2)) + sum_i |s_i|``.

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
    sizes, k0, D = (
        game.game(rounds, cells, half_cell, buckets),
        game.strength(prior),
        _delay(delay, failure),
    )
    shift, before = game.prior_costs(sizes, k0, prior_scores)
    reach = math.sqrt(sizes.visited) * _reach(sizes, before, D, failure)
    total = sizes.h * (sizes.T + k0 * sizes.visited) + reach + shift
    return game.Bound(total / sizes.T, "C1", game.probably(failure), _MATCHING, "sharper")


def _reach(sizes: game.Game, before: float, delay: int, failure: float | None) -> float:
    step = 1.0 + sizes.h
    if failure is None:
        return math.sqrt(before + (1 + 2 * delay) * sizes.T * step**2)
    deviation = math.sqrt(2.0 * sizes.T * math.log(2.0 / game.probable(failure)))
    return math.sqrt(before) + step * deviation


def _delay(delay: Any, failure: float | None) -> int:
    D = check.whole(delay, "delay")
    if D and failure is not None:
        raise InvalidInput(f"delay must be 0 where a failure probability is given, got {delay!r}")
    return D
