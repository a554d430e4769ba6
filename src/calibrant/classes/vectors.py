"""Vectors of probabilities: rules for those that come in, a grid of them, and ways to make one.

A raw forecast is K numbers in [0, 1] that sum to 1 within `TOLERANCE`; an outcome is a class,
a whole number from 0 to K - 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput, InvalidType

TOLERANCE: Final = 1e-6
"""How far from 1 a raw forecast may sum: single precision passes, half precision does not."""
MAX_CLASSES: Final = 1_000_000
MARGIN: Final = 1.0 - 2.0**-30
"""Other classes stay below the first by this factor, so that it is the largest without a tie."""
ROUNDING: Final = 1e-12


def class_count(classes: Any) -> int:
    """Return the number of classes, at least 2."""
    return check.whole(classes, "classes", low=2, high=MAX_CLASSES)


def vector(values: Any, classes: int, name: str = "raw forecast") -> Reals:
    """Return ``values`` as a new array of ``classes`` probabilities.

    >>> vector([0.5, 0.25, 0.25], 3)
    array([0.5 , 0.25, 0.25])
    >>> vector([0.5, 0.6], 2)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: raw forecast must sum to 1 within 1e-06, got 1.1
    """
    array = check.numbers(values, name, "numbers in [0, 1]")
    if len(array) != classes:
        raise InvalidInput(f"{name} must have {classes} numbers, a class each, got {len(array)}")
    return np.asarray(_distributions(array[None].astype(np.float64), name, one=True)[0])


def matrix(
    values: Any, classes: int | None, name: str = "raw forecasts", *, sums: bool = True
) -> Reals:
    """Return ``values`` as a contiguous table, a round a row and a class a column.

    With ``classes=None`` any number of columns will do, with ``sums=False`` any sum.  An empty
    list has no rows.

    >>> matrix([[0.5, 0.5], [0.2, 0.9]], 2)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: raw forecasts[1] must sum to 1 within 1e-06, got 1.1
    """
    array = _table(values, name, classes)
    if classes is not None and array.shape[1] != classes:
        told = f"rows of {classes} numbers, a class each, got {array.shape[1]}"
        raise InvalidInput(f"{name} must have {told}")
    return _distributions(array.astype(np.float64, copy=False), name, sums=sums)


def outcomes(values: Any, classes: int) -> Words:
    """Return ``values`` as an array of classes.

    >>> outcomes([0, 3], 3)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: outcomes[1] must be a whole number from 0 to 2, got 3
    """
    array = check.numbers(values, "outcomes", "classes")
    if array.dtype.kind == "b":
        raise InvalidType("outcomes must be a flat array of classes, got dtype bool")
    bad = ~((array >= 0) & (array < classes) & (array == np.floor(array)))
    check.refuse_first(bad, array, "outcomes", f"a whole number from 0 to {classes - 1}")
    return array.astype(np.int64)


def _table(values: Any, name: str, classes: int | None) -> NDArray[Any]:
    array = check.rows(values, name, "a table of numbers")
    if array.shape == (0,) and classes is not None:
        return np.empty((0, classes))
    if array.ndim != 2:
        raise InvalidInput(f"{name} must be a table, a round a row, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise InvalidType(f"{name} must be a table of numbers, got dtype {array.dtype}")
    return array


def _distributions(array: Reals, name: str, *, sums: bool = True, one: bool = False) -> Reals:
    # The comparison is false for what is not a number.
    inside = array.size == 0 or (array.min() >= 0.0 and array.max() <= 1.0)
    if not inside:
        row, column = np.argwhere(~((array >= 0.0) & (array <= 1.0)))[0].tolist()
        place = f"{name}[{column}]" if one else f"{name}[{row}, {column}]"
        raise InvalidInput(f"{place} must be a number in [0, 1], got {array[row, column].item()!r}")
    if sums:
        _refuse_sums(array, name, one)
    return np.ascontiguousarray(array)


def _refuse_sums(array: Reals, name: str, one: bool) -> None:
    totals = array.sum(axis=1)
    bad = np.abs(totals - 1.0) > TOLERANCE
    if bad.any():
        row = int(np.argmax(bad))
        place = name if one else f"{name}[{row}]"
        told = f"sum to 1 within {TOLERANCE}, got {totals[row].item()!r}"
        raise InvalidInput(f"{place} must {told}")


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
    return _proportions(rows, np.full_like(rows, 1.0 / rows.shape[1]))


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
    even = np.full_like(rows, 1.0 / (rows.shape[1] - 1))
    others[every, tops] = even[every, tops] = 0.0
    shares = left[:, None] * _proportions(others, even)
    cap = _caps(confidence, left, rows.shape[1])
    over = np.flatnonzero(shares.max(axis=1) > cap)
    if len(over):
        shares[over] = _capped(others[over], tops[over], left[over], cap[over])
    shares[every, tops] = confidence
    return shares


def by_top(tops: Words) -> list[tuple[int, Words]]:
    """Return each class that comes first, and in which rows it does, in order.

    >>> [(top, rows.tolist()) for top, rows in by_top(np.array([4, 1, 4]))]
    [(1, [1]), (4, [0, 2])]
    """
    order = np.argsort(tops, kind="stable")
    found, starts = np.unique(tops[order], return_index=True)
    ends = [*starts[1:].tolist(), len(tops)]
    cuts = zip(found.tolist(), starts.tolist(), ends, strict=len(tops) > 0)
    return [(number, order[start:end]) for number, start, end in cuts]


def _caps(confidence: Reals, left: Reals, classes: int) -> Reals:
    """Return what the other classes may have at most: infinite where no cap can be kept."""
    strict = np.where((classes - 1) * MARGIN * confidence >= left, MARGIN * confidence, confidence)
    return np.where((classes - 1) * strict >= left - ROUNDING, strict, np.inf)


def _proportions(rows: Reals, even: Reals) -> Reals:
    """Return each row's parts of its sum; even parts of nothing."""
    totals = rows.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(rows, totals, out=even, where=totals > 0.0))


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
    # A power of two changes no digit, and lets products of the smallest numbers have theirs.
    ranks, falling = np.arange(falling.shape[1]), falling * 2.0**64
    below = np.cumsum(falling[:, ::-1], axis=1)[:, ::-1]
    over = (falling > 0.0) & ((left - ranks * cap) * falling > cap * below)
    full = np.logical_and.accumulate(over, axis=1)
    count = full.sum(axis=1, keepdims=True)
    rest = np.maximum(left - count * cap, 0.0)
    own = np.where(full, 0.0, falling)
    total = own.sum(axis=1, keepdims=True)
    even = np.broadcast_to(rest / np.maximum(len(ranks) - count, 1), falling.shape).copy()
    tail = np.divide(rest * own, total, out=even, where=total > 0.0)
    return np.where(full, cap, np.minimum(tail, cap))


RENORMALISE: Final[dict[str, Callable[[Reals], Reals]]] = {
    "none": lambda rows: rows,
    "divide": divided,
    "project": projected,
}
"""What may be done to rows of numbers that need not sum to 1."""
