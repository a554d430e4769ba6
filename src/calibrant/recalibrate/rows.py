"""Rows of one spec at work: issue a forecast in a row, learn its outcome there.

This is the way of one forecast: the program of a spec works on a row, and says where the draw
fell.  A lone stream has one row; a table and the recalibrators of several classes have many.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.arena import Arena, Bench
from calibrant.core.arrays import Bits
from calibrant.core.ticket import Ticket
from calibrant.errors import ForeignTicket, InvalidInput, RepeatedTicket
from calibrant.kernels import layout as word
from calibrant.kernels.compile import SHORT
from calibrant.kernels.crowd import counts_by_lag
from calibrant.kernels.layout import ISSUED, ROUNDS, UNDO_AT, UNDO_NUMBER, unpack
from calibrant.kernels.on_array import SEEN
from calibrant.kernels.rounds import Issued as Announced
from calibrant.kernels.rounds import Peeked, Program, Said, block_at
from calibrant.recalibrate.spec import Spec

Issued: TypeAlias = tuple[int, int, float, float, int, tuple[int, ...], tuple[float, ...] | None]
"""Number, place, weight of the lower point, mixed forecast, clock, advice kept, and the law where
a mixture may have more than two points."""

Notes: TypeAlias = list[Any]
"""Of forecasts that belong together in turn the row, and what the header said after each."""
UNDO: Final = slice(UNDO_NUMBER, word.UNDO_RESERVED + 1)
"""Where that stands in the header."""
NOTHING: Final = None, ()
"""Law and advice of a ticket that needs neither."""


class Rows(Bench):
    """An arena and the program that works on its rows; a row is given by where it starts.

    Plain steps work on the arena's list.  After :meth:`compile` they are machine code and work on
    its array, and what is not compiled works on views of that array.
    """

    __slots__ = (
        "_keep",
        "_law",
        "_reads",
        "bare",
        "capacity",
        "machine",
        "plain_commit",
        "plain_issue",
        "plain_learn",
        "plain_peek",
        "reals",
        "spec",
        "steps",
    )

    def __init__(self, spec: Spec, arena: Arena) -> None:
        super().__init__(arena)
        self.spec, plain = spec, spec.steps
        self.plain_peek, self.plain_issue = plain.peek, plain.issue
        self.plain_learn, self.plain_commit = plain.learn, plain.commit
        _, self._law, self.bare = spec.left
        self._keep, self._reads = spec.keep, spec.slots
        self.capacity = spec.capacity
        self.steps: Any = None
        self.machine: Any = None
        self.reals: Any = None

    @property
    def program(self) -> Program:
        """The steps of the spec."""
        return self.spec.program

    def compile(self) -> bool:
        """Compile single steps; say whether there is a compiler."""
        self.begin_compiled(self.spec.compile())
        return self.steps is not None

    def begin_compiled(self, steps: Any) -> None:
        """Take over compiled single steps, if there are any: once they find the array at hand."""
        if steps is not None:
            self.use_views()
        self.steps = steps

    def use_array(self) -> None:
        """With compiled steps, keep the array at hand through fast views."""
        if self.steps is not None:
            self.use_views()

    def use_views(self) -> None:
        """Work on the array itself from now on, compiled or not: for many rows."""
        super().use_views()
        self.machine, (_, self.reals) = self.arena.flat(), self.state()

    def plain_words(self) -> list[Any] | None:
        """Return the words on which plain steps work, or None once steps are compiled."""
        return self.arena.words() if self.steps is None else None

    def batch(self, rounds: int) -> Any:
        """Return the compiled program if it is worth it: for long batches, or once it exists."""
        made = self.program.__dict__.get("machine")
        return made if made is not None or rounds <= SHORT else self.program.machine

    # ------------------------------------------------------------------- a round

    def announce(self, row: int, raw: float) -> Announced:
        """Make a forecast in a row: the spec's program draws, and says where the draw fell."""
        if self.steps is None:
            words, reals = self.state()
            if words[row + word.ISSUED] >= self.capacity:
                self.check_room(row)
            return self.plain_issue(words, reals, row, raw)
        found: Announced = self.steps.issue_flat(self.machine, row, raw)
        if found[0] < 0:
            self.check_room(row)
        return found

    def tell(self, told: Sequence[int]) -> None:
        """Write down what is known of the round that comes next."""
        words = self.state()[0]
        words[self.spec.features] = told if type(words) is list else array(words.format, told)

    def law_and_advice(
        self, listed: Any = None
    ) -> tuple[tuple[float, ...] | None, tuple[int, ...]]:
        """Return what else a ticket keeps of the forecast that was just made.

        Where the words are a list, that may be given.
        """
        words, reals = (listed, listed) if listed else self.state()
        return None if self._law is None else tuple(reals[self._law]), self._keep(words)

    def issue(self, row: int, raw: float) -> Issued:
        """Make a forecast in a row, and return all that a ticket keeps of it."""
        number, place, weight, mixed, clock = self.announce(row, raw)
        law, kept = NOTHING if self.bare else self.law_and_advice()
        return number, place, weight, mixed, clock, kept, law

    def issue_part(self, row: int, raw: float, notes: Notes) -> Issued:
        """Make one of several forecasts that belong together, and note how to take it back."""
        words: Any = self.arena.listed if self._views is None else self._views[0]
        if words is None:
            words = self.arena.words()
        words[UNDO_NUMBER] = words[UNDO_AT] = -1
        notes.append(row)
        number, place, weight, mixed, clock = self.announce(row, raw)
        undo = words[UNDO]
        notes.append(undo if type(undo) is list else undo.tolist())
        law, kept = NOTHING if self.bare else self.law_and_advice()
        return number, place, weight, mixed, clock, kept, law

    def withdraw_parts(self, notes: Notes) -> None:
        """Take back the forecasts of several rows that were noted, as far as they were made."""
        self.use_array()
        words = self.state()[0]
        if len(notes) % 2:
            notes.append(list(words[UNDO]))
        for row, undo in zip(notes[-2::-2], notes[::-2], strict=True):
            for place, told in enumerate(undo, UNDO_NUMBER):
                words[place] = told
            if words[UNDO_AT] >= 0:
                self.program.withdraw(words, row, words[row + ISSUED] - 1)

    def learn_parts(self, parts: Sequence[tuple[Any, ...]]) -> None:
        """Learn outcomes in rows of their own, given as to :meth:`learn`: all of them, or none.

        If an interrupt comes, those that are left are learned before it goes on.
        """
        self._all_of(parts, ROUNDS, self.learn)

    def commit_parts(self, parts: Sequence[tuple[Any, ...]]) -> None:
        """Make rounds in rows of their own, given as to :meth:`commit`: all of them, or none."""
        self._all_of(parts, ISSUED, self.commit)

    def _all_of(self, parts: Sequence[tuple[Any, ...]], count: int, step: Any) -> None:
        words = self.state()[0]
        before = [words[part[0] + count] for part in parts]
        try:
            for part in parts:
                step(*part)
        except BaseException:
            for part, counted in zip(parts, before, strict=True):
                if words[part[0] + count] == counted:
                    step(*part)
            raise

    def learn_ticket(self, row: int, ticket: Ticket, outcome: int) -> None:
        """Learn the outcome of a ticket in its row; ``Recalibrator.observe`` does it by hand."""
        number, steps = ticket._number, self.steps
        when = 0.0 if ticket._time is None else ticket._time
        if self._reads:
            self.tell(ticket._kept[-self._reads :])
        # Usually the forecast that was announced last is the one that is learned.
        if steps is None or steps.learn_flat(self.machine, row, number, when, outcome) < 0:
            self.learn_filed(row, ticket, when, outcome)

    def learn_filed(self, row: int, ticket: Ticket, when: float, outcome: int) -> None:
        """Learn the outcome of a ticket that is not the last one of its row."""
        told = ticket._place, ticket._weight, ticket._mixed, ticket._raw
        self.learn(row, ticket._number, *told, when, outcome, ticket._kept)

    def learn(
        self,
        row: int,
        number: int,
        place: int,
        weight: float,
        mixed: float,
        raw: float,
        time: float,
        outcome: int,
        kept: tuple[int, ...] = (),
    ) -> None:
        """Learn the outcome of a forecast that was made in a row."""
        words, reals = self.state()
        # What the experts said then is read of late outcomes alone.
        if kept and words[row + word.ISSUED] - number > 1:
            for k, told in enumerate(kept, self.spec.left[0].start):
                words[k] = told
        if self.steps is None:
            self.plain_learn(words, reals, row, number, place, weight, mixed, raw, time, outcome)
            return
        words[word.HAND], words[word.HAND_ROW], words[word.HAND_PLACE] = number, row, place
        reals[word.HAND_WEIGHT], reals[word.HAND_MIXED] = weight, mixed
        reals[word.HAND_RAW] = raw
        self.steps.learn_flat(self.machine, row, number, time, outcome)

    def peek(self, row: int, raw: float) -> Peeked:
        """Look at the next draw; nothing changes."""
        if self.steps is None:
            words, reals = self.state()
            return self.plain_peek(words, reals, row, raw)
        self.steps.peek_flat(self.machine, row, raw)
        return self.looked_at()

    def looked_at(self) -> Peeked:
        """Return what the last look of a compiled step found."""
        words, reals = self.state()
        return (
            words[word.LOOK_PLACE],
            reals[word.LOOK_WEIGHT],
            reals[word.LOOK_MIXED],
            words[word.LOOK_CLOCK],
            words[word.LOOK_LEARNED],
        )

    def mean_of(self, place: int, weight: float) -> float:
        """Return the mean of the pair, or of the law, that was just looked at."""
        words, reals = self.state()
        _, cell, side = unpack(place)
        sizes = words[word.CELLS], words[word.TABLE]
        mean = self.spec.rule.kernels.mean(words, reals, *sizes, cell, side, weight)
        return min(max(mean, 0.0), 1.0)

    def committable(self, row: int, note: Peeked, raw: float) -> bool:
        """Say whether what was peeked at can still become a round; nothing changes."""
        place, weight, _, clock, _ = note
        program, (words, _) = self.program, self.state()
        at = row + words[word.BLOCKS] + ((place >> 16) & word.NARROW) * words[word.STRIDE]
        if words[at + word.CLOCK] != clock:
            return False
        if program.safe and not program.afford(*self.state(), row, place, weight, raw):
            return False
        if words[row + word.ISSUED] >= self.capacity:
            self.check_room(row)
        return True

    def commit(self, row: int, note: Peeked, raw: float, outcome: int) -> int:
        """Make a round of what was peeked at; return its number.

        Or return -1, if another forecast came in between, or spent the budget.
        """
        (words, reals), (place, weight, mixed, clock, learned) = self.state(), note
        if self.steps is not None:
            words[word.LOOK_PLACE], words[word.LOOK_CLOCK] = place, clock
            words[word.LOOK_LEARNED] = learned
            reals[word.LOOK_WEIGHT], reals[word.LOOK_MIXED] = weight, mixed
            return self.commit_look(row, raw, outcome)
        if words[row + word.ISSUED] >= self.capacity:
            self.check_room(row)
        return self.plain_commit(words, reals, row, *note, raw, outcome)

    def commit_look(self, row: int, raw: float, outcome: int) -> int:
        """Do the same with what the last look of a compiled step found."""
        number: int = self.steps.learn_flat(self.machine, row, SEEN, raw, outcome)
        if number < -1:
            self.check_room(row)
        return number

    def forget(self, row: int, place: int, weight: float, raw: float) -> None:
        """Give back what was reserved for a forecast whose outcome will not come."""
        words, reals = self.state()
        words[word.UNDO_NUMBER] = -1
        self.program.hold(words, reals, row, place, weight, raw, -1)

    def correct(self, row: int, said: Said, outcome: int) -> None:
        """Replace the outcome of a forecast that was made in a row by ``outcome``."""
        words, reals = self.state()
        self.program.correct(words, reals, row, said, outcome)

    def check_counted(
        self, row: int, place: int, outcome: int, told: Any, fresh: NDArray[np.int64] | None = None
    ) -> None:
        """Raise if an outcome to be replaced by ``outcome`` cannot have been counted at a place.

        ``fresh`` is the row before its first round, where that is not the spec's own.
        """
        bucket, cell, side = unpack(place)
        rule, words = self.spec.rule, self.state()[0]
        cells, wide = rule.lattice.cells, side >> word.WIDTH > rule.doublings
        if bucket >= self.spec.buckets or cell >= cells or wide:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {told!r}")
        where = block_at(words, row, place) + len(rule.kernels.head)
        where += len(rule.kernels.cell) * cell
        # What the prior put there is there in a fresh row.
        begun = self.spec.layout.fresh if fresh is None else fresh
        size, value = len(rule.kernels.cell), words[words[word.TABLE] + cell]
        now, then = words[where : where + size], begun[where - row : where - row + size].tolist()
        count, ones = rule.counted(now, then, value, words[word.SCALE])
        if not 0 <= ones + 2 * outcome - 1 <= count:
            raise RepeatedTicket(
                f"outcome {1 - outcome} must have been counted where it is corrected, "
                f"got {ones} ones in {count} rounds: was it corrected already?"
            )

    def check_room(self, row: int, rounds: int = 1) -> None:
        """Raise if that many more rounds could make a gap leave 63 bits."""
        # Read in the form in which the words are: going over to the other takes long.
        words = self.arena.flat() if self.arena.listed is None else self.arena.listed
        most, learned = self.capacity, int(words[row + word.ROUNDS])
        if learned + rounds > most:
            raise InvalidInput(
                f"rounds must be at most {most} at this resolution and number of "
                f"buckets, got {learned + rounds}"
            )

    # ------------------------------------------------------------------- batches

    def replay(
        self,
        row: int,
        raw: NDArray[np.float64],
        outcomes: Bits,
        told: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.float64], ...]:
        """Play rounds whose outcomes come at once; return draws, means and mixed forecasts.

        ``told`` is what is known of each round besides, if an expert reads that.
        """
        self.check_room(row, len(raw))
        if told is not None or self._has_crowds(row):
            return self._replay_in_turn(row, raw, outcomes, told)
        # One piece of memory: the pages of several go back to the system and come anew each time,
        # which takes a third as long as rounds of the quickest rule.
        forecast, mean, *rest = np.empty((2 if self.spec.transform is None else 3, len(raw)))
        mixed = rest[0] if rest else np.empty(0)
        machine = self.batch(len(raw))
        if machine is not None:
            flat = self.arena.flat()
            flat[word.HAND] = -1
            machine.replay(flat, flat.view(np.float64), row, raw, outcomes, forecast, mean, mixed)
        else:
            words, reals = self.state()
            # Lists, for what is written there and read again goes into the state.
            given = [column.tolist() for column in (raw, outcomes, forecast, mean, mixed)]
            self.program.replay(words, reals, row, *given)
            forecast[:], mean[:], mixed[:] = given[2:]
        return forecast, mean, raw if self.spec.transform is None else mixed

    def _has_crowds(self, row: int) -> bool:
        """Say whether outcomes of a row count as some of many, because others were missing."""
        words, rule = self.state()[0], self.program.rule
        if counts_by_lag(words) or not (rule.anchored or self.spec.kept > 0):
            return False
        waiting = words[row + word.ISSUED] - words[row + word.ROUNDS]
        return bool(words[row + word.MOST_OUTSTANDING] or waiting)

    def _replay_in_turn(
        self,
        row: int,
        raw: NDArray[np.float64],
        outcomes: Bits,
        told: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.float64], ...]:
        """Play the same as a log of forecasts and outcomes in turn."""
        rounds = np.arange(len(raw))
        log = np.stack([rounds, -1 - rounds], axis=1).reshape(-1)
        number, place, clock = (np.zeros(len(raw), np.int64) for _ in range(3))
        time, forecast, mean, weight, mixed = (np.zeros(len(raw)) for _ in range(5))
        kept = np.zeros((len(raw), self.spec.kept), np.int64)
        if told is not None:
            kept[:, -self.spec.slots :] = told
        advice = kept.reshape(-1)
        made = forecast, mean, weight, place, mixed, clock, advice
        self.events(row, log, raw, outcomes, number, time, *made)
        return forecast, mean, raw if self.spec.transform is None else mixed

    def events(self, row: int, log: NDArray[np.int64], *columns: NDArray[Any]) -> None:
        """Play forecasts and outcomes in the order of a log, by ``kernels/batches.py``."""
        machine = self.batch(len(log))
        if machine is not None:
            flat = self.arena.flat()
            flat[word.HAND] = -1
            machine.events(flat, flat.view(np.float64), row, log, *columns)
        else:
            words, reals = self.state()
            lists = [column.tolist() for column in columns]
            self.program.events(words, reals, row, log.tolist(), *lists)
            for column, played in zip(columns, lists, strict=True):
                column[:] = played

    def preview(
        self, row: int, raw: NDArray[np.float64], told: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return draws and means of many raw forecasts, each as the very next round.

        ``told`` is what is known of each besides, if an expert reads that; by default nothing is.
        """
        draws, means = np.empty(len(raw)), np.empty(len(raw))
        known = np.zeros((len(raw), self.spec.slots), np.int64) if told is None else told
        facts = raw, known.reshape(-1)
        machine = self.batch(len(raw))
        if machine is not None:
            flat = self.arena.flat()
            machine.preview(flat, flat.view(np.float64), row, *facts, draws, means)
        else:
            words, reals = self.state()
            self.program.preview(words, reals, row, *(f.tolist() for f in facts), draws, means)
        return draws, means
