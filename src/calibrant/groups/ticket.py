"""Tickets that carry their groups, and the counter that keeps the names of the open ones."""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any, Final, Self

import numpy as np

from calibrant.core.grid import Grid
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import CorruptState, ForeignTicket
from calibrant.groups.names import Name, Period, names_of
from calibrant.recalibrate.counter import Counter

FEW: Final = 64
"""Tuples of names up to which nothing is given back."""

Names = tuple[Name, ...]


class GroupIssuer(Issuer):
    """What the tickets of one stream with groups have in common.

    ``names`` holds the groups of open tickets by key: a tuple that many tickets share is there
    once.
    """

    __slots__ = ("names",)

    def __init__(self, fingerprint: str, grid: Grid) -> None:
        super().__init__(fingerprint, grid)
        self.names: dict[int, Names] = {}


class GroupTicket(Ticket):
    """A forecast that waits for its outcome, and the groups in which it will count.

    Attributes
    ----------
    groups
        The names of its groups, those from rules included.
    """

    __slots__ = ("groups",)

    groups: Names

    @classmethod
    def revived(cls, issuer: Any, id: int | str, number: int, fields: tuple[Any, ...]) -> Self:
        """Return a ticket again from what the desk kept."""
        made = super().revived(issuer, id, number, fields[:-1])
        made.groups = issuer.names[fields[-1]]
        return made

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket: the key of its names last."""
        return *super().fields, key_of_names(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as JSON-ready data, for callers that store it."""
        return super().to_dict() | {"groups": [written(name) for name in self.groups]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read a ticket back from what :meth:`to_dict` gave."""
        made = super().from_dict(data)
        try:
            made.groups = names_of([read(part) for part in data["groups"]])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptState(f"ticket must be what to_dict() gave, got {error}") from error
        return made


class GroupCounter(Counter[Any]):
    """Open tickets of a stream with groups, and their names.

    The names of tickets that are closed are dropped once they are as many as those in use.
    """

    __slots__ = ("_most",)

    def __init__(self, issuer: GroupIssuer, fields: str, max_open: int) -> None:
        super().__init__(GroupTicket, issuer, issuer.fingerprint, fields, max_open)
        self._most = FEW

    def file_latest(self) -> None:
        """Put the latest ticket on the desk, and its names into the table."""
        if self.latest is not None:
            names: dict[int, Names] = self.issuer.names
            names[key_of_names(self.latest.groups)] = self.latest.groups
            super().file_latest()
            if len(names) > self._most:
                self.issuer.names = kept = self.names_in_use()
                self._most = FEW + 2 * len(kept)

    def find(self, ticket: Any, issued: int) -> GroupTicket:
        """Return an open ticket given itself or its id, or raise what says why there is none."""
        if isinstance(ticket, Ticket) and not isinstance(ticket, GroupTicket):
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {ticket!r}")
        found: GroupTicket = super().find(ticket, issued)
        return found

    def names_in_use(self) -> dict[int, Names]:
        """Return the names of the tickets on the desk by key, in order."""
        keys = np.unique(self.desk.words()[:, -1]).tolist()
        return {key: self.issuer.names[key] for key in keys}


@functools.lru_cache(maxsize=4096)
def key_of_names(names: Names) -> int:
    """Return 63 bits of a hash of names in their order.

    Two tuples share a key with probability 2**-63.

    >>> key_of_names(("a", 3)) == key_of_names(("a", "3"))
    False
    """
    text = json.dumps([written(name) for name in names]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def written(name: Name) -> Any:
    """Return a name as JSON-ready data."""
    return list(name) if isinstance(name, Period) else name


def read(part: Any) -> Any:
    """Return the name that was written so."""
    return Period(*part) if isinstance(part, list) else part
