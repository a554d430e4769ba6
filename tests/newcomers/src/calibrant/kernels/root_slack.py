"""Excesses over half a cell, divided by the root of the count."""

from __future__ import annotations

import math

from calibrant.kernels import gaps
from calibrant.kernels.layout import Reals, Words


def weigh(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Compare the excesses of ``k`` and ``k + 1`` over roots, times the roots of both counts."""
    cell = at + gaps.FIRST + 2 * k
    across = gaps.width(words, table, k)
    here = (2 * words[cell] - across * words[cell + 1]) * math.sqrt(words[cell + 3])
    above = (-2 * words[cell + 2] - across * words[cell + 3]) * math.sqrt(words[cell + 1])
    return here, above
