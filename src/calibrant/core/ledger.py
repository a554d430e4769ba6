"""Open tickets: the only thing in a recalibrator that grows, and not beyond a cap.

:class:`Ledger` keeps fresh tickets as they are in a small dictionary, so that an
outcome that comes soon costs a look-up and no more.  Beyond `YOUNG` of them the older
half moves to a :class:`Vault`: flat arrays with an index, at most 48 bytes a ticket
all told.  A ticket expires once ``max_open`` newer forecasts were made, so there are
never more than that many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import (
    CalibrantError,
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    TicketError,
    UnknownTicket,
)
from calibrant.kernels.layout import CELL, NARROW, WIDTH

__all__ = ["MAX_OPEN", "YOUNG", "Entry", "Ledger", "Vault", "key_of"]

YOUNG: Final = 256
MAX_OPEN: Final = 1 << 22
EMPTY: Final = -1
WRAP: Final = 1 << 23
NEVER: Final = float("nan")
WORD: Final = 0xFFFF_FFFF_FFFF_FFFF
GOLDEN: Final = 0x9E37_79B9_7F4A_7C15
"""2**64 over the golden ratio: its multiples fall evenly (Knuth, volume 3, section 6.4)."""


class Entry(NamedTuple):
    """What is kept of an open ticket: enough to learn its outcome."""

    key: int
    number: int
    place: int
    weight: float
    raw: float
    time: float
    middle: float = NEVER
    kept: tuple[int, ...] = ()


def key_of(id: int | str) -> int:
    """Return the 63-bit key under which a ticket is filed.

    Numbers file themselves.  Names are hashed into the upper half of the range, so
    the two never meet; two names share a key with probability 2**-62.

    >>> key_of(17), key_of("order-17") >= 2**62
    (17, True)
    """
    if isinstance(id, int):
        return id
    hashed = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (1 << 62) | (int.from_bytes(hashed, "little") >> 2)


class Vault:
    """Open tickets in flat arrays, found by key.

    Five words a ticket (key; number, bucket, cell and side in one word; weight; raw
    forecast; time); where a transform stands in front, what it made of the raw forecast and what
    else it keeps.  They are kept dense by moving the last row into a freed one, with an
    index of 32-bit row numbers with linear probing at a load between 0.64 and 0.8.  Capacity
    grows by a thirty-second at a time, so that the sum stays below 48 bytes, or 8 more for
    each word more.
    """

    def __init__(self, reals: int = 3, kept: int = 0) -> None:
        self._last, self._columns = 2 + reals, 2 + reals + kept
        self._rows: NDArray[np.int64] = np.zeros((64, self._columns), np.int64)
        self._reals: NDArray[np.float64] = self._rows.view(np.float64)
        self._index: NDArray[np.int32] = np.full(96, EMPTY, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self._rows.nbytes + self._index.nbytes

    def add(self, entry: Entry) -> None:
        """File an entry whose key is not filed yet."""
        if self._count == len(self._rows):
            self._resize_rows(self._count + max(64, self._count // 32))
        if self._count >= 0.8 * len(self._index):
            self._reindex(max(96, int(1.25 * len(self._index))))
        row = self._count
        self._rows[row, 0] = entry.key
        self._rows[row, 1] = ((entry.number % WRAP) << 40) | entry.place
        self._reals[row, 2 : self._last] = entry[3 : 1 + self._last]
        self._rows[row, self._last :] = entry.kept
        self._index[self._free_slot(entry.key)] = row
        self._count += 1

    def get(self, key: int, issued: int) -> Entry | None:
        """Return the entry of that key, if there is one; ``issued`` dates its number."""
        slot = self._slot(key)
        return None if slot < 0 else self._entry(int(self._index[slot]), issued)

    def pop(self, key: int) -> None:
        """Remove the entry of that key, which must be there."""
        slot = self._slot(key)
        row, last = int(self._index[slot]), self._count - 1
        if row != last:
            self._index[self._slot(int(self._rows[last, 0]))] = row
            self._rows[row] = self._rows[last]
        self._close_gap(slot)
        self._count = last
        if self._count < 0.9 * len(self._rows) - 64:
            self._shrink()

    def entries(self, issued: int) -> Iterator[Entry]:
        """Yield all entries, in no particular order."""
        for row in range(self._count):
            yield self._entry(row, issued)

    def drop_older(self, oldest: int, issued: int) -> None:
        """Forget every entry whose number is below ``oldest``."""
        numbers = self._rows[: self._count, 1] >> 40
        ages = (issued - numbers) % WRAP
        keep = ages <= issued - oldest
        kept = self._rows[: self._count][keep]
        self._rows[: len(kept)] = kept
        self._count = len(kept)
        self._shrink()

    def _entry(self, row: int, issued: int) -> Entry:
        key, packed = int(self._rows[row, 0]), int(self._rows[row, 1])
        number = issued - (issued - (packed >> 40)) % WRAP
        rest = self._reals[row, 2 : self._last].tolist()
        kept = tuple(self._rows[row, self._last :].tolist())
        return Entry(key, number, packed & 0xFF_FFFF_FFFF, *rest)._replace(kept=kept)

    def _slot(self, key: int) -> int:
        size = len(self._index)
        slot = _home(key, size)
        while (row := self._index[slot]) != EMPTY:
            if self._rows[row, 0] == key:
                return slot
            slot = slot + 1 if slot + 1 < size else 0
        return -1

    def _free_slot(self, key: int) -> int:
        size = len(self._index)
        slot = _home(key, size)
        while self._index[slot] != EMPTY:
            slot = slot + 1 if slot + 1 < size else 0
        return slot

    def _close_gap(self, gap: int) -> None:
        # Linear probing without tombstones: whatever was pushed past the gap moves back.
        size = len(self._index)
        slot = gap
        while True:
            slot = slot + 1 if slot + 1 < size else 0
            row = self._index[slot]
            if row == EMPTY:
                break
            home = _home(int(self._rows[row, 0]), size)
            if (slot - home) % size >= (slot - gap) % size:
                self._index[gap] = row
                gap = slot
        self._index[gap] = EMPTY

    def _resize_rows(self, size: int) -> None:
        rows = np.zeros((size, self._columns), np.int64)
        rows[: self._count] = self._rows[: self._count]
        self._rows, self._reals = rows, rows.view(np.float64)

    def _reindex(self, size: int) -> None:
        self._index = np.full(size, EMPTY, np.int32)
        for row in range(self._count):
            self._index[self._free_slot(int(self._rows[row, 0]))] = row

    def _shrink(self) -> None:
        self._resize_rows(self._count + max(64, self._count // 32))
        self._reindex(max(96, int(self._count / 0.75)))


def _home(key: int, size: int) -> int:
    # Numbers come in a row; filed in a row, they would make one cluster as long as the vault.
    return ((key * GOLDEN & WORD) * size) >> 64


class Ledger:
    """The open tickets of one recalibrator.

    Every method that needs to know how old tickets are is told how many forecasts were
    ``issued`` so far.

    Examples
    --------
    >>> from calibrant.core.grid import Grid
    >>> issuer = Issuer("mine", Grid())
    >>> ledger = Ledger(issuer, max_open=100)
    >>> ledger.add(Ticket(issuer, 0, 0, 5, 1.0, 0.25, None, 0, None), issued=1)
    >>> ledger.find(0, issued=1).value
    0.25
    >>> ledger.find(7, issued=1)
    Traceback (most recent call last):
    calibrant.errors.UnknownTicket: ticket must be one that is open here, got 7
    """

    def __init__(self, issuer: Issuer, max_open: int) -> None:
        self.issuer = issuer
        self.max_open = max_open
        self.young: dict[int | str, Ticket] = {}
        self._reals, self._kept = 3 + issuer.fronted, issuer.kept
        self.vault = Vault(self._reals, self._kept)
        self.sweep_at = MAX_OPEN

    def __len__(self) -> int:
        return len(self.young) + len(self.vault)

    def add(self, ticket: Ticket, issued: int) -> None:
        """Keep a ticket whose id is not open."""
        self.young[ticket.id] = ticket
        if len(self.young) > YOUNG or issued > self.sweep_at:
            self.store_away(issued)

    def store_away(self, issued: int) -> None:
        """Move the older half of the fresh tickets into the vault; sweep when it is time."""
        if issued > self.sweep_at or len(self.vault) > self.max_open + self.max_open // 8:
            self.sweep(issued)
        for id in list(self.young)[: max(len(self.young) - YOUNG // 2, 0)]:
            self.vault.add(entry_of(self.young.pop(id)))

    def holds(self, id: int | str, issued: int) -> bool:
        """Say whether a ticket of that id is open; one that expired is forgotten."""
        found = self.young.get(id) or self._from_vault(id, issued)
        if found is not None and issued - found.number > self.max_open:
            self.close(found)
            found = None
        return found is not None

    def find(self, ticket: Any, issued: int) -> Ticket:
        """Return the open ticket given itself or its id, or raise what says why there is none."""
        if ticket.__class__ is not Ticket:
            return self._by_id(_as_id(ticket), None, issued)
        found = self.young.get(ticket.id)
        if found is ticket and issued - found.number <= self.max_open:
            return found
        self.check_issuer(ticket)
        found = self._by_id(ticket.id, ticket, issued)
        if isinstance(ticket.id, str) and found.number > ticket.number:
            # The name was given away again since.
            raise self._not_open(ticket.id, ticket, issued)
        if not _same(ticket, found):
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        return found

    def close(self, ticket: Ticket) -> None:
        """Forget a ticket that is kept."""
        if self.young.pop(ticket.id, None) is None:
            self.vault.pop(key_of(ticket.id))

    def sweep(self, issued: int, coming: int = 0) -> None:
        """Forget every ticket that expired, or will have after so many forecasts more."""
        oldest = issued + coming - self.max_open
        if oldest > 0:
            for id in [id for id, ticket in self.young.items() if ticket.number < oldest]:
                del self.young[id]
            self.vault.drop_older(oldest, issued)
        self.sweep_at = issued + coming + MAX_OPEN

    def make_way(self, issued: int, coming: int) -> None:
        """Sweep before so many forecasts at once if they could make numbers ambiguous."""
        if issued + coming > self.sweep_at:
            self.sweep(issued, coming)

    def check_issuer(self, ticket: Ticket) -> None:
        """Raise if the ticket is somebody else's."""
        if ticket.issuer.fingerprint != self.issuer.fingerprint:
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {ticket!r}")

    def check_closed(self, ticket: Any, outcome: int, issued: int) -> None:
        """Raise unless ``ticket`` is one of ours, closed, with another outcome than this."""
        if not isinstance(ticket, Ticket):
            raise InvalidType(f"ticket must be a Ticket, got {ticket!r}")
        self.check_issuer(ticket)
        if ticket.number >= issued:
            raise UnknownTicket(f"ticket must be one that was issued here, got {ticket!r}")
        if ticket.outcome == outcome:
            raise RepeatedTicket(
                f"outcome must differ from the known one to correct it, got {outcome} again"
            )
        if ticket.outcome is None:
            raise self._not_closed(ticket, issued)

    def to_words(self, issued: int) -> NDArray[np.int64]:
        """Return all tickets as words in the order in which they were issued.

        Six each, or seven where a transform stands in front.
        """
        self.sweep(issued)
        entries = [entry_of(ticket) for ticket in self.young.values()]
        entries += list(self.vault.entries(issued))
        entries.sort(key=lambda entry: entry.number)
        words = np.array([entry[:3] for entry in entries], np.int64).reshape(-1, 3)
        count = self._reals
        reals = np.array([entry[3 : 3 + count] for entry in entries], np.float64)
        reals = reals.reshape(-1, count)
        kept = np.array([entry.kept for entry in entries], np.int64)
        kept = kept.reshape(len(entries), self._kept)
        return np.hstack([words, reals.view(np.int64), kept]).reshape(-1)

    def load_words(
        self, words: NDArray[np.int64], issued: int, buckets: int, doublings: int = 0
    ) -> None:
        """Keep the tickets that :meth:`to_words` gave; pairs are up to 2**doublings cells wide."""
        rows = words.reshape(-1, 3 + self._reals + self._kept)
        reals = np.ascontiguousarray(rows[:, 3 : 3 + self._reals]).view(np.float64)
        key, number, place = rows[:, :3].T
        shares = np.delete(reals, 2, axis=1)
        named, unit = key >= 1 << 62, (shares >= 0.0) & (shares <= 1.0)
        inside = (place >= 0) & (((place >> 16) & NARROW) < buckets)
        paired = np.zeros(len(rows), bool) if self.issuer.many else reals[:, 0] < 1.0
        inside &= _on_grid(place, paired, self.issuer.grid.cells, doublings)
        kept = rows[:, 3 + self._reals :]
        fits = (named | (key == number)) & (number < issued) & inside & unit.all(1)
        fits &= (kept >= 0).all(1)
        if not fits.all() or (np.diff(number, prepend=-1) <= 0).any():
            raise ValueError("tickets that were never issued")
        if len(np.unique(key)) < len(key):
            raise ValueError("tickets with one id")
        for row, rest, words_kept in zip(
            rows[:, :3].tolist(), reals.tolist(), kept.tolist(), strict=True
        ):
            self.vault.add(Entry(*row, *rest)._replace(kept=tuple(words_kept)))

    def _by_id(self, id: int | str, given: Ticket | None, issued: int) -> Ticket:
        known = isinstance(id, str) or 0 <= id < issued
        found = self.young.get(id) or self._from_vault(id, issued) if known else None
        if found is None or issued - found.number > self.max_open:
            raise self._not_open(id, given, issued)
        return found

    def _from_vault(self, id: int | str, issued: int) -> Ticket | None:
        if not len(self.vault):
            return None
        entry = self.vault.get(key_of(id), issued)
        return None if entry is None else revive(self.issuer, id, entry)

    def _not_closed(self, ticket: Ticket, issued: int) -> CalibrantError:
        if issued - ticket.number > self.max_open:
            return self._not_open(ticket.id, ticket, issued)
        waiting = self.young.get(ticket.id) or self._from_vault(ticket.id, issued)
        is_open = waiting is not None and waiting.number == ticket.number
        told = "an open one" if is_open else "one without; pass what observe() returned"
        return InvalidInput(
            f"ticket {ticket.id!r} must have an outcome to be corrected, got {told}"
        )

    def _not_open(self, id: int | str, given: Ticket | None, issued: int) -> TicketError:
        if given is not None and given.outcome is not None:
            return RepeatedTicket(
                f"ticket {id!r} must be open, got one whose outcome {given.outcome} is known; "
                "use correct() to replace it"
            )
        number = id if given is None else given.number
        if not isinstance(number, int) or not 0 <= number < issued:
            return UnknownTicket(f"ticket must be one that is open here, got {id!r}")
        if issued - number > self.max_open:
            return ExpiredTicket(
                f"ticket {id!r} must be among the last {self.max_open}, got one of "
                f"{issued - number} forecasts ago: it expired"
            )
        return RepeatedTicket(f"ticket {id!r} must be open, got one whose outcome is known")


