"""Rows in two tiers: those in use as they are in an arena, the others packed in a heap.

A row has a *number* for ever, and a *slot* of the arena as long as it is hot.  A row that is cold
is told by a record: where its body stands in the heap, its size, and the words that batches ask
for before they play.  A cold row without a body is fresh: its secret follows from seed and key.

One assignment makes a row hot, or cold: before it, the other form is complete.  So an interrupt at
any place leaves every row in one of its two forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from calibrant.calibrators.arena import Arena
from calibrant.core.arrays import Words
from calibrant.kernels import layout as word
from calibrant.recalibrate.body import AT_ONCE
from calibrant.recalibrate.heap import LEAST, MAPPED, Heap, copied_parts
from calibrant.recalibrate.keyed import Key
from calibrant.recalibrate.rows import Rows
from calibrant.recalibrate.secret import secrets_of
from calibrant.recalibrate.spec import Spec

START, SIZE = Heap.START, Heap.SIZE
OWN: Final = (word.ISSUED, word.ROUNDS, word.MOST_OUTSTANDING)
"""Words of a row that its record tells as well."""
RECORD: Final = 2 + len(OWN)
BYTES: Final = 1 << 25
"""Hot rows take this many bytes at most, unless a table is told otherwise."""
INDEX: Final = (1 << 31) - 1
"""Words of an arena, at most: kernels count them in 31 bits."""
TOGETHER: Final = 1024
"""Rows that are hot in turn, where not all can be."""
NOWHERE: Final = -1


class Tiers:
    """The rows of one spec, hot and cold.

    Parameters
    ----------
    spec
        What the rows are.
    keys
        Whose row each number is.
    seed
        What the secrets of fresh rows follow from, with the keys.
    hot
        So many rows stay in the arena after a call; a batch that needs more at once plays them in
        turn.
    """

    __slots__ = (
        "_owners",
        "_spare",
        "_taken",
        "heap",
        "hot",
        "keys",
        "rows",
        "seed",
        "slots",
        "spec",
    )

    def __init__(self, spec: Spec, keys: list[Key], seed: int, hot: int | None = None) -> None:
        self.spec, self.keys, self.seed = spec, keys, seed
        size = len(spec.layout.fresh)
        most = (INDEX - spec.layout.row) // size
        self.hot = min(most, max(1, BYTES // (8 * size)) if hot is None else hot)
        self.heap, self._spare = Heap(np.zeros((1, RECORD), np.int64)), list[int]()
        self.rows = Rows(spec, Arena(spec.layout))
        self.rows.use_views()
        self._owners, self._taken = np.full(1, NOWHERE), 0
        self.slots = np.full(1, NOWHERE)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        own = self.slots.nbytes + self._owners.nbytes
        return own + self.heap.nbytes + self.rows.arena.flat().nbytes

    def make_room(self, count: int) -> None:
        """Have numbers up to ``count``."""
        if count > len(self.slots):
            room = max(8, count, len(self.slots) * 5 // 4)
            slots = np.full(room, NOWHERE)
            slots[: len(self.slots)] = self.slots
            self.heap.make_room(room)
            self.slots = slots

    # ------------------------------------------------------------------ hot rows

    def place(self, number: int) -> int:
        """Return where a hot row starts."""
        return self.rows.arena.place(int(self.slots[number]))

    def places(self, numbers: Words) -> Words:
        """Return where hot rows start."""
        layout = self.spec.layout
        found: Words = layout.row + self.slots[numbers] * len(layout.fresh)
        return found

    def words(self, number: int) -> Words:
        """Return a view of a hot row."""
        start = self.place(number)
        return self.rows.arena.flat()[start : start + len(self.spec.layout.fresh)]

    def _table(self) -> Words:
        """Return a view of all slots."""
        layout = self.spec.layout
        return self.rows.arena.flat()[layout.row :].reshape(-1, len(layout.fresh))

    def own(self, which: int, numbers: Words) -> Words:
        """Return a word of rows, hot or cold."""
        found: Words = self.heap.records[numbers, 2 + OWN.index(which)]
        hot = self.slots[numbers] >= 0
        found[hot] = self.rows.arena.flat()[self.places(numbers[hot]) + which]
        return found

    def put(self, numbers: Words, rows: Words) -> None:
        """Let hot rows be these."""
        self._table()[self.slots[numbers]] = rows

    def copies(self, numbers: Words) -> Words:
        """Return copies of rows, hot or cold; no row changes its tier."""
        size = len(self.spec.layout.fresh)
        made, hot = np.empty((len(numbers), size), np.int64), self.slots[numbers] >= 0
        made[hot] = self._table()[self.slots[numbers[hot]]]
        cold = np.flatnonzero(~hot)
        if len(cold):
            made[cold] = self.spec.layout.fresh
            self._unpack(numbers[cold], made.reshape(-1), cold * size)
        return made

    def pieces(self, numbers: Words) -> Iterator[Words]:
        """Return copies of rows, some at a time."""
        for first in range(0, max(len(numbers), 1), AT_ONCE):
            yield self.copies(numbers[first : first + AT_ONCE])

    def _unpack(self, numbers: Words, flat: Words, places: Words) -> None:
        """Write cold rows over fresh ones of an array."""
        sizes = self.heap.records[numbers, SIZE]
        stored, fresh = np.flatnonzero(sizes), np.flatnonzero(sizes == 0)
        for words, some, begin in self.heap.parts(numbers[stored]):
            of = stored[some]
            self.spec.body.unpack_rows(words, begin, begin + sizes[of], flat, places[of])
        secrets = flat[places[:, None] + np.arange(word.SECRET, word.SECRET + 2)]
        if len(fresh):
            keys = [self.keys[number] for number in numbers[fresh].tolist()]
            secrets[fresh] = secrets_of(self.seed, keys)
        self.spec.seat_at(flat, places, secrets)

    # -------------------------------------------------------------------- warming

    def groups(self, places: Words, rows: Words, stamps: Words) -> Iterator[Words]:
        """Yield places of a column of rows, in groups whose rows are hot then.

        Rows that cannot be hot all at a time are in turn, few enough to stay close to the
        processor, and cold again afterwards.
        """
        if len(rows) <= self.hot and len(places):
            self.warm(rows[places], stamps)
            yield places
            return
        step = min(self.hot, TOGETHER)
        for first in range(0, len(places), step):
            some = places[first : first + step]
            self.warm(rows[some], stamps)
            yield some
            self.cool(rows[some])

    def warm_one(self, number: int, stamps: Words) -> None:
        """Let a row be hot."""
        if self.slots[number] < 0:
            self.tidy()
            self.warm(np.array([number]), stamps)

    def warm(self, numbers: Words, stamps: Words) -> None:
        """Let rows be hot, at most ``hot`` of them; of the others those go that rested longest."""
        cold = numbers[self.slots[numbers] < 0]
        if not len(cold):
            return
        slots = self._free_slots(len(cold), numbers, stamps)
        for first in range(0, len(cold), AT_ONCE):
            some, seats = cold[first : first + AT_ONCE], slots[first : first + AT_ONCE]
            self._table()[_run(seats)] = self.spec.layout.fresh
            self._owners[seats] = some
            flat = self.rows.arena.flat()
            self._unpack(some, flat, self.spec.layout.row + seats * len(self.spec.layout.fresh))
            # Nothing that the header tells is of what these slots hold now.
            flat[[word.HAND, word.NOTES, word.UNDO_NUMBER, word.UNDO_AT]] = -1
            self.slots[some] = seats

    def _free_slots(self, count: int, wanted: Words, stamps: Words) -> Words:
        """Return that many slots that are free, or become so."""
        if len(self._spare) < count:
            self._spare = self._unused()
        if len(self._spare) < count:
            total = len(self._owners)
            grown = min(self.hot + self._taken, max(8, 2 * total, total + count))
            if grown > total:
                self._add_slots(grown - total)
        if len(self._spare) < count:
            self._make_cold(count, wanted, stamps)
        found = self._spare[len(self._spare) - count :]
        del self._spare[len(self._spare) - count :]
        return np.array(found[::-1], np.int64)

    def _unused(self) -> list[int]:
        """Return the slots in which no row is hot, the first one last."""
        owners = self._owners
        free = (owners < 0) | (self.slots[owners] != np.arange(len(owners)))
        free[: self._taken] = False
        found: list[int] = np.flatnonzero(free)[::-1].tolist()
        return found

    def _add_slots(self, count: int) -> None:
        owners = np.full(len(self._owners) + count, NOWHERE)
        owners[: len(self._owners)] = self._owners
        try:
            if len(owners) > self.rows.arena.rows:
                self.rows.arena.add(len(owners) - self.rows.arena.rows, fresh=False)
            self.rows.use_views()
        except BaseException:
            self.rows.use_views()
            raise
        self._owners = owners
        self._spare = self._unused()

    def set_apart(self, headers: int) -> None:
        """Have room for that many more headers, before all rows: one for each thread but the first.

        A thread that is given the array from its header on finds there what is the same for all
        rows, scratch words of its own, and the rows at places that are less by as much.
        """
        layout = self.spec.layout
        slots = -(-headers * layout.row // len(layout.fresh))
        if slots > self._taken:
            there = self._owners[:slots]
            self.cool(np.unique(there[there >= 0]))
            if slots >= len(self._owners):
                self._add_slots(slots + 1 - len(self._owners))
            self._owners[:slots] = NOWHERE
            self._taken = slots
            self._spare = self._unused()

    def headers(self, count: int) -> list[int]:
        """Return where the header of each thread starts, all of them as the first one is."""
        flat, size = self.rows.arena.flat(), self.spec.layout.row
        flat[size : count * size].reshape(-1, size)[:] = flat[:size]
        return [number * size for number in range(count)]

    def _make_cold(self, count: int, wanted: Words, stamps: Words) -> None:
        """Free slots of rows that rested longest, and a few more for those who come next."""
        stays = np.zeros(len(self.slots), bool)
        stays[wanted] = True
        hot = self._owners[self._owners >= 0]
        hot = hot[(self.slots[hot] >= 0) & ~stays[hot]]
        hot = hot[np.argsort(stamps[hot], kind="stable")]
        self.cool(np.unique(hot[: max(count, self.hot // 8)]))

    def cool(self, numbers: Words) -> None:
        """Let rows be cold."""
        hot = numbers[self.slots[numbers] >= 0]
        if len(hot):
            flat, places = self.rows.arena.flat(), self.places(hot)
            words, ends = self.spec.body.packed_rows(flat, places)
            records = np.empty((len(hot), RECORD), np.int64)
            records[:, SIZE] = np.diff(ends, prepend=0)
            for column, which in enumerate(OWN, 2):
                records[:, column] = flat[places + which]
            records[:, START] = self.heap.add(words) + ends - records[:, SIZE]
            self.release(hot, records)

    def release(self, numbers: Words, records: Words) -> None:
        """Let rows be cold as their records say, whatever was done to them since."""
        self.heap.records[numbers] = records
        slots = self.slots[numbers]
        self.slots[numbers] = NOWHERE
        # What is interrupted before here is found again when slots are scarce.
        self._spare += slots[slots >= 0][::-1].tolist()

    def tidy(self) -> None:
        """Sweep the heap if a third of it is garbage; nobody may have kept a record."""
        heap = self.heap
        if heap.used > heap.limit:
            live = np.flatnonzero((self.slots < 0) & (heap.records[:, SIZE] > 0))
            sizes, starts = heap.records[live, SIZE], heap.records[live, START]
            near = int(sizes[starts < MAPPED].sum())
            heap.limit = max(LEAST, 3 * near // 2)
            if 3 * near <= 2 * heap.used:
                self.heap = heap.swept(live)

    # --------------------------------------------------------------------- bodies

    def bodies(self, numbers: Words, room: Words) -> tuple[Words, Words]:
        """Return the bodies of rows one after the other, with room around, and where they end."""
        hot, sizes = self.slots[numbers] >= 0, self.heap.records[numbers, SIZE]
        flat = self.rows.arena.flat()
        if hot.all():
            return self.spec.body.packed_rows(flat, self.places(numbers), room)
        fresh = np.flatnonzero(~hot & (sizes == 0))
        made = self.copies(numbers[fresh])
        whole = made.reshape(-1), np.arange(len(fresh)) * made.shape[1]
        parts = [(np.flatnonzero(hot), flat, self.places(numbers[hot])), (fresh, *whole)]
        packed = [(some, *self.spec.body.packed_rows(*told)) for some, *told in parts if len(some)]
        for some, _, ends in packed:
            sizes[some] = np.diff(ends, prepend=0)
        over = np.cumsum(sizes + room.sum(1))
        words, places = np.zeros(int(over[-1]), np.int64), over - sizes - room[:, 1]
        for some, source, ends in packed:
            copied_parts(source, ends - sizes[some], sizes[some], words, places[some])
        cold = np.flatnonzero(~hot & (self.heap.records[numbers, SIZE] > 0))
        self.heap.copy(numbers[cold], words, places[cold])
        return words, over

    def take(self, numbers: Words, words: Words, sizes: Words, own: Words) -> None:
        """Let rows be cold with these bodies, one after the other, and these words of their own."""
        self.point(numbers, self.heap.add(words) + np.cumsum(sizes) - sizes, sizes, own)

    def point(self, numbers: Words, starts: Words, sizes: Words, own: Words) -> None:
        """Let rows be cold with bodies that stand in the heap."""
        records = np.empty((len(numbers), RECORD), np.int64)
        records[:, START], records[:, SIZE], records[:, 2:] = starts, sizes, own
        self.release(numbers, records)

    def forget(self, number: int) -> None:
        """Let a row be fresh."""
        self.release(np.array([number]), np.zeros((1, RECORD), np.int64))


def _run(slots: Words) -> Words | slice:
    """Return slots as a range if they follow each other: to write there takes half the time."""
    first, last = int(slots[0]), int(slots[-1])
    follow = last - first == len(slots) - 1 and bool((np.diff(slots) == 1).all())
    return slice(first, last + 1) if follow else slots
