"""Playing rounds: the same few functions one at a time and in batches.

:func:`assemble` makes everything for one rule from its four functions; the
results are plain Python, and :mod:`calibrant.kernels.compile` turns the very same
objects into machine code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.kernels.coin import coin
from calibrant.kernels.compile import available, compiled
from calibrant.kernels.layout import (
    BLOCKS,
    BUCKETS,
    CELL,
    CELLS,
    CHARGED,
    CLOCK,
    EDGES,
    FIRST_NUMBER,
    FRESH,
    INDEX,
    KEY,
    LOSS,
    POSITION,
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
from calibrant.kernels.scores import charge

Draw = Callable[[Words, Reals, int, int, int, float], tuple[int, int, float]]
Mean = Callable[[Words, Reals, int, int, int, int, float], float]
Recall = Callable[[Words, Reals, int, int, int, int], bool]
Update = Callable[[Words, Reals, int, int, int, int, float, int], None]
Amend = Callable[[Words, Reals, int, int, int, int, float, int], None]


@dataclass(frozen=True, eq=False)
class Program:
    """All functions of one rule, plain; and compiled, once somebody asks for that.

    ``draw`` is a block's next forecast for a given coin, ``update`` an outcome for an
    earlier draw, ``amend`` a change of that outcome; ``glance`` is a draw for a raw
    forecast with the block's own coin, ``issue`` the same as an announced forecast,
    ``book`` a draw announced and learned at once, ``settle`` the outcome of an issued
    one, ``replay`` and ``replay_late`` whole batches.
    """

    name: str
    many: bool
    draw: Draw
    mean: Mean
    recall: Recall
    update: Update
    amend: Amend
    glance: Callable[[Any, float], int]
    issue: Callable[[Any, float], int]
    book: Callable[[Any, int, float, float, int], None]
    settle: Callable[[Any, int, float, float, int], None]
    replay: Callable[[Words, Reals, Any, Any, Any, Any], None]
    replay_late: Callable[..., None]

    @functools.cached_property
    def machine(self) -> Program | None:
        """The compiled program, or None where there is no compiler."""
        if not available():
            return None
        return replace(
            self,
            glance=compiled(self.glance, self.name),
            issue=compiled(self.issue, self.name),
            book=compiled(self.book, self.name),
            settle=compiled(self.settle, self.name),
            replay=compiled(self.replay, self.name, nogil=True),
            replay_late=compiled(self.replay_late, self.name, nogil=True),
        )


def assemble(
    name: str,
    *,
    draw: Draw,
    update: Update,
    amend: Amend,
    mean: Mean,
    recall: Recall,
    many: bool = False,
) -> Program:
    """Make the program of a rule from its own five functions.

    ``many`` says that its mixtures may have more than two points.
    """

    def glance(flat: Any, raw: float) -> int:
        words, reals = flat, flat.view(np.float64)
        j = bucket_of(reals, words[EDGES] & INDEX, words[BUCKETS] & INDEX, raw)
        at = (words[BLOCKS] & INDEX) + j * (words[STRIDE] & INDEX)
        u = coin(words[at + KEY], words[at + CLOCK])
        cell, side, weight = draw(words, reals, at, words[CELLS] & INDEX, words[TABLE] & INDEX, u)
        reals[WEIGHT] = weight
        return pack(j, cell, side)

    def issue(flat: Any, raw: float) -> int:
        place = glance(flat, raw)
        at = (flat[BLOCKS] & INDEX) + (place >> 16) * (flat[STRIDE] & INDEX)
        flat[at + POSITION] = place & CELL
        flat[at + CLOCK] += 1
        return place

    def settle(flat: Any, place: int, weight: float, raw: float, outcome: int) -> None:
        words, reals = flat, flat.view(np.float64)
        bucket, cell, side = unpack(place)
        at = (words[BLOCKS] & INDEX) + bucket * (words[STRIDE] & INDEX)
        update(words, reals, at, words[TABLE] & INDEX, cell, side, weight, outcome)
        reals[CHARGED] += charge(words[LOSS], raw, outcome)

    def book(flat: Any, place: int, weight: float, raw: float, outcome: int) -> None:
        settle(flat, place, weight, raw, outcome)
        at = (flat[BLOCKS] & INDEX) + (place >> 16) * (flat[STRIDE] & INDEX)
        flat[at + POSITION] = place & CELL
        flat[at + CLOCK] += 1

    def replay(
        words: Words, reals: Reals, raw: Any, outcomes: Any, forecast: Any, means: Any
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        blocks, stride = words[BLOCKS] & INDEX, words[STRIDE] & INDEX
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        loss, charged = words[LOSS], reals[CHARGED]
        for t in range(len(raw)):
            p, y = raw[t], int(outcomes[t])
            at = blocks + (bucket_of(reals, edges, buckets, p) & INDEX) * stride
            clock = words[at + CLOCK]
            u = coin(words[at + KEY], clock)
            cell, side, weight = draw(words, reals, at, cells, table, u)
            forecast[t] = reals[table + cells + VALUES + cell]
            means[t] = mean(words, reals, cells, table, cell, side, weight)
            update(words, reals, at, table, cell, side, weight, y)
            words[at + POSITION] = cell
            words[at + CLOCK] = clock + 1
            charged += charge(loss, p, y)
        reals[CHARGED] = charged

    def replay_late(
        words: Words,
        reals: Reals,
        raw: Any,
        outcomes: Any,
        events: Any,
        forecast: Any,
        means: Any,
        notes: Any,
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        blocks, stride = words[BLOCKS] & INDEX, words[STRIDE] & INDEX
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        for e in range(len(events)):
            t = events[e]
            row = t if t >= 0 else -1 - t
            at = blocks + (bucket_of(reals, edges, buckets, raw[row]) & INDEX) * stride
            if t >= 0:
                u = coin(words[at + KEY], words[at + CLOCK])
                cell, side, weight = draw(words, reals, at, cells, table, u)
                forecast[t] = reals[table + cells + VALUES + cell]
                means[t] = mean(words, reals, cells, table, cell, side, weight)
                notes[2 * t] = weight
                notes[2 * t + 1] = pack(0, cell, side)
                words[at + POSITION] = cell
                words[at + CLOCK] += 1
                if many:
                    words[at + FRESH] = words[FIRST_NUMBER] + t
            else:
                weight, y = notes[2 * row], int(outcomes[row])
                _, cell, side = unpack(int(notes[2 * row + 1]))
                number = words[FIRST_NUMBER] + row
                if many and not recall(words, reals, at, cells, table, number):
                    weight = -1.0
                update(words, reals, at, table, cell, side, weight, y)
                reals[CHARGED] += charge(words[LOSS], raw[row], y)

    return Program(
        name,
        many,
        draw,
        mean,
        recall,
        update,
        amend,
        glance,
        issue,
        book,
        settle,
        replay,
        replay_late,
    )
