"""Metrics of exact values, followed on a fine grid in constant memory.

Forecasts that fall into one cell of the grid are moved to their mean.  A forecast from
a coarser grid (one value per cell at most) does not move at all, and the result is then
that of the exact metric.
"""

from __future__ import annotations

import math
from typing import ClassVar

from calibrant.metrics.buckets import tally_cells
from calibrant.metrics.cells import Cells
from calibrant.metrics.smooth import smooth_calibration_error
from calibrant.metrics.streaming.tallied import Gridded
from calibrant.metrics.two_bin import atb


class _Moved(Gridded):
    """Move the forecasts of a cell to their mean."""

    _powers: ClassVar[int] = 1

    @property
    def cells(self) -> Cells:
        """The cells of the grid; any metric over exact values takes them."""
        return tally_cells(self._tally)


class StreamingSmooth(_Moved):
    """Follow the smooth calibration error.

    ``resolution`` is the number of cells of the grid.

    Notes
    -----
    Within a cell the forecasts are on average at most ``1/(2*resolution)`` from their
    mean, and a stake with slope 1 changes by no more than that; residuals are at most
    1.  So the result is within ``1/(2*resolution)`` of the exact one, on either side.

    Examples
    --------
    >>> smooth = StreamingSmooth(resolution=1000)
    >>> smooth.update_many([0.49, 0.51] * 3, [0, 1] * 3)
    >>> round(smooth.result(), 12), smooth.error_bound
    (0.0049, 0.0005)
    """

    @property
    def error_bound(self) -> float:
        """How far the result may be from the exact one."""
        return 0.5 / self._size

    def result(self) -> float:
        """Return the smooth calibration error of the cells."""
        return smooth_calibration_error(self.cells)


class StreamingATB(_Moved):
    """Follow the averaged two-bin calibration error.

    ``resolution`` is the number of cells of the grid.

    Notes
    -----
    A forecast that moves by d changes sides for thresholds on a stretch of length d,
    and the sum of both sides, a and b per round, by at most ``2 d/T`` there (in the
    squared form because ``|a| + |b| <= 1``).  The moves are ``1/(2*resolution)`` on
    average at most, so the result is within ``1/resolution`` of the exact one.

    Examples
    --------
    >>> following = StreamingATB(resolution=1000)
    >>> following.update_many([0.3] * 10, [0, 1] * 5)
    >>> round(following.result(), 12), round(following.result(power=1), 12)
    (0.04, 0.2)
    """

    @property
    def error_bound(self) -> float:
        """How far the result may be from the exact one, for either power."""
        return 1.0 / self._size

    def result(self, *, power: int = 2) -> float:
        """Return what :func:`~calibrant.metrics.atb` gives for the cells."""
        return atb(self.cells, power=power)


class StreamingAUC(Gridded):
    """Follow the area under the ROC curve.

    ``resolution`` is the number of cells of the grid.

    Notes
    -----
    Pairs of rounds in different cells are ranked exactly; pairs in one cell count one
    half, as ties do.  ``error_bound`` is half the share of such pairs: the exact value
    is within it, and nothing smaller can be promised.  All arithmetic is in whole
    numbers but the last division.

    Examples
    --------
    >>> ranking = StreamingAUC(resolution=100)
    >>> ranking.update_many([0.1, 0.4, 0.4, 0.9], [0, 0, 1, 1])
    >>> ranking.result(), ranking.error_bound
    (0.875, 0.125)
    """

    _powers: ClassVar[int] = 0

    @property
    def error_bound(self) -> float:
        """How far the result may be from the exact one; nan unless both outcomes occurred."""
        zeros, ones = self._tally.counts[0::2], self._tally.counts[1::2]
        tied = sum(zero * one for zero, one in zip(zeros, ones, strict=True))
        pairs = sum(zeros) * sum(ones)
        return tied / (2 * pairs) if pairs else math.nan

    def result(self) -> float:
        """Return the area; nan unless both outcomes occurred."""
        zeros, ones = self._tally.counts[0::2], self._tally.counts[1::2]
        halves = below = 0
        for zero, one in zip(zeros, ones, strict=True):
            halves += one * (2 * below + zero)
            below += zero
        pairs = 2 * below * sum(ones)
        return halves / pairs if pairs else math.nan
