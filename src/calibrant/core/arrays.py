"""The arrays that everything is written in, by short names."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.float64]
Words: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.uint8]
"""Outcomes, 0 or 1 each."""
Mask: TypeAlias = NDArray[np.bool_]


def as_words(data: bytes) -> Words:
    """Return bytes as words, filled up with zeros."""
    return np.frombuffer(data + bytes(-len(data) % 8), "<i8").astype(np.int64)


def frozen(values: Reals) -> Reals:
    """Return the same numbers for reading only.

    >>> frozen(np.zeros(2)).flags.writeable
    False
    """
    seen = values.view()
    seen.flags.writeable = False
    return seen
