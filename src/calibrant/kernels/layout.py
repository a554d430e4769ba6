"""Which word of the flat state means what, declared once.

::

    shared: header | tables | scratch          rows: row 0 | row 1 | ...
    row:    own words | block 0 | ... | block M-1 | state of the transform

* header: sizes and parameters, the same for all rows, and scratch words of a step;
* tables: M+1 bucket edges (reals), K grid numerators between two sentinels (words),
  K grid values (reals);
* scratch: room for rules whose mixture has more than two points, and for what a transform keeps;
* row: everything that one model remembers.  A lone model is an arena with one row;
* block j of a row: what the calibrator of bucket j remembers, the head of its rule and then
  a few words for each of its K grid points, the first two of which are always
  the scaled gap ``s`` and the count ``n``.

Gaps are exact: with a common denominator ``scale`` of the grid and of the bucket
centres, ``s = scale * (Y - g * n)`` is an integer, and so are its sign and its zeros.

A :class:`Section` is a run of words.  Offsets, which words are reals, what is stored, what is
checked on loading and the tables of the documentation are derived from its fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Words: TypeAlias = Any
"""A list, an int64 array or a memoryview of one: the state read as integers."""

Reals: TypeAlias = Any
"""The same buffer read as doubles; of a list, the list itself."""

FIXED: Final = "fixed"
"""Follows from the settings and never changes."""
STATE: Final = "state"
"""What a model remembers: stored, compared, restored."""
DERIVED: Final = "derived"
"""Follows from two other words of the row: stored by none, made again on loading."""
SCRATCH_LIFE: Final = "scratch"
"""Means something within a step only."""

ANY: Final = (-(1 << 63), (1 << 63) - 1)
"""Limits of a word that may be anything."""
COUNT: Final = (0, (1 << 62) - 1)
"""Limits of a word that counts."""
SHARE: Final = (0.0, 1.0)
"""Limits of a weight or a probability."""
REAL: Final = (-1e150, 1e150)
"""Limits of a real, unless its field says more: finite, and so is its square."""
REAL_COUNT: Final = (0.0, 2.0**62)
"""Limits of a real that counts, or adds up what is not negative."""
UNBOUNDED: Final = (float("-inf"), float("inf"))
"""Limits of a real that may be infinite, and is a number still."""


@dataclass(frozen=True)
class Field:
    """One word: its name, whether its bits are a real's, how long it lives, what it means.

    ``limits`` are the least and the largest number that loading accepts.  A derived word of a cell
    is the ratio of two others, ``ratio``, the lower one times the scale of gaps.
    """

    name: str
    real: bool
    life: str
    meaning: str
    limits: tuple[float, float] = ANY
    ratio: tuple[int, int] | None = None


class Section:
    """A run of words in a fixed order; ``limits`` are those of reals that are told none.

    Examples
    --------
    >>> section = Section()
    >>> section.whole("CLOCK", STATE, "Forecasts made."), section.real("LOSS", STATE, "Their loss.")
    (0, 1)
    >>> section.reals, len(section)
    ([1], 2)
    """

    def __init__(self, *before: Section, limits: tuple[float, float] = REAL) -> None:
        self.fields: list[Field] = [field for section in before for field in section.fields]
        self.limits = limits

    def __len__(self) -> int:
        return len(self.fields)

    def whole(
        self, name: str, life: str, meaning: str, limits: tuple[int, int] = ANY, words: int = 1
    ) -> int:
        """Declare the next word, or several, as whole numbers; return where they start."""
        self.fields += [Field(name, False, life, meaning, limits)] * words
        return len(self.fields) - words

    def real(
        self,
        name: str,
        life: str,
        meaning: str,
        limits: tuple[float, float] | None = None,
        words: int = 1,
        ratio: tuple[int, int] | None = None,
    ) -> int:
        """Declare the next word, or several, as reals; return where they start."""
        self.fields += [Field(name, True, life, meaning, limits or self.limits, ratio)] * words
        return len(self.fields) - words

    @property
    def reals(self) -> list[int]:
        """Places of the reals."""
        return [place for place, field in enumerate(self.fields) if field.real]

    def lives(self, *lives: str) -> list[int]:
        """Return the places of the words that live so long."""
        return [place for place, field in enumerate(self.fields) if field.life in lives]

    def place(self, name: str) -> int:
        """Return where the word of that name stands."""
        return [field.name for field in self.fields].index(name)


HEADER: Final = Section()
BUCKETS: Final = HEADER.whole("BUCKETS", FIXED, "Number of buckets M.")
CELLS: Final = HEADER.whole("CELLS", FIXED, "Number of grid points K.")
SCALE: Final = HEADER.whole("SCALE", FIXED, "Common denominator of gaps.")
EDGES: Final = HEADER.whole("EDGES", FIXED, "Where the table of bucket edges starts.")
TABLE: Final = HEADER.whole(
    "TABLE",
    FIXED,
    "Where the grid's numerators start; one sentinel stands before them and one after.",
)
SCRATCH: Final = HEADER.whole("SCRATCH", FIXED, "Where the scratch room starts.")
ROWS: Final = HEADER.whole("ROWS", FIXED, "Where row 0 starts.")
ROW_WORDS: Final = HEADER.whole("ROW_WORDS", FIXED, "Words in a row.")
BLOCKS: Final = HEADER.whole("BLOCKS", FIXED, "Where block 0 starts in a row.")
STRIDE: Final = HEADER.whole("STRIDE", FIXED, "Words in a block.")
TRANSFORM: Final = HEADER.whole(
    "TRANSFORM", FIXED, "Where the state of the transform starts in a row, if there is one."
)
ADVICE: Final = HEADER.whole(
    "ADVICE",
    FIXED,
    "Where a step leaves what the transform keeps of a round that waits, and finds it.",
)
CAPACITY: Final = HEADER.whole("CAPACITY", FIXED, "Rounds beyond which a gap could be too large.")
LOSS: Final = HEADER.whole("LOSS", FIXED, "Code of the loss under which forecasts are charged.")
PARAMETERS: Final = HEADER.whole("PARAMETERS", FIXED, "The rule's own parameters.", words=4)
EPSILON: Final = HEADER.real(
    "EPSILON",
    FIXED,
    "What each outcome adds to the budget of losses beyond the raw forecast's, if there is one.",
)
COINS: Final = HEADER.whole(
    "COINS",
    FIXED,
    "How coins are thrown, and late outcomes count: 1 by SipHash, and by the crowd; 0 as in states "
    "of earlier versions.",
)
MIXED: Final = HEADER.real(
    "MIXED",
    SCRATCH_LIFE,
    "The mixed forecast: what the transform made of the raw forecast, or the raw forecast itself.",
)
LAG: Final = HEADER.real(
    "LAG",
    SCRATCH_LIFE,
    "How many forecasts were made from the one whose outcome is learned on, itself included.",
)
CROWD: Final = HEADER.real(
    "CROWD", SCRATCH_LIFE, "Among how many forecasts that wait the outcome counts for one."
)
SAME: Final = HEADER.real(
    "SAME", SCRATCH_LIFE, "Among how many that are the same it counts for one, as far as is known."
)
LEAST_STEP: Final = HEADER.whole(
    "LEAST_STEP",
    SCRATCH_LIFE,
    "How many cells apart two neighbours must be at least, up to those of the first grid, where "
    "cells split.",
)
NOW: Final = HEADER.real(
    "NOW",
    SCRATCH_LIFE,
    "When the forecast was made whose outcome is learned, for rules that forget in time.",
)
NOTES: Final = HEADER.whole(
    "NOTES", SCRATCH_LIFE, "Row whose transform predicted last and learned nothing since, or -1."
)
NOTED: Final = HEADER.real(
    "NOTED", SCRATCH_LIFE, "The raw forecast for which the transform of that row predicted."
)
NOTED_MIXED: Final = HEADER.real("NOTED_MIXED", SCRATCH_LIFE, "What that transform made of it.")

HAND: Final = HEADER.whole(
    "HAND", SCRATCH_LIFE, "Number of the forecast in hand: announced last, or about to be learned."
)
HAND_ROW: Final = HEADER.whole("HAND_ROW", SCRATCH_LIFE, "Row of the forecast in hand.")
HAND_PLACE: Final = HEADER.whole("HAND_PLACE", SCRATCH_LIFE, "Place of the draw in hand.")
HAND_WEIGHT: Final = HEADER.real("HAND_WEIGHT", SCRATCH_LIFE, "Weight of its lower grid point.")
HAND_MIXED: Final = HEADER.real("HAND_MIXED", SCRATCH_LIFE, "The mixed forecast in hand.")
HAND_RAW: Final = HEADER.real("HAND_RAW", SCRATCH_LIFE, "The raw forecast in hand.")
LOOK_CLOCK: Final = HEADER.whole(
    "LOOK_CLOCK", SCRATCH_LIFE, "Clock of the block at the last look at a next draw."
)
LOOK_LEARNED: Final = HEADER.whole(
    "LOOK_LEARNED", SCRATCH_LIFE, "Outcomes that were learned when the draw was looked at."
)
LOOK_PLACE: Final = HEADER.whole("LOOK_PLACE", SCRATCH_LIFE, "Place of the draw looked at.")
LOOK_WEIGHT: Final = HEADER.real("LOOK_WEIGHT", SCRATCH_LIFE, "Weight of its lower grid point.")
LOOK_MIXED: Final = HEADER.real("LOOK_MIXED", SCRATCH_LIFE, "The mixed forecast looked at.")
LOOK_MEAN: Final = HEADER.real("LOOK_MEAN", SCRATCH_LIFE, "The mean looked at.")
UNDO_NUMBER: Final = HEADER.whole(
    "UNDO_NUMBER", SCRATCH_LIFE, "Number of the forecast that was announced last, or -1."
)
UNDO_LEARNED: Final = HEADER.whole(
    "UNDO_LEARNED", SCRATCH_LIFE, "Number of the forecast whose outcome was learned last, or -1."
)
UNDO_AT: Final = HEADER.whole(
    "UNDO_AT", SCRATCH_LIFE, "Where the block starts in which a forecast was announced last."
)
UNDO_POSITION: Final = HEADER.whole(
    "UNDO_POSITION", SCRATCH_LIFE, "The position of that block before."
)
UNDO_MOST: Final = HEADER.whole(
    "UNDO_MOST", SCRATCH_LIFE, "Most outcomes missing in that row before."
)
UNDO_FRESH: Final = HEADER.whole(
    "UNDO_FRESH", SCRATCH_LIFE, "Which forecast the law of that block was of before."
)
UNDO_RESERVED: Final = HEADER.whole(
    "UNDO_RESERVED", SCRATCH_LIFE, "What that row had reserved of its budget before."
)

ROW: Final = Section()
RAW_LOSS: Final = ROW.real("RAW_LOSS", STATE, "Sum of the raw forecast's finite losses.")
RAW_INFINITE: Final = ROW.whole(
    "RAW_INFINITE", STATE, "How many losses of the raw forecast were infinite.", COUNT
)
ISSUED: Final = ROW.whole("ISSUED", STATE, "Forecasts made.", COUNT)
ROUNDS: Final = ROW.whole("ROUNDS", STATE, "Outcomes learned.", COUNT)
LONGEST_LAG: Final = ROW.whole(
    "LONGEST_LAG",
    STATE,
    "Most forecasts made between one and its outcome, or its last correction.",
    COUNT,
)
MOST_OUTSTANDING: Final = ROW.whole(
    "MOST_OUTSTANDING",
    STATE,
    "Most outcomes missing, or corrected later, when a forecast was made: at most so many.",
    COUNT,
)
SECRET: Final = ROW.whole("SECRET", STATE, "The secret that fixes all coins.", words=2)

MIXED_ROW: Final = Section(ROW)
"""Own words of a row whose raw forecasts go through a transform."""
MIXED_LOSS: Final = MIXED_ROW.real(
    "MIXED_LOSS", STATE, "Sum of the mixed forecast's finite losses."
)
MIXED_INFINITE: Final = MIXED_ROW.whole(
    "MIXED_INFINITE", STATE, "How many losses of the mixed forecast were infinite.", COUNT
)

SAFE_ROW: Final = Section(MIXED_ROW)
"""Own words of a row that keeps a budget of losses beyond the raw forecast's."""
# Earlier versions left -inf behind a sure mistake of the raw forecast.
SPENT: Final = (float("-inf"), REAL[1])
EXCESS: Final = SAFE_ROW.real("EXCESS", STATE, "What was spent of the budget.", SPENT)
RESERVED: Final = SAFE_ROW.whole(
    "RESERVED",
    STATE,
    "The most that may still be spent on forecasts that wait, in units of 2**-40.",
    COUNT,
)
SETTLED: Final = SAFE_ROW.whole("SETTLED", STATE, "Outcomes that added to the budget.", COUNT)
FALLBACKS: Final = SAFE_ROW.whole(
    "FALLBACKS",
    STATE,
    "Rounds learned in which the raw forecast was announced, not the draw.",
    COUNT,
)

