"""What was promised and what was measured of forecasts over classes, side by side."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from calibrant.bounds.game import ESTIMATED
from calibrant.core.seeded import Seeded
from calibrant.recalibrate import Certificate
from calibrant.recalibrate.promise import FAILURE, promised, tally, too_early

LARGEST: Final = 2.0
"""What the squared distance of two distributions over classes cannot exceed."""


@dataclass(frozen=True)
class ClassCertificate(Seeded):
    """The certificates of all binary recalibrators inside, and their averages.

    Attributes
    ----------
    rounds, open, expired
        Outcomes learned, tickets that wait for theirs, tickets that waited too long.
    parts
        The certificate of each class that was touched; of all classes together, at 0, where
        they share one recalibrator.
    failure
        How likely it is that one of them or more does not hold of this run.
    unpromised
        What is announced besides and has no promise, or has one only with fewer classes, in words;
        None where there is nothing to say.
    seeded
        Whether a seed was given, which others may know or guess; None where that is not known.
    """

    rounds: int
    open: int
    expired: int
    parts: dict[int, Certificate]
    failure: float = FAILURE
    unpromised: str | None = None

    @property
    def c1(self) -> float:
        """C1 of the drawn numbers, averaged over the parts by rounds."""
        return self._average([part.c1 for part in self.parts.values()])

    @property
    def c2(self) -> float:
        """C2 of the drawn numbers, averaged over the parts by rounds."""
        return self._average([part.c2 for part in self.parts.values()])

    def bound(self, quantity: str) -> float | None:
        """Return the average of the parts' smallest bounds on ``"C1"``, ``"C2"``...

        That may be an estimate; ``promised`` is a bound on this run.
        """
        found = [part.bound(quantity) for part in self.parts.values()]
        told = [value for value in found if value is not None]
        return self._average(told) if told and len(told) == len(found) else None

    def promised(self, quantity: str) -> float | None:
        """Return the bound on ``c1`` or ``c2`` of this run; None where it would say nothing."""
        found = [part.promised(quantity) for part in self.parts.values()]
        if all(value is None for value in found):
            return None
        return self._average([1.0 if value is None else value for value in found])

    @property
    def early(self) -> int | None:
        """From about which round on something is promised of a part, if there are too few yet."""
        if any(part.promised("C1") is not None for part in self.parts.values()):
            return None
        found = [
            math.ceil(part.early * self.rounds / part.rounds)
            for part in self.parts.values()
            if part.early is not None
        ]
        return min(found, default=None)

    @property
    def holds(self) -> bool | None:
        """Whether every part is below what is sure of this run; None where that is nothing."""
        told = [part.holds for part in self.parts.values() if part.holds is not None]
        return all(told) if told else None

    def _average(self, values: list[float]) -> float:
        sizes = [part.rounds for part in self.parts.values()]
        total = sum(value * size for value, size in zip(values, sizes, strict=True))
        return total / sum(sizes) if sum(sizes) else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready data."""
        parts = {str(number): part.to_dict() for number, part in self.parts.items()}
        names = ("rounds", "open", "expired", "seeded", "unpromised")
        told = {name: getattr(self, name) for name in names}
        return told | {"c1": self.c1, "c2": self.c2, "holds": self.holds, "parts": parts}

    def __str__(self) -> str:
        head = f"{len(self.parts)} recalibrators: {tally(self.rounds, self.open, self.expired)}"
        measured = f"measured: C1 {self.c1:.5f}, C2 {self.c2:.6f}, averaged over them"
        without = [] if self.unpromised is None else [f"  {self.unpromised}"]
        lines = [head, f"  {measured}", f"  {self._promise()}", *without]
        return "\n".join([*lines, *self.foreseen(self.holds)])

    def details(self) -> str:
        """Return the details of each recalibrator inside: more than ``str`` tells."""
        parts = [f"{number}, {part.details()}" for number, part in self.parts.items()]
        return "\n".join([str(self), *parts])

    def _promise(self) -> str:
        if self.rounds == 0:
            return "no rounds yet"
        limits = {name: self.promised(name) for name in ("C1", "C2")}
        told = {name: value for name, value in limits.items() if value is not None}
        if told:
            return promised(told, self.failure, self.holds)
        sure = any(part.sure for part in self.parts.values())
        return too_early(self.early) if sure else "no guarantee"


@dataclass(frozen=True)
class SimplexCertificate(Seeded):
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
        What the theorem says about the expectation of both, estimated from the counts of this
        run; None before the first round, and where an outcome came after another forecast.
    sure, failure
        What holds of both in this very run, except with that probability; None where that is
        nothing, for both are at most 2 anyway.
    early
        From about which round on something is promised, if there are too few yet; None otherwise.
    seeded
        Whether a seed was given, which others may know or guess; None where that is not known.
    """

    rounds: int
    open: int
    expired: int
    c2: float
    c2_cells: float
    c2_bound: float | None
    sure: float | None = None
    failure: float = FAILURE
    early: int | None = None

    @property
    def holds(self) -> bool | None:
        """Whether both errors are below what is sure of this run; None if that is nothing."""
        return None if self.sure is None else self.c2_cells <= self.sure

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready data."""
        return asdict(self) | {"holds": self.holds}

    def __str__(self) -> str:
        head = tally(self.rounds, self.open, self.expired)
        measured = f"measured: full C2 {self.c2:.6f}, cell by cell {self.c2_cells:.6f}"
        return "\n".join(
            [head, f"  {measured}", f"  {self._promise()}", *self.foreseen(self.holds)]
        )

    def details(self) -> str:
        """Return all that is known: more than ``str`` tells."""
        if self.c2_bound is None or self.c2_bound >= LARGEST:
            return str(self)
        return f"{self}\n  {ESTIMATED}:\n    full C2 <= {self.c2_bound:.4g}"

    def _promise(self) -> str:
        if self.rounds == 0:
            return "no rounds yet"
        if self.c2_bound is None:
            return "no guarantee"
        if self.sure is None:
            return too_early(self.early)
        return promised({"full C2": self.sure}, self.failure, self.holds)
