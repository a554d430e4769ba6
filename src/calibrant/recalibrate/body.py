"""The body of a stored row: the words in which it differs from a fresh one.

Binary streams leave out more, by a :class:`Body`: words that follow from others, words that are the
same as their twins, the upper bytes of small whole numbers, and those that most reals have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.layout import MAX_GAP, Layout
from calibrant.core.arrays import Mask, Words
from calibrant.core.limits import refuse_outside
from calibrant.kernels import bodies
from calibrant.kernels import layout as word
from calibrant.kernels.transforms.platt import inverse

Short: Final = np.int16
Bytes: Final = np.uint8
USUAL: Final = bytes(top & 255 for top in bodies.TOPS)
"""Upper bytes that most reals have, by what stands for them."""
DIGITS: Final = bytes(ord("0") + (USUAL + bytes([top])).index(top) for top in range(256))
"""What stands for an upper byte, as a digit."""
FOURS: Final = [
    bytes((*USUAL, 0)[code >> shift & 3] for shift in (6, 4, 2, 0)) for code in range(256)
]
"""The four upper bytes for which the digits of a byte stand; 0 for those that are told."""
LOWER: Final = bodies.FEW - 1
MANY: Final = 256
"""More rows than these are packed, and unpacked, by machine code if there is a compiler; so are
fewer, once there is machine code."""
AT_ONCE: Final = 1024
"""Bodies that are written together."""


def packed(row: Words, layout: Layout) -> Words:
    """Return which stored words of a row differ from a fresh row's, a bit each, and these words."""
    changed = (row != layout.fresh) & layout.stored
    bits = np.zeros(-(-len(row) // 64) * 8, np.uint8)
    marks = np.packbits(changed)
    bits[: len(marks)] = marks
    return np.concatenate([bits.view(np.int64), row[changed]])


def unpacked(words: Words, layout: Layout) -> Words:
    """Return the row of which :func:`packed` gave the words."""
    size = len(layout.fresh)
    head = -(-size // 64)
    marks = np.unpackbits(words[:head].view(np.uint8)).view(bool)
    changed = marks[:size]
    if marks[size:].any() or np.count_nonzero(changed) != len(words) - head:
        raise ValueError(f"{len(words)} words that are not of a row of {size}")
    if (changed > layout.stored).any():
        raise ValueError("words that no row stores")
    row = layout.fresh.copy()
    row[changed] = words[head:]
    return row


class WrongBody(ValueError):
    """A body, one of many, that no row has: its number among them, and what is wrong."""

    def __init__(self, number: int, wrong: str) -> None:
        super().__init__(f"a body, that of key number {number}, {wrong}")
        self.number, self.wrong = number, wrong


class Body:
    """How the rows of one layout of a binary stream are stored::

        which words follow, a bit each | which of the whole ones are long, a bit each
        tops of reals, two bits each | tops that are none of the usual ones, a byte each
        short whole words (2 bytes each) | zeros up to a word | long whole words
        reals without their tops (7 bytes each) | zeros up to a word

    What is told of a row are its words at ``places``: whole numbers first, and among them gaps,
    then visits, then clocks, then the rest.  The top of a real is its upper byte; a short tally has
    the ones in the upper byte.  Compiled functions (:mod:`calibrant.kernels.bodies`) do the same
    with rows in arrays, once there are any.

    Bodies of the first form, which are called ``old`` and read for ever, have whole reals and no
    tops, tallies like other whole numbers, and tell every inverse.
    """

    def __init__(self, layout: Layout, head: int, size: int) -> None:
        """Set up for blocks with a head and cells of that many words."""
        self.layout = layout
        self.read = 0
        """States that were read by plain Python."""
        derived = np.zeros(len(layout.fresh), bool)
        derived[[ratio[0] for ratio in layout.ratios]] = True
        kept = layout.stored & ~derived
        # Gaps, visits and clocks lie side by side, so that they are checked together.
        place = layout.blocks_of(np.arange(len(layout.fresh)))
        # A cell of one word is a tally, of which every one can be: its limits are enough.
        gaps = place[:, head::size].reshape(-1) if size > 1 else np.zeros(0, np.int64)
        first = np.concatenate([gaps, gaps + word.VISITS, place[:, word.CLOCK]])
        kept[first] = False
        rest = [np.flatnonzero(kept & ~layout.real), np.flatnonzero(kept & layout.real)]
        self.places = np.concatenate([first, *rest])
        self.wholes = len(first) + len(rest[0])
        self.fresh, self.real = layout.fresh[self.places], layout.real[self.places]
        self.cells, self.clocks = len(gaps), slice(2 * len(gaps), len(first))
        self._ends = tuple(ends[self.places] for ends in layout.ordered)
        self._span = (self._ends[2] - self._ends[1]).view(np.uint64)
        self._bytes = -(-len(self.places) // 8)
        cells = place[:, head:].reshape(-1) if size == 1 else np.zeros(0, np.int64)
        self.tally = np.isin(self.places, cells)
        self._tallies = size == 1
        self._find_twins(layout)
        values, self._scale = layout.values
        self._values = np.tile(values, len(place))[: len(gaps)]

    def _find_twins(self, layout: Layout) -> None:
        """Find the lines of twins, inverses and ratios."""
        index = {place: k for k, place in enumerate(self.places.tolist())}
        pairs = [(index[a], index[b]) for a, b in layout.twins.items() if a in index]
        self.later, self.earlier = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
        three = np.arange(3)
        starts = [(index[a], index[b]) for a, b in layout.inverses]
        self.inverse, self.sums = (
            (np.array([pair[k] for pair in starts], np.int64)[:, None] + three).reshape(-1)
            for k in range(2)
        )
        last = self.fresh.view(np.float64)[self.sums[2::3]].tolist()
        first = self.fresh.view(np.float64)[self.inverse].reshape(-1, 3).tolist()
        self.fresh_inverses = list(zip(last, first, strict=True))
        told = [(a, index[b], index[c]) for a, b, c, *_ in layout.ratios]
        self._ratios = np.array(told, np.int64).reshape(-1, 3)
        self._factors = np.array([ratio[3:] for ratio in layout.ratios], np.float64).reshape(-1, 2)

    @functools.cached_property
    def _tables(self) -> tuple[Any, ...]:
        """What the compiled functions look at: table, values, ratios, factors, sizes."""
        layout, turn = self.layout, self._ends[0]
        twin = np.full(len(self.places), -1)
        twin[self.later] = self.earlier
        twins = np.zeros(len(twin), np.int64)
        twins[::8] = np.add.reduceat(twin >= 0, np.arange(0, len(twin), 8))
        twin[self.inverse] = -2 - len(layout.ratios) - np.arange(len(self.inverse))
        columns = self.places, self.fresh, *self._ends[1:], turn, twin, twins, self.tally
        told = [
            (place, above, below, layout.fresh[below], layout.real[below], -1)
            for place, above, below, *_ in layout.ratios
        ]
        lines = iter(self.inverse.tolist())
        for place, sums in layout.inverses:
            below = sums, sums + 2, layout.fresh[sums + 2]
            told += [(place + k, *below, bodies.INVERSE + k, next(lines)) for k in range(3)]
        ratios = np.array(told, np.int64).reshape(-1, bodies.LINE + 1)
        blocks, most = self.clocks.stop - self.clocks.start, MAX_GAP // self._scale
        sizes = layout.row, self.wholes, self.cells, blocks, self._scale, most, bodies.NARROW
        return np.stack(columns, 1), self._values, ratios, self._factors, np.array(sizes, np.int64)

    def _sizes(self, old: bool) -> Words:
        """Return the sizes for bodies of one of the two forms."""
        sizes: Words = self._tables[-1].copy()
        sizes[bodies.WIDTH] = bodies.WIDE if old else bodies.NARROW
        return sizes

    def flat(self, words: Words, old: bool, unpack: Callable[..., bool]) -> Words | None:
        """Return the shared part and the row of a body as an array; None if something is wrong."""
        table, values, ratios, factors, sizes = self._tables
        flat = self.layout.alone.copy()
        shares = table, values, ratios, factors, flat, flat.view(np.float64)
        told = words.view(np.uint8), words, *shares, self._sizes(old) if old else sizes
        return flat if unpack(*told) else None

    def packed_flat(self, flat: Words, pack: Callable[..., int]) -> Words:
        """Return the row of an array as its body."""
        table, _, ratios, _, sizes = self._tables
        room = np.zeros(len(table) + len(table) // 16 + 4, np.int64)
        row = flat, flat.view(np.float64)
        return room[: pack(*row, table, ratios, room.view(np.uint8), room, sizes)]

    # ------------------------------------------------------------------- many rows

    def packed_rows(
        self, flat: Words, places: Words, room: Words | None = None
    ) -> tuple[Words, Words]:
        """Return the bodies of rows of an array, one after the other, and where each one ends.

        ``room`` says how many words, zeros, stand before each body, and after it.
        """
        left = np.zeros((len(places), 2), np.int64) if room is None else room
        machine = _machine_for(len(places))
        if machine is None:
            return self._packed_one_by_one(flat, places.tolist(), left.tolist())
        table, _, ratios, *_ = self._tables
        rows = flat, flat.view(np.float64), table, ratios
        most = len(table) + len(table) // 16 + 4
        pieces, ends, end = [np.empty(0, np.int64)], np.empty(len(places), np.int64), 0
        for first in range(0, len(places), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            made = np.zeros(most * len(places[some]) + int(left[some].sum()), np.int64)
            told = made.view(np.uint8), made, self._sizes(False), places[some]
            machine[1](*told, left[some], ends[some], *rows)
            pieces.append(made[: ends[some][-1]].copy())
            ends[some] += end
            end += len(pieces[-1])
        return np.concatenate(pieces), ends

    def _packed_one_by_one(
        self, flat: Words, places: list[int], room: list[list[int]]
    ) -> tuple[Words, Words]:
        size, made, sizes = len(self.layout.fresh), [np.empty(0, np.int64)], list[int]()
        for start, (before, after) in zip(places, room, strict=True):
            body = self.packed(flat[start : start + size])
            made += [np.zeros(before, np.int64), body, np.zeros(after, np.int64)]
            sizes.append(before + len(body) + after)
        return np.concatenate(made), np.cumsum(sizes, dtype=np.int64)

    def unpack_rows(
        self,
        words: Words,
        starts: Words,
        ends: Words,
        flat: Words,
        places: Words,
        old: bool = False,
    ) -> None:
        """Write bodies into fresh rows of an array; refuse them if one is wrong, and name it."""
        machine = _machine_for(len(places))
        if machine is None:
            for k, (a, b) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
                self._unpack_row(k, words[a:b], flat, int(places[k]), old)
            return
        table, values, ratios, factors, _ = self._tables
        shares = table, values, ratios, factors, flat, flat.view(np.float64)
        told = words.view(np.uint8), words, self._sizes(old), places
        wrong = machine[0](*told, starts, ends, *shares)
        if wrong >= 0:
            raise WrongBody(int(wrong), "that is not of a row")

    def _unpack_row(self, number: int, words: Words, flat: Words, place: int, old: bool) -> None:
        try:
            row = self.row(self.told(words, old))
        except ValueError as error:
            raise WrongBody(number, f"with {error}") from None
        flat[place : place + len(row)] = row

    # ----------------------------------------------------------------- writing

    def packed(self, row: Words) -> Words:
        """Return a row as its body."""
        told = row[self.places]
        base = self.fresh.copy()
        base[self.later] = told[self.earlier]
        self._invert(told, base)
        changed = told != base
        which = changed.nonzero()[0]
        words, count = told[which], int(which.searchsorted(self.wholes))
        whole, reals = words[:count], words[count:]
        short, long = self._shortened(whole, which[:count])
        head = np.packbits(changed).tobytes() + np.packbits(long).tobytes()
        head += coded(reals.tobytes()[7::8]) + short[~long].tobytes()
        lower = reals.view(Bytes).reshape(-1, 8)[:, :7]
        head += bytes(-len(head) % 8) + whole[long].tobytes() + lower.tobytes()
        return np.frombuffer(head + bytes(-len(head) % 8), np.int64)

    def _shortened(self, whole: Words, lines: Words) -> tuple[NDArray[np.int16], Mask]:
        """Return whole words in two bytes each, and which of them are too long for that."""
        if self._tallies:
            # A few words, which plain Python does sooner.
            tally = self.tally[lines].tolist()
            whole = np.array(list(map(_folded, whole.tolist(), tally)), np.int64)
        short = whole.astype(Short)
        return short, short != whole

    def _invert(self, told: Words, base: Words) -> None:
        """Write inverses of sums that are told, unless these are fresh, into other lines."""
        if not self.fresh_inverses:
            return
        sums, made = told.view(np.float64)[self.sums].tolist(), list[float]()
        for k, (last, fresh) in enumerate(self.fresh_inverses):
            at = 3 * k
            # As long as the last sum is fresh, so is the inverse.
            if sums[at + 2] == last:
                made += fresh
            else:
                made += inverse(*sums[at : at + 3])
        base.view(np.float64)[self.inverse] = made

    # ----------------------------------------------------------------- reading

    def told(self, words: Words, old: bool = False) -> Words:
        """Return what a body tells of its row."""
        told, size = words.tobytes(), len(self.places)
        changed = _bits(told[: self._bytes], size)
        which = changed.nonzero()[0]
        count = int(which.searchsorted(self.wholes))
        start, left = self._bytes + -(-count // 8), len(which) - count
        long = _bits(told[self._bytes : start], count)
        lengthy = int(np.count_nonzero(long))
        tops, start = (b"", start) if old else _tops(told, start, left)
        end = start + 2 * (count - lengthy)
        first = -(-end // 8) * 8
        rest = first + 8 * lengthy
        last = rest + (bodies.WIDE if old else bodies.NARROW) * left
        spare = told[end:first] + told[last:]
        if len(told) != -(-last // 8) * 8 or spare.count(0) < len(spare):
            raise ValueError(f"{len(words)} words that are not of a row of {size}")
        listed = np.empty(len(which), np.int64)
        whole = listed[:count]
        short = np.frombuffer(told, "<i2", count - lengthy, start).astype(np.int64)
        brief = ~long
        if self._tallies and not old:
            tally = self.tally[which[:count][brief]].tolist()
            short = np.array(list(map(_unfolded, short.tolist(), tally)), np.int64)
        whole[brief], whole[long] = short, words[first // 8 : rest // 8]
        if old:
            listed[count:] = words[rest // 8 :]
        else:
            reals = listed[count:].view(Bytes).reshape(-1, 8)
            reals[:, 7] = np.frombuffer(tops, Bytes)
            reals[:, :7] = np.frombuffer(told, Bytes, 7 * left, rest).reshape(-1, 7)
        return self._completed(listed, changed, which, old)

    def _completed(self, listed: Words, changed: Mask, which: Words, old: bool) -> Words:
        """Return all words of which some are told."""
        found: Words = self.fresh.copy()
        found[which] = listed
        same = (~changed[self.later]).nonzero()[0]
        found[self.later[same]] = found[self.earlier[same]]
        if not old and self.fresh_inverses:
            self._invert(found, found)
            found[which] = listed
        return found

    def verify(self, told: Words) -> None:
        """Refuse a row on which kernels would fail."""
        # Nearly always all is well, which one comparison of whole numbers shows.
        ordered = (told >> 63) & self._ends[0]
        ordered ^= told
        ordered -= self._ends[1]
        if (ordered.view(np.uint64) > self._span).any():
            ends = self.layout.low[self.places], self.layout.high[self.places]
            refuse_outside(told, self.fresh, self.real, *ends, self.places)
        if self.cells:
            told = told[: 2 * self.cells]
            check_gaps(told[: self.cells], told[self.cells :], self._values, self._scale)

    def verify_row(self, row: Words) -> None:
        """Refuse a row on which kernels would fail, or whose blocks made other forecasts."""
        told = row[self.places]
        self.verify(told)
        check_made(sum(told[self.clocks].tolist()), int(row[word.ISSUED]))

    def row(self, told: Words) -> Words:
        """Return the row of which this is told, if kernels can work with it."""
        row: Words = self.layout.fresh.copy()
        row[self.places] = told
        self.verify_row(row)
        if row[word.ROUNDS] > row[word.ISSUED]:
            raise ValueError(f"{row[word.ROUNDS]} outcomes of {row[word.ISSUED]} forecasts")
        # What was seen is no zero: counts begin with none, and the others have a prior.
        seen = (told != self.fresh)[self._ratios[:, 2]]
        (derived, above, below), (times, plus) = self._ratios[seen].T, self._factors[seen].T
        numbers = np.where(self.real, told.view(np.float64), told)
        row.view(np.float64)[derived] = numbers[above] / (numbers[below] * times + plus)
        return row


def check_made(made: int, issued: int) -> None:
    """Refuse blocks that did not make the forecasts of their row."""
    if made != issued:
        raise ValueError(f"{made} forecasts in the blocks where {issued} were made")


def check_gaps(gap: Words, visits: Words, values: Words, scale: int) -> None:
    """Refuse cells whose gaps their visits cannot leave, given the scaled values of the cells."""
    # How many ones are among the visits, times the scale.
    ones, most = gap + values * visits, scale * visits
    lost = (ones < 0) | (ones > most) | (visits > MAX_GAP // scale) | (visits < 0)
    if lost.any():
        raise ValueError(f"cells with gaps that {int(visits[lost][0])} visits cannot leave")


def _bits(told: bytes, size: int) -> Mask:
    """Return that many bits."""
    spare = 8 * len(told) - size
    if spare < 0 or (spare and told[-1] & ((1 << spare) - 1)):
        raise ValueError(f"marks that are not of {size} words")
    bits: NDArray[np.bool_] = np.unpackbits(np.frombuffer(told, np.uint8), count=size).view(bool)
    return bits


def _folded(whole: int, tally: bool) -> int:
    """Return what two bytes hold of a whole word, or something that does not fit there."""
    if not tally:
        return whole
    return whole >> 23 & -bodies.FEW | whole & LOWER if bodies.is_short(whole, 1) else bodies.SHORT


def _unfolded(short: int, tally: bool) -> int:
    """Return the whole word whose two bytes these are."""
    return (short >> 8) * word.ONE + (short & LOWER) if tally else short


def coded(tops: bytes | bytearray) -> bytes:
    """Return what stands for upper bytes, two bits each, and those that are none of the usual."""
    code = int(tops.translate(DIGITS) or b"0", 4) << 2 * (-len(tops) % 4)
    return code.to_bytes(-(-len(tops) // 4), "big") + tops.translate(None, USUAL)


def _tops(told: bytes, start: int, count: int) -> tuple[bytes, int]:
    """Return the upper bytes of that many reals, and where what is told of them ends."""
    end = start - (-count // 4)
    tops = b"".join([FOURS[code] for code in told[start:end]])
    last = end + tops.count(0)
    if last > len(told) or tops[count:].strip(USUAL[:1]):
        raise ValueError(f"tops that are not of {count} words")
    if last > end:
        others = iter(told[end:last])
        tops = bytes(top or next(others) for top in tops)
    return tops[:count], last


def _machine_for(rows: int) -> Any:
    """Return compiled functions if they are worth it, or once they exist."""
    worth = rows > MANY or (rows > 0 and bodies.machine_of_rows.cache_info().currsize)
    return bodies.machine_of_rows() if worth else None
