"""Streams of a table as bytes by key, many at a time: out, in, and what changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.core.desk import NUMBER, SHIFT
from calibrant.core.gate import passing
from calibrant.errors import CorruptState, InvalidInput, RepeatedTicket, UnknownName
from calibrant.kernels.layout import ISSUED, ROUNDS, SECRET
from calibrant.recalibrate.binary import possible
from calibrant.recalibrate.body import AT_ONCE, WrongBody
from calibrant.recalibrate.corrections import Corrections
from calibrant.recalibrate.keyed import Key, checked_key
from calibrant.recalibrate.keyed_batches import KeyedBatches
from calibrant.recalibrate.keyed_state import NAMED
from calibrant.recalibrate.parcel import HEAD, TAIL, Parcels, mark_of


class KeyedBodies(KeyedBatches):
    """How the streams of keys leave a table, and come back."""

    __slots__ = ("_mark",)

    _mark: bytes

    def _mark_of(self, made: str) -> bytes:
        """Return what tells the settings of the table from others."""
        return mark_of({"made": made, "max_open": self._max_open} | self._spec.settings)

    def body(self, key: Key) -> bytes:
        """Return a key's stream without its settings: row, open tickets and corrections.

        Treat a body as secret: it holds the key of coins.

        Examples
        --------
        >>> from calibrant import Recalibrator, Table
        >>> table = Table(Recalibrator(resolution=10, buckets=10), seed=7)
        >>> _ = table.replay(["a", "b", "a"], [0.2, 0.7, 0.3], [0, 1, 0])
        >>> other = Table(Recalibrator(resolution=10, buckets=10), seed=7)
        >>> other.take(["a"], [table.body("a")])
        >>> other["a"] == table["a"]
        True
        """
        return self.bodies([key])[0]

    def bodies(self, keys: Iterable[Key] | None = None) -> list[bytes]:
        """Return the bodies of some keys, or of all."""
        with passing(self._gate):
            return self._parcels(self._numbers_of_keys(keys))

    def take(self, keys: Iterable[Key], bodies: Iterable[bytes]) -> None:
        """Let the streams of keys be those whose bodies these are, or change nothing.

        A key that is there is replaced.  The settings must be those of the table that gave the
        bodies.
        """
        names, parcels = [checked_key(key) for key in keys], list(bodies)
        check.same_length(keys=names, bodies=parcels)
        if len(set(names)) < len(names):
            raise InvalidInput("keys must differ, got one twice")
        with passing(self._gate):
            stride = 2 + len(self._spec.fields)
            opened = Parcels.opened(names, parcels, stride, self._mark)
            lines, kept = self._checked_parcels(names, opened)
            try:
                self._install(names, opened, lines, kept)
            except BaseException:
                # From the beginning again, whatever was done: that ends the same.
                self._install(names, opened, lines, kept)
                raise

    def mark(self) -> int:
        """Return a mark, since which :meth:`changes` tells what changed; 0 is before everything."""
        return self._clock

    def changes(self, since: int) -> list[tuple[Key, bytes | None]]:
        """Return the keys that were touched since a mark, each with its body; None if it is gone.

        Examples
        --------
        >>> from calibrant import Recalibrator, Table
        >>> table = Table(Recalibrator(resolution=10, buckets=10), seed=7)
        >>> _ = table.replay(["a", "b", "c"], [0.2, 0.7, 0.3], [0, 1, 0])
        >>> since = table.mark()
        >>> _ = table.forecast("b", 0.5)
        >>> del table["c"]
        >>> [(key, body is None) for key, body in table.changes(since)]
        [('b', False), ('c', True)]
        """
        since = check.whole(since, "since")
        with passing(self._gate):
            numbers = np.flatnonzero(self._stamps[: len(self._keys)] > since)
            keys = [self._keys[number] for number in numbers.tolist()]
            made = list[tuple[Key, bytes | None]](zip(keys, self._parcels(numbers), strict=True))
            gone = [key for key, when in self._gone.items() if when > since]
            return made + [(key, None) for key in gone if key not in self._numbers]

    # ---------------------------------------------------------------------- out

    def _numbers_of_keys(self, keys: Iterable[Key] | None) -> Words:
        if keys is None:
            return np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        names, numbers = [checked_key(key) for key in keys], self._numbers
        found = [numbers.get(name, -1) for name in names]
        if -1 in found:
            name = names[found.index(-1)]
            raise UnknownName(f"key must be one that the table holds, got {name!r}")
        return np.array(found, np.int64)

    def _parcels(self, numbers: Words) -> list[bytes]:
        """Return rows, with their tickets and corrections, as bytes."""
        lines, waits = self._lone_lines(numbers)
        made = [self._corrected_lines(number) for number in numbers.tolist()]
        corrected = np.array([len(each) for each in made], np.int64)
        corrections = np.concatenate([np.empty((0, 2), np.int64), *filter(len, made)])
        room = np.full((len(numbers), 2), HEAD)
        room[:, 1] = TAIL + waits * lines.shape[1] + 2 * corrected
        flat, places = self._rows.arena.flat(), self._places(numbers)
        words, ends = self._spec.body.packed_rows(flat, places, room)
        starts = np.concatenate([[0], ends[:-1]])[: len(ends)].astype(np.int64)
        parcels = Parcels(words, starts, ends, lines.shape[1])
        parcels.write(waits, lines, corrected, corrections)
        return parcels.sealed(self._mark)

    def _corrected_lines(self, number: int) -> Any:
        made = self._corrections.get(number)
        return () if made is None else made.stored()["corrected"].reshape(-1, 2)

    def _lone_lines(self, numbers: Words) -> tuple[Words, Words]:
        """Return the open tickets of rows as those of lone streams, and how many each row has."""
        lines = self._desk.words()
        rank = np.full(len(self._keys), -1)
        rank[numbers] = np.arange(len(numbers))
        place = rank[lines[:, 1] >> SHIFT]
        lines, place = lines[place >= 0], place[place >= 0]
        lines = lines[np.argsort(place, kind="stable")]
        lines[:, 1] &= NUMBER
        lines[:, 0] = np.where(lines[:, 0] >= NAMED, lines[:, 0], lines[:, 1])
        return lines, np.bincount(place, minlength=len(numbers))

    # ----------------------------------------------------------------------- in

    def _checked_parcels(
        self, names: list[Key], parcels: Parcels
    ) -> tuple[Words, dict[int, Corrections]]:
        """Return the tickets and corrections of parcels, if all that they hold is possible."""
        own = np.concatenate([np.empty((0, 2), np.int64), *self._unpacked(names, parcels)])
        lines, waits = parcels.lines, parcels.tickets
        whose = np.repeat(np.arange(len(parcels)), waits)
        key, number = lines[:, 0], lines[:, 1]
        shares = np.ascontiguousarray(lines).view(np.float64)[:, [3, 4, 7]]
        fits = possible(self._spec, lines[:, 2], shares, lines[:, 8:])
        fits &= (number >= 0) & (number < own[whose, 0]) & ((key >= NAMED) | (key == number))
        fits &= (np.diff(number, prepend=-1) > 0) | (np.diff(whose, prepend=-1) > 0)
        bad = own[:, 1] + waits > own[:, 0]
        bad[whose[~fits]] = True
        self._refuse_parcel(names, bad, "tickets that were issued")
        self._check_names(names, key, whose)
        kept, ends = dict[int, Corrections](), np.cumsum(parcels.corrected)
        corrections = parcels.corrections
        for k in np.flatnonzero(parcels.corrected).tolist():
            kept[k] = Corrections()
            some = corrections[ends[k] - parcels.corrected[k] : ends[k]]
            try:
                kept[k].load(some.reshape(-1), int(own[k, 0]))
            except ValueError:
                self._refuse_parcel(names, np.arange(len(names)) == k, "corrections that were made")
        return lines, kept

    def _unpacked(self, names: list[Key], parcels: Parcels) -> list[Words]:
        """Return forecasts and outcomes of rows whose bodies are possible."""
        layout, made = self._spec.layout, list[Words]()
        starts, ends = parcels.bodies
        for first in range(0, len(parcels), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            rows = np.tile(layout.fresh, (len(starts[some]), 1))
            places = np.arange(len(rows)) * len(layout.fresh)
            told = parcels.words, starts[some], ends[some], rows.reshape(-1), places
            try:
                self._spec.body.unpack_rows(*told)
            except WrongBody as error:
                wrong = f"body of key {names[first + error.number]!r} must be that of a stream"
                raise CorruptState(f"{wrong}, got one {error.wrong}") from None
            made.append(rows[:, [ISSUED, ROUNDS]])
        return made

    def _refuse_parcel(self, names: list[Key], bad: Any, what: str) -> None:
        if bad.any():
            name = names[int(np.argmax(bad))]
            raise CorruptState(f"body of key {name!r} must hold {what}, got others")

    def _check_names(self, names: list[Key], keys: Words, whose: Words) -> None:
        """Refuse names of tickets that are open elsewhere, or twice."""
        own = {self._numbers.get(name): True for name in names}
        seen = set[int]()
        for key, k in zip(keys.tolist(), whose.tolist(), strict=True):
            if key >= NAMED:
                found = self._desk.get(key)
                if key in seen or (found is not None and found[1] not in own):
                    told = "id must not be that of an open ticket of another key"
                    raise RepeatedTicket(f"{told}, got one in the body of key {names[k]!r}")
                seen.add(key)

    def _install(
        self, names: list[Key], parcels: Parcels, lines: Words, kept: dict[int, Corrections]
    ) -> None:
        """Let rows be those of parcels that were checked."""
        new = [name for name in names if name not in self._numbers]
        if new:
            self._make(new)
        numbers = np.array([self._numbers[name] for name in names], np.int64)
        self._drop_tickets(numbers)
        self._touch(numbers)
        self._unpack_into(numbers, parcels)
        for k, number in enumerate(numbers.tolist()):
            self._corrections.pop(number, None)
            if k in kept:
                self._corrections[number] = kept[k]
        if len(lines):
            filed = lines.copy()
            filed[:, 1] |= np.repeat(numbers, parcels.tickets) << SHIFT
            filed[:, 0] = np.where(lines[:, 0] >= NAMED, lines[:, 0], filed[:, 1])
            self._desk.extend(filed)

    def _unpack_into(self, numbers: Words, parcels: Parcels) -> None:
        rows, flat = self._all_rows(), self._rows.arena.flat()
        rows[numbers] = self._spec.layout.fresh
        self._spec.body.unpack_rows(parcels.words, *parcels.bodies, flat, self._places(numbers))
        for first in range(0, len(numbers), AT_ONCE):
            some = numbers[first : first + AT_ONCE]
            made = rows[some]
            secrets = made[:, SECRET : SECRET + 2].astype("<i8").tobytes()
            self._spec.seat_many(made, [secrets[k : k + 16] for k in range(0, len(secrets), 16)])
            rows[some] = made

    def _drop_tickets(self, numbers: Words) -> None:
        """Take every ticket of some rows from the desk."""
        if len(self._desk):
            gone = np.zeros(len(self._keys), bool)
            gone[numbers] = True
            words = self._desk.words()[:, 1]
            for word in words[gone[words >> SHIFT]].tolist():
                self._desk.pop(word)
