"""The power of two choices: announce an interval, and be judged at its better end.

Each of m cells of [0, 1] counts rounds and ones.  A cell is short if the mean outcome is above its
right edge, and long if it is below its left edge.  A cell that is neither announces its
midpoint; a short cell with a long one to its right announces both midpoints as an interval.
"""

from __future__ import annotations

from calibrant.kernels.layout import INDEX, NARROW, Reals, Words
from calibrant.kernels.transforms.kernel import Kernel

CELLS, COUNTS = range(2)
"""Which word is which.

- ``CELLS``: Number m of cells.
- ``COUNTS``: Rounds and ones of each cell; then two notes: the cells at the ends of the interval.
"""


def score_of(words: Words, at: int, b: int) -> int:
    """Return 1 for a short cell, -1 for a long one, 0 for neither."""
    n, ones = words[at + COUNTS + 2 * b], words[at + COUNTS + 2 * b + 1] * words[at + CELLS]
    return int(ones > (b + 1) * n) - int(ones < b * n)


def search(words: Words, at: int, start: int) -> tuple[int, int]:
    """Return the cells at the ends of the interval, the same twice for a single point.

    The first cell is never long and the last never short, so both walks end with a reason; in a
    state that was tampered with, they end at the edge.
    """
    b = start
    score = score_of(words, at, b)
    ahead = score
    while score != 0 and score == ahead and 0 <= b + ahead < words[at + CELLS]:
        b += ahead
        score = score_of(words, at, b)
    if score == 0 or score == ahead:
        return b, b
    return (b - 1, b) if ahead > 0 else (b, b + 1)


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the middle of the interval."""
    cells = words[at + CELLS] & NARROW
    low, high = search(words, at, min(int(raw * cells), cells - 1))
    words[at + COUNTS + 2 * cells] = low
    words[at + COUNTS + 2 * cells + 1] = high
    middle: float = (low + high + 1.0) / (2.0 * cells)
    return middle


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Count the outcome at the end of the interval that is nearer to it."""
    cells = words[at + CELLS] & NARROW
    b = words[at + COUNTS + 2 * cells + outcome] & INDEX
    words[at + COUNTS + 2 * b] += 1
    words[at + COUNTS + 2 * b + 1] += outcome


KERNEL = Kernel(predict, learn)
