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
from calibrant.kernels.compile import available, compiled, entry_point
from calibrant.kernels.inline import inlined
from calibrant.kernels.layout import (
    ANSWER,
    ASKED,
    BLOCKS,
    BUCKETS,
    CELL,
    CELLS,
    CHARGED,
    CLOCK,
    COUNTED,
    EDGES,
    FIRST_NUMBER,
    FRESH,
    FRONT,
    IDLE,
    INDEX,
    KEY,
    LAG,
    LOSS,
    MIDDLE,
    NARROW,
    NOTED,
    NOW,
    OVERTAKEN,
    POSITION,
    SHARED,
    SIDES,
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
from calibrant.kernels.scores import SQUARED, bill, charge

Draw = Callable[[Words, Reals, int, int, int, float], tuple[int, int, float]]
Mean = Callable[[Words, Reals, int, int, int, int, float], float]
Recall = Callable[[Words, Reals, int, int, int, int], bool]
Update = Callable[[Words, Reals, int, int, int, int, float, int], None]
Amend = Callable[[Words, Reals, int, int, int, int, float, int], None]


@dataclass(frozen=True, eq=False)
class Program:
    """All functions of one rule, plain; and compiled, once somebody asks for that.

    ``draw``, ``mean``, ``update`` and ``amend`` are the rule's own.  ``note`` looks at a
    block's next draw, ``book`` makes a round of it, ``issue`` announces it and ``settle``
    learns its outcome later.  The functions that end in ``_flat`` do the same for a raw
    forecast on the array alone, with the block's own coin; ``replay`` and ``replay_late``
    play whole batches.
    """

    name: str
    many: bool
    anchored: bool
    draw: Draw
    mean: Mean
    recall: Recall
    update: Update
    amend: Amend
    note: Callable[[Words, Reals, int, int, int, float, float], int]
    book: Callable[[Words, Reals, int, int, int, float, float, int], bool]
    issue: Callable[[Words, Reals, int, int, int, float, float], tuple[int, int, float]]
    settle: Callable[[Words, Reals, int, int, int, float, float, int, float], None]
    note_flat: Callable[[Any, float], int]
    book_flat: Callable[[Any, float, int], bool]
    issue_flat: Callable[[Any, float], int]
    settle_flat: Callable[[Any, int, float, float, int, float], None]
    replay: Callable[[Words, Reals, Any, Any, Any, Any], None]
    replay_late: Callable[..., None]

    @functools.cached_property
    def guarded(self) -> Program:
        """The same program, except that it notes whole pairs and does not learn rounds that stand
        aside.

        Only for rules that learn from the draw alone.
        """
        return assemble(
            f"{self.name}_guarded",
            draw=self.draw,
            update=_unless_aside(self.update),
            amend=self.amend,
            mean=self.mean,
            recall=self.recall,
            weighted=True,
            anchored=self.anchored,
        )

    @functools.cached_property
    def written_out(self) -> Program:
        """The same program with the single steps of plain Python written out, for speed."""
        return replace(
            self,
            note=inlined(self.note, self.name),
            book=inlined(self.book, self.name),
            issue=inlined(self.issue, self.name),
            settle=inlined(self.settle, self.name),
        )

    @functools.cached_property
    def machine(self) -> Program | None:
        """The compiled program, or None where there is no compiler."""
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

    def steps(self, flat: Any) -> Program:
        """Return this compiled program with its single steps ready to be called.

        ``flat`` is a state to try them on, which compiles them.
        """
        self.settle_flat(flat, self.issue_flat(flat, 0.5), 1.0, 0.5, 1, 1.0)
        self.note_flat(flat, 0.5)
        self.book_flat(flat, 0.5, 1)
        return replace(
            self,
            note_flat=entry_point(self.note_flat),
            book_flat=entry_point(self.book_flat),
            issue_flat=entry_point(self.issue_flat),
            settle_flat=entry_point(self.settle_flat),
        )


def assemble(
    name: str,
    *,
    draw: Draw,
    update: Update,
    amend: Amend,
    mean: Mean,
    recall: Recall,
    weighted: bool = False,
    many: bool = False,
    anchored: bool = False,
) -> Program:
    """Make the program of a rule from its own five functions.

    ``weighted`` says that it may learn from the mixture and not only from the draw,
    ``many`` that its mixtures may have more than two points, ``anchored`` that it looks at the
    forecast of the round, which is the raw one unless a transform stands in front.
    """

    def note(
        words: Words, reals: Reals, at: int, cells: int, table: int, raw: float, u: float
    ) -> int:
        if anchored and words[FRONT] == 0:
            reals[MIDDLE] = raw
        cell, side, weight = draw(words, reals, at, cells, table, u)
        asked = reals[at + ASKED]
        # Two predictions of one round can have only one outcome: the other is overtaken.
        shared = asked != IDLE and asked != OVERTAKEN and asked != raw + 1.0
        reals[at + ASKED] = SHARED if shared else raw + 1.0
        words[at + ANSWER] = cell
        if weighted:
            words[at + ANSWER] = (side << 15) | cell
            reals[at + NOTED] = weight
        return cell

    def book(
        words: Words,
        reals: Reals,
        at: int,
        cells: int,
        table: int,
        raw: float,
        u: float,
        outcome: int,
    ) -> bool:
        if anchored and words[FRONT] == 0:
            reals[MIDDLE] = raw
        asked, after = reals[at + ASKED], IDLE
        cell, side, weight = words[at + ANSWER], 0, 1.0
        if asked != raw + 1.0:
            if asked == OVERTAKEN:
                return False
            if asked == IDLE:
                cell, side, weight = draw(words, reals, at, cells, table, u)
            else:
                after = OVERTAKEN
        if weighted and asked != IDLE:
            cell, side, weight = cell & CELL, cell >> 15, reals[at + NOTED]
        if many and asked != IDLE:
            # A late outcome may have changed the law since it was noted.
            drawn, _, now = draw(words, reals, at, cells, table, u)
            if drawn != cell or now != weight:
                weight = -1.0
        update(words, reals, at, table, cell, side, weight, outcome)
        bill(words, reals, raw, outcome)
        reals[at + ASKED] = after
        words[at + POSITION] = cell
        words[at + CLOCK] += 1
        return True

    def issue(
        words: Words, reals: Reals, at: int, cells: int, table: int, raw: float, u: float
    ) -> tuple[int, int, float]:
        if anchored and words[FRONT] == 0:
            reals[MIDDLE] = raw
        cell, side, weight = draw(words, reals, at, cells, table, u)
        words[at + POSITION] = cell
        words[at + CLOCK] += 1
        if reals[at + ASKED] != IDLE:
            reals[at + ASKED] = OVERTAKEN
        return cell, side, weight

    def settle(
        words: Words,
        reals: Reals,
        at: int,
        table: int,
        place: int,
        weight: float,
        raw: float,
        outcome: int,
        lag: float,
    ) -> None:
        if anchored:
            reals[LAG] = lag
            if words[FRONT] == 0:
                reals[MIDDLE] = raw
        update(words, reals, at, table, place & CELL, (place >> 15) & SIDES, weight, outcome)
        bill(words, reals, raw, outcome)
        if anchored:
            reals[LAG] = 1.0

    def note_flat(flat: Any, raw: float) -> int:
        reals = flat.view(np.float64)
        at = block_of(flat, reals, raw)
        u = coin(flat[at + KEY], flat[at + CLOCK])
        return note(flat, reals, at, flat[CELLS] & INDEX, flat[TABLE] & INDEX, raw, u)

    def book_flat(flat: Any, raw: float, outcome: int) -> bool:
        reals = flat.view(np.float64)
        at = block_of(flat, reals, raw)
        u = coin(flat[at + KEY], flat[at + CLOCK])
        return book(flat, reals, at, flat[CELLS] & INDEX, flat[TABLE] & INDEX, raw, u, outcome)

    def issue_flat(flat: Any, raw: float) -> int:
        reals = flat.view(np.float64)
        at = block_of(flat, reals, raw)
        flat[COUNTED] = flat[at + CLOCK]
        u = coin(flat[at + KEY], flat[at + CLOCK])
        table = flat[TABLE] & INDEX
        cell, side, reals[WEIGHT] = issue(flat, reals, at, flat[CELLS] & INDEX, table, raw, u)
        return pack((at - flat[BLOCKS]) // flat[STRIDE], cell, side)

    def settle_flat(
        flat: Any, place: int, weight: float, raw: float, outcome: int, lag: float
    ) -> None:
        reals = flat.view(np.float64)
        at = (flat[BLOCKS] & INDEX) + ((place >> 16) & NARROW) * (flat[STRIDE] & NARROW)
        settle(flat, reals, at, flat[TABLE] & INDEX, place, weight, raw, outcome, lag)

    def replay(
        words: Words, reals: Reals, raw: Any, outcomes: Any, forecast: Any, means: Any
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        blocks, stride = words[BLOCKS] & INDEX, words[STRIDE] & NARROW
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        squared, charged = words[LOSS] == SQUARED, reals[CHARGED]
        for t in range(len(raw)):
            p, y = raw[t], int(outcomes[t])
            at = blocks + (bucket_of(reals, edges, buckets, p) & NARROW) * stride
            clock = words[at + CLOCK]
            u = coin(words[at + KEY], clock)
            if anchored:
                reals[MIDDLE] = p
            cell, side, weight = draw(words, reals, at, cells, table, u)
            cell &= CELL
            forecast[t] = reals[table + cells + VALUES + cell]
            means[t] = mean(words, reals, cells, table, cell, side, weight)
            update(words, reals, at, table, cell, side, weight, y)
            words[at + POSITION] = cell
            words[at + CLOCK] = clock + 1
            if squared:
                charged += charge(SQUARED, p, y)
            else:
                bill(words, reals, p, y)
        if squared:
            reals[CHARGED] = charged

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
        lags: Any,
        times: Any,
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        blocks, stride = words[BLOCKS] & INDEX, words[STRIDE] & NARROW
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        for e in range(len(events)):
            t = events[e]
            if t >= 0:
                bucket = bucket_of(reals, edges, buckets, raw[t]) & NARROW
                at = blocks + bucket * stride
                u = coin(words[at + KEY], words[at + CLOCK])
                if anchored:
                    reals[MIDDLE] = raw[t]
                cell, side, weight = draw(words, reals, at, cells, table, u)
                forecast[t] = reals[table + cells + VALUES + cell]
                means[t] = mean(words, reals, cells, table, cell, side, weight)
                kept[t] = weight
                places[t] = pack(bucket, cell, side)
                words[at + POSITION] = cell
                words[at + CLOCK] += 1
                if many:
                    words[at + FRESH] = words[FIRST_NUMBER] + t
            else:
                row = -1 - t
                weight, y = kept[row], int(outcomes[row])
                bucket, cell, side = unpack(places[row])
                at = blocks + (bucket & NARROW) * stride
                number = words[FIRST_NUMBER] + row
                if many and not recall(words, reals, at, cells, table, number):
                    weight = -1.0
                if anchored:
                    reals[MIDDLE] = raw[row]
                    reals[LAG] = lags[row]
                    reals[NOW] = times[row]
                update(words, reals, at, table, cell, side, weight, y)
                bill(words, reals, raw[row], y)
        reals[LAG] = 1.0

    return Program(
        name=name,
        many=many,
        anchored=anchored,
        draw=draw,
        mean=mean,
        recall=recall,
        update=update,
        amend=amend,
        note=note,
        book=book,
        issue=issue,
        settle=settle,
        note_flat=note_flat,
        book_flat=book_flat,
        issue_flat=issue_flat,
        settle_flat=settle_flat,
        replay=replay,
        replay_late=replay_late,
    )


def _unless_aside(learn: Update) -> Update:
    def update(
        words: Words,
        reals: Reals,
        at: int,
        table: int,
        cell: int,
        side: int,
        weight: float,
        outcome: int,
    ) -> None:
        if words[STANDS] == 0:
            learn(words, reals, at, table, cell, side, weight, outcome)

    return update


def block_of(words: Words, reals: Reals, raw: float) -> int:
    """Return where the block of a raw forecast's bucket starts."""
    j = bucket_of(reals, words[EDGES] & INDEX, words[BUCKETS] & INDEX, raw)
    at: int = (words[BLOCKS] & INDEX) + (j & NARROW) * (words[STRIDE] & NARROW)
    return at
