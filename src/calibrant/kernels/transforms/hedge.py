"""In each bucket a calibrator that draws between two neighbouring grid points.

The rule is the average gap of :mod:`calibrant.kernels.gaps` on the grid 0, 1/N, ..., 1: walk from
the cell drawn last to one whose mean outcome is exactly its value, or to two neighbours whose gaps
point at each other, and mix these two so that no outcome can profit.
"""

from __future__ import annotations

from calibrant.kernels.coin import coin
from calibrant.kernels.layout import INDEX, NARROW, Reals, Words
from calibrant.kernels.place import bucket_of
from calibrant.kernels.transforms.kernel import Kernel

BUCKETS, RESOLUTION, KEY, CLOCK, EDGES = range(5)
"""Which word is which.

- ``RESOLUTION``: Number N of steps of the grid.
- ``KEY``: Key of the coins.
- ``CLOCK``: Rounds so far; each has its own coin.
- ``EDGES``: (reals) The edges of the buckets and a sentinel. Then for each bucket the cell drawn
  last and, for each cell, the gap N Y - k n and the count n; then a note: the drawn cell.
"""


def block_of(words: Words, reals: Reals, at: int, raw: float) -> int:
    """Return where the block of a raw forecast's bucket starts."""
    buckets, width = words[at + BUCKETS] & NARROW, 2 * (words[at + RESOLUTION] & NARROW) + 3
    j = bucket_of(reals, at + EDGES, buckets, raw) & NARROW
    block: int = at + EDGES + buckets + 1 + width * j
    return block


def note_of(words: Words, at: int) -> int:
    """Return where the note is."""
    buckets, width = words[at + BUCKETS] & NARROW, 2 * (words[at + RESOLUTION] & NARROW) + 3
    note: int = at + EDGES + buckets + 1 + width * buckets
    return note


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Draw a grid point."""
    block, steps = block_of(words, reals, at, raw), words[at + RESOLUTION] & NARROW
    low, weight = search(words, block)
    cell = low + int(coin(words[at + KEY], words[at + CLOCK]) >= weight)
    words[note_of(words, at)] = cell
    value: float = cell * 1.0 / steps
    return value


def search(words: Words, block: int) -> tuple[int, float]:
    """Return a cell and its weight; the rest of the weight is its upper neighbour's.

    The gap of cell 0 is never below 0 and that of the last one never above, so both walks end.
    """
    k = words[block] & INDEX
    cell = block + 1 + 2 * k
    if words[cell] > 0:
        while words[cell] > 0:
            k, cell = k + 1, cell + 2
        if words[cell] == 0:
            return k, 1.0
        k, cell = k - 1, cell - 2
    elif words[cell] < 0:
        while words[cell] < 0:
            k, cell = k - 1, cell - 2
        if words[cell] == 0:
            return k, 1.0
    else:
        return k, 1.0
    here = words[cell] * 1.0 * words[cell + 3]
    above = words[cell + 2] * -1.0 * words[cell + 1]
    return k, above / (here + above)


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Count the outcome in the drawn cell."""
    block, k = block_of(words, reals, at, raw), words[note_of(words, at)] & INDEX
    words[block + 1 + 2 * k] += words[at + RESOLUTION] * outcome - k
    words[block + 2 + 2 * k] += 1
    words[block] = k
    words[at + CLOCK] += 1


KERNEL = Kernel(predict, learn)
