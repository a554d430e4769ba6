"""The receipts of forecasts of numbers."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals, frozen
from calibrant.core.ticket import Written, seen
from calibrant.errors import InvalidInput
from calibrant.regression.distribution import Distribution, knots, rising

INFINITE: Final = ("inf", "-inf")
MOST_PLACE: Final = (1 << 62) - 1
CURVES: Final = ("inner", "outer", "outer_mean", "drawn")
KEPT: Final = ("found", "shares", "places", "weights")


class Issuer(NamedTuple):
    """What the tickets of one stream of numbers have in common.

    ``fingerprint`` tells whose tickets they are, ``levels`` which levels are followed and ``drawn``
    how many chances are drawn (none for intervals), ``scores`` whether outcomes are scores, so
    that there is no point forecast, and ``advice`` how many numbers tickets keep for experts.
    """

    fingerprint: str
    levels: Reals = np.empty(0)
    drawn: int = 0
    scores: bool = False
    advice: int = 0


class NumberTicket(Written):
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
        What tickets of the same stream have in common.
    """

    __slots__ = ()

    issuer: Issuer = seen("issuer", "What tickets of the same stream have in common.")
    outcome: float | None = seen("outcome", "The number that was reported, or None.")

    def __init__(self, issuer: Issuer, number: int) -> None:
        super().__init__(issuer, number, number)

    @classmethod
    def revived(cls, issuer: Issuer, id: int | str, number: int, fields: tuple[Any, ...]) -> Self:
        """Return a ticket again from what the desk kept."""
        ticket = cls(issuer, number)
        ticket._id, time = id, fields[0]
        ticket._time = None if time != time else time
        ticket._fill(fields[1:])
        return ticket

    @property
    def whose(self) -> str:
        """Fingerprint of the stream that made the ticket."""
        return self.issuer.fingerprint

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket."""
        return self._words() == fields[1:]

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Self:
        ticket = cls(Issuer(_text(data["issuer"])), check.whole(data["number"], "number"))
        id, time, outcome = data["id"], data["time"], data["outcome"]
        ticket._id = check.whole(id, "id") if type(id) is int else _text(id)
        ticket._time = None if time is None else check.real(time, "time")
        ticket._outcome = None if outcome is None else check.real(outcome, "outcome")
        ticket._read_more(data)
        return ticket

    @abstractmethod
    def _fill(self, kept: tuple[Any, ...]) -> None:
        """Take in what :meth:`_words` gave."""

    @abstractmethod
    def _read_more(self, data: dict[str, Any]) -> None:
        """Take in what :meth:`_own` gave."""


def _announced(name: str, told: str) -> Any:
    """Return a property that shows levels, of a ticket that knows the whole distribution."""

    def shown(ticket: QuantileTicket) -> Any:
        if ticket.raw is None:
            raise InvalidInput(f"{name} must be asked of the ticket that forecast() returned")
        return getattr(ticket, f"_{name}")

    return property(shown, doc=told)


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
    mixed
        The distribution whose levels are moved: with ``method="mixed"`` what experts made of the
        raw one, otherwise this one.
    inner, outer, outer_mean
        The levels of the mixed distribution that were moved, and to where: as drawn, and as
        expected; both sorted.
    drawn
        The same as drawn before sorting.  With ``"mixed"`` and ``"pit"`` this carries the
        guarantee.
    found, shares
        All quantiles that the mixed distribution was asked for, of which the last are the tracked
        ones, and the share of an atom that each needs.
    places, weights
        Where the draw of each level fell, and the probability of the lower point of its pair;
        empty where nothing is drawn.
    advice
        With ``method="mixed"``, quantiles of the raw distribution and what experts said of it:
        their centre and spread in turn.

    Notes
    -----
    A ticket that was found by its id knows its quantiles, and neither the whole distribution nor
    how its levels were moved.
    """

    __slots__ = ("_advice", "_mixed", "_raw", *(f"_{name}" for name in (*CURVES, *KEPT)))

    kind: ClassVar = "quantile ticket"

    raw: Distribution | None = seen("raw", "The distribution that came in.")
    found: tuple[float, ...] = seen("found", "All quantiles that were asked for.")
    shares: tuple[float, ...] = seen("shares", "The share of an atom that each quantile needs.")
    places: tuple[int, ...] = seen("places", "Where the draw of each level fell.")
    weights: tuple[float, ...] = seen("weights", "The probability of the lower point of each pair.")
    advice: tuple[float, ...] = seen("advice", "What experts need to learn the outcome.")
    inner: Reals = _announced("inner", "The levels of the mixed distribution that were moved.")
    outer: Reals = _announced("outer", "To where the levels were moved, as drawn, in order.")
    outer_mean: Reals = _announced(
        "outer_mean", "To where the levels were moved, as expected, in order."
    )
    drawn: Reals = _announced("drawn", "To where the levels were moved, as drawn.")

    def _announce(self, raw: Distribution, curves: tuple[Reals, ...]) -> None:
        """Take in what came in, and the levels of :data:`CURVES`."""
        self._raw: Distribution | None = raw
        self._mixed: Distribution | None = raw
        self._inner, self._outer, self._outer_mean, self._drawn = map(frozen, curves)

    @property
    def mixed(self) -> Distribution | None:
        """The distribution whose levels are moved."""
        return self._mixed

    @property
    def levels(self) -> Reals:
        """The levels that are followed."""
        return self.issuer.levels

    @property
    def tracked(self) -> Reals:
        """The quantiles before sorting."""
        return np.array(self.found[-len(self.levels) :])

    @property
    def quantiles(self) -> Reals:
        """The recalibrated quantiles, in order."""
        return np.sort(self.tracked)

    @property
    def value(self) -> Distribution:
        """The recalibrated distribution; its levels are the drawn ones, where any are drawn."""
        return self._whole().rows.moved(self.inner[None], self.outer[None])[0]

    @property
    def mean(self) -> Distribution:
        """The same with the expected levels: it does not jump, and has no guarantee."""
        return self._whole().rows.moved(self.inner[None], self.outer_mean[None])[0]

    def _whole(self) -> Distribution:
        if self.mixed is None:
            raise InvalidInput("distribution must be asked of the ticket that forecast() returned")
        return self.mixed

    def _told(self) -> str:
        if self.raw is not None:
            return f"value={self.value!r}"
        return f"quantiles={self.quantiles.round(4).tolist()}"

    def _words(self) -> tuple[Any, ...]:
        return self.found + self.shares + self.places + self.weights + self.advice

    def _fill(self, kept: tuple[Any, ...]) -> None:
        drawn, advice = self.issuer.drawn, self.issuer.advice
        width = (len(kept) - advice) // 2 - drawn
        ends = np.cumsum([0, width, width, drawn, drawn, advice]).tolist()
        parts = [kept[start:end] for start, end in pairwise(ends)]
        self._found, self._shares, self._places, self._weights, self._advice = parts
        self._raw = self._mixed = None

    def _own(self) -> dict[str, Any]:
        told: dict[str, Any] = {name: [*map(_plain, getattr(self, name))] for name in KEPT}
        told |= {"levels": self.levels.tolist(), "raw": None}
        if self.advice:
            told["advice"] = [*map(_plain, self.advice)]
        if self.raw is None:
            return told
        told["raw"] = _knots(self.raw)
        if self.mixed is not None and self.mixed is not self.raw:
            told["mixed"] = _knots(self.mixed)
        return told | {name: getattr(self, name).tolist() for name in CURVES}

    def _read_more(self, data: dict[str, Any]) -> None:
        for name in ("found", "shares", "weights"):
            setattr(self, f"_{name}", tuple(_number(number, name) for number in data[name]))
        self._places = tuple(check.whole(k, "place", high=MOST_PLACE) for k in data["places"])
        levels = check.probabilities(data["levels"], "levels")
        self._advice = tuple(_number(number, "advice") for number in data.get("advice", ()))
        self._issuer = Issuer(self.whose, frozen(levels), len(self.places), advice=len(self.advice))
        if len(self.found) < len(self.levels) or len(self.found) != len(self.shares):
            raise ValueError(f"{len(self.found)} quantiles and {len(self.shares)} shares")
        if len(self.places) != len(self.weights):
            raise ValueError(f"{len(self.places)} places and {len(self.weights)} weights")
        self._raw = self._mixed = None
        if data["raw"] is not None:
            curves = {name: check.probabilities(data[name], name) for name in CURVES}
            check.same_length(**curves)
            self._announce(_distribution(data["raw"]), tuple(curves.values()))
            if "mixed" in data:
                self._mixed = _distribution(data["mixed"])


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
    base
        The radius without the scorecast, as the method chose it.
    below
        The same for what lies below the centre; the same number, unless the method has two sides.
    """

    __slots__ = ("_base", "_below", "_centre", "_scorecast")

    kind: ClassVar = "interval ticket"

    centre: float | None = seen("centre", "The point forecast, or None where scores are given.")
    base: float = seen("base", "The radius without the scorecast, as the method chose it.")
    scorecast: float = seen("scorecast", "What the caller expected of the score.")

    def __init__(self, issuer: Issuer, number: int) -> None:
        super().__init__(issuer, number)
        self._below: float | None = None

    @property
    def raw(self) -> float | None:
        """What came in: the point forecast."""
        return self.centre

    @property
    def below(self) -> float:
        """The radius below the centre without the scorecast, as the method chose it."""
        return self.base if self._below is None else self._below

    @property
    def radius(self) -> float:
        """The largest score that counts as covered; above the centre, if there are two sides."""
        return self.base + self.scorecast

    @property
    def low(self) -> float:
        """The lower end; above ``high`` if the interval is empty."""
        return self.value[0]

    @property
    def high(self) -> float:
        """The upper end."""
        return self.value[1]

    @property
    def value(self) -> tuple[float, float]:
        """Both ends."""
        middle = self._words()[0]
        return middle - (self.below + self.scorecast), middle + self.radius

    @property
    def mean(self) -> tuple[float, float]:
        """Both ends: nothing is drawn, so that they are what is expected."""
        return self.value

    def _told(self) -> str:
        if self.centre is None:
            return f"radius={self.radius:.4g}"
        return f"[{self.low:.4g}, {self.high:.4g}]"

    def _words(self) -> tuple[float, ...]:
        kept = 0.0 if self.centre is None else self.centre, self.base, self.scorecast
        return kept if self._below is None else (*kept, self._below)

    def _fill(self, kept: tuple[Any, ...]) -> None:
        centre, self._base, self._scorecast, *below = kept
        self._centre = None if self.issuer.scores else centre
        self._below = below[0] if below else None

    def _own(self) -> dict[str, Any]:
        one = _plain(self.base)
        base = one if self._below is None else [one, _plain(self._below)]
        return {"centre": self.centre, "base": base, "scorecast": self.scorecast}

    def _read_more(self, data: dict[str, Any]) -> None:
        centre = data["centre"]
        self._centre = None if centre is None else check.real(centre, "centre")
        base, below = data["base"] if isinstance(data["base"], list) else (data["base"], None)
        self._base = _number(base, "base")
        self._below = None if below is None else _number(below, "below")
        self._scorecast = check.real(data["scorecast"], "scorecast")
        self._issuer = Issuer(self.whose, scores=centre is None)


def _plain(number: float) -> float | str:
    """Return a number for JSON, which has no infinite ones."""
    return str(number) if str(number) in INFINITE else number


def _number(told: Any, name: str) -> float:
    """Return the number that :func:`_plain` gave."""
    return float(told) if told in INFINITE else check.real(told, name)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"id must be a string or a number, got {value!r}")
    return value


def _knots(made: Distribution) -> dict[str, Any]:
    """Return the knots of a CDF, or mean and deviation, as JSON-ready data."""
    return {"values": made.rows.values[0].tolist(), "levels": made.rows.levels[0].tolist()}


def _distribution(data: dict[str, Any]) -> Distribution:
    """Return a raw distribution that was stored: the knots of its CDF, or mean and deviation."""
    if not data["levels"]:
        return Distribution.normal(*data["values"])
    levels = rising(check.probabilities(data["levels"], "levels")[None], "levels")
    values = rising(np.array([[check.real(v, "values") for v in data["values"]]]), "values")
    if values.shape != levels.shape:
        raise ValueError(f"{values.size} values and {levels.size} levels")
    return Distribution(knots(values, levels))
