"""What a recalibrator over classes gives back: the run of a batch, and its certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from calibrant.core.arrays import Mask, Reals, Words
from calibrant.recalibrate import Certificate
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.run import Numbered


@dataclass(frozen=True, eq=False)
class ClassRun(Numbered):
    """The forecasts of a batch, a row for each round and a column for each class.

    Attributes
    ----------
    forecast, mean
        The drawn and the expected forecasts.
    first, pending
        As in :class:`calibrant.recalibrate.run.Run`.
    """

    forecast: Reals
    mean: Reals
    first: int
    pending: Pending = field(default_factory=Pending, kw_only=True)

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

    top: Words
    confidence: Reals
    confidence_mean: Reals
    leads: Mask


@dataclass(frozen=True)
class ClassCertificate:
    """The certificates of all binary recalibrators inside, and their averages.

    Attributes
    ----------
    rounds, open, expired
        Outcomes learned, tickets that wait for theirs, tickets that waited too long.
    parts
        The certificate of each class that was touched; of all classes together, at 0, where
        they share one recalibrator.
    """

    rounds: int
    open: int
    expired: int
    parts: dict[int, Certificate]

    @property
    def c1(self) -> float:
        """C1 of the drawn numbers, averaged over the parts by rounds."""
        return self._average([part.c1 for part in self.parts.values()])

    @property
    def c2(self) -> float:
        """C2 of the drawn numbers, averaged over the parts by rounds."""
        return self._average([part.c2 for part in self.parts.values()])

    def bound(self, quantity: str) -> float | None:
        """Return the average of the parts' smallest bounds on ``"C1"``, ``"C2"``..."""
        found = [part.bound(quantity) for part in self.parts.values()]
        told = [value for value in found if value is not None]
        return self._average(told) if told and len(told) == len(found) else None

    @property
    def holds(self) -> bool | None:
        """Whether every part is below its bounds; None where no part has one."""
        told = [part.holds for part in self.parts.values() if part.holds is not None]
        return all(told) if told else None

    def _average(self, values: list[float]) -> float:
        sizes = [part.rounds for part in self.parts.values()]
        total = sum(value * size for value, size in zip(values, sizes, strict=True))
        return total / sum(sizes) if sum(sizes) else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready data."""
        parts = {str(number): part.to_dict() for number, part in self.parts.items()}
        told = {"rounds": self.rounds, "open": self.open, "expired": self.expired}
        return told | {"c1": self.c1, "c2": self.c2, "holds": self.holds, "parts": parts}

    def __str__(self) -> str:
        bound = self.bound("C2")
        limit = "no guarantee" if bound is None else f"at most {bound:.6f}"
        return (
            f"{self.rounds} rounds, {self.open} open, {self.expired} expired, "
            f"{len(self.parts)} recalibrators\n  C1 {self.c1:.5f}   C2 {self.c2:.6f}, {limit}"
        )


@dataclass(frozen=True)
class SimplexCertificate:
    """The record of a recalibrator on a grid over the simplex.

    Attributes
    ----------
    rounds, open, expired
        Outcomes learned, tickets that wait for theirs, tickets that waited too long.
    c2
        Full calibration error: for each vector that was drawn, the squared Euclidean distance
        to the frequencies of the classes then, averaged over rounds.
    c2_cells
        The same measured in each cell of raw forecasts and averaged by rounds; never smaller.
    c2_bound
        What the theorem says about both in expectation, from the counts of this run; None
        before the first round, and where an outcome came after another forecast.
    """

    rounds: int
    open: int
    expired: int
    c2: float
    c2_cells: float
    c2_bound: float | None

    @property
    def holds(self) -> bool | None:
        """Whether both errors are below the bound; None without one."""
        return None if self.c2_bound is None else self.c2_cells <= self.c2_bound

    def __str__(self) -> str:
        told = f"{self.rounds} rounds, {self.open} open, {self.expired} expired"
        limit = "no bound" if self.c2_bound is None else f"at most {self.c2_bound:.6f}"
        return f"{told}\n  full C2 {self.c2:.6f}, cell by cell {self.c2_cells:.6f}, {limit}"
