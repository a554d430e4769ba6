"""Calibration error block by block: does it hold all the time, or only on average?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.core.place import buckets_of
from calibrant.metrics.buckets import tally_cells
from calibrant.metrics.calibration import calibration_error, checked_power
from calibrant.metrics.cells import checked_rounds
from calibrant.metrics.tally import Tally


@dataclass(frozen=True, eq=False)
class WindowedError:
    """The binned calibration error of each complete block of ``window`` rounds.

    Parameters
    ----------
    window : int
        Rounds per block.
    errors : ndarray
        One error per complete block, in order.
    """

    window: int
    errors: Reals

    @property
    def worst(self) -> float:
        """The largest error of a block; nan if no block is complete."""
        return float(self.errors.max()) if len(self.errors) else math.nan

    @property
    def worst_block(self) -> int | None:
        """The first block with the largest error, counted from 0."""
        return int(self.errors.argmax()) if len(self.errors) else None


def windowed_calibration_error(
    forecasts: ArrayLike,
    outcomes: ArrayLike,
    *,
    window: int = 5000,
    buckets: int = 20,
    power: float = 2.0,
) -> WindowedError:
    """Return the binned calibration error of consecutive blocks of rounds.

    Parameters
    ----------
    forecasts : array_like
        Numbers in [0, 1], in the order of time.
    outcomes : array_like
        0 or 1 for each forecast.
    window : int
        Rounds per block: block b holds rounds ``b*window`` to ``(b+1)*window - 1``.
    buckets : int
        How many buckets of equal width.
    power : float
        As in :func:`~calibrant.metrics.binned_calibration_error`.

    Notes
    -----
    Rounds after the last complete block are left out, since the error of a short
    block is mostly noise.

    Examples
    --------
    >>> found = windowed_calibration_error([0.5] * 8, [0, 1, 0, 1, 1, 1, 1, 1], window=4)
    >>> found.errors.tolist(), found.worst, found.worst_block
    ([0.0, 0.25], 0.25, 1)
    """
    length = check.whole(window, "window", low=1)
    number = check.whole(buckets, "buckets", low=1)
    exponent = checked_power(power)
    values, binary = checked_rounds(forecasts, outcomes)
    index = buckets_of(values, number)
    errors = []
    for start in range(0, len(values) - length + 1, length):
        block, tally = slice(start, start + length), Tally(number, 1)
        tally.add_many(index[block], values[block], binary[block])
        errors.append(calibration_error(tally_cells(tally), power=exponent))
    return WindowedError(length, np.array(errors))
