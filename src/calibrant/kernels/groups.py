"""Scores summed over groups: one forecast that is calibrated in every group of its round.

Each group has a block of gaps and counts like a bucket has, and a round leans with the sum of
its groups' scores.  Two scores, for a cell with scaled gap ``s`` and count ``n`` in a group:

=============  ==============================================================
average        ``s / n``; keeps the sum of all ``S**2 / n`` small
exponential    ``exp(rate S) - exp(-rate S)``; keeps the largest gap small
=============  ==============================================================

The two-point rule works with the blocks of the round, listed in the scratch room::

    where to search from | number of blocks | block of the bucket | blocks of the groups

Sums are doubles, added up in the order of the list, which is the order of the blocks: equal lists
give equal bits.  A sum that should be zero and is not, by rounding, makes a pair of which one
cell gets nearly all of the weight, and costs the proof as little.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from calibrant.kernels.coin import coin
from calibrant.kernels.compile import available, compiled
from calibrant.kernels.gaps import amend, update
from calibrant.kernels.layout import (
    BLOCKS,
    BUCKETS,
    CELL,
    CELLS,
    CLOCK,
    EDGES,
    HEAD,
    INDEX,
    KEY,
    NARROW,
    PARAMETERS,
    POSITION,
    SCRATCH,
    STRIDE,
    TABLE,
    VALUES,
    Reals,
    Words,
)
from calibrant.kernels.place import bucket_of
from calibrant.kernels.portable import exp
from calibrant.kernels.rounds import Draw
from calibrant.kernels.scores import bill
from calibrant.kernels.two_point import make_draw, mean

__all__ = ["AVERAGE", "EXPONENTIAL", "GroupProgram", "gather", "learn", "revise"]

RATE: Final = PARAMETERS
"""(real) Rate of the exponential score over the scale of gaps."""
LOGS: Final = PARAMETERS + 1
"""(real) Sum of 1 / (n + 1) over all blocks of all rounds learned: what the proof adds up."""
MEMBERSHIPS: Final = PARAMETERS + 2
"""Number of these blocks."""

SIZE: Final = 1
"""Number of blocks in the round's list."""
FIRST: Final = 2
"""Where the list itself starts."""
ROOM: Final = 1024
"""Blocks for which the list has room."""


@dataclass(frozen=True, eq=False)
class GroupProgram:
    """The functions of one score, plain; and the batch compiled, once somebody asks for it."""

    name: str
    draw: Draw
    replay: Callable[..., None]

    @functools.cached_property
    def machine(self) -> GroupProgram | None:
        """The same with a compiled batch, or None where there is no compiler."""
        if not available():
            return None
        return replace(self, replay=compiled(self.replay, self.name, nogil=True))


def gather(
    words: Words, reals: Reals, at: int, bucket: int, members: Any, first: int, last: int
) -> None:
    """List the blocks of a round: its bucket's, and those of the groups in part of ``members``.

    A group is given by its number; ``-1 - number`` makes it begin anew.
    """
    blocks, stride = words[BLOCKS] & INDEX, words[STRIDE] & NARROW
    own = blocks + (bucket & NARROW) * stride
    words[at + POSITION] = words[own + POSITION]
    words[at + SIZE] = 1 + last - first
    words[at + FIRST] = own
    after = blocks + (words[BUCKETS] & NARROW) * stride
    for m in range(first, last):
        group = members[m]
        if group < 0:
            group = -1 - group
            clear(words, after + group * stride + HEAD, 2 * words[CELLS])
        words[at + FIRST + 1 + m - first] = after + group * stride


def clear(words: Words, start: int, size: int) -> None:
    """Forget a block's cells."""
    for k in range(start, start + size):
        words[k] = 0


def learn(words: Words, reals: Reals, at: int, table: int, cell: int, outcome: int) -> None:
    """Count an outcome at the drawn cell in every block of the round."""
    for m in range(at + FIRST, at + FIRST + words[at + SIZE]):
        block = words[m] & INDEX
        reals[LOGS] += 1.0 / (words[block + HEAD + 2 * cell + 1] + 1)
        update(words, reals, block, table, cell, 0, 1.0, outcome)
    words[MEMBERSHIPS] += words[at + SIZE]


def revise(words: Words, reals: Reals, at: int, table: int, cell: int, change: int) -> None:
    """Replace an outcome in every block of the round: ``change`` is the new one less the old."""
    for m in range(at + FIRST, at + FIRST + words[at + SIZE]):
        amend(words, reals, words[m] & INDEX, table, cell, 0, 1.0, change)


def lean_average(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
    """Sum of the average gaps of cell ``k``; a cell never visited has none."""
    total = 0.0
    for m in range(at + FIRST, at + FIRST + words[at + SIZE]):
        cell = words[m] + HEAD + 2 * k
        total += words[cell] * 1.0 / max(words[cell + 1], 1)
    return total


def weigh_average(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
    """Compare the sums of ``k`` and ``k + 1``."""
    here = lean_average(words, reals, at, table, k)
    above = lean_average(words, reals, at, table, k + 1)
    return here, -above


def highest(words: Words, at: int, k: int) -> int:
    """Return the size of the largest gap of cell ``k``."""
    top = 0
    for m in range(at + FIRST, at + FIRST + words[at + SIZE]):
        top = max(top, abs(words[words[m] + HEAD + 2 * k]))
    return top


def swell(words: Words, reals: Reals, at: int, k: int, top: float) -> float:
    """Sum of ``exp(rate S) - exp(-rate S)`` at cell ``k``, over ``exp(top)``."""
    rate, total = reals[RATE], 0.0
    for m in range(at + FIRST, at + FIRST + words[at + SIZE]):
        gap = words[words[m] + HEAD + 2 * k]
        size = rate * abs(gap)
        pull = exp(size - top) - exp(-size - top)
        total += pull if gap > 0 else -pull
    return total


def lean_exponential(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
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


def assemble(
    name: str,
    lean: Callable[[Words, Reals, int, int, int], float],
    weigh: Callable[[Words, Reals, int, int, int], tuple[float, float]],
) -> GroupProgram:
    """Make the program of a score."""
    draw = make_draw(lean, weigh)

    def replay(
        words: Words,
        reals: Reals,
        raw: Any,
        outcomes: Any,
        offsets: Any,
        members: Any,
        forecast: Any,
        means: Any,
    ) -> None:
        cells, table, at = words[CELLS] & INDEX, words[TABLE] & INDEX, words[SCRATCH] & INDEX
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        for t in range(len(raw)):
            p, y = raw[t], int(outcomes[t])
            bucket = bucket_of(reals, edges, buckets, p)
            gather(words, reals, at, bucket, members, offsets[t], offsets[t + 1])
            own = words[at + FIRST] & INDEX
            u = coin(words[own + KEY], words[own + CLOCK])
            cell, side, weight = draw(words, reals, at, cells, table, u)
            cell &= CELL
            forecast[t] = reals[table + cells + VALUES + cell]
            means[t] = mean(words, reals, cells, table, cell, side, weight)
            learn(words, reals, at, table, cell, y)
            words[own + POSITION] = cell
            words[own + CLOCK] += 1
            bill(words, reals, p, y)

    return GroupProgram(name, draw, replay)


AVERAGE: Final = assemble("group_average", lean_average, weigh_average)
EXPONENTIAL: Final = assemble("group_exponential", lean_exponential, weigh_exponential)
