"""Coins: a counter-based generator, so that a draw can be had again from its ticket.

The coin of a round is a pure function of its block's key and the block's clock:
the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) at that
position of that key's sequence.  Nothing is consumed, so looking ahead costs
nothing, late outcomes change nothing, and two open tickets never share a coin.

Keys and clocks are not negative.  Compiled code calls these functions with
unsigned arguments (:mod:`calibrant.kernels.compile` casts), for which the masks
are no operation.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
GAMMA: Final = 0x9E37_79B9_7F4A_7C15
FIRST: Final = 0xBF58_476D_1CE4_E5B9
SECOND: Final = 0x94D0_49BB_1331_11EB
UNIT: Final = 2.0**-53

EARLY: Final = 16
"""Coins of a key that are made one at a time: most keys need only a few."""
CHUNK_BITS: Final = 9
"""Later ones are made so many at a time: singly, a coin costs as much as the forecast."""
CHUNK: Final = (1 << CHUNK_BITS) - 1
MOST_CHUNKS: Final = 512

chunks: dict[int, list[float]] = {}
"""By key: the number of a chunk, and its coins."""


def coin(key: int, clock: int) -> float:
    """Return the number in [0, 1) that decides the draw of round ``clock``.

    The 53 high bits of the generator's word, so every value is a multiple of
    2**-53 and exact.

    >>> coin(0, 1)
    0.8833108082136426
    """
    z = (key + clock * GAMMA) & MASK
    z = ((z ^ (z >> 30)) * FIRST) & MASK
    z = ((z ^ (z >> 27)) * SECOND) & MASK
    return ((z ^ (z >> 31)) >> 11) * UNIT


def toss(key: int, clock: int) -> float:
    """Return the same coin, sooner where plain Python asks for one after the other.

    >>> toss(5, 100) == coin(5, 100)
    True
    """
    chunk = chunks.get(key)
    if chunk is None or chunk[0] != clock >> CHUNK_BITS:
        if clock < EARLY:
            return coin(key, clock)
        chunk = fresh_chunk(key, clock >> CHUNK_BITS)
    return chunk[(clock & CHUNK) + 1]


def fresh_chunk(key: int, number: int) -> list[float]:
    start = number << CHUNK_BITS
    clocks: Any = np.arange(start, start + (1 << CHUNK_BITS), dtype=np.uint64)
    made: Any = coin(np.uint64(key), clocks)  # type: ignore[arg-type]
    if len(chunks) >= MOST_CHUNKS:
        chunks.clear()
    chunk: list[float] = [number, *made.tolist()]
    chunks[key] = chunk
    return chunk
