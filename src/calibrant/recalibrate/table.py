"""Many streams of one spec, by key: a row each in one arena."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from typing import Any, ClassVar, Final, Self, cast

import numpy as np

from calibrant.bounds import probable
from calibrant.core import check
from calibrant.core.arrays import as_words
from calibrant.core.codec import Document
from calibrant.core.desk import SHIFT, Desk, Found, name_key, number_key
from calibrant.core.gate import Gate
from calibrant.core.stateful import Migration
from calibrant.errors import InvalidInput, RepeatedTicket, TooManyOpen
from calibrant.kernels.index import machine
from calibrant.kernels.layout import ROUNDS
from calibrant.kernels.whole import copied
from calibrant.recalibrate import version2, version3
from calibrant.recalibrate.calibrant import Calibrant
from calibrant.recalibrate.closed import EXPIRED, SETTLED, KeyedClosed
from calibrant.recalibrate.corrections import Corrections
from calibrant.recalibrate.crowd import EXPIRE, REFUSE, WHEN_FULL, Ages, told
from calibrant.recalibrate.earlier import was
from calibrant.recalibrate.fork import watch
from calibrant.recalibrate.keyed import Key, KeyedTicket, check_pattern, checked_key, is_key
from calibrant.recalibrate.keyed_record import Certificates, measured, shared
from calibrant.recalibrate.keyed_tickets import KeyedTickets
from calibrant.recalibrate.promise import FAILURE
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.secret import ORIGINS, SEED, SYSTEM, chosen_seed, secret_of
from calibrant.recalibrate.tiers import Tiers

KINDS: Final[dict[str, type[Recalibrator]]] = {
    made.kind: made for made in (Calibrant, Recalibrator)
}


class Table(KeyedTickets):
    """One recalibrator for each key: a tenant, a segment, a question, an item.

    A key's stream begins when the key is first met.  For every key, forecasts, tickets and stored
    bytes are those of a lone recalibrator made with that ``seed`` and that ``key`` and fed the
    same rounds.

    Parameters
    ----------
    pattern
        A recalibrator that has made no forecast: each key begins as it is, but with coins of its
        own.
    seed
        What the draws depend on, with the keys; None takes secret entropy from the system.
    hot
        How many keys are kept ready to play, those that were touched last; the others are packed,
        which changes nothing but memory and time.  None: as many as fit in 32 MB.
    most_open
        How many tickets may be open in the whole table; None: as many as the keys may have.  Keys
        that went to a store do not count, and streams that are taken over bring their tickets.
    when_full
        What happens to a forecast that would open one more: "refuse", or "expire" the ticket that
        was opened first.
    store
        Where :meth:`evict` puts keys, and from where these come back at their next touch: any
        mapping of keys to bytes.  No part of the state.
    jobs
        In how many threads a large batch is played where there is a compiler, which changes nothing
        but time.  No part of the state.

    Examples
    --------
    >>> table = Table(Recalibrator(resolution=10, buckets=10), seed=7)
    >>> ticket = table.forecast("north", 0.83, id="order 1")
    >>> _ = table.observe("order 1", 1)
    >>> lone = Recalibrator(resolution=10, buckets=10, seed=7, key="north")
    >>> _ = lone.observe(lone.forecast(0.83), 1)
    >>> table.row("north") == lone.to_bytes(), list(table)
    (True, ['north'])
    """

    kind: ClassVar = "table"
    version: ClassVar[int] = 4
    migrations: ClassVar[dict[int, Migration]] = {
        1: version2.migrated_table,
        2: lambda document: replace(document, version=3),
        3: version3.migrated_table,
    }

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        pattern: Recalibrator,
        *,
        seed: int | None = None,
        hot: int | None = None,
        most_open: int | None = None,
        when_full: str = REFUSE,
        store: MutableMapping[Any, bytes] | None = None,
        jobs: int = 1,
    ) -> None:
        check_pattern(pattern)
        ends = {"low": -LARGEST, "high": LARGEST}
        given = chosen_seed() if seed is None else check.whole(seed, "seed", **ends)
        self._begin(type(pattern), pattern, given, SYSTEM if seed is None else SEED, hot)
        self._limit(most_open, when_full)
        self.store, self.jobs = store, check.whole(jobs, "jobs", low=1)
        if seed is None:
            watch(self)

    def _begin(
        self,
        made: type[Recalibrator],
        pattern: Recalibrator,
        seed: int,
        origin: str | None,
        hot: int | None = None,
    ) -> None:
        self._made, self._spec, self._seed, self._origin = made, pattern.spec, seed, origin
        self._max_open, self._desk = pattern.max_open, Desk(pattern.spec.fields)
        self._most_open, self._ages = None, None
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._earlier: set[str] = set()
        self._free: list[int] = []
        self._corrections: dict[int, Corrections] = {}
        self._closed = KeyedClosed()
        self._taken: list[Found] = []
        rows = None if hot is None else check.whole(hot, "hot", low=1)
        self._tiers = Tiers(self._spec, self._keys, seed, rows)
        self._rows = self._tiers.rows
        self._clock, self._stamps = 0, np.zeros(1, np.int64)
        self._gone: dict[Key, int] = {}
        self.missing: list[Key] = []
        self.store: MutableMapping[Any, bytes] | None = None
        self.jobs = 1
        self._away: dict[int, Key] = {}
        self._mark = self._mark_of(made.kind)
        self._gate = Gate()

    def _limit(self, most_open: int | None, when_full: str) -> None:
        """Let only that many tickets be open."""
        expires = check.choice(when_full, "when_full", WHEN_FULL) == EXPIRE
        if most_open is None:
            return
        self._most_open = check.whole(most_open, "most_open", low=1)
        self._ages = Ages() if expires else None

    # ------------------------------------------------------------------ keys

    @property
    def timed(self) -> bool:
        """Whether the rule forgets in time, so that every forecast needs one."""
        return self._spec.rule.timed

    def is_like(self, pattern: Any) -> bool:
        """Return whether keys start like a recalibrator does now, or did once, apart from coins."""
        same = type(pattern) is self._made and pattern.max_open == self._max_open
        return same and was(self._spec, pattern)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._numbers))

    def __contains__(self, key: object) -> bool:
        return is_key(key) and key in self._numbers

    def certificates(self, failure: float = FAILURE, *, together: bool = False) -> Certificates:
        """Return what was measured in each stream, and what was promised, as columns.

        Each promise may fail with probability ``failure``; or, ``together``, any of them.
        """
        chance = probable(failure)
        each = shared(chance, len(self)) if together else np.full(len(self), chance)
        with self._gate:
            numbers = np.fromiter(self._numbers.values(), np.int64, len(self))
            waits = np.bincount(self._desk.words()[:, 1] >> SHIFT, minlength=len(self._keys))
            told = list(self._numbers), self._tiers.pieces(numbers), waits[numbers]
            return measured(self._spec, *told, each)

    # ---------------------------------------------------------------- one by one

    def forecast(
        self, key: Key, raw: float, *, id: str | None = None, time: check.When = None
    ) -> KeyedTicket:
        """Announce a calibrated forecast in a key's stream, and keep a ticket for its outcome.

        A name must not be that of an open ticket of any key.
        """
        raw, key = check.probability(raw), checked_key(key)
        check.name(id)
        if time is None and self._spec.rule.timed:
            raise InvalidInput("time must be given to a rule that forgets in time, got None")
        when = None if time is None else check.moment(time)
        with self._gate:
            self._recall([key], [id])
            if id is not None and self._desk.get(name_key(id)) is not None:
                raise RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")
            before = len(self)
            try:
                number = self._number(key)
                self._check_crowd(number)
                ticket = self._issue(key, number, raw, id, when)
            except BaseException:
                if len(self) != before and not self._issued(self._numbers[key]):
                    self._drop_key(key)
                raise
        return ticket

    def _issue(
        self, key: Key, number: int, raw: float, id: str | None, time: float | None
    ) -> KeyedTicket:
        """Make a forecast in a row, wholly or not at all."""
        self._touch(number)
        place, notes = self._place(number), list[Any]()
        n = self._issued(number)
        try:
            own, *drawn = self._rows.issue_part(place, raw, notes)
            ticket = self._ticket(key, number, own if id is None else id, own, raw, time, drawn)
            name = number_key(number, n) if id is None else name_key(id)
            self._note_age(number, n)
            self._desk.add(name, number, n, *ticket.fields)
            self._expire_old(number)
        except BaseException:
            if self._desk.get_number(number, n) is None:
                self._rows.withdraw_parts(notes)
            self._expire_old(number)
            raise
        return ticket

    def _check_crowd(self, number: int) -> None:
        """Refuse a forecast of a row for whose ticket there is no room."""
        if self._most_open is None or self._ages is not None or len(self._desk) < self._most_open:
            return
        aged = self._desk.old(number, self._issued(number) + 1 - self._max_open)
        if len(self._desk) - len(aged) >= self._most_open:
            raise TooManyOpen(told(self._most_open))

    def _note_age(self, number: int, n: int) -> None:
        if self._ages is not None:
            self._ages = self._ages.swept(self._desk)
            self._ages.add([number_key(number, n)])

    def _expire_old(self, number: int) -> None:
        """Drop the tickets of a row that are too old, and those that are too many."""
        oldest = self._issued(number) - self._max_open
        for found in self._desk.old(number, oldest):
            self._expire_found(found)
        self._desk.pass_by(number, oldest)
        while self._ages is not None and len(self._desk) > (self._most_open or 0):
            surplus = cast(Found, self._desk.get(self._ages.oldest(self._desk)))
            self._stamps[surplus[1]] = self._clock
            self._expire_found(surplus)
            self._closed.note_number(surplus[1], surplus[2])

    def _expire_found(self, found: Found) -> None:
        """Drop a ticket, and give back what was reserved for it."""
        place, words = self._place(found[1]), self._rows.state()[0]
        kept = copied(words, place, place + len(self._spec.layout.section))
        try:
            self._rows.forget(place, found[3], found[4], found[5])
            self._desk.pop_number(found[1], found[2])
        except BaseException:
            if self._desk.get_number(found[1], found[2]) is not None:
                words[place : place + len(kept)] = kept
            raise
        self._closed.note_name(found[0], EXPIRED)

    def observe(
        self, ticket: KeyedTicket | str | tuple[Key, int], outcome: int, time: check.When = None
    ) -> KeyedTicket:
        """Report the outcome of an open ticket: itself, its name, or its key and number."""
        told = check.outcome(outcome)
        with self._gate:
            found, given = self._find(ticket)
            name, number, n, place, weight, raw, stamp, _, mixed, *kept = found
            if time is not None and (moment := check.moment(time)) < stamp:
                rule = f"time must not be before the forecast's {stamp!r}"
                raise InvalidInput(f"{rule}, got {moment!r}")
            when = 0.0 if stamp != stamp else stamp
            given = self._given(ticket, found) if given is None else given
            row = self._place(number)
            self._touch(number)
            rounds = self._words(number)[ROUNDS]
            try:
                self._rows.learn(row, n, place, weight, mixed, raw, when, told, tuple(kept))
                self._desk.pop_number(number, n)
                given._outcome = told
            except BaseException:
                if self._words(number)[ROUNDS] != rounds:
                    self._desk.pop_number(number, n)
                    given._outcome = told
                raise
            self._closed.note_name(name, SETTLED)
        return given

    def correct(self, ticket: KeyedTicket, outcome: int, *, was: int | None = None) -> KeyedTicket:
        """Replace the outcome of a closed ticket that turned out to be wrong.

        The ticket is the one that :meth:`observe` returned, or what was stored of it; ``was`` is
        the outcome that is replaced, needed for a ticket stored before its outcome was known.
        """
        with self._gate:
            number, stream = self._lone(ticket)
            before = ticket.outcome
            try:
                stream.correct(ticket, outcome, was=was)
                self._touch(number)
                self._take_row(number, stream)
            except BaseException:
                if ticket.outcome != before:
                    self._touch(number)
                    self._take_row(number, stream)
                raise
        return ticket

    def expire(self, ticket: KeyedTicket | str | tuple[Key, int]) -> KeyedTicket:
        """Drop an open ticket whose outcome is known never to come; return it."""
        with self._gate:
            found, given = self._find(ticket)
            self._touch(found[1])
            self._expire_found(found)
            self._closed.note_number(found[1], found[2])
        return self._given(ticket, found) if given is None else given

    def coin_of(self, ticket: KeyedTicket | str | tuple[Key, int]) -> float:
        """Return the coin that decided a ticket's draw, for audits."""
        with self._gate:
            if not isinstance(ticket, KeyedTicket):
                ticket = self._given(ticket, self._find(ticket)[0])
            return self._lone(ticket)[1].coin_of(ticket)

    def compile(self) -> Self:
        """Let Numba compile the steps of one-by-one calls, as :meth:`Recalibrator.compile` does.

        All rows go on with machine code, also those of keys that are yet to come.
        """
        machine()
        with self._gate:
            self._rows.compile()
        return self

    # ---------------------------------------------------------------------- forks

    def _renew(self) -> None:
        """Throw coins of its own from now on, in a forked process; open tickets stay open."""
        if self._gate.is_free:
            self._touch(np.array([*self._numbers.values()], np.int64))
            before = {number: self._issuer(number).fingerprint for number in self._numbers.values()}
            self._earlier |= set(before.values())
            self._seed = self._tiers.seed = chosen_seed()
            for key, number in self._numbers.items():
                self._spec.seat(self._words(number), secret_of(self._seed, key))

    # ------------------------------------------------------------------- documents

    def __repr__(self) -> str:
        return f"Table({self._made.__name__}, keys={len(self)}, open={len(self._desk)})"

    def _document(self) -> Document:
        keys = list(self._numbers)
        numbers = np.fromiter(self._numbers.values(), np.int64, len(keys))
        text = json.dumps(keys).encode()
        bodies, ends = self._tiers.bodies(numbers, np.zeros((len(keys), 2), np.int64))
        arrays = {
            "keys": as_words(text),
            "sizes": np.concatenate([[len(text)], np.diff(ends, prepend=0)]).astype(np.int64),
            "bodies": bodies,
            "tickets": self._ticket_lines(numbers).reshape(-1),
            "corrected": self._corrected(numbers),
        } | ({} if self._ages is None else {"ages": self._age_words(numbers)})
        return Document(self.kind, self._settings(), arrays, self.version)

    def _settings(self) -> dict[str, Any]:
        return {
            "made": self._made.kind,
            "seed": str(self._seed),
            "secret_from": self._origin,
            "pattern": self._spec.settings | {"max_open": self._max_open},
        } | self._crowd_settings()

    def _crowd_settings(self) -> dict[str, Any]:
        if self._most_open is None:
            return {}
        rule = REFUSE if self._ages is None else EXPIRE
        return {"most_open": self._most_open, "when_full": rule}

    @classmethod
    def _empty(cls, settings: dict[str, Any], hot: int | None) -> Self:
        made = cls.__new__(cls)
        made._begin_from(settings, hot)
        return made

    def _begin_from(self, s: dict[str, Any], hot: int | None = None) -> None:
        """Be a table without keys, with stored settings."""
        made = KINDS[s["made"]]
        empty = Document(made.kind, s["pattern"], {}, made.version)
        if s["secret_from"] not in ORIGINS:
            raise ValueError(f"a secret from {s['secret_from']!r}")
        self._begin(made, made._unborn(empty), int(s["seed"]), s["secret_from"], hot)
        self._limit(s.get("most_open"), s.get("when_full", REFUSE))
        self._rows.begin_compiled(self._spec.ready)
        if self._origin != SEED:
            watch(self)

    def _restore(self, document: Document) -> None:
        arrays = document.arrays
        self._begin_from(document.settings)
        first, *sizes = arrays["sizes"].tolist()
        text = arrays["keys"].astype("<i8").tobytes()[:first]
        keys = [checked_key(key) for key in json.loads(text)]
        if "tickets" in arrays:
            self._restore_rows(keys, np.array(sizes, np.int64), arrays)
            return
        # Earlier versions held the bytes of a lone stream for each key.
        data, start = arrays[version3.OLD_BODIES].astype("<i8").tobytes(), 0
        for key, size in zip(keys, sizes, strict=True):
            self.put(key, data[start : start + size])
            start += size


LARGEST: Final = 1 << 127
