"""Tickets that carry their groups, and the ledger that keeps them."""

from __future__ import annotations

from typing import Any, Final, Self, cast

from calibrant.core.ledger import Ledger
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import CorruptState, ForeignTicket
from calibrant.groups.names import Name, Period, names_of

__all__ = ["GroupLedger", "GroupTicket"]

SWEEP: Final = 1024
"""Forecasts after which tickets that expired are looked for, at least."""


class GroupTicket(Ticket):
    """A forecast that waits for its outcome, and the groups in which it will count.

    Attributes
    ----------
    groups
        The names of its groups, those from rules included.
    """

    __slots__ = ("groups",)

    groups: tuple[Name, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as JSON-ready data, for callers that store it."""
        return super().to_dict() | {"groups": [written(name) for name in self.groups]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GroupTicket:
        """Read a ticket back from what :meth:`to_dict` gave."""
        made = cast(GroupTicket, super().from_dict(data))
        try:
            made.groups = names_of([read(part) for part in data["groups"]])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptState(f"ticket must be what to_dict() gave, got {error}") from error
        return made

    def issued_by(self, issuer: Issuer) -> Self:
        """Return the ticket as one of this issuer's."""
        self.issuer = issuer
        return self


def written(name: Name) -> Any:
    """Return a name as JSON-ready data."""
    return list(name) if isinstance(name, Period) else name


def read(part: Any) -> Any:
    """Return the name that was written so."""
    return Period(*part) if isinstance(part, list) else part


class GroupLedger(Ledger):
    """The open tickets of a group recalibrator, all kept as they are.

    Those that expired are looked for now and then; until then they take room, and are not found.
    """

    def __init__(self, issuer: Issuer, max_open: int) -> None:
        super().__init__(issuer, max_open)
        self.sweep_at = max_open + SWEEP

    def store_away(self, issued: int) -> None:
        """Forget tickets that expired, if it is time."""
        if issued > self.sweep_at:
            self.sweep(issued)
            self.sweep_at = issued + max(SWEEP, self.max_open // 8)

    def find(self, ticket: Any, issued: int) -> Ticket:
        """Return the open ticket given itself or its id, or raise what says why there is none."""
        if not isinstance(ticket, GroupTicket):
            return super().find(ticket, issued)
        self.check_issuer(ticket)
        found = self._by_id(ticket.id, ticket, issued)
        if found.number > ticket.number:
            # The name was given away again since.
            raise self._not_open(ticket.id, ticket, issued)
        if found is not ticket and found.to_dict() != ticket.to_dict():
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        return found
