"""What a service needs of streams whose rounds belong to groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from calibrant.groups import GroupRecalibrator
from calibrant.kinds.binary.service import DEFAULT, Member, Service


class GroupService(Service):
    """Streams of binary forecasts that belong to groups."""

    parts: ClassVar[str | None] = "group"
    plural: ClassVar[str] = "groups"
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
