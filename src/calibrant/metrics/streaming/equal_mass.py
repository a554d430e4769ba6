"""Binned calibration error over buckets of equal mass, in constant memory."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.metrics.streaming.tallied import Gridded


class EqualMass(Gridded):
    """Follow the calibration error of buckets that hold equally many rounds (ECE).

    Where the borders between such buckets lie is known only at the end.  So rounds are
    counted on a fine grid, and whole cells of it go into the bucket that holds the middle
    of their ranks, as equal forecasts do in :func:`~calibrant.metrics.as_buckets`.

    Parameters
    ----------
    resolution : int
        How many cells the grid has.

    Notes
    -----
    A cell whose ranks all belong to one bucket is where the exact metric has it; forecasts
    are not moved, for their sums are kept.  A round of another cell may be in the wrong
    bucket, which changes two sums by ``|y - p|``.  Hence ``error_bound``: twice the sum of
    ``|y - p|`` over cells that a border cuts, per round, or 1 if that is less.  It is 0 for
    forecasts of which no two different ones share a cell that a border cuts.

    Examples
    --------
    >>> mass = EqualMass(resolution=100)
    >>> mass.update_many([0.1, 0.2, 0.3, 0.9], [0, 1, 0, 1])
    >>> round(mass.result(buckets=2), 12), mass.error_bound(buckets=2)
    (0.225, 0.0)
    """

    _powers: ClassVar[int] = 1

    def result(self, *, buckets: int = 10) -> float:
        """Return the error of so many buckets; nan without rounds."""
        number = check.whole(buckets, "buckets", low=1)
        if self.rounds == 0:
            return math.nan
        table, sums = self._tally.table(), self._tally.real_sums(0)
        index = self._places(number)[1]
        excess = np.bincount(index, weights=table[:, 1] - sums.sum(axis=1))
        return float(np.abs(excess).sum()) / self.rounds

    def error_bound(self, *, buckets: int = 10) -> float:
        """Return how far the result may be from the exact one; nan without rounds."""
        number = check.whole(buckets, "buckets", low=1)
        if self.rounds == 0:
            return math.nan
        table, sums = self._tally.table(), self._tally.real_sums(0)
        first, _, last = self._places(number)
        missed = table[:, 1] - sums[:, 1] + sums[:, 0]
        return min(1.0, 2.0 * float(missed[first != last].sum()) / self.rounds)

    def _places(self, buckets: int) -> tuple[Words, ...]:
        """Return the bucket of the first, the middle and the last rank of each cell."""
        counts = self._tally.table().sum(axis=1)
        below = 2 * (np.cumsum(counts) - counts)
        # A rank is from k to k + 1, and twice its middle odd: from 1 to 2n - 1 in a cell of n.
        # For an empty cell it does not matter, as long as it is the same bucket.
        inside = (np.minimum(counts, 1), counts, np.maximum(2 * counts - 1, 0))
        most = buckets - 1
        return tuple(np.minimum((below + k) * buckets // (2 * self.rounds), most) for k in inside)
