"""Running means of the error, interpolated between knots.

The line of raw forecasts carries knots; each keeps a mean of the errors ``outcome - raw`` of
the rounds around it, in which a round counts by how near it was (a hat function, so the
weights of a round's two knots add up to one).  The forecast is the raw one plus the
errors of its two knots, in the same proportions.

Unlike a mean per bucket this has no steps: within a cell the correction is a line.

Words: number of cells; which part of the past a knot keeps at a full visit, strength of the pull
to no correction; scale and shift from the raw forecast (or its log-odds) to knots, and how
near to 0 and 1 log-odds are taken; then for each knot the weight and the sum of errors;
notes: the cell and where in it the round fell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from calibrant.kernels.layout import NARROW, Reals, Words
from calibrant.kernels.portable import logit
from calibrant.kernels.transforms.kernel import Kernel

CELLS: Final = 0
FORGOTTEN: Final = 1
"""(real) Which part a full visit forgets."""
PRIOR: Final = 2
"""(real) Weight of rounds without error, at each knot."""
SCALE: Final = 3
"""(real) Knots for a unit of what is measured."""
SHIFT: Final = 4
"""(real) Where it is 0, in knots."""
LOW: Final = 5
"""(real) Log-odds are taken of forecasts in [low, 1 - low]."""
CELL: Final = 6
"""(note) The cell of the last prediction."""
PART: Final = 7
"""(real, note) Where in it that was, in [0, 1]."""
KNOTS: Final = 8
"""First knot; each has its weight and its sum of errors (reals)."""

Measure: TypeAlias = Callable[[Reals, int, float], float]


def plainly(reals: Reals, at: int, raw: float) -> float:
    """Measure by the raw forecast itself."""
    knots: float = raw * reals[at + SCALE]
    return knots


def by_log_odds(reals: Reals, at: int, raw: float) -> float:
    """Measure by log-odds: finer near 0 and 1."""
    low = reals[at + LOW]
    odds: float = logit(min(max(raw, low), 1.0 - low)) * reals[at + SCALE] + reals[at + SHIFT]
    return odds


def make_hats(measure: Measure) -> Kernel:
    """Return the kernel for one way to place knots."""

    def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
        place = measure(reals, at, raw)
        cell = min(max(int(place), 0), (words[at + CELLS] & NARROW) - 1)
        part = place - cell
        words[at + CELL] = cell
        reals[at + PART] = part
        knot, prior = at + KNOTS + 2 * cell, reals[at + PRIOR]
        left = reals[knot + 1] / (reals[knot] + prior)
        right = reals[knot + 3] / (reals[knot + 2] + prior)
        corrected: float = raw + ((1.0 - part) * left + part * right)
        return min(max(corrected, 0.0), 1.0)

    def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
        knot, part = at + KNOTS + 2 * (words[at + CELL] & NARROW), reals[at + PART]
        error, forgotten = outcome - raw, reals[at + FORGOTTEN]
        visit(reals, knot, 1.0 - part, error, forgotten)
        visit(reals, knot + 2, part, error, forgotten)

    return Kernel(predict, learn)


def visit(reals: Reals, knot: int, weight: float, error: float, forgotten: float) -> None:
    """Count an error at a knot, after forgetting in proportion to how near it was."""
    kept = 1.0 - forgotten * weight
    reals[knot] = reals[knot] * kept + weight
    reals[knot + 1] = reals[knot + 1] * kept + weight * error


PLAIN: Final = make_hats(plainly)
LOG_ODDS: Final = make_hats(by_log_odds)
