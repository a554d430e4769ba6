"""Bodies of single rows read into lists, and written from them, as plain steps work on these.

The format is that of :class:`calibrant.recalibrate.body.Body`, which does the same with arrays, and
is asked wherever something is unusual.  A row has few words, and a call of NumPy takes as long as
plain Python takes for ten of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from operator import itemgetter
from struct import Struct, error, pack, unpack_from
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.kernels.bodies import FEW, MANY, NARROW, SHORT
from calibrant.kernels.layout import ISSUED, ONE, ROUNDS
from calibrant.kernels.transforms.platt import inverse
from calibrant.recalibrate.body import FOURS, LOWER, USUAL, Body, coded

BITS: Final = bytes.maketrans(b"01", b"\x00\x01")
"""Turns digits into what they stand for."""
OTHERS: Final = bytes.maketrans(b"\0\1", b"\1\0")
"""Turns bits into their complements."""
TAIL: Final = ONE - 1
"""How many draws of a tally met outcome 0."""
MINUS: Final = 0x80
"""The upper byte of a zero with a sign, which comparing numbers does not tell from zero."""


class Unusual(Exception):
    """A body that is wrong, or such that numbers alone do not tell what it says."""


UNUSUAL: Final = (Unusual, ArithmeticError, StopIteration, error)
"""What reading such a body runs into."""


class Lists:
    """How rows of a layout whose cells are one word each are read into lists, and written."""

    def __init__(self, body: Body) -> None:
        layout, size = body.layout, len(body.places)
        self._row, self._size, self._wholes = layout.row, size, body.wholes
        self._fresh: list[Any] = layout.alone_list
        self._bytes = -(-size // 8)
        self._spare = (1 << 8 * self._bytes - size) - 1
        self._form = f"0{8 * self._bytes}b"
        self._tally: list[bool] = body.tally[: body.wholes].tolist()
        spots: list[int] = (body.places + layout.row).tolist()
        self._clocks = spots[body.clocks]
        ends = (self._numbers(end[body.places]) for end in (layout.low, layout.high))
        self._lines = list(zip(spots, *ends, strict=True))
        self._find_twins(body, spots)
        self._inverses = list(_inverses(body, spots))
        places = np.array([ratio[:3] for ratio in layout.ratios], np.int64).reshape(-1, 3)
        self._ratios: list[tuple[Any, ...]] = [
            (*told, self._fresh[told[2]], *ratio[3:])
            for told, ratio in zip((places + layout.row).tolist(), layout.ratios, strict=True)
        ]
        self._values = itemgetter(*spots)
        # Told words, then fresh ones, then inverses; and with which of these a word is compared.
        self._room = bytes(8 * size) + body.fresh.tobytes() + bytes(8 * len(body.inverse))
        self._told = Struct(f"={body.wholes}q{size - body.wholes}d")
        self._made = Struct(f"={len(body.inverse)}d")
        self._base = np.arange(size) + size
        self._base[body.later] = body.earlier
        self._base[body.inverse] = 2 * size + np.arange(len(body.inverse))

    def _find_twins(self, body: Body, spots: list[int]) -> None:
        """Find the spots of twins and of those they follow, and their own lines."""
        pairs = list(zip(body.later.tolist(), body.earlier.tolist(), strict=True))
        for later, earlier in pairs:
            # What is right for the one is right for the other.
            assert body.fresh[later] == body.fresh[earlier]
            (_, low, high), (_, least, most) = self._lines[later], self._lines[earlier]
            assert low <= least <= most <= high
        self._twins = [(spots[later], spots[earlier]) for later, earlier in pairs]
        self._later = _runs([later for later, _ in pairs])

    def _numbers(self, words: Words) -> list[Any]:
        """Return the words of all lines as numbers."""
        reals = words[self._wholes :].view(np.float64)
        return [*words[: self._wholes].tolist(), *reals.tolist()]

    # ----------------------------------------------------------------- reading

    def read(self, told: bytes) -> list[Any] | None:
        """Return the shared part and the row of a body; None if something is unusual."""
        try:
            return self._read(told)
        except UNUSUAL:
            return None

    def _read(self, told: bytes) -> list[Any]:
        head = int.from_bytes(told[: self._bytes], "big")
        count = (head >> 8 * self._bytes - self._wholes).bit_count()
        left, start = head.bit_count() - count, self._bytes + -(-count // 8)
        long = int.from_bytes(told[self._bytes : start], "big")
        tops, end = _tops(told, start, left)
        shorts, longs = count - long.bit_count(), long.bit_count()
        first = -(-(end + 2 * shorts) // 8) * 8
        rest = first + 8 * longs
        last = rest + NARROW * left
        spare = told[end + 2 * shorts : first] + told[last:]
        wrong = len(told) != -(-last // 8) * 8 or spare.count(0) < len(spare)
        if wrong or head & self._spare or long & ((1 << -count % 8) - 1):
            raise Unusual
        reals = bytearray(8 * left)
        reals[NARROW::8] = tops
        for place in range(NARROW):
            reals[place::8] = told[rest + place : last : NARROW]
        bits = format(head, self._form).encode().translate(BITS)
        which = f"{long >> -count % 8:0{count}b}"
        numbers = unpack_from(f"<{shorts}h", told, end), unpack_from(f"<{longs}q", told, first)
        values = self._merged(*numbers, which, bits)
        values += unpack_from(f"<{left}d", reals)
        return self._placed(values, bits)

    def _merged(
        self, short: tuple[int, ...], long: tuple[int, ...], which: str, bits: bytes
    ) -> list[Any]:
        """Return whole words, of which some are long."""
        tally = list(compress(self._tally, bits))
        words, place = list[Any](short), which.find("1")
        for word in long:
            words.insert(place, word)
            tally[place] = False
            place = which.find("1", place + 1)
        for place in compress(range(len(tally)), tally):
            word = words[place]
            words[place] = (word >> 8) * ONE + (word & LOWER)
        return words

    def _placed(self, values: list[Any], bits: bytes) -> list[Any]:
        """Return all words of which some are told, if these are between their limits."""
        words = self._fresh.copy()
        lines = compress(self._lines, bits)
        for (spot, low, high), value in zip(lines, values, strict=True):
            if low <= value <= high:
                words[spot] = value
            else:
                raise Unusual
        same = b"".join([bits[run] for run in self._later]).translate(OTHERS)
        for later, earlier in compress(self._twins, same):
            words[later] = words[earlier]
        for sums, last, _, told in self._inverses:
            a, b, c = sums(words)
            # As long as the last sum is fresh, so is the inverse.
            if c != last:
                for line, value in zip(told, inverse(a, b, c), strict=True):
                    spot, low, high = self._lines[line]
                    if not low <= value <= high:
                        raise Unusual
                    if not bits[line]:
                        words[spot] = value
        for place, above, below, fresh, times, plus in self._ratios:
            lower = words[below]
            if lower != fresh:
                words[place] = words[above] / (lower * times + plus)
        made, issued = sum([words[spot] for spot in self._clocks]), words[self._row + ISSUED]
        if made != issued or words[self._row + ROUNDS] > issued:
            raise Unusual
        return words

    # ----------------------------------------------------------------- writing

    def packed(self, words: list[Any]) -> bytes:
        """Return the body of a row that is given with the shared part."""
        size, wholes, room = self._size, self._wholes, bytearray(self._room)
        values = self._values(words)
        self._told.pack_into(room, 0, *values)
        made: list[float] = []
        for sums, last, fresh, _ in self._inverses:
            a, b, c = sums(words)
            made += fresh if c == last else inverse(a, b, c)
        self._made.pack_into(room, 16 * size, *made)
        every = np.frombuffer(room, np.int64)
        told = every[:size]
        changed = told != every[self._base]
        head = np.packbits(changed).tobytes()
        flags = changed[:wholes].tolist()
        whole = zip(compress(values, flags), compress(self._tally, flags), strict=True)
        marks, short, long = _shortened(whole)
        reals = told[wholes:][changed[wholes:]].view(np.uint8).reshape(-1, 8)
        head += marks + coded(reals[:, NARROW].tobytes()) + short
        body = b"".join([head, bytes(-len(head) % 8), long, reals[:, :NARROW].tobytes()])
        return body + bytes(-len(body) % 8)


def _runs(lines: list[int]) -> list[slice]:
    """Return lines as few slices, one after the other.

    >>> _runs([7, 8, 9, 3])
    [slice(7, 10, None), slice(3, 4, None)]
    """
    runs: list[slice] = []
    for line in lines:
        if runs and runs[-1].stop == line:
            runs[-1] = slice(runs[-1].start, line + 1)
        else:
            runs.append(slice(line, line + 1))
    return runs


def _inverses(body: Body, spots: list[int]) -> Iterator[tuple[Any, ...]]:
    """Yield what gets sums, the fresh last one, the fresh inverse, and the lines of that."""
    sums, lines = body.sums.reshape(-1, 3).tolist(), body.inverse.reshape(-1, 3).tolist()
    for added, told, (last, fresh) in zip(sums, lines, body.fresh_inverses, strict=True):
        yield itemgetter(*(spots[k] for k in added)), last, fresh, told


def _tops(told: bytes, start: int, count: int) -> tuple[bytes, int]:
    """Return the upper bytes of that many reals, and where what is told of them ends."""
    end = start - (-count // 4)
    tops = b"".join([FOURS[code] for code in told[start:end]])
    if tops[count:].strip(USUAL[:1]):
        raise Unusual
    others = tops.count(0)
    if others:
        last = end + others
        if MINUS in told[end:last]:
            raise Unusual
        pieces = tops.split(b"\0")
        tops = b"".join([part + told[k : k + 1] for k, part in enumerate(pieces, end)][:-1])
        tops, end = tops + pieces[-1], last
    return tops[:count], end


def _shortened(words: Iterable[tuple[int, bool]]) -> tuple[bytes, bytes, bytes]:
    """Return which of some whole words are long, a bit each, the short ones and the long ones."""
    short, long, marks = list[int](), list[int](), 0
    for word, tally in words:
        # As :func:`calibrant.kernels.bodies.is_short` says.
        if tally:
            if word < MANY and word & TAIL < FEW:
                short.append(word >> 23 & -FEW | word & TAIL)
                continue
        elif -SHORT <= word < SHORT:
            short.append(word)
            continue
        marks += 1 << len(short) + len(long)
        long.append(word)
    size = len(short) + len(long)
    # The first bit is the highest one.
    told = int(f"{marks:0{size}b}"[::-1] or "0", 2) << -size % 8
    return (
        told.to_bytes(-(-size // 8), "big"),
        pack(f"<{len(short)}h", *short),
        pack(f"<{len(long)}q", *long),
    )
