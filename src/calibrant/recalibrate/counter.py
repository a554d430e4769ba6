"""The counter of a stream: which tickets are open, which are not, and why."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.desk import NEAR, Desk, Found, name_key
from calibrant.errors import (
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    TicketError,
    UnknownTicket,
)
from calibrant.kernels.index import NAMED
from calibrant.recalibrate.closed import EXPIRED, SETTLED, not_open, note, told_before
from calibrant.recalibrate.corrections import Corrections

NO_WORDS: Final = np.empty(0, np.int64)
NOTHING_CLOSED: Final[OrderedDict[int, str]] = OrderedDict()
NOBODY: Final[frozenset[str]] = frozenset()
"""What streams without a closed name, and without earlier owners, have in common."""


class AnyTicket(Protocol):
    """What every ticket has: shown to callers by properties, and set by the stream alone."""

    _id: int | str
    _number: int
    _time: float | None
    _outcome: Any

    @property
    def id(self) -> int | str:
        """By which the outcome is reported."""

    @property
    def number(self) -> int:
        """How many forecasts the stream had made before this one."""

    @property
    def time(self) -> float | None:
        """When the forecast was made, if that was told."""

    @property
    def outcome(self) -> Any:
        """What was reported, or None while the ticket is open."""

    @property
    def whose(self) -> str:
        """Fingerprint of the stream that made the ticket."""

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket."""

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket."""


TicketT = TypeVar("TicketT", bound=AnyTicket)


class Counter(Generic[TicketT]):
    """Open tickets of one stream: issued, found, settled, expired.

    The latest ticket is filed only when it is asked for or followed by another: most outcomes
    come before the next forecast.

    Parameters
    ----------
    kind
        Class of the tickets.
    issuer
        What all tickets have in common; ``kind.revived(issuer, id, number, fields)`` makes one
        again of what was kept.
    fields
        What the desk keeps of a ticket, a letter a word.
    max_open
        A ticket expires once that many newer forecasts were made.
    """

    __slots__ = (
        "_closed",
        "_desk",
        "_fields",
        "corrections",
        "earlier",
        "issuer",
        "kind",
        "latest",
        "max_open",
        "noted",
        "taken",
        "whose",
    )

    def __init__(self, kind: Any, issuer: Any, whose: str, fields: str, max_open: int) -> None:
        self.kind, self.issuer, self.whose, self.max_open = kind, issuer, whose, max_open
        self._fields = fields
        self._desk: Desk | None = None
        self.latest: TicketT | None = None
        self._closed = NOTHING_CLOSED
        self.corrections = Corrections()
        self.earlier = NOBODY
        self.taken: list[Found] | None = None
        self.noted: list[tuple[int, str | None]] | None = None

    @property
    def desk(self) -> Desk:
        """Where open tickets wait, made when the first one does."""
        if self._desk is None:
            self._desk = Desk(self._fields)
        return self._desk

    @desk.setter
    def desk(self, desk: Desk) -> None:
        self._desk = desk

    def issue_as(self, issuer: Any, whose: str) -> None:
        """Give out tickets of another issuer from now on; those of earlier ones stay ours."""
        self.earlier |= {self.whose}
        self.issuer, self.whose = issuer, whose

    def owns(self, ticket: TicketT) -> bool:
        """Say whether a ticket was given out here."""
        return ticket.whose == self.whose or ticket.whose in self.earlier

    def __len__(self) -> int:
        return (0 if self._desk is None else len(self._desk)) + (self.latest is not None)

    def words(self) -> NDArray[np.int64]:
        """Return the open tickets as they are stored, one after the other."""
        self.file_latest()
        return NO_WORDS if self._desk is None else self._desk.words().reshape(-1)

    def hand_out(self, ticket: TicketT) -> None:
        """Open a ticket, which becomes the latest."""
        if self.latest is not None:
            self.file_latest()
        self.latest = ticket

    def file_latest(self) -> None:
        """Put the latest ticket on the desk."""
        if (latest := self.latest) is not None:
            number = latest._number
            key = number if latest._id is number else _key(latest._id)
            if self.desk.get(key) is None:
                self.desk.add(key, 0, number, *latest.fields)
            self.latest = None

    def refuse_open(self, id: str) -> None:
        """Raise if a ticket of that name is open."""
        self.file_latest()
        if self.desk.get(name_key(id)) is not None:
            raise RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")

    def old(self, issued: int) -> list[Found]:
        """Return the open tickets that are too old once that many forecasts were made."""
        if issued <= self.max_open or not len(self):
            return []
        self.file_latest()
        return self.desk.old(0, issued - self.max_open)

    def expire(self, issued: int) -> list[Found]:
        """Take away and return the tickets that are too old once that many forecasts were made."""
        gone = self.old(issued)
        self.let_go(gone)
        if self._desk is not None:
            self._desk.pass_by(0, issued - self.max_open)
        return gone

    def let_go(self, gone: list[Found]) -> None:
        """Take away tickets that expire."""
        self.drop(gone)
        for found in gone:
            if found[0] >= NAMED:
                self._note(found[0], EXPIRED)

    def drop(self, gone: list[Found]) -> None:
        """Take tickets from the desk, as the desk keeps them; know of them if all is undone."""
        if self.taken is not None:
            self.taken += gone
        for found in gone:
            self.desk.pop_number(0, found[2])

    def follow(self) -> None:
        """Know from now on which tickets are taken from the desk, so that all can be undone."""
        self.file_latest()
        self.taken, self.noted = [], []

    def follow_no_more(self) -> None:
        """Forget what could be undone."""
        self.taken = self.noted = None

    def undo(self, first: int) -> None:
        """Be as before :meth:`follow`, when that many forecasts had been made."""
        taken, self.latest = self.taken or [], None
        numbers = self.numbers()
        for number in numbers[numbers >= first].tolist():
            self.desk.pop_number(0, number)
        for found in taken:
            if found[2] < first and self.desk.get_number(0, found[2]) is None:
                self.desk.add(*found)
        for key, how in reversed(self.noted or []):
            if how is None:
                self._closed.pop(key, None)
            else:
                self._closed[key] = how

    def aging(self, issued: int, apart: set[int]) -> list[Found]:
        """Return the open tickets that are too old once that many are issued, apart from some."""
        return [found for found in self.old(issued) if found[2] not in apart]

    def find(self, ticket: Any, issued: int) -> TicketT:
        """Return an open ticket given itself or its id, or raise what says why there is none."""
        latest = self.latest
        if latest is not None and ticket is latest:
            return latest
        self.file_latest()
        given: TicketT | None = ticket if isinstance(ticket, self.kind) else None
        if given is not None and not self.owns(given):
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {ticket!r}")
        id = checked_id(ticket) if given is None else given.id
        found = self.desk.get(_key(id)) if isinstance(id, str) or 0 <= id < issued else None
        if found is not None and given is None:
            revived: TicketT = self.kind.revived(self.issuer, id, found[2], found[3:])
            return revived
        if found is None or given is None or self._is_older(given, found[2]):
            raise self._not_open(id, given, issued)
        if found[2] != given.number or not given.agrees(found[3:]):
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        return given

    def check_waiting(self, numbers: NDArray[np.int64], issued: int) -> None:
        """Raise unless tickets of all these numbers are open."""
        self.file_latest()
        if NEAR * len(numbers) <= len(self):
            # A few look-ups, however many tickets wait.
            gone = [n for n in numbers.tolist() if self.desk.get_number(0, n) is None]
        else:
            gone = numbers[~np.isin(numbers, self.numbers())].tolist()
        for number in gone[:1]:
            self.find(number, issued)

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of all open tickets, in no order."""
        self.file_latest()
        count, stride = len(self.desk), self.desk.stride
        return self.desk.flat[1 : count * stride : stride]

    def _is_older(self, given: TicketT, number: int) -> bool:
        """Say whether a ticket is closed whose name is now that of the open one of that number."""
        named = isinstance(given.id, str) and given.number != number
        return named and self.desk.get_number(0, given.number) is None

    def close(self, ticket: TicketT, how: str = SETTLED) -> None:
        """Forget a ticket that was found."""
        if ticket is self.latest:
            self.latest, key = None, _key(ticket.id)
        else:
            desk = self.desk
            waits = None if self.taken is None else desk.get_number(0, ticket.number)
            if self.taken is not None and waits is not None:
                self.taken.append(waits)
            found = desk.pop_number(0, ticket.number)
            if not desk.count and desk.is_roomy:
                self._desk = None
            # A ticket with a name may have been asked for by its number.
            key = _key(ticket.id) if found is None else found[0]
        if key >= NAMED:
            self._note(key, how)
        if how is EXPIRED:
            self._note(ticket.number, how)

    def is_open(self, ticket: TicketT) -> bool:
        """Say whether a ticket that was found still waits."""
        return ticket is self.latest or self.holds(ticket.number)

    def holds(self, number: int) -> bool:
        """Say whether the ticket of that number is on the desk."""
        return self._desk is not None and self._desk.get_number(0, number) is not None

    def note_closed(self, keys: list[int], expired: list[bool]) -> None:
        """Remember of tickets that a batch closed what became of them: of those with a name."""
        for key, gone in zip(keys, expired, strict=True):
            if key >= NAMED:
                self._note(key, EXPIRED if gone else SETTLED)

    def _note(self, key: int, how: str) -> None:
        """Remember what became of a ticket, and of that many others only."""
        closed = self._closed = self._closed or OrderedDict()
        if self.noted is not None:
            self.noted.append((key, closed.get(key)))
        note(closed, key, how)

    def replaced(self, ticket: Any, outcome: Any, was: Any, issued: int) -> Any:
        """Return the outcome that a correction replaces; raise unless it is the one that stands.

        The ticket must be one of ours, and closed; ``was`` is what the caller says, or None.
        """
        if not isinstance(ticket, self.kind):
            raise InvalidType(f"ticket must be a {self.kind.__name__}, got {ticket!r}")
        self.given_out(ticket, issued)
        if ticket.outcome is None:
            self._refuse_unknown(ticket, was, issued)
        stands = self.corrections.get(ticket.number)
        for told, name in ((ticket.outcome, "ticket"), (was, "was")):
            if stands is not None and told is not None and told != stands:
                raise RepeatedTicket(
                    f"{name} must have the outcome that stands, {stands:g}, got {told}: "
                    "it was corrected already"
                )
            stands = told if stands is None else stands
        if stands == outcome:
            raise RepeatedTicket(
                f"outcome must differ from the known one to correct it, got {outcome} again"
            )
        return stands

    def given_out(self, ticket: Any, issued: int) -> TicketT:
        """Return a ticket that was given out here, open or closed, or an open one by its id."""
        found: TicketT = ticket if isinstance(ticket, self.kind) else self.find(ticket, issued)
        if not self.owns(found):
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {found!r}")
        if found.number >= issued:
            raise UnknownTicket(f"ticket must be one that was issued here, got {found!r}")
        return found

    def _refuse_unknown(self, ticket: TicketT, was: Any, issued: int) -> None:
        """Raise of a ticket that knows no outcome, unless it has one and the caller says which."""
        self.file_latest()
        waits = self.desk.get_number(0, ticket.number) is not None
        gone = self._closed.get(ticket.number) is EXPIRED
        if not waits and (gone or issued - ticket.number > self.max_open):
            raise self._not_open(ticket.id, ticket, issued)
        if waits or was is None:
            told = "an open one" if waits else "one without; pass what observe() returned, or was="
            raise InvalidInput(
                f"ticket {ticket.id!r} must have an outcome to be corrected, got {told}"
            )

    def _not_open(self, id: int | str, given: TicketT | None, issued: int) -> TicketError:
        if given is not None and given.outcome is not None:
            return told_before(id, given.outcome)
        number = id if given is None else given.number
        counted = number if isinstance(number, int) else None
        return not_open(id, counted, self._closed.get(_key(number)), issued, self.max_open)


def clock_of(made: Any, issued: int) -> int:
    """Return the clock at which a coin was thrown for a ticket, or for a part of one."""
    if made.clock is None:
        raise InvalidInput(f"ticket must be the one that forecast() returned, got {made!r}")
    if made.clock >= issued:
        raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {made!r}")
    return int(made.clock)


def checked_id(id: Any) -> int | str:
    """Return the id of a ticket, if that is what it is."""
    if isinstance(id, str):
        return id
    if not check.is_integer(id) or isinstance(id, bool):
        raise InvalidType(f"ticket must be a Ticket or its id, got {id!r}")
    return int(id)


def _key(id: int | str) -> int:
    return name_key(id) if isinstance(id, str) else id
