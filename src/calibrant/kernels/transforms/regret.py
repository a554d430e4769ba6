"""One calibrated stream with a coordinate for the regret to the raw forecast.

Each of the m + 1 grid points has a coordinate in [-1, 1] that pushes against its gap, and one more
in [0, 1] pushes against extra squared loss.  The announced point, or pair of neighbours, is such
that no outcome moves far along these directions.
"""

from __future__ import annotations

import math

from calibrant.kernels.coin import coin
from calibrant.kernels.layout import INDEX, NARROW, Reals, Words
from calibrant.kernels.transforms.kernel import Kernel

RESOLUTION, KEY, CLOCK, REGRET, CELLS = range(5)
"""Which word is which.

- ``RESOLUTION``: Number m of steps of the grid.
- ``KEY``: Key of the coins.
- ``CLOCK``: Rounds so far; each has its own coin.
- ``REGRET``: (real) The coordinate of the regret.
- ``CELLS``: (reals) The coordinates of the grid points; then a note: the drawn point.
"""


def push(words: Words, reals: Reals, at: int, k: int, raw: float, outcome: float) -> float:
    """Return how far grid point ``k`` would move the state along its coordinates."""
    value = k * 1.0 / (words[at + RESOLUTION] & NARROW)
    gap, rawgap = value - outcome, raw - outcome
    moved: float = reals[at + CELLS + k] * gap + reals[at + REGRET] * (gap * gap - rawgap * rawgap)
    return moved


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Draw a grid point."""
    steps = words[at + RESOLUTION] & NARROW
    low, weight = search(words, reals, at, raw)
    cell = low + int(coin(words[at + KEY], words[at + CLOCK]) >= weight)
    words[at + CELLS + steps + 1] = cell
    value: float = cell * 1.0 / steps
    return value


def search(words: Words, reals: Reals, at: int, raw: float) -> tuple[int, float]:
    """Return a grid point and its weight; the rest of the weight is its upper neighbour's.

    The grid point nearest the raw forecast if no outcome moves it the wrong way; else
    halve the part of the grid that lies in the direction that it asks for.
    """
    steps = words[at + RESOLUTION] & NARROW
    low, high, middle = 0, steps, int(raw * steps + 0.5)
    while True:
        none = push(words, reals, at, middle, raw, 0.0)
        one = push(words, reals, at, middle, raw, 1.0)
        if none <= 0.0 and one <= 0.0:
            return middle, 1.0
        # Point 0 only ever asks to go up, and the last one to go down.
        if one >= none:
            low = middle
        else:
            high = middle
        if high - low <= 1:
            return pair(words, reals, at, min(low, steps - 1), raw)
        middle = (low + high) >> 1


def pair(words: Words, reals: Reals, at: int, low: int, raw: float) -> tuple[int, float]:
    """Mix two neighbours so that both outcomes move the state alike."""
    up = push(words, reals, at, low, raw, 1.0) - push(words, reals, at, low, raw, 0.0)
    down = push(words, reals, at, low + 1, raw, 0.0) - push(words, reals, at, low + 1, raw, 1.0)
    if up <= 0.0:
        return low, 1.0
    if down <= 0.0:
        return low + 1, 1.0
    return low, down / (up + down)


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Move the drawn point's coordinate and the regret's by the present step."""
    steps = words[at + RESOLUTION] & NARROW
    k = words[at + CELLS + steps + 1] & INDEX
    step = math.sqrt((steps + 2.0) / (words[at + CLOCK] + 1))
    gap, rawgap = told - outcome, raw - outcome
    moved = reals[at + CELLS + k] + step * gap
    reals[at + CELLS + k] = min(max(moved, -1.0), 1.0)
    moved = reals[at + REGRET] + step * (gap * gap - rawgap * rawgap)
    reals[at + REGRET] = min(max(moved, 0.0), 1.0)
    words[at + CLOCK] += 1


KERNEL = Kernel(predict, learn)
