"""Tables of distributions, a distribution a row: quantiles, CDF values, samples and CRPS.

A row is a curve of knots, values with levels from 0 to 1; both never fall.  A vertical piece is
an atom, a level one is a gap.  Or a row is normal, ``G(Phi((x - mean) / sd))``: the normal CDF,
and a map G of levels that goes straight between its knots ``inner`` and ``outer``, from 0 to 1.
Without a map G is the identity.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Mask, Reals, Words
from calibrant.kernels import quantiles
from calibrant.kernels.compile import SHORT, available, compiled

NARROW: Final = 0.5
"""Standard deviations below which a piece is integrated by points."""
LEGENDRE: Final = np.polynomial.legendre.leggauss(8)


def shape_of(values: Reals, levels: Reals, asked: int, *rest: int) -> Words:
    """Return the header that the kernels read; see :mod:`calibrant.kernels.quantiles`.

    ``rest`` is the distance of positions from row to row, and whether coins share out atoms.
    """
    size = levels.shape[1]
    return np.array([size, values.shape[1], size if len(levels) > 1 else 0, asked, *rest], np.int64)


def machine_for(kernel: Any, name: str, size: int) -> Any:
    """Return the compiled kernel where so many quantiles are worth it, or None."""
    return compiled(kernel, name, nogil=True) if size > SHORT and available() else None


def each(kernel: Any, given: Reals) -> Reals:
    """Return what a kernel makes of each number, by machine code where there are many.

    >>> each(quantiles.fill_erfc, np.array([[0.0, 40.0]]))
    array([[1., 0.]])
    """
    flat, found = np.ascontiguousarray(given).ravel(), np.empty(given.size)
    if (machine := machine_for(kernel, "each", given.size)) is not None:
        machine(flat, found)
    else:
        kernel(flat.tolist(), found)
    return found.reshape(given.shape)


def ask(
    values: Reals, levels: Reals, positions: Reals, *, random: bool = True
) -> tuple[Reals, Reals]:
    """Return the quantiles of every row at its positions, and the shares of atoms.

    ``positions`` is a table of as many rows, or of one for all.

    >>> x, share = ask(np.array([[0.0, 0.0, 4.0]]), np.array([[0.0, 0.5, 1.0]]), np.array([[0.25]]))
    >>> x.tolist(), share.tolist()
    ([[0.0]], [[0.5]])
    """
    many, shared = positions.shape[1], len(positions) != len(values) or len(values) == 1
    head = shape_of(values, levels, many, 0 if shared else many, random)
    out, shares = np.empty((len(values), many)), np.empty((len(values), many))
    given = values.ravel(), levels.ravel(), positions.ravel()
    if (machine := machine_for(quantiles.fill, "rows", out.size)) is not None:
        machine(head, *given, out.ravel(), shares.ravel())
    else:
        row, level, asked = (array.tolist() for array in given)
        quantiles.fill(head.tolist(), row, level, asked, out.ravel(), shares.ravel())
    return out, shares


def steps(members: Reals) -> tuple[Reals, Reals]:
    """Return the curves of samples: an atom of equal size at each member.

    >>> values, levels = steps(np.array([[3.0, 1.0]]))
    >>> values.tolist(), levels.tolist()
    ([[1.0, 1.0, 3.0, 3.0]], [[0.0, 0.5, 0.5, 1.0]])
    """
    count = members.shape[1]
    edges = np.arange(count + 1) / count
    return np.repeat(np.sort(members, axis=1), 2, axis=1), np.repeat(edges, 2)[None, 1:-1]


def extended(values: Reals, levels: Reals) -> tuple[Reals, Reals]:
    """Return curves from level 0 to level 1: the pieces at both ends go on straight.

    A piece without rise in level at an end, or a single knot, has no slope to go on with: what
    is missing becomes an atom there.

    >>> values, levels = extended(np.array([[1.0, 2.0]]), np.array([[0.25, 0.5]]))
    >>> values.tolist(), levels.tolist()
    ([[0.0, 1.0, 2.0, 4.0]], [[0.0, 0.25, 0.5, 1.0]])
    """
    below = _end(values[:, 0], levels[:, 0], values[:, :2], levels[:, :2], 0.0)
    above = _end(values[:, -1], levels[:, -1], values[:, -2:], levels[:, -2:], 1.0)
    return np.column_stack([below, values, above]), with_ends(levels)


def _end(start: Reals, level: Reals, values: Reals, levels: Reals, end: float) -> Reals:
    run, rise = values[:, -1] - values[:, 0], levels[:, -1] - levels[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(rise > 0.0, run / rise, 0.0)
    return np.asarray(start + np.where(level == end, 0.0, (end - level) * slope))


def curve_cdf(values: Reals, levels: Reals, points: Reals, *, below: bool = False) -> Reals:
    """Return the chance of at most ``points[t]`` in row t, or of less with ``below``.

    >>> rain = np.array([[0.0, 0.0, 4.0]]), np.array([[0.0, 0.5, 1.0]])
    >>> curve_cdf(*rain, np.array([0.0])).tolist(), curve_cdf(*rain, np.array([0.0]), below=True)
    ([0.5], array([0.]))
    """
    x = points[:, None]
    after = (values < x if below else values <= x).sum(axis=1)
    rows, last = np.arange(len(points)), values.shape[1] - 1
    table = np.broadcast_to(levels, values.shape)
    j = np.clip(after, 1, last)
    left, right = values[rows, j - 1], values[rows, j]
    low, high = table[rows, j - 1], table[rows, j]
    made = low + (high - low) * np.clip(_part(left, right, points, 0.0), 0.0, 1.0)
    return np.where(after == 0, 0.0, np.where(after > last, 1.0, made))


def composed(levels: Reals, inner: Reals, outer: Reals) -> Reals:
    """Return the levels of curves after ``inner[t, k]`` was raised or lowered to ``outer[t, k]``.

    The result belongs to all values of a row and its quantiles at ``inner`` together, sorted: knots
    of a curve that never falls are in the same order either way.
    """
    table = zip(with_ends(inner), levels, strict=True)
    after = np.stack([np.searchsorted(knots, row, side="right") for knots, row in table])
    raised = _mapped(inner, outer, after, levels)
    return np.sort(np.hstack([raised, outer]), axis=1)


def with_ends(knots: Reals) -> Reals:
    """Return rows of levels with 0 before them and 1 behind."""
    return np.hstack([np.zeros((len(knots), 1)), knots, np.ones((len(knots), 1))])


def _mapped(inner: Reals, outer: Reals, after: Words, levels: Reals) -> Reals:
    """Return what levels become, given behind how many of the knots with ends each lies."""
    x, y = with_ends(inner), with_ends(outer)
    j = np.clip(after, 1, x.shape[1] - 1)
    left, right = (np.take_along_axis(x, k, 1) for k in (j - 1, j))
    low, high = (np.take_along_axis(y, k, 1) for k in (j - 1, j))
    return np.asarray(low + (high - low) * _part(left, right, levels, 1.0))


def _part(left: Reals, right: Reals, x: Reals, nowhere: float) -> Reals:
    """Return how far ``x`` lies from left to right; ``nowhere`` where these are the same."""
    width = right - left
    return np.where(width > 0.0, (x - left) / np.where(width > 0.0, width, 1.0), nowhere)


def crps(values: Reals, levels: Reals, outcomes: Reals) -> Reals:
    """Return the CRPS of each row: the integral of ``(F(x) - 1{x >= y})**2``, piece by piece.

    >>> crps(np.array([[1.0, 1.0, 3.0, 3.0]]), np.array([[0.0, 0.5, 0.5, 1.0]]), np.array([2.0]))
    array([0.5])
    """
    y = outcomes[:, None]
    left, right = values[:, :-1], values[:, 1:]
    low, high = levels[:, :-1], levels[:, 1:]
    cut = np.clip(y, left, right)
    middle = low + (high - low) * _part(left, right, cut, 0.0)
    pieces = _squares(low, middle, cut - left) + _squares(1 - middle, 1 - high, right - cut)
    outside = np.maximum(values[:, :1] - y, 0.0) + np.maximum(y - values[:, -1:], 0.0)
    return np.asarray(pieces.sum(axis=1) + outside[:, 0])


def _squares(start: Reals, end: Reals, width: Reals) -> Reals:
    """Return the integral of the square of what goes straight from ``start`` to ``end``."""
    return np.asarray(width * (start * start + start * end + end * end) / 3.0)


def normal_cdf(z: Reals) -> Reals:
    """Return the CDF of the standard normal distribution.

    >>> normal_cdf(np.array([0.0, 1.96])).round(4)
    array([0.5  , 0.975])
    """
    # Symmetric, so that the lower tail keeps its digits: erfc, not 1 + erf.
    small = each(quantiles.fill_erfc, np.abs(z) / math.sqrt(2.0)) / 2.0
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
    for top, bottom in quantiles.MIDDLE:
        over, under = over * r + top, under * r + bottom
    found = q * (over / under)
    found[~middle] = each(quantiles.fill_normal, levels[~middle])
    return found


def level_map(inner: Reals, outer: Reals, levels: Reals) -> Reals:
    """Return ``G(levels[t])`` for each row; at a jump the upper end.

    >>> level_map(np.array([[0.5]]), np.array([[0.8]]), np.array([0.75])).round(3)
    array([0.9])
    """
    after = (with_ends(inner) <= levels[:, None]).sum(axis=1, keepdims=True)
    return _mapped(inner, outer, after, levels[:, None])[:, 0]


def normal_crps(mean: Reals, sd: Reals, inner: Reals, outer: Reals, outcomes: Reals) -> Reals:
    """Return the CRPS of each row in closed form.

    >>> nothing = np.empty((1, 0))
    >>> normal_crps(np.zeros(1), np.ones(1), nothing, nothing, np.zeros(1)).round(6)
    array([0.233695])
    """
    z = (outcomes - mean) / sd
    knots, levels = with_ends(inner), with_ends(outer)
    upper = _below(1.0 - knots[:, ::-1], 1.0 - levels[:, ::-1], -z)
    return np.asarray(sd * (_below(knots, levels, z) + upper))


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
    once, twice = _integrals(edges)
    # The first piece starts at minus infinity with G = 0, so that its constant is 0.
    with np.errstate(invalid="ignore"):
        plain = np.where(start == 0.0, 0.0, start * start * np.diff(edges, axis=1))
    whole = plain + 2.0 * start * slope * np.diff(once, axis=1)
    whole += slope * slope * np.diff(twice, axis=1)
    by_points = narrow & (np.diff(known, axis=1) > 0.0)
    whole[narrow] = 0.0
    whole[by_points] = _by_points(by_points, known, inner, outer, slope)
    return np.asarray(np.where(some, whole, 0.0).sum(axis=1))


def _by_points(wanted: Mask, edges: Reals, inner: Reals, outer: Reals, slope: Reals) -> Reals:
    """Return the same integrals of the wanted pieces by eight points each."""
    left, half = edges[:, :-1][wanted], np.diff(edges, axis=1)[wanted] / 2.0
    start, low, high = (part[wanted] for part in (inner[:, :-1], outer[:, :-1], outer[:, 1:]))
    total = np.zeros(half.shape)
    for point, weight in zip(*LEGENDRE, strict=True):
        rise = normal_cdf(left + half * (1.0 + point)) - start
        total += weight * np.clip(low + slope[wanted] * rise, low, high) ** 2
    return total * half


def _integrals(z: Reals) -> tuple[Reals, Reals]:
    """Return the integrals of Phi and Phi**2 up to ``z``."""
    low = z == -np.inf
    x = np.where(low, 0.0, z)
    cdf, density = normal_cdf(x), np.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)
    once = x * cdf + density
    half = normal_cdf(math.sqrt(2.0) * x) / math.sqrt(math.pi)
    twice = x * cdf * cdf + 2.0 * cdf * density - half
    return np.where(low, 0.0, once), np.where(low, 0.0, twice)
