"""Whether raw forecasts still look like those of the model before: after a swap they do not.

A new model is wrong in its own way, and for some hundred rounds so is what experts make of it.
Draws on a fine grid are spread thinly then, and say little that is right.  So a mixture watches the
raw forecasts p, on a scale close to their log-odds, in whole numbers from 0 to 63::

    x = int(10 (r - 1/r) + 32),   r = (p/(1 - p))**(1/8),   p held between 2**-14 and 1 - 2**-14
    d = 2 x - 2 MEAN
    MEAN   is the mean of x,     SPREAD that of |d|,   over the latest 256 or so
    LATELY is the mean of d,     SIZE   that of |d|,   over the latest 8 or so
    alarm: |LATELY| > 21/16 (SPREAD + 1),   or SIZE > 31/16 (SPREAD + 1),
           or SIZE < 5/16 SPREAD where SPREAD is above 4

None of it looks at outcomes.  For the next 512 outcomes after an alarm the last stage is asked to
draw from its first grid; there is none in the 8,191 after one, nor in the first 2,048.  The first
late outcome, or correction, ends the watch for good: from then on outcomes count as late ones.

All is kept in one word of five fields, the running means times the number they remember: so each of
them goes on by whole numbers, ``s += new - (s >> k)``.
"""

from __future__ import annotations

import math
from typing import Final

END: Final = 2.0**-14
STEPS: Final = 10.0
MIDDLE: Final = 32.0

AGE: Final = 8191
"""Outcomes since the last alarm, in 13 bits: from here on there may be another."""
MEAN_AT: Final = 13
MEAN: Final = 16383
SPREAD_AT: Final = 27
SPREAD: Final = 32767
LATELY_AT: Final = 42
LATELY: Final = 2047
SIZE_AT: Final = 53
SIZE: Final = 1023
"""Where the fields start, and the most that they hold."""
ZERO: Final = 1024
"""What is added to the latest mean of d, so that no field is below 0."""
LONG: Final = 8
SHORT: Final = 3
"""Logarithms of how many rounds are remembered."""

HOLD: Final = 512
"""For so many outcomes after an alarm the first grid is asked for."""
WARM: Final = 2048
"""So many outcomes come before the first alarm."""
MOVED: Final = 21
WIDER: Final = 31
NARROWER: Final = 5
"""Sixteenths of the spread that make an alarm."""
LEAST: Final = 256
"""A spread of one, which is added: what differs less does not matter."""
TELLING: Final = 4 * LEAST
"""Above this spread raw forecasts may become narrower."""
WHOLE: Final = 512
"""What brings a short mean to sixteenths of a long one."""

MOST: Final = (1 << 63) - 1
"""The largest word.  From any word of at least 0 another one follows: no field can overflow."""
FRESH: Final = (AGE - WARM) | int(MIDDLE) << (MEAN_AT + LONG) | ZERO << LATELY_AT
"""The word of a stream that has learned nothing."""
FINE: Final = 1
COARSE: Final = 128
"""How far apart neighbours must be: anything, or as far as on any first grid."""


def place_of(raw: float) -> int:
    """Return where a raw forecast lies.

    >>> [place_of(raw) for raw in (0.0, 0.1, 0.5, 0.9, 1.0)]
    [1, 26, 32, 37, 62]
    """
    p = END if raw < END else (1.0 - END if raw > 1.0 - END else raw)
    root = math.sqrt(math.sqrt(math.sqrt(p / (1.0 - p))))
    return int(STEPS * (root - 1.0 / root) + MIDDLE)


def noticed(word: int, raw: float) -> int:
    """Return the word after one more raw forecast whose outcome came at once.

    >>> word = FRESH
    >>> for k in range(3000):
    ...     word = noticed(word, 0.3 + 0.4 * (k % 2))
    >>> least_step(word)
    1
    >>> for _ in range(8):
    ...     word = noticed(word, 0.99)
    >>> least_step(word)
    128
    """
    age, mean = word & AGE, (word >> MEAN_AT) & MEAN
    spread, lately = (word >> SPREAD_AT) & SPREAD, ((word >> LATELY_AT) & LATELY) - ZERO
    size, place = (word >> SIZE_AT) & SIZE, place_of(raw)
    away = 2 * place - (mean >> (LONG - 1))
    far = away if away > 0 else -away
    mean += place - (mean >> LONG)
    spread += far - (spread >> LONG)
    lately += away - (lately >> SHORT)
    size += far - (size >> SHORT)
    if age < AGE:
        age += 1
    elif changed(spread, lately if lately > 0 else -lately, size):
        age = 0
    told = age | (mean << MEAN_AT) | (spread << SPREAD_AT)
    return told | ((lately + ZERO) << LATELY_AT) | (size << SIZE_AT)


def changed(spread: int, lately: int, size: int) -> bool:
    """Say whether the latest raw forecasts are others than those before."""
    wide = spread + LEAST
    if lately * WHOLE > MOVED * wide or size * WHOLE > WIDER * wide:
        return True
    return spread > TELLING and size * WHOLE < NARROWER * spread


def least_step(word: int) -> int:
    """Return how far apart the neighbours must be that are drawn from."""
    return COARSE if word & AGE < HOLD else FINE
