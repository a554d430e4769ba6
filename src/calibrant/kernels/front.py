"""Rounds whose raw forecast goes through a transform before it falls into a bucket.

:func:`put_before` makes from the program of a rule and the kernel of a transform what
:func:`calibrant.kernels.rounds.assemble` makes from a rule alone.  The transform's state is
part of the flat state, from word `FRONT` on.

A late outcome is learned by predicting again, unless the transform keeps what it needs: it may
have learned other outcomes since the forecast, and its notes are of another round.  The middle
forecast that decided the bucket and the weight of the pair are carried by whoever waits for the
outcome.

With a budget (:mod:`calibrant.kernels.safe`) a draw that cannot be afforded stands aside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.kernels.coin import coin
from calibrant.kernels.compile import available, compiled, entry_point, mark
from calibrant.kernels.layout import (
    ADVICE,
    ANSWER,
    ASIDE,
    BLOCKS,
    BOUNDLESS,
    BUCKETS,
    CELL,
    CELLS,
    CHARGED,
    CLOCK,
    COUNTED,
    EDGES,
    ENDLESS,
    FRONT,
    INDEX,
    KEY,
    LAG,
    LOSS,
    MIDDLE,
    NARROW,
    NOTED,
    NOW,
    PAIR,
    PASSED,
    POSITION,
    STANDS,
    STRIDE,
    TABLE,
    VALUES,
    WEIGHT,
    Reals,
    Words,
    pack,
    unpack,
)
from calibrant.kernels.place import bucket_of
from calibrant.kernels.portable import log, logit
from calibrant.kernels.rounds import Program, block_of
from calibrant.kernels.safe import decide, foresee, hold, ready
from calibrant.kernels.safe import settle as enter_round
from calibrant.kernels.scores import charge, enter
from calibrant.kernels.transforms.kernel import BOTH, NONE, Given, Kernel, Predict

__all__ = ["Fronted", "put_before"]


@dataclass(frozen=True, eq=False)
class Fronted:
    """The functions of a rule behind a transform, plain; and compiled, on demand.

    ``pass_through`` is what the transform makes of a raw forecast, and ``absorb`` lets it
    learn the outcome; the rest is as in :class:`calibrant.kernels.rounds.Program`.
    """

    name: str
    pass_through: Callable[[Words, Reals, float], float]
    absorb: Callable[[Words, Reals, float, float, int], None]
    store: Callable[[Words, Reals, Any, int], None]
    absorb_late: Callable[[Words, Reals, float, float, int, float, Any, int], None]
    kept: int
    note_flat: Callable[[Any, float], int]
    book_flat: Callable[[Any, int, float, float, float, int], bool]
    issue_flat: Callable[[Any, float], int]
    settle_flat: Callable[[Any, int, float, float, float, int, float], None]
    replay: Callable[..., None]
    replay_late: Callable[..., None]

    @functools.cached_property
    def machine(self) -> Fronted | None:
        """The compiled functions, or None where there is no compiler."""
        if not available():
            return None
        return replace(
            self,
            note_flat=compiled(self.note_flat, self.name),
            book_flat=compiled(self.book_flat, self.name),
            issue_flat=compiled(self.issue_flat, self.name),
            settle_flat=compiled(self.settle_flat, self.name),
            replay=compiled(self.replay, self.name, nogil=True),
            replay_late=compiled(self.replay_late, self.name, nogil=True),
        )

    def steps(self, flat: Any) -> Fronted:
        """Return the compiled functions with their single steps ready to be called.

        ``flat`` is a state to try them on, which compiles them.
        """
        place = self.issue_flat(flat, 0.5)
        self.settle_flat(flat, place, 1.0, 0.5, 0.5, 1, 1.0)
        self.book_flat(flat, self.note_flat(flat, 0.5), 1.0, 0.5, 0.5, 1)
        return replace(
            self,
            note_flat=entry_point(self.note_flat),
            book_flat=entry_point(self.book_flat),
            issue_flat=entry_point(self.issue_flat),
            settle_flat=entry_point(self.settle_flat),
        )


def _regardless(predict: Predict) -> Given:
    def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
        return predict(words, reals, at, raw)

    return given


@functools.cache
def put_before(program: Program, kernel: Kernel, safe: bool = False) -> Fronted:
    """Return the functions of a rule that learns from its draws alone, behind a transform.

    ``safe`` says that there is a budget.
    """
    program = program.guarded if safe else program
    predict, learn = kernel.predict, kernel.learn
    keep, late, kept_words = kernel.keep, kernel.late, kernel.kept
    given, logs = kernel.given or _regardless(predict), kernel.logs
    draw, update, mean = program.draw, program.update, program.mean
    note, book, issue, settle = program.note, program.book, program.issue, program.settle

    def pass_through(words: Words, reals: Reals, raw: float) -> float:
        middle = predict(words, reals, words[FRONT] & INDEX, raw)
        reals[MIDDLE] = middle
        return middle

    def absorb(words: Words, reals: Reals, raw: float, middle: float, outcome: int) -> None:
        enter(words, reals, PASSED, BOUNDLESS, charge(words[LOSS], middle, outcome))
        front = words[FRONT] & INDEX
        told = predict(words, reals, front, raw)
        learn(words, reals, front, raw, told, outcome)

    def store(words: Words, reals: Reals, to: Any, first: int) -> None:
        if keep is not None:
            keep(words, reals, words[FRONT] & INDEX, to, first)

    def absorb_late(
        words: Words,
        reals: Reals,
        raw: float,
        middle: float,
        outcome: int,
        lag: float,
        to: Any,
        first: int,
    ) -> None:
        if late is None or lag <= 1.0:
            absorb(words, reals, raw, middle, outcome)
        else:
            enter(words, reals, PASSED, BOUNDLESS, charge(words[LOSS], middle, outcome))
            late(words, reals, words[FRONT] & INDEX, raw, middle, outcome, lag, to, first)

    def note_flat(flat: Any, raw: float) -> int:
        reals = flat.view(np.float64)
        middle = pass_through(flat, reals, raw)
        at = block_of(flat, reals, middle)
        u = coin(flat[at + KEY], flat[at + CLOCK])
        cells, table = flat[CELLS] & INDEX, flat[TABLE] & INDEX
        note(flat, reals, at, cells, table, raw, u)
        flat[COUNTED] = flat[at + CLOCK]
        reals[WEIGHT] = reals[at + NOTED]
        place: int = pack((at - flat[BLOCKS]) // flat[STRIDE], 0, 0) | flat[at + ANSWER]
        return place | (foresee(flat, reals, at, cells, table, raw) if safe else 0)

    def book_flat(
        flat: Any, place: int, weight: float, middle: float, raw: float, outcome: int
    ) -> bool:
        reals = flat.view(np.float64)
        at = (flat[BLOCKS] & INDEX) + ((place >> 16) & NARROW) * (flat[STRIDE] & NARROW)
        u = coin(flat[at + KEY], flat[at + CLOCK])
        table = flat[TABLE] & INDEX
        reals[MIDDLE] = middle
        flat[at + ANSWER] = place & PAIR
        reals[at + NOTED] = weight
        if safe:
            if not ready(flat, reals, at, flat[CELLS] & INDEX, table, raw, place):
                return False
            flat[STANDS] = (place >> 36) & 1
        # Whoever calls has seen that the clock did not move, so nothing can have overtaken it.
        book(flat, reals, at, flat[CELLS] & INDEX, table, raw, u, outcome)
        if safe:
            flat[STANDS] = 0
            enter_round(flat, reals, flat[CELLS] & INDEX, table, raw, place, outcome)
        absorb(flat, reals, raw, middle, outcome)
        return True

    def issue_flat(flat: Any, raw: float) -> int:
        reals = flat.view(np.float64)
        middle = pass_through(flat, reals, raw)
        store(flat, reals, flat, flat[ADVICE] & INDEX)
        at = block_of(flat, reals, middle)
        flat[COUNTED] = flat[at + CLOCK]
        u = coin(flat[at + KEY], flat[at + CLOCK])
        table = flat[TABLE] & INDEX
        cells = flat[CELLS] & INDEX
        cell, side, weight = issue(flat, reals, at, cells, table, raw, u)
        reals[WEIGHT] = weight
        place = pack((at - flat[BLOCKS]) // flat[STRIDE], cell, side)
        if safe:
            place |= decide(flat, reals, cells, table, raw, cell, side, weight)
            hold(flat, reals, cells, table, raw, place, weight, 1)
        return place

    def settle_flat(
        flat: Any, place: int, weight: float, middle: float, raw: float, outcome: int, lag: float
    ) -> None:
        reals = flat.view(np.float64)
        at = (flat[BLOCKS] & INDEX) + ((place >> 16) & NARROW) * (flat[STRIDE] & NARROW)
        reals[MIDDLE] = middle
        cells, table = flat[CELLS] & INDEX, flat[TABLE] & INDEX
        if safe:
            hold(flat, reals, cells, table, raw, place, weight, -1)
            enter_round(flat, reals, cells, table, raw, place, outcome)
            flat[STANDS] = (place >> 36) & 1
        settle(flat, reals, at, table, place, weight, raw, outcome, lag)
        flat[STANDS] = 0
        first = flat[ADVICE] & INDEX
        absorb_late(flat, reals, raw, middle, outcome, lag, flat, first)

    def replay(
        words: Words,
        reals: Reals,
        raw: Any,
        outcomes: Any,
        forecast: Any,
        means: Any,
        middles: Any,
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        blocks, stride = words[BLOCKS] & INDEX, words[STRIDE] & NARROW
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        front, loss = words[FRONT] & INDEX, words[LOSS]
        # No round waits for another one's logarithms: first they are taken, and kept where
        # the results will be.
        for t in range(len(raw) if logs > NONE else 0):
            middles[t] = logit(raw[t])
            if logs == BOTH:
                means[t] = log(1.0 - raw[t])
        for t in range(len(raw)):
            p, y = raw[t], int(outcomes[t])
            middle = given(words, reals, front, p, middles[t], means[t])
            middles[t] = middle
            reals[MIDDLE] = middle
            at = blocks
            if buckets > 1:
                at += (bucket_of(reals, edges, buckets, middle) & NARROW) * stride
            clock = words[at + CLOCK]
            u = coin(words[at + KEY], clock)
            cell, side, weight = draw(words, reals, at, cells, table, u)
            cell &= CELL
            forecast[t] = reals[table + cells + VALUES + cell]
            means[t] = mean(words, reals, cells, table, cell, side, weight)
            if safe:
                aside = decide(words, reals, cells, table, p, cell, side, weight)
                enter_round(words, reals, cells, table, p, cell | aside, y)
                words[STANDS] = aside >> 36
                if aside != 0:
                    forecast[t] = p
                    means[t] = p
            update(words, reals, at, table, cell, side, weight, y)
            words[at + POSITION] = cell
            words[at + CLOCK] = clock + 1
            enter(words, reals, CHARGED, ENDLESS, charge(loss, p, y))
            enter(words, reals, PASSED, BOUNDLESS, charge(loss, middle, y))
            learn(words, reals, front, p, middle, y)
        words[STANDS] = 0

    def replay_late(
        words: Words,
        reals: Reals,
        raw: Any,
        outcomes: Any,
        events: Any,
        forecast: Any,
        means: Any,
        kept: Any,
        places: Any,
        middles: Any,
        advice: Any,
        lags: Any,
        times: Any,
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        blocks, stride = words[BLOCKS] & INDEX, words[STRIDE] & NARROW
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        for e in range(len(events)):
            t = events[e]
            if t >= 0:
                middle = pass_through(words, reals, raw[t])
                store(words, reals, advice, kept_words * t)
                bucket = bucket_of(reals, edges, buckets, middle) & NARROW
                at = blocks + bucket * stride
                u = coin(words[at + KEY], words[at + CLOCK])
                cell, side, weight = draw(words, reals, at, cells, table, u)
                forecast[t] = reals[table + cells + VALUES + cell]
                means[t] = mean(words, reals, cells, table, cell, side, weight)
                kept[t] = weight
                middles[t] = middle
                place = pack(bucket, cell, side)
                if safe:
                    place |= decide(words, reals, cells, table, raw[t], cell, side, weight)
                    hold(words, reals, cells, table, raw[t], place, weight, 1)
                    if place & ASIDE != 0:
                        forecast[t] = raw[t]
                        means[t] = raw[t]
                places[t] = place
                words[at + POSITION] = cell
                words[at + CLOCK] += 1
            else:
                row = -1 - t
                bucket, cell, side = unpack(places[row])
                at = blocks + (bucket & NARROW) * stride
                y = int(outcomes[row])
                reals[MIDDLE] = middles[row]
                reals[LAG] = lags[row]
                reals[NOW] = times[row]
                if safe:
                    hold(words, reals, cells, table, raw[row], places[row], kept[row], -1)
                    enter_round(words, reals, cells, table, raw[row], places[row], y)
                    words[STANDS] = (places[row] >> 36) & 1
                update(words, reals, at, table, cell, side, kept[row], y)
                enter(words, reals, CHARGED, ENDLESS, charge(words[LOSS], raw[row], y))
                first = kept_words * row
                absorb_late(words, reals, raw[row], middles[row], y, lags[row], advice, first)
        reals[LAG] = 1.0
        words[STANDS] = 0

    named = f"{program.name}_behind_{mark(predict)}_{mark(learn)}"
    return Fronted(
        name=named,
        pass_through=pass_through,
        absorb=absorb,
        store=store,
        absorb_late=absorb_late,
        kept=kept_words,
        note_flat=note_flat,
        book_flat=book_flat,
        issue_flat=issue_flat,
        settle_flat=settle_flat,
        replay=replay,
        replay_late=replay_late,
    )
