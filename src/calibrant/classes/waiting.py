"""Open tickets of forecasts over classes: what is needed to learn their outcomes, no vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.classes.ticket import ClassTicket
from calibrant.core.ledger import NEVER
from calibrant.errors import (
    ExpiredTicket,
    ForeignTicket,
    InvalidType,
    RepeatedTicket,
    TicketError,
    UnknownTicket,
)

__all__ = ["Entry", "Waiting"]


class Entry(NamedTuple):
    """What is kept of an open ticket.

    ``place`` and ``slot`` say what learns its outcome: an engine and its own ticket's
    number, or a cell and the grid point that was drawn.
    """

    number: int
    place: int
    slot: int
    time: float


class Waiting:
    """The open tickets by id; one expires after ``max_open`` newer forecasts.

    Examples
    --------
    >>> waiting = Waiting("mine", max_open=2)
    >>> waiting.add("a", Entry(0, 5, 7, 12.5), issued=1)
    >>> waiting.find("a", issued=1)
    ('a', Entry(number=0, place=5, slot=7, time=12.5))
    >>> waiting.find("a", issued=3)
    Traceback (most recent call last):
    calibrant.errors.UnknownTicket: ticket must be one that is open here, got 'a'
    """

    def __init__(
        self, issuer: str, max_open: int, drop: Callable[[Entry], None] = lambda entry: None
    ) -> None:
        self.issuer, self.max_open, self.drop = issuer, max_open, drop
        self.entries: dict[int | str, Entry] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, id: int | str, entry: Entry, issued: int) -> None:
        """Keep what belongs to an id that is not open; sweep when many may have expired."""
        self.entries[id] = entry
        if len(self.entries) > self.max_open + self.max_open // 8:
            self.sweep(issued)

    def holds(self, id: str, issued: int) -> bool:
        """Say whether a ticket of that id is open; one that expired is forgotten."""
        found = self.entries.get(id)
        if found is not None and issued - found.number > self.max_open:
            self.drop(self.entries.pop(id))
            found = None
        return found is not None

    def find(self, ticket: Any, issued: int) -> tuple[int | str, Entry]:
        """Return id and entry of an open ticket given itself or its id; raise if there is none."""
        given = ticket if isinstance(ticket, ClassTicket) else None
        if given is not None and given.issuer != self.issuer:
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {ticket!r}")
        id = _id(ticket) if given is None else given.id
        found = self.entries.get(id)
        # A name may have been given away again since.
        other = given is not None and found is not None and found.number != given.number
        if found is None or other or issued - found.number > self.max_open:
            raise self._not_open(id, given, issued)
        return id, found

    def close(self, id: int | str) -> None:
        """Forget a ticket that is kept."""
        del self.entries[id]

    def sweep(self, issued: int) -> None:
        """Forget every ticket that expired."""
        for id, entry in list(self.entries.items()):
            if issued - entry.number > self.max_open:
                self.drop(self.entries.pop(id))

    def to_words(self) -> tuple[NDArray[np.int64], dict[str, str]]:
        """Return all entries as words, four each, and the names among their ids by number."""
        rows = [(*entry[:3], _bits(entry.time)) for entry in self.entries.values()]
        names = {str(e.number): id for id, e in self.entries.items() if isinstance(id, str)}
        return np.array(rows, np.int64).reshape(-1), names

    def load_words(self, words: NDArray[np.int64], names: dict[str, str], issued: int) -> None:
        """Keep the tickets that :meth:`to_words` gave."""
        rows = words.reshape(-1, 4)
        times = np.ascontiguousarray(rows[:, 3]).view(np.float64).tolist()
        for (number, place, slot), time in zip(rows[:, :3].tolist(), times, strict=True):
            id = names.get(str(number), number)
            if not 0 <= number < issued or id in self.entries:
                raise ValueError("tickets that were never issued")
            self.entries[id] = Entry(number, place, slot, time)

    def _not_open(self, id: int | str, given: ClassTicket | None, issued: int) -> TicketError:
        number = id if given is None else given.number
        if not isinstance(number, int) or not 0 <= number < issued:
            return UnknownTicket(f"ticket must be one that is open here, got {id!r}")
        if issued - number > self.max_open and (given is None or given.outcome is None):
            return ExpiredTicket(
                f"ticket {id!r} must be among the last {self.max_open}, got one of "
                f"{issued - number} forecasts ago: it expired"
            )
        return RepeatedTicket(f"ticket {id!r} must be open, got one whose outcome is known")


def _id(ticket: Any) -> int | str:
    if isinstance(ticket, bool) or not isinstance(ticket, (int, np.integer, str)):
        raise InvalidType(f"ticket must be a ticket of this recalibrator or its id, got {ticket!r}")
    return ticket if isinstance(ticket, str) else int(ticket)


def _bits(time: float) -> int:
    # One pattern for "no time", so that equal states have equal words.
    return int(np.array(NEVER if time != time else time).view(np.int64))
