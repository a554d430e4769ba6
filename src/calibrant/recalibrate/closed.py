"""What became of tickets that are not open, as far as it is remembered, and what is said of them.

Numbers tell nearly all: one that was given out is settled, or expired if it is too old.  Remembered
is what numbers do not tell: names, and tickets that expired before their time.  No part of a state:
what is stored, copied or pickled knows the numbers alone.

The oldest is forgotten first.  Closing a ticket is common and asking what became of it is not, so
closed ones stand one behind the other in an array, and are looked for by going through it.
"""

from __future__ import annotations

import functools
from array import array
from collections import OrderedDict
from typing import Any, Final

import numpy as np

from calibrant.core.desk import name_key
from calibrant.errors import ExpiredTicket, RepeatedTicket, TicketError, UnknownTicket
from calibrant.kernels.index import NAMED

CLOSED: Final = 65_536
"""Names, and tickets that expired before their time, of which is remembered what became of them."""
PIECE: Final = 8_192
"""So many are gone through at a time, the latest first: most are asked for soon, and the system
takes long to hand out the memory of larger pieces."""
SETTLED: Final = "settled"
EXPIRED: Final = "expired"


_lately: Final = functools.lru_cache(maxsize=512)(name_key)
"""Names are asked for several times while their tickets are open, and hashing takes a while."""


def plain_id(id: int | str) -> int | str:
    """Return an id, names as text alone: subclasses may be equal by other rules, or lack a hash."""
    return str.__str__(id) if isinstance(id, str) else id


def key_of(id: int | str) -> int:
    """Return the key of a ticket on a desk: that of its name, or its number."""
    return _lately(str.__str__(id)) if isinstance(id, str) else id


class Closed:
    """What became of tickets, by the keys of their names or by their numbers: of the latest ones.

    A ticket takes eight bytes, twice that at most.

    Examples
    --------
    >>> closed = Closed()
    >>> closed.note(17, EXPIRED)
    >>> closed.note(17, SETTLED)
    >>> closed.get(17), closed.get(18)
    ('settled', None)
    """

    __slots__ = ("_kept", "_words")

    def __init__(self) -> None:
        self._words = array("Q")
        self._kept: int | None = None

    def __len__(self) -> int:
        return min(len(self._words), CLOSED)

    def note(self, key: int, how: str) -> None:
        """Remember what became of a ticket: what was said of that key before counts no more."""
        words = self._words
        words.append(key << 1 | (how is EXPIRED))
        if len(words) >= 2 * CLOSED and self._kept is None:
            del words[:-CLOSED]

    def get(self, key: int) -> str | None:
        """Return what became of the latest ticket of that key, or None where that is not known."""
        if not 0 <= key < 2 * NAMED:
            return None
        size = len(self._words)
        first = max(size - CLOSED, 0)
        for end in range(size, first, -PIECE):
            words = np.array(self._words[max(end - PIECE, first) : end], np.uint64)
            found = np.flatnonzero(words >> np.uint64(1) == np.uint64(key))
            if len(found):
                return EXPIRED if int(words[found[-1]]) & 1 else SETTLED
        return None

    def follow(self) -> None:
        """Forget nothing from now on, so that all can be undone."""
        self._kept = len(self._words)

    def undo(self) -> None:
        """Know what was known at :meth:`follow`."""
        del self._words[self._kept :]

    def follow_no_more(self) -> None:
        """Forget what could be undone."""
        self._kept = None
        if len(self._words) >= 2 * CLOSED:
            del self._words[:-CLOSED]


def not_open(
    id: Any, number: int | None, how: str | None, issued: int, max_open: int
) -> TicketError:
    """Return the error that says why there is no such open ticket.

    ``number`` is the ticket's in its stream, which has made ``issued`` forecasts, or None where a
    name is all that is told; ``how`` is what is remembered of the ticket.
    """
    known = number is not None and 0 <= number < issued
    if number is not None and known and issued - number > max_open:
        return ExpiredTicket(
            f"ticket {id!r} must be among the last {max_open}, got one of "
            f"{issued - number} forecasts ago: it expired"
        )
    if how is EXPIRED:
        return ExpiredTicket(f"ticket {id!r} must be open, got one that was expired")
    if known or how is SETTLED:
        return RepeatedTicket(f"ticket {id!r} must be open, got one whose outcome is known")
    return UnknownTicket(f"ticket must be one that is open here, got {id!r}")


def told_before(id: Any, outcome: Any) -> RepeatedTicket:
    """Return the error that a ticket has its outcome."""
    return RepeatedTicket(
        f"ticket {id!r} must be open, got one whose outcome {outcome} is known; "
        "use correct() to replace it"
    )


class KeyedClosed:
    """What became of tickets of a table: by name, and by row and number.

    Attributes
    ----------
    names
        What became of the latest ticket of each name, by the name's key on the desk.
    rows
        By row, the numbers of tickets that expired before their time.
    count
        How many numbers these are in all.
    """

    __slots__ = ("count", "names", "rows")

    def __init__(self) -> None:
        self.names = Closed()
        self.rows: OrderedDict[int, OrderedDict[int, None]] = OrderedDict()
        self.count = 0

    def note_name(self, key: int, how: str) -> None:
        """Remember what became of a ticket if that has a name, given by its key on the desk."""
        if key >= NAMED:
            self.names.note(key, how)

    def note_number(self, row: int, number: int) -> None:
        """Remember that a ticket expired before its time."""
        numbers = self.rows.pop(row, None) or OrderedDict()
        self.count -= len(numbers)
        numbers[number] = None
        self.rows[row] = numbers
        self.count += len(numbers)
        while self.count > CLOSED:
            first = next(iter(self.rows))
            self.rows[first].popitem(last=False)
            self.count -= 1
            if not self.rows[first]:
                del self.rows[first]

    def drop_row(self, row: int) -> None:
        """Forget the numbers of a row, which may begin again."""
        self.count -= len(self.rows.pop(row, ()))

    def fate(self, row: int, number: int) -> str | None:
        """Return what became of a ticket before its time, if anything did."""
        return EXPIRED if number in self.rows.get(row, ()) else None
