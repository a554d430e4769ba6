"""Calibration and accuracy of average gaps with an anchor (``anchored``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds.bound import Bound
from calibrant.bounds.concentration import over_draws
from calibrant.bounds.foster_hart import visits
from calibrant.bounds.game import EXPECTED, game
from calibrant.bounds.harmonic import harmonic, harmonic_cap
from calibrant.core import check

_THEOREM = "average gap with an anchor"


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
) -> Bound:
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
    sizes = game(rounds, cells, half_cell, buckets)
    c, R0, floor = checked_anchor(strength, patience, sizes.h, end)
    used, k = min(buckets, sizes.T), sizes.visited
    value = floor + (used * c * R0 + k * harmonic_cap(sizes.T / k)) / sizes.T
    return over_draws(value, "C2", _THEOREM, sizes.T, failure)


def anchored_measured(
    counts: ArrayLike,
    half_cell: float,
    *,
    strength: float = 4.0,
    patience: float = 3.0,
    end: float = 0.0,
) -> Bound:
    """Bound C2 as :func:`anchored` does, with the counts of a run.

    Examples
    --------
    >>> round(anchored_measured([[500, 300, 200]], half_cell=0.25).value, 4)
    0.0935
    """
    table = np.atleast_2d(visits(counts))
    c, R0, floor = checked_anchor(strength, patience, half_cell, end)
    used = int((table.sum(-1) > 0).sum())
    total = used * c * R0 + float(harmonic(table).sum())
    return Bound(floor + total / float(table.sum()), "C2", EXPECTED, _THEOREM, "sharper")


def anchored_regret(
    counts: ArrayLike,
    half_cell: float,
    *,
    strength: float = 4.0,
    patience: float = 3.0,
    end: float = 0.0,
) -> Bound:
    """Bound how much more than the anchors the draws lose, in squared loss.

    Notes
    -----
    With ``p(R) >= c (R0 + R)`` the inequality at :func:`anchored` gives
    ``c E[R] <= T f + sum_i H(n_i) - E[T C2]`` for the mean forecasts; a draw loses at most h^2
    more than its mean on average.

    Examples
    --------
    >>> round(anchored_regret([[500, 300, 200]], half_cell=0.025).value, 4)
    0.0055
    """
    table = np.atleast_2d(visits(counts))
    c, _, floor = checked_anchor(strength, patience, half_cell, end)
    h, rounds = check.real(half_cell, "half_cell"), float(np.sum(table))
    mean = (floor + float(harmonic(table).sum()) / rounds) / c
    return Bound(mean + h * h, "regret", EXPECTED, _THEOREM, "sharper")


def checked_anchor(
    strength: float, patience: float, h: float, end: float
) -> tuple[float, float, float]:
    """Return c, R0 and the floor of the bound, checked."""
    c = check.real(strength, "strength", low=0.0, rule="a finite number of at least 0")
    R0 = check.real(patience, "patience", low=2.85, rule="a finite number of at least 2.85")
    away = check.real(end, "end", low=0.0, high=1.0, rule="a number in [0, 1]")
    return c, R0, max(h * h, (1.0 + 2.0 * c) * away * away)
