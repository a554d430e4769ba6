"""Points of the simplex: its grid, its nearest point, and ways to get onto it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Final

import numpy as np

from calibrant.core.arrays import Reals, Words

MARGIN: Final = 1.0 - 2.0**-30
"""Other classes stay below the first by this factor, so that it is the largest without a tie."""
ROUNDING: Final = 1e-12


def grid_size(classes: int, resolution: int) -> int:
    """Return how many vectors of multiples of 1/resolution sum to 1: C(m + K - 1, K - 1).

    >>> grid_size(3, 10), grid_size(10, 10)
    (66, 92378)
    """
    return math.comb(resolution + classes - 1, classes - 1)


def grid(classes: int, resolution: int) -> Words:
    """Return these vectors times ``resolution``, in lexicographic order.

    >>> grid(3, 1).tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    # Stars and bars: where the bars stand among the stars says how many stars each class has.
    places = range(resolution + classes - 1)
    bars = np.array(list(itertools.combinations(places, classes - 1)), np.int64)
    walls = np.pad(bars, ((0, 0), (1, 0)), constant_values=-1)
    walls = np.pad(walls, ((0, 0), (0, 1)), constant_values=resolution + classes - 1)
    return np.diff(walls, axis=1) - 1


def nearest(vector: Reals, resolution: int) -> tuple[int, ...]:
    """Return the grid point nearest to a vector, times ``resolution``.

    Each number is rounded down, and what is missing goes to the largest remainders (among
    equals, to the lower class).  That is the nearest point of the lattice A_(K-1).

    References
    ----------
    Conway and Sloane, "Sphere Packings, Lattices and Groups", chapter 20.

    Examples
    --------
    >>> nearest(np.array([0.29, 0.71, 0.0]), 100), nearest(np.array([0.5, 0.5]), 3)
    ((29, 71, 0), (2, 1))
    """
    scaled = vector * resolution
    whole = np.floor(scaled)
    missing = resolution - int(whole.sum())
    order = np.argsort(-(scaled - whole), kind="stable")
    whole[order[:missing]] += 1.0
    return tuple(whole.astype(np.int64).tolist())


def cover(classes: int, resolution: int) -> float:
    """Return the squared distance within which every point has one of the grid.

    It is a (K - a) / (K m**2) with a = K // 2: the covering radius of A_(K-1).

    >>> cover(2, 10), round(cover(3, 10), 6)
    (0.005, 0.006667)
    """
    half = classes // 2
    return half * (classes - half) / (classes * resolution**2)


def divided(rows: Reals) -> Reals:
    """Return rows over their sums; a row of zeros becomes even.

    >>> divided(np.array([[0.5, 0.25, 0.5], [0.0, 0.0, 0.0]])).round(3).tolist()
    [[0.4, 0.2, 0.4], [0.333, 0.333, 0.333]]
    """
    totals = rows.sum(axis=1, keepdims=True)
    even = np.full_like(rows, 1.0 / rows.shape[1])
    made: Reals = np.divide(rows, totals, out=even, where=totals > 0.0)
    return made


def projected(rows: Reals) -> Reals:
    """Return the nearest distribution to each row: all numbers lowered or raised alike, above 0.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer and Chandra (2008), "Efficient projections onto the
    l1-ball for learning in high dimensions".

    Examples
    --------
    >>> projected(np.array([[0.5, 0.25, 0.5], [1.0, 0.0, 0.9]])).round(4).tolist()
    [[0.4167, 0.1667, 0.4167], [0.55, 0.0, 0.45]]
    """
    falling = -np.sort(-rows, axis=1)
    ranks = np.arange(1, rows.shape[1] + 1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / ranks
    # Numbers stay positive up to the last rank at which they exceed what is taken off.
    kept = (falling > excess).sum(axis=1, keepdims=True)
    return np.maximum(rows - np.take_along_axis(excess, kept - 1, axis=1), 0.0)


def shared_out(rows: Reals, tops: Words, confidence: Reals) -> Reals:
    """Return rows in which the class ``tops`` has ``confidence`` and the others share the rest.

    They share in proportion to what they had, but none gets as much as the class itself, as
    long as that is possible: at a confidence below 1/K it is not, and nothing is capped.

    >>> rows, tops = np.array([[0.6, 0.3, 0.1]] * 3), np.zeros(3, np.int64)
    >>> shared_out(rows, tops, np.array([0.8, 0.4, 0.2])).round(3).tolist()
    [[0.8, 0.15, 0.05], [0.4, 0.4, 0.2], [0.2, 0.6, 0.2]]
    """
    others, left = rows.copy(), 1.0 - confidence
    every = np.arange(len(rows))
    others[every, tops] = 0.0
    shares = left[:, None] * _proportions(others, tops)
    cap = _caps(confidence, left, rows.shape[1])
    over = np.flatnonzero(shares.max(axis=1) > cap)
    if len(over):
        shares[over] = _capped(others[over], tops[over], left[over], cap[over])
    shares[every, tops] = confidence
    return shares


def _caps(confidence: Reals, left: Reals, classes: int) -> Reals:
    """Return what the other classes may have at most: infinite where no cap can be kept."""
    strict = np.where((classes - 1) * MARGIN * confidence >= left, MARGIN * confidence, confidence)
    return np.where((classes - 1) * strict >= left - ROUNDING, strict, np.inf)


def _proportions(others: Reals, tops: Words) -> Reals:
    """Return the others' parts of what they have together; even parts of nothing."""
    totals = others.sum(axis=1, keepdims=True)
    even = np.full_like(others, 1.0 / (others.shape[1] - 1))
    even[np.arange(len(others)), tops] = 0.0
    made: Reals = np.divide(others, totals, out=even, where=totals > 0.0)
    return made


def _capped(others: Reals, tops: Words, left: Reals, cap: Reals) -> Reals:
    """Share out ``left`` in proportion, each up to ``cap``; what nobody had goes evenly."""
    own = others.copy()
    own[np.arange(len(own)), tops] = -1.0
    order = np.argsort(-own, axis=1, kind="stable")
    falling = np.take_along_axis(own, order, axis=1)[:, :-1]
    shares = np.zeros_like(own)
    np.put_along_axis(shares, order[:, :-1], _filled(falling, left[:, None], cap[:, None]), axis=1)
    return shares


def _filled(falling: Reals, left: Reals, cap: Reals) -> Reals:
    """Fill up to the cap whoever would get more, from the largest on; the others share the rest."""
    ranks = np.arange(falling.shape[1])
    below = np.cumsum(falling[:, ::-1], axis=1)[:, ::-1]
    over = (falling > 0.0) & ((left - ranks * cap) * falling > cap * below)
    full = np.logical_and.accumulate(over, axis=1)
    count = full.sum(axis=1, keepdims=True)
    rest = np.maximum(left - count * cap, 0.0)
    total = np.where(full, 0.0, falling).sum(axis=1, keepdims=True)
    even = np.broadcast_to(rest / np.maximum(len(ranks) - count, 1), falling.shape).copy()
    tail = np.divide(rest * falling, total, out=even, where=total > 0.0)
    return np.where(full, cap, np.minimum(tail, cap))


RENORMALISE: Final[dict[str, Callable[[Reals], Reals]]] = {
    "none": lambda rows: rows,
    "divide": divided,
    "project": projected,
}
"""What may be done to rows of numbers that need not sum to 1."""
