"""Bounds of the average-gap rule with an anchor whose cells split where they are visited."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds.anchored import checked_pull, regret_of
from calibrant.bounds.game import ABOVE_ZERO, Bound, harmonic, harmonic_cap, over_draws
from calibrant.bounds.gaps import visits
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.kernels.refine import thresholds
from calibrant.kernels.swaps import AGE, HOLD, WARM

_REFINING = "average gap with an anchor, on cells that split"


def refining(
    rounds: int,
    values: ArrayLike,
    doublings: int = 0,
    *,
    buckets: int = 1,
    delay: int = 0,
    strength: float = 5.3,
    patience: float = 3.0,
    swaps: bool = False,
    fallbacks: int = 0,
    failure: float | None = None,
) -> Bound:
    """Bound C2 of the anchored average-gap rule whose neighbours split once drawn often enough.

    Parameters
    ----------
    rounds
        T.
    values, doublings
        All K points of the finest grid, of which every ``2**doublings``-th is in use at first.
    buckets
        Instances of the calibrator, M.
    delay
        The most outcomes that were outstanding when a forecast was made.
    strength, patience
        c and R0 of the rule.
    swaps
        Whether a mixture in front may ask for the first grid after a swap of models.
    fallbacks
        Outcomes that were learned besides, of rounds in which a budget announced the raw forecast.
    failure
        The probability with which the bound may fail; ``None`` bounds the expectation.

    Notes
    -----
    Let ``Var_t`` be the variance of the pair announced in round t, at most ``h_t^2`` with ``h_t``
    half the distance of its two points, and ``end`` how far the grid stays away from 0 or 1.  Then

        E[T C2] <= M c R0 + E sum_t Var_t + E sum_i H(n_i) + T (1 + 2c) end^2.

    Proof.  Let ``e_i = S_i/(n_i + 1)``, and take the potential ``Q + p(R)`` with
    ``Q = sum_i S_i^2/(n_i + 1)`` over all points of the finest grid, and R and p as at
    :func:`calibrant.bounds.anchored`.  A point that was never drawn adds nothing to Q, so it does
    not change when one comes into use; and none is ever left out, as draws never become fewer.  A
    visit of cell i with ``v = y - g_i`` adds ``2 e_i v - e_i^2 + (v - e_i)^2/(n_i + 2)``.  The pair
    of neighbours in use makes the mean score ``E[e] + c_t (q - m)`` vanish, so for either outcome,
    with D the difference of the two e and d the distance of the points,

        E[2 e v - e^2] + c_t [(m - y)^2 - (q - y)^2]
            = w (1 - w) (2 D d - D^2) - E[e]^2 - c_t (m - q)^2 <= Var_t - c_t (m - q)^2,

    for ``2 D d - D^2 <= d^2`` and ``Var_t = w (1 - w) d^2``.  A point announced alone gives what it
    gives there.  The last term of p's growth is paid as there.  In ``(v - e)^2`` stands the outcome
    less a mean of numbers in [0, 1], so n visits of a cell add at most ``H(n + 1) - 1``; and
    ``S^2/n`` is ``S^2/(n + 1)`` and ``(S/n)^2 n/(n + 1)``, at most ``n/(n + 1)`` more.  The two are
    ``H(n)`` together: that a cell begins as one draw without a gap costs nothing.

    A run counts each variance in parts of ``2**-20``, rounded up.

    Before the game.  A pair is announced until its two points were drawn as often as their split
    asks, which is at most so many rounds, and as many more as outcomes are outstanding; those of
    the finest grid for ever.  Under this the sum of ``h_t^2`` is largest if the widest pairs come
    first.  At each level a draw counts for two pairs at most, so that T rounds bring about no more
    splits than the cheapest for which 2 T draws are enough.  Both are concave in T, so M instances
    share T evenly at worst.

    A mixture in front that notices a swap of models asks for the first grid: then the pair is one
    of neighbours there, whatever was split, and nothing above changes.  It does so for 512 outcomes
    in 8,192, fallbacks included, and not in the first 2,048.  The first late outcome ends the watch
    for good, and until it comes as many forecasts more may be made on the first grid as outcomes
    are outstanding.  With ``swaps`` these rounds count besides, with half the widest distance
    squared each; to keep the total concave in T, the first 512 count as if they came evenly over
    the first 2,049 rounds, and later ones over the 8,192 before them.

    Failure.  As at :func:`calibrant.bounds.anchored`.

    Examples
    --------
    >>> from calibrant.core.grid import Grid
    >>> values = Grid("graded", 15 << 2).values
    >>> [round(refining(10**k, values, 2).value, 6) for k in (4, 5, 6, 7)]
    [0.039381, 0.005773, 0.001148, 0.000559]
    >>> [round(refining(10**k, values, 2, swaps=True).value, 6) for k in (4, 5, 6, 7)]
    [0.040148, 0.006277, 0.001626, 0.001034]
    """
    T, M = check.whole(rounds, "rounds", low=1), check.whole(buckets, "buckets", low=1)
    D, F = check.whole(delay, "delay"), check.whole(fallbacks, "fallbacks")
    c, R0 = checked_pull(strength, patience)
    points, used = check.probabilities(values, "values"), min(M, T)
    pairs = _pairs(tuple(points.tolist()), check.whole(doublings, "doublings", high=7))
    cells = used * _most_cells(pairs, len(points), T / used)
    k = min(cells, float(T))
    wide = most_retreats(T, D, F) * pairs.wide if swaps else 0.0
    floors = used * _most_squares(pairs, D, T / used) + T * _ends(points, c) + wide
    value = (used * c * R0 + floors + k * harmonic_cap(T / k)) / T
    return over_draws(value, "C2", _REFINING, T, failure)


def refining_measured(
    counts: ArrayLike, variance: float, *, strength: float = 5.3, patience: float = 3.0,
    end: float = 0.0, failure: float | None = None,
) -> Bound:  # fmt: skip
    """Bound C2 as :func:`refining` does, with counts and the sum of variances of a run.

    Examples
    --------
    >>> round(refining_measured([[500, 300, 200]], variance=2.5).value, 4)
    0.0374
    """
    table = np.atleast_2d(visits(counts))
    c, R0 = checked_pull(strength, patience)
    used, rounds = int((table.sum(-1) > 0).sum()), int(table.sum())
    total = used * c * R0 + _spread(table, variance, c, end)
    return over_draws(total / rounds, "C2", _REFINING, rounds, failure)


def refining_regret(
    counts: ArrayLike, variance: float, *, strength: float = 5.3, patience: float = 3.0,
    end: float = 0.0, failure: float | None = None,
) -> Bound:  # fmt: skip
    """Bound how much more than the anchors the draws lose, in squared loss.

    Notes
    -----
    As at :func:`calibrant.bounds.anchored_regret`; a draw loses its variance more than its mean on
    average.

    Examples
    --------
    >>> round(refining_regret([[500, 300, 200]], variance=0.6).value, 4)
    0.0043
    """
    table = np.atleast_2d(visits(counts))
    checked_pull(strength, patience)
    c = check.real(strength, "strength", low=ABOVE_ZERO, rule="a finite number above 0")
    rounds = float(table.sum())
    total = _spread(table, variance, c, end) / c + variance
    return regret_of(total / rounds, c, rounds, _REFINING, failure)


def most_variance(
    rounds: float, values: ArrayLike, doublings: int, *, retreats: float = 0.0
) -> float:
    """Return the largest sum of squared half distances over the rounds of an instance.

    With ``retreats`` a mixture in front may ask for the first grid during so many rounds.

    >>> most_variance(1000, [0.0, 0.5, 1.0], 0)
    62.5
    """
    pairs = _pairs(tuple(check.probabilities(values, "values").tolist()), doublings)
    return _most_squares(pairs, 0, rounds) + retreats * pairs.wide


def _spread(table: Reals, variance: float, c: float, end: float) -> float:
    """Return what variances, harmonic sums and the ends of the grid add up to."""
    seen = check.real(variance, "variance", low=0.0, rule="a finite number of at least 0")
    away = check.real(end, "end", low=0.0, high=1.0, rule="a number in [0, 1]")
    outside = float(table.sum()) * (1.0 + 2.0 * c) * away * away
    return seen + float(harmonic(table).sum()) + outside


def _ends(points: Reals, c: float) -> float:
    end = max(float(points[0]), 1.0 - float(points[-1]))
    return (1.0 + 2.0 * c) * end * end


def most_retreats(rounds: int, delay: int = 0, fallbacks: int = 0) -> float:
    """Return for how many rounds the first grid may be asked for after swaps of models, at most.

    >>> [most_retreats(rounds) for rounds in (2_049, 2_049 + 8_192, 2_049 + 2 * 8_192)]
    [512.0, 1024.0, 1536.0]
    """
    first, between, learned = WARM + 1, AGE + 1, rounds + fallbacks
    begun = min(learned / first, 1.0)
    later = max(learned - first, 0) / between
    return min(float(rounds), HOLD * (begun + later) + delay * begun)


class _Pairs(NamedTuple):
    """What can be announced, pairs of all levels together: the last level is never split."""

    wide: float
    """What a round on the first grid costs at most beyond one on a finer grid."""
    squares: Reals
    """Half the distance of each pair, squared, the largest first."""
    draws: Reals
    """The draws until each splits."""
    points: int
    """How many points are in use at first."""
    splits: list[Reals]
    """The least draws for 0, 1, 2... splits of each level, the widest first."""


@functools.lru_cache(maxsize=64)
def _pairs(points: tuple[float, ...], doublings: int) -> _Pairs:
    """Return the pairs of a grid, which no round changes."""
    due, levels = np.array(thresholds(list(points), doublings)), []
    for width in range(doublings, -1, -1):
        step = 1 << width
        squares = np.diff(points[::step]) ** 2 / 4.0
        middles = due[step >> 1 :: step] if width else np.full(len(squares), np.inf)
        levels.append((squares, np.ceil(middles)))
    squares, draws = (np.concatenate(each) for each in zip(*levels, strict=True))
    order = np.argsort(-squares, kind="stable")
    splits = [np.append(0.0, np.cumsum(np.sort(each))) for _, each in levels[:-1]]
    wide = float(levels[0][0].max()) if doublings else 0.0
    return _Pairs(wide, squares[order], draws[order], len(levels[0][0]) + 1, splits)


def _most_squares(pairs: _Pairs, delay: int, rounds: float) -> float:
    """Return the largest sum of squared half steps over the rounds of an instance."""
    until = np.minimum(np.cumsum(pairs.draws + delay), rounds)
    return float(pairs.squares @ np.ediff1d(until, to_begin=until[0]))


def _most_cells(pairs: _Pairs, cells: int, rounds: float) -> float:
    """Return the most points that can be in use after the rounds of an instance."""
    found = float(pairs.points)
    for due in pairs.splits:
        found += float(np.interp(2.0 * rounds, due, np.arange(len(due), dtype=np.float64)))
    return min(found, float(cells))
