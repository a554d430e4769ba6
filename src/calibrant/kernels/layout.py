"""Which word of the flat state means what.

::

    header | tables | scratch | block 0 | block 1 | ... | block M-1

* header: counters, sizes and the rule's own parameters (`PARAMETERS` words);
* tables: M+1 bucket edges (reals), K grid numerators between two sentinels (words),
  K grid values (reals);
* scratch: room for rules whose mixture has more than two points; never part of a state;
* block j: everything the calibrator of bucket j remembers, `HEAD` words and then
  a few words for each of its K grid points, the first two of which are always
  the scaled gap ``s`` and the count ``n``.

Gaps are exact: with a common denominator ``scale`` of the grid and of the bucket
centres, ``s = scale * (Y - g * n)`` is an integer, and so are its sign and its zeros.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Words: TypeAlias = Any
"""An int64 array, or a memoryview of one: the state read as integers."""

Reals: TypeAlias = Any
"""The same buffer read as doubles."""

BUCKETS: Final = 0
"""Number of buckets M."""
CELLS: Final = 1
"""Number of grid points K."""
SCALE: Final = 2
"""Common denominator of gaps."""
EDGES: Final = 3
"""Where the table of bucket edges starts."""
TABLE: Final = 4
"""Where the grid's numerators start; one sentinel stands before them and one after."""
SCRATCH: Final = 5
"""Where the scratch room starts."""
BLOCKS: Final = 6
"""Where block 0 starts."""
STRIDE: Final = 7
"""Words in a block."""
LOSS: Final = 8
"""Code of the loss under which the raw forecast is charged."""
CHARGED: Final = 9
"""(real) Sum of the raw forecast's losses over the outcomes learned."""
FIRST_NUMBER: Final = 10
"""Number of the ticket of a batch's first row (only while a batch runs)."""
PARAMETERS: Final = 12
"""First of the rule's own parameters."""
WEIGHT: Final = 16
"""(real) Where a compiled step leaves the weight of the forecast it made."""
ENDLESS: Final = 18
"""How many of the raw forecast's losses were infinite; `CHARGED` adds up the others."""
COUNTED: Final = 17
"""Where it leaves the clock of its block."""
FRONT: Final = 11
"""Where the state of the transform that raw forecasts go through first starts, if there is one."""
MIDDLE: Final = 19
"""(real) What that transform made of the raw forecast; without one, the raw forecast itself
(anchored)."""
PASSED: Final = 20
"""(real) Sum of that transform's losses over the outcomes learned."""
BOUNDLESS: Final = 21
"""How many of these were infinite; `PASSED` adds up the others."""
ADVICE: Final = 22
"""Where a step leaves what the transform in front keeps of a round that waits, and finds it."""
LAG: Final = 23
"""(real) How many forecasts were made from the one whose outcome is learned on, itself included;
always 1 except while a late outcome is learned."""
EPSILON: Final = 24
"""(real) What each outcome adds to the budget of losses beyond the raw forecast's, if there is
one."""
EXCESS: Final = 25
"""(real) What was spent of it."""
RESERVED: Final = 26
"""The most that may still be spent on forecasts that wait, in units of 2**-40."""
SETTLED: Final = 27
"""Outcomes that added to it."""
STOOD: Final = 28
"""In how many of these rounds the raw forecast was announced instead of the draw."""
STANDS: Final = 29
"""One while the outcome of such a round is learned, else 0."""
NOW: Final = 30
"""(real) When the forecast was made whose outcome is learned, for rules that forget in time."""
HEADER: Final = 32
"""Words in the header."""

POSITION: Final = 0
"""Where the search of this block starts: the cell it last drew."""
CLOCK: Final = 1
"""Forecasts made in this block; each draws its own coin."""
KEY: Final = 2
"""Key of this block's coins."""
LEARNED: Final = 3
"""Outcomes learned in this block, for rules whose steps depend on it."""
FRESH: Final = 4
"""Number of the last forecast if nothing was learned since, else -1 (all-pairs rules)."""
TOTAL: Final = 5
"""Scaled sum of outcomes (running mean)."""
ASKED: Final = 6
"""(real) For which raw forecast the next draw was looked at: one more than it, or `IDLE`,
`SHARED` (several), `OVERTAKEN`.  This and the next two words are not part of a state."""
ANSWER: Final = 7
"""Cell and side of that draw."""
NOTED: Final = 8
"""(real) Its weight."""
HOME: Final = 9
"""Where the search of this block started in the beginning."""
REGRET: Final = 10
"""(real) How much more than its anchor's loss the mean forecast's was (anchored)."""
PULL: Final = 11
"""(real) How strongly the anchor pulls at present (anchored)."""
WAITED: Final = 12
"""(real) For how many forecasts of this block outcomes were late, in sum (anchored)."""
TRUST: Final = 13
"""(real) How far average gaps are believed: less while most outcomes are yet to come (anchored)."""
STEP: Final = 14
"""How often the step between grid points in use can still be halved: it is 2**STEP cells
(growing)."""
NEXT: Final = 15
"""After how many outcomes of this block that happens next (growing)."""
HEAD: Final = 20
"""Words of a block before its cells; the last four stay zero, a cell below the bottom one."""
TAIL: Final = 4
"""Words after a block's cells, always zero: a cell above the top one."""

IDLE: Final = 0.0
SHARED: Final = -1.0
OVERTAKEN: Final = -2.0

INDEX: Final = 0x7FFF_FFFF
"""Mask for positions read from the state, so that the compiler knows them to be positive."""

NARROW: Final = 0xF_FFFF
"""Mask for bucket numbers and block sizes, whose products it keeps within 40 bits."""

VALUES: Final = 2
"""Grid values start this many words after the K numerators; before the first stands plus
infinity and after the last minus infinity: cells that nothing leans towards."""


CELL: Final = 0x7FFF
"""Mask for the cell in a packed word."""
WIDTH: Final = 22
"""First bit of a side that says how wide the pair is: 2**(side >> WIDTH) cells."""
SIDES: Final = 7 << WIDTH | 1
"""Mask for a side."""
PAIR: Final = SIDES << 15 | CELL
"""Mask for the cell and the side of the pair on which it lies."""
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
