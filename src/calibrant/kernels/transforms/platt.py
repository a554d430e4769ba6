"""Slope and intercept on the log-odds, by online Newton steps.

With x = (logit(raw), 1) and the forecast sigmoid(theta . x), a round adds the square of the
gradient g = (p - y) x to A and moves theta by -A^-1 g / gamma, then back into the ball if need
be.  The inverse of A is kept (Sherman and Morrison's formula), so a round takes no solving.

With a memory, the sum A of squared gradients decays towards its start:
A <- d A + (1 - d) rho + g g'.  So steps stay long enough to follow a drift, and A stays at least
rho, whatever comes.
"""

from __future__ import annotations

import math
from typing import Final

from calibrant.kernels.layout import Reals, Words
from calibrant.kernels.portable import log, sigmoid_short
from calibrant.kernels.transforms.kernel import ODDS, by_logs

STEP, REACH, SQUARE, SLOPE, INTERCEPT, INVERSE = range(6)
"""Which word is which.

- ``STEP``: (real) 1 / gamma.
- ``REACH``: (real) Log-odds beyond this, either way, count as this.
- ``SQUARE``: (real) Square of the ball's radius.
- ``INVERSE``: (reals) The inverse of A: slope with slope, slope with intercept, intercept with
  intercept.
"""
FEATURE, KEPT, ADDED, SUM = range(8, 12)
"""More words, but for the first with a memory only.

- ``FEATURE``: (real, note) The log-odds of the raw forecast.
- ``KEPT``: (real) d.
- ``ADDED``: (real) (1 - d) rho.
- ``SUM``: (reals) A: slope with slope, slope with intercept, intercept with intercept.
"""

HALVINGS: Final = 100
TINY: Final = 1e-300
"""Nothing is divided by less, which only a state that was made up could ask for."""
"""More steps than are needed to halve the widest bracket of doubles down to neighbours."""


def log_odds(raw: float, low: float) -> float:
    """Return log(p / (1 - p)) for ``raw`` moved into [low, 1 - low]."""
    p = min(max(raw, low), 1.0 - low)
    return log(p / (1.0 - p))


def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
    """Return the probability whose log-odds are the line through those of ``raw``."""
    reach = reals[at + REACH]
    x = -reach if odds < -reach else (reach if odds > reach else odds)
    reals[at + FEATURE] = x
    return sigmoid_short(reals[at + SLOPE] * x + reals[at + INTERCEPT])


def partly(
    words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int, part: float
) -> None:
    """Make one Newton step on the log loss."""
    x, gap, step = reals[at + FEATURE], (told - outcome) * part, reals[at + STEP]
    p, q, r = reals[at + INVERSE], reals[at + INVERSE + 1], reals[at + INVERSE + 2]
    # With v = A^-1 x and g = gap x, the new inverse is A^-1 - gap^2 v v' / (1 + gap^2 x'v), and
    # its product with g is gap v / (1 + gap^2 x'v).
    u, v = p * x + q, q * x + r
    grown = 1.0 + gap * gap * (u * x + v)
    shrink = gap / (TINY if grown < TINY else grown)
    inner = gap * shrink
    reals[at + INVERSE] = p - inner * u * u
    reals[at + INVERSE + 1] = q - inner * u * v
    reals[at + INVERSE + 2] = r - inner * v * v
    a = reals[at + SLOPE] - step * shrink * u
    b = reals[at + INTERCEPT] - step * shrink * v
    reals[at + SLOPE] = a
    reals[at + INTERCEPT] = b
    if a * a + b * b > reals[at + SQUARE]:
        project(words, reals, at)


def project(words: Words, reals: Reals, at: int) -> None:
    """Move to the point of the ball that is nearest in the norm of A.

    It is (A + m)^-1 A theta = (1 + m A^-1)^-1 theta for the m > 0 at which its length is
    the radius; the length falls in m, so m is found by halving.
    """
    a, b, square = reals[at + SLOPE], reals[at + INTERCEPT], reals[at + SQUARE]
    p, q, r = reals[at + INVERSE], reals[at + INVERSE + 1], reals[at + INVERSE + 2]
    # The longest way back: m is at most the largest eigenvalue of A times |theta| / radius.
    low, high = 0.0, (p + r) / max(p * r - q * q, TINY) * math.sqrt((a * a + b * b) / square)
    slope, intercept = a, b
    for _ in range(HALVINGS):
        m = 0.5 * (low + high)
        across, down = 1.0 + m * p, 1.0 + m * r
        whole = max(across * down - m * q * (m * q), TINY)
        slope = (down * a - m * q * b) / whole
        intercept = (across * b - m * q * a) / whole
        if slope * slope + intercept * intercept > square:
            low = m
        else:
            high = m
    reals[at + SLOPE] = slope
    reals[at + INTERCEPT] = intercept


KERNEL: Final = by_logs(given, partly, ODDS)


def partly_forgetting(
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
    whole = a * c - b * b
    each = 1.0 / (TINY if whole < TINY else whole)
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


def inverted(reals: Reals, sums: int, which: int) -> float:
    """Return a word of the inverse as :func:`partly_forgetting` makes it of the sums, bit for bit.

    Thus it need not be stored.
    """
    p, q, r = inverse(reals[sums], reals[sums + 1], reals[sums + 2])
    return p if which == 0 else (q if which == 1 else r)


def inverse(a: float, b: float, c: float) -> tuple[float, float, float]:
    """Return the inverse of the sums."""
    whole = a * c - b * b
    each = 1.0 / (TINY if whole < TINY else whole)
    return c * each, -b * each, a * each


FORGETTING: Final = by_logs(given, partly_forgetting, ODDS)
