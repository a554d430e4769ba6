"""How sure an average over a stream is, by batch means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from calibrant.core.arrays import Reals

FEWEST: Final = 8
"""Blocks below which no interval is given."""
BLOCKS: Final = 32
"""Blocks to merge down to; there may be up to twice as many."""
CONFIDENCE: Final = 0.95
_QUANTILE: Final = 1.959963984540054
_METHOD: Final = "batch means, Student t, 95 %"


@dataclass(frozen=True)
class Interval:
    """An average with its confidence interval; nan where there are too few rounds for one."""

    value: float
    low: float
    high: float
    blocks: int
    method: str = _METHOD


def batch_means(value: float, totals: Reals, stride: int) -> Interval:
    """Return the interval of an average from running totals at equal distances.

    Parameters
    ----------
    value : float
        The average over all rounds.
    totals : ndarray
        The sum of the first ``stride``, ``2 * stride``, ... rounds.
    stride : int
        Rounds between two of them.

    Notes
    -----
    Rounds are grouped into 32 to 63 long blocks, whose averages are treated as
    independent: right for a stationary stream whose memory is much shorter than a block.
    Below 64 strides a block is one stride, and below 8 there is no interval.

    References
    ----------
    Schmeiser, "Batch size effects in the analysis of simulation output" (1982).

    Examples
    --------
    >>> found = batch_means(0.5, np.cumsum([0.0, 1.0] * 8), 1)
    >>> round(found.low, 3), round(found.high, 3), found.blocks
    (0.225, 0.775, 16)
    """
    merged = max(1, len(totals) // BLOCKS)
    ends = totals[merged - 1 :: merged]
    means = np.diff(ends, prepend=0.0) / (merged * stride)
    if len(means) < FEWEST:
        return Interval(value, math.nan, math.nan, len(means))
    spread = float(np.std(means, ddof=1)) / math.sqrt(len(means))
    reach = student(len(means) - 1) * spread
    return Interval(value, value - reach, value + reach, len(means))


def student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, to three digits from 7 degrees on.

    Examples
    --------
    >>> round(student(7), 3), round(student(31), 3)
    (2.364, 2.04)
    """
    z, n = _QUANTILE, float(freedom)
    # Cornish-Fisher expansion in 1/n (Abramowitz and Stegun, 26.7.5).
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / n + second / n**2 + third / n**3
