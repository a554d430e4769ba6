"""The body of a stored row: the words in which it differs from a fresh one."""

from __future__ import annotations

import numpy as np

from calibrant.calibrators.layout import Layout
from calibrant.core.arrays import Words


def packed(row: Words, layout: Layout) -> Words:
    """Return which stored words of a row differ from a fresh row's, a bit each, and these words."""
    changed = (row != layout.fresh) & layout.stored
    bits = np.zeros(-(-len(row) // 64) * 8, np.uint8)
    marks = np.packbits(changed)
    bits[: len(marks)] = marks
    return np.concatenate([bits.view(np.int64), row[changed]])


def unpacked(words: Words, layout: Layout) -> Words:
    """Return the row of which :func:`packed` gave the words."""
    size = len(layout.fresh)
    head = -(-size // 64)
    marks = np.unpackbits(words[:head].view(np.uint8)).view(bool)
    changed = marks[:size]
    if marks[size:].any() or np.count_nonzero(changed) != len(words) - head:
        raise ValueError(f"{len(words)} words that are not of a row of {size}")
    if (changed > layout.stored).any():
        raise ValueError("words that no row stores")
    row = layout.fresh.copy()
    row[changed] = words[head:]
    return row
