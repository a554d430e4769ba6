"""The words of all rows of one kind: sizes, fresh values, and what each word is.

Everything here is derived from the sections that kernels declare
(:mod:`calibrant.kernels.layout`) and from the parameters of a rule.
"""

from __future__ import annotations

import functools
import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from struct import Struct, pack
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Words
from calibrant.core.limits import HasLimits, bits_of, limits_of_state, refuse_large, refuse_outside
from calibrant.kernels import layout as word
from calibrant.kernels.coin import SIPHASH
from calibrant.kernels.layout import Section

if TYPE_CHECKING:
    from calibrant.calibrators.base import Calibrator

LARGEST = (1 << 63) - 1
MAX_GAP = 1 << 61
"""Scaled gaps stay below it, so that four of them fit into 63 bits."""


class HasState(HasLimits, Protocol):
    """What a layout asks of a transform: the words of its state, and what they are."""

    @property
    def kernel(self) -> Any: ...
    def fresh(self) -> list[Any]: ...
    def note_positions(self) -> list[int]: ...
    def ratios(self) -> list[tuple[int, int, int, float]]: ...
    def inverses(self) -> list[tuple[int, int]]: ...
    def twins(self) -> dict[int, int]: ...
    def sums(self) -> dict[int, int]: ...
    def apart(self) -> tuple[list[tuple[int, int]], dict[int, int]]: ...


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
        Between which numbers a word of a row must be, reals by their bits.
    ratios
        Derived words: a word, the two it follows from, and by what the lower one is multiplied
        and what is added to it.
    twins
        For some words another one that is often the same.
    inverses
        Where three words start that are usually the inverse of three others, and where these do.
    apart, moved
        Where in the transform's state runs of words start and end that a list has in an array, and
        which of its words are others in such a list.
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
    ratios: tuple[tuple[int, int, int, float, float], ...] = ()
    twins: dict[int, int] = field(default_factory=dict)
    inverses: tuple[tuple[int, int], ...] = ()
    apart: list[tuple[int, int]] = field(default_factory=list)
    moved: dict[int, int] = field(default_factory=dict)

    @property
    def row(self) -> int:
        """Where the first row starts."""
        return len(self.shared)

    @functools.cached_property
    def alone(self) -> Words:
        """The shared part and one fresh row."""
        return np.concatenate([self.shared, self.fresh])

    @functools.cached_property
    def alone_list(self) -> list[Any]:
        """The shared part and one fresh row as a list, with floats for reals."""
        zero = 0.0
        # One object for all zeros, of which there are many.
        words = self.format_of(1).unpack(self.alone.tobytes())
        return [zero if type(word) is float and not word else word for word in words]

    def shortened(self, words: list[Any]) -> list[Any]:
        """Return a list of a single row as plain steps work on it.

        Reals that few rounds touch are in an array behind the other words: boxed, each of them
        would take four times the room.
        """
        if not self.apart:
            return words
        at, runs = self.row + self.transform, list[float]()
        state = words[at:]
        for start, end in reversed(self.apart):
            first = len(runs)
            runs += state[start:end]
            state[start:end] = [first]
        for place, value in self.moved.items():
            state[place] = value
        # A list that is made at once has no spare room, nor has an array, which bytes make soonest.
        return [*words[:at], *state, array("d", pack(f"{len(runs)}d", *runs))]

    def lengthened(self, short: list[Any]) -> list[Any]:
        """Return a list with every word in its place."""
        if not self.apart or type(short[-1]) is not array:
            return short
        at, runs = self.row + self.transform, short[-1].tolist()
        state = short[at:-1]
        for start, end in self.apart:
            first = state[start]
            state[start : start + 1] = runs[first : first + end - start]
        for place in self.moved:
            state[place] = self.alone_list[at + place]
        return short[:at] + state

    @functools.cached_property
    def formats(self) -> dict[int, Struct]:
        """What moves words between a list and an array, by the number of rows."""
        return {}

    def format_of(self, rows: int) -> Struct:
        """Return what moves the words of the shared part and so many rows."""
        if rows not in self.formats:
            real = np.concatenate([self.shared_real, np.tile(self.real, rows)])
            self.formats[rows] = Struct("=" + "".join("qd"[flag] for flag in real.tolist()))
        return self.formats[rows]

    def blocks_of(self, row: Words) -> Words:
        """Return the blocks of a row, a block a row of a table."""
        end = self.transform or len(self.fresh)
        return row[self.blocks : end].reshape(-1, self.stride)

    @property
    def values(self) -> tuple[Words, int]:
        """The values of the cells of a block, scaled, and the scale."""
        table, cells = int(self.shared[word.TABLE]), int(self.shared[word.CELLS])
        return self.shared[table : table + cells], int(self.shared[word.SCALE])

    @functools.cached_property
    def ordered(self) -> tuple[Words, Words, Words]:
        """What turns reals into whole numbers of the same order, and the limits so turned."""
        turn = np.where(self.real, np.int64(LARGEST), np.int64(0))
        low, high = (ends ^ ((ends >> 63) & turn) for ends in (self.low, self.high))
        return turn, low, high

    def verify(self, row: Words) -> None:
        """Refuse a row with which kernels would go astray."""
        turn, low, high = self.ordered
        # Nearly always all is well, which one comparison of whole numbers shows.
        ordered = row ^ ((row >> 63) & turn)
        if ((ordered >= low) & (ordered <= high)).all():
            return
        refuse_outside(row, self.fresh, self.real, self.low, self.high)


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
    own_words: Section | None = None,
    coins: int = SIPHASH,
) -> Layout:
    """Return the layout of all rows with these settings.

    ``centres`` are the middles of the buckets, by default of M equal ones; ``divisor`` divides the
    denominator of gaps, which rows with other centres can share then; ``own_words`` are a row's,
    where they are others than those of a row with such a transform; ``coins`` says how coins are
    thrown.
    """
    grid = rule.lattice
    stride = len(rule.kernels.head) + len(rule.kernels.cell) * grid.cells
    refuse_large(buckets * stride)
    middles = centres or tuple(Fraction(2 * j + 1, 2 * buckets) for j in range(buckets))
    scale = math.lcm(divisor, grid.denominator, *{centre.denominator for centre in middles})
    check.whole(prior, "prior", high=MAX_GAP // scale)
    kept = 0 if transform is None else transform.kernel.kept
    plain = word.ROW if transform is None else word.MIXED_ROW if epsilon is None else word.SAFE_ROW
    section = own_words or plain
    shared, shared_real = _shared(rule, buckets, scale, kept)
    own, start = len(section), len(section) + buckets * stride
    state = [] if transform is None else transform.fresh()
    size = start + len(state)
    shared[[word.ROWS, word.ROW_WORDS, word.BLOCKS, word.STRIDE]] = len(shared), size, own, stride
    shared[[word.TRANSFORM, word.LOSS, word.COINS]] = start if state else 0, loss, coins
    reals = shared.view(np.float64)
    reals[word.EPSILON], reals[word.MIXED] = epsilon or 0.0, float(middles[0])
    reals[word.LAG] = reals[word.CROWD] = reals[word.SAME] = 1.0
    shared[[word.NOTES, word.HAND, word.UNDO_NUMBER, word.UNDO_LEARNED]] = -1
    shared[word.LEAST_STEP] = 1
    shared[word.CAPACITY] = min(MAX_GAP // scale - prior, rule.most_rounds)
    fresh, real, stored, low, high = _row(rule, section, buckets, size)
    blocks = fresh[own:start].reshape(buckets, stride)
    for block, centre in zip(blocks, middles, strict=True):
        rule.begin(block, block.view(np.float64), prior, centre, scale)
    _add_transform(transform, *(told[start:] for told in (fresh, real, stored, low, high)))
    for frozen in (shared, fresh):
        frozen.flags.writeable = False
    begin = start if state else 0
    ratios = [*_ratios(rule, own, buckets, stride, float(scale))]
    twins: dict[int, int] = {}
    inverses: list[tuple[int, int]] = []
    if transform is not None:
        inverses = [(start + a, start + b) for a, b in transform.inverses()]
        ratios += [(start + a, start + b, start + c, 1.0, d) for a, b, c, d in transform.ratios()]
        twins = {start + place: own for place, own in transform.sums().items()}
        twins |= {start + place: start + twin for place, twin in transform.twins().items()}
    parts = shared, fresh, section, own, stride, begin, shared_real, real, stored, low, high
    apart = () if transform is None else transform.apart()
    return Layout(*parts, tuple(ratios), twins, tuple(inverses), *apart)


def _ratios(
    rule: Calibrator, own: int, buckets: int, stride: int, scale: float
) -> Iterator[tuple[int, int, int, float, float]]:
    """Yield the derived words of all cells."""
    head, size = len(rule.kernels.head), len(rule.kernels.cell)
    told = [(k, field.ratio) for k, field in enumerate(rule.kernels.cell.fields) if field.ratio]
    for place, (above, below) in told:
        for block in range(own, own + buckets * stride, stride):
            for cell in range(block + head, block + stride, size):
                yield cell + place, cell + above, cell + below, scale, 0.0


def _shared(rule: Calibrator, buckets: int, scale: int, kept: int) -> tuple[Words, Mask]:
    """Return header, tables and scratch room, and which of their words are reals."""
    grid, edges = rule.lattice, len(word.HEADER)
    table = edges + buckets + 2
    values = table + grid.cells + word.VALUES
    scratch = values + grid.cells + 1
    advice = scratch + rule.scratch(grid.cells)
    words, real = np.zeros(advice + kept, np.int64), np.zeros(advice + kept, bool)
    reals = words.view(np.float64)
    words[[word.BUCKETS, word.CELLS, word.SCALE, word.EDGES]] = buckets, grid.cells, scale, edges
    words[[word.TABLE, word.SCRATCH, word.ADVICE]] = table, scratch, advice
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
    real[word.HEADER.reals] = True
    real[[word.PARAMETERS + place for place in rule.kernels.settings.reals]] = True
    real[edges : edges + buckets + 1] = True
    real[values - 1 : advice] = True
    return words, real


def _row(rule: Calibrator, section: Section, buckets: int, size: int) -> tuple[Any, ...]:
    """Return zeros for a row, which words are real, which stored, and their limits."""
    fields = [*rule.kernels.head.fields, *rule.kernels.cell.fields * rule.lattice.cells]
    own, block = _told(section.fields), _told(fields)
    for place, limits in rule.limits().items():
        block[place] = (*block[place][:2], *limits)
    repeated = np.tile(np.array(block, object), (buckets, 1))
    rest = np.full((size - len(own) - len(repeated), 4), (False, True, *word.ANY), object)
    columns = np.concatenate([np.array(own, object), repeated, rest])
    real, stored = columns.T[:2].astype(bool, order="C")
    return np.zeros(size, np.int64), real, stored, *bits_of(columns[:, 2:].tolist(), real)


def _told(fields: list[Any]) -> list[tuple[Any, ...]]:
    return [(f.real, f.life in (word.STATE, word.DERIVED), *f.limits) for f in fields]


def _add_transform(
    transform: HasState | None, fresh: Words, real: Mask, stored: Mask, low: Words, high: Words
) -> None:
    """Write what is known of a transform's state into the views of its part of a row."""
    if transform is None:
        return
    state = transform.fresh()
    real[:] = [type(word) is float for word in state]
    fresh[~real] = [word for word in state if type(word) is not float]
    fresh.view(np.float64)[real] = [word for word in state if type(word) is float]
    stored[transform.note_positions() + transform.constants()] = False
    low[:], high[:] = limits_of_state(transform, real, fresh)
