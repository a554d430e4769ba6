"""Three parameters on the logarithms of the raw forecast and its complement: beta scaling.

With x = (log raw, log(1 - raw), 1) the steps are those of :mod:`calibrant.kernels.transforms.platt`
in one dimension more; the first logarithm is the second plus the log-odds.
"""

from __future__ import annotations

import math
from typing import Final

from calibrant.kernels.layout import Reals, Words
from calibrant.kernels.portable import sigmoid_short
from calibrant.kernels.transforms.kernel import BOTH, by_logs
from calibrant.kernels.transforms.platt import HALVINGS

STEP, LEAST, SQUARE, THETA = range(4)
"""Which word is which.

- ``STEP``: (real) 1 / gamma.
- ``LEAST``: (real) Logarithms below this count as this.
- ``SQUARE``: (real) Square of the ball's radius.
- ``THETA``: (reals) The three parameters.
"""
INVERSE: Final = 6
"""(reals) The inverse of A by rows: 11, 12, 13, 22, 23, 33."""
REACH, MOST, FEATURES = range(12, 15)
"""Which word is which.

- ``REACH``: (real) Log-odds beyond this, either way, count as this.
- ``MOST``: (real) Logarithms above this count as this.
- ``FEATURES``: (reals, notes) The two logarithms.
"""


def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
    """Return the probability whose log-odds are a log(raw) + b log(1 - raw) + c."""
    reach = reals[at + REACH]
    least, most = reals[at + LEAST], reals[at + MOST]
    z = least if less < least else (most if less > most else less)
    x = (-reach if odds < -reach else (reach if odds > reach else odds)) + z
    reals[at + FEATURES] = x
    reals[at + FEATURES + 1] = z
    return sigmoid_short(reals[at + THETA] * x + reals[at + THETA + 1] * z + reals[at + THETA + 2])


def partly(
    words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int, part: float
) -> None:
    """Make one Newton step on the log loss."""
    x, z, gap = reals[at + FEATURES], reals[at + FEATURES + 1], (told - outcome) * part
    i = at + INVERSE
    u = reals[i] * x + reals[i + 1] * z + reals[i + 2]
    v = reals[i + 1] * x + reals[i + 3] * z + reals[i + 4]
    w = reals[i + 2] * x + reals[i + 4] * z + reals[i + 5]
    shrink = gap / (1.0 + gap * gap * (u * x + v * z + w))
    inner, push = gap * shrink, reals[at + STEP] * shrink
    reals[i] -= inner * u * u
    reals[i + 1] -= inner * u * v
    reals[i + 2] -= inner * u * w
    reals[i + 3] -= inner * v * v
    reals[i + 4] -= inner * v * w
    reals[i + 5] -= inner * w * w
    a = reals[at + THETA] - push * u
    b = reals[at + THETA + 1] - push * v
    c = reals[at + THETA + 2] - push * w
    reals[at + THETA] = a
    reals[at + THETA + 1] = b
    reals[at + THETA + 2] = c
    if a * a + b * b + c * c > reals[at + SQUARE]:
        project(words, reals, at)


def project(words: Words, reals: Reals, at: int) -> None:
    """Move to the point of the ball that is nearest in the norm of A; see platt.project."""
    a, b, c = reals[at + THETA], reals[at + THETA + 1], reals[at + THETA + 2]
    square = reals[at + SQUARE]
    low, high = 0.0, 1.0
    x, y, z = solve(reals, at + INVERSE, high, a, b, c)
    while x * x + y * y + z * z > square:
        low, high = high, 2.0 * high
        x, y, z = solve(reals, at + INVERSE, high, a, b, c)
    for _ in range(HALVINGS):
        m = 0.5 * (low + high)
        x, y, z = solve(reals, at + INVERSE, m, a, b, c)
        if x * x + y * y + z * z > square:
            low = m
        else:
            high = m
    # Rounding may leave the last one a hair outside.
    back = math.sqrt(square / max(x * x + y * y + z * z, square))
    reals[at + THETA] = x * back
    reals[at + THETA + 1] = y * back
    reals[at + THETA + 2] = z * back


def solve(
    reals: Reals, i: int, m: float, a: float, b: float, c: float
) -> tuple[float, float, float]:
    """Solve (1 + m P) t = (a, b, c), where P is kept at ``i``, by Cramer's rule."""
    p, q, r = 1.0 + m * reals[i], m * reals[i + 1], m * reals[i + 2]
    s, t, u = 1.0 + m * reals[i + 3], m * reals[i + 4], 1.0 + m * reals[i + 5]
    one, two, three = s * u - t * t, r * t - q * u, q * t - r * s
    whole = p * one + q * two + r * three
    four, five, six = p * u - r * r, q * r - p * t, p * s - q * q
    return (
        (one * a + two * b + three * c) / whole,
        (two * a + four * b + five * c) / whole,
        (three * a + five * b + six * c) / whole,
    )


KERNEL: Final = by_logs(given, partly, BOTH)
