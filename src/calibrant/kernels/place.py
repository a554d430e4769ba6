"""The only place where a raw forecast becomes a bucket.

``int(0.29 * 100)`` is 28: the product rounds.  The bucket of ``raw`` is the last
``j`` with ``j / M <= raw``, where ``j / M`` is the double nearest to that fraction,
so that every k/M that a user can write falls into bucket k.
"""

from __future__ import annotations

from calibrant.kernels.layout import INDEX, Reals


def bucket_of(reals: Reals, edges: int, buckets: int, raw: float) -> int:
    """Return the index of the half-open bucket that holds ``raw``; the last one is closed.

    The product is off by less than one bucket, and the table of edges has a
    sentinel above 1 at its end, so one comparison each way repairs it.
    """
    j = min(int(raw * buckets), buckets - 1) & INDEX
    return j - int(reals[edges + j] > raw) + int(reals[edges + j + 1] <= raw)


def place_after(reals: Reals, raw: float, edges: int, end: int) -> int:
    """Return where ``bisect_right`` would: after the edge of the bucket that holds ``raw``.

    Single steps call that function, which plain Python has at hand, and compiled ones this.

    >>> place_after([0.0, 0.5, 2.0], 0.7, 0, 2)
    2
    """
    return edges + bucket_of(reals, edges, end - edges, raw) + 1
