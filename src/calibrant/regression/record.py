"""What streams of numbers give back: the runs of batches, and certificates.

A certificate says what was promised about numbers, and what was measured.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, fields
from typing import Any, Final

from calibrant.bounds import Bound
from calibrant.core.arrays import Mask, Reals
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.promise import Counted, promised
from calibrant.recalibrate.run import Numbered
from calibrant.regression.distribution import Distributions

ROUNDING: Final = 1e-9
"""Bounds for any sequence can be met with equality, and both sides are sums of doubles."""


class Judged:
    """A record that can be read as data, and judged by what is sure of this run."""

    measured: float | None
    sure: Bound | None

    @property
    def holds(self) -> bool | None:
        """Whether what was measured is below what is sure; None where one is missing."""
        if self.sure is None or self.measured is None:
            return None
        return self.measured <= self.sure.value + ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON-ready data."""
        return _told(self) | {"holds": self.holds}


def _told(record: Any) -> dict[str, Any]:
    return {each.name: _plain(getattr(record, each.name)) for each in fields(record)}


def _plain(value: Any) -> Any:
    if isinstance(value, Bound):
        return value.value
    return None if isinstance(value, float) and math.isnan(value) else value


@dataclass(frozen=True)
class LevelRow(Judged):
    """The record of one level.

    Attributes
    ----------
    level
        How often outcomes should be covered.
    coverage
        How often the announced quantile covered them, after sorting; nan without rounds.
    quantity, measured, bound
        What the theorem speaks about, what it was, and what it may be; None without a theorem.
        With the methods ``"mixed"`` and ``"pit"`` the bound is on an expectation, or estimates one.
    sure
        What holds of this very run, at all levels at once; None where that would say nothing.
    early
        From about which round on something is promised, if there are too few yet; None otherwise.
    """

    level: float
    coverage: float
    quantity: str
    measured: float
    bound: Bound | None
    sure: Bound | None = None
    early: int | None = None

    def __str__(self) -> str:
        limit = "no promise" if self.sure is None else f"at most {self.sure.value:.5f}"
        told = f"covered {self.coverage:.4f}, {self.quantity} {self.measured:.5f}"
        return f"{self.level:6.3f}: {told}, {limit}"


@dataclass(frozen=True)
class QuantileCertificate(Counted):
    """The record of a quantile recalibrator.

    Attributes
    ----------
    method
        ``"mixed"``, ``"pit"`` or ``"tracker"``.
    rounds, open, expired
        Outcomes learned, tickets that wait for theirs, tickets that waited too long.
    delay
        How many outcomes that came later were outstanding when a forecast was made, at most.
    levels
        The record of each level.
    failure
        How likely what is sure may fail; None if it holds for any outcomes whatsoever.
    seeded
        Whether a seed was given, which others may know or guess; None where that is not known, or
        nothing is drawn.
    """

    levels: tuple[LevelRow, ...]
    failure: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether every level is below what is sure of this run; None where that is nothing."""
        told = [row.holds for row in self.levels if row.holds is not None]
        return all(told) if told else None

    @property
    def error(self) -> float:
        """How far coverage is from its level, averaged over levels; nan without rounds."""
        return sum(abs(row.coverage - row.level) for row in self.levels) / len(self.levels)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready data."""
        rows = [row.to_dict() for row in self.levels]
        return _told(self) | {"holds": self.holds, "levels": rows}

    def __str__(self) -> str:
        if not self.rounds:
            return f"{self._head()}\n  {self._promise()}"
        off = max(abs(row.coverage - row.level) for row in self.levels)
        told = f"coverage off by {self.error:.4f} on average over levels, {off:.4f} at worst"
        lines = [self._head(), f"  measured: {told}", f"  {self._promise()}"]
        return "\n".join([*lines, *self.foreseen(self.holds)])

    def details(self) -> str:
        """Return all that is known, level by level: more than ``str`` tells."""
        return "\n".join([str(self), *(f"  {row}" for row in self.levels)])

    def _promise(self) -> str:
        found = [row.sure for row in self.levels if row.sure is not None]
        if not found:
            first = min((row.early for row in self.levels if row.early is not None), default=None)
            return self._nothing(self.levels[0].bound, first)
        about = f"{found[0].quantity} at {len(found)} of {len(self.levels)} levels"
        return promised({about: max(map(float, found))}, self.failure, self.holds)


@dataclass(frozen=True)
class IntervalCertificate(Counted, Judged):
    """The record of conformal intervals.

    Attributes
    ----------
    method
        The name of the method.
    rounds, open, expired, delay
        As in :class:`QuantileCertificate`.
    target, coverage
        How often outcomes should be inside, and how often they were; nan without rounds.
    quantity, measured, bound
        What the theorem speaks about, what it was (None if it was not measured), and what it
        may be; ``"C1"`` is the distance of coverage from its target.
    sure
        The bound, for any outcomes whatsoever; None where that would say nothing.
    early
        From about which round on it says something, if there are too few yet; None otherwise.
    """

    target: float
    coverage: float
    quantity: str
    measured: float | None
    bound: Bound | None
    sure: Bound | None = None
    early: int | None = None

    def __str__(self) -> str:
        if not self.rounds:
            return f"{self._head()}\n  {self._promise()}"
        told = f"measured: covered {self.coverage:.4f}, target {self.target:.4f}"
        if self.quantity != "C1":
            found = "not measured" if self.measured is None else f"{self.measured:.5f}"
            told = f"{told}, {self.quantity} {found}"
        return f"{self._head()}\n  {told}\n  {self._promise()}"

    def details(self) -> str:
        """Return all that is known: more than ``str`` tells."""
        return str(self) if self.sure is None else f"{self}\n  {self.sure}"

    def _promise(self) -> str:
        if self.sure is None:
            return self._nothing(self.bound, self.early)
        return promised({self.quantity: self.sure.value}, None, self.holds)


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
    mixed
        The distributions whose levels were moved: with ``method="mixed"`` what experts made of
        the raw ones, otherwise these.
    inner, outer, outer_mean
        The levels that were moved, and to where: as drawn, and as expected; both sorted.
    drawn
        The same as drawn before sorting.  With ``"mixed"`` and ``"pit"`` this carries the
        guarantee.
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
    mixed: Distributions = field(kw_only=True)

    def __len__(self) -> int:
        return len(self.quantiles)

    @functools.cached_property
    def forecast(self) -> Distributions:
        """The recalibrated distributions."""
        return self.mixed.moved(self.inner, self.outer)

    @functools.cached_property
    def mean(self) -> Distributions:
        """The same with the expected levels, which have no guarantee."""
        return self.mixed.moved(self.inner, self.outer_mean)


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
