"""Classes: a probability for each of several classes, one of which comes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from calibrant.classes import ClassCalibrant, OneVsRest, TopLabel, recalibrator
from calibrant.errors import InvalidInput
from calibrant.kinds.binary import Binary, of_many
from calibrant.kinds.binary.service import DEFAULT, Member, Service, within
from calibrant.recalibrate import Calibrant
from calibrant.summary import Breakdown, Engine, Part, kinds, read_if

__all__ = ["Classes"]

ALONE: Final = "it is for one stream of probabilities"
VECTORS: Final = "the numbers of several classes must be probabilities"
ONE: Final = "several classes have no groups"
NAMED: Final = "Names of classes, of which exactly one occurs; raw forecasts: lists."
CURVES: Final = 20
"""Up to this many classes each is followed in every round; beyond, only the one that is first."""


class ClassService(Service):
    """Streams over classes; what is followed is the class that comes first, and whether it came."""

    parts: ClassVar[str | None] = "class"
    plural: ClassVar[str] = "classes"
    settings: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "classes": ("texts", {"min_length": 2, "max_length": 1000, "description": NAMED})
    }
    answers: ClassVar[dict[str, str]] = {
        "top": "text",
        "confidence": "real",
        "confidence_mean": "real",
        "classwise": "reals",
    }
    draws: ClassVar[tuple[str, ...]] = ("confidence", "classwise")
    described: ClassVar[tuple[tuple[str, str, str, str, str], ...]] = (
        (
            "`classes`",
            "a list of numbers",
            "the name of a class",
            "the same as lists; `top`, `confidence`, `confidence_mean`, `classwise`",
            "`keys`, `preview`",
        ),
    )
    columns: ClassVar[dict[str, str]] = {
        "label": "text",
        "raw": "reals",
        "vector": "reals",
        "mean_vector": "reals",
    }

    def labels(self, asked: Any) -> list[str] | None:
        """Return the names of the classes."""
        found: list[str] = asked.classes
        return found

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


@kinds.add
class Classes(Binary):
    """A probability for each class, in a column each or in one of lists; outcomes are classes.

    proba COL,COL
        Instead of --raw: columns of the probabilities of several classes, or one of lists;
        outcomes are classes.
    """

    name: ClassVar[str] = "classes"
    precedence: ClassVar[int] = 20
    options: ClassVar[dict[str, str]] = {"proba": "raw"}
    words: ClassVar[tuple[str | None, ...]] = ("class",)
    service: ClassVar[Service] = ClassService()
    refused: ClassVar[dict[str, str]] = Binary.refused | {
        "scale": VECTORS,
        "epsilon": ALONE,
        "raw_safe": ALONE,
        "context": ALONE,
    }

    @property
    def session_type(self) -> type[Any]:
        from calibrant.kinds.classes.session import ClassSession

        return ClassSession

    def wants(self, asked: Any) -> bool:
        return bool(asked.proba)

    def types(self, columns: Any) -> dict[str, str]:
        """Return the columns of numbers; classes may have names, and lists stay as they are."""
        return dict.fromkeys(columns.proba, "double") if len(columns.proba) > 1 else {}

    def make(self, options: Any, seed: int | None, classes: int = 2) -> Engine:
        """Return a new recalibrator; sessions say how many classes there are."""
        return recalibrator(classes, **options.drawn(seed), **self.chosen(options))

    def chosen(self, options: Any) -> dict[str, Any]:
        """Return what the recalibrator is made with once the number of classes is known."""
        from calibrant.kinds.binary import session

        if options.group:
            raise InvalidInput(f"group must be left out: {ONE}, got {','.join(options.group)!r}")
        options.refuse(self.refused)
        method = session.method_asked(options)
        if method == Calibrant.kind:
            return session.of_default(options)
        return {"engine": "recalibrator", "method": method, **options.given(session.SIZES)}

    def session(self, options: Any, seed: int | None) -> Any:
        return self.session_type.start(options.proba, self.chosen(options), options.drawn(seed))

    def read(self, data: bytes, secret: bytes | None = None) -> Engine:
        made: Engine | None = None
        for kind in (ClassCalibrant, TopLabel):
            made = made or read_if(partial(kind.from_bytes, secret=secret), data)
        return OneVsRest.from_bytes(data, secret=secret) if made is None else made

    def around(self, data: bytes, secret: bytes | None = None) -> None:
        return None

    def makes(self, recalibrator: Engine) -> bool:
        return isinstance(recalibrator, (ClassCalibrant, OneVsRest, TopLabel))

    def method(self, recalibrator: Engine) -> str:
        """Return the name of the recalibrator's kind.

        >>> Classes().method(TopLabel(9))
        'top-label'
        """
        return str(recalibrator.kind)

    def own(self, recalibrator: Engine) -> dict[str, Any]:
        return {"classes": recalibrator.classes, "engine": recalibrator.engine}

    def promised(self, certificate: Any) -> dict[str, Any]:
        parts = list(certificate.parts.values())
        bounds = {name.lower(): certificate.promised(name) for name in ("C1", "C2")}
        delay, rounds = max((p.delay for p in parts), default=0), sum(p.rounds for p in parts)
        regret = sum(part.regret * part.rounds for part in parts) / max(rounds, 1)
        return of_many(certificate, bounds, delay, regret)

    def bound(self, recalibrator: Engine, rounds: int) -> tuple[float, float]:
        return math.nan, math.nan

    def rows(self, breakdown: Breakdown, recalibrator: Engine) -> list[Part]:
        """Put errors over exact values where each class has a recalibrator, numbered in order."""
        rows = breakdown.parts()
        if isinstance(recalibrator, TopLabel) or recalibrator.classes > CURVES:
            return rows
        parts = recalibrator.certificate().parts
        pairs = zip(rows, [parts[k] for k in parts if k < recalibrator.classes], strict=True)
        return [
            replace(row, c1_forecast=own.c1, c2_forecast=own.c2, bound=own.promised("C2"))
            if own.rounds
            else row
            for row, own in pairs
        ]
