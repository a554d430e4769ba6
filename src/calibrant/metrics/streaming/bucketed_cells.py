"""Binned calibration error, curve, Brier score and its parts, from one pass."""

from __future__ import annotations

from typing import ClassVar

from calibrant.metrics.binned import error_of_buckets
from calibrant.metrics.buckets import Buckets, equal_width
from calibrant.metrics.curve import CalibrationCurve, curve_of_buckets
from calibrant.metrics.murphy import Decomposition, brier_of_buckets, decomposition_of_buckets
from calibrant.metrics.streaming.tallied import Tallied


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
