"""The receipt of a forecast."""

from __future__ import annotations

from typing import Any

from calibrant.core.grid import Grid
from calibrant.core.mixture import Mixture
from calibrant.errors import CorruptState
from calibrant.kernels.layout import CELL, pack, unpack

__all__ = ["Issuer", "Ticket"]


class Issuer:
    """What the tickets of one recalibrator have in common: its fingerprint and its grid."""

    __slots__ = ("fingerprint", "grid", "values")

    def __init__(self, fingerprint: str, grid: Grid) -> None:
        self.fingerprint = fingerprint
        self.grid = grid
        self.values: tuple[float, ...] = tuple(grid.values.tolist())


class Ticket:
    """A forecast that waits for its outcome.

    Attributes
    ----------
    id
        By which the outcome is reported: the ticket's number, or what the caller gave.
    number
        How many forecasts the recalibrator had made before this one.
    value
        The drawn forecast: the one that carries the calibration guarantee.
    mean
        The expected forecast: sharper, and without that guarantee.
    mixture
        Both (or all) points that could have been drawn, with their probabilities.
    bucket, index
        Where the raw forecast fell, and which grid point was drawn.
    raw, time
        What came in.
    clock
        How many forecasts its bucket had made before; with the recalibrator's
        secret it fixes the coin, so the draw can be computed again.
    outcome
        What was reported, or None as long as the ticket is open.
    place, weight
        Bucket, index and side of the draw in one word, and the probability of the lower
        point of the pair: what the recalibrator needs to learn the outcome.
    """

    __slots__ = (
        "_law",
        "clock",
        "id",
        "issuer",
        "number",
        "outcome",
        "place",
        "raw",
        "time",
        "weight",
    )

    def __init__(
        self,
        issuer: Issuer,
        id: int | str,
        number: int,
        place: int,
        weight: float,
        raw: float,
        time: float | None,
        clock: int | None,
        law: tuple[float, ...] | None,
    ) -> None:
        self.issuer = issuer
        self.id = id
        self.number = number
        self.place = place
        self.weight = weight
        self.raw = raw
        self.time = time
        self.clock = clock
        self._law = law
        self.outcome: int | None = None

    @property
    def bucket(self) -> int:
        """The bucket of the raw forecast."""
        return self.place >> 16

    @property
    def index(self) -> int:
        """The grid index that was drawn."""
        return self.place & CELL

    @property
    def value(self) -> float:
        """The drawn forecast."""
        return self.issuer.values[self.place & CELL]

    @property
    def mean(self) -> float:
        """The expected forecast."""
        return self.mixture.mean

    @property
    def mixture(self) -> Mixture:
        """What was announced before the draw."""
        values = self.issuer.values
        if self._law is not None:
            indices = tuple(k for k, weight in enumerate(self._law) if weight > 0.0)
            weights = tuple(self._law[k] for k in indices)
        else:
            low = self.index - ((self.place >> 15) & 1)
            indices = (low,) if self.weight == 1.0 else (low, low + 1)
            weights = (1.0,) if self.weight == 1.0 else (self.weight, 1.0 - self.weight)
        return Mixture(indices, weights, tuple(values[k] for k in indices))

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as JSON-ready data, for callers that store it."""
        return {
            "issuer": self.issuer.fingerprint,
            "grid": self.issuer.grid.kind,
            "resolution": self.issuer.grid.resolution,
            "id": self.id,
            "number": self.number,
            "clock": self.clock,
            "place": list(unpack(self.place)),
            "weight": self.weight,
            "law": None if self._law is None else list(self._law),
            "raw": self.raw,
            "time": self.time,
            "outcome": self.outcome,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Ticket:
        """Read a ticket back from what :meth:`to_dict` gave."""
        try:
            issuer = Issuer(str(data["issuer"]), Grid(data["grid"], data["resolution"]))
            law = None if data["law"] is None else tuple(map(float, data["law"]))
            ticket = cls(
                issuer,
                data["id"],
                int(data["number"]),
                pack(*map(int, data["place"])),
                float(data["weight"]),
                float(data["raw"]),
                data["time"],
                data["clock"],
                law,
            )
            ticket.outcome = data["outcome"]
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptState(f"ticket must be what Ticket.to_dict() gave, got {error}") from error
        return ticket

    def __repr__(self) -> str:
        state = "open" if self.outcome is None else f"outcome={self.outcome}"
        return f"Ticket(id={self.id!r}, value={self.value:g}, mean={self.mean:g}, {state})"
