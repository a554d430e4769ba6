"""One factor on the log-odds, by online Newton steps."""

from __future__ import annotations

from calibrant.kernels.layout import Reals, Words
from calibrant.kernels.portable import sigmoid_short
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.kernels.transforms.platt import log_odds

STEP, LOW, RADIUS, FACTOR, SQUARES, FEATURE = range(6)
"""Which word is which.

- ``STEP``: (real) 1 / gamma.
- ``LOW``: (real) How far raw forecasts are kept away from 0 and 1.
- ``RADIUS``: (real) The factor stays between this and its negative.
- ``SQUARES``: (real) Sum of squared gradients, and the strength of the start.
- ``FEATURE``: (real, note) The log-odds of the raw forecast.
"""


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the probability whose log-odds are those of ``raw`` times the factor."""
    x = log_odds(raw, reals[at + LOW])
    reals[at + FEATURE] = x
    return sigmoid_short(reals[at + FACTOR] * x)


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Make one Newton step on the log loss."""
    slope = (told - outcome) * reals[at + FEATURE]
    reals[at + SQUARES] += slope * slope
    moved = reals[at + FACTOR] - reals[at + STEP] * slope / reals[at + SQUARES]
    radius = reals[at + RADIUS]
    reals[at + FACTOR] = min(max(moved, -radius), radius)


KERNEL = Kernel(predict, learn)
