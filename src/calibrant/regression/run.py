"""What a replay of numbers gives back."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from calibrant.core.arrays import Mask, Reals
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.run import Numbered
from calibrant.regression.distribution import Distributions


@dataclass(frozen=True, eq=False)
class QuantileRun(Numbered):
    """The recalibrated distributions of a batch, a round a row.

    Attributes
    ----------
    levels, quantiles
        The levels that are followed, and a table of recalibrated quantiles there, in order.
    tracked
        The same before sorting.  With ``method="tracker"`` this carries the guarantee.
    raw
        The distributions that came in.
    inner, outer, outer_mean
        The levels of the raw distributions that were moved, and to where: as drawn, and as
        expected; both sorted.
    drawn
        The same as drawn before sorting.  With ``method="pit"`` this carries the guarantee.
    first
        Number of the first row's round; the others follow on.
    pending
        Outcomes that were not known by the end of the batch; their tickets are open.
    """

    levels: Reals
    quantiles: Reals
    tracked: Reals
    raw: Distributions
    inner: Reals
    outer: Reals
    outer_mean: Reals
    drawn: Reals
    first: int
    pending: Pending = field(default_factory=Pending)

    def __len__(self) -> int:
        return len(self.quantiles)

    @functools.cached_property
    def forecast(self) -> Distributions:
        """The recalibrated distributions."""
        return self.raw.moved(self.inner, self.outer)

    @functools.cached_property
    def mean(self) -> Distributions:
        """The same with the expected levels, which have no guarantee."""
        return self.raw.moved(self.inner, self.outer_mean)


@dataclass(frozen=True, eq=False)
class IntervalRun(Numbered):
    """The intervals of a batch, one for each round.

    Attributes
    ----------
    radius
        The largest score that counts as covered.
    low, high
        The ends of the intervals; empty arrays where scores are given.
    covered
        Whether the outcome was inside.
    first
        Number of the first row's round; the others follow on.
    pending
        Outcomes that were not known by the end of the batch; their tickets are open.
    """

    radius: Reals
    low: Reals
    high: Reals
    covered: Mask
    first: int
    pending: Pending = field(default_factory=Pending)

    def __len__(self) -> int:
        return len(self.radius)
