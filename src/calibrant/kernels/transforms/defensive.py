"""Defensive forecasting with random features: announce what no smooth test can profit from.

With features phi(q, x) = (cos, sin)(v q + w x) for D random pairs (v, w), divided by sqrt(D),
and S the sum of (y - p) phi(p, x) over the past, the forecast is a root of <S, phi(q, x)>, or
of that plus (1 - 2 q) / 2.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import INDEX, Reals, Words
from calibrant.kernels.portable import turn
from calibrant.kernels.transforms.kernel import Kernel

FEATURES, STAR, ROUNDS, PER, TABLES = range(5)
"""Which word is which.

- ``FEATURES``: Number D of pairs of features.
- ``STAR``: Whether the second form is used.
- ``PER``: (real) 1 / D.
- ``TABLES``: (reals) Six tables of D words: v, w, the sums of the cosines and of the sines; and
  two notes: the sums, turned by the present x.
"""
NOTED: Final = 2

HALVINGS: Final = 40


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return a root, or the end of [0, 1] to which the test points."""
    if words[at + ROUNDS] == 0 and words[at + STAR] == 0:
        return raw
    aim(words, reals, at, raw)
    first = score_of(words, reals, at, 0.0)
    last = score_of(words, reals, at, 1.0)
    if first > 0.0 and last > 0.0:
        return 1.0
    if first <= 0.0 and last <= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        # The scores of the two ends always differ in sign.
        if (score_of(words, reals, at, middle) > 0.0) == (first > 0.0):
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def aim(words: Words, reals: Reals, at: int, raw: float) -> None:
    """Turn the sums by the angle of the raw forecast, so that only q is left."""
    size = words[at + FEATURES] & INDEX
    second = at + TABLES + size
    for d in range(size):
        cosine, sine = turn(reals[second + d] * raw)
        near, far = reals[second + size + d], reals[second + 2 * size + d]
        reals[second + 3 * size + d] = near * cosine + far * sine
        reals[second + 4 * size + d] = far * cosine - near * sine


def score_of(words: Words, reals: Reals, at: int, q: float) -> float:
    """Return what the test says of forecast ``q``."""
    size = words[at + FEATURES] & INDEX
    first = at + TABLES
    total = 0.0
    for d in range(size):
        cosine, sine = turn(reals[first + d] * q)
        total += reals[first + 4 * size + d] * cosine + reals[first + 5 * size + d] * sine
    total *= reals[at + PER]
    told: float = total + 0.5 * (1.0 - 2.0 * q) if words[at + STAR] == 1 else total
    return told


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Add the round's features, times how far the forecast was off."""
    size = words[at + FEATURES] & INDEX
    first, gap = at + TABLES, outcome - told
    for d in range(size):
        cosine, sine = turn(reals[first + d] * told + reals[first + size + d] * raw)
        reals[first + 2 * size + d] += gap * cosine
        reals[first + 3 * size + d] += gap * sine
    words[at + ROUNDS] += 1


KERNEL: Final = Kernel(predict, learn)
