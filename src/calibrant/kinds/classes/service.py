"""What a service needs of streams over several classes: vectors, and how sure the first one is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from calibrant.classes import ClassCalibrant
from calibrant.errors import InvalidInput
from calibrant.kinds.binary.service import DEFAULT, Member, Service, within
from calibrant.kinds.classes import CURVES


class ClassService(Service):
    """Streams over classes; what is followed is the class that comes first, and whether it came."""

    parts: ClassVar[str | None] = "class"
    plural: ClassVar[str] = "classes"
    columns: ClassVar[dict[str, str]] = {
        "label": "text",
        "raw": "reals",
        "vector": "reals",
        "mean_vector": "reals",
    }

    def make(self, asked: Any) -> ClassCalibrant:
        """Return a new model as a stream's settings ask for it."""
        self.refuse(asked, {"groups": None, "raw_safe": None, "keyed": False})
        if len({*asked.classes}) < len(asked.classes):
            raise InvalidInput(f"classes must have a name each, got {asked.classes!r}")
        told = {"loss": asked.loss, "seed": asked.seed} | self.options(asked)
        if asked.method != DEFAULT:
            told |= {"engine": "recalibrator", "method": asked.method}
        return ClassCalibrant(len(asked.classes), **told)

    def mean_of(self, ticket: Any) -> float:
        """Return the mean probability of the first class."""
        return within(ticket.confidence_mean)

    def raw_of(self, ticket: Any) -> float:
        """Return the raw probability of the first class."""
        return float(ticket.raw[ticket.top])

    def value_of(self, ticket: Any) -> float:
        """Return the drawn probability of the first class."""
        found: float = ticket.confidence
        return found

    def happened(self, ticket: Any, outcome: int) -> int:
        """Return whether the first class came."""
        return int(outcome == ticket.top)

    def members(self, ticket: Any, outcome: int, names: Sequence[str]) -> list[Member]:
        """Return the round of each class; of many classes, of the first one alone."""
        if len(ticket.raw) > CURVES:
            told = self.raw_of(ticket), self.value_of(ticket), self.happened(ticket, outcome)
            return [Member(names[ticket.top], *told)]
        pairs = zip(names, ticket.raw.tolist(), ticket.classwise.tolist(), strict=True)
        return [
            Member(name, raw, within(drawn), int(outcome == k))
            for k, (name, raw, drawn) in enumerate(pairs)
        ]

    def drawn(self, ticket: Any) -> dict[str, Any]:
        """Return what the coins decided, by name."""
        classwise, vector = ticket.classwise.tolist(), ticket.value.tolist()
        return {"forecast": vector, "confidence": ticket.confidence, "classwise": classwise}

    def expected(self, ticket: Any, names: Sequence[str]) -> dict[str, Any]:
        """Return what was known before the coins were thrown, by name; mixture of ``top``."""
        sure = {"top": names[ticket.top], "confidence_mean": ticket.confidence_mean}
        return {"mean": ticket.mean.tolist(), "mixture": ticket.parts[-1].mixture} | sure

    def asked(self, ticket: Any) -> dict[str, Any]:
        """Return what came in besides id and time, by name."""
        return {"raw": ticket.raw.tolist()}

    def row(self, ticket: Any, names: Sequence[str], shown: bool) -> dict[str, Any]:
        """Return the columns of a forecast in the log; single numbers are of the first class."""
        sure = ticket.confidence if shown else None
        vectors = ticket.value.tolist() if shown else None, ticket.mean.tolist()
        return {
            "x": self.raw_of(ticket),
            "forecast": sure,
            "mean": ticket.confidence_mean,
            "label": names[ticket.top],
            "raw": ticket.raw.tolist(),
            "vector": vectors[0],
            "mean_vector": vectors[1],
        }

    def told(self, outcome: int, names: Sequence[str]) -> dict[str, Any]:
        """Return the name of a class that came."""
        return {"label": names[outcome]}
