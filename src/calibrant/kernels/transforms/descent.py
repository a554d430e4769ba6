"""Slope and intercept on the log-odds, by plain gradient steps."""

from __future__ import annotations

from calibrant.kernels.layout import Reals, Words
from calibrant.kernels.portable import sigmoid_short
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.kernels.transforms.platt import log_odds

STEP, LOW, SLOPE, INTERCEPT, FEATURE = range(5)
"""Which word is which.

- ``STEP``: (real) The step.
- ``LOW``: (real) How far raw forecasts are kept away from 0 and 1.
- ``FEATURE``: (real, note) The log-odds of the raw forecast.
"""


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the probability whose log-odds are the line through those of ``raw``."""
    x = log_odds(raw, reals[at + LOW])
    reals[at + FEATURE] = x
    return sigmoid_short(reals[at + SLOPE] * x + reals[at + INTERCEPT])


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Make one gradient step on the log loss."""
    push = reals[at + STEP] * (told - outcome)
    reals[at + SLOPE] -= push * reals[at + FEATURE]
    reals[at + INTERCEPT] -= push


KERNEL = Kernel(predict, learn)
