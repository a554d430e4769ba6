"""Distributions whose CDF is made of straight pieces: quantiles, CDF values and samples.

A row is a curve of knots, values with levels from 0 to 1; both never fall.  A vertical piece is
an atom, a level one is a gap.  Everything here works on whole tables: a distribution a row.
"""

from __future__ import annotations

import numpy as np

from calibrant.core.arrays import Reals


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
    zeros, ones = np.zeros((len(levels), 1)), np.ones((len(levels), 1))
    return np.column_stack([below, values, above]), np.hstack([zeros, levels, ones])


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
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(right > left, (points - left) / (right - left), 0.0)
    made = low + (high - low) * np.clip(part, 0.0, 1.0)
    return np.where(after == 0, 0.0, np.where(after > last, 1.0, made))


def composed(values: Reals, levels: Reals, quantiles: Reals, inner: Reals, outer: Reals) -> Reals:
    """Return the levels of curves after ``inner[t, k]`` was raised or lowered to ``outer[t, k]``.

    ``quantiles`` are those at ``inner``.  The result belongs to all values and quantiles of a row
    together, sorted: knots of a curve that never falls are in the same order either way.
    """
    ends = np.zeros((len(outer), 1)), np.ones((len(outer), 1))
    x, y = np.hstack([ends[0], inner, ends[1]]), np.hstack([ends[0], outer, ends[1]])
    table = np.broadcast_to(levels, values.shape)
    raised = np.stack([_map(*row) for row in zip(x, y, table, strict=True)])
    return np.sort(np.hstack([raised, outer]), axis=1)


def _map(inner: Reals, outer: Reals, levels: Reals) -> Reals:
    j = np.clip(np.searchsorted(inner, levels, side="right"), 1, len(inner) - 1)
    width = inner[j] - inner[j - 1]
    part = np.where(width > 0.0, (levels - inner[j - 1]) / np.where(width > 0.0, width, 1.0), 1.0)
    return np.asarray(outer[j - 1] + (outer[j] - outer[j - 1]) * part)


def crps(values: Reals, levels: Reals, outcomes: Reals) -> Reals:
    """Return the CRPS of each row: the integral of ``(F(x) - 1{x >= y})**2``, piece by piece.

    >>> crps(np.array([[1.0, 1.0, 3.0, 3.0]]), np.array([[0.0, 0.5, 0.5, 1.0]]), np.array([2.0]))
    array([0.5])
    """
    y = outcomes[:, None]
    left, right = values[:, :-1], values[:, 1:]
    low, high = levels[:, :-1], levels[:, 1:]
    cut = np.clip(y, left, right)
    width = right - left
    part = np.where(width > 0.0, (cut - left) / np.where(width > 0.0, width, 1.0), 0.0)
    middle = low + (high - low) * part
    pieces = _squares(low, middle, cut - left) + _squares(1 - middle, 1 - high, right - cut)
    outside = np.maximum(values[:, :1] - y, 0.0) + np.maximum(y - values[:, -1:], 0.0)
    return np.asarray(pieces.sum(axis=1) + outside[:, 0])


def _squares(start: Reals, end: Reals, width: Reals) -> Reals:
    """Return the integral of the square of what goes straight from ``start`` to ``end``."""
    return np.asarray(width * (start * start + start * end + end * end) / 3.0)
