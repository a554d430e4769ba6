"""Groups: one probability a row, calibrated in every group at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from calibrant.groups import GroupRecalibrator
from calibrant.kinds.binary import Binary, of_many
from calibrant.kinds.binary.service import DEFAULT, Member, Service
from calibrant.summary import Breakdown, Engine, Part, kinds

__all__ = ["Groups"]

GROUPED: Final = "groups have a method of their own"
KNOWN: Final = (
    "Forecasts belong to groups and are calibrated in each; those known beforehand, more may "
    "appear."
)


class GroupService(Service):
    """Streams of binary forecasts that belong to groups."""

    parts: ClassVar[str | None] = "group"
    plural: ClassVar[str] = "groups"
    settings: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "groups": ("texts", {"max_length": 1_023, "description": KNOWN})
    }
    described: ClassVar[tuple[tuple[str, str, str, str, str], ...]] = (
        ("`groups`", "a number, with `groups`", "0 or 1", "the same", "`keys`, `preview`"),
    )
    columns: ClassVar[dict[str, str]] = {"groups": "texts"}

    def make(self, asked: Any) -> GroupRecalibrator:
        """Return a new model as a stream's settings ask for it."""
        self.refuse(asked, {"method": DEFAULT, "loss": "squared", "raw_safe": None, "keyed": False})
        return GroupRecalibrator(asked.groups, seed=asked.seed, **self.options(asked))

    def members(self, ticket: Any, outcome: int, names: Sequence[str]) -> list[Member]:
        """Return the round in each of its groups."""
        return [Member(str(name), ticket.raw, ticket.value, outcome) for name in ticket.groups]

    def asked(self, ticket: Any) -> dict[str, Any]:
        """Return what came in besides id and time, by name."""
        return {"raw": ticket.raw, "groups": list(ticket.groups)}

    def row(self, ticket: Any, names: Sequence[str], shown: bool) -> dict[str, Any]:
        """Return the columns of a forecast in the log."""
        groups = [str(name) for name in ticket.groups]
        return super().row(ticket, names, shown) | {"groups": groups}


@kinds.add
class Groups(Binary):
    """One probability a row, outcomes 0 or 1, and columns whose values are groups.

    group COL,COL
        Group columns: forecasts are calibrated within each value of each column at once.
    """

    name: ClassVar[str] = "groups"
    precedence: ClassVar[int] = 10
    options: ClassVar[dict[str, str]] = {"group": "columns"}
    words: ClassVar[tuple[str | None, ...]] = ("group",)
    service: ClassVar[Service] = GroupService()
    refused: ClassVar[dict[str, str]] = Binary.refused | dict.fromkeys(
        ("method", "epsilon", "loss", "raw_safe", "context"), GROUPED
    )

    @property
    def session_type(self) -> type[Any]:
        from calibrant.kinds.groups.session import GroupSession

        return GroupSession

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
