"""Streams of a table as bytes by key, many at a time: out, in, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.core.desk import NEAR, NUMBER, SHIFT, Desk
from calibrant.errors import CorruptState, InvalidInput, InvalidType, RepeatedTicket, UnknownName
from calibrant.kernels.layout import HAND, ISSUED, NOTES, UNDO_AT, UNDO_NUMBER
from calibrant.recalibrate.binary import possible
from calibrant.recalibrate.body import WrongBody
from calibrant.recalibrate.corrections import Corrections
from calibrant.recalibrate.earlier import patterns_of
from calibrant.recalibrate.heap import MAPPED
from calibrant.recalibrate.keyed import A_COLUMN, Key, checked_key
from calibrant.recalibrate.keyed_batches import KeyedBatches
from calibrant.recalibrate.keyed_state import NAMED
from calibrant.recalibrate.parcel import HEAD, TAIL, Parcels, mark_of_model
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.secret import SEED
from calibrant.recalibrate.tiers import Tiers

AT_ONCE: Final = 1 << 12
"""Parcels that are made together."""


class Refused(Exception):
    """One of many bodies that cannot be taken: its number, and what is wrong."""

    def __init__(self, number: int, error: Exception) -> None:
        super().__init__(number, error)
        self.number, self.error = number, error


def _refused(names: list[Key], number: int, error: WrongBody) -> Refused:
    wrong = f"body of key {names[number]!r} must be that of a stream"
    return Refused(number, CorruptState(f"{wrong}, got one {error.wrong}"))


class KeyedBodies(KeyedBatches):
    """How the streams of keys leave a table, and come back."""

    __slots__ = ("_made", "_mark", "_origin")

    _mark: bytes
    _made: type[Recalibrator]
    _origin: str | None

    def _mark_of(self, made: str) -> bytes:
        """Return what tells the settings of the table from others."""
        return mark_of_model(made, self._max_open, self._spec.settings)

    # ------------------------------------------------------------- lone streams

    def __getitem__(self, key: Key) -> Recalibrator:
        """Return a lone copy of a key's stream."""
        return self._made.from_bytes(self.row(key))

    def __setitem__(self, key: Key, stream: Recalibrator) -> None:
        """Take over a lone stream as that of a key; refused if its settings differ."""
        if not isinstance(stream, Recalibrator):
            raise InvalidType(f"stream must be a recalibrator, got {stream!r}")
        if stream.kind != self._made.kind:
            raise InvalidInput(f"stream must have the settings of the table, got {stream!r}")
        self.put(key, stream.to_bytes())

    def row(self, key: Key) -> bytes:
        """Return a key's stream as the bytes of a lone recalibrator."""
        with self._gate:
            document = self._lone_document(self._number_of(key))
        return document.to_bytes()

    def _number_of(self, key: Key) -> int:
        """Return the number of the row of a key that is there."""
        self._recall([checked_key(key)])
        number = self._numbers.get(checked_key(key))
        if number is None:
            raise UnknownName(f"key must be one that the table holds, got {key!r}")
        return number

    def _lone_document(self, number: int) -> Document:
        tickets, _ = self._lone_lines(np.array([number]))
        words, _ = self._tiers.bodies(np.array([number]), np.zeros((1, 2), np.int64))
        settings = self._spec.settings | {"max_open": self._max_open}
        settings["secret_from"] = self._origin
        arrays = {"body": words, "tickets": tickets.reshape(-1)}
        if number in self._corrections:
            arrays |= self._corrections[number].stored()
        return Document(self._made.kind, settings, arrays, self._made.version)

    def put(self, key: Key, data: bytes) -> None:
        """Take over the stream whose bytes a lone recalibrator or :meth:`row` gave."""
        stream = self._made.from_bytes(data)
        same = stream.spec == self._spec and stream.max_open == self._max_open
        if not same:
            raise InvalidInput(f"stream must have the settings of the table, got {stream!r}")
        lines = stream._counter.desk.words()
        key = checked_key(key)
        with self._gate:
            taken = [name for name in lines[:, 0].tolist() if name >= NAMED]
            self._recall([], taken)
            own = self._numbers.get(key)
            for name in taken:
                found = self._desk.get(name)
                if found is not None and found[1] != own:
                    raise RepeatedTicket("id must not be that of an open ticket of another key")
            number = int(self._free_rows(1)[0]) if own is None else own
            lines[:, 0] = np.where(lines[:, 0] >= NAMED, lines[:, 0], number << SHIFT | lines[:, 1])
            lines[:, 1] |= number << SHIFT
            try:
                self._take_over(key, stream, lines)
            except BaseException:
                # From the beginning again, whatever was done: that ends the same.
                self._take_over(key, stream, lines)
                raise

    def _take_over(self, key: Key, stream: Recalibrator, lines: Words) -> None:
        """Let a key's stream be another one, with these tickets."""
        number = self._number(key)
        self._origin = SEED if stream._secret.origin == SEED else self._origin
        self._touch(number)
        self._desk.drop_row(number)
        self._closed.drop_row(number)
        self._take_row(number, stream)
        if len(lines):
            self._note_taken(lines[:, 1])
            self._desk.load(lines)

    def _note_taken(self, words: Words) -> None:
        """Let tickets that are taken over be the youngest."""
        if self._ages is not None:
            self._ages.add(words.tolist())

    def _take_row(self, number: int, stream: Recalibrator) -> None:
        """Let a row be that of a lone stream."""
        self._words(number)[:] = stream._arena.row()
        # Nothing that the header tells is of what the row holds now, which has no notes.
        self._rows.arena.flat()[[HAND, NOTES, UNDO_NUMBER, UNDO_AT]] = -1
        self._corrections.pop(number, None)
        if stream._counter.corrections.stored():
            self._corrections[number] = stream._counter.corrections

    # ------------------------------------------------------------------- bodies

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
        with self._gate:
            return self._parcels(self._numbers_of_keys(keys))

    def take(self, keys: Iterable[Key], bodies: Iterable[bytes]) -> None:
        """Replace the streams of keys by those in these bodies, or change nothing.

        A key that is there is replaced.  The settings must be those of the table that gave the
        bodies.  If these were given when the same pattern had other settings, as an earlier
        default, a table without keys takes on the settings of then, and the streams go on as they
        would have.
        """
        names = [checked_key(key) for key in check.listed(keys, "keys", A_COLUMN)]
        parcels = check.listed(bodies, "bodies", "be a list of bytes")
        check.same_length(keys=names, bodies=parcels)
        if len(set(names)) < len(names):
            raise InvalidInput("keys must differ, got one twice")
        with self._gate, self._as_before_if_refused():
            opened = self._opened(names, parcels)
            self._recall([], opened.lines[:, 0].tolist())
            self._take(names, opened)

    def _opened(self, names: list[Key], parcels: list[bytes]) -> Parcels:
        try:
            return Parcels.opened(names, parcels, 2 + len(self._spec.fields), self._mark)
        except CorruptState:
            if not self._look_back(names[0], parcels[0]):
                raise
        return Parcels.opened(names, parcels, 2 + len(self._spec.fields), self._mark)

    # ------------------------------------------------------- bodies of earlier defaults

    def _look_back(self, name: Key, parcel: Any) -> bool:
        """Be what a body is of, if that is what the pattern was at an earlier time; say whether."""
        told = self._spec.settings | {"max_open": self._max_open}
        today = self._made._unborn(Document(self._made.kind, told, {}, self._made.version))
        (found,) = patterns_of([parcel], today)
        if found is None or found.spec == self._spec:
            return False
        if self._numbers:
            rule = f"body of key {name!r} must be of today's model where a table has keys"
            raise InvalidInput(f"{rule}, got one of before: take it into a table without keys")
        self._begin_as(found)
        return True

    def _begin_as(self, pattern: Recalibrator) -> None:
        """Let a table without keys be one of another pattern."""
        with self._as_before_if_refused():
            self._spec, self._desk = pattern.spec, Desk(pattern.spec.fields)
            self._keys, self._free, self._corrections = [], [], {}
            self._tiers = Tiers(self._spec, self._keys, self._seed, self._tiers.hot)
            steps = None if self._rows.steps is None else self._spec.compile()
            self._rows, self._stamps = self._tiers.rows, np.zeros(1, np.int64)
            self._rows.begin_compiled(steps)
            self._mark = self._mark_of(self._made.kind)

    @contextmanager
    def _as_before_if_refused(self) -> Iterator[None]:
        """Let the table be of the pattern it was if what is done to it fails."""
        spec, desk, keys, free = self._spec, self._desk, self._keys, self._free
        corrections, tiers, stamps = self._corrections, self._tiers, self._stamps
        try:
            yield
        except GeneratorExit:
            # Interrupted once all was done: nothing is undone when the last traceback goes.
            raise
        except BaseException:
            if self._spec is not spec:
                self._spec, self._desk, self._keys, self._free = spec, desk, keys, free
                self._corrections, self._tiers, self._stamps = corrections, tiers, stamps
                self._rows, self._numbers = tiers.rows, {}
                self._mark = self._mark_of(self._made.kind)
            raise

    def _take(self, names: list[Key], opened: Parcels) -> None:
        """Let the streams of keys be those whose parcels these are, or change nothing."""
        try:
            opened = self._of_today(names, opened)
            told = self._checked_parcels(names, opened)
        except Refused as refused:
            raise refused.error from None
        try:
            self._install(names, opened, *told)
        except BaseException:
            # From the beginning again, whatever was done: that ends the same.
            self._install(names, opened, *told)
            raise

    def mark(self) -> int:
        """Return a mark for :meth:`changes`, which returns what changed since; 0 is the start."""
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
        with self._gate:
            numbers = np.flatnonzero(self._stamps[: len(self._keys)] > since)
            keys = [self._keys[number] for number in numbers.tolist()]
            made = list[tuple[Key, bytes | None]](zip(keys, self._parcels(numbers), strict=True))
            gone = [key for key, when in self._gone.items() if when > since]
            return made + [(key, None) for key in gone if key not in self._numbers]

    # ---------------------------------------------------------------------- out

    def _numbers_of_keys(self, keys: Iterable[Key] | None) -> Words:
        if keys is None:
            return np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        listed, numbers = check.listed(keys, "keys", A_COLUMN), self._numbers
        names = [checked_key(key) for key in listed]
        self._recall(names)
        found = [numbers.get(name, -1) for name in names]
        if -1 in found:
            name = names[found.index(-1)]
            raise UnknownName(f"key must be one that the table holds, got {name!r}")
        return np.array(found, np.int64)

    def _parcels(self, numbers: Words) -> list[bytes]:
        """Return rows, with their tickets and corrections, as bytes."""
        made = list[bytes]()
        for parcels in self._made_parcels(numbers):
            made += parcels.sealed(self._mark)
        return made

    def _made_parcels(self, numbers: Words) -> Iterator[Parcels]:
        """Yield rows, with their tickets and corrections, as parcels that lack their digests.

        Some at a time, few enough to stay close to the processor until they are written.
        """
        lines, waits = self._lone_lines(numbers)
        corrections, corrected = self._corrected_lines(numbers)
        filed, noted = np.cumsum(waits), np.cumsum(corrected)
        for first in range(0, len(numbers), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            wait, made = waits[some], corrected[some]
            room = np.full((len(wait), 2), HEAD)
            room[:, 1] = TAIL + wait * lines.shape[1] + 2 * made
            words, ends = self._tiers.bodies(numbers[some], room)
            starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
            parcels = Parcels(words, starts, ends, lines.shape[1])
            filing, noting = slice(*_span(filed, wait, some)), slice(*_span(noted, made, some))
            parcels.write(wait, lines[filing], made, corrections[noting])
            yield parcels

    def _corrected_lines(self, numbers: Words) -> tuple[Words, Words]:
        """Return the corrections of rows, and how many each row has."""
        made, counts = [np.empty((0, 2), np.int64)], np.zeros(len(numbers), np.int64)
        for k, number in enumerate(numbers.tolist() if self._corrections else ()):
            if number in self._corrections:
                made.append(self._corrections[number].stored()["corrected"].reshape(-1, 2))
                counts[k] = len(made[-1])
        return np.concatenate(made), counts

    def _lone_lines(self, numbers: Words) -> tuple[Words, Words]:
        """Return the open tickets of rows as those of lone streams, and how many each row has."""
        lines = self._open_lines(numbers)
        rank = np.full(len(self._keys), -1)
        rank[numbers] = np.arange(len(numbers))
        place = rank[lines[:, 1] >> SHIFT]
        lines, place = lines[place >= 0], place[place >= 0]
        lines = lines[np.argsort(place, kind="stable")]
        lines[:, 1] &= NUMBER
        lines[:, 0] = np.where(lines[:, 0] >= NAMED, lines[:, 0], lines[:, 1])
        return lines, np.bincount(place, minlength=len(numbers))

    def _open_lines(self, numbers: Words) -> Words:
        """Return open tickets, those of rows at least: looked up if that is less than all."""
        issued = self._own(ISSUED, numbers)
        if int(issued.sum()) > len(self._desk) // NEAR:
            return self._desk.words()
        pairs = zip(numbers.tolist(), issued.tolist(), strict=True)
        return self._desk.lines(found for pair in pairs for found in self._desk.old(*pair))

    # ----------------------------------------------------------------------- in

    def _checked_parcels(
        self, names: list[Key], parcels: Parcels
    ) -> tuple[Words, Words, dict[int, Corrections]]:
        """Return words of their own, tickets and corrections of parcels, if all are possible."""
        own = self._unpacked(names, parcels)
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
        return own, lines, kept

    def _of_today(self, names: list[Key], parcels: Parcels) -> Parcels:
        """Return parcels as they are written today."""
        old = np.flatnonzero(parcels.old)
        if not len(old):
            return parcels
        starts, ends = parcels.bodies
        try:
            return parcels.rewritten(*self._rewritten(parcels.words, starts[old], ends[old]))
        except WrongBody as error:
            raise _refused(names, int(old[error.number]), error) from None

    def _unpacked(self, names: list[Key], parcels: Parcels) -> Words:
        """Return some words of each row, if its body is possible."""
        try:
            return self._looked_at(parcels.words, *parcels.bodies)
        except WrongBody as error:
            raise _refused(names, error.number, error) from None

    def _refuse_parcel(self, names: list[Key], bad: Any, what: str) -> None:
        if bad.any():
            k = int(np.argmax(bad))
            told = CorruptState(f"body of key {names[k]!r} must hold {what}, got others")
            raise Refused(k, told)

    def _check_names(self, names: list[Key], keys: Words, whose: Words) -> None:
        """Refuse names of tickets that are open elsewhere, or twice."""
        own = {self._numbers.get(name): True for name in names}
        seen = set[int]()
        for key, k in zip(keys.tolist(), whose.tolist(), strict=True):
            if key >= NAMED:
                found = self._desk.get(key)
                if key in seen or (found is not None and found[1] not in own):
                    told = "id must not be that of an open ticket of another key"
                    told = f"{told}, got one in the body of key {names[k]!r}"
                    raise Refused(k, RepeatedTicket(told))
                seen.add(key)

    def _install(
        self,
        names: list[Key],
        parcels: Parcels,
        own: Words,
        lines: Words,
        kept: dict[int, Corrections],
        mapped: bool = False,
    ) -> None:
        """Let rows be those of parcels that were checked."""
        new = [name for name in names if name not in self._numbers]
        if new:
            self._make(new)
        numbers = np.array([self._numbers[name] for name in names], np.int64)
        self._drop_tickets(numbers)
        self._touch(numbers)
        if mapped:
            starts, ends = parcels.bodies
            self._tiers.point(numbers, MAPPED + starts, ends - starts, own)
        else:
            self._take_bodies(numbers, parcels.words, *parcels.bodies, own)
        for k, number in enumerate(numbers.tolist()):
            self._corrections.pop(number, None)
            self._closed.drop_row(number)
            if k in kept:
                self._corrections[number] = kept[k]
        if len(lines):
            filed = lines.copy()
            filed[:, 1] |= np.repeat(numbers, parcels.tickets) << SHIFT
            filed[:, 0] = np.where(lines[:, 0] >= NAMED, lines[:, 0], filed[:, 1])
            self._note_taken(filed[:, 1])
            self._desk.extend(filed)

    def _drop_tickets(self, numbers: Words) -> None:
        """Take every ticket of some rows from the desk."""
        if len(self._desk):
            gone = np.zeros(len(self._keys), bool)
            gone[numbers] = True
            words = self._desk.words()[:, 1]
            for word in words[gone[words >> SHIFT]].tolist():
                self._desk.pop(word)


def _span(ends: Words, counts: Words, some: slice) -> tuple[int, int]:
    """Return where the lines of some rows begin and end among those of all."""
    end = int(ends[some][-1])
    return end - int(counts.sum()), end
