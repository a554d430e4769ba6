"""What a rule is made of: a few functions, and the words that they work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from calibrant.kernels import two_point
from calibrant.kernels.layout import GAP_AND_COUNT, HEAD, Reals, Section, Words
from calibrant.kernels.two_point import Draw

Mean: TypeAlias = Callable[[Words, Reals, int, int, int, int, float], float]
Recall: TypeAlias = Callable[[Words, Reals, int, int, int, int], bool]
Update: TypeAlias = Callable[[Words, Reals, int, int, int, int, float, int], None]
Amend: TypeAlias = Callable[[Words, Reals, int, int, int, int, float, int], None]

Play: TypeAlias = Callable[[Words, Reals, int, int, int, float, int], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Rule:
    """The functions of one rule over the block of a bucket, and the layout of that block.

    Attributes
    ----------
    name
        By which machine code of the rule is told apart.
    draw
        ``draw(words, reals, at, cells, table, u)``: cell, side in the pair, weight of the low cell.
    update, amend
        Learn an outcome; replace one that turned out to be wrong.
    mean
        Expected forecast of a draw.
    recall
        Bring the law of an open ticket back, or say that it cannot be had any more.
    head, cell, settings
        The words of a block before its cells, those of a cell, and the rule's parameters.
    full_support
        Whether mixtures may have more than two points.
    anchored
        Whether the rule looks at the mixed forecast of the round.
    play
        ``play(words, reals, at, cells, table, u, outcome)``: draw, and learn at once what came of
        it; return the draw and the mean.  For batches, of rules that are quicker so.
    """

    name: str
    draw: Draw
    update: Update
    amend: Amend
    mean: Mean = two_point.mean
    recall: Recall = two_point.recall
    head: Section = HEAD
    cell: Section = GAP_AND_COUNT
    settings: Section = field(default_factory=Section)
    full_support: bool = False
    anchored: bool = False
    play: Play | None = None
