"""Scores summed over groups: one forecast that is calibrated in every group of its round.

Each group has a block of gaps and counts like a bucket has, and the score of a cell is the sum of
its scores in the bucket and in the groups.  Two scores, for scaled gap ``s`` and count ``n``:

=============  ==============================================================
average        ``s / n``; keeps the sum of all ``S**2 / n`` small
exponential    ``exp(rate S) - exp(-rate S)``; keeps the largest gap small
=============  ==============================================================

Blocks of groups stand behind those of the buckets, at the end of a lone row, which grows with
them.  The scratch room holds which of them are the round's: how many, and where each starts.
:func:`gather` writes the list; every step of the rule reads it, so that it must be the round's own.

Sums are doubles, added up in the order of the list, which is the order of the blocks: equal lists
give equal bits.  A sum that should be zero and is not, by rounding, makes a pair of which one
cell gets nearly all of the weight, and costs the proof as little.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from calibrant.kernels.batches import count_rounds
from calibrant.kernels.coin import toss
from calibrant.kernels.compile import available, compiled
from calibrant.kernels.gaps import FIRST, amend, update
from calibrant.kernels.layout import (
    BLOCKS,
    BUCKETS,
    CELL,
    CELLS,
    CLOCK,
    COUNT,
    EDGES,
    FIXED,
    INDEX,
    NARROW,
    PARAMETERS,
    POSITION,
    REAL_COUNT,
    ROW,
    ROWS,
    SCRATCH,
    STATE,
    STRIDE,
    TABLE,
    VALUES,
    Reals,
    Section,
    Words,
)
from calibrant.kernels.place import bucket_of
from calibrant.kernels.portable import exp
from calibrant.kernels.rule import Rule
from calibrant.kernels.scores import bill
from calibrant.kernels.two_point import Score, Weigh, make_draw, mean

SETTINGS: Final = Section()
RATE: Final = PARAMETERS + SETTINGS.real(
    "RATE", FIXED, "Rate of the exponential score over the scale of gaps."
)

GROUP_ROW: Final = Section(ROW)
"""Own words of a row with groups."""
LOGS: Final = GROUP_ROW.real(
    "LOGS", STATE, "Sum of 1 / (n + 1) over all blocks of all rounds learned.", REAL_COUNT
)
MEMBERSHIPS: Final = GROUP_ROW.whole("MEMBERSHIPS", STATE, "Number of these blocks.", COUNT)

LIST: Final = 1
"""The scratch room holds the number of a round's groups, and from here on their blocks."""
ROOM: Final = 1024
"""Blocks of a round for which there is room, its bucket's included."""


@dataclass(frozen=True, eq=False)
class GroupProgram:
    """The rule of one score, and its batch: plain, and compiled once somebody asks for it."""

    name: str
    rule: Rule
    replay: Callable[..., None]

    @functools.cached_property
    def machine(self) -> GroupProgram | None:
        """The same with a compiled batch, or None where there is no compiler."""
        if not available():
            return None
        return replace(self, replay=compiled(self.replay, self.name, nogil=True))


def gather(words: Words, members: Any, first: int, last: int) -> None:
    """List the blocks of the groups in part of ``members``.

    A group is given by its number; ``-1 - number`` makes it begin anew.
    """
    at, stride = words[SCRATCH] & INDEX, words[STRIDE] & NARROW
    after = words[ROWS] + words[BLOCKS] + (words[BUCKETS] & NARROW) * stride
    words[at] = last - first
    for m in range(first, last):
        group = members[m]
        if group < 0:
            group = -1 - group
            clear(words, after + group * stride + FIRST, 2 * words[CELLS])
        words[at + LIST + m - first] = after + group * stride


def clear(words: Words, start: int, size: int) -> None:
    """Forget a block's cells."""
    for k in range(start, start + size):
        words[k] = 0


