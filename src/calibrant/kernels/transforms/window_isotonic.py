"""A monotone curve fitted anew every so often to a window of past rounds.

The fit is by pooling adjacent violators, and between the fitted points the curve is straight.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import INDEX, Reals, Words
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.kernels.transforms.window import FILLED, WINDOW, entered

KNOTS, ROUNDS = range(5, 7)
"""Which word is which.

- ``KNOTS``: Points of the fitted curve.
- ``ROUNDS``: (reals) Eight tables as long as the window: the raw forecasts and outcomes in it;
  where the knots are and how high; and four notes, the room in which the fit is made.
"""
TABLES: Final = 8
NOTED: Final = 4


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the height of the curve; without one, the raw forecast."""
    window, knots = words[at + WINDOW] & INDEX, words[at + KNOTS] & INDEX
    left = at + ROUNDS + 2 * window
    heights = left + window
    if knots == 0:
        return raw
    if raw <= reals[left]:
        first: float = reals[heights]
        return first
    low, high = 0, knots
    while high - low > 1:
        middle = (low + high) >> 1
        if reals[left + middle] <= raw:
            low = middle
        else:
            high = middle
    base: float = reals[heights + low]
    if high == knots:
        return base
    part = (raw - reals[left + low]) / (reals[left + high] - reals[left + low])
    height: float = min(base + (reals[heights + high] - base) * part, 1.0)
    return height


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Put the round into the window, and fit when it is time."""
    if entered(words, reals, at, at + ROUNDS, raw, outcome):
        fit(words, reals, at)


def fit(words: Words, reals: Reals, at: int) -> None:
    """Fit the curve to the window."""
    window, filled = words[at + WINDOW] & INDEX, words[at + FILLED] & INDEX
    rows, keys = at + ROUNDS, at + ROUNDS + 4 * window
    for t in range(filled):
        reals[keys + t] = reals[rows + t]
        reals[keys + window + t] = reals[rows + window + t]
    sort(reals, keys, window, filled)
    blocks = pool(reals, keys, window, filled)
    words[at + KNOTS] = mark(reals, keys, window, blocks, rows + 2 * window)


def sort(reals: Reals, keys: int, window: int, count: int) -> None:
    """Sort ``count`` pairs by their key, by way of a heap with the largest on top.

    Each pair is a key and, ``window`` words further, its value.
    """
    for start in range(count // 2 - 1, -1, -1):
        sink(reals, keys, window, start, count)
    for last in range(count - 1, 0, -1):
        swap(reals, keys, keys + last)
        swap(reals, keys + window, keys + window + last)
        sink(reals, keys, window, 0, last)


def sink(reals: Reals, keys: int, window: int, node: int, count: int) -> None:
    """Let a pair sink in the heap until no child is larger."""
    child = 2 * node + 1
    while child < count:
        if child + 1 < count and reals[keys + child] < reals[keys + child + 1]:
            child += 1
        if reals[keys + child] <= reals[keys + node]:
            return
        swap(reals, keys + node, keys + child)
        swap(reals, keys + window + node, keys + window + child)
        node, child = child, 2 * child + 1


def swap(reals: Reals, here: int, there: int) -> None:
    """Exchange two words."""
    kept = reals[here]
    reals[here] = reals[there]
    reals[there] = kept


def pool(reals: Reals, keys: int, window: int, count: int) -> int:
    """Pool sorted pairs into blocks with rising means; return how many.

    Of each block: first key, sum, last key, weight, ``window`` words apart.  They take
    the place of pairs that were read before.
    """
    sums, lasts, weights = keys + window, keys + 2 * window, keys + 3 * window
    top = -1
    for t in range(count):
        key, value = reals[keys + t], reals[sums + t]
        if top >= 0 and reals[lasts + top] == key:
            # Equal keys share a point, whatever their outcomes.
            reals[sums + top] += value
            reals[weights + top] += 1.0
        else:
            top = settled(reals, keys, window, top) + 1
            reals[keys + top] = key
            reals[lasts + top] = key
            reals[sums + top] = value
            reals[weights + top] = 1.0
    return settled(reals, keys, window, top) + 1


def settled(reals: Reals, keys: int, window: int, top: int) -> int:
    """Merge the last block into those before it as long as its mean is not above theirs."""
    sums, lasts, weights = keys + window, keys + 2 * window, keys + 3 * window
    while top > 0:
        below = reals[sums + top - 1] * reals[weights + top]
        if below < reals[sums + top] * reals[weights + top - 1]:
            return top
        reals[sums + top - 1] += reals[sums + top]
        reals[weights + top - 1] += reals[weights + top]
        reals[lasts + top - 1] = reals[lasts + top]
        top -= 1
    return top


def mark(reals: Reals, keys: int, window: int, blocks: int, knots: int) -> int:
    """Write the ends of the blocks as knots; return how many."""
    made = 0
    for b in range(blocks):
        height = reals[keys + window + b] / reals[keys + 3 * window + b]
        first, last = reals[keys + b], reals[keys + 2 * window + b]
        reals[knots + made] = first
        reals[knots + window + made] = height
        made += 1
        if last > first:
            reals[knots + made] = last
            reals[knots + window + made] = height
            made += 1
    return made


KERNEL: Final = Kernel(predict, learn)
