"""Words that are read soon are brought near the processor while another row is played.

Rows of many streams lie scattered over gigabytes.  A processor that asks for a word far away waits
for as long as two hundred additions take, and a round of the default reads words of thirty places.
But a batch says whose turn comes next, so compiled loops ask for the words of a row a few rows
before its turn.  That changes no word: for plain Python :func:`fetch` does nothing at all, and for
machine code it is the instruction of :mod:`calibrant.kernels.prefetch`.
"""

from __future__ import annotations

from typing import Any, Final

from calibrant.kernels.layout import (
    BLOCKS,
    BUCKETS,
    EDGES,
    INDEX,
    NARROW,
    ROW_WORDS,
    STRIDE,
    Reals,
    Words,
)
from calibrant.kernels.place import bucket_of

AHEAD: Final = 2
"""So many rows before its turn a row is asked for; the words of more would drive others out."""
ROUNDS: Final = 4
"""So many rounds of a row have their blocks fetched; of those that follow, many are there then."""
LINE: Final = 8
"""Words that come together."""
MOST: Final = 1024
"""Words of one part of a row that are asked for at most; more would be driven out again."""


def fetch(words: Words, at: int) -> None:
    """Ask for a word that is written soon."""


def fetch_words(words: Words, first: int, last: int) -> None:
    """Ask for the words from ``first`` up to ``last``, or for the first ones of many."""
    last = min(last, first + MOST)
    for at in range(first, last, LINE):
        fetch(words, at)
    if last > first:
        fetch(words, last - 1)


def fetch_row(words: Words, reals: Reals, row: int, raw: Any) -> None:
    """Ask for what a row will need when its next raw forecasts are these.

    That is its own words, the blocks of these forecasts and the state of its transform.  Behind a
    transform it is a guess that the mixed forecast lies in the bucket of the raw one.
    """
    blocks, stride = (row + words[BLOCKS]) & INDEX, words[STRIDE] & NARROW
    edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
    fetch_words(words, row, blocks)
    for t in range(min(len(raw), ROUNDS if buckets > 1 else 1)):
        at = blocks + (bucket_of(reals, edges, buckets, raw[t]) & NARROW) * stride
        fetch_words(words, at, at + stride)
    fetch_words(words, blocks + buckets * stride, row + words[ROW_WORDS])