HEAD: Final = Section()
"""Head of a block, common to all rules."""
POSITION: Final = HEAD.whole("POSITION", STATE, "The cell that this block drew last.")
CLOCK: Final = HEAD.whole(
    "CLOCK", STATE, "Forecasts made in this block; each draws its own coin.", COUNT
)
KEY: Final = HEAD.whole(
    "KEY",
    FIXED,
    "What tells this block's coins from all others, which follows from the secret; in states of "
    "earlier versions the key of its coins.",
)

GAP_AND_COUNT: Final = Section()
"""A cell of a rule that keeps whole numbers only."""
GAP: Final = GAP_AND_COUNT.whole("GAP", STATE, "Scaled gap: outcomes less announced values.")
VISITS: Final = GAP_AND_COUNT.whole("VISITS", STATE, "How often the cell was drawn.", COUNT)

TALLIED: Final = Section()
"""A cell in one word, for rules with many cells: gap and visits follow from it."""
TALLIED.whole(
    "TALLY", STATE, "Draws that met outcome 1, times 2**31, and those that met outcome 0.", COUNT
)
ONE: Final = 1 << 31
"""What a draw that met outcome 1 adds to a tally; one that met outcome 0 adds 1."""

INDEX: Final = 0x7FFF_FFFF
"""Mask for positions read from the state, so that the compiler knows them to be positive."""

