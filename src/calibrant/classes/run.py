"""What a replay over classes gives back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClassRun", "OneVsRestRun", "TopRun"]

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassRun:
    """The forecasts of a batch, a row for each round and a column for each class.

    Attributes
    ----------
    forecast, mean
        The drawn and the expected forecasts.
    first
        Number of the first row's round; the others follow on.
    """

    forecast: Reals
    mean: Reals
    first: int

    def __len__(self) -> int:
        return len(self.forecast)


@dataclass(frozen=True, eq=False)
class OneVsRestRun(ClassRun):
    """The same, with the numbers before anything made them sum to 1.

    Attributes
    ----------
    classwise, classwise_mean
        As drawn, which carries the guarantee, and as expected.
    """

    classwise: Reals
    classwise_mean: Reals


@dataclass(frozen=True, eq=False)
class TopRun(ClassRun):
    """The same, with the probability of the first class on its own.

    Attributes
    ----------
    top
        The class that each raw forecast puts first.
    confidence, confidence_mean
        Its probability, as drawn, which carries the guarantee, and as expected.
    leads
        Whether no other class has more in ``forecast``.
    """

    top: NDArray[np.int64]
    confidence: Reals
    confidence_mean: Reals
    leads: NDArray[np.bool_]
