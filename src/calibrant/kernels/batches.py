"""Whole batches: rounds whose outcomes come at once, events in any order, and looks ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from calibrant.kernels.ahead import (
    STRETCH,
    begin,
    columns,
    prepare,
    prepare_alone,
    turn,
    turn_alone,
)
from calibrant.kernels.coin import toss
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
    INDEX,
    ISSUED,
    LAG,
    LEAST_STEP,
    LOSS,
    MIXED,
    MIXED_INFINITE,
    MIXED_LOSS,
    MOST_OUTSTANDING,
    NARROW,
    NOTES,
    POSITION,
    RAW_INFINITE,
    RAW_LOSS,
    ROUNDS,
    SIDES,
    STRIDE,
    TABLE,
    TRANSFORM,
    VALUES,
    Reals,
    Words,
)
from calibrant.kernels.place import bucket_of
from calibrant.kernels.portable import log, logit
from calibrant.kernels.rule import Rule
from calibrant.kernels.safe import decide, hold, settle
from calibrant.kernels.scores import SQUARED, bill, charge, enter
from calibrant.kernels.transforms.kernel import BOTH, NONE, Given, Kernel, Predict

SURE: Final = 1.0
FORGET: Final = 1 << 40
"""An event from here on says that the ticket of that row expired."""


def make_replay(rule: Rule) -> Callable[..., None]:
    """Return ``replay(words, reals, row, raw, ys, draws, means, mixed)``.

    Without a transform the last column is not used.
    """
    draw, mean, update, anchored = rule.draw, rule.mean, rule.update, rule.anchored
    play = rule.play

    def replay(
        words: Words, reals: Reals, row: int, raw: Any, ys: Any, draws: Any, means: Any, mixed: Any
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        reals[LAG] = reals[CROWD] = 1.0
        squared, charged = words[LOSS] == SQUARED, reals[row + RAW_LOSS]
        coins, blocks = columns(draws, means)
        start, stride = (row + words[BLOCKS]) & INDEX, words[STRIDE] & NARROW
        where = start, stride, words[EDGES] & INDEX, words[BUCKETS] & INDEX
        begin(words, reals, where, raw, coins, blocks)
        # Stretches outside, rounds inside: no round is held up by where the next stretch ends.
        for first in range(0, len(raw), STRETCH):
            prepare(words, row, where, first, coins, blocks)
            for t in range(first, min(first + STRETCH, len(raw))):
                p, y = raw[t], int(ys[t])
                at, u = turn(words, reals, row, where, raw, t, coins, blocks)
                if anchored:
                    reals[MIXED] = p
                if play is not None:
                    draws[t], means[t] = play(words, reals, at, cells, table, u, y)
                else:
                    cell, side, weight = draw(words, reals, at, cells, table, u)
                    cell &= CELL
                    draws[t] = reals[table + cells + VALUES + cell]
                    means[t] = mean(words, reals, cells, table, cell, side, weight)
                    update(words, reals, at, table, cell, side, weight, y)
                    words[at + POSITION] = cell
                if squared:
                    charged += charge(SQUARED, p, y)
                else:
                    bill(words, reals, row, p, y)
        if squared:
            reals[row + RAW_LOSS] = charged
        count_rounds(words, row, len(raw))

    return replay


def make_replay_mixed(rule: Rule, kernel: Kernel, safe: bool) -> Callable[..., None]:
    """Return the same behind a transform, whose forecasts go into the column ``mixed``."""
    draw, mean, update, learn = rule.draw, rule.mean, rule.update, kernel.learn
    given, prepare = kernel.given or _regardless(kernel.predict), _make_prepare(kernel.logs)
    wide = kernel.wide

    def replay(
        words: Words, reals: Reals, row: int, raw: Any, ys: Any, draws: Any, means: Any, mixed: Any
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        blocks, stride = (row + words[BLOCKS]) & INDEX, words[STRIDE] & NARROW
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        transform, loss = (row + words[TRANSFORM]) & INDEX, words[LOSS]
        reals[LAG] = reals[CROWD] = 1.0
        prepare(raw, mixed, means)
        for t in range(len(raw)):
            p, y = raw[t], int(ys[t])
            q = given(words, reals, transform, p, mixed[t], means[t])
            if not 0.0 <= q <= 1.0:
                q = p
            mixed[t] = q
            reals[MIXED] = q
            if wide is not None:
                words[LEAST_STEP] = wide(words, reals, transform)
            if buckets > 1:
                bucket = bucket_of(reals, edges, buckets, q) & NARROW
                at = blocks + bucket * stride
                clock = words[at + CLOCK]
                u = toss(words, row, at, bucket, clock)
            else:
                at = blocks
                clock = words[at + CLOCK]
                if t % STRETCH == 0:
                    prepare_alone(words, row, at, t, draws)
                u = turn_alone(words, row, at, t, draws)
            cell, side, weight = draw(words, reals, at, cells, table, u)
            cell &= CELL
            draws[t] = reals[table + cells + VALUES + cell]
            means[t] = mean(words, reals, cells, table, cell, side, weight)
            aside = 0
            if safe:
                place = (side << 15) | cell
                aside = decide(words, reals, row, p, place, weight)
                settle(words, reals, row, p, place | aside, y)
            if aside == 0:
                update(words, reals, at, table, cell, side, weight, y)
            else:
                draws[t] = p
                means[t] = p
            words[at + POSITION] = cell
            words[at + CLOCK] = clock + 1
            enter(words, reals, row + RAW_LOSS, row + RAW_INFINITE, charge(loss, p, y))
            enter(words, reals, row + MIXED_LOSS, row + MIXED_INFINITE, charge(loss, q, y))
            learn(words, reals, transform, p, q, y)
        words[NOTES] = -1
        count_rounds(words, row, len(raw))

    return replay


def _regardless(predict: Predict) -> Given:
    def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
        return predict(words, reals, at, raw)

    return given


def _make_prepare(logs: int) -> Callable[[Any, Any, Any], None]:
    """Return what takes logarithms ahead, into columns where results will stand.

    So no round waits for another one's logarithms.
    """

    def prepare(raw: Any, odds: Any, less: Any) -> None:
        for t in range(len(raw) if logs > NONE else 0):
            odds[t] = logit(raw[t])
            if logs == BOTH:
                less[t] = log(1.0 - raw[t])

    return prepare


def count_rounds(words: Words, row: int, rounds: int) -> None:
    """Count rounds whose outcomes came at once, and how many others were missing meanwhile."""
    missing = words[row + ISSUED] - words[row + ROUNDS]
    if rounds > 0 and missing > words[row + MOST_OUTSTANDING]:
        words[row + MOST_OUTSTANDING] = missing
    words[row + ISSUED] += rounds
    words[row + ROUNDS] += rounds


def make_events(
    rule: Rule,
    issue: Callable[..., Any],
    learn: Callable[..., None],
    kept: int,
    safe: bool,
    slots: int = 0,
) -> Callable[..., None]:
    """Return what plays forecasts and outcomes in the order of a log.

    ``log`` holds ``t`` for the forecast of row t, ``-1 - t`` for its outcome, and ``FORGET + t``
    where its ticket expires, if that gives back a reserve.  The other columns have a row for each
    ticket: those of tickets that were open before are filled in beforehand, those of new ones here,
    but for the last ``slots`` words of advice, which say what is known of the round besides.
    """
    mean = rule.mean

    def events(
        words: Words,
        reals: Reals,
        row: int,
        log: Any,
        raw: Any,
        outcomes: Any,
        number: Any,
        time: Any,
        forecast: Any,
        means: Any,
        weight: Any,
        place: Any,
        mixed: Any,
        clock: Any,
        advice: Any,
    ) -> None:
        cells, table, keep = words[CELLS] & INDEX, words[TABLE] & INDEX, words[ADVICE] & INDEX
        for e in range(len(log)):
            t = log[e]
            if safe and t >= FORGET:
                t -= FORGET
                hold(words, reals, row, raw[t], place[t], weight[t], -1)
            elif t >= 0:
                for k in range(kept - slots, kept):
                    words[keep + k] = advice[kept * t + k]
                number[t], at, weight[t], mixed[t], clock[t] = issue(words, reals, row, raw[t])
                place[t] = at
                for k in range(kept):
                    advice[kept * t + k] = words[keep + k]
                cell, side = at & CELL, (at >> 15) & SIDES
                forecast[t] = reals[table + cells + VALUES + cell]
                means[t] = mean(words, reals, cells, table, cell, side, weight[t])
                if at & ASIDE != 0:
                    forecast[t] = raw[t]
                    means[t] = raw[t]
            else:
                t = -1 - t
                for k in range(kept):
                    words[keep + k] = advice[kept * t + k]
                n, at, w, q, y = number[t], place[t], weight[t], mixed[t], int(outcomes[t])
                learn(words, reals, row, n, at, w, q, raw[t], time[t], y)

    return events


def make_preview(
    rule: Rule, peek: Callable[..., Any], kept: int = 0, slots: int = 0
) -> Callable[..., None]:
    """Return what looks at draw and mean of many raw forecasts, each as the very next round.

    The coin of row t is the one that follows t forecasts of the same block.  The last ``slots`` of
    ``kept`` words of advice say what is known of a round besides, and are ``told`` row by row.
    """
    mean, draw = rule.mean, rule.draw

    def preview(
        words: Words, reals: Reals, row: int, raw: Any, told: Any, forecast: Any, means: Any
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        known = (words[ADVICE] & INDEX) + kept - slots
        for t in range(len(raw)):
            for k in range(slots):
                words[known + k] = told[slots * t + k]
            place, _, _, _, _ = peek(words, reals, row, raw[t])
            bucket = (place >> 16) & NARROW
            at = (row + words[BLOCKS] + bucket * words[STRIDE]) & INDEX
            u = toss(words, row, at, bucket, words[at + CLOCK] + t)
            cell, side, weight = draw(words, reals, at, cells, table, u)
            forecast[t] = reals[table + cells + VALUES + (cell & CELL)]
            expected = mean(words, reals, cells, table, cell, side, weight)
            means[t] = min(max(expected, 0.0), SURE)
            if place & ASIDE != 0:
                forecast[t] = raw[t]
                means[t] = raw[t]

    return preview
