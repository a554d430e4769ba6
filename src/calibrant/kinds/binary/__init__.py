"""Events: one probability a row, and outcomes that are 0 or 1."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

from calibrant.core.codec import kind_of
from calibrant.errors import CorruptState
from calibrant.kinds.binary.account import (
    collector_of,
    identity,
    inner,
    method_of,
    of_one,
    parameters,
)
from calibrant.loading import load
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.summary import Account, Breakdown, Collector, Engine, Parts, Summary, Told, measured

__all__ = ["Binary", "inner", "method_of"]

LEVELS: Final = "levels are of quantiles or normal distributions"
SHOWN: Final = 12
"""Groups or classes that are drawn: those with the most rounds."""


class Binary:
    """One probability a row, and outcomes that are 0 or 1.

    Groups and classes, which are probabilities too, override what is theirs.
    """

    name: ClassVar[str] = "binary"
    words: ClassVar[tuple[str | None, ...]] = (None,)
    summary_type: ClassVar[type[Summary]] = Summary
    refused: ClassVar[dict[str, str]] = {"levels": LEVELS}
    """Options that make no sense here, and why."""

    # -------------------------------------------------------------------- streams

    @property
    def session_type(self) -> type[Any]:
        """Return the class of its sessions; needs the extra ``cli``."""
        from calibrant.kinds.binary.session import BinarySession

        return BinarySession

    def wants(self, asked: Any) -> bool:
        """Take whatever no other kind wants."""
        return True

    def types(self, columns: Any) -> dict[str, str]:
        """Return which columns hold numbers."""
        return {columns.raw: "double", columns.outcome: "int8"}

    def make(self, options: Any, seed: int) -> Engine:
        """Return a new recalibrator: the default, or Algorithm 1 with the calibrator asked for."""
        from calibrant.kinds.binary import making

        options.refuse(self.refused)
        return making.make(options, seed)

    def session(self, options: Any, seed: int) -> Any:
        """Return a new session."""
        return self.session_type.start(self.make(options, seed), options, seed)

    def read(self, data: bytes) -> Engine:
        """Return a recalibrator that was stored."""
        if (kind := kind_of(data)) not in (Calibrant.kind, Recalibrator.kind):
            known = f"{Calibrant.kind!r} or {Recalibrator.kind!r}"
            raise CorruptState(f"state must be of kind {known}, got {kind!r}")
        return load(data)

    def around(self, data: bytes) -> Any | None:
        """Return a session of a recalibrator that was stored alone."""
        return self.session_type.around(self.read(data))

    # ------------------------------------------------------------------ summaries

    def makes(self, recalibrator: Engine) -> bool:
        """Say whether a recalibrator is of this kind."""
        return isinstance(recalibrator, Recalibrator)

    def method(self, recalibrator: Engine) -> str:
        """Return the name by which forecasts were asked for."""
        return method_of(recalibrator)

    def collector(self, recalibrator: Engine) -> Collector:
        """Return who can follow the forecasts."""
        return collector_of(recalibrator)

    def summarise(self, collector: Any, recalibrator: Engine, told: Told) -> Summary:
        """Return what was collected as a summary."""
        method, seen = self.method(recalibrator), told.breakdown
        own = {"method": method, **self.own(recalibrator)}
        account = Account(
            identity(recalibrator, method, told.seed),
            self.promised(recalibrator.certificate()),
            parameters(recalibrator, own, told.seed),
            lambda rounds: self.bound(recalibrator, rounds),
            None if seen is None else self.parts(seen, recalibrator),
        )
        return measured(collector, account, told)

    def own(self, recalibrator: Engine) -> dict[str, Any]:
        """Return the settings that only recalibrators of this kind have."""
        return {}

    def promised(self, certificate: Any) -> dict[str, Any]:
        """Return the bounds, the recalibrator's own account, and the chain if there is one."""
        return of_one(certificate)

    def bound(self, recalibrator: Engine, rounds: int) -> tuple[float, float]:
        """Return what the theorem promises about C1 and C2 after so many rounds."""
        sizes = {"buckets": recalibrator.buckets, "prior": recalibrator.prior}
        bound = recalibrator.calibrator.bound(rounds, **sizes)
        if bound is None or bound.quantity not in ("C1", "C2"):
            return math.nan, math.nan
        return bound.as_c1().value, bound.value if bound.quantity == "C2" else math.nan

    def parts(self, breakdown: Breakdown, recalibrator: Engine) -> Parts:
        """Return what was seen in each part, with curves of the largest."""
        curves: dict[str, Any] = {
            name: (breakdown.curve(name, 0), breakdown.curve(name, 1))
            for name in breakdown.largest(SHOWN)
        }
        return Parts(breakdown.kind, self.rows(breakdown, recalibrator), curves)

    def rows(self, breakdown: Breakdown, recalibrator: Engine) -> list[Any]:
        """Return what was measured in each part."""
        return breakdown.parts()

    @property
    def view(self) -> Any:
        """Return how summaries are shown."""
        from calibrant.kinds.binary import view

        return view
