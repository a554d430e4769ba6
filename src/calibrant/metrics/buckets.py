"""Rounds grouped into buckets of forecasts, with all sums the binned metrics need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.place import buckets_of
from calibrant.metrics.cells import Cells, checked_rounds
from calibrant.metrics.tally import Tally


@dataclass(frozen=True, eq=False)
class Buckets:
    """Sums over the rounds of each bucket.

    Parameters
    ----------
    lower, upper : ndarray
        For equal width, the edges ``[lower, upper)``, the last bucket closed; for
        equal mass, the smallest and the largest forecast in the bucket.
    count : ndarray
        Rounds.
    ones : ndarray
        Outcomes that were 1.
    forecast_sum, square_sum, product_sum : ndarray
        Sums of the forecast, of its square, and of forecast times outcome.
    """

    lower: Reals
    upper: Reals
    count: Words
    ones: Words
    forecast_sum: Reals
    square_sum: Reals
    product_sum: Reals

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return int(self.count.sum())

    @property
    def cells(self) -> Cells:
        """Each bucket that is not empty as one cell at its mean forecast."""
        used = self.count > 0
        count, ones = (a[used].astype(np.float64) for a in (self.count, self.ones))
        return Cells(_means(self.forecast_sum[used], count), count, ones)


def as_buckets(
    forecasts: ArrayLike, outcomes: ArrayLike, *, buckets: int = 10, strategy: str = "width"
) -> Buckets:
    """Group rounds into buckets.

    Parameters
    ----------
    forecasts : array_like
        Numbers in [0, 1].
    outcomes : array_like
        0 or 1 for each forecast.
    buckets : int
        How many buckets.
    strategy : {"width", "mass"}
        ``"width"``: ``[j/M, (j+1)/M)``, the last one closed.  ``"mass"``: each bucket
        has about T/M rounds; equal forecasts stay together, in the bucket that holds
        the middle of their ranks, and buckets left empty are dropped.

    Examples
    --------
    >>> as_buckets([0.0, 0.29, 0.3, 1.0], [0, 1, 0, 1], buckets=10).count.tolist()
    [1, 0, 1, 1, 0, 0, 0, 0, 0, 1]
    >>> as_buckets([0.1, 0.2, 0.3, 0.9], [0, 1, 0, 1], buckets=2, strategy="mass").upper.tolist()
    [0.2, 0.9]
    """
    number = check.whole(buckets, "buckets", low=1)
    by_mass = check.choice(strategy, "strategy", ("width", "mass")) == "mass"
    values, binary = checked_rounds(forecasts, outcomes)
    index = _mass_index(values, number) if by_mass else buckets_of(values, number)
    tally = Tally(number, 2)
    tally.add_many(index, values, binary)
    return _equal_mass(tally, index, values) if by_mass else equal_width(tally)


def equal_width(tally: Tally) -> Buckets:
    """Return the buckets of a tally over equal widths."""
    edges = np.arange(len(tally.table()) + 1) / len(tally.table())
    return _buckets(tally, edges[:-1], edges[1:])


def tally_cells(tally: Tally) -> Cells:
    """Return each bucket that is not empty as one cell at its mean forecast."""
    table = tally.table()
    used = table.any(axis=1)
    count, ones = table.sum(axis=1)[used].astype(np.float64), table[used, 1].astype(np.float64)
    return Cells(_means(tally.real_sums(0).sum(axis=1)[used], count), count, ones)


def _means(sums: Reals, count: Reals) -> Reals:
    # Neighbouring means may be equal to the last bit; rounding must not swap them.
    return np.maximum.accumulate(sums / count)


def _buckets(tally: Tally, lower: Reals, upper: Reals) -> Buckets:
    table, first, second = tally.table(), tally.real_sums(0), tally.real_sums(1)
    sums = (first.sum(axis=1), second.sum(axis=1), first[:, 1])
    return Buckets(lower, upper, table.sum(axis=1), table[:, 1], *sums)


def _mass_index(values: Reals, buckets: int) -> Words:
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(ranks * buckets // (2 * max(len(values), 1)), dtype=np.int64)


def _equal_mass(tally: Tally, index: Words, values: Reals) -> Buckets:
    size = len(tally.table())
    lower, upper = np.ones(size), np.zeros(size)
    np.minimum.at(lower, index, values)
    np.maximum.at(upper, index, values)
    full = _buckets(tally, lower, upper)
    used = full.count > 0
    return Buckets(*(getattr(full, name)[used] for name in Buckets.__dataclass_fields__))
