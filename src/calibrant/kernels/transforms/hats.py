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

from collections.abc import Callable
from typing import Final, TypeAlias

from calibrant.kernels.layout import NARROW, Reals, Words
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

Measure: TypeAlias = Callable[[Reals, int, float, float], float]


def plainly(reals: Reals, at: int, raw: float, odds: float) -> float:
    """Measure by the raw forecast itself."""
    knots: float = raw * reals[at + SCALE]
    return knots


def by_log_odds(reals: Reals, at: int, raw: float, odds: float) -> float:
    """Measure by log-odds: finer near 0 and 1."""
    reach = reals[at + REACH]
    knots: float = min(max(odds, -reach), reach) * reals[at + SCALE] + reals[at + SHIFT]
    return knots


def make_hats(measure: Measure, logs: int) -> Kernel:
    """Return the kernel for one way to place knots."""

    def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
        place = measure(reals, at, raw, odds)
        cell = min(max(int(place), 0), (words[at + CELLS] & NARROW) - 1)
        part = place - cell
        words[at + CELL] = cell
        reals[at + PART] = part
        knot = at + KNOTS + WIDTH * cell
        left, right = reals[knot + MEAN], reals[knot + WIDTH + MEAN]
        corrected: float = raw + ((1.0 - part) * left + part * right)
        return min(max(corrected, 0.0), 1.0)

    def partly(
        words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int, part: float
    ) -> None:
        knot, far = at + KNOTS + WIDTH * (words[at + CELL] & NARROW), reals[at + PART]
        error, forgotten, prior = outcome - raw, reals[at + FORGOTTEN], reals[at + PRIOR]
        visit(reals, knot, (1.0 - far) * part, error, forgotten, prior)
        visit(reals, knot + WIDTH, far * part, error, forgotten, prior)

    return by_logs(given, partly, logs)


def visit(
    reals: Reals, knot: int, weight: float, error: float, forgotten: float, prior: float
) -> None:
    """Count an error at a knot, after forgetting in proportion to how near it was."""
    kept = 1.0 - forgotten * weight
    visits = reals[knot] * kept + weight
    errors = reals[knot + 1] * kept + weight * error
    reals[knot] = visits
    reals[knot + 1] = errors
    reals[knot + MEAN] = errors / (visits + prior)


PLAIN: Final = make_hats(plainly, NONE)
LOG_ODDS: Final = make_hats(by_log_odds, ODDS)
