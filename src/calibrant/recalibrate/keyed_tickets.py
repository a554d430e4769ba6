"""Tickets of a table: found, made again from what the desk keeps, and why one is not open."""

from __future__ import annotations

from typing import Any

from calibrant.core import check
from calibrant.core.desk import NUMBER, Found, name_key
from calibrant.core.ticket import Issuer
from calibrant.errors import ForeignTicket, InvalidType
from calibrant.recalibrate.closed import EXPIRED, told_before
from calibrant.recalibrate.keyed import Key, KeyedTicket, checked_key
from calibrant.recalibrate.keyed_rows import NOBODY
from calibrant.recalibrate.keyed_store import KeyedStore
from calibrant.recalibrate.recalibrator import Recalibrator


class KeyedTickets(KeyedStore):
    """How the tickets of a table are found."""

    __slots__ = ("_earlier",)

    _earlier: set[str]
    """Whose tickets stay open in a forked process."""

    def _lone(self, ticket: KeyedTicket) -> tuple[int, Recalibrator]:
        """Return a ticket's row, and a lone copy of its stream."""
        if not isinstance(ticket, KeyedTicket):
            raise InvalidType(f"ticket must be a ticket of a table, got {ticket!r}")
        number = self._number_of(ticket.key)
        stream = self._made.from_bytes(self._lone_document(number).to_bytes())
        stream._counter.earlier = frozenset(self._earlier)
        if self._closed.fate(number, ticket.number) is EXPIRED:
            stream._counter.note(ticket.number, EXPIRED)
        return number, stream

    def _given(self, ticket: Any, found: Found) -> KeyedTicket:
        """Return a ticket that was given by its name, or by key and number."""
        _, number, n, place, weight, raw, stamp, clock, mixed, *kept = found
        drawn = [place, weight, mixed, clock, tuple(kept), None]
        moment, id = None if stamp != stamp else stamp, ticket if isinstance(ticket, str) else n
        return self._ticket(self._keys[number], number, id, n, raw, moment, drawn)

    def _find(self, ticket: Any) -> tuple[Found, KeyedTicket | None]:
        """Return what the desk keeps of an open ticket, and the ticket if it was given."""
        if isinstance(ticket, str):
            self._recall([], [ticket])
            found = self._desk.get(name_key(ticket))
            if found is None:
                raise self._not_open(ticket, NOBODY, None)
            return found, None
        given = ticket if isinstance(ticket, KeyedTicket) else None
        key, n = _pair(ticket) if given is None else (given.key, given.number)
        self._recall([key])
        number = self._numbers.get(key, NOBODY)
        if given is not None and number != NOBODY:
            self._check_owner(given, number)
        found = self._desk.get_number(number, n) if number != NOBODY and n <= NUMBER else None
        if found is None and given is not None and given.outcome is not None:
            raise told_before((key, n), given.outcome)
        if found is None:
            raise self._not_open((key, n), number, n)
        if given is not None and not given.agrees(found[3:]):
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {given!r}")
        return found, given

    def _check_owner(self, given: KeyedTicket, number: int) -> None:
        if given.whose not in (self._issuer(number).fingerprint, *self._earlier):
            raise ForeignTicket(f"ticket must be of this table, got another's: {given!r}")

    def _issuer(self, number: int) -> Issuer:
        return self._spec.issuer(self._secret(number))

    def _ticket(
        self,
        key: Key,
        number: int,
        id: int | str,
        n: int,
        raw: float,
        time: float | None,
        drawn: list[Any],
    ) -> KeyedTicket:
        place, weight, mixed, clock, kept, law = drawn
        issuer = self._issuer(number)
        told = None if clock < 0 else clock
        ticket = KeyedTicket(issuer, id, n, place, weight, raw, time, told, law, mixed, kept)
        ticket._key = key
        return ticket


def _pair(ticket: Any) -> tuple[Key, int]:
    if not isinstance(ticket, tuple) or len(ticket) != 2:
        rule = "ticket must be a ticket, its name, or its key and number"
        raise InvalidType(f"{rule}, got {ticket!r}")
    key, number = ticket
    return checked_key(key), check.whole(number, "number")
