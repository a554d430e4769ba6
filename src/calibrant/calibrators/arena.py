"""Rows of one layout, in the form in which they are worked on."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.calibrators.layout import Layout
from calibrant.core.arrays import Words


class Arena:
    """The shared part of a layout and its rows: one truth, in one of two forms.

    Plain Python works on a list, with a float wherever a word is a real: reading and writing
    takes a third of the time that an array or a view of one takes.  Reals of a single row that
    few rounds touch are in an array behind the list's other words, as
    :meth:`~calibrant.calibrators.layout.Layout.shortened` says.  Compiled code works on the
    array.  Only one form exists at a time; going over to the other replaces it.  Reading goes
    through :meth:`snapshot`, which changes nothing.

    ``listed`` is the list, or None while the array is the truth.
    """

    __slots__ = ("_flat", "layout", "listed", "rows")

    def __init__(
        self, layout: Layout, flat: Words | None = None, listed: list[Any] | None = None
    ) -> None:
        self.layout, self.rows, self.listed = layout, 1, listed
        self._flat = layout.alone.copy() if flat is None and listed is None else flat

    def words(self) -> list[Any]:
        """Go over to the list, and return it."""
        if self.listed is None:
            assert self._flat is not None
            listed = listed_like(self._flat, self.layout, self.rows)
            # One store makes the list the truth.
            self.listed = listed
            self._flat = None
        return self.listed

    def flat(self) -> Words:
        """Go over to the array, and return it."""
        if self.listed is not None:
            self._flat = self.snapshot()
            self.listed = None
        assert self._flat is not None
        return self._flat

    def as_is(self) -> Any:
        """Return the form that there is; None where another thread just goes over to the other."""
        listed = self.listed
        return self._flat if listed is None else listed

    def snapshot(self) -> Words:
        """Return a copy as an array; nothing changes."""
        if self.listed is None:
            assert self._flat is not None
            return self._flat.copy()
        listed = self.layout.lengthened(self.listed)
        form = self.layout.format_of(self.rows)
        size = form.size // 8
        flat = np.empty(len(listed), np.int64)
        form.pack_into(flat.data, 0, *(listed[:size] if len(listed) > size else listed))
        flat[size:] = listed[size:]
        return flat

    def row(self, number: int = 0) -> Words:
        """Return a copy of a row; nothing changes."""
        start = self.place(number)
        return self.snapshot()[start : start + len(self.layout.fresh)]

    def place(self, number: int) -> int:
        """Return where a row starts."""
        return self.layout.row + number * len(self.layout.fresh)

    def add(self, rows: int = 1, fresh: bool = True) -> int:
        """Add rows, fresh ones or such that are written before they are read.

        Returns the number of the first.
        """
        old, first = self.flat(), self.rows
        grown = np.empty(len(old) + rows * len(self.layout.fresh), np.int64)
        grown[: len(old)] = old
        if fresh:
            grown[len(old) :].reshape(rows, -1)[:] = self.layout.fresh
        self._flat, self.rows = grown, first + rows
        return first


class Bench:
    """Where plain steps work: on an arena's list, or on views of its array."""

    __slots__ = ("_views", "arena")

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._views: tuple[Any, Any] | None = None

    def state(self) -> tuple[Any, Any]:
        """Return the words and the reals on which plain steps work."""
        if self._views is not None:
            return self._views
        words = self.arena.listed or self.arena.words()
        return words, words

    def use_views(self) -> None:
        """Work on the array from now on, through fast views."""
        flat = self.arena.flat()
        self._views = flat.data, flat.view(np.float64).data


def listed_like(flat: Words, layout: Layout, rows: int) -> list[Any]:
    """Return words as a list, with a float wherever a word is a real.

    Words that are still as in a fresh row are the same objects for all lists of a layout, so that
    a model which has seen little takes little room.
    """
    words = layout.format_of(rows).unpack_from(flat.data)
    rest: list[int] = flat[len(words) :].tolist()
    if rows > 1:
        return [*words, *rest]
    listed: list[Any] = layout.alone_list.copy()
    for place in np.flatnonzero(flat[: len(words)] != layout.alone).tolist():
        listed[place] = words[place]
    return layout.shortened(listed + rest)
