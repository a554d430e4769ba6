"""The only place where a raw forecast becomes a bucket.

``int(0.29 * 100)`` is 28: the product rounds.  The bucket of ``raw`` is the last
``j`` with ``j / M <= raw``, where ``j / M`` is the double nearest to that fraction,
so that every k/M that a user can write falls into bucket k.
"""

from __future__ import annotations

from bisect import bisect_right

from calibrant.kernels.layout import INDEX, MIXED, Reals


def bucket_of(reals: Reals, edges: int, buckets: int, raw: float) -> int:
    """Return the index of the half-open bucket that holds ``raw``; the last one is closed.

    The product is off by less than one bucket, and the table of edges has a
    sentinel above 1 at its end, so one comparison each way repairs it.
    """
    j = min(int(raw * buckets), buckets - 1) & INDEX
    return j - int(reals[edges + j] > raw) + int(reals[edges + j + 1] <= raw)


def run_at(reals: Reals, at: int) -> tuple[Reals, int]:
    """Return what holds a run of reals that starts at ``at``, and where it starts in there.

    A list may have it in the array behind its words, and only say where.

    >>> run_at([0.5, 0.25], 1), run_at([0.5, 7, "array"], 1)
    (([0.5, 0.25], 1), ('array', 7))
    """
    first = reals[at]
    return (reals[-1], first) if type(first) is int else (reals, at)


def run_here(reals: Reals, at: int) -> tuple[Reals, int]:
    """Return the same of an array.

    >>> run_here([0.5, 0.25], 1)
    ([0.5, 0.25], 1)
    """
    return reals, at


def place_after(reals: Reals, raw: float, edges: int, end: int) -> int:
    """Return where ``bisect_right`` would: after the edge of the bucket that holds ``raw``.

    Single steps call that function, which plain Python has at hand, and compiled ones this.

    >>> place_after([0.0, 0.5, 2.0], 0.7, 0, 2)
    2
    """
    return edges + bucket_of(reals, edges, end - edges, raw) + 1


def point_before(reals: Reals, values: int, cells: int) -> int:
    """Return the last grid point that is not above the anchor, the first if all are, not the end.

    The grid may be uneven.  Plain Python has this search at hand, compiled code halves.
    """
    return bisect_right(reals, reals[MIXED], values + 1, values + cells - 1) - 1 - values


def point_by_halves(reals: Reals, values: int, cells: int) -> int:
    """Return the same.

    >>> grid = [0.0] * MIXED + [0.7] + [0.0, 0.5, 0.6, 0.9, 1.0]
    >>> point_by_halves(grid, MIXED + 1, 5), point_before(grid, MIXED + 1, 5)
    (2, 2)
    """
    low, high, anchor = 0, cells - 1, reals[MIXED]
    while high - low > 1:
        middle = (low + high) >> 1
        if reals[values + middle] <= anchor:
            low = middle
        else:
            high = middle
    return low
