"""The receipt of a forecast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import Any, ClassVar, Final, Self

from calibrant._renamed import former
from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.core.grid import Grid
from calibrant.core.mixture import Mixture
from calibrant.errors import CorruptState, InvalidInput
from calibrant.kernels.layout import ASIDE, CELL, NARROW, WIDTH, pack

KIND: Final = "ticket"
NEVER: Final = float("nan")
RENAMED: Final = ("mixed", "middle"), ("fallback", "aside")
"""Names in stored tickets, and what they were called first."""


def seen(name: str, told: str) -> Any:
    """Return a property that shows an attribute of a ticket, and does not let it be set."""
    return property(attrgetter(f"_{name}"), doc=told)


class Issuer:
    """What the tickets of one stream have in common.

    ``fingerprint`` tells whose tickets they are, ``grid`` which values they may announce,
    ``full_support`` whether mixtures may have more than two points, ``mixes`` whether raw
    forecasts go through a transform first, and ``kept`` how many words the transform keeps of a
    round.
    """

    __slots__ = ("fingerprint", "full_support", "grid", "kept", "mixes", "values")

    def __init__(
        self,
        fingerprint: str,
        grid: Grid,
        full_support: bool = False,
        mixes: bool = False,
        kept: int = 0,
        values: tuple[float, ...] = (),
    ) -> None:
        self.fingerprint, self.grid = fingerprint, grid
        self.full_support, self.mixes, self.kept = full_support, mixes, kept
        self.values = values or tuple(grid.values.tolist())


class Written(ABC):
    """A ticket of a kind of its own that callers can store and read back."""

    __slots__ = ("_id", "_issuer", "_number", "_outcome", "_time")

    kind: ClassVar[str]
    outcome: Any

    id: int | str = seen("id", "By which the outcome is reported.")
    number: int = seen("number", "How many forecasts were made before this one.")
    time: float | None = seen("time", "When the forecast was made, if that was told.")

    def __init__(self, issuer: Any, id: int | str, number: int) -> None:
        self._issuer, self._id, self._number = issuer, id, number
        self._time: float | None = None
        self._outcome: Any = None

    @property
    @abstractmethod
    def whose(self) -> str:
        """Fingerprint of what made the ticket."""

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket."""
        return NEVER if self.time is None else self.time, *self._words()

    @abstractmethod
    def _words(self) -> tuple[Any, ...]:
        """Return what the desk keeps of the ticket besides its time."""

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as JSON-ready data, for callers that store it."""
        told = {"issuer": self.whose, "id": self.id, "number": self.number}
        return told | {"time": self.time, "outcome": self.outcome} | self._own()

    @abstractmethod
    def _own(self) -> dict[str, Any]:
        """Return what this kind of ticket knows, as JSON-ready data."""

    def __repr__(self) -> str:
        state = "open" if self.outcome is None else f"outcome={self.outcome!r}"
        return f"{type(self).__name__}(id={self.id!r}, {self._told()}, {state})"

    @abstractmethod
    def _told(self) -> str:
        """Return what was announced, for people."""

    @classmethod
    @abstractmethod
    def _read(cls, data: dict[str, Any]) -> Self:
        """Return a ticket again from what :meth:`to_dict` gave."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read a ticket back from what :meth:`to_dict` gave."""
        try:
            return cls._read(data)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            name = cls.__name__
            raise CorruptState(f"ticket must be what {name}.to_dict() gave, got {error}") from error

    def to_bytes(self) -> bytes:
        """Return the ticket as bytes: for :meth:`.Recalibrator.correct` after a restart."""
        return Document(self.kind, self.to_dict()).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a ticket back from what :meth:`to_bytes` gave."""
        return cls.from_dict(Document.from_bytes(data, cls.kind).settings)


class Ticket:
    """A forecast that waits for its outcome.

    Attributes
    ----------
    id
        By which the outcome is reported: the ticket's number, or what the caller gave.
    number
        How many forecasts the stream had made before this one.
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
        How many forecasts the bucket had made before; with the stream's
        secret it fixes the coin, so the draw can be computed again.
    mixed
        What the transform made of the raw forecast; None where there is none.
    fallback
        Whether the raw forecast was announced instead of the draw, to keep to a budget.
    outcome
        What was reported, or None as long as the ticket is open.
    place, weight
        Bucket, index and side of the draw in one word, and the probability of the lower
        point of the pair: what is needed to learn the outcome.
    """

    __slots__ = (
        "_clock",
        "_id",
        "_issuer",
        "_kept",
        "_law",
        "_mixed",
        "_number",
        "_outcome",
        "_place",
        "_raw",
        "_time",
        "_weight",
    )

    id: int | str = seen("id", "By which the outcome is reported.")
    number: int = seen("number", "How many forecasts the stream had made before this one.")
    issuer: Issuer = seen("issuer", "What the tickets of one stream have in common.")
    raw: float = seen("raw", "The raw forecast.")
    time: float | None = seen("time", "When the forecast was made, if that was told.")
    clock: int | None = seen("clock", "How many forecasts the bucket had made before.")
    outcome: int | None = seen("outcome", "What was reported, or None while the ticket is open.")
    place: int = seen("place", "Bucket, index and side of the draw in one word.")
    weight: float = seen("weight", "The probability of the lower point of the pair.")

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
        mixed: float | None = None,
        kept: tuple[int, ...] = (),
    ) -> None:
        self._issuer, self._id, self._number = issuer, id, number
        self._place, self._weight, self._raw = place, weight, raw
        self._time, self._clock, self._law = time, clock, law
        self._mixed = raw if mixed is None else mixed
        self._kept = kept
        self._outcome: int | None = None

    @classmethod
    def revived(cls, issuer: Issuer, id: int | str, number: int, fields: tuple[Any, ...]) -> Self:
        """Return a ticket again from what the desk kept; a law of many points was not."""
        place, weight, raw, time, clock, mixed, *kept = fields
        law = () if issuer.full_support else None
        told = None if time != time else time, None if clock < 0 else clock, law
        return cls(issuer, id, number, place, weight, raw, *told, mixed, tuple(kept))

    @property
    def whose(self) -> str:
        """Fingerprint of the stream that made the ticket."""
        return self._issuer.fingerprint

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket."""
        time = NEVER if self._time is None else self._time
        clock = -1 if self._clock is None else self._clock
        return self._place, self._weight, self._raw, time, clock, self._mixed, *self._kept

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""
        mine = self.fields
        return mine[:3] == fields[:3] and mine[5:] == fields[5:]

    @property
    def mixed(self) -> float | None:
        """What the transform made of the raw forecast; None where there is none."""
        return self._mixed if self.issuer.mixes else None

    middle = former("Ticket.middle", "Ticket.mixed")
    aside = former("Ticket.aside", "Ticket.fallback")

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
        """The announced forecast: the draw, or the raw forecast as a fallback."""
        if self._place & ASIDE:
            return self._raw
        return self._issuer.values[self._place & CELL]

    @property
    def fallback(self) -> bool:
        """Whether the raw forecast was announced instead of the draw, to keep to a budget."""
        return bool(self._place & ASIDE)

    @property
    def mean(self) -> float:
        """The expected forecast; the raw one if that was announced."""
        place, weight = self._place, self._weight
        if place & ASIDE or self._law is not None:
            return self._raw if place & ASIDE else self.mixture.mean
        if weight == 1.0:
            return self._issuer.values[place & CELL]
        step = 1 << (place >> (15 + WIDTH))
        low = (place & CELL) - (place >> 15 & 1) * step
        values = self._issuer.values
        return weight * values[low] + (1.0 - weight) * values[low + step]

    @property
    def mixture(self) -> Mixture:
        """What was announced before the draw, unless the round is a fallback.

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
            "fallback": self.fallback,
            "weight": self.weight,
            "law": None if self._law is None else list(self._law),
            "mixed": self.mixed,
            "kept": list(self._kept),
            "raw": self.raw,
            "time": self.time,
            "outcome": self.outcome,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read a ticket back from what :meth:`to_dict` gave."""
        try:
            return cls._read(data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorruptState(f"ticket must be what Ticket.to_dict() gave, got {error}") from error

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Self:
        grid = Grid(data["grid"], data["resolution"])
        law, clock, time = data["law"], data["clock"], data["time"]
        # Two names were others once.
        mixed, fallback = (data[new if new in data else old] for new, old in RENAMED)
        ticket = cls(
            Issuer(_text(data["issuer"]), grid, law is not None, mixed is not None),
            data["id"] if type(data["id"]) is int else _text(data["id"]),
            check.whole(data["number"], "number"),
            _place(data["place"], data["step"], data["weight"], law, grid.cells)
            | (ASIDE if _flag(fallback) else 0),
            check.probability(data["weight"], "weight"),
            check.probability(data["raw"]),
            None if time is None else check.real(time, "time"),
            None if clock is None else check.whole(clock, "clock"),
            None if law is None else _law(law, grid.cells),
            None if mixed is None else check.probability(mixed, "mixed"),
            tuple(check.whole(word, "kept", high=(1 << 63) - 1) for word in data["kept"]),
        )
        if data["outcome"] is not None:
            ticket._outcome = check.outcome(data["outcome"])
        return ticket

    def to_bytes(self) -> bytes:
        """Return the ticket as bytes, with its clock: for ``correct`` after a restart."""
        return Document(KIND, self.to_dict()).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a ticket back from what :meth:`to_bytes` gave."""
        return cls.from_dict(Document.from_bytes(data, KIND).settings)

    def __repr__(self) -> str:
        mean = "unknown" if self._law == () else f"{self.mean:g}"
        state = "open" if self.outcome is None else f"outcome={self.outcome}"
        return f"{type(self).__name__}(id={self.id!r}, value={self.value:g}, mean={mean}, {state})"


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"fallback must be true or false, got {value!r}")
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
