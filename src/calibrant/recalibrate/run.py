"""What a replay gives back."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.core.place import buckets_of
from calibrant.recalibrate.delivery import Pending


class Numbered(ABC):
    """A batch whose rows have consecutive tickets."""

    first: int

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @property
    def ticket(self) -> Words:
        """The number of each row's ticket."""
        return np.arange(self.first, self.first + len(self), dtype=np.int64)


@dataclass(frozen=True)
class Run(Numbered):
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

    forecast: Reals
    mean: Reals
    buckets: int
    raw: Reals
    first: int
    pending: Pending

    @functools.cached_property
    def bucket(self) -> Words:
        """The bucket of each raw forecast."""
        return buckets_of(self.raw, self.buckets)

    def __len__(self) -> int:
        return len(self.forecast)
