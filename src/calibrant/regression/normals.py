"""Normal distributions whose levels may have been moved.

Row t is ``G(Phi((x - mean) / sd))``: the normal CDF, and a map G of levels that goes straight
between its knots ``inner`` and ``outer``, from 0 to 1.  Without a map G is the identity.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Reals
from calibrant.kernels.quantiles import MIDDLE, normal_quantile

NARROW: Final = 0.5
"""Standard deviations below which a piece is integrated by points."""
LEGENDRE: Final = np.polynomial.legendre.leggauss(8)
_erfc = np.frompyfunc(math.erfc, 1, 1)
_quantile = np.frompyfunc(normal_quantile, 1, 1)


def normal_cdf(z: Reals) -> Reals:
    """Return the CDF of the standard normal distribution.

    >>> normal_cdf(np.array([0.0, 1.96])).round(4)
    array([0.5  , 0.975])
    """
    # Symmetric, so that the lower tail keeps its digits: erfc, not 1 + erf.
    small = np.asarray(_erfc(np.abs(z) / math.sqrt(2.0)) / 2.0, dtype=np.float64)
    return np.where(z < 0.0, small, 1.0 - small)


def normal_quantiles(levels: Reals) -> Reals:
    """Return the quantiles of the standard normal distribution, to the bit as one by one.

    >>> normal_quantiles(np.array([0.0, 0.5, 0.975])).round(2)
    array([-inf,  0.  ,  1.96])
    """
    q = levels - 0.5
    middle = np.abs(q) <= 0.425
    r = 0.180625 - q * q
    over, under = np.zeros(q.shape), np.zeros(q.shape)
    for top, bottom in MIDDLE:
        over, under = over * r + top, under * r + bottom
    found = q * (over / under)
    found[~middle] = _quantile(levels[~middle])
    return found


def level_map(inner: Reals, outer: Reals, levels: Reals) -> Reals:
    """Return ``G(levels[t])`` for each row; at a jump the upper end.

    >>> level_map(np.array([[0.5]]), np.array([[0.8]]), np.array([0.75])).round(3)
    array([0.9])
    """
    x, y = _ends(inner), _ends(outer)
    rows = np.arange(len(levels))
    j = np.clip((x <= levels[:, None]).sum(axis=1), 1, x.shape[1] - 1)
    low, high = x[rows, j - 1], x[rows, j]
    width = high - low
    part = np.where(width > 0.0, (levels - low) / np.where(width > 0.0, width, 1.0), 1.0)
    return np.asarray(y[rows, j - 1] + (y[rows, j] - y[rows, j - 1]) * part)


def normal_crps(mean: Reals, sd: Reals, inner: Reals, outer: Reals, outcomes: Reals) -> Reals:
    """Return the CRPS of each row in closed form.

    >>> nothing = np.empty((1, 0))
    >>> normal_crps(np.zeros(1), np.ones(1), nothing, nothing, np.zeros(1)).round(6)
    array([0.233695])
    """
    z = (outcomes - mean) / sd
    lower = _below(_ends(inner), _ends(outer), z)
    upper = _below(1.0 - _ends(inner)[:, ::-1], 1.0 - _ends(outer)[:, ::-1], -z)
    return np.asarray(sd * (lower + upper))


def _ends(knots: Reals) -> Reals:
    return np.hstack([np.zeros((len(knots), 1)), knots, np.ones((len(knots), 1))])


def _below(inner: Reals, outer: Reals, z: Reals) -> Reals:
    """Return the integral of G(Phi)**2 up to ``z``, one piece of G after the other.

    With G = a + b Phi on a piece it is that of ``a**2 + 2 a b Phi + b**2 Phi**2``; of Phi it is
    ``x Phi + phi``, and of Phi**2 ``x Phi**2 + 2 Phi phi - Phi(sqrt(2) x) / sqrt(pi)``.  On a
    narrow piece these would cancel, and a rule of Gauss is as exact.
    """
    width = inner[:, 1:] - inner[:, :-1]
    some = width > 0.0
    slope = np.where(some, (outer[:, 1:] - outer[:, :-1]) / np.where(some, width, 1.0), 0.0)
    start = np.where(some, outer[:, :-1] - slope * inner[:, :-1], 0.0)
    edges = np.minimum(normal_quantiles(inner), z[:, None])
    known = np.where(np.isfinite(edges), edges, 0.0)
    narrow = np.isfinite(edges[:, :-1]) & (np.diff(known, axis=1) < NARROW)
    flat, once, twice = _integrals(edges)
    # The first piece starts at minus infinity with G = 0, so that its constant is 0.
    with np.errstate(invalid="ignore"):
        plain = np.where(start == 0.0, 0.0, start * start * np.diff(flat, axis=1))
    whole = plain + 2.0 * start * slope * np.diff(once, axis=1)
    whole += slope * slope * np.diff(twice, axis=1)
    by_points = narrow & (np.diff(known, axis=1) > 0.0)
    whole[narrow] = 0.0
    whole[by_points] = _by_points(by_points, known, inner, outer, slope)
    return np.asarray(np.where(some, whole, 0.0).sum(axis=1))


def _by_points(
    wanted: NDArray[np.bool_], edges: Reals, inner: Reals, outer: Reals, slope: Reals
) -> Reals:
    """Return the same integrals of the wanted pieces by eight points each."""
    left, half = edges[:, :-1][wanted], np.diff(edges, axis=1)[wanted] / 2.0
    start, low, high = (part[wanted] for part in (inner[:, :-1], outer[:, :-1], outer[:, 1:]))
    total = np.zeros(half.shape)
    for point, weight in zip(*LEGENDRE, strict=True):
        rise = normal_cdf(left + half * (1.0 + point)) - start
        total += weight * np.clip(low + slope[wanted] * rise, low, high) ** 2
    return total * half


def _integrals(z: Reals) -> tuple[Reals, Reals, Reals]:
    """Return the integrals of 1, Phi and Phi**2 up to ``z``."""
    low = z == -np.inf
    x = np.where(low, 0.0, z)
    cdf, density = normal_cdf(x), np.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)
    once = x * cdf + density
    half = normal_cdf(math.sqrt(2.0) * x) / math.sqrt(math.pi)
    twice = x * cdf * cdf + 2.0 * cdf * density - half
    return z, np.where(low, 0.0, once), np.where(low, 0.0, twice)
