"""Room for many words that takes memory as they are written, and gives it back.

An array that grows is copied now and then, and whoever waits for it waits long if it is large.
Words of a region stay where they are: their addresses are taken at once, their memory later.
"""

from __future__ import annotations

import mmap
from typing import Final

import numpy as np

from calibrant.core.arrays import Words

NORESERVE: Final = getattr(mmap, "MAP_NORESERVE", 0)
ADDRESSES: Final = 1 << 30
"""Bytes of addresses that a region takes at least."""


def region(count: int) -> Words:
    """Return zeros with room for ``count`` words and, where addresses cost nothing, many more.

    >>> len(region(1000)) >= 2000
    True
    """
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
        room = mmap.mmap(-1, max(ADDRESSES, 16 * count), flags=flags)
    except (AttributeError, OSError, ValueError, OverflowError):
        return np.zeros(2 * count, np.int64)
    return np.frombuffer(room, np.int64)


def give_back(words: Words, used: int) -> None:
    """Return the memory of a region's words beyond those in use, which read as zeros again."""
    room, start = getattr(words.base, "obj", None), -(-8 * used // mmap.PAGESIZE) * mmap.PAGESIZE
    if isinstance(room, mmap.mmap) and start < len(room) and hasattr(mmap, "MADV_DONTNEED"):
        room.madvise(mmap.MADV_DONTNEED, start, len(room) - start)
