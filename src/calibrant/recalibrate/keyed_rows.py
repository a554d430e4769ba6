"""Rows of a table by key: made, found, dropped."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from itertools import filterfalse, repeat
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.core.desk import Desk, Found
from calibrant.core.gate import Gate
from calibrant.core.stateful import Stateful
from calibrant.core.together import in_slices
from calibrant.errors import InvalidInput
from calibrant.kernels.layout import ISSUED, SECRET
from calibrant.recalibrate.closed import KeyedClosed
from calibrant.recalibrate.corrections import Corrections
from calibrant.recalibrate.crowd import Ages, Crowd
from calibrant.recalibrate.keyed import Key, Keys
from calibrant.recalibrate.rows import Rows
from calibrant.recalibrate.spec import Spec
from calibrant.recalibrate.tiers import Tiers

NOBODY: Final = -1
"""Row of an event that tells no key."""
MOST: Final = 1 << 22
"""Keys of a table, at most: tickets tell their row in 22 bits."""
GONE: Final = ""
"""Stands for the key of a row that is free."""


class KeyedRows(Stateful):
    """A row for each key, in two tiers.

    A key's row has a number as long as the key is there; rows of keys that are gone are free for
    new ones.
    """

    __slots__ = (
        "_ages",
        "_clock",
        "_closed",
        "_corrections",
        "_desk",
        "_free",
        "_gate",
        "_gone",
        "_keys",
        "_max_open",
        "_most_open",
        "_numbers",
        "_rows",
        "_seed",
        "_spec",
        "_stamps",
        "_taken",
        "_tiers",
        "jobs",
    )

    _spec: Spec
    _rows: Rows
    _tiers: Tiers
    _desk: Desk
    _gate: Gate
    _numbers: dict[Key, int]
    _keys: list[Key]
    _free: list[int]
    _closed: KeyedClosed
    """What became of tickets that are not open; no part of the state."""
    _corrections: dict[int, Corrections]
    _taken: list[Found]
    _max_open: int
    _most_open: int | None
    """How many tickets may be open in the whole table."""
    _ages: Ages | None
    """Open tickets by age, if the oldest go where there are more; None if one more is refused."""
    _seed: int
    _clock: int
    """How many calls touched something so far."""
    _stamps: Words
    """Which call touched each row last; 0 for a row that is free."""
    jobs: int
    """In how many threads a large batch is played, if its loops are compiled."""
    _gone: dict[Key, int]
    """Which call deleted a key last, which may be there again."""

    def _touch(self, numbers: Words | int) -> None:
        """Note that rows change."""
        clock = self._clock + 1
        self._stamps[numbers] = clock
        self._clock = clock

    def _crowd(self) -> Crowd | None:
        """Return what counts open tickets along, if there may be only that many."""
        return None if self._most_open is None else Crowd(self._desk, self._most_open, self._ages)

    @abstractmethod
    def _recall(self, keys: Iterable[Key], names: Iterable[Any] = ()) -> None:
        """Take back keys that went elsewhere: those, or of tickets with those names, or words."""

    def _number(self, key: Key) -> int:
        """Return the number of a key's row, which is made if the key is new."""
        number = self._numbers.get(key)
        if number is None:
            self._make([key])
            number = self._numbers[key]
        return number

    def _admit(self, new: list[Key]) -> None:
        """Make rows for the keys of a column that are new, if there are any."""
        if new:
            self._make(new)

    def _new(self, keys: Keys) -> list[Key]:
        """Return the keys of a column that have no row yet."""
        return [*filterfalse(self._numbers.__contains__, keys.names)]

    def _make(self, keys: list[Key]) -> None:
        """Make rows for new keys."""
        numbers, old = self._free_rows(len(keys)), len(self._keys)
        end = max(old, int(numbers.max(initial=-1)) + 1)
        if end > MOST:
            raise InvalidInput(f"keys must be at most {MOST} in a table, got {end}")
        self._make_room(end)
        again = len(keys) - (end - old)
        for number, key in zip(numbers[:again].tolist(), keys, strict=False):
            self._keys[number] = key
        del self._free[len(self._free) - again :]
        # As of the call that makes them, which touches them yet.
        self._stamps[numbers] = self._clock + 1
        # What is interrupted before here leaves rows that nobody uses, and no key.
        self._keys += keys[again:]
        self._numbers |= zip(keys, numbers.tolist(), strict=True)

    def _make_room(self, count: int) -> None:
        """Have rows with numbers up to ``count``."""
        self._tiers.make_room(count)
        if count > len(self._stamps):
            stamps = np.zeros(len(self._tiers.slots), np.int64)
            stamps[: len(self._stamps)] = self._stamps
            self._stamps = stamps

    def _drop_key(self, key: Key) -> None:
        """Forget a key; its row is free."""
        number = self._numbers[key]
        try:
            self._free_row(key, number)
        except BaseException:
            # From the beginning again, whatever was done: that ends the same.
            self._free_row(key, number)
            raise

    def _free_row(self, key: Key, number: int) -> None:
        self._desk.drop_row(number)
        self._tiers.forget(number)
        self._corrections.pop(number, None)
        self._closed.drop_row(number)
        self._keys[number] = GONE
        self._stamps[number] = 0
        self._numbers.pop(key, None)
        if number not in self._free[-1:]:
            self._free.append(number)

    def _issued(self, number: int) -> int:
        """Return how many forecasts a row has made."""
        return int(self._words(number)[ISSUED])

    def _place(self, number: int) -> int:
        """Return where a row starts, which is hot from now on."""
        self._tiers.warm_one(number, self._stamps)
        return self._tiers.place(number)

    def _words(self, number: int) -> Words:
        """Return a view of a row, which is hot from now on."""
        self._tiers.warm_one(number, self._stamps)
        return self._tiers.words(number)

    def _secret(self, number: int) -> bytes:
        return self._words(number)[SECRET : SECRET + 2].astype("<i8").tobytes()

    def _own(self, word: int, rows: Words) -> Words:
        """Return a word of some rows; rows that are not there yet have zero."""
        found, made = np.zeros(len(rows), np.int64), rows < len(self._keys)
        found[made] = self._tiers.own(word, rows[made])
        return found

    def _rows_of(self, keys: Keys) -> Words:
        """Return the row of each key of a column; those of new keys will follow the others."""
        found = map(self._numbers.get, keys.names, repeat(NOBODY))
        rows = np.fromiter(found, np.int64, len(keys.names))
        new = rows == NOBODY
        rows[new] = self._free_rows(int(new.sum()))
        found_rows = np.empty(len(keys.codes), np.int64)

        def find(_: int, part: slice) -> None:
            found_rows[part] = rows[keys.codes[part]]

        in_slices(len(found_rows), self.jobs, find)
        return found_rows

    def _free_rows(self, count: int) -> Words:
        """Return which rows new keys will get: those of keys that are gone, then further ones."""
        again = self._free[: -count - 1 : -1] if count else []
        more = len(self._keys) + np.arange(count - len(again))
        return np.concatenate([np.array(again, np.int64), more])
