"""Playing rounds: the same few steps one at a time and in batches.

:func:`assemble` makes all steps of one rule, with or without a transform before it and a budget
around it; the results are plain Python, and :mod:`calibrant.kernels.compile` turns the very same
objects into machine code.  Every step gets the place of a row, and runs at any row of an arena.

``peek`` looks at the next draw of a raw forecast, ``issue`` announces it, ``commit`` makes a
round of a peek, ``learn`` learns its outcome, at once or later, ``correct`` replaces an outcome
and ``hold`` gives back what was reserved for one that never comes.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from calibrant.kernels import safe as budget
from calibrant.kernels.alone import Sizes, count_overtaken, make_steps
from calibrant.kernels.batches import make_events, make_preview, make_replay, make_replay_mixed
from calibrant.kernels.coin import toss
from calibrant.kernels.compile import are_made, available, compiled, entry_point, mark
from calibrant.kernels.crowd import count_forecast, counts_by_lag, crowd_of, part_of
from calibrant.kernels.layout import (
    ADVICE,
    ASIDE,
    BLOCKS,
    BUCKETS,
    CELL,
    CELLS,
    CLOCK,
    CROWD,
    EDGES,
    EXCESS,
    ISSUED,
    LAG,
    LEAST_STEP,
    LONGEST_LAG,
    LOSS,
    MIXED,
    MIXED_INFINITE,
    MIXED_LOSS,
    MOST_OUTSTANDING,
    NARROW,
    NOTED,
    NOTED_MIXED,
    NOTES,
    NOW,
    POSITION,
    RAW_INFINITE,
    RAW_LOSS,
    RESERVED,
    ROUNDS,
    SAME,
    SIDES,
    STRIDE,
    TABLE,
    TRANSFORM,
    UNDO_AT,
    UNDO_FRESH,
    UNDO_LEARNED,
    UNDO_MOST,
    UNDO_NUMBER,
    UNDO_POSITION,
    UNDO_RESERVED,
    VALUES,
    Reals,
    Words,
    unpack,
)
from calibrant.kernels.on_array import issue_on_array, learn_on_array, peek_on_array
from calibrant.kernels.pairs import FRESH
from calibrant.kernels.rule import Rule
from calibrant.kernels.scores import SQUARED, bill, charge, enter, refund
from calibrant.kernels.tables import RowsMachine, machine_of_rows
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.kernels.whole import whole, whole_round, withdraw

Peeked = tuple[int, float, float, int, int]
"""Place of a draw, weight of the lower grid point, mixed forecast, clock of the block, and how many
outcomes were learned by then."""
Said = tuple[int, int, float, float, float, float]
"""Number, place, weight, mixed forecast, raw forecast and time of a forecast that was made."""
Issued = tuple[int, int, float, float, int]
"""Number of an announced forecast, and its place, weight, mixed forecast and clock."""
Issue = Callable[[Words, Reals, int, float], Issued]
Peek = Callable[[Words, Reals, int, float], Peeked]
Learn = Callable[[Words, Reals, int, int, int, float, float, float, float, int], None]
Commit = Callable[[Words, Reals, int, int, float, float, int, int, float, int], int]
Begin = Callable[[Words, Reals, int, int, float, int, int, float], int]
Absorb = Callable[[Words, Reals, int, float, float, int, float, float, bool], None]


@dataclass(frozen=True, eq=False)
class Program:
    """All steps of one rule, plain; and compiled, once somebody asks for that.

    The functions that end in ``_flat`` do the same on the array alone, for callers to whom every
    argument costs time: a forecast that was announced, or looked at, stays in the header, and is
    learned from there, or made a round.  ``replay``, ``events`` and ``preview`` play whole batches.
    """

    name: str
    rule: Rule
    kernel: Kernel | None
    safe: bool
    peek: Peek
    issue: Issue
    learn: Learn
    commit: Commit
    issue_flat: Callable[[Any, int, float], Issued]
    peek_flat: Callable[[Any, int, float], int]
    learn_flat: Callable[[Any, int, int, float, int], int]
    replay: Callable[..., None]
    events: Callable[..., None]
    preview: Callable[..., None]

    @functools.cached_property
    def machine(self) -> Program | None:
        """The compiled program, or None where there is no compiler."""
        if not available():
            return None
        return replace(
            self,
            peek_flat=compiled(self.peek_flat, self.name),
            issue_flat=compiled(self.issue_flat, self.name),
            learn_flat=compiled(self.learn_flat, self.name),
            replay=compiled(self.replay, self.name, nogil=True),
            events=compiled(self.events, self.name, nogil=True),
            preview=compiled(self.preview, self.name, nogil=True),
        )

    def is_made(self) -> bool:
        """Say whether the single steps have their machine code, in this process or on disk."""
        single = self.peek_flat, self.issue_flat, self.learn_flat
        return available() and are_made(*(compiled(step, self.name) for step in single))

    @functools.cached_property
    def rows(self) -> RowsMachine | None:
        """Compiled loops over many rows, or None where there is no compiler."""
        if not available():
            return None
        kept = 0 if self.kernel is None else self.kernel.kept
        replay = _make_replay(self.rule, self.kernel, self.safe)
        told = 0 if self.kernel is None else self.kernel.told
        events = make_events(self.rule, self.issue, self.learn, kept, self.safe, told)
        return machine_of_rows(replay, events, self.name)

    def steps(self, flat: Any, row: int) -> Program:
        """Return this compiled program with its single steps ready to be called.

        ``flat`` is a state to try them on, which compiles them.
        """
        self.peek_flat(flat, row, 0.5)
        number, *_ = self.issue_flat(flat, row, 0.5)
        self.learn_flat(flat, row, number, 0.0, 1)
        return replace(
            self,
            peek_flat=entry_point(self.peek_flat),
            issue_flat=entry_point(self.issue_flat),
            learn_flat=entry_point(self.learn_flat),
        )

    def alone(self, sizes: Sizes) -> Program:
        """Return this program with plain steps for one layout that cannot be left half done.

        Quicker ones, if these are enough.
        """
        rule = self.rule
        if self.kernel is None and not rule.full_support and not rule.anchored:
            return replace(self, **make_steps(rule.draw, rule.update, sizes))
        learn, commit = whole_round(self.learn, sizes, 1), whole_round(self.commit, sizes, 0)
        if self.safe or rule.full_support:
            return replace(self, issue=whole(self.issue, sizes.row), learn=learn, commit=commit)
        # Any other forecast changes its words at the end, and without a call in between.
        return replace(self, learn=learn, commit=commit)

    def withdraw(self, words: Words, row: int, number: int) -> None:
        """Take back the forecast of that number, announced last, of which nobody got the ticket."""
        withdraw(words, row, number, self.rule.full_support, self.safe)

    # ------------------------------------------------- steps that no batch needs, always plain

    def afford(
        self, words: Words, reals: Reals, row: int, place: int, weight: float, raw: float
    ) -> bool:
        """Say whether a draw that was peeked at can still be afforded; a fallback always can."""
        return bool(place & ASIDE) or budget.decide(words, reals, row, raw, place, weight) == 0

    def hold(
        self, words: Words, reals: Reals, row: int, place: int, weight: float, raw: float, sign: int
    ) -> None:
        """Reserve the worst of an announced draw, or give it back, if there is a budget."""
        if self.safe:
            budget.hold(words, reals, row, raw, place, weight, sign)

    def correct(self, words: Words, reals: Reals, row: int, said: Said, outcome: int) -> None:
        """Replace the outcome of a round by ``outcome``; it was the other one before."""
        number, place, weight, mixed, raw, time = said
        at, table, before = block_at(words, row, place), words[TABLE], 1 - outcome
        if not place & ASIDE:
            reals[MIXED], reals[NOW] = mixed, time
            reals[LAG] = float(words[row + ISSUED] - number)
            if not counts_by_lag(words):
                reals[CROWD] = float(crowd_of(words, row))
            _, cell, side = unpack(place)
            self.rule.amend(words, reals, at, table, cell, side, weight, 2 * outcome - 1)
            reals[LAG] = reals[CROWD] = 1.0
        refund(words, reals, row + RAW_LOSS, row + RAW_INFINITE, charge(words[LOSS], raw, before))
        bill(words, reals, row, raw, outcome)
        if self.kernel is None:
            return
        for told, entry in ((before, refund), (outcome, enter)):
            cost = charge(words[LOSS], mixed, told)
            entry(words, reals, row + MIXED_LOSS, row + MIXED_INFINITE, cost)
        if self.safe and not place & ASIDE:
            value = reals[table + words[CELLS] + VALUES + (place & CELL)]
            reals[row + EXCESS] -= budget.excess(words, value, raw, before)
            reals[row + EXCESS] += budget.excess(words, value, raw, outcome)


def assemble(rule: Rule, kernel: Kernel | None = None, safe: bool = False) -> Program:
    """Make the program of a rule, behind a transform's kernel and within a budget if asked for.

    A program is made once, however it is asked for: its machine code takes long to compile.
    """
    return _assembled(rule, kernel, safe)


@functools.cache
def _assembled(rule: Rule, kernel: Kernel | None, safe: bool) -> Program:
    peek = _make_forecast(rule, kernel, safe, announces=False)
    issue = _make_forecast(rule, kernel, safe, announces=True)
    learn, begin = _make_learn(rule, kernel, safe), _make_begin(rule, safe)
    name = rule.name
    if kernel is not None:
        more = (each for each in (kernel.alike, kernel.wide) if each is not None)
        made = kernel.predict, kernel.learn, *more
        name += f"_behind_{'_'.join(map(mark, made))}{'_safe' if safe else ''}"
    kept, told = (0, 0) if kernel is None else (kernel.kept, kernel.told)
    return Program(
        name=name,
        rule=rule,
        kernel=kernel,
        safe=safe,
        peek=peek,
        issue=issue,
        learn=learn,
        commit=_make_commit(begin, learn),
        peek_flat=peek_on_array(peek, rule.mean),
        issue_flat=issue_on_array(issue),
        learn_flat=learn_on_array(learn, begin),
        replay=_make_replay(rule, kernel, safe),
        events=make_events(rule, issue, learn, kept, safe, told),
        preview=make_preview(rule, peek, kept, told),
    )


def _make_replay(rule: Rule, kernel: Kernel | None, safe: bool) -> Callable[..., None]:
    return make_replay(rule) if kernel is None else make_replay_mixed(rule, kernel, safe)


def _make_forecast(
    rule: Rule, kernel: Kernel | None, safe: bool, announces: bool
) -> Callable[..., Any]:
    """Return ``peek``, or ``issue`` if the forecast is announced."""
    draw, full_support, anchored = rule.draw, rule.full_support, rule.anchored
    predict = None if kernel is None else kernel.predict
    keep = kernel.keep if kernel is not None and announces else None
    recall = None if kernel is None else kernel.recall
    wide = None if kernel is None else kernel.wide

    def forecast(words: Words, reals: Reals, row: int, raw: float) -> Any:
        mixed, transform = raw, row + words[TRANSFORM]
        if predict is not None:
            # An interrupt leaves no notes, rather than those of two forecasts.
            words[NOTES] = -1
            if recall is not None:
                recall(words, reals, transform, words, words[ADVICE])
            mixed = predict(words, reals, transform, raw)
            if not 0.0 <= mixed <= 1.0:
                mixed = raw
            words[NOTES], reals[NOTED], reals[NOTED_MIXED] = row, raw, mixed
        if wide is not None:
            words[LEAST_STEP] = wide(words, reals, transform)
        if keep is not None:
            keep(words, reals, transform, words, words[ADVICE])
        if anchored:
            reals[MIXED] = mixed
        edges, cells, table = words[EDGES], words[CELLS], words[TABLE]
        bucket = bisect_right(reals, mixed, edges, edges + words[BUCKETS]) - 1 - edges
        at = row + words[BLOCKS] + bucket * words[STRIDE]
        clock = words[at + CLOCK]
        u = toss(words, row, at, bucket, clock)
        cell, side, weight = draw(words, reals, at, cells, table, u)
        place: int = (bucket << 16) | (side << 15) | cell
        if safe:
            place |= budget.decide(words, reals, row, raw, place, weight)
        if not announces:
            return place, weight, mixed, clock, words[row + ROUNDS]
        words[UNDO_NUMBER] = -1
        words[UNDO_AT] = at
        words[UNDO_POSITION] = words[at + POSITION]
        words[UNDO_MOST] = words[row + MOST_OUTSTANDING]
        if safe:
            words[UNDO_RESERVED] = words[row + RESERVED]
            budget.hold(words, reals, row, raw, place, weight, 1)
        number = words[row + ISSUED]
        if full_support:
            words[UNDO_FRESH] = words[at + FRESH]
            words[at + FRESH] = number
        words[UNDO_NUMBER] = number
        words[at + POSITION] = cell
        words[at + CLOCK] = clock + 1
        words[row + ISSUED] = number + 1
        missing = number - words[row + ROUNDS]
        if missing > 0 and missing > words[row + MOST_OUTSTANDING]:
            words[row + MOST_OUTSTANDING] = missing
        return number, place, weight, mixed, clock

    forecast.__name__ = "issue" if announces else "peek"
    return forecast


def _make_learn(rule: Rule, kernel: Kernel | None, safe: bool) -> Learn:
    update, recall = rule.update, rule.recall
    full_support, anchored = rule.full_support, rule.anchored
    absorb = None if kernel is None else _make_absorb(kernel)
    weighs, alike = anchored or kernel is not None, None if kernel is None else kernel.alike

    def learn(
        words: Words,
        reals: Reals,
        row: int,
        number: int,
        place: int,
        weight: float,
        mixed: float,
        raw: float,
        time: float,
        outcome: int,
    ) -> None:
        at = row + words[BLOCKS] + ((place >> 16) & NARROW) * words[STRIDE]
        table, lag = words[TABLE], words[row + ISSUED] - number
        if lag > 1 and lag - 1 > words[row + LONGEST_LAG]:
            words[row + LONGEST_LAG] = lag - 1
        crowd, same = lag * 1.0, 1.0
        if weighs and not counts_by_lag(words):
            # Where nothing ever waited, without a look at how long.
            crowd = crowd_of(words, row) * 1.0 if words[row + MOST_OUTSTANDING] > 0 else 1.0
            reals[CROWD] = crowd
        if alike is not None and crowd > 1.0:
            transform, others = row + words[TRANSFORM], crowd - 1.0
            same = alike(words, reals, transform, others)
            # The last stage has a theorem, which reckons with lags that were seen.
            others = min(others, words[row + LONGEST_LAG] * 1.0)
            reals[SAME] = alike(words, reals, transform, others)
        if safe:
            budget.hold(words, reals, row, raw, place, weight, -1)
            budget.settle(words, reals, row, raw, place, outcome)
        if full_support and not recall(words, reals, at, words[CELLS], table, number):
            weight = -1.0
        if anchored:
            reals[MIXED] = mixed
            reals[LAG] = lag * 1.0
            reals[NOW] = time
        if not safe or place & ASIDE == 0:
            cell, side = place & CELL, (place >> 15) & SIDES
            update(words, reals, at, table, cell, side, weight, outcome)
        if weighs:
            reals[LAG] = reals[CROWD] = 1.0
        if words[LOSS] == SQUARED:
            miss = outcome - raw
            reals[row + RAW_LOSS] += miss * miss
        else:
            bill(words, reals, row, raw, outcome)
        if absorb is not None:
            absorb(words, reals, row, mixed, raw, outcome, crowd, same, lag == 1)
        words[row + ROUNDS] += 1
        words[UNDO_LEARNED] = number
        words[UNDO_NUMBER] = -1

    return learn


def _make_begin(rule: Rule, safe: bool) -> Begin:
    """Return what begins a round with a draw that was looked at, and whose outcome is known.

    The result is the number of the round, or -1 if another forecast of the block came in between,
    or if the budget was spent since.
    """
    draw, full_support = rule.draw, rule.full_support

    def begin(
        words: Words,
        reals: Reals,
        row: int,
        place: int,
        weight: float,
        clock: int,
        learned: int,
        raw: float,
    ) -> int:
        at = row + words[BLOCKS] + ((place >> 16) & NARROW) * words[STRIDE]
        if words[at + CLOCK] != clock:
            return -1
        if safe:
            if place & ASIDE == 0 and budget.decide(words, reals, row, raw, place, weight) != 0:
                return -1
            budget.hold(words, reals, row, raw, place, weight, 1)
        number: int = words[row + ISSUED]
        if full_support:
            # A late outcome may have changed the law since it was looked at.
            u = toss(words, row, at, (place >> 16) & NARROW, clock)
            drawn, _, now = draw(words, reals, at, words[CELLS], words[TABLE], u)
            same = drawn == place & CELL and now == weight
            words[at + FRESH] = number if same else -1
        words[at + POSITION] = place & CELL
        words[at + CLOCK] = clock + 1
        if words[row + ROUNDS] != learned:
            count_overtaken(words, row, learned)
        count_forecast(words, row)
        return number

    return begin


def _make_commit(begin: Begin, learn: Learn) -> Commit:
    """Return what makes a round, at once, of a draw that was looked at, as ``begin`` says."""

    def commit(
        words: Words,
        reals: Reals,
        row: int,
        place: int,
        weight: float,
        mixed: float,
        clock: int,
        learned: int,
        raw: float,
        outcome: int,
    ) -> int:
        number = begin(words, reals, row, place, weight, clock, learned, raw)
        if number >= 0:
            learn(words, reals, row, number, place, weight, mixed, raw, 0.0, outcome)
        return number

    return commit


def _make_absorb(kernel: Kernel) -> Absorb:
    """Return how a transform learns an outcome, and the loss of what it said is entered."""
    predict, teach, late, keep = kernel.predict, kernel.learn, kernel.late, kernel.keep
    recall = kernel.recall

    def absorb(
        words: Words,
        reals: Reals,
        row: int,
        mixed: float,
        raw: float,
        outcome: int,
        crowd: float,
        same: float,
        prompt: bool,
    ) -> None:
        if words[LOSS] == SQUARED:
            miss = outcome - mixed
            reals[row + MIXED_LOSS] += miss * miss
        else:
            cost = charge(words[LOSS], mixed, outcome)
            enter(words, reals, row + MIXED_LOSS, row + MIXED_INFINITE, cost)
        # Not ``mixed``, which may have been announced before the transform learned from others.
        at, told = row + words[TRANSFORM], reals[NOTED_MIXED]
        # The notes of a prediction are a function of the state, the raw forecast and the slots.
        if recall is not None and not recall(words, reals, at, words, words[ADVICE]):
            words[NOTES] = -1
        if (prompt or late is None) and (words[NOTES] != row or reals[NOTED] != raw):
            told = predict(words, reals, at, raw)
        if late is not None and keep is not None and crowd > 1.0:
            if prompt:
                keep(words, reals, at, words, words[ADVICE])
            part = part_of(crowd, same, words[row + ROUNDS])
            late(words, reals, at, raw, mixed, outcome, crowd, part, words, words[ADVICE])
        else:
            teach(words, reals, at, raw, told, outcome)
        words[NOTES] = -1

    return absorb


def block_at(words: Words, row: int, place: int) -> int:
    """Return where the block of a place starts."""
    at: int = row + words[BLOCKS] + ((place >> 16) & NARROW) * words[STRIDE]
    return at
