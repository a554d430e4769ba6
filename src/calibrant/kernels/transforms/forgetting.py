"""Slope and intercept on the log-odds, by online Newton steps that forget.

As :mod:`calibrant.kernels.transforms.platt`, except that the sum A of squared gradients decays
towards its start: A <- d A + (1 - d) rho + g g'.  So steps stay long enough to follow a drift,
and A stays at least rho, whatever comes.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import Reals, Words
from calibrant.kernels.transforms.kernel import ODDS, by_logs
from calibrant.kernels.transforms.platt import (
    FEATURE,
    INTERCEPT,
    INVERSE,
    SIZE,
    SLOPE,
    SQUARE,
    STEP,
    given,
    project,
)

KEPT: Final = SIZE
"""(real) d."""
ADDED: Final = SIZE + 1
"""(real) (1 - d) rho."""
SUM: Final = SIZE + 2
"""(reals) A: slope with slope, slope with intercept, intercept with intercept."""


def partly(
    words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int, part: float
) -> None:
    """Make one Newton step on the log loss, after forgetting a little."""
    x, gap, kept = reals[at + FEATURE], (told - outcome) * part, reals[at + KEPT]
    grown, added = gap * gap, reals[at + ADDED]
    a = reals[at + SUM] * kept + added + grown * x * x
    b = reals[at + SUM + 1] * kept + grown * x
    c = reals[at + SUM + 2] * kept + added + grown
    reals[at + SUM] = a
    reals[at + SUM + 1] = b
    reals[at + SUM + 2] = c
    each = 1.0 / (a * c - b * b)
    p, q, r = c * each, -b * each, a * each
    reals[at + INVERSE] = p
    reals[at + INVERSE + 1] = q
    reals[at + INVERSE + 2] = r
    length = reals[at + STEP] * gap
    slope = reals[at + SLOPE] - length * (p * x + q)
    intercept = reals[at + INTERCEPT] - length * (q * x + r)
    reals[at + SLOPE] = slope
    reals[at + INTERCEPT] = intercept
    if slope * slope + intercept * intercept > reals[at + SQUARE]:
        project(words, reals, at)


KERNEL: Final = by_logs(given, partly, ODDS)
