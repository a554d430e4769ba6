"""Almost one step ahead: a deterministic rule that stays close to a calibrated sequence.

Grid point i of m has a bias, the sum of i/m - y over its rounds.  The rule looks for neighbours of
which the lower has no bias above 0 and the upper none below, announces one of them, and books the
outcome where it belongs: 1 with the upper, 0 with the lower.  No bias ever leaves [-1, 1].  After
m^2 rounds m is doubled and the biases start anew, until m has reached its limit.
"""

from __future__ import annotations

from calibrant.kernels.layout import INDEX, NARROW, Reals, Words
from calibrant.kernels.transforms.kernel import Kernel

LIMIT, STEPS, LEFT, ERROR, DISTANCE, BIASES = range(6)
"""Which word is which.

- ``LIMIT``: Largest m.
- ``STEPS``: The present m.
- ``LEFT``: Rounds until it changes.
- ``ERROR``: (real) Sum over past epochs of all biases' sizes: the calibration error of the
  bookings.
- ``DISTANCE``: (real) Sum of the distances between forecasts and bookings.
- ``BIASES``: Biases times m, of up to LIMIT + 1 grid points; then a note: the lower neighbour.
"""


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the one of the two neighbours that is nearer to the raw forecast."""
    steps = words[at + STEPS] & NARROW
    low = search(words, at, min(int(raw * steps), steps - 1), steps)
    words[at + BIASES + (words[at + LIMIT] & INDEX) + 1] = low
    below, above = low * 1.0 / steps, (low + 1.0) / steps
    value: float = below if raw - below <= above - raw else above
    return value


def search(words: Words, at: int, start: int, steps: int) -> int:
    """Return the lower of two neighbours with biases <= 0 and >= 0, near ``start``.

    The bias of point 0 is never above 0 and that of the last one never below, so a pair lies to
    the right of a point with a bias <= 0 and to the left of one above 0.
    """
    biases = at + BIASES
    if words[biases + start] > 0:
        low, high = 0, start
    elif words[biases + start + 1] >= 0:
        return start
    else:
        low, high = start + 1, steps
    while high - low > 1:
        middle = (low + high) >> 1
        if words[biases + middle] > 0:
            high = middle
        else:
            low = middle
    return low


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Book the outcome with the neighbour on its side."""
    steps = words[at + STEPS] & NARROW
    k = (words[at + BIASES + (words[at + LIMIT] & INDEX) + 1] & INDEX) + outcome
    words[at + BIASES + k] += k - steps * outcome
    reals[at + DISTANCE] += abs(told - k * 1.0 / steps)
    words[at + LEFT] -= 1
    if words[at + LEFT] == 0:
        renew(words, reals, at, steps)


def renew(words: Words, reals: Reals, at: int, steps: int) -> None:
    """Close an epoch."""
    total = 0
    for k in range(steps + 1):
        total += abs(words[at + BIASES + k])
        words[at + BIASES + k] = 0
    reals[at + ERROR] += total * 1.0 / steps
    larger = min(2 * steps, words[at + LIMIT])
    words[at + STEPS] = larger
    words[at + LEFT] = larger * larger


KERNEL = Kernel(predict, learn)
