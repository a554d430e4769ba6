"""What was promised about numbers, and what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from calibrant.bounds import Bound

ROUNDING: Final = 1e-9
"""Bounds for any sequence can be met with equality, and both sides are sums of doubles."""


@dataclass(frozen=True)
class LevelRow:
    """The record of one level.

    Attributes
    ----------
    level
        How often outcomes should be covered.
    coverage
        How often the announced quantile covered them, after sorting; nan without rounds.
    quantity, measured, bound
        What the theorem speaks about, what it was, and what it may be; None without a theorem.
    """

    level: float
    coverage: float
    quantity: str
    measured: float
    bound: Bound | None

    @property
    def holds(self) -> bool | None:
        """Whether what was measured is below its bound; None without one."""
        return None if self.bound is None else self.measured <= self.bound.value + ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON-ready data."""
        return {
            "level": self.level,
            "coverage": None if math.isnan(self.coverage) else self.coverage,
            "quantity": self.quantity,
            "measured": self.measured,
            "bound": None if self.bound is None else self.bound.value,
            "holds": self.holds,
        }

    def __str__(self) -> str:
        limit = "no bound" if self.bound is None else f"at most {self.bound.value:.5f}"
        return (
            f"{self.level:6.3f}: covered {self.coverage:.4f}, "
            f"{self.quantity} {self.measured:.5f}, {limit}"
        )


@dataclass(frozen=True)
class QuantileCertificate:
    """The record of a quantile recalibrator.

    Attributes
    ----------
    method
        ``"pit"`` or ``"tracker"``.
    rounds, open, expired
        Outcomes learned, tickets that wait for theirs, tickets that waited too long.
    delay
        How many outcomes that came later were outstanding when a forecast was made, at most.
    levels
        The record of each level.
    """

    method: str
    rounds: int
    open: int
    expired: int
    delay: int
    levels: tuple[LevelRow, ...]

    @property
    def holds(self) -> bool | None:
        """Whether every level is below its bound; None where no level has one."""
        told = [row.holds for row in self.levels if row.holds is not None]
        return all(told) if told else None

    @property
    def error(self) -> float:
        """How far coverage is from its level, averaged over levels; nan without rounds."""
        return sum(abs(row.coverage - row.level) for row in self.levels) / len(self.levels)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready data."""
        told: dict[str, Any] = {"method": self.method, "rounds": self.rounds, "open": self.open}
        told |= {"expired": self.expired, "delay": self.delay, "holds": self.holds}
        return told | {"levels": [row.to_dict() for row in self.levels]}

    def __str__(self) -> str:
        head = f"{self.method}: {self.rounds} rounds, {self.open} open, {self.expired} expired"
        return "\n".join([head, *(f"  {row}" for row in self.levels)])


@dataclass(frozen=True)
class IntervalCertificate:
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
    """

    method: str
    rounds: int
    open: int
    expired: int
    delay: int
    target: float
    coverage: float
    quantity: str
    measured: float | None
    bound: Bound | None

    @property
    def holds(self) -> bool | None:
        """Whether what was measured is below its bound; None where one is missing."""
        if self.bound is None or self.measured is None:
            return None
        return self.measured <= self.bound.value + ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready data."""
        told: dict[str, Any] = {"method": self.method, "rounds": self.rounds, "open": self.open}
        told |= {"expired": self.expired, "delay": self.delay, "target": self.target}
        told["coverage"] = None if math.isnan(self.coverage) else self.coverage
        told |= {"quantity": self.quantity, "measured": self.measured}
        bound = None if self.bound is None else self.bound.value
        return told | {"bound": bound, "holds": self.holds}

    def __str__(self) -> str:
        head = f"{self.method}: {self.rounds} rounds, {self.open} open, {self.expired} expired"
        limit = "no bound" if self.bound is None else str(self.bound)
        measured = "not measured" if self.measured is None else f"{self.measured:.5f}"
        told = f"covered {self.coverage:.4f}, target {self.target:.4f}"
        return f"{head}\n  {told}\n  {self.quantity} {measured}; {limit}"
