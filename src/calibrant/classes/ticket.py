"""The receipt of a forecast over several classes, and the binary parts it was made of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np

from calibrant.classes.vectors import RENORMALISE, class_count, shared_out, vector
from calibrant.core import check
from calibrant.core.arrays import Reals, frozen
from calibrant.core.ticket import NEVER, Issuer, Ticket, Written, seen
from calibrant.errors import InvalidInput

CLOCK: Final = 4
"""Which word of a part is its clock."""
KnownT = TypeVar("KnownT")
Head: TypeAlias = tuple[str, int | str, int]
"""Fingerprint of the recalibrator, id and number of a ticket."""


class ClassIssuer(NamedTuple):
    """What the tickets of one recalibrator have in common.

    ``shared`` is the issuer of binary parts, or the values of a grid; ``option`` says what made
    ``value`` and ``mean`` of the parts.
    """

    fingerprint: str
    shared: Any
    option: Any = None


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

    __slots__ = ("_raw",)

    issuer: str = seen("issuer", "The fingerprint of the recalibrator.")
    outcome: int | None = seen("outcome", "The class that was reported, or None.")

    def __init__(self, head: Head, raw: Reals | None = None) -> None:
        super().__init__(*head)
        self._raw = None if raw is None else frozen(raw)

    @classmethod
    def revived(cls, issuer: ClassIssuer, id: int | str, number: int, fields: Any) -> Self:
        """Return a ticket again from what the desk kept, which does not include vectors."""
        time, *words = fields
        made = cls._from_words((issuer.fingerprint, id, number), issuer, words)
        made._time = None if time != time else time
        return made

    @property
    def whose(self) -> str:
        """Fingerprint of the recalibrator that made the ticket."""
        return self.issuer

    @property
    def raw(self) -> Reals:
        """The raw forecast."""
        return _asked(self._raw, "raw")

    @property
    def value(self) -> Reals:
        """The drawn forecast, a number for each class."""
        return self._announced("value")

    @property
    def mean(self) -> Reals:
        """The expected forecast, a number for each class."""
        return self._announced("mean")

    @abstractmethod
    def _announced(self, name: str) -> Reals:
        """Return ``"value"`` or ``"mean"``."""

    @classmethod
    @abstractmethod
    def _from_words(cls, head: Head, issuer: ClassIssuer, words: list[Any]) -> Self:
        """Return a ticket again from what :meth:`_words` gave."""

    @abstractmethod
    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""

    @classmethod
    @abstractmethod
    def _from_own(cls, head: Head, data: dict[str, Any]) -> Self:
        """Return a ticket again from what :meth:`_own` gave."""

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Self:
        id = data["id"] if type(data["id"]) is int else _text(data["id"], "id")
        number = check.whole(data["number"], "number")
        ticket = cls._from_own((_text(data["issuer"], "issuer"), id, number), data)
        if data["time"] is not None:
            ticket._time = check.real(data["time"], "time")
        if data["outcome"] is not None:
            ticket._outcome = check.whole(data["outcome"], "outcome")
        return ticket

    def _told(self) -> str:
        listed = ", ".join(f"{p:.3g}" for p in self.value[:4].tolist())
        return f"value=[{listed}{', ...' if len(self.value) > 4 else ''}]"


class PartsTicket(ClassTicket):
    """A forecast that was made of binary ones, its parts."""

    __slots__ = ("_parts",)

    parts: tuple[Any, ...] = seen("parts", "The binary forecasts.")

    def __init__(self, head: Head, parts: tuple[Any, ...], raw: Reals | None = None) -> None:
        super().__init__(head, raw)
        self._parts = parts

    def _words(self) -> tuple[Any, ...]:
        return _flattened(self.parts)

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""
        own, words = _flattened(self.parts), fields[1:]
        width = len(own) // len(self.parts)
        pairs = enumerate(zip(own, words, strict=False))
        same = all(one == other for k, (one, other) in pairs if k % width != CLOCK)
        return same and len(own) == len(words)

    def _own(self) -> dict[str, Any]:
        return {"parts": [part.to_dict() for part in self.parts]}


class OneVsRestTicket(PartsTicket):
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

    __slots__ = ("_renormalise",)

    kind: ClassVar = "one-vs-rest ticket"
    renormalise: str = seen("renormalise", "What made ``value`` and ``mean`` of the parts.")

    def __init__(self, head: Head, parts: tuple[Any, ...], renormalise: str) -> None:
        super().__init__(head, parts)
        self._renormalise = renormalise

    @classmethod
    def _from_words(cls, head: Head, issuer: ClassIssuer, words: list[Any]) -> Self:
        return cls(head, revived_parts(issuer.shared, words), issuer.option)

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

    def _announced(self, name: str) -> Reals:
        numbers = self.classwise if name == "value" else self.classwise_mean
        return np.asarray(RENORMALISE[self.renormalise](numbers[None])[0])

    def _own(self) -> dict[str, Any]:
        return {"renormalise": self.renormalise} | super()._own()

    @classmethod
    def _from_own(cls, head: Head, data: dict[str, Any]) -> Self:
        parts = tuple(map(Ticket.from_dict, data["parts"]))
        class_count(len(parts))
        way = check.choice(data["renormalise"], "renormalise", tuple(RENORMALISE))
        return cls(head, parts, way)


class SureTicket(PartsTicket):
    """A ticket whose last part is about the class that was announced first."""

    __slots__ = ()

    @property
    def confidence(self) -> float:
        """The probability of the first class, as drawn."""
        return float(self.parts[-1].value)

    @property
    def confidence_mean(self) -> float:
        """The probability of the first class, as expected."""
        return float(self.parts[-1].mean)

    @property
    def leads(self) -> bool:
        """Whether no other class has more in ``value``."""
        return bool(self.confidence >= self.value.max())


class TopTicket(SureTicket):
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

    __slots__ = ("_top",)

    kind: ClassVar = "top-label ticket"
    top: int = seen("top", "The class that the raw forecast puts first.")

    def __init__(
        self, head: Head, parts: tuple[Any, ...], top: int, raw: Reals | None = None
    ) -> None:
        super().__init__(head, parts, raw)
        self._top = top

    @classmethod
    def _from_words(cls, head: Head, issuer: ClassIssuer, words: list[Any]) -> Self:
        top, *rest = words
        return cls(head, revived_parts(issuer.shared, rest), top)

    def _words(self) -> tuple[Any, ...]:
        return self.top, *super()._words()

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""
        return self.top == fields[1] and super().agrees(fields[1:])

    def _announced(self, name: str) -> Reals:
        sure = np.array([self.confidence if name == "value" else self.confidence_mean])
        return np.asarray(shared_out(_asked(self._raw, name)[None], np.array([self.top]), sure)[0])

    def _told(self) -> str:
        told = f"top={self.top}, confidence={self.confidence:.3g}"
        return told if self._raw is None else f"{super()._told()}, {told}"

    def _own(self) -> dict[str, Any]:
        return {"top": self.top} | super()._own() | {"raw": _listed(self._raw)}

    @classmethod
    def _from_own(cls, head: Head, data: dict[str, Any]) -> Self:
        parts, raw = tuple(map(Ticket.from_dict, data["parts"])), _vector(data["raw"])
        check.whole(len(parts), "number of parts", low=1, high=2)
        high = None if raw is None else len(raw) - 1
        return cls(head, parts, check.whole(data["top"], "top", high=high), raw)


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

    __slots__ = ("_cell", "_clock", "_index", "_mixture", "_value")

    kind: ClassVar = "simplex ticket"
    cell: int = seen("cell", "The cell of the raw forecast.")
    index: int = seen("index", "The grid point that was drawn.")
    clock: int | None = seen("clock", "How many forecasts the cell had made before.")

    def __init__(
        self,
        head: Head,
        place: tuple[int, int, int | None],
        value: Reals,
        raw: Reals | None = None,
        mixture: tuple[Reals, Reals] | None = None,
    ) -> None:
        super().__init__(head, raw)
        self._cell, self._index, self._clock = place
        self._value = value
        self._mixture = None if mixture is None else (frozen(mixture[0]), frozen(mixture[1]))

    @classmethod
    def _from_words(cls, head: Head, issuer: ClassIssuer, words: list[Any]) -> Self:
        cell, index, clock = words
        place = cell, index, None if clock < 0 else clock
        return cls(head, place, issuer.shared[index])

    def _words(self) -> tuple[Any, ...]:
        return self.cell, self.index, -1 if self.clock is None else self.clock

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""
        return (self.cell, self.index) == fields[1:3]

    @property
    def points(self) -> Reals:
        """The grid points that could have been drawn, a row each."""
        return _asked(self._mixture, "points")[0]

    @property
    def weights(self) -> Reals:
        """The probabilities of these points."""
        return _asked(self._mixture, "weights")[1]

    def _announced(self, name: str) -> Reals:
        if name == "value":
            return np.array(self._value)
        points, weights = _asked(self._mixture, name)
        return np.asarray((points * weights[:, None]).sum(axis=0))

    def _own(self) -> dict[str, Any]:
        mixture = None if self._mixture is None else [each.tolist() for each in self._mixture]
        told = {"place": [self.cell, self.index, self.clock], "value": self._value.tolist()}
        return told | {"raw": _listed(self._raw), "mixture": mixture}

    @classmethod
    def _from_own(cls, head: Head, data: dict[str, Any]) -> Self:
        cell, index, clock = data["place"]
        told = None if clock is None else check.whole(clock, "clock")
        place = check.whole(cell, "cell"), check.whole(index, "index"), told
        value, raw, mixture = _vector(data["value"]), _vector(data["raw"]), data["mixture"]
        if value is None:
            raise InvalidInput("value must be known, got None")
        if mixture is not None:
            points = np.array([_vector(point) for point in mixture[0]])
            mixture = points, vector(mixture[1], len(points), "weights")
        return cls(head, place, value, raw, mixture)


def letters(kept: int) -> str:
    """Return what the desk keeps of a part: number, place, weight, raw, clock, mixed, advice."""
    return "qqddqd" + "q" * kept


def _flattened(parts: Sequence[Ticket]) -> tuple[Any, ...]:
    """Return what the desk keeps of all parts, one after the other."""
    lines = [(part.number, *part.fields) for part in parts]
    return tuple(word for line in lines for word in (*line[:4], *line[5:]))


def revived_parts(issuer: Issuer, words: list[Any]) -> tuple[Ticket, ...]:
    """Return parts again from what :func:`_flattened` gave."""
    width = len(letters(issuer.kept))
    lines = [words[start : start + width] for start in range(0, len(words), width)]
    return tuple(
        Ticket.revived(issuer, number, number, (*facts[:3], NEVER, *facts[3:]))
        for number, *facts in lines
    )


def _asked(known: KnownT | None, name: str) -> KnownT:
    if known is None:
        raise InvalidInput(f"{name} must be asked of the ticket that forecast() returned")
    return known


def _listed(values: Reals | None) -> list[float] | None:
    return None if values is None else values.tolist()


def _vector(values: Any) -> Reals | None:
    return None if values is None else vector(values, len(values))


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string, got {value!r}")
    return value
