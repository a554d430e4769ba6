"""The receipt of a forecast over several classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

import numpy as np

from calibrant.classes import parts as many
from calibrant.classes.simplex_points import RENORMALISE, shared_out
from calibrant.classes.vectors import class_count, vector
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.core.ticket import Issuer, Ticket, Written
from calibrant.errors import InvalidInput

NEVER: Final = float("nan")
KnownT = TypeVar("KnownT")


class ClassTicket(Written):
    """A forecast over several classes that waits for its outcome.

    Attributes
    ----------
    id, number
        By which the outcome is reported; how many forecasts were made before this one.
    raw, time
        What came in.
    value
        The drawn forecast, a number for each class.
    mean
        The expected forecast: sharper, and without the guarantee.
    outcome
        The class that was reported, or None as long as the ticket is open.
    issuer
        The fingerprint of the recalibrator.
    """

    __slots__ = ("id", "issuer", "number", "outcome", "time")

    def __init__(self, issuer: str, id: int | str, number: int) -> None:
        self.issuer, self.id, self.number = issuer, id, number
        self.time: float | None = None
        self.outcome: int | None = None

    @property
    def whose(self) -> str:
        """Fingerprint of the recalibrator that made the ticket."""
        return self.issuer

    @property
    @abstractmethod
    def raw(self) -> Reals:
        """The raw forecast."""

    @property
    @abstractmethod
    def value(self) -> Reals:
        """The drawn forecast, a number for each class."""

    @property
    @abstractmethod
    def mean(self) -> Reals:
        """The expected forecast, a number for each class."""

    @property
    @abstractmethod
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket."""

    @abstractmethod
    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""

    @abstractmethod
    def _own(self) -> dict[str, Any]:
        """Return what this kind of ticket knows, as JSON-ready data."""

    @classmethod
    @abstractmethod
    def _from_own(cls, issuer: str, id: int | str, number: int, data: dict[str, Any]) -> Self:
        """Return a ticket again from what :meth:`_own` gave."""

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as JSON-ready data, for callers that store it."""
        told = {"issuer": self.issuer, "id": self.id, "number": self.number}
        return told | {"time": self.time, "outcome": self.outcome} | self._own()

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Self:
        id = data["id"] if type(data["id"]) is int else _text(data["id"], "id")
        number = check.whole(data["number"], "number")
        ticket = cls._from_own(_text(data["issuer"], "issuer"), id, number, data)
        if data["time"] is not None:
            ticket.time = check.real(data["time"], "time")
        if data["outcome"] is not None:
            ticket.outcome = check.whole(data["outcome"], "outcome")
        return ticket

    def __repr__(self) -> str:
        state = "open" if self.outcome is None else f"outcome={self.outcome}"
        return f"{type(self).__name__}(id={self.id!r}, {self._told()}, {state})"

    def _told(self) -> str:
        listed = ", ".join(f"{p:.3g}" for p in self.value[:4].tolist())
        return f"value=[{listed}{', ...' if len(self.value) > 4 else ''}]"


class PartsIssuer(NamedTuple):
    """What tickets that are made of binary parts have in common."""

    fingerprint: str
    parts: Issuer
    renormalise: str = "none"


class OneVsRestTicket(ClassTicket):
    """A forecast whose numbers were calibrated class by class.

    Attributes
    ----------
    classwise, classwise_mean
        The numbers as they were drawn, and as they were expected, before anything made them
        sum to 1.  ``classwise`` is what carries the guarantee.
    parts
        The binary forecast of each class.
    renormalise
        What made ``value`` and ``mean`` of them.
    """

    __slots__ = ("parts", "renormalise")

    kind: ClassVar = "one-vs-rest ticket"

    def __init__(
        self, issuer: str, id: int | str, number: int, parts: tuple[Ticket, ...], renormalise: str
    ) -> None:
        super().__init__(issuer, id, number)
        self.parts, self.renormalise = parts, renormalise

    @classmethod
    def revived(
        cls, issuer: PartsIssuer, id: int | str, number: int, fields: tuple[Any, ...]
    ) -> Self:
        """Return a ticket again from what the desk kept."""
        parts = many.revived(issuer.parts, fields[1:])
        made = cls(issuer.fingerprint, id, number, parts, issuer.renormalise)
        made.time = _time(fields[0])
        return made

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket."""
        return NEVER if self.time is None else self.time, *many.flattened(self.parts)

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""
        return many.agree(self.parts, fields[1:])

    @property
    def raw(self) -> Reals:
        """The raw forecast."""
        return np.array([part.raw for part in self.parts])

    @property
    def classwise(self) -> Reals:
        """The numbers as they were drawn."""
        return np.array([part.value for part in self.parts])

    @property
    def classwise_mean(self) -> Reals:
        """The numbers as they were expected."""
        return np.array([part.mean for part in self.parts])

    @property
    def value(self) -> Reals:
        """The drawn forecast, a number for each class."""
        made: Reals = RENORMALISE[self.renormalise](self.classwise[None])[0]
        return made

    @property
    def mean(self) -> Reals:
        """The expected forecast, a number for each class."""
        made: Reals = RENORMALISE[self.renormalise](self.classwise_mean[None])[0]
        return made

    def _own(self) -> dict[str, Any]:
        parts = [part.to_dict() for part in self.parts]
        return {"renormalise": self.renormalise, "parts": parts}

    @classmethod
    def _from_own(cls, issuer: str, id: int | str, number: int, data: dict[str, Any]) -> Self:
        parts = tuple(map(Ticket.from_dict, data["parts"]))
        class_count(len(parts))
        way = check.choice(data["renormalise"], "renormalise", tuple(RENORMALISE))
        return cls(issuer, id, number, parts, way)


