"""What a service needs of a kind: how models are made, and what is told of their tickets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple

from calibrant.errors import InvalidInput
from calibrant.recalibrate import Calibrant, Recalibrator

DEFAULT: Final = Calibrant.kind


class Member(NamedTuple):
    """A round in one group or class: which one, what was said before and after, what happened."""

    name: str
    raw: float
    forecast: float
    outcome: int


class Service:
    """Streams of binary forecasts; groups and classes override what is theirs.

    Attributes
    ----------
    parts, plural
        What a round is part of besides the stream: ``"group"``, ``"class"`` or None; and many.
    settings
        Settings that ask for this kind, by name: what they hold, and what is true of that.
    answers, draws
        What answers to forecasts have besides, and what that holds; and what coins decide of it.
    described
        Rows of the reference: stream, raw forecast, outcome, answer, and what is not available.
    columns
        Columns of exported events that streams of other kinds do not have, and what they hold:
        ``"text"``, ``"texts"`` or ``"reals"``.
    """

    parts: ClassVar[str | None] = None
    plural: ClassVar[str] = "binary outcomes"
    settings: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {}
    answers: ClassVar[dict[str, str]] = {}
    draws: ClassVar[tuple[str, ...]] = ()
    described: ClassVar[tuple[tuple[str, str, str, str, str], ...]] = (
        ("plain", "a number", "0 or 1", "`forecast`, `mean`, `mixture`", "`keys`"),
        ("`keyed`", "a number, with `key`", "0 or 1", "the same", "`certificate`: see `keys`"),
    )
    columns: ClassVar[dict[str, str]] = {}

    def wants(self, asked: Any) -> bool:
        """Say whether settings ask for this kind; the default, which has none, takes the rest."""
        own = [getattr(asked, name) for name in self.settings]
        return not own or any(value is not None for value in own)

    def labels(self, asked: Any) -> list[str] | None:
        """Return the names by which outcomes are told; None where they are 0 and 1."""
        return None

    def make(self, asked: Any) -> Any:
        """Return a new model as a stream's settings ask for it; of a keyed one, that of a key."""
        options, seed = self.options(asked), None if asked.keyed else asked.seed
        if asked.method == DEFAULT:
            return Calibrant(raw_safe=asked.raw_safe, seed=seed, loss=asked.loss, **options)
        if asked.raw_safe is not None:
            rule = f"raw_safe must be asked of the method {DEFAULT!r} alone"
            raise InvalidInput(f"{rule}, got {asked.raw_safe!r}")
        return Recalibrator(asked.method, seed=seed, loss=asked.loss, **options)

    def options(self, asked: Any) -> dict[str, Any]:
        """Return what models of every kind are made with."""
        sizes = {name: getattr(asked, name) for name in ("resolution", "buckets")}
        given = {name: size for name, size in sizes.items() if size is not None}
        return {"max_open": asked.horizon, **given, **asked.parameters}

    def refuse(self, asked: Any, usual: dict[str, Any]) -> None:
        """Refuse settings that are not as usual and have no meaning here."""
        for name, value in usual.items():
            if getattr(asked, name) != value:
                rule = f"{name} must be left out in a stream with {self.plural}"
                raise InvalidInput(f"{rule}, got {getattr(asked, name)!r}")

    def mean_of(self, ticket: Any) -> float:
        """Return the mean of a ticket: a sum of products, which may round to just above 1."""
        return within(ticket.mean)

    def raw_of(self, ticket: Any) -> float:
        """Return the raw forecast of what is followed."""
        found: float = ticket.raw
        return found

    def value_of(self, ticket: Any) -> float:
        """Return the draw of what is followed."""
        found: float = ticket.value
        return found

    def happened(self, ticket: Any, outcome: int) -> int:
        """Return whether what is followed happened, by the outcome of the ticket."""
        return outcome

    def members(self, ticket: Any, outcome: int, names: Sequence[str]) -> list[Member]:
        """Return the round in each of its groups or classes, which have these names."""
        return []

    def drawn(self, ticket: Any) -> dict[str, Any]:
        """Return what the coins decided, by name."""
        return {"forecast": ticket.value}

    def expected(self, ticket: Any, names: Sequence[str]) -> dict[str, Any]:
        """Return what was known before the coins were thrown, by name."""
        return {"mean": ticket.mean, "mixture": ticket.mixture}

    def asked(self, ticket: Any) -> dict[str, Any]:
        """Return what came in besides id, key and time, by name."""
        return {"raw": ticket.raw}

    def row(self, ticket: Any, names: Sequence[str], shown: bool) -> dict[str, Any]:
        """Return the columns of a forecast in the log; its draw only if that may be shown."""
        return {"forecast": ticket.value if shown else None, "mean": ticket.mean}

    def told(self, outcome: int, names: Sequence[str]) -> dict[str, Any]:
        """Return the columns of an outcome in the log besides its number."""
        return {}


def within(mean: float) -> float:
    """Return a mean that rounding has not put outside of [0, 1]."""
    return min(max(mean, 0.0), 1.0)
