"""The smooth calibration error, exact in O(n log n).

Kakade and Foster (2004); Blasiok, Gopalan, Hu and Nakkiran (2023).
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Reals
from calibrant.metrics.cells import Cells, as_cells

Heap = list[tuple[float, int]]


def smooth_calibration_error(
    forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None
) -> float:
    """Return the largest average of ``w(forecast) * (outcome - forecast)``.

    The supremum runs over all functions w on [0, 1] with values in [-1, 1] and slope
    at most 1: what a bettor could gain per round whose stake depends smoothly on the
    forecast.  Unlike C^1 it changes little when forecasts change little.
    Takes forecasts and outcomes as :func:`~calibrant.metrics.as_cells` does.

    Returns
    -------
    float
        A number from 0 to 1, at most C^1; nan without rounds.

    Notes
    -----
    Let ``F(w)`` be the best gain over the first j values with the j-th stake equal to
    w.  It is concave and piecewise linear on [-1, 1], that is, a set of segments
    sorted by slope, of total length 2.  Going on to a value that lies g further
    inserts a level segment of length 2g and cuts g off either end; adding the next
    excess e to the slopes is a change of origin.  A double-ended queue keeps the
    segments, each of which is inserted and removed once.

    Examples
    --------
    >>> round(smooth_calibration_error([0.3] * 10, [0, 1] * 5), 12)
    0.2
    >>> round(smooth_calibration_error([0.49, 0.51] * 3, [0, 1] * 3), 12)
    0.0049
    """
    cells = as_cells(forecasts, outcomes)
    return cells.average(_largest_gain(cells.values, cells.excess))


def _largest_gain(positions: Reals, excess: Reals) -> float:
    """Maximise ``sum w_j e_j`` over ``|w_j| <= 1``, ``|w_{j+1} - w_j| <= v_{j+1} - v_j``."""
    segments = _Segments()
    gaps = np.diff(positions, prepend=positions[:1])
    for gap, step in zip(gaps.tolist(), excess.tolist(), strict=True):
        segments.widen(gap)
        segments.tilt(step)
    return segments.top()


class _Segments:
    """A concave function on [-1, 1] as linear segments, kept by slope.

    ``origin`` is the running sum of all tilts.  A segment remembers the origin at its
    birth, when it was level; its slope now is the difference, so the steepest segment
    (the leftmost) is the one born at the lowest origin.
    """

    def __init__(self) -> None:
        self.origin = 0.0
        self.left_end = 0.0
        self.lengths = [2.0]
        self.steepest: Heap = [(0.0, 0)]
        self.flattest: Heap = [(-0.0, 0)]

    def widen(self, gap: float) -> None:
        """Replace F(w) by its maximum within ``gap`` of w."""
        heappush(self.steepest, (self.origin, len(self.lengths)))
        heappush(self.flattest, (-self.origin, len(self.lengths)))
        self.lengths.append(2.0 * gap)
        self.left_end += self._cut(self.steepest, gap)
        self._cut(self.flattest, gap)

    def tilt(self, step: float) -> None:
        """Add ``step * w`` to F(w)."""
        self.origin += step
        self.left_end -= step

    def top(self) -> float:
        """Return the maximum of F."""
        slopes = ((self.origin - birth, self.lengths[index]) for birth, index in self.steepest)
        return self.left_end + sum(max(slope, 0.0) * length for slope, length in slopes)

    def _cut(self, heap: Heap, amount: float) -> float:
        """Cut ``amount`` off one end; return what F gains from there (left end only)."""
        gained = 0.0
        while amount > 0.0:
            key, index = heap[0]
            cut = min(self.lengths[index], amount)
            self.lengths[index] -= cut
            amount -= cut
            gained += (self.origin - key) * cut
            if self.lengths[index] == 0.0:
                heappop(heap)
        return gained
