"""The words of all rows of one kind: sizes, fresh values, and what each word is.

Everything here is derived from the sections that kernels declare
(:mod:`calibrant.kernels.layout`) and from the parameters of a rule.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Words
from calibrant.kernels.layout import (
    ADVICE,
    ANY,
    BLOCKS,
    BUCKETS,
    CELLS,
    CROWD,
    EDGES,
    EPSILON,
    HEADER,
    LAG,
    LOSS,
    MIXED,
    MIXED_ROW,
    NOTES,
    PARAMETERS,
    ROW,
    ROW_WORDS,
    ROWS,
    SAFE_ROW,
    SCALE,
    SCRATCH,
    STATE,
    STRIDE,
    TABLE,
    TRANSFORM,
    VALUES,
    Section,
)

if TYPE_CHECKING:
    from calibrant.calibrators.base import Calibrator

MAX_GAP = 1 << 61
"""Scaled gaps stay below it, so that four of them fit into 63 bits."""


class HasState(Protocol):
    """What a layout asks of a transform: the words of its state, and what they are."""

    @property
    def kernel(self) -> Any: ...
    def fresh(self) -> list[Any]: ...
    def note_positions(self) -> list[int]: ...
    def constants(self) -> list[int]: ...
    def limits(self) -> dict[int, tuple[int, int]]: ...


class Places:
    """Where reals and whole numbers stand, for moving words between a list and an array."""

    def __init__(self, reals: Words, wholes: Words) -> None:
        self.reals, self.wholes = reals, wholes
        self.real_list: list[int] = reals.tolist()
        self.pick_reals, self.pick_wholes = itemgetter(*reals), itemgetter(*wholes)


@dataclass(frozen=True, eq=False)
class Layout:
    """Where everything stands, in the part that rows share and in each row.

    Attributes
    ----------
    shared
        Header, tables and scratch room, as they are before the first step.
    fresh
        A row before its first round, without its secret.
    section
        The row's own words.
    blocks, stride, transform
        Where blocks and the transform's state start in a row, and words in a block.
    real, stored
        Which words of a row are reals, and which are part of a state.
    low, high
        Between which numbers a word of a row must be, read as a whole number.
    """

    shared: Words
    fresh: Words
    section: Section
    blocks: int
    stride: int
    transform: int
    shared_real: Mask
    real: Mask
    stored: Mask
    low: Words
    high: Words

    @property
    def row(self) -> int:
        """Where the first row starts."""
        return len(self.shared)

    @functools.cached_property
    def alone(self) -> Words:
        """The shared part and one fresh row."""
        return np.concatenate([self.shared, self.fresh])

    @functools.cached_property
    def alone_real(self) -> Mask:
        """Which words of the shared part and one row are reals."""
        return np.concatenate([self.shared_real, self.real])

    @functools.cached_property
    def alone_list(self) -> list[Any]:
        """The shared part and one fresh row as a list, with floats for reals."""
        pairs = zip(self.alone.tolist(), self.alone.view(np.float64).tolist(), strict=True)
        both = zip(self.alone_real.tolist(), pairs, strict=True)
        zero = 0.0
        # One object for all zeros, of which there are many.
        return [(real or zero) if is_real else whole for is_real, (whole, real) in both]

    @functools.cached_property
    def places(self) -> dict[int, Places]:
        """Which words are what in the shared part and so many rows; filled in when asked for."""
        return {}

    def places_of(self, rows: int) -> Places:
        """Return which words are what in the shared part and so many rows."""
        if rows not in self.places:
            real = np.concatenate([self.shared_real, np.tile(self.real, rows)])
            self.places[rows] = Places(np.flatnonzero(real), np.flatnonzero(~real))
        return self.places[rows]

    def blocks_of(self, row: Words) -> Words:
        """Return the blocks of a row, a block a row of a table."""
        end = self.transform or len(self.fresh)
        return row[self.blocks : end].reshape(-1, self.stride)

    def verify(self, row: Words) -> None:
        """Refuse a row with which kernels would go astray."""
        bad = np.flatnonzero((row < self.low) | (row > self.high))
        for place in bad[:1].tolist():
            allowed = f"from {self.low[place]} to {self.high[place]}"
            raise ValueError(f"word {place} must be {allowed}, got {row[place]}")


@functools.lru_cache(maxsize=512)
def layout_of(
    rule: Calibrator,
    buckets: int,
    prior: int = 0,
    centres: tuple[Fraction, ...] | None = None,
    loss: int = 0,
    transform: HasState | None = None,
    epsilon: float | None = None,
    divisor: int = 1,
) -> Layout:
    """Return the layout of all rows with these settings.

    ``centres`` are the middles of the buckets, by default of M equal ones; ``divisor`` divides the
    denominator of gaps, which rows with other centres can share then.
    """
    middles = centres or tuple(Fraction(2 * j + 1, 2 * buckets) for j in range(buckets))
    grid = rule.lattice
    scale = math.lcm(divisor, grid.denominator, *{centre.denominator for centre in middles})
    check.whole(prior, "prior", high=MAX_GAP // scale)
    kept = 0 if transform is None else transform.kernel.kept
    section = ROW if transform is None else MIXED_ROW if epsilon is None else SAFE_ROW
    shared, shared_real = _shared(rule, buckets, scale, kept)
    stride = len(rule.kernels.head) + len(rule.kernels.cell) * grid.cells
    own, start = len(section), len(section) + buckets * stride
    front = [] if transform is None else transform.fresh()
    size = start + len(front)
    shared[[ROWS, ROW_WORDS, BLOCKS, STRIDE]] = len(shared), size, own, stride
    shared[[TRANSFORM, LOSS]] = start if front else 0, loss
    reals = shared.view(np.float64)
    reals[EPSILON], reals[MIXED] = epsilon or 0.0, float(middles[0])
    reals[LAG] = reals[CROWD] = 1.0
    shared[NOTES] = -1
    fresh, real, stored, low, high = _row(rule, section, buckets, size)
    blocks = fresh[own:start].reshape(buckets, stride)
    for block, centre in zip(blocks, middles, strict=True):
        rule.begin(block, block.view(np.float64), prior, centre, scale)
    _add_transform(transform, *(array[start:] for array in (fresh, real, stored, low, high)))
    for array in (shared, fresh):
        array.flags.writeable = False
    begin = start if front else 0
    return Layout(shared, fresh, section, own, stride, begin, shared_real, real, stored, low, high)


def _shared(rule: Calibrator, buckets: int, scale: int, kept: int) -> tuple[Words, Mask]:
    """Return header, tables and scratch room, and which of their words are reals."""
    grid, edges = rule.lattice, len(HEADER)
    table = edges + buckets + 2
    values = table + grid.cells + VALUES
    scratch = values + grid.cells + 1
    advice = scratch + rule.scratch(grid.cells)
    words, real = np.zeros(advice + kept, np.int64), np.zeros(advice + kept, bool)
    reals = words.view(np.float64)
    words[[BUCKETS, CELLS, SCALE, EDGES]] = buckets, grid.cells, scale, edges
    words[[TABLE, SCRATCH, ADVICE]] = table, scratch, advice
    reals[edges : edges + buckets] = np.arange(buckets) / buckets
    reals[edges + buckets] = 2.0
    numerators = np.array(grid.numerators) * (scale // grid.denominator)
    words[table : table + grid.cells] = numerators
    # Beyond the ends a half cell is as wide as the whole range, so slack rules stop there.
    words[table - 1] = numerators[0] - 2 * scale
    words[table + grid.cells] = numerators[-1] + 2 * scale
    reals[values : values + grid.cells] = grid.values
    reals[[values - 1, values + grid.cells]] = np.inf, -np.inf
    rule.set_parameters(words, reals, buckets)
    real[HEADER.reals] = True
    real[[PARAMETERS + place for place in rule.kernels.settings.reals]] = True
    real[edges : edges + buckets + 1] = True
    real[values - 1 : advice] = True
    return words, real


def _row(rule: Calibrator, section: Section, buckets: int, size: int) -> tuple[Any, ...]:
    """Return zeros for a row, which words are real, which stored, and their limits."""
    head, cell, cells = rule.kernels.head, rule.kernels.cell, rule.lattice.cells
    fields = [*section.fields]
    block = [*head.fields, *cell.fields * cells]
    flags = [(f.real, f.life == STATE, *f.limits) for f in fields]
    inner = [(f.real, f.life == STATE, *f.limits) for f in block]
    for place, limits in rule.limits().items():
        inner[place] = (block[place].real, block[place].life == STATE, *limits)
    own = np.array(flags, object)
    repeated = np.tile(np.array(inner, object), (buckets, 1))
    rest = np.tile(np.array([(False, True, *ANY)], object), (size - len(own) - len(repeated), 1))
    columns = np.concatenate([own, repeated, rest]).T
    real, stored = columns[0].astype(bool), columns[1].astype(bool)
    return (
        np.zeros(size, np.int64),
        real,
        stored,
        columns[2].astype(np.int64),
        columns[3].astype(np.int64),
    )


def _add_transform(
    transform: HasState | None, fresh: Words, real: Mask, stored: Mask, low: Words, high: Words
) -> None:
    """Write what is known of a transform's state into the views of its part of a row."""
    if transform is None:
        return
    front = transform.fresh()
    real[:] = [type(word) is float for word in front]
    fresh[~real] = [word for word in front if type(word) is not float]
    fresh.view(np.float64)[real] = [word for word in front if type(word) is float]
    stored[transform.note_positions()] = False
    fixed = transform.constants()
    stored[fixed] = False
    low[fixed] = high[fixed] = fresh[fixed]
    for place, limits in transform.limits().items():
        low[place], high[place] = limits