class TopTicket(ClassTicket):
    """A forecast whose largest class was calibrated.

    The raw forecast is known to the ticket that was returned, and not kept for one that is found
    by its id: of the latter ``raw``, ``value``, ``mean`` and ``leads`` cannot be asked.

    Attributes
    ----------
    top
        The class that the raw forecast puts first; it stays what it is.
    confidence, confidence_mean
        Its probability, as drawn and as expected.  ``confidence`` carries the guarantee.
    leads
        Whether no other class has more in ``value``.  At a confidence below 1/K, K the number
        of classes, that cannot be.
    parts
        The binary forecasts: of all classes together, if there is one, and then of the first class.
    """

    __slots__ = ("_raw", "parts", "top")

    kind: ClassVar = "top-label ticket"

    def __init__(
        self,
        issuer: str,
        id: int | str,
        number: int,
        top: int,
        parts: tuple[Ticket, ...],
        raw: Reals | None,
    ) -> None:
        super().__init__(issuer, id, number)
        self.top, self.parts, self._raw = top, parts, raw

    @classmethod
    def revived(
        cls, issuer: PartsIssuer, id: int | str, number: int, fields: tuple[Any, ...]
    ) -> Self:
        """Return a ticket again from what the desk kept, which does not include vectors."""
        time, top, *words = fields
        made = cls(issuer.fingerprint, id, number, top, many.revived(issuer.parts, words), None)
        made.time = _time(time)
        return made

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket."""
        time = NEVER if self.time is None else self.time
        return time, self.top, *many.flattened(self.parts)

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""
        return self.top == fields[1] and many.agree(self.parts, fields[2:])

    @property
    def raw(self) -> Reals:
        """The raw forecast."""
        return _asked(self._raw, "raw")

    @property
    def confidence(self) -> float:
        """The probability of the first class, as drawn."""
        return self.parts[-1].value

    @property
    def confidence_mean(self) -> float:
        """The probability of the first class, as expected."""
        return self.parts[-1].mean

    @property
    def value(self) -> Reals:
        """The drawn forecast, a number for each class."""
        return self._around(_asked(self._raw, "value"), self.confidence)

    @property
    def mean(self) -> Reals:
        """The expected forecast, a number for each class."""
        return self._around(_asked(self._raw, "mean"), self.confidence_mean)

    @property
    def leads(self) -> bool:
        """Whether no other class has more in ``value``."""
        return bool(self.confidence >= self.value.max())

    def _around(self, raw: Reals, confidence: float) -> Reals:
        made: Reals = shared_out(raw[None], np.array([self.top]), np.array([confidence]))[0]
        return made

    def _told(self) -> str:
        told = f"top={self.top}, confidence={self.confidence:.3g}"
        return told if self._raw is None else f"{super()._told()}, {told}"

    def _own(self) -> dict[str, Any]:
        parts = [part.to_dict() for part in self.parts]
        return {"top": self.top, "parts": parts, "raw": _listed(self._raw)}

    @classmethod
    def _from_own(cls, issuer: str, id: int | str, number: int, data: dict[str, Any]) -> Self:
        parts, raw = tuple(map(Ticket.from_dict, data["parts"])), _vector(data["raw"])
        check.whole(len(parts), "number of parts", low=1, high=2)
        high = None if raw is None else len(raw) - 1
        return cls(issuer, id, number, check.whole(data["top"], "top", high=high), parts, raw)


class SimplexIssuer(NamedTuple):
    """What the tickets of one grid over the simplex have in common."""

    fingerprint: str
    values: Reals


class SimplexTicket(ClassTicket):
    """A forecast drawn from a grid over the simplex.

    The raw forecast and the mixture are known to the ticket that was returned, and not kept for
    one that is found by its id.

    Attributes
    ----------
    points, weights
        The grid points that could have been drawn, a row each, and their probabilities.
    cell, index
        The cell of the raw forecast, and the grid point that was drawn.
    clock
        How many forecasts the cell had made before: with the secret this fixes the coin.
    """

    __slots__ = ("_mixture", "_raw", "_value", "cell", "clock", "index")

    kind: ClassVar = "simplex ticket"

    def __init__(
        self,
        issuer: str,
        id: int | str,
        number: int,
        place: tuple[int, int, int | None],
        value: Reals,
        raw: Reals | None = None,
        mixture: tuple[Reals, Reals] | None = None,
    ) -> None:
        super().__init__(issuer, id, number)
        self.cell, self.index, self.clock = place
        self._value, self._raw, self._mixture = value, raw, mixture

    @classmethod
    def revived(
        cls, issuer: SimplexIssuer, id: int | str, number: int, fields: tuple[Any, ...]
    ) -> Self:
        """Return a ticket again from what the desk kept, which does not include the mixture."""
        time, cell, index, clock = fields
        place = cell, index, None if clock < 0 else clock
        made = cls(issuer.fingerprint, id, number, place, issuer.values[index])
        made.time = _time(time)
        return made

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket."""
        time, clock = NEVER if self.time is None else self.time, self.clock
        return time, self.cell, self.index, -1 if clock is None else clock

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""
        return self.fields[1:3] == fields[1:3]

    @property
    def raw(self) -> Reals:
        """The raw forecast."""
        return _asked(self._raw, "raw")

    @property
    def value(self) -> Reals:
        """The drawn grid point."""
        return np.array(self._value)

    @property
    def points(self) -> Reals:
        """The grid points that could have been drawn, a row each."""
        return _asked(self._mixture, "points")[0]

    @property
    def weights(self) -> Reals:
        """The probabilities of these points."""
        return _asked(self._mixture, "weights")[1]

    @property
    def mean(self) -> Reals:
        """The expected forecast, a number for each class."""
        points, weights = _asked(self._mixture, "mean")
        total: Reals = (points * weights[:, None]).sum(axis=0)
        return total

    def _own(self) -> dict[str, Any]:
        mixture = None if self._mixture is None else [each.tolist() for each in self._mixture]
        return {
            "place": [self.cell, self.index, self.clock],
            "value": self._value.tolist(),
            "raw": _listed(self._raw),
            "mixture": mixture,
        }

    @classmethod
    def _from_own(cls, issuer: str, id: int | str, number: int, data: dict[str, Any]) -> Self:
        cell, index, clock = data["place"]
        told = None if clock is None else check.whole(clock, "clock")
        place = check.whole(cell, "cell"), check.whole(index, "index"), told
        value, raw, mixture = _vector(data["value"]), _vector(data["raw"]), data["mixture"]
        if value is None:
            raise InvalidInput("value must be known, got None")
        if mixture is not None:
            points = np.array([_vector(point) for point in mixture[0]])
            mixture = points, vector(mixture[1], len(points), "weights")
        return cls(issuer, id, number, place, value, raw, mixture)


def _asked(known: KnownT | None, name: str) -> KnownT:
    if known is None:
        raise InvalidInput(f"{name} must be asked of the ticket that forecast() returned")
    return known


def _time(time: float) -> float | None:
    return None if time != time else time


def _listed(values: Reals | None) -> list[float] | None:
    return None if values is None else values.tolist()


def _vector(values: Any) -> Reals | None:
    return None if values is None else vector(values, len(values))


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string, got {value!r}")
    return value
