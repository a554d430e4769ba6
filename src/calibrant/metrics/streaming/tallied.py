"""Streaming metrics that count in a table of fixed size.

Forecasts that fall into one cell of the grid are moved to their mean.  A forecast from
a coarser grid (one value per cell at most) does not move at all, and the result is then
that of the exact metric.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.core.place import bucket, buckets_of
from calibrant.errors import InvalidInput
from calibrant.metrics.buckets import (
    Buckets,
    CalibrationCurve,
    curve_of_buckets,
    equal_width,
    error_of_buckets,
    tally_cells,
)
from calibrant.metrics.calibration import atb, smooth_calibration_error
from calibrant.metrics.cells import Cells, checked_rounds
from calibrant.metrics.murphy import Decomposition, brier_of_buckets, decomposition_of_buckets
from calibrant.metrics.tally import Kept, Tally, open_state, restored, seal_state


class Tallied(Kept, ABC):
    """Remember sums over buckets of equal width; a subclass says what to make of them.

    The memory depends on the number of buckets only.  All sums are whole numbers (see
    :mod:`calibrant.metrics.tally`), so the order of updates does not matter, ``revert``
    undoes ``update`` without a trace, and merged parts equal the whole.
    """

    _powers: ClassVar[int]
    _size_name: ClassVar[str] = "resolution"

    def __init__(self, size: int) -> None:
        self._size = check.whole(size, self._size_name, low=1, high=1 << 20)
        self._tally = Tally(self._size, self._powers)

    @abstractmethod
    def result(self) -> Any:
        """Return the metric over all rounds so far."""

    @property
    def rounds(self) -> int:
        """The number of rounds so far."""
        return self._tally.rounds

    def update(self, forecast: float, outcome: int) -> None:
        """Add one round."""
        value = check.probability(forecast, "forecast")
        self._tally.add(bucket(value, self._size), value, check.outcome(outcome))

    def revert(self, forecast: float, outcome: int) -> None:
        """Take back one earlier round, as if it had never been.

        A round that cannot have been added is refused; not every wrong one can be told.
        """
        value = check.probability(forecast, "forecast")
        self._tally.remove(bucket(value, self._size), value, check.outcome(outcome))

    def update_many(self, forecasts: ArrayLike, outcomes: ArrayLike) -> None:
        """Add many rounds at once; exactly the same as one :meth:`update` for each."""
        values, binary = checked_rounds(forecasts, outcomes)
        self._tally.add_many(buckets_of(values, self._size), values, binary)

    def merge(self, other: Tallied) -> None:
        """Add all rounds of ``other``, of the same class and size; ``other`` stays as it is."""
        if type(other) is not type(self) or other._size != self._size:
            raise InvalidInput(f"other must be like {self!r}, got {other!r}")
        self._tally.merge(other._tally)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON types."""
        return seal_state(type(self).__name__, size=self._size, **self._tally.to_dict())

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return an object that goes on exactly where :meth:`to_dict` was called."""
        size, counts, sums = open_state(state, cls.__name__, "size", "counts", "sums")
        made = restored(cls, size)
        made._tally.load(counts, sums)
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._size_name}={self._size})"


class Gridded(Tallied):
    """Remember sums over the cells of a fine grid."""

    def __init__(self, resolution: int = 1024) -> None:
        super().__init__(resolution)


class BucketedCells(Tallied):
    """Follow forecasts and outcomes in buckets of equal width.

    Parameters
    ----------
    buckets : int
        How many buckets ``[j/M, (j+1)/M)``, the last one closed.

    Notes
    -----
    The Brier score is that of the forecasts themselves, not of bucket means.  Sums of
    squares are those of the rounded double ``p * p``.

    Examples
    --------
    >>> cells = BucketedCells(buckets=2)
    >>> cells.update_many([0.0, 0.25, 0.75, 1.0], [0, 0, 1, 1])
    >>> cells.calibration_error(), cells.brier()
    (0.125, 0.03125)
    >>> cells.update(0.5, 0)
    >>> cells.revert(0.5, 0)
    >>> cells.result().count.tolist()
    [2, 2]
    """

    _powers: ClassVar[int] = 2
    _size_name: ClassVar[str] = "buckets"

    def __init__(self, buckets: int = 20) -> None:
        super().__init__(buckets)

    def result(self) -> Buckets:
        """Return the sums of each bucket."""
        return equal_width(self._tally)

    def calibration_error(self, *, power: float = 1.0, debiased: bool = False) -> float:
        """Return what :func:`~calibrant.metrics.binned_calibration_error` gives."""
        return error_of_buckets(self.result(), power=power, debiased=debiased)

    def curve(self, *, confidence: float = 0.95) -> CalibrationCurve:
        """Return what :func:`~calibrant.metrics.calibration_curve` gives."""
        return curve_of_buckets(self.result(), confidence=confidence)

    def brier(self) -> float:
        """Return the mean squared error of the forecasts."""
        return brier_of_buckets(self.result())

    def decomposition(self) -> Decomposition:
        """Return what :func:`~calibrant.metrics.decomposition` with these buckets gives."""
        return decomposition_of_buckets(self.result())


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
        """Return the error of that many buckets; nan without rounds."""
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
