"""Which of M equal buckets a number in [0, 1] falls into.

The buckets are ``[j/M, (j+1)/M)``, the last one closed, and an edge is the double
nearest to ``j/M``: what Python computes for ``j / M``.  The product ``value * M``
only guesses, since it rounds (``int(0.29 * 100)`` is 28); comparing the value with
the two edges around the guess settles it.
"""

from __future__ import annotations

import numpy as np

from calibrant.core.arrays import Reals, Words

# Rows at a time, so that what lies between fits into the processor's cache.
_CHUNK = 1 << 14


def bucket(value: float, buckets: int) -> int:
    """Return the index of the bucket that holds ``value``.

    Parameters
    ----------
    value : float
        A number in [0, 1]; the caller has checked it.
    buckets : int
        How many buckets there are, from 1 to 2**50.

    Notes
    -----
    Rounding moves the product by at most ``M * 2**-53`` and an edge by as little,
    so for M up to 2**50 the guess misses by one bucket at the most.

    Examples
    --------
    >>> bucket(0.29, 100), bucket(1.0, 100), bucket(-0.0, 100)
    (29, 99, 0)
    """
    index = int(value * buckets)
    if value < index / buckets:
        index -= 1
    elif value >= (index + 1) / buckets:
        index += 1
    return min(index, buckets - 1)


def buckets_of(values: Reals, buckets: int) -> Words:
    """Return what :func:`bucket` gives for each of ``values``.

    Examples
    --------
    >>> buckets_of(np.array([0.0, 0.29, 0.3, 1.0]), 100)
    array([ 0, 29, 30, 99])
    """
    indices = np.empty(len(values), dtype=np.int64)
    for start in range(0, len(values), _CHUNK):
        part = slice(start, start + _CHUNK)
        indices[part] = _indices(values[part], buckets)
    return indices


def _indices(values: Reals, buckets: int) -> Reals:
    index = np.floor(values * buckets)
    index -= values < index / buckets
    index += values >= (index + 1.0) / buckets
    return np.minimum(index, buckets - 1.0, out=index)