NARROW: Final = 0xF_FFFF
"""Mask for bucket numbers and block sizes, whose products it keeps within 40 bits."""

VALUES: Final = 2
"""Grid values start this many words after the K numerators; before the first stands plus
infinity and after the last minus infinity: values that no score points to."""


CELL: Final = 0x7FFF
"""Mask for the cell in a packed word."""
WIDTH: Final = 22
"""First bit of a side that says how wide the pair is: 2**(side >> WIDTH) cells."""
SIDES: Final = 7 << WIDTH | 1
"""Mask for a side."""
ASIDE: Final = 1 << 36
"""Bit of a packed word whose draw was not announced: the raw forecast was."""


def pack(bucket: int, cell: int, side: int) -> int:
    """Put where a draw fell into one word: bucket, side of the pair, cell.

    The side is 0 for the lower and 1 for the upper cell of two neighbours.  A pair that lies
    2**e cells apart has e from bit `WIDTH` of the side on, which is bit 37 of the word: above
    the bucket, and above `ASIDE`.

    >>> unpack(pack(19, 20, 1))
    (19, 20, 1)
    """
    return (bucket << 16) | (side << 15) | cell


def unpack(place: int) -> tuple[int, int, int]:
    """Take bucket, cell and side out of a packed word."""
    return (place >> 16) & NARROW, place & CELL, (place >> 15) & SIDES
