"""A logistic regression on the log-odds and on what is known besides, by hashed names.

What is known of a round stands in slots, a word each, and the first word 0 ends them.  A word is
made of the hash of a name (22 bits) and of a number, as an exponent (9 bits) and a signed fraction
(31 bits); the exponent :data:`NAMED` says that the name alone counts, because it has its value in
it.  :mod:`calibrant.recalibrate.context` writes such words.

A number counts less the mean of its name so far, over its spread so far, and by the third of its
values in which it lies; so each name has four places, and a name with its value has one.  Each
weight takes the steps of AdaGrad.
"""

from __future__ import annotations

import functools
import math
from typing import Final

from calibrant.kernels.layout import INDEX, Reals, Words
from calibrant.kernels.portable import scaled, sigmoid_short
from calibrant.kernels.transforms.kernel import ODDS, Kernel, by_logs

STEP, REACH, SHIFT, PLACES, MOMENTS, SLOTS, FEATURE, LINE = range(8)
"""Which word is which.

- ``STEP``: (real) The length of steps.
- ``REACH``: (real) Log-odds beyond this, either way, count as this.
- ``SHIFT``: By how many bits a hash of 32 bits is cut to be a place.
- ``PLACES``: Where the places start: (real) a weight, (real) the sum of its squared gradients.
- ``MOMENTS``: Where the moments start: (reals) count, mean, sum of squares about the mean.
- ``SLOTS``: Where the slots start, behind which stand (reals) the numbers as they count.
- ``FEATURE``: (real, note) The log-odds of the raw forecast.
- ``LINE``: (reals) Slope and intercept, each with the sum of its squared gradients.
"""
HEAD: Final = LINE + 4
NAME: Final = 40
"""A word shifted by so many bits is the hash of its name."""
EXPONENT: Final = 31
EXPONENTS: Final = 0x1FF
MIDDLE: Final = 256
NAMED: Final = EXPONENTS
FRACTION: Final = 0x7FFF_FFFF
FINE: Final = 1 << 30
"""A number is (fraction / FINE - 1) 2**(exponent - MIDDLE)."""
GOLDEN: Final = 0x9E37_79B1
HASH: Final = 0xFFFF_FFFF
FIRST: Final = 1e-8
"""What a sum of squared gradients starts with."""
NEAR: Final = 0.43
"""A third of a normal law lies within so many spreads of its mean, a third on either side."""
FAR: Final = 3.0
"""No number counts for more spreads than this."""
SURE: Final = 7.0
"""No log-odds go farther than this."""


def place_of(name: int, which: int, shift: int) -> int:
    """Return the place of the number of a name (0), or of one of its thirds (1 to 3)."""
    return (((4 * name + which) * GOLDEN) & HASH) >> shift


def third_of(x: float) -> int:
    """Return in which third of the values so far a number lies: 1, 2 or 3."""
    return 2 + (x > NEAR) - (x < -NEAR)


def number_of(told: int) -> float:
    """Return the number of a word."""
    exponent = ((told >> EXPONENT) & EXPONENTS) - MIDDLE
    return scaled((told & FRACTION) / FINE - 1.0, exponent)


def counted(reals: Reals, moments: int, x: float) -> float:
    """Return a number less the mean so far, over the spread so far; 0 where there is none."""
    count, square = reals[moments], reals[moments + 2]
    if not (count > 0.0 and square > 0.0):
        return 0.0
    x = (x - reals[moments + 1]) / math.sqrt(square / count)
    return -FAR if x < -FAR else (x if x < FAR else FAR)


def notice(reals: Reals, moments: int, x: float) -> None:
    """Add a number to the mean and to the spread of its name."""
    count = reals[moments] + 1.0
    moved = x - reals[moments + 1]
    mean = reals[moments + 1] + moved / count
    reals[moments] = count
    reals[moments + 1] = mean
    reals[moments + 2] += moved * (x - mean)


def move(reals: Reals, at: int, step: float, slope: float) -> None:
    """Take a step of AdaGrad."""
    square = reals[at + 1] + slope * slope
    reals[at + 1] = square
    reals[at] -= step * slope / math.sqrt(square)


@functools.cache
def make_context(features: int) -> Kernel:
    """Return the kernel that reads so many slots."""

    def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
        reach, shift = reals[at + REACH], words[at + SHIFT]
        places, moments = at + (words[at + PLACES] & INDEX), at + (words[at + MOMENTS] & INDEX)
        slots = at + (words[at + SLOTS] & INDEX)
        x = -reach if odds < -reach else (reach if odds > reach else odds)
        reals[at + FEATURE] = x
        line = reals[at + LINE] * x + reals[at + LINE + 2]
        for k in range(features):
            told = words[slots + k]
            if told == 0:
                break
            name, which = told >> NAME, 1
            if (told >> EXPONENT) & EXPONENTS != NAMED:
                where = moments + 3 * place_of(name, 0, shift + 2)
                x = counted(reals, where, number_of(told))
                reals[slots + features + k] = x
                line += reals[places + 2 * place_of(name, 0, shift)] * x
                which = third_of(x)
            line += reals[places + 2 * place_of(name, which, shift)]
        # What is no number counts as none of the two.
        line = line if line < SURE else SURE
        return sigmoid_short(line if line > -SURE else -SURE)

    def partly(
        words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int, part: float
    ) -> None:
        gap, step, shift = told - outcome, reals[at + STEP] * part, words[at + SHIFT]
        places, moments = at + (words[at + PLACES] & INDEX), at + (words[at + MOMENTS] & INDEX)
        slots = at + (words[at + SLOTS] & INDEX)
        move(reals, at + LINE, step, gap * reals[at + FEATURE])
        move(reals, at + LINE + 2, step, gap)
        for k in range(features):
            told_k = words[slots + k]
            if told_k == 0:
                break
            name, which = told_k >> NAME, 1
            if (told_k >> EXPONENT) & EXPONENTS != NAMED:
                x = reals[slots + features + k]
                move(reals, places + 2 * place_of(name, 0, shift), step, gap * x)
                notice(reals, moments + 3 * place_of(name, 0, shift + 2), number_of(told_k))
                which = third_of(x)
            move(reals, places + 2 * place_of(name, which, shift), step, gap)

    made = by_logs(given, partly, ODDS)
    return Kernel(made.predict, made.learn, given=given, logs=ODDS, partly=partly, slots=features)
