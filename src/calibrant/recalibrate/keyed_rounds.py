"""Batches on the rows of a table: played in groups, wholly or not at all."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.desk import NUMBER, SHIFT, Found
from calibrant.core.together import WORTH, together
from calibrant.errors import InvalidInput
from calibrant.kernels import layout as word
from calibrant.kernels.compile import SHORT
from calibrant.kernels.crowd import counts_by_lag
from calibrant.recalibrate.closed import CLOSED, EXPIRED, SETTLED
from calibrant.recalibrate.delivery import Schedule
from calibrant.recalibrate.keyed import Key, Keys
from calibrant.recalibrate.keyed_parts import Due, Parts
from calibrant.recalibrate.keyed_state import NAMED, KeyedState

PIECES: Final = 8
"""Pieces of a batch for each thread: who is done early, takes one more."""


class KeyedRounds(KeyedState):
    """How rounds and events are played on the rows of a table."""

    __slots__ = ()

    def _carry_out(self, keys: Keys, plan: Schedule, due: Due) -> None:
        """Play events that are known to fit; open, close and expire tickets."""
        learned = -1 - plan.events[plan.events < 0]
        some, counts = np.unique(due.row[learned], return_counts=True)
        self._check_room(
            keys, some, counts, lambda row, room: due.told(learned[due.row[learned] == row][room])
        )
        if self._spec.raw_safe is not None:
            _, part = np.unique(due.row, return_inverse=True)
            plan = plan.with_expiry(due.number, self._max_open, part)
        machine, rows = self._machine(len(plan.events)), np.unique(due.row)

        def play() -> None:
            self._play_events(plan.events, due, machine)

        def finish() -> None:
            self._drop(due.held)
            # First the old ones go: a new ticket may have the name of one that expired.
            self._expire_rows(rows)
            self._open(due, plan.waiting)

        self._wholly(keys, rows, play, finish, machine is not None)
        self._note_closed(plan, due)

    def _note_closed(self, plan: Schedule, due: Due) -> None:
        """Remember what became of tickets of a batch, of one name in the order of forecasts."""
        first = np.array([found[0] for found in due.held], np.int64)
        names = np.concatenate([first, due.names])
        if self._ages is None and not (names >= NAMED).any():
            return
        settled, waits = np.zeros(len(names), bool), np.zeros(len(names), bool)
        settled[-1 - plan.events[plan.events < 0]] = True
        waits[plan.waiting] = True
        order = np.concatenate([np.arange(len(first)), len(first) + np.argsort(due.turns)])
        named = order[(~waits & (names >= NAMED))[order]][-CLOSED:]
        for key, done in zip(names[named].tolist(), settled[named].tolist(), strict=True):
            self._closed.note_name(key, SETTLED if done else EXPIRED)
        young = self._own(word.ISSUED, due.row) - due.number <= self._max_open
        for k in np.flatnonzero(young & ~waits & ~settled)[-CLOSED:].tolist():
            self._closed.note_number(int(due.row[k]), int(due.number[k]))

    def _open(self, due: Due, waits: Words) -> None:
        """File the tickets that wait, as far as that is not done."""
        words = due.row[waits] << SHIFT | due.number[waits]
        new = np.array([self._desk.get(each) is None for each in words.tolist()], bool)
        if new.any():
            due.columns.number[waits] = words
            lines = due.columns.lines(waits, due.names[waits - len(due.held)])
            self._note_ages(due, waits[new])
            self._desk.extend(lines[new])

    def _note_ages(self, due: Due, waits: Words) -> None:
        """Let new tickets that wait be the youngest, in the order in which they were opened."""
        if self._ages is not None:
            fresh = waits[waits >= len(due.held)]
            fresh = fresh[np.argsort(due.turns[fresh - len(due.held)])]
            self._ages = self._ages.swept(self._desk)
            self._ages.add(due.words[fresh].tolist())

    def _drop(self, gone: Iterable[Found]) -> None:
        """Take tickets from the desk."""
        for found in gone:
            self._taken.append(found)
            self._desk.pop_number(found[1], found[2])

    def _wholly(
        self,
        keys: Keys,
        rows: Words,
        play: Callable[[], None],
        finish: Callable[[], None],
        at_once: bool,
    ) -> None:
        """Play a batch on its rows, and then close and open tickets; or change nothing.

        If playing is one step that nothing can interrupt, then the batch is finished whatever
        comes; else the rows are put back as they were.
        """
        new = self._new(keys)
        first, there = self._own(word.ISSUED, rows), rows < len(self._keys)
        rounds = self._own(word.ROUNDS, rows)
        at_once &= len(rows) <= self._tiers.hot
        kept = None if at_once else self._kept(rows[there], len(rows) > self._tiers.hot)
        self._taken = []
        try:
            self._tiers.set_apart(self.jobs - 1)
            self._admit(new)
            self._touch(rows)
            play()
            finish()
        except BaseException:
            begun = (self._own(word.ISSUED, rows) != first) | (
                self._own(word.ROUNDS, rows) != rounds
            )
            if at_once and begun.any():
                finish()
            else:
                self._undo(new, rows, there, first, kept)
            raise
        finally:
            self._taken = []
            self._tiers.tidy()

    def _kept(self, rows: Words, many: bool) -> Any:
        """Return what rows are before a batch: their words, or their records if they are many."""
        if many:
            self._tiers.cool(rows)
            return self._tiers.heap.records[rows]
        return self._tiers.copies(rows)

    def _undo(
        self, new: list[Key], rows: Words, there: Mask, first: Words, kept: Words | None
    ) -> None:
        """Be as before a batch: rows, tickets and keys."""
        if kept is not None and len(rows) > self._tiers.hot:
            self._tiers.release(rows[there], kept)
        elif kept is not None:
            self._tiers.warm(rows[there], self._stamps)
            self._tiers.put(rows[there], kept)
        for name in new:
            if name in self._numbers:
                self._drop_key(name)
        issued = dict(zip(rows.tolist(), first.tolist(), strict=True))
        for key in self._desk.words()[:, 1].tolist():
            if (key & NUMBER) >= issued.get(key >> SHIFT, NUMBER + 1):
                self._desk.pop(key)
        for found in self._taken:
            if self._desk.get_number(found[1], found[2]) is None:
                self._desk.add(*found)

    def _play_events(self, log: Words, due: Due, machine: Any) -> None:
        """Play the log of each row, which stands together, on its row."""
        tickets = np.where(log < 0, -1 - log, log & NUMBER)
        rows = due.row[tickets]
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        bounds, columns = np.append(starts, len(rows)), due.columns.for_events(due.outcomes)
        listed = [] if machine is not None else [column.tolist() for column in columns]
        whose, all_rows = rows[starts], np.arange(len(starts))
        for group in self._tiers.groups(all_rows, whose, self._stamps):
            told = self._tiers.places(whose[group]), bounds[group[0] : group[-1] + 2], log
            if machine is not None:
                self._play_compiled(machine, *told, columns)
            else:
                self._play_plainly(*told, listed)
        for column, played in zip(columns, listed, strict=False):
            column[:] = played

    def _play_compiled(
        self, machine: Any, places: Words, bounds: Words, log: Words, columns: tuple[Any, ...]
    ) -> None:
        def play(flat: Words, start: int, a: int, b: int) -> None:
            told = places[a:b] - start, bounds[a : b + 1], log
            machine.events(flat, flat.view(np.float64), *told, *columns)

        self._share_out(bounds, play)

    def _share_out(self, bounds: Words, play: Callable[[Words, int, int, int], None]) -> None:
        """Let rows be played, some in each thread if they are worth it.

        ``play`` is given an array that begins with a header, where that is, and which rows.
        """
        flat, size = self._rows.arena.flat(), int(bounds[-1] - bounds[0])
        jobs = min(self.jobs, 1 + size // WORTH)
        if jobs == 1:
            play(flat, 0, 0, len(bounds) - 1)
            return
        pieces = PIECES * jobs
        fair = bounds[0] + size * np.arange(1, pieces) // pieces
        cuts = [0, *np.searchsorted(bounds, fair).tolist(), len(bounds) - 1]
        # One iterator for all threads: each piece is taken by one.
        left = iter([(a, b) for a, b in itertools.pairwise(cuts) if a < b])

        def work(first: int) -> None:
            for a, b in left:
                play(flat[first:], first, a, b)

        together([functools.partial(work, first) for first in self._tiers.headers(jobs)])
        flat[[word.HAND, word.NOTES, word.UNDO_NUMBER, word.UNDO_AT]] = -1

    def _play_plainly(self, places: Words, bounds: Words, log: Words, columns: list[Any]) -> None:
        words, reals = self._rows.state()
        for place, a, b in zip(places.tolist(), bounds[:-1], bounds[1:], strict=True):
            self._rows.program.events(words, reals, place, log[a:b].tolist(), *columns)

    def _machine(self, rounds: int) -> Any:
        """Return compiled loops over rows if they are worth it, or once they exist."""
        program = self._rows.program
        made = program.__dict__.get("rows")
        return made if made is not None or rounds <= SHORT else program.rows

    def _numbers_of(self, parts: Parts) -> Words:
        """Return the number that the ticket of each round of a batch will have in its stream."""
        ticket = np.empty(len(parts.order), np.int64)
        ticket[parts.order] = parts.numbers(self._own(word.ISSUED, parts.rows))
        return ticket

    def _has_crowds(self, rows: Words) -> Mask:
        """Say which rows count outcomes as some of many, because others were missing."""
        rule, words = self._rows.program.rule, self._rows.arena.flat()
        if counts_by_lag(words) or not (rule.anchored or self._spec.kept > 0):
            return np.zeros(len(rows), bool)
        waiting = self._own(word.ISSUED, rows) - self._own(word.ROUNDS, rows)
        crowded: Mask = (self._own(word.MOST_OUTSTANDING, rows) != 0) | (waiting != 0)
        return crowded

    def _check_room(
        self, keys: Keys, rows: Words, counts: Words, told: Callable[[int, int], str]
    ) -> None:
        """Refuse more rounds than rows have room for.

        ``told`` says which round of a row comes after that many of the batch.
        """
        most, before = self._rows.capacity, self._own(word.ROUNDS, rows)
        full = before + counts > most
        if full.any():
            k = int(np.argmax(full))
            row, new = int(rows[k]), self._new(keys)
            names = dict(zip(self._free_rows(len(new)).tolist(), new, strict=True))
            key = names[row] if row in names else self._keys[row]
            rule = f"rounds of key {key!r} must be at most {most} in all"
            raise InvalidInput(f"{rule}, got one more: {told(row, most - int(before[k]))}")

    def _check_order(self, when: Reals, parts: Parts) -> None:
        """Raise unless the times of each row's rounds are finite and in order."""
        bad, sorted_when = ~np.isfinite(when), when[parts.order]
        back = np.diff(sorted_when, prepend=-np.inf) < 0
        back[parts.bounds[:-1][parts.bounds[:-1] < len(back)]] = False
        bad[parts.order] |= back
        check.refuse_first(bad, when, "time", "finite and not before the row above it of its key")

    def _expire_rows(self, rows: Words) -> None:
        """Close the tickets of rows that are too old by now."""
        if not len(self._desk):
            return
        oldest = self._own(word.ISSUED, rows) - self._max_open
        for row, least in zip(rows[oldest > 0].tolist(), oldest[oldest > 0].tolist(), strict=True):
            gone = self._desk.old(row, least)
            self._drop(gone)
            for found in gone:
                self._closed.note_name(found[0], EXPIRED)
            self._desk.pass_by(row, least)
