"""Sums of real numbers that do not depend on the order of addition.

Every addend is rounded to the nearest multiple of ``2**-60`` (ties to even) and added
as a whole number.  Such sums can be merged in any order and taken back exactly, which
sums of doubles cannot.  The rounding is at most ``2**-61`` per addend, and none at all
for numbers in [0, 1] that are 0 or at least ``2**-8``.

Arrays are split into two words of 30 bits; both words, and the partial sums of up to
``CHUNK`` of them, are whole numbers below 2**53, so doubles add them without error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrant.core.arrays import Reals, Words

_BITS = 60
_WORD = float(1 << 30)
SCALE = 1 << _BITS
CHUNK = 1 << 15
_EXACT_ADDEND = float((1 << 53) // CHUNK)


def fixed(value: float) -> int:
    """Return the whole number of units of ``2**-60`` nearest to ``value``.

    >>> fixed(0.5) == SCALE // 2, fixed(-3.0) == -3 * SCALE
    (True, True)
    """
    whole = int(value)
    return (whole << _BITS) + round((value - whole) * SCALE)


def real(units: int) -> float:
    """Return the double nearest to ``units * 2**-60``."""
    return units / SCALE


def fixed_sum(values: Reals) -> int:
    """Return the sum of :func:`fixed` over any finite ``values``.

    >>> fixed_sum(np.array([0.1, 1e300, -1e300])) == fixed(0.1)
    True
    """
    return sum(_chunk_sum(values[part]) for part in chunks(len(values)))


def fixed_sums_by_key(keys: Words, values: Reals, size: int) -> list[int]:
    """Return, for each key below ``size``, the sum of :func:`fixed` over its values.

    The values lie in [0, 1] and there are fewer than 2**32 of them.
    """
    totals = np.zeros((2, size), dtype=np.int64)
    for part in chunks(len(values)):
        for total, word in zip(totals, _words(values[part]), strict=True):
            total += np.bincount(keys[part], weights=word, minlength=size).astype(np.int64)
    return list(map(_join, *totals.tolist()))


def chunks(length: int) -> Iterator[slice]:
    """Cut ``length`` rows into slices of at most ``CHUNK``.

    >>> [part.stop for part in chunks(CHUNK + 1)] == [CHUNK, 2 * CHUNK]
    True
    """
    return (slice(start, start + CHUNK) for start in range(0, length, CHUNK))


def _chunk_sum(values: Reals) -> int:
    whole = np.trunc(values)
    high, low = _words(values - whole)
    return (_whole_sum(whole) << _BITS) + _join(int(high.sum()), int(low.sum()))


def _whole_sum(values: Reals) -> int:
    if np.abs(values).max() < _EXACT_ADDEND:
        return int(values.sum())
    return sum(map(int, values.tolist()))


def _words(values: Reals) -> tuple[Reals, Reals]:
    # Scaling by powers of two and taking off the floor lose nothing; only rint rounds,
    # and it rounds ties as the whole number would, since the high word counts as even.
    scaled = values * _WORD
    high = np.floor(scaled)
    scaled -= high
    scaled *= _WORD
    return high, np.rint(scaled, out=scaled)


def _join(high: int, low: int) -> int:
    return (high << 30) + low
