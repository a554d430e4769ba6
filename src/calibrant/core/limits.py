"""Between which numbers the words of a stored state must be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from calibrant.core.arrays import Mask, Words
from calibrant.errors import InvalidInput
from calibrant.kernels.layout import ANY, REAL

MOST_BYTES: Final = 256 << 20
"""Memory that one row may take, unless the variable ``CALIBRANT_MOST_BYTES`` says more."""


class HasLimits(Protocol):
    """Something that knows which words of its state never change, and limits of others."""

    def constants(self) -> list[int]: ...
    def limits(self) -> dict[int, tuple[float, float]]: ...


def refuse_large(words: int) -> None:
    """Refuse a row of that many words before it is made: a few settings can ask for any memory."""
    most = int(os.environ.get("CALIBRANT_MOST_BYTES", MOST_BYTES))
    if 8 * words > most:
        rule = f"row must take at most {most} bytes (CALIBRANT_MOST_BYTES)"
        raise InvalidInput(f"{rule}, got {8 * words}")


def refuse_outside(
    row: Words, fresh: Words, real: Mask, low: Words, high: Words, places: Words | None = None
) -> None:
    """Refuse words outside their limits, and what is no number; what is fresh is as it should be.

    Limits of reals, as reals themselves, are given by their bits.  ``places`` says where the words
    stand, if these are not all of a row.
    """
    reals, least, most = (words.view(np.float64) for words in (row, low, high))
    fits = np.where(real, (reals >= least) & (reals <= most), (row >= low) & (row <= high))
    for place in np.flatnonzero(~fits & (row != fresh))[:1].tolist():
        ends = (ends.view(np.float64) if real[place] else ends for ends in (low, high, row))
        lowest, highest, found = (end[place] for end in ends)
        where = place if places is None else int(places[place])
        raise ValueError(f"word {where} must be from {lowest} to {highest}, got {found}")


def bits_of(limits: Sequence[tuple[float, float]], real: Mask) -> tuple[Words, Words]:
    """Return the lower and the upper limits of words, those of reals by their bits.

    >>> low, high = bits_of([(0, 7), (0.0, 1.0)], np.array([False, True]))
    >>> high.tolist() == [7, 0x3FF0_0000_0000_0000]
    True
    """
    ends = np.zeros((2, len(real)), np.int64)
    for words, told in zip(ends, zip(*limits, strict=True), strict=False):
        for kind, which in ((np.int64, ~real), (np.float64, real)):
            words.view(kind)[which] = np.array(told, object)[which].astype(kind)
    return ends[0], ends[1]


def limits_of_state(transform: HasLimits, real: Mask, fresh: Words) -> tuple[Words, Words]:
    """Return between which numbers the words of a transform's state must be."""
    told = [REAL if flag else ANY for flag in real.tolist()]
    for place, limits in transform.limits().items():
        told[place] = limits
    low, high = bits_of(told, real)
    fixed = transform.constants()
    low[fixed] = high[fixed] = fresh[fixed]
    return low, high
