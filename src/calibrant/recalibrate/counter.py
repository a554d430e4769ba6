"""The counter of a stream: which tickets are open, which are not, and why."""

from __future__ import annotations

from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.desk import NEAR, Desk, Found
from calibrant.errors import (
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    TicketError,
    UnknownTicket,
)
from calibrant.kernels.index import NAMED
from calibrant.recalibrate.closed import (
    EXPIRED,
    SETTLED,
    Closed,
    key_of,
    not_open,
    plain_id,
    told_before,
)
from calibrant.recalibrate.corrections import Corrections

NO_WORDS: Final = np.empty(0, np.int64)
NOBODY: Final[frozenset[str]] = frozenset()
"""Earlier owners of the tickets of most streams."""
NEAREST: Final = 64
AT_ONCE: Final = 16
"""So many tickets before the latest wait as they are, and so many of these are filed at once."""


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

    The latest ticket is at hand: most outcomes come before the next forecast.  Those before it are
    *near* as they are, and the oldest of these are filed on the desk once they are too many: to
    file a ticket and to find it there again takes longer than to play a compiled round.

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
        "_filing",
        "_named",
        "_near",
        "corrections",
        "earlier",
        "issuer",
        "kind",
        "latest",
        "max_open",
        "taken",
        "whose",
    )

    def __init__(self, kind: Any, issuer: Any, whose: str, fields: str, max_open: int) -> None:
        self.kind, self.issuer, self.whose, self.max_open = kind, issuer, whose, max_open
        self._fields = fields
        self._desk: Desk | None = None
        self.latest: TicketT | None = None
        self._closed: Closed | None = None
        self._near: dict[int, TicketT] | None = None
        self._named: dict[int | str, TicketT] | None = None
        self._filing = False
        self.corrections = Corrections()
        self.earlier = NOBODY
        self.taken: list[Found] | None = None

    @property
    def desk(self) -> Desk:
        """Where open tickets wait that are not near any more, made when the first one does."""
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
        if self._filing:
            self._file(NEAREST)
        near = 0 if self._near is None else len(self._near)
        return near + (0 if self._desk is None else len(self._desk)) + (self.latest is not None)

    def words(self) -> NDArray[np.int64]:
        """Return the open tickets as they are stored, one after the other."""
        self.file_all()
        return NO_WORDS if self._desk is None else self._desk.words().reshape(-1)

    def hand_out(self, ticket: TicketT) -> None:
        """Open a ticket, which becomes the latest."""
        if self.latest is not None:
            self.move_on()
        self.latest = ticket

    def move_on(self) -> None:
        """Put the latest ticket near, and file the oldest ones there if that makes too many."""
        latest, near, named = self.latest, self._near, self._named
        if latest is None:
            return
        id = plain_id(latest._id)
        # No call until all is done, so that no interrupt comes in between.
        if near is None:
            near = self._near = {}
        if id is not latest._number:
            if named is None:
                named = self._named = {}
            named[id] = latest
        near[latest._number] = latest
        self.latest = None
        if len(near) > NEAREST:
            self._file(NEAREST - AT_ONCE)

    def file_all(self) -> None:
        """Put all open tickets on the desk."""
        self.move_on()
        if self._near:
            self._file(0)

    def _file(self, most: int) -> None:
        """File the oldest near tickets until at most that many are left."""
        near, desk = self._near or {}, self.desk
        if self._filing:
            self._file_on(near, desk)
        self._filing = True
        for ticket in [*near.values()][: max(len(near) - most, 0)]:
            desk.add(key_of(ticket._id), 0, ticket._number, *ticket.fields)
            self._leave(near, ticket)
        self._filing = False

    def _file_on(self, near: dict[int, TicketT], desk: Desk) -> None:
        """Let a ticket be near no more whose filing was interrupted when it was on the desk."""
        for number in [*near][:1]:
            if desk.get_number(0, number) is not None:
                self._leave(near, near[number])

    def _leave(self, near: dict[int, TicketT], ticket: TicketT) -> None:
        """Let a ticket be near no more."""
        named, id = self._named, plain_id(ticket._id)
        if named and named.get(id) is ticket:
            del named[id]
        del near[ticket._number]

    def _near_by(self, id: int | str) -> TicketT | None:
        """Return the near ticket of that number or name, or None."""
        known: Any = self._named if isinstance(id, str) else self._near
        found: TicketT | None = known.get(plain_id(id)) if known else None
        return found

    def _again(self, near: TicketT, id: int | str) -> TicketT:
        """Return a near ticket as if it came from the desk, under the id by which it was asked."""
        made: TicketT = self.kind.revived(self.issuer, id, near._number, near.fields)
        return made

    def refuse_open(self, id: str) -> None:
        """Raise if a ticket of that name is open."""
        if self.waits(id):
            raise RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")

    def waits(self, id: str) -> bool:
        """Say whether a ticket of that name is open."""
        latest = self.latest
        if latest is not None and plain_id(latest._id) == plain_id(id):
            return True
        if self._near_by(id) is not None:
            return True
        filed = self._desk is not None and len(self._desk) > 0
        return filed and self.desk.get(key_of(id)) is not None

    def old(self, issued: int) -> list[Found]:
        """Return the open tickets that are too old once that many forecasts were made."""
        oldest = issued - self.max_open
        if oldest <= 0 or not len(self):
            return []
        # Rounds that take no ticket make the latest one older too.
        if self.latest is not None and self.latest._number < oldest:
            self.move_on()
        near = self._near
        while near and next(iter(near)) < oldest:
            self._file(len(near) - 1)
        return [] if self._desk is None else self._desk.old(0, oldest)

    def expire(self, issued: int) -> list[Found]:
        """Take away and return the tickets that are too old once that many forecasts were made."""
        gone = self.old(issued)
        self.let_go(gone)
        if self._desk is not None:
            self._desk.pass_by(0, issued - self.max_open)
        return gone

    def let_go(self, gone: list[Found]) -> None:
        """Take away tickets that expire; what becomes of names is noted before."""
        for found in gone:
            if found[0] >= NAMED:
                self.note(found[0], EXPIRED)
        self.drop(gone)

    def drop(self, gone: list[Found]) -> None:
        """Take tickets from the desk, as the desk keeps them; know of them if all is undone."""
        if self.taken is not None:
            self.taken += gone
        for found in gone:
            self.desk.pop_number(0, found[2])

    def follow(self) -> None:
        """Know from now on which tickets are taken from the desk, so that all can be undone."""
        self.file_all()
        self.taken = []
        if self._closed is not None:
            self._closed.follow()

    def follow_no_more(self) -> None:
        """Forget what could be undone."""
        self.taken = None
        if self._closed is not None:
            self._closed.follow_no_more()

    def undo(self, first: int) -> None:
        """Be as before :meth:`follow`, when that many forecasts had been made."""
        taken, self.latest = self.taken or [], None
        numbers = self.numbers()
        for number in numbers[numbers >= first].tolist():
            self.desk.pop_number(0, number)
        for found in taken:
            if found[2] < first and self.desk.get_number(0, found[2]) is None:
                self.desk.add(*found)
        if self._closed is not None:
            self._closed.undo()

    def aging(self, issued: int, apart: set[int]) -> list[Found]:
        """Return the open tickets that are too old once that many are issued, apart from some."""
        return [found for found in self.old(issued) if found[2] not in apart]

    def find(self, ticket: Any, issued: int) -> TicketT:
        """Return an open ticket given itself or its id, or raise what says why there is none."""
        latest, near = self.latest, self._near
        if latest is not None and ticket is latest:
            return latest
        found: Found | None
        given: TicketT | None = ticket if isinstance(ticket, self.kind) else None
        if near and given is not None and near.get(given._number) is given:
            return given
        if given is not None and not self.owns(given):
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {ticket!r}")
        if latest is not None:
            self.move_on()
        id = ticket if type(ticket) is int else checked_id(ticket) if given is None else given._id
        told = self._near_by(id)
        if told is not None and given is None:
            return self._again(told, id)
        if told is not None:
            found = key_of(told._id), 0, told._number, *told.fields
        elif self._desk is not None and (isinstance(id, str) or 0 <= id < issued):
            found = self._desk.get(key_of(id))
        else:
            found = None
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
        self.file_all()
        if NEAR * len(numbers) <= len(self):
            # A few look-ups, however many tickets wait.
            gone = [n for n in numbers.tolist() if self.desk.get_number(0, n) is None]
        else:
            gone = numbers[~np.isin(numbers, self.numbers())].tolist()
        for number in gone[:1]:
            self.find(number, issued)

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of all open tickets, in no order."""
        self.file_all()
        count, stride = len(self.desk), self.desk.stride
        return self.desk.flat[1 : count * stride : stride]

    def _is_older(self, given: TicketT, number: int) -> bool:
        """Say whether a ticket is closed whose name is now that of the open one of that number."""
        named = isinstance(given.id, str) and given.number != number
        return named and not self.holds(given.number)

    def close(self, ticket: TicketT, how: str = SETTLED) -> None:
        """Forget a ticket that was found; again, if an interrupt came before all was noted."""
        if self._filing:
            self._file(NEAREST)
        number, near = ticket._number, self._near
        latest, told, waits = ticket is self.latest, None, None
        if not latest:
            told = near.get(number) if near else None
            waits = self.desk.get_number(0, number) if told is None else None
        # A ticket with a name may have been asked for by its number.
        id = waits[0] if waits is not None else ticket._id if told is None else told._id
        # What becomes of a name is noted before its ticket goes: it does not count until then.
        if id is not number and (key := key_of(id)) >= NAMED:
            self.note(key, how)
        if latest:
            self.latest = None
        elif near and told is not None:
            self._leave(near, told)
        elif waits is not None:
            self._pop(waits)
        if how is EXPIRED:
            self.note(number, how)

    def _pop(self, waits: Found) -> None:
        """Take a ticket from the desk, as the desk keeps it."""
        desk = self.desk
        if self.taken is not None:
            self.taken.append(waits)
        desk.pop_number(0, waits[2])
        if not desk.count and desk.is_roomy:
            self._desk = None

    def is_open(self, ticket: TicketT) -> bool:
        """Say whether a ticket, or one of which it is a copy, still waits."""
        latest, number = self.latest, ticket._number
        return (latest is not None and latest._number == number) or self.holds(number)

    def holds(self, number: int) -> bool:
        """Say whether the ticket of that number waits and is not the latest."""
        if self._near and number in self._near:
            return True
        return self._desk is not None and self._desk.get_number(0, number) is not None

    def note_closed(self, keys: list[int], expired: list[bool]) -> None:
        """Remember of tickets that a batch closed what became of them: of those with a name."""
        for key, gone in zip(keys, expired, strict=True):
            if key >= NAMED:
                self.note(key, EXPIRED if gone else SETTLED)

    def note(self, key: int, how: str) -> None:
        """Remember what became of a ticket, and of that many others only."""
        closed = self._closed
        if closed is None:
            closed = Closed()
            if self.taken is not None:
                closed.follow()
            self._closed = closed
        closed.note(key, how)

    def _fate(self, key: int) -> str | None:
        """Return what is remembered of a closed ticket, by its number or the key of its name."""
        return None if self._closed is None else self._closed.get(key)

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
        waits = self.is_open(ticket)
        gone = self._fate(ticket.number) is EXPIRED
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
        return not_open(id, counted, self._fate(key_of(number)), issued, self.max_open)


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
