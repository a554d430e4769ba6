"""Rows of one spec at work: issue a forecast in a row, learn its outcome there.

This is the way of one forecast: the program of a spec works on a row, and says where the draw
fell.  A lone stream has one row; a table and the recalibrators of several classes have many.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.arena import Arena, Bench
from calibrant.core.arrays import Bits
from calibrant.errors import ForeignTicket, InvalidInput, RepeatedTicket
from calibrant.kernels.layout import (
    ADVICE,
    BLOCKS,
    CELLS,
    CLOCK,
    ISSUED,
    MOST_OUTSTANDING,
    NARROW,
    ROUNDS,
    SCALE,
    SCRATCH,
    STRIDE,
    TABLE,
    WIDTH,
    unpack,
)
from calibrant.kernels.rounds import Peeked, Said, block_at
from calibrant.recalibrate.spec import Spec

SHORT = 20_000
"""Batches up to this long do not start the compiler: it would take longer than they do."""

Issued: TypeAlias = tuple[int, int, float, float, int, tuple[int, ...], tuple[float, ...] | None]
"""Number, place, weight of the lower point, mixed forecast, clock, advice kept, and the law where
a mixture may have more than two points."""


class Rows(Bench):
    """An arena and the program that works on its rows; a row is given by where it starts.

    Plain steps work on the arena's list.  After :meth:`compile` they are machine code and work on
    its array, and what is not compiled works on views of that array.
    """

    __slots__ = ("_advice", "_bare", "_law", "_machine", "_steps", "capacity", "program", "spec")

    def __init__(self, spec: Spec, arena: Arena) -> None:
        super().__init__(arena)
        self.spec, self.program = spec, spec.program
        shared = spec.layout.shared
        self._advice = slice(int(shared[ADVICE]), int(shared[ADVICE]) + spec.kept)
        scratch = int(shared[SCRATCH])
        full = spec.rule.kernels.full_support
        self._law = slice(scratch, scratch + spec.rule.lattice.cells) if full else None
        self._bare = not spec.kept and self._law is None
        self.capacity = spec.capacity
        self._steps: Any = None
        self._machine: Any = None

    def compile(self) -> bool:
        """Compile single steps; say whether there is a compiler."""
        machine = self.program.machine
        if machine is None:
            return False
        self._steps = machine.steps(self.spec.layout.alone.copy(), self.spec.layout.row)
        self.use_array()
        return True

    def use_array(self) -> None:
        """With compiled steps, keep the array at hand through fast views."""
        if self._steps is not None:
            self.use_views()

    def use_views(self) -> None:
        """Work on the array itself from now on, compiled or not: for many rows."""
        super().use_views()
        self._machine = self.arena.flat()

    def batch(self, rounds: int) -> Any:
        """Return the compiled program if it is worth it: for long batches, or once it exists."""
        made = self.program.__dict__.get("machine")
        return made if made is not None or rounds <= SHORT else self.program.machine

    # ------------------------------------------------------------------- a round

    def issue(self, row: int, raw: float) -> Issued:
        """Make a forecast in a row."""
        views = self._views
        if views is None:
            words = reals = self.arena.listed or self.arena.words()
        else:
            words, reals = views
        number: int = words[row + ISSUED]
        if number >= self.capacity:
            self.check_room(row)
        if self._steps is None:
            place, weight, mixed, clock = self.program.issue(words, reals, row, raw)
        else:
            place, weight, mixed, clock = self._steps.issue_flat(self._machine, row, raw)
        if self._bare:
            return number, place, weight, mixed, clock, (), None
        law = None if self._law is None else tuple(reals[self._law])
        return number, place, weight, mixed, clock, tuple(words[self._advice]), law

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
        views = self._views
        words = self.arena.listed or self.arena.words() if views is None else views[0]
        # What the experts said then is read of late outcomes alone.
        if kept and words[row + ISSUED] - number > 1:
            start = self._advice.start
            for k, word in enumerate(kept, start):
                words[k] = word
        if self._steps is None:
            reals = words if views is None else views[1]
            self.program.learn(words, reals, row, number, place, weight, mixed, raw, time, outcome)
        else:
            self._steps.learn_flat(
                self._machine, row, number, place, weight, mixed, raw, time, outcome
            )

    def peek(self, row: int, raw: float) -> Peeked:
        """Look at the next draw: place, weight, mixed forecast and clock; nothing changes."""
        if self._steps is None:
            words, reals = self.state()
            return self.program.peek(words, reals, row, raw)
        found: Peeked = self._steps.peek_flat(self._machine, row, raw)
        return found

    def mean_of(self, place: int, weight: float) -> float:
        """Return the mean of the pair, or of the law, that was just looked at."""
        words, reals = self.state()
        _, cell, side = unpack(place)
        sizes = words[CELLS], words[TABLE]
        mean = self.spec.rule.kernels.mean(words, reals, *sizes, cell, side, weight)
        return min(max(mean, 0.0), 1.0)

    def bookable(self, row: int, note: Peeked, raw: float) -> bool:
        """Say whether what was peeked at can still become a round; nothing changes."""
        place, weight, _, clock = note
        views, program = self._views, self.program
        words = self.arena.listed or self.arena.words() if views is None else views[0]
        at = row + words[BLOCKS] + ((place >> 16) & NARROW) * words[STRIDE]
        if words[at + CLOCK] != clock:
            return False
        if program.safe and not program.afford(*self.state(), row, place, weight, raw):
            return False
        if words[row + ISSUED] >= self.capacity:
            self.check_room(row)
        return True

    def book(self, row: int, note: Peeked, raw: float, outcome: int) -> int:
        """Make a round of what was peeked at; return its number.

        Or return -1, if another forecast came in between, or spent the budget.
        """
        if not self.bookable(row, note, raw):
            return -1
        place, weight, mixed, _ = note
        words, reals = self.state()
        number: int = words[row + ISSUED]
        if self._steps is None:
            self.program.book(words, reals, row, place, weight, mixed, raw, outcome)
        else:
            self._steps.book_flat(self._machine, row, place, weight, mixed, raw, outcome)
        return number

    def forget(self, row: int, place: int, weight: float, raw: float) -> None:
        """Give back what was reserved for a forecast whose outcome will not come."""
        words, reals = self.state()
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
        cells, wide = rule.lattice.cells, side >> WIDTH > rule.doublings
        if bucket >= self.spec.buckets or cell >= cells or wide:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {told!r}")
        where = block_at(words, row, place) + len(rule.kernels.head)
        where += len(rule.kernels.cell) * cell
        # What the prior put there is there in a fresh row.
        begun = self.spec.layout.fresh if fresh is None else fresh
        gap, visits = begun[where - row : where - row + 2].tolist()
        count, value = words[where + 1] - visits, words[words[TABLE] + cell]
        ones = (words[where] - gap + count * value) // words[SCALE]
        if not 0 <= ones + 2 * outcome - 1 <= count:
            raise RepeatedTicket(
                f"outcome {1 - outcome} must have been counted where it is corrected, "
                f"got {ones} ones in {count} rounds: was it corrected already?"
            )

    def check_room(self, row: int, rounds: int = 1) -> None:
        """Raise if so many more rounds could make a gap leave 63 bits."""
        most, learned = self.capacity, int(self.state()[0][row + ROUNDS])
        if learned + rounds > most:
            raise InvalidInput(
                f"rounds must be at most {most} at this resolution and number of "
                f"buckets, got {learned + rounds}"
            )

    # ------------------------------------------------------------------- batches

    def replay(
        self, row: int, raw: NDArray[np.float64], outcomes: Bits
    ) -> tuple[NDArray[np.float64], ...]:
        """Play rounds whose outcomes come at once; return draws, means and mixed forecasts."""
        self.check_room(row, len(raw))
        if self._has_crowds(row):
            return self._replay_in_turn(row, raw, outcomes)
        forecast, mean = np.empty(len(raw)), np.empty(len(raw))
        mixed = np.empty(0 if self.spec.transform is None else len(raw))
        machine = self.batch(len(raw))
        if machine is not None:
            flat = self.arena.flat()
            machine.replay(flat, flat.view(np.float64), row, raw, outcomes, forecast, mean, mixed)
        else:
            words, reals = self.state()
            rows = raw.tolist(), outcomes.tolist()
            self.program.replay(words, reals, row, *rows, forecast, mean, mixed)
        return forecast, mean, raw if self.spec.transform is None else mixed

    def _has_crowds(self, row: int) -> bool:
        """Say whether outcomes of a row count as some of many, because others were missing."""
        words, rule = self.state()[0], self.program.rule
        missing = words[row + MOST_OUTSTANDING] or words[row + ISSUED] - words[row + ROUNDS]
        return bool(missing) and (rule.anchored or self.spec.kept > 0)

    def _replay_in_turn(
        self, row: int, raw: NDArray[np.float64], outcomes: Bits
    ) -> tuple[NDArray[np.float64], ...]:
        """Play the same as a log of forecasts and outcomes in turn."""
        rounds = np.arange(len(raw))
        log = np.stack([rounds, -1 - rounds], axis=1).reshape(-1)
        number, place, clock = (np.zeros(len(raw), np.int64) for _ in range(3))
        time, forecast, mean, weight, mixed = (np.zeros(len(raw)) for _ in range(5))
        advice = np.zeros(len(raw) * self.spec.kept, np.int64)
        made = forecast, mean, weight, place, mixed, clock, advice
        self.events(row, log, raw, outcomes, number, time, *made)
        return forecast, mean, raw if self.spec.transform is None else mixed

    def events(self, row: int, log: NDArray[np.int64], *columns: NDArray[Any]) -> None:
        """Play forecasts and outcomes in the order of a log; see :mod:`.kernels.batches`."""
        machine = self.batch(len(log))
        if machine is not None:
            flat = self.arena.flat()
            machine.events(flat, flat.view(np.float64), row, log, *columns)
        else:
            words, reals = self.state()
            lists = [column.tolist() for column in columns]
            self.program.events(words, reals, row, log.tolist(), *lists)
            for column, played in zip(columns, lists, strict=True):
                column[:] = played

    def preview(
        self, row: int, raw: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return draws and means of many raw forecasts, each as the very next round."""
        draws, means = np.empty(len(raw)), np.empty(len(raw))
        machine = self.batch(len(raw))
        if machine is not None:
            flat = self.arena.flat()
            machine.preview(flat, flat.view(np.float64), row, raw, draws, means)
        else:
            words, reals = self.state()
            self.program.preview(words, reals, row, raw.tolist(), draws, means)
        return draws, means