def learn(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count an outcome at the drawn cell in the blocks of the bucket and of the round's groups."""
    count(words, reals, at, table, k, outcome)
    listed = (words[SCRATCH] & INDEX) + LIST
    size = words[listed - LIST]
    for m in range(listed, listed + size):
        count(words, reals, words[m] & INDEX, table, k, outcome)
    words[words[ROWS] + MEMBERSHIPS] += 1 + size


def count(words: Words, reals: Reals, at: int, table: int, cell: int, outcome: int) -> None:
    """Count an outcome in one block, and what the proof adds up for it."""
    reals[words[ROWS] + LOGS] += 1.0 / (words[at + FIRST + 2 * cell + 1] + 1)
    update(words, reals, at, table, cell, 0, 1.0, outcome)


def revise(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, change: int
) -> None:
    """Replace an outcome in all blocks of the round: ``change`` is the new one less the old."""
    amend(words, reals, at, table, k, side, weight, change)
    listed = (words[SCRATCH] & INDEX) + LIST
    for m in range(listed, listed + words[listed - LIST]):
        amend(words, reals, words[m] & INDEX, table, k, side, weight, change)


def average(words: Words, cell: int) -> float:
    """Average gap of a cell; a cell never visited has none."""
    found: float = words[cell] * 1.0 / max(words[cell + 1], 1)
    return found


def score_average(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
    """Sum of the average gaps of cell ``k``."""
    total = average(words, at + FIRST + 2 * k)
    listed = (words[SCRATCH] & INDEX) + LIST
    for m in range(listed, listed + words[listed - LIST]):
        total += average(words, words[m] + FIRST + 2 * k)
    return total


def weigh_average(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Compare the sums of ``k`` and ``k + 1``."""
    here = score_average(words, reals, at, table, k)
    above = score_average(words, reals, at, table, k + 1)
    return here, -above


def highest(words: Words, at: int, k: int) -> int:
    """Return the size of the largest gap of cell ``k``."""
    top: int = abs(words[at + FIRST + 2 * k])
    listed = (words[SCRATCH] & INDEX) + LIST
    for m in range(listed, listed + words[listed - LIST]):
        top = max(top, abs(words[words[m] + FIRST + 2 * k]))
    return top


def pull(rate: float, gap: int, top: float) -> float:
    """Return ``exp(rate S) - exp(-rate S)`` of a gap, over ``exp(top)``."""
    size = rate * abs(gap)
    found = exp(size - top) - exp(-size - top)
    return found if gap > 0 else -found


def swell(words: Words, reals: Reals, at: int, k: int, top: float) -> float:
    """Sum of the pulls of all gaps of cell ``k``."""
    rate = reals[RATE]
    total = pull(rate, words[at + FIRST + 2 * k], top)
    listed = (words[SCRATCH] & INDEX) + LIST
    for m in range(listed, listed + words[listed - LIST]):
        total += pull(rate, words[words[m] + FIRST + 2 * k], top)
    return total


def score_exponential(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
    """Sum of the exponential scores of cell ``k``, on a scale of the cell's own."""
    return swell(words, reals, at, k, reals[RATE] * highest(words, at, k))


def weigh_exponential(
    words: Words, reals: Reals, at: int, table: int, k: int
) -> tuple[float, float]:
    """Compare the sums of ``k`` and ``k + 1``, on one scale."""
    top = reals[RATE] * max(highest(words, at, k), highest(words, at, k + 1))
    here = swell(words, reals, at, k, top)
    above = swell(words, reals, at, k + 1, top)
    return here, -above


def make_program(name: str, score: Score, weigh: Weigh) -> GroupProgram:
    """Make the program of a score."""
    draw = make_draw(score, weigh)

    def replay(
        words: Words,
        reals: Reals,
        row: int,
        raw: Any,
        outcomes: Any,
        offsets: Any,
        members: Any,
        forecast: Any,
        means: Any,
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        blocks, stride = (row + words[BLOCKS]) & INDEX, words[STRIDE] & NARROW
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        for t in range(len(raw)):
            p, y = raw[t], int(outcomes[t])
            bucket = bucket_of(reals, edges, buckets, p) & NARROW
            at = blocks + bucket * stride
            gather(words, members, offsets[t], offsets[t + 1])
            clock = words[at + CLOCK]
            u = toss(words, row, at, bucket, clock)
            cell, side, weight = draw(words, reals, at, cells, table, u)
            cell &= CELL
            forecast[t] = reals[table + cells + VALUES + cell]
            means[t] = mean(words, reals, cells, table, cell, side, weight)
            learn(words, reals, at, table, cell, side, weight, y)
            words[at + POSITION] = cell
            words[at + CLOCK] = clock + 1
            bill(words, reals, row, p, y)
        count_rounds(words, row, len(raw))

    return GroupProgram(name, Rule(name, draw, learn, revise, settings=SETTINGS), replay)


AVERAGE: Final = make_program("group_average", score_average, weigh_average)
EXPONENTIAL: Final = make_program("group_exponential", score_exponential, weigh_exponential)
