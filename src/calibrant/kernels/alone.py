"""Plain single steps of a rule that stands alone: no transform, no budget, two points, no anchor.

They do what the steps of :mod:`calibrant.kernels.rounds` do, to the bit.  The sizes of one layout
are bound into them, coins are looked up where they lie, and nothing is asked that only other
programs need: without a compiler a round takes two thirds of the time (measured by
``python -m benchmarks one_step``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

from calibrant.kernels.coin import CHUNK, CHUNK_BITS, chunks, toss_anew
from calibrant.kernels.layout import (
    CELL,
    CLOCK,
    ISSUED,
    KEY,
    LONGEST_LAG,
    MOST_OUTSTANDING,
    NARROW,
    RAW_INFINITE,
    RAW_LOSS,
    ROUNDS,
    SIDES,
    UNDO_AT,
    UNDO_LEARNED,
    UNDO_MOST,
    UNDO_NUMBER,
    UNDO_POSITION,
    Reals,
    Words,
)
from calibrant.kernels.scores import SQUARED, charge_other
from calibrant.kernels.whole import began, is_straight, whole_block


class Sizes(NamedTuple):
    """What the steps need of a layout: lower edges of buckets, their blocks, grid and sizes."""

    edges: tuple[float, ...]
    starts: tuple[int, ...]
    cells: int
    table: int
    stride: int
    row: int
    loss: int = SQUARED


def count_overtaken(words: Words, row: int, learned: int) -> None:
    """Count what is missing in a forecast about to be committed, drawn after ``learned`` outcomes.

    Outcomes that came since are outstanding for it, although no forecast was announced between.
    """
    missing = words[row + ISSUED] - learned
    words[row + MOST_OUTSTANDING] = max(words[row + MOST_OUTSTANDING], missing)
    words[row + LONGEST_LAG] = max(words[row + LONGEST_LAG], missing)


def make_steps(
    draw: Callable[..., tuple[int, int, float]], update: Callable[..., None], sizes: Sizes
) -> dict[str, Any]:
    """Return ``peek``, ``issue``, ``learn`` and ``commit`` for a rule's ``draw`` and ``update``."""
    return _make_forecasts(draw, sizes) | _make_lessons(update, sizes)


def _make_forecasts(draw: Callable[..., Any], sizes: Sizes) -> dict[str, Any]:
    edges, starts, cells, table, *_ = sizes
    # By where a raw forecast comes among the edges: its block, and the block's number in a place.
    spots = ((-1, -1), *((start, bucket << 16) for bucket, start in enumerate(starts)))

    def peek(
        words: Words, reals: Reals, row: int, raw: float
    ) -> tuple[int, float, float, int, int]:
        start, bucket = spots[bisect_right(edges, raw)]
        at = row + start
        clock = words[at + CLOCK]
        chunk = chunks.get(words[at + KEY])
        if chunk is not None and chunk[0] == clock >> CHUNK_BITS:
            u = chunk[(clock & CHUNK) + 1]
        else:
            u = toss_anew(words, row, words[at + KEY], bucket >> 16, clock)
        cell, side, weight = draw(words, reals, at, cells, table, u)
        return bucket + side * 32768 + cell, weight, raw, clock, words[row + ROUNDS]

    def issue(
        words: Words, reals: Reals, row: int, raw: float
    ) -> tuple[int, int, float, float, int]:
        start, bucket = spots[bisect_right(edges, raw)]
        at = row + start
        clock = words[at + CLOCK]
        chunk = chunks.get(words[at + KEY])
        if chunk is not None and chunk[0] == clock >> CHUNK_BITS:
            u = chunk[(clock & CHUNK) + 1]
        else:
            u = toss_anew(words, row, words[at + KEY], bucket >> 16, clock)
        cell, side, weight = draw(words, reals, at, cells, table, u)
        # No call from here on: these words change together.
        number = words[row + ISSUED]
        words[UNDO_AT] = at
        # A block begins with its position.
        words[UNDO_POSITION] = words[at]
        words[at] = cell
        words[at + CLOCK] = clock + 1
        words[row + ISSUED] = number + 1
        missing = number - words[row + ROUNDS]
        if missing and missing > words[row + MOST_OUTSTANDING]:
            words[UNDO_NUMBER], words[UNDO_MOST] = number, words[row + MOST_OUTSTANDING]
            words[row + MOST_OUTSTANDING] = missing
        return number, bucket + side * 32768 + cell, weight, raw, clock

    return {"peek": peek, "issue": issue}


def _make_lessons(update: Callable[..., None], sizes: Sizes) -> dict[str, Any]:
    if not is_straight(update):
        update = whole_block(update, sizes.stride)
    return {"learn": _make_learn(update, sizes), "commit": _make_commit(update, sizes)}


def _make_learn(update: Callable[..., None], sizes: Sizes) -> Callable[..., None]:
    starts, table, loss, squared = sizes.starts, sizes.table, sizes.loss, sizes.loss == SQUARED

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
        at = row + starts[(place >> 16) & NARROW]
        if squared:
            miss = 1.0 - raw if outcome else raw
            cost = miss * miss
        else:
            cost = charge_other(loss, raw, outcome)
        # No call but the last one from here on: these words change together.
        if cost < inf:
            reals[row + RAW_LOSS] += cost
        else:
            words[row + RAW_INFINITE] += 1
        words[row + ROUNDS] += 1
        words[UNDO_LEARNED] = number
        lag = words[row + ISSUED] - number
        if lag > 1 and lag - 1 > words[row + LONGEST_LAG]:
            words[row + LONGEST_LAG] = lag - 1
        try:
            update(words, reals, at, table, place & CELL, (place >> 15) & SIDES, weight, outcome)
        except BaseException as error:
            if began(error, update):
                update(
                    words, reals, at, table, place & CELL, (place >> 15) & SIDES, weight, outcome
                )
            raise

    return learn


def _make_commit(update: Callable[..., None], sizes: Sizes) -> Callable[..., int]:
    starts, table, loss, squared = sizes.starts, sizes.table, sizes.loss, sizes.loss == SQUARED

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
        at = row + starts[place >> 16]
        if words[at + CLOCK] != clock:
            return -1
        if squared:
            miss = 1.0 - raw if outcome else raw
            cost = miss * miss
        else:
            cost = charge_other(loss, raw, outcome)
        number: int = words[row + ISSUED]
        rounds = words[row + ROUNDS]
        # A block begins with its position.
        words[at] = place & CELL
        words[at + CLOCK] = clock + 1
        words[row + ISSUED] = number + 1
        words[row + ROUNDS] = rounds + 1
        if cost < inf:
            reals[row + RAW_LOSS] += cost
        else:
            words[row + RAW_INFINITE] += 1
        if number > learned:
            missing = number - learned
            if missing > words[row + MOST_OUTSTANDING]:
                words[row + MOST_OUTSTANDING] = missing
            if rounds != learned and missing > words[row + LONGEST_LAG]:
                words[row + LONGEST_LAG] = missing
        try:
            update(words, reals, at, table, place & CELL, (place >> 15) & SIDES, weight, outcome)
        except BaseException as error:
            if began(error, update):
                update(
                    words, reals, at, table, place & CELL, (place >> 15) & SIDES, weight, outcome
                )
            raise
        return number

    return commit
