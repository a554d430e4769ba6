"""The receipt of a forecast."""

from __future__ import annotations

from typing import Any

from calibrant.core import check
from calibrant.core.grid import Grid
from calibrant.core.mixture import Mixture
from calibrant.errors import CorruptState, InvalidInput
from calibrant.kernels.layout import ASIDE, CELL, NARROW, WIDTH, pack

__all__ = ["Issuer", "Ticket"]


class Issuer:
    """What the tickets of one recalibrator have in common.

    Its fingerprint, its grid, whether its mixtures may have ``many`` points, and whether raw
    forecasts go through a transform first (``fronted``) that keeps so many words of a round.
    """

    __slots__ = ("fingerprint", "fronted", "grid", "kept", "many", "values")

    def __init__(
        self,
        fingerprint: str,
        grid: Grid,
        many: bool = False,
        fronted: bool = False,
        kept: int = 0,
    ) -> None:
        self.kept = kept
        self.fingerprint = fingerprint
        self.grid = grid
        self.many = many
        self.fronted = fronted
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
    bucket, index, step
        Where the raw forecast fell, which grid point was drawn, and how many grid points
        apart the two of the pair lay.
    raw, time
        What came in.
    clock
        How many forecasts its bucket had made before; with the recalibrator's
        secret it fixes the coin, so the draw can be computed again.
    middle
        What the transform in front made of the raw forecast; None where there is none.
    outcome
        What was reported, or None as long as the ticket is open.
    place, weight
        Bucket, index and side of the draw in one word, and the probability of the lower
        point of the pair: what the recalibrator needs to learn the outcome.
    """

    __slots__ = (
        "_kept",
        "_law",
        "_place",
        "_weight",
        "clock",
        "id",
        "issuer",
        "middle",
        "number",
        "outcome",
        "raw",
        "time",
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
        middle: float | None = None,
        kept: tuple[int, ...] = (),
    ) -> None:
        self.middle = middle
        self._kept = kept
        self.issuer = issuer
        self.id = id
        self.number = number
        self._place = place
        self._weight = weight
        self.raw = raw
        self.time = time
        self.clock = clock
        self._law = law
        self.outcome: int | None = None

    @property
    def place(self) -> int:
        """Bucket, index and side of the draw in one word."""
        return self._place

    @property
    def weight(self) -> float:
        """The probability of the lower point of the pair."""
        return self._weight

    @property
    def bucket(self) -> int:
        """The bucket of the raw forecast."""
        return (self._place >> 16) & NARROW

    @property
    def index(self) -> int:
        """The grid index that was drawn."""
        return self._place & CELL

    @property
    def step(self) -> int:
        """How many grid cells apart the two points of a pair lay: 1, unless its grid grows."""
        return 1 << (self._place >> (15 + WIDTH))

    @property
    def value(self) -> float:
        """The announced forecast: the draw, unless that stood aside."""
        if self._place & ASIDE:
            return self.raw
        return self.issuer.values[self._place & CELL]

    @property
    def aside(self) -> bool:
        """Whether the raw forecast was announced instead of the draw, to keep to a budget."""
        return bool(self._place & ASIDE)

    @property
    def mean(self) -> float:
        """The expected forecast; the raw one if the draw stood aside."""
        return self.raw if self._place & ASIDE else self.mixture.mean

    @property
    def mixture(self) -> Mixture:
        """What was announced before the draw, if that did not stand aside.

        A law of many points is known to the ticket that was returned, and not kept.
        """
        values = self.issuer.values
        if self._law == ():
            raise InvalidInput("mixture must be asked of the ticket that forecast() returned")
        if self._law is not None:
            indices = tuple(k for k, weight in enumerate(self._law) if weight > 0.0)
            weights = tuple(self._law[k] for k in indices)
        else:
            step = self.step
            low = self.index - ((self.place >> 15) & 1) * step
            indices = (low,) if self.weight == 1.0 else (low, low + step)
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
            "place": [self.bucket, self.index, (self.place >> 15) & 1],
            "step": self.step,
            "aside": self.aside,
            "weight": self.weight,
            "law": None if self._law is None else list(self._law),
            "middle": self.middle,
            "kept": list(self._kept),
            "raw": self.raw,
            "time": self.time,
            "outcome": self.outcome,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Ticket:
        """Read a ticket back from what :meth:`to_dict` gave."""
        try:
            grid = Grid(data["grid"], data["resolution"])
            law, clock, time = data["law"], data["clock"], data["time"]
            middle = data["middle"]
            ticket = cls(
                Issuer(_text(data["issuer"]), grid, law is not None, middle is not None),
                data["id"] if type(data["id"]) is int else _text(data["id"]),
                check.whole(data["number"], "number"),
                _place(data["place"], data["step"], data["weight"], law, grid.cells)
                | (ASIDE if _flag(data["aside"]) else 0),
                check.probability(data["weight"], "weight"),
                check.probability(data["raw"]),
                None if time is None else check.real(time, "time"),
                None if clock is None else check.whole(clock, "clock"),
                None if law is None else _law(law, grid.cells),
                None if middle is None else check.probability(middle, "middle"),
                tuple(check.whole(word, "kept", high=(1 << 63) - 1) for word in data["kept"]),
            )
            if data["outcome"] is not None:
                ticket.outcome = check.outcome(data["outcome"])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptState(f"ticket must be what Ticket.to_dict() gave, got {error}") from error
        return ticket

    def __repr__(self) -> str:
        mean = "unknown" if self._law == () else f"{self.mean:g}"
        state = "open" if self.outcome is None else f"outcome={self.outcome}"
        return f"Ticket(id={self.id!r}, value={self.value:g}, mean={mean}, {state})"


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"aside must be true or false, got {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"id must be a string or a number, got {value!r}")
    return value


def _place(place: Any, step: Any, weight: float, law: Any, cells: int) -> int:
    bucket, cell, side = place
    width = _width(check.whole(step, "step", low=1, high=128))
    check.whole(bucket, "bucket", high=(1 << 20) - 1)
    check.whole(side, "side", high=1)
    check.whole(cell, "cell", high=cells - 1)
    if law is None:
        # The pair lies on the grid, whichever of its two cells was drawn.
        low = cell - (side << width)
        check.whole(low, "low cell", high=cells - 1 - ((weight < 1.0) << width))
    return pack(bucket, cell, side | width << WIDTH)


def _width(step: int) -> int:
    if step & (step - 1):
        raise InvalidInput(f"step must be a power of 2, got {step!r}")
    return step.bit_length() - 1


def _law(law: Any, cells: int) -> tuple[float, ...]:
    weights = tuple(check.probability(weight, "weight") for weight in law)
    if len(weights) not in (0, cells):
        raise InvalidInput(f"law must have {cells} weights, got {len(weights)}")
    return weights
