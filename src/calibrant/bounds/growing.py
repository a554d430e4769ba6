"""Calibration and accuracy of average gaps with an anchor, on a grid that grows (``growing``)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds.bound import Bound
from calibrant.bounds.concentration import over_draws
from calibrant.bounds.foster_hart import visits
from calibrant.bounds.game import EXPECTED
from calibrant.bounds.harmonic import harmonic, harmonic_cap
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput
from calibrant.kernels.growing import due

_THEOREM = "average gap with an anchor, on a grid that grows"
_ABOVE_ZERO = float(np.nextafter(0.0, 1.0))


def growing(
    rounds: int,
    resolution: int,
    doublings: int,
    *,
    buckets: int = 1,
    strength: float = 4.0,
    patience: float = 3.0,
    failure: float | None = None,
) -> Bound:
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
    c, R0 = _checked(strength, patience)
    levels = list(_levels(resolution, doublings))
    used = min(M, T)
    k = min(M * (_last(levels, T) + 1), T)
    floors = used * _squares(levels, T / used)
    value = (used * c * R0 + floors + k * harmonic_cap(T / k)) / T
    return over_draws(value, "C2", _THEOREM, T, failure)


def growing_measured(
    counts: ArrayLike,
    resolution: int,
    doublings: int,
    *,
    strength: float = 4.0,
    patience: float = 3.0,
) -> Bound:
    """Bound C2 as :func:`growing` does, with the counts of a run: a row for each bucket.

    Examples
    --------
    >>> round(growing_measured([[500, 0, 300, 0, 200]], 2, 1).value, 4)
    0.0589
    """
    table, floors = _counted(counts, resolution, doublings)
    c, R0 = _checked(strength, patience)
    used = int((table.sum(-1) > 0).sum())
    total = used * c * R0 + floors + float(harmonic(table).sum())
    return Bound(total / float(table.sum()), "C2", EXPECTED, _THEOREM, "sharper")


def growing_regret(
    counts: ArrayLike,
    resolution: int,
    doublings: int,
    *,
    strength: float = 4.0,
    patience: float = 3.0,
) -> Bound:
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
    _checked(strength, patience)
    c = check.real(strength, "strength", low=_ABOVE_ZERO, rule="a finite number above 0")
    total = (floors + float(harmonic(table).sum())) / c + floors
    return Bound(total / float(table.sum()), "regret", EXPECTED, _THEOREM, "sharper")


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


def _checked(strength: float, patience: float) -> tuple[float, float]:
    c = check.real(strength, "strength", low=0.0, rule="a finite number of at least 0")
    R0 = check.real(patience, "patience", low=2.85, rule="a finite number of at least 2.85")
    return c, R0