def entry_of(ticket: Ticket) -> Entry:
    """Return what is kept of a ticket."""
    time = NEVER if ticket.time is None else ticket.time
    middle = NEVER if ticket.middle is None else ticket.middle
    rest = ticket.place, ticket.weight, ticket.raw, time, middle, ticket._kept
    return Entry(key_of(ticket.id), ticket.number, *rest)


def revive(issuer: Issuer, id: int | str, entry: Entry) -> Ticket:
    """Return a ticket again from what was kept of it; its clock and law were not."""
    time = None if entry.time != entry.time else entry.time
    law = () if issuer.many else None
    weight, middle = entry.weight, entry.middle if issuer.fronted else None
    facts = entry.number, entry.place, weight, entry.raw, time
    return Ticket(issuer, id, *facts, None, law, middle, entry.kept)


def _as_id(id: Any) -> int | str:
    if isinstance(id, np.integer):
        return int(id)
    if not isinstance(id, (int, str)) or isinstance(id, bool):
        raise InvalidType(f"ticket must be a Ticket or its id, got {id!r}")
    return id


def _on_grid(
    place: NDArray[np.int64], paired: NDArray[np.bool_], cells: int, doublings: int
) -> NDArray[np.bool_]:
    """Say which places are on the grid, with their pair, which is 2**doublings wide at most."""
    told, cell = place >> (15 + WIDTH), place & CELL
    width = np.clip(told, 0, doublings)
    low = cell - (((place >> 15) & 1) << width)
    high = np.maximum(cell, low + (paired.astype(np.int64) << width))
    fits: NDArray[np.bool_] = (told == width) & (low >= 0) & (high < cells)
    return fits


def _same(one: Ticket, other: Ticket) -> bool:
    mine, its = entry_of(one), entry_of(other)
    return mine[1:5] == its[1:5] and (one.middle, mine.kept) == (other.middle, its.kept)
