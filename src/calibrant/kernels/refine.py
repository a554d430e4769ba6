"""Average gaps with an anchor, on a grid whose cells split where they are visited.

The state has room for the finest grid, K points.  Every 2**DOUBLINGS-th of them is in use from the
start, and the middle of two neighbours as soon as the two were drawn so often that half their
distance, h, is the larger error::

    n h**2 >= (g (1 - g))**1.5,        n: draws of both,  g: the middle.

For outcomes of chance g the variance of their mean over n draws is ``g (1 - g)/n``: in the middle
of the grid a split waits until h is 0.7 times its root.  Towards the ends, where an error in
proportion to g counts too (ranking, the log loss), it comes sooner.
Draws never become fewer, so a point once in use stays in use, and which ones are follows from the
counts: nothing else is remembered.  A point that was never drawn has neither gap nor count, so a
split changes none.

A mixture in front that notices a swap of models may ask for the first grid for a while: then
neighbours are ``LEAST_STEP`` cells apart at least, and points between them are passed over.  They
keep gaps and counts, which neither the induction step nor the rest of the game minds.

::

    draw:   a, b = neighbours in use around the anchor q
            until score(a) > 0 > score(b), or one of them is 0, or the grid ends:
                go on to the neighbours in the direction of the score
            announce a and b such that the mean score is 0
    learn:  count gap and draw at the cell drawn
            add the variance of the announced pair to VARIANCE
            add what the mean lost to the anchor to REGRET, and let the pull follow

The score is that of :mod:`calibrant.kernels.anchor`.  A cell is one word, a tally of ones
and zeros; its gap follows exactly whenever the cell is looked at.
"""

from __future__ import annotations

import math
from typing import Final

from calibrant.kernels.anchor import (
    OWN_HEAD,
    PULL,
    SETTINGS,
    TRUST,
    learned,
    mean_growing,
    relearned,
)
from calibrant.kernels.layout import (
    CELL,
    CELLS,
    COUNT,
    FIXED,
    INDEX,
    LEAST_STEP,
    MIXED,
    ONE,
    PARAMETERS,
    SCALE,
    SCRATCH,
    STATE,
    TALLIED,
    VALUES,
    WIDTH,
    Reals,
    Section,
    Words,
)
from calibrant.kernels.place import point_before
from calibrant.kernels.rule import Rule
from calibrant.kernels.two_point import recall

REFINING_SETTINGS: Final = Section(SETTINGS)
DOUBLINGS: Final = PARAMETERS + REFINING_SETTINGS.whole(
    "DOUBLINGS", FIXED, "How often a step of the first grid can be halved."
)
REFINING_HEAD: Final = Section(OWN_HEAD)
VARIANCE: Final = REFINING_HEAD.whole(
    "VARIANCE",
    STATE,
    "Variances of the pairs whose outcomes were learned, each in units of 2**-20, rounded up.",
    COUNT,
)
UNIT: Final = 1 << 20
"""Into how many parts a variance is counted: few, so that short streams take little room."""
FIRST: Final = len(REFINING_HEAD)
"""Words of a block before its cells."""

BALLAST: Final = 1.0
"""As so many draws without a gap each cell begins; more than one would cost the bound."""
ONES: Final = 31
"""First bit of a tally that counts ones."""


def thresholds(values: list[float], doublings: int) -> list[float]:
    """Return how often two neighbours must be drawn for the point between them; 0 for the first.

    The least n with ``n h^2 >= (g (1 - g))^1.5``, for half a distance h and the middle g.

    >>> thresholds([0.0, 0.2, 0.4, 0.8, 1.0], 1)
    [0.0, 1.6, 0.0, 0.711111111111111, 0.0]
    """
    found, half = [0.0] * len(values), 1
    for _ in range(doublings):
        for k in range(half, len(values) - 1, 2 * half):
            width, middle = (values[k + half] - values[k - half]) / 2.0, values[k]
            spread = middle * (1.0 - middle)
            found[k] = spread * math.sqrt(spread) / (width * width)
        half *= 2
    return found


