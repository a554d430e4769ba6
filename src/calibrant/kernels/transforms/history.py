"""A line on the log-odds that also looks back: at the last outcome, and at the recent ones.

With x = (logit(raw), 1, c, l) the steps are those of :mod:`calibrant.kernels.transforms.platt`
in two dimensions more.  c is the running mean of 4 y - 2, and l is 2 y - 1 for the last outcome y
that came in; both are 0 at first.  There is no ball: A is at least rho, so that the sum of all
steps of T rounds is O(sqrt(T log T)) whatever comes.

Outcomes that come late say little of the next one, and what was known when their forecasts were
made is not known any more when they come.  So a stream whose outcomes wait has no history:
c = l = 0, and what is left is the line.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import Reals, Words
from calibrant.kernels.portable import sigmoid_short
from calibrant.kernels.transforms.kernel import ODDS, by_logs
from calibrant.kernels.transforms.platt import TINY

STEP, REACH, FORGOTTEN, RECENT, LAST, FEATURE, THETA = range(7)
"""Which word is which.

- ``STEP``: (real) 1 / gamma.
- ``REACH``: (real) Log-odds beyond this, either way, count as this.
- ``FORGOTTEN``: (real) Which part of the running mean an outcome replaces.
- ``RECENT``: (real) c.
- ``LAST``: (real) l.
- ``FEATURE``: (real, note) The log-odds of the raw forecast.
- ``THETA``: (reals) The four parameters.
"""
INVERSE: Final = THETA + 4
"""(reals) The inverse of A by rows: 11, 12, 13, 14, 22, 23, 24, 33, 34, 44."""
PARAMETERS: Final = (1.0, 0.0, 0.0, 0.0)


def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
    """Return the probability whose log-odds are theta . x."""
    reach, theta = reals[at + REACH], at + THETA
    x = -reach if odds < -reach else (reach if odds > reach else odds)
    reals[at + FEATURE] = x
    line = reals[theta] * x + reals[theta + 1]
    return sigmoid_short(
        line + (reals[theta + 2] * reals[at + RECENT] + reals[theta + 3] * reals[at + LAST])
    )


def partly(
    words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int, part: float
) -> None:
    """Make one Newton step on the log loss, and remember the outcome."""
    x, c, l = reals[at + FEATURE], reals[at + RECENT], reals[at + LAST]  # noqa: E741
    step(reals, at, x, c, l, (told - outcome) * part)
    if part < 1.0:
        reals[at + RECENT] = 0.0
        reals[at + LAST] = 0.0
        return
    sign = 2.0 * outcome - 1.0
    reals[at + RECENT] = c + (2.0 * sign - c) * reals[at + FORGOTTEN]
    reals[at + LAST] = sign


def step(reals: Reals, at: int, x: float, c: float, l: float, gap: float) -> None:  # noqa: E741
    """Move theta by -A^-1 g / gamma for g = gap (x, 1, c, l), after adding g g' to A."""
    i, theta = at + INVERSE, at + THETA
    u = reals[i] * x + reals[i + 1] + (reals[i + 2] * c + reals[i + 3] * l)
    v = reals[i + 1] * x + reals[i + 4] + (reals[i + 5] * c + reals[i + 6] * l)
    w = reals[i + 2] * x + reals[i + 5] + (reals[i + 7] * c + reals[i + 8] * l)
    z = reals[i + 3] * x + reals[i + 6] + (reals[i + 8] * c + reals[i + 9] * l)
    grown = 1.0 + gap * gap * (u * x + v + (w * c + z * l))
    shrink = gap / (TINY if grown < TINY else grown)
    inner, push = gap * shrink, reals[at + STEP] * shrink
    a, b, d, e = inner * u, inner * v, inner * w, inner * z
    reals[i] -= a * u
    reals[i + 1] -= a * v
    reals[i + 2] -= a * w
    reals[i + 3] -= a * z
    reals[i + 4] -= b * v
    reals[i + 5] -= b * w
    reals[i + 6] -= b * z
    reals[i + 7] -= d * w
    reals[i + 8] -= d * z
    reals[i + 9] -= e * z
    reals[theta] -= push * u
    reals[theta + 1] -= push * v
    reals[theta + 2] -= push * w
    reals[theta + 3] -= push * z


KERNEL: Final = by_logs(given, partly, ODDS)
