"""Slope and intercept fitted anew every so often to a window of past rounds."""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import INDEX, Reals, Words
from calibrant.kernels.portable import sigmoid_short
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.kernels.transforms.platt import log_odds
from calibrant.kernels.transforms.window import FILLED, WINDOW, entered

LOW, RIDGE, SLOPE, INTERCEPT, ROUNDS = range(5, 10)
"""Which word is which.

- ``LOW``: (real) How far raw forecasts are kept away from 0 and 1.
- ``RIDGE``: (real) How strongly slope and intercept are pulled to 1 and 0.
- ``ROUNDS``: (reals) The log-odds of the window, then the outcomes, then a note: the present log-
  odds.
"""
NOTES: Final = 1

ITERATIONS: Final = 50
SHORTEST: Final = 1e-9
"""Steps are halved until they are shorter than this part."""
ENOUGH: Final = 1e-18
"""Square of the gradient at which the fit stops."""


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the probability by the last fit."""
    x = log_odds(raw, reals[at + LOW])
    reals[at + ROUNDS + 2 * (words[at + WINDOW] & INDEX)] = x
    return sigmoid_short(reals[at + SLOPE] * x + reals[at + INTERCEPT])


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Put the round into the window, and fit when it is time."""
    x = reals[at + ROUNDS + 2 * (words[at + WINDOW] & INDEX)]
    if entered(words, reals, at, at + ROUNDS, x, outcome):
        fit(words, reals, at)


def fit(words: Words, reals: Reals, at: int) -> None:
    """Minimise the log loss on the window plus ridge/2 |(slope, intercept) - (1, 0)|^2.

    Newton's method from the last fit.  The loss is convex, so a step along which the gradient
    does not get shorter is halved until it does.
    """
    a, b = reals[at + SLOPE], reals[at + INTERCEPT]
    g, h, p, q, r = derivatives(words, reals, at, a, b)
    length, left = g * g + h * h, ITERATIONS
    while length > ENOUGH and left > 0:
        whole = p * r - q * q
        along, across = (r * g - q * h) / whole, (p * h - q * g) / whole
        step = 1.0
        g, h, p, q, r = derivatives(words, reals, at, a - along, b - across)
        while g * g + h * h >= length and step > SHORTEST:
            step *= 0.5
            g, h, p, q, r = derivatives(words, reals, at, a - step * along, b - step * across)
        a -= step * along
        b -= step * across
        length, left = g * g + h * h, left - 1
    reals[at + SLOPE] = a
    reals[at + INTERCEPT] = b


def derivatives(
    words: Words, reals: Reals, at: int, a: float, b: float
) -> tuple[float, float, float, float, float]:
    """Return both first derivatives at (a, b), and the second ones: aa, ab, bb."""
    ridge, window = reals[at + RIDGE], words[at + WINDOW] & INDEX
    g, h, p, q, r = ridge * (a - 1.0), ridge * b, ridge, 0.0, ridge
    for t in range(words[at + FILLED]):
        x = reals[at + ROUNDS + t]
        told = sigmoid_short(a * x + b)
        gap, bend = told - reals[at + ROUNDS + window + t], told * (1.0 - told)
        g += gap * x
        h += gap
        p += bend * x * x
        q += bend * x
        r += bend
    return g, h, p, q, r


KERNEL: Final = Kernel(predict, learn)