def score(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
    """Return the average gap of cell ``k``, as far as believed, and the pull."""
    pull = reals[at + PULL] * (reals[MIXED] - reals[table + words[CELLS] + VALUES + k])
    tally, scale = words[at + FIRST + k], words[SCALE]
    ones = tally >> ONES
    visits = ones + (tally & INDEX)
    gap = (scale * ones - words[table + k] * visits) * 1.0
    found: float = gap / ((visits + BALLAST) * scale) * reals[at + TRUST] + pull
    return found


def split(words: Words, reals: Reals, at: int, low: int, step: int) -> bool:
    """Say whether the point in the middle of two others, ``step`` cells apart, is in use."""
    one, other = words[at + FIRST + low], words[at + FIRST + low + step]
    drawn = (one >> ONES) + (one & INDEX) + (other >> ONES) + (other & INDEX)
    due: bool = drawn >= reals[(words[SCRATCH] & INDEX) + low + (step >> 1)]
    return due


def above(words: Words, reals: Reals, at: int, k: int) -> int:
    """Return how far the next point in use lies above one that is."""
    step: int = 1 << (words[DOUBLINGS] & 7)
    least = words[LEAST_STEP]
    while k & (step - 1) != 0:
        step >>= 1
    while step > least and split(words, reals, at, k, step):
        step >>= 1
    return step


def below(words: Words, reals: Reals, at: int, k: int) -> int:
    """Return how far the next point in use lies below one that is."""
    step: int = 1 << (words[DOUBLINGS] & 7)
    least = words[LEAST_STEP]
    while k & (step - 1) != 0:
        step >>= 1
    while step > least and split(words, reals, at, k - step, step):
        step >>= 1
    return step


def around(words: Words, reals: Reals, at: int, cells: int, table: int) -> tuple[int, int]:
    """Return the lower of the neighbours in use around the anchor, and their distance."""
    here, step = point_before(reals, table + cells + VALUES, cells), 1 << (words[DOUBLINGS] & 7)
    low, least = here & -step, words[LEAST_STEP]
    while step > least and split(words, reals, at, low, step):
        step >>= 1
        if here >= low + step:
            low += step
    return low, step


def search(words: Words, reals: Reals, at: int, cells: int, table: int) -> tuple[int, int, float]:
    """Return the low cell of the pair to announce, their distance, and the low one's weight."""
    low, step = around(words, reals, at, cells, table)
    up = score(words, reals, at, table, low)
    down = -score(words, reals, at, table, low + step)
    while not (up > 0.0 and down > 0.0):
        if up <= 0.0:
            if up == 0.0 or low == 0:
                return low, 1, 1.0
            step = below(words, reals, at, low)
            low -= step
            down, up = -up, score(words, reals, at, table, low)
        else:
            low += step
            if down == 0.0 or low == cells - 1:
                return low, 1, 1.0
            step = above(words, reals, at, low)
            up, down = -down, -score(words, reals, at, table, low + step)
    return low, step, down / (up + down)


def draw(
    words: Words, reals: Reals, at: int, cells: int, table: int, u: float
) -> tuple[int, int, float]:
    """Return the cell on which the coin falls, its side in the pair, and the low one's weight."""
    low, step, weight = search(words, reals, at, cells, table)
    side = 1 if u >= weight else 0
    width = 0
    while step > 1:
        step >>= 1
        width += 1
    return low + (side << width), side | (width << WIDTH), weight


def variance(reals: Reals, values: int, cell: int, side: int, weight: float) -> float:
    """Return the variance of the announced pair."""
    step = 1 << (side >> WIDTH)
    low = values + ((cell - (side & 1) * step) & CELL)
    across = reals[low + step * (weight < 1.0)] - reals[low]
    spread: float = weight * (1.0 - weight) * across * across
    return spread


def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count the outcome at the drawn cell, the pair's variance, and what its mean lost."""
    cells = words[CELLS] & INDEX
    words[at + FIRST + k] += ONE if outcome == 1 else 1
    spread = variance(reals, table + cells + VALUES, k, side, weight)
    words[at + VARIANCE] += int(spread * UNIT) + (1 if spread > 0.0 else 0)
    learned(words, reals, at, mean_growing(words, reals, cells, table, k, side, weight), outcome)


def amend(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, change: int
) -> None:
    """Replace an outcome: ``change`` is the new one less the old one."""
    words[at + FIRST + k] += (ONE - 1) * change
    expected = mean_growing(words, reals, words[CELLS] & INDEX, table, k, side, weight)
    relearned(words, reals, at, expected, change)


REFINING: Final = Rule(
    "refining",
    draw,
    update,
    amend,
    mean_growing,
    recall,
    REFINING_HEAD,
    TALLIED,
    REFINING_SETTINGS,
    anchored=True,
)
