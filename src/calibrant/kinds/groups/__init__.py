"""Groups: one probability a row, calibrated in every group at once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Final

from calibrant.groups import GroupRecalibrator
from calibrant.kinds.binary import Binary, of_many
from calibrant.summary import Breakdown, Engine, Part

__all__ = ["Groups"]

GROUPED: Final = "groups have a method of their own"


class Groups(Binary):
    """One probability a row, outcomes 0 or 1, and columns whose values are groups."""

    name: ClassVar[str] = "groups"
    words: ClassVar[tuple[str | None, ...]] = ("group",)
    refused: ClassVar[dict[str, str]] = Binary.refused | dict.fromkeys(
        ("method", "epsilon", "loss", "raw_safe", "context"), GROUPED
    )

    @property
    def session_type(self) -> type[Any]:
        from calibrant.kinds.groups.session import GroupSession

        return GroupSession

    @property
    def service(self) -> Any:
        from calibrant.kinds.groups.service import GroupService

        return GroupService()

    def wants(self, asked: Any) -> bool:
        return bool(asked.group)

    def make(self, options: Any, seed: int | None) -> GroupRecalibrator:
        from calibrant.kinds.binary.session import SIZES

        options.refuse(self.refused)
        return GroupRecalibrator(**options.drawn(seed), **options.given(SIZES))

    def read(self, data: bytes, secret: bytes | None = None) -> GroupRecalibrator:
        return GroupRecalibrator.from_bytes(data, secret=secret)

    def around(self, data: bytes, secret: bytes | None = None) -> None:
        return None

    def makes(self, recalibrator: Engine) -> bool:
        return isinstance(recalibrator, GroupRecalibrator)

    def promised(self, certificate: Any) -> dict[str, Any]:
        regret = certificate.loss - certificate.raw_loss
        return of_many(certificate, {}, certificate.delay, regret)

    def bound(self, recalibrator: Engine, rounds: int) -> tuple[float, float]:
        return math.nan, math.nan

    def rows(self, breakdown: Breakdown, recalibrator: Engine) -> list[Part]:
        """Put the errors over exact values, of outcomes learned, in place of those in buckets."""
        known = {str(row.group): row for row in recalibrator.certificate().groups}
        return [
            replace(row, c1_forecast=own.c1, c2_forecast=own.c2, bound=own.sure)
            if (own := known[row.name]).rounds
            else row
            for row in breakdown.parts()
        ]
