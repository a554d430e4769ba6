"""Classes: a probability for each of several classes, one of which comes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from calibrant.classes import ClassCalibrant, OneVsRest, TopLabel, recalibrator
from calibrant.errors import InvalidInput
from calibrant.kinds.binary import Binary, of_many
from calibrant.recalibrate import Calibrant
from calibrant.summary import Breakdown, Engine, Part, read_if

__all__ = ["Classes"]

ALONE: Final = "it is for one stream of probabilities"
VECTORS: Final = "the numbers of several classes must be probabilities"
ONE: Final = "several classes have no groups"
CURVES: Final = 20
"""Up to this many classes each is followed in every round; beyond, only the one that is first."""


class Classes(Binary):
    """A probability for each class, in a column each or in one of lists; outcomes are classes."""

    name: ClassVar[str] = "classes"
    words: ClassVar[tuple[str | None, ...]] = ("class",)
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

    @property
    def service(self) -> Any:
        from calibrant.kinds.classes.service import ClassService

        return ClassService()

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
