"""The receipts of forecasts of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from calibrant.regression.tables import Reals

if TYPE_CHECKING:
    from calibrant.regression.distribution import Distribution

__all__ = ["IntervalTicket", "NumberTicket", "QuantileTicket"]


class NumberTicket(ABC):
    """A forecast of a number that waits for its outcome.

    Attributes
    ----------
    id, number
        By which the outcome is reported; how many forecasts were made before this one.
    time
        When it was made, if that was told.
    outcome
        The number that was reported, or None as long as the ticket is open.
    issuer
        The fingerprint of the object that made it.
    """

    __slots__ = ("id", "issuer", "number", "outcome", "time")

    def __init__(self, issuer: str, number: int, id: str | None, time: float | None) -> None:
        self.issuer, self.number, self.time = issuer, number, time
        self.id: int | str = number if id is None else id
        self.outcome: float | None = None

    def __repr__(self) -> str:
        state = "open" if self.outcome is None else f"outcome={self.outcome!r}"
        return f"{type(self).__name__}(id={self.id!r}, {self._told()}, {state})"

    @abstractmethod
    def _told(self) -> str:
        """Return what was announced, for people."""


class QuantileTicket(NumberTicket):
    """A recalibrated distribution.

    Attributes
    ----------
    raw
        The distribution that came in.
    levels, quantiles
        The levels that are followed, and the recalibrated quantiles there, in order.
    tracked
        The same before sorting.  With ``method="tracker"`` this carries the guarantee.
    inner, outer, outer_mean
        The levels of the raw distribution that were moved, and to where: as drawn, and as
        expected; both sorted.
    drawn
        The same as drawn before sorting.  With ``method="pit"`` this carries the guarantee.
    """

    __slots__ = ("drawn", "inner", "levels", "outer", "outer_mean", "quantiles", "raw", "tracked")

    raw: Distribution
    levels: Reals
    quantiles: Reals
    tracked: Reals
    inner: Reals
    outer: Reals
    outer_mean: Reals
    drawn: Reals

    @property
    def value(self) -> Distribution:
        """The recalibrated distribution; its levels are the drawn ones, where any are drawn."""
        return self.raw.rows.moved(self.inner[None], self.outer[None])[0]

    @property
    def mean(self) -> Distribution:
        """The same with the expected levels: it does not jump, and has no guarantee."""
        return self.raw.rows.moved(self.inner[None], self.outer_mean[None])[0]

    def _told(self) -> str:
        return f"value={self.value!r}"


class IntervalTicket(NumberTicket):
    """An interval that should hold the outcome.

    Attributes
    ----------
    centre
        The point forecast, or None where scores are given.
    radius
        The largest score that counts as covered; minus infinity covers nothing.
    scorecast
        What the caller expected of the score, which the radius includes.
    """

    __slots__ = ("centre", "radius", "scorecast")

    centre: float | None
    radius: float
    scorecast: float

    @property
    def low(self) -> float:
        """The lower end; above ``high`` if the interval is empty."""
        return (0.0 if self.centre is None else self.centre) - self.radius

    @property
    def high(self) -> float:
        """The upper end."""
        return (0.0 if self.centre is None else self.centre) + self.radius

    def _told(self) -> str:
        if self.centre is None:
            return f"radius={self.radius:.4g}"
        return f"[{self.low:.4g}, {self.high:.4g}]"
