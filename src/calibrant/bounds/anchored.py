"""Bounds of the average-gap rule with an anchor, on one grid and on a grid that grows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds import game
from calibrant.bounds.gaps import visits
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput
from calibrant.kernels.anchor import due

_ANCHORED = "average gap with an anchor"
_GROWING = "average gap with an anchor, on a grid that grows"


def anchored(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    strength: float = 4.0,
    patience: float = 3.0,
    end: float = 0.0,
    failure: float | None = None,
) -> game.Bound:
    """Bound C2 of the average-gap rule that is pulled towards a forecast q of each round.

    Parameters
    ----------
    rounds, cells, half_cell
        T, the number K of grid points, and half the largest distance between neighbours, h.
    buckets
        Instances of the calibrator, M.
    strength, patience
        c and R0 of the rule.
    end
        How far the grid stays away from 0 or 1, at most; 0 for a grid that reaches both.
    failure
        The probability with which the bound may fail; ``None`` bounds the expectation.

    Notes
    -----
    With ``k = min(M K, T)`` cells that can have been visited and ``f = max(h^2, (1 + 2c) end^2)``,

        E C2 <= f + (M c R0 + k (1 + ln(T/k)))/T.

    Proof.  Let ``Q = sum_i S_i^2/n_i``, ``e_i = S_i/n_i`` (0 if ``n_i = 0``), and let R be how much
    more the mean forecasts m lost than the anchors q, in squared loss.  Take the potential
    ``Q + p(R)`` with ``p(R) = c R0 exp(R/R0)`` for R < 0 and ``c (R0 + R)`` from there on; its
    derivative ``c_t = c exp(min(R/R0, 0))`` is the pull.  A visit of cell i with ``v = y - g_i``
    adds ``2 e_i v - e_i^2 + (v - e_i)^2/(n_i + 1)`` to Q.  The pair is played with probabilities
    w and 1 - w that make the mean score ``E[e] + c_t (q - m)`` vanish, so ``m - q = E[e]/c_t``, and
    for either outcome, with D the difference of the two e and d the distance of the cells,

        E[2 e v - e^2] + c_t [(m - y)^2 - (q - y)^2]
            = w (1 - w) (2 D d - D^2) - E[e]^2 - c_t (m - q)^2 <= d^2/4 - c_t (m - q)^2.

    (With c_t = 0 the pair has ``E[e] = 0`` and the same follows.)  A cell played alone because
    its score is 0 gives at most ``-e^2 - c_t (m - q)^2``; the first or last cell, played alone
    because its score points out of the grid, at most ``(1 + 2c) end^2 - c_t (m - q)^2``.  What the
    derivative leaves out of p's growth is at most ``c_t/(2 R0) exp(1/R0) r^2`` with r the growth of
    R, and ``|r| <= min(1, 2 |m - q|)``, so it is at most ``c_t (m - q)^2`` if
    ``2 exp(1/R0) <= R0``, which holds from 2.85 on.  The last terms add up to harmonic sums as
    without an anchor.
    So ``E[T C2] + E[p(R)] <= p(0) + T f + sum_i H(n_i)`` with ``p(0) = c R0`` and p >= 0.

    Failure.  Only ``2 e v - e^2 = (y - g)^2 - (y - r)^2`` depends on the draw, and it lies in
    [-1, 1]; Azuma's inequality adds ``sqrt(2 ln(1/failure)/T)``.

    Examples
    --------
    >>> round(anchored(10_000, cells=21, half_cell=0.025).value, 5)
    0.01687
    """
    sizes = game.game(rounds, cells, half_cell, buckets)
    c, R0, floor = checked_anchor(strength, patience, sizes.h, end)
    used, k = min(buckets, sizes.T), sizes.visited
    value = floor + (used * c * R0 + k * game.harmonic_cap(sizes.T / k)) / sizes.T
    return game.over_draws(value, "C2", _ANCHORED, sizes.T, failure)


def anchored_measured(
    counts: ArrayLike,
    half_cell: float,
    *,
    strength: float = 4.0,
    patience: float = 3.0,
    end: float = 0.0,
    failure: float | None = None,
) -> game.Bound:
    """Bound C2 as :func:`anchored` does, with the counts of a run.

    With ``failure`` for the very counts at hand; without, the mean of C2 less this is at most 0.

    Examples
    --------
    >>> round(anchored_measured([[500, 300, 200]], half_cell=0.25).value, 4)
    0.0935
    """
    table = np.atleast_2d(visits(counts))
    c, R0, floor = checked_anchor(strength, patience, half_cell, end)
    used = int((table.sum(-1) > 0).sum())
    total = used * c * R0 + float(game.harmonic(table).sum())
    rounds = int(table.sum())
    return game.over_draws(floor + total / rounds, "C2", _ANCHORED, rounds, failure)


def anchored_regret(
    counts: ArrayLike,
    half_cell: float,
    *,
    strength: float = 4.0,
    patience: float = 3.0,
    end: float = 0.0,
    failure: float | None = None,
) -> game.Bound:
    """Bound how much more than the anchors the draws lose, in squared loss.

    Notes
    -----
    With ``p(R) >= c (R0 + R)`` the inequality at :func:`anchored` gives
    ``c E[R] <= T f + sum_i H(n_i) - E[T C2]`` for the mean forecasts; a draw loses at most h^2
    more than its mean on average.

    Failure.  Half of it is spent on each of the two.  The first exceeds its mean as C2 does, so
    ``azuma(T, failure/2)/c`` is added; what a draw loses more than its mean lies in [-1, 1], which
    adds ``azuma(T, failure/2)``.

    Examples
    --------
    >>> round(anchored_regret([[500, 300, 200]], half_cell=0.025).value, 4)
    0.0055
    """
    table = np.atleast_2d(visits(counts))
    c, _, floor = checked_anchor(strength, patience, half_cell, end)
    h, rounds = check.real(half_cell, "half_cell"), float(np.sum(table))
    mean = (floor + float(game.harmonic(table).sum()) / rounds) / c
    return regret_of(mean + h * h, c, rounds, _ANCHORED, failure)


def regret_of(
    value: float, c: float, rounds: float, theorem: str, failure: float | None
) -> game.Bound:
    """Return a bound on regret, with what chance adds to two means if it may fail."""
    excess = 0.0 if failure is None else game.azuma(int(rounds), game.share(failure, 2.0))
    return game.Bound(
        value + excess * (1.0 + 1.0 / c), "regret", game.probably(failure), theorem, "sharper"
    )


def checked_anchor(
    strength: float, patience: float, h: float, end: float
) -> tuple[float, float, float]:
    """Return c, R0 and the floor of the bound, checked."""
    c, R0 = checked_pull(strength, patience)
    away = check.real(end, "end", low=0.0, high=1.0, rule="a number in [0, 1]")
    return c, R0, max(h * h, (1.0 + 2.0 * c) * away * away)


def growing(
    rounds: int,
    resolution: int,
    doublings: int,
    *,
    buckets: int = 1,
    strength: float = 4.0,
    patience: float = 3.0,
    failure: float | None = None,
) -> game.Bound:
    """Bound C2 of the anchored average-gap rule whose grid i/N is refined as it learns.

    Parameters
    ----------
    rounds
        T.
    resolution, doublings
        The first N, and how often it is doubled at most.
    buckets
        Instances of the calibrator, M.
    strength, patience
        c and R0 of the rule.
    failure
        The probability with which the bound may fail; ``None`` bounds the expectation.

    Notes
    -----
    Let ``h_t`` be half a step of the grid in use in round t, G(T) the sum of ``h_t^2`` over T
    rounds of one instance, and ``k = min(M K, T)`` cells that can have been visited, with K the
    points of the finest grid that T outcomes bring about.  Then

        E C2 <= (M c R0 + M G(T/M) + k (1 + ln(T/k)))/T.

    Proof.  The potential is that of :func:`calibrant.bounds.anchored`, ``Q + p(R)`` with
    ``Q = sum_i S_i^2/n_i`` over all points of the finest grid.  A point that was never announced
    adds nothing to Q, so refining the grid in use does not change it, and as the coarser grid is
    part of the finer one no point with a gap is ever left out.  In each round the pair consists
    of neighbours of the grid in use, at the distance ``d = 2 h_t``, and makes the mean score
    vanish: the step of that proof holds with ``d^2/4 = h_t^2``.  The grid reaches 0 and 1, so no
    cell is announced alone unless its score is 0.  Summed up, ``E[T C2] + E[p(R)]`` is at most
    ``M c R0 + sum_t h_t^2 + sum_i H(n_i)``.  G is concave, since h_t falls, so T rounds in M
    instances cost at most ``M G(T/M)``; and k cells share the harmonic sums as without growth.

    Rate.  N is doubled after the least T with ``K (1 + ln(T/K))/T <= 1/(4 N^2)``, that is
    T of order ``N^3 ln N``.  As long as doublings are left both terms are thus of order
    ``(ln T/T)^(2/3)``: no floor.  After the last one the floor is that of the finest grid.

    Failure.  As at :func:`calibrant.bounds.anchored`.

    Examples
    --------
    >>> [round(growing(10**k, 20, 5).value, 6) for k in (5, 6, 7, 8)]
    [0.002733, 0.000793, 0.000198, 4.7e-05]
    >>> round(growing(10**8, 20, 0).value, 6)
    0.000629
    """
    T = check.whole(rounds, "rounds", low=1)
    M = check.whole(buckets, "buckets", low=1)
    c, R0 = checked_pull(strength, patience)
    levels = list(_levels(resolution, doublings))
    used = min(M, T)
    k = min(M * (_last(levels, T) + 1), T)
    floors = used * _squares(levels, T / used)
    value = (used * c * R0 + floors + k * game.harmonic_cap(T / k)) / T
    return game.over_draws(value, "C2", _GROWING, T, failure)


def growing_measured(
    counts: ArrayLike,
    resolution: int,
    doublings: int,
    *,
    strength: float = 4.0,
    patience: float = 3.0,
    failure: float | None = None,
) -> game.Bound:
    """Bound C2 as :func:`growing` does, with the counts of a run: a row for each bucket.

    Examples
    --------
    >>> round(growing_measured([[500, 0, 300, 0, 200]], 2, 1).value, 4)
    0.0589
    """
    table, floors = _counted(counts, resolution, doublings)
    c, R0 = checked_pull(strength, patience)
    used = int((table.sum(-1) > 0).sum())
    total = used * c * R0 + floors + float(game.harmonic(table).sum())
    rounds = int(table.sum())
    return game.over_draws(total / rounds, "C2", _GROWING, rounds, failure)


def growing_regret(
    counts: ArrayLike,
    resolution: int,
    doublings: int,
    *,
    strength: float = 4.0,
    patience: float = 3.0,
    failure: float | None = None,
) -> game.Bound:
    """Bound how much more than the anchors the draws lose, in squared loss.

    Notes
    -----
    As at :func:`calibrant.bounds.anchored_regret`, with the sum of ``h_t^2`` for ``T h^2``.

    Examples
    --------
    >>> round(growing_regret([[500, 0, 300, 0, 200]], 2, 1).value, 4)
    0.0397
    """
    table, floors = _counted(counts, resolution, doublings)
    checked_pull(strength, patience)
    c = check.real(strength, "strength", low=game.ABOVE_ZERO, rule="a finite number above 0")
    total = (floors + float(game.harmonic(table).sum())) / c + floors
    rounds = float(table.sum())
    return regret_of(total / rounds, c, rounds, _GROWING, failure)


def _levels(resolution: int, doublings: int) -> Iterator[tuple[int, float]]:
    """Yield each resolution with the outcomes of an instance after which it is left."""
    N = check.whole(resolution, "resolution", low=1)
    left = check.whole(doublings, "doublings")
    for level in range(left):
        yield N << level, float(due(N << level))
    yield N << left, np.inf


def _last(levels: list[tuple[int, float]], rounds: float) -> int:
    """Return the finest resolution with which one of so many forecasts can have been made."""
    return next(N for N, until in levels if rounds <= until)


def _squares(levels: list[tuple[int, float]], rounds: float) -> float:
    """Return the sum of squared half steps over the first rounds of an instance."""
    total, since = 0.0, 0.0
    for N, until in levels:
        total += max(min(rounds, until) - since, 0.0) / (4.0 * N * N)
        since = until
    return total


def _counted(counts: ArrayLike, resolution: int, doublings: int) -> tuple[Reals, float]:
    """Return the visits, and the sum of squared half steps with which they were made."""
    table, levels = np.atleast_2d(visits(counts)), list(_levels(resolution, doublings))
    cells = levels[-1][0] + 1
    if table.shape[-1] != cells:
        raise InvalidInput(f"counts must be rows of {cells} numbers, got {table.shape[-1]}")
    return table, sum(_squares(levels, rounds) for rounds in table.sum(-1).tolist())


def checked_pull(strength: float, patience: float) -> tuple[float, float]:
    """Return strength and patience, if theorems speak of such."""
    c = check.real(strength, "strength", low=0.0, rule="a finite number of at least 0")
    R0 = check.real(patience, "patience", low=2.85, rule="a finite number of at least 2.85")
    return c, R0
