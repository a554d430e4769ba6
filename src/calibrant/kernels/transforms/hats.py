"""Running means of the error, interpolated between knots.

The line of raw forecasts carries knots; each keeps a mean of the errors ``outcome - raw`` of
the rounds around it, in which a round counts by how near it was (a hat function, so the
weights of a round's two knots add up to one).  The forecast is the raw one plus the
errors of its two knots, in the same proportions.

Unlike a mean per bucket this has no steps: within a cell the correction is a line.

Words: number of cells; which part of the past a knot keeps at a full visit, strength of the pull
to no correction; scale and shift from the raw forecast (or its log-odds) to knots, and how
near to 0 and 1 log-odds are taken; then for each knot the weight, the sum of errors, and the mean
error that follows from them; notes: the cell and where in it the round fell.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import NARROW, Reals, Words
from calibrant.kernels.place import run_at
from calibrant.kernels.transforms.kernel import NONE, ODDS, Kernel, by_logs

CELLS, FORGOTTEN, PRIOR, SCALE, SHIFT, REACH, CELL, PART, KNOTS = range(9)
"""Which word is which.

- ``FORGOTTEN``: (real) Which part a full visit forgets.
- ``PRIOR``: (real) Weight of rounds without error, at each knot.
- ``SCALE``: (real) Knots for a unit of what is measured.
- ``SHIFT``: (real) Where it is 0, in knots.
- ``REACH``: (real) Log-odds beyond this, either way, count as this.
- ``CELL``: (note) The cell of the last prediction.
- ``PART``: (real, note) Where in it that was, in [0, 1].
- ``KNOTS``: First knot; each has its weight, its sum of errors and their mean (reals).
"""
WIDTH: Final = 3
MEAN: Final = 2


def make_hats(logs: int) -> Kernel:
    """Return the kernel for one way to place knots: by the raw forecast itself, or by log-odds.

    The latter are finer near 0 and 1.
    """

    def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
        if logs == NONE:
            place = raw * reals[at + SCALE]
        else:
            reach = reals[at + REACH]
            x = -reach if odds < -reach else (reach if odds > reach else odds)
            place = x * reals[at + SCALE] + reals[at + SHIFT]
        cell, last = int(place), (words[at + CELLS] & NARROW) - 1
        cell = 0 if cell < 0 else (last if cell > last else cell)
        part = place - cell
        words[at + CELL] = cell
        reals[at + PART] = part
        knots, first = run_at(reals, at + KNOTS)
        mean = first + WIDTH * cell + MEAN
        left, right = knots[mean], knots[mean + WIDTH]
        corrected: float = raw + ((1.0 - part) * left + part * right)
        return 0.0 if corrected < 0.0 else (1.0 if corrected > 1.0 else corrected)

    return by_logs(given, partly, logs)


def partly(
    words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int, part: float
) -> None:
    """Count an error at both knots, after forgetting in proportion to how near it was."""
    knots, first = run_at(reals, at + KNOTS)
    low, far = first + WIDTH * (words[at + CELL] & NARROW), reals[at + PART]
    error, forgotten, prior = outcome - raw, reals[at + FORGOTTEN], reals[at + PRIOR]
    left, right, high = (1.0 - far) * part, far * part, low + WIDTH
    kept = 1.0 - forgotten * left
    visits = knots[low] * kept + left
    errors = knots[low + 1] * kept + left * error
    knots[low] = visits
    knots[low + 1] = errors
    knots[low + MEAN] = errors / (visits + prior)
    kept = 1.0 - forgotten * right
    visits = knots[high] * kept + right
    errors = knots[high + 1] * kept + right * error
    knots[high] = visits
    knots[high + 1] = errors
    knots[high + MEAN] = errors / (visits + prior)


PLAIN: Final = make_hats(NONE)
LOG_ODDS: Final = make_hats(ODDS)
