"""What a replay gives back."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.core.place import buckets_of
from calibrant.recalibrate.delivery import Pending

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """The forecasts of a batch, row by row.

    Attributes
    ----------
    forecast
        The drawn forecasts.
    mean
        The expected forecasts.
    buckets, raw
        Number of buckets, and what came in.
    first
        Number of the first row's ticket; the others follow on.
    pending
        Outcomes that were not known by the end of the batch; their tickets are open.
    """

    forecast: NDArray[np.float64]
    mean: NDArray[np.float64]
    buckets: int
    raw: NDArray[np.float64]
    first: int
    pending: Pending

    @property
    def ticket(self) -> NDArray[np.int64]:
        """The number of each row's ticket."""
        return np.arange(self.first, self.first + len(self.forecast), dtype=np.int64)

    @functools.cached_property
    def bucket(self) -> NDArray[np.int64]:
        """The bucket of each raw forecast."""
        return buckets_of(self.raw, self.buckets)

    def __len__(self) -> int:
        return len(self.forecast)
