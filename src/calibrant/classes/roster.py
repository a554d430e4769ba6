"""Rows of one arena by number, each made when it is first touched; and what a cell's row is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from calibrant.calibrators.arena import Arena
from calibrant.calibrators.layout import Layout
from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.core.limits import bits_of
from calibrant.errors import CorruptState
from calibrant.kernels.layout import COUNT, ISSUED, ROW, SECRET
from calibrant.recalibrate.body import packed
from calibrant.recalibrate.stream import Stream


class Roster:
    """Which number's row stands where.

    Nothing is kept of a number that was never touched, and nothing is stored of one that never
    made a forecast.  Rows are added in doubling numbers, so that each is moved a few times at most.

    Parameters
    ----------
    arena
        An arena of one row, before its first round.
    first
        The number to which this row belongs.
    most
        The largest number that there may be.
    seat
        Writes into a row, given its words and its number, what tells it from others.
    moved
        Called after the rows were moved.
    """

    __slots__ = ("_most", "_moved", "_places", "_seat", "arena")

    def __init__(
        self,
        arena: Arena,
        first: int,
        most: int,
        seat: Callable[[Words, int], None] = lambda row, number: None,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self.arena, self._most, self._seat, self._moved = arena, most, seat, moved
        self._places: dict[int, int] = {}
        self._add(first)

    def __contains__(self, number: object) -> bool:
        return number in self._places

    def __len__(self) -> int:
        return len(self._places)

    def place(self, number: int) -> int:
        """Return where the row of a number starts; without one, make it."""
        found = self._places.get(number)
        return self._add(number) if found is None else found

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all."""
        if rows > self.arena.rows:
            try:
                self.arena.add(rows - self.arena.rows)
                self._moved()
            except BaseException:
                self._moved()
                raise

    def forget(self, rows: int) -> None:
        """Have so many rows only, the first ones."""
        while len(self) > rows:
            self._places.popitem()

    def seat_all(self) -> None:
        """Write into all rows anew what tells them from others."""
        plain, size = self.arena.listed is not None, len(self.arena.layout.fresh)
        flat = self.arena.flat()
        for number, start in self._places.items():
            self._seat(flat[start : start + size], number)
        if plain:
            self.arena.words()

    def all(self) -> Iterator[tuple[int, Words]]:
        """Yield number and words of all rows, in order; nothing changes."""
        flat, size = self.arena.snapshot(), len(self.arena.layout.fresh)
        for number, start in sorted(self._places.items()):
            yield number, flat[start : start + size]

    def used(self) -> Iterator[tuple[int, Words]]:
        """Yield number and words of the rows that made a forecast, in order; nothing changes."""
        return (found for found in self.all() if found[1][ISSUED])

    def _add(self, number: int) -> int:
        """Make the row of a number; return where it starts."""
        row = self.arena.layout.fresh.copy()
        self._seat(row, number)
        return self._put(number, row)

    def _put(self, number: int, row: Words) -> int:
        if len(self) == self.arena.rows:
            self.reserve(2 * len(self))
        start = self.arena.place(len(self))
        self._write(start, row)
        self._places[number] = start
        return start

    def _write(self, start: int, row: Words) -> None:
        """Write a row into the form in which the arena is."""
        layout, listed = self.arena.layout, self.arena.listed
        if listed is None:
            self.arena.flat()[start : start + len(row)] = row
        else:
            # Of several rows: a list has every word in its place.
            words = layout.format_of(1).unpack(np.concatenate([layout.shared, row]).data)
            listed[start : start + len(row)] = words[layout.row :]

    # --------------------------------------------------------------------- state

    def to_arrays(self, secret: bool = True) -> dict[str, Words]:
        """Return all rows that were used, but for the first, as words; also without secrets."""
        first = next(iter(self._places))
        layout, rows = self.arena.layout, []
        for number, row in self.used():
            if not secret:
                row[SECRET : SECRET + 2] = 0
            if number != first:
                rows.append((number, packed(row, layout)))
        return packed_rows(rows)

    def load(self, first: Words, arrays: dict[str, Words], secret: bool = True) -> None:
        """Take in the first row, and what :meth:`to_arrays` gave."""
        [(own, start)] = self._places.items()
        self._write(start, self._checked(own, first, secret))
        table, words = arrays["numbers"].reshape(-1, 2), arrays["rows"]
        numbers, lengths = table[:, 0].tolist(), table[:, 1]
        if (np.diff(table[:, 0]) <= 0).any() or (lengths < 0).any() or lengths.sum() != len(words):
            raise ValueError("rows that are not in order")
        self.reserve(1 + len(numbers))
        cuts = np.split(words, np.cumsum(lengths)[:-1])
        for number, part in zip(numbers, cuts, strict=len(numbers) > 0):
            check.whole(number, "number of a row", high=self._most)
            row = self._checked(number, part, secret)
            if number in self or not row[ISSUED]:
                raise ValueError(f"a row at {number} that was not used, or twice")
            self._put(number, row)

    def _checked(self, number: int, words: Words, secret: bool) -> Words:
        """Return the row that a document holds for a number, if kernels can work with it."""
        row = Stream._verified(words, self.arena.layout)
        told = row[SECRET : SECRET + 2].tolist()
        self._seat(row, number)
        if secret and row[SECRET : SECRET + 2].tolist() != told:
            raise CorruptState(f"state must hold rows of its own, got another's at {number}")
        return row


def packed_rows(rows: list[tuple[int, Words]]) -> dict[str, Words]:
    """Return packed rows by number as two arrays: numbers with lengths, and the rows' words."""
    table = [(number, len(body)) for number, body in rows]
    bodies = [body for _, body in rows]
    return {
        "numbers": np.array(table, np.int64).reshape(-1),
        "rows": np.concatenate([np.empty(0, np.int64), *bodies]),
    }


@functools.lru_cache(maxsize=64)
def layout_of_cells(points: int, classes: int) -> Layout:
    """Return the layout of all cells on a grid of so many points.

    A row has its own words and then a block for each grid point: how often it was announced and
    each class came.  A cell counts its forecasts and outcomes as a stream does.

    >>> layout = layout_of_cells(6, 3)
    >>> layout.blocks_of(layout.fresh).shape
    (6, 3)
    """
    own, size = len(ROW), len(ROW) + points * classes
    fresh, nothing = np.zeros(size, np.int64), np.empty(0, np.int64)
    real, stored = np.zeros(size, bool), np.ones(size, bool)
    real[ROW.reals] = True
    limits = [*(field.limits for field in ROW.fields), *[COUNT] * (points * classes)]
    low, high = bits_of(limits, real)
    fresh.flags.writeable = False
    none = np.empty(0, bool)
    return Layout(nothing, fresh, ROW, own, classes, 0, none, real, stored, low, high)
