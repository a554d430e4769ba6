"""Bodies of single rows read into lists, and written from them, as plain steps work on these.

The format is that of :class:`calibrant.recalibrate.body.Body`, which does the same with arrays, and
is asked wherever something is unusual.  A call of NumPy takes as long as plain Python takes for ten
words: the few whole ones are read without, and reals, which are many, with as few as can be.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import compress
from operator import itemgetter
from struct import Struct, error, unpack_from
from typing import Any, Final

import numpy as np

from calibrant.calibrators.layout import Layout
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.kernels.bodies import MANY, NARROW, SHORT
from calibrant.kernels.layout import ISSUED, ONE, ROUNDS
from calibrant.kernels.transforms.platt import inverse
from calibrant.recalibrate.body import FOURS, LOWER, Body, coded

LARGE: Final = ~(MANY - ONE | LOWER)
"""Bits of a tally that two bytes have no room for."""
NUMBER: Final = [[SHORT], [-2 * SHORT]]
"""What a number that two bytes hold leaves of these bits, after this has been added."""
BYTE: Final = np.uint64(8)
ABOVE: Final = np.uint64(56)
"""Bits of a real below its upper byte."""
TOPS: Final = np.array([list(four) for four in FOURS], np.uint64) << ABOVE
"""The upper bytes for which a byte stands, each in its place in a word."""
COMMON: Final = bytes(code for code, four in enumerate(FOURS) if 0 not in four)
"""The bytes that stand for four of the usual ones."""
MINUS: Final = 0x80
"""The upper byte of a zero with a sign, which comparing numbers does not tell from zero."""


class Unusual(Exception):
    """A body that is wrong, or such that numbers alone do not tell what it says."""


UNUSUAL: Final = (Unusual, ArithmeticError, ValueError, error)
"""What reading such a body runs into."""


def suits(body: Body) -> bool:
    """Say whether cells are one word each, and reals that follow from others do so in one step."""
    layout = body.layout
    following = [*body.later.tolist(), *body.inverse.tolist()]
    others = {*body.earlier.tolist(), *body.sums.tolist()}
    once = len(others.union(following)) == len(others) + len(following)
    once &= not body.cells and min(others, default=body.wholes) >= body.wholes
    _, above, below, times, plus = _ratios(layout)
    # So nothing is divided by zero.
    least = (layout.low[below] >= 0) & (times == 1.0) & (plus >= 1.0)
    return once and bool((layout.real[above] & layout.real[below] & least).all())


def _ratios(layout: Layout) -> Any:
    """Return the columns of ratios."""
    columns = np.array(layout.ratios).reshape(-1, 5).T
    return *columns[:3].astype(np.int64), *columns[3:]


class Lists:
    """How rows of a layout whose cells are one word each are read into lists, and written.

    Lists are as plain steps work on them, with runs of reals in an array.  Reals that are told go
    through an array too, in which the lines of ratios follow those of the body.
    """

    def __init__(self, body: Body) -> None:
        layout, wholes = body.layout, body.wholes
        self._row, self._size, self._wholes = layout.row, len(body.places), wholes
        self._bytes, self._fresh = -(-self._size // 8), layout.shortened(layout.alone_list)
        tally = body.tally[:wholes]
        # How a tally is shortened, and which bits of it two bytes have no room for; and a number.
        moved, left = np.where(tally, [[23], [LOWER]], 0), np.where(tally, [[0], [LARGE]], NUMBER)
        self._shorter = *moved, *left
        ratios, above, below, _, self._plus = _ratios(layout)
        places = np.concatenate([body.places, ratios])
        line = np.zeros(len(layout.fresh), np.int64)
        line[places] = np.arange(len(places))
        spots = (body.places[:wholes] + layout.row).tolist()
        self._clocks = spots[body.clocks]
        ends = [end[body.places] for end in (layout.low, layout.high)]
        limits = (end[:wholes].tolist() for end in ends)
        self._limits = *limits, tally.tolist()
        self._low, self._high = (end[wholes:].view(np.float64) for end in ends)
        fresh = np.concatenate([layout.fresh[places], body.fresh[body.inverse]])
        self._reals = fresh[wholes:].view(np.float64)
        reals = self._reals[: len(self._low)]
        # What is outside its limits from the beginning is left to others.
        odd = ~((reals >= self._low) & (reals <= self._high))
        self._low[odd] = self._high[odd] = reals[odd]
        self._lone, self._inverted = np.arange(len(reals)), len(places) - wholes
        # What a word is that is not told.
        self._same = self._lone.copy()
        self._same[body.later - wholes] = body.earlier - wholes
        self._same[body.inverse - wholes] = self._inverted + np.arange(len(body.inverse))
        self._sums, self._inverses = body.sums.reshape(-1, 3) - wholes, body.fresh_inverses
        self._ratios = line[np.stack([below, above])] - wholes
        self._first = layout.fresh[below].view(np.float64)
        self._find_runs(body, places, line)

    def _find_runs(self, body: Body, places: Words, line: Words) -> None:
        """Find where in a list, and in the array behind it, words are; and where in what is told.

        What is told is made of whole words, reals, those apart, fresh words and inverses.
        """
        layout, size, wholes = body.layout, self._size, self._wholes
        marks = layout.shortened((-1.0 - np.arange(len(layout.alone))).tolist())
        apart = (
            -1 - np.array(marks.pop()).astype(np.int64) - layout.row if layout.apart else places[:0]
        )
        told = np.array(marks)
        spot, listed = np.zeros(len(layout.alone), np.int64), (told < 0).nonzero()[0]
        spot[-1 - told[listed].astype(np.int64)] = listed
        # Where a line is in a list, unless that is in the array.
        spots = spot[places + layout.row]
        self._lines = list(zip(spots[:wholes].tolist(), *self._limits, strict=True))
        lines = spots.nonzero()[0]
        self._runs, self._plain = line[apart] - wholes, lines[wholes:] - wholes
        self._spots = spots[lines[wholes:]].tolist()
        self._begun = self._reals.take(self._plain).view(np.int64)
        lines = lines[lines < size]
        self._values = itemgetter(*spots[lines].tolist())
        self._form = Struct(f"={wholes}q{len(lines) - wholes}d")
        where, end = np.zeros(len(places), np.int64), len(lines) + len(apart)
        where[np.concatenate([lines, line[apart]])] = np.arange(end)
        self._told = where[:size]
        self._base = np.arange(size) + end
        self._base[body.later] = self._told[body.earlier]
        self._base[body.inverse] = end + size + np.arange(len(body.inverse))
        self._room, self._made = body.fresh.tobytes(), Struct(f"={len(body.inverse)}d")
        sums = spots[body.sums].reshape(-1, 3).tolist()
        self._added = [itemgetter(*three) for three in sums]

    # ----------------------------------------------------------------- reading

    def read(self, told: bytes) -> list[Any] | None:
        """Return the shared part and the row of a body; None if something is unusual."""
        try:
            return self._read(told)
        except UNUSUAL:
            return None

    def _read(self, told: bytes) -> list[Any]:
        bits = np.unpackbits(np.frombuffer(told, np.uint8, self._bytes))
        flags, wholes = bits.tobytes(), self._wholes
        count, left = flags.count(1, 0, wholes), flags.count(1, wholes)
        start = self._bytes + -(-count // 8)
        long = int.from_bytes(told[self._bytes : start], "big")
        tops, end = _tops(told, start, left) if left else (BYTE, start)
        longs = long.bit_count()
        shorts = count - longs
        first = -(-(end + 2 * shorts) // 8) * 8
        rest = first + 8 * longs
        last = rest + NARROW * left
        spare = told[end + 2 * shorts : first] + told[last:]
        wrong = len(told) != -(-last // 8) * 8 or spare.count(0) < len(spare)
        if wrong or flags.find(1, self._size) >= 0 or long & ((1 << -count % 8) - 1):
            raise Unusual
        words, lines = self._fresh.copy(), list(compress(self._lines, flags))
        which = f"{long >> -count % 8:0{count}b}" if long else ""
        place = count
        for value in reversed(unpack_from(f"<{longs}q", told, first)):
            place = which.rfind("1", 0, place)
            spot, low, high, _ = lines.pop(place)
            if not low <= value <= high:
                raise Unusual
            words[spot] = value
        self._place(words, lines, unpack_from(f"<{shorts}h", told, end))
        if left:
            # A byte that is not theirs stands before the seven lower ones of each.
            reals: Any = np.ndarray(left, np.uint64, told, rest - 1, NARROW) >> BYTE | tops
            self._add_reals(words, reals.view(np.float64), bits[wholes : self._size].view(bool))
        elif self._runs.size:
            words[-1] = words[-1][:]
        return words

    def _place(self, words: list[Any], lines: list[Any], short: tuple[int, ...]) -> None:
        """Write whole words that are short, if they are within limits and all rounds add up."""
        row = self._row
        for (spot, low, high, tally), value in zip(lines, short, strict=True):
            if tally:
                value = (value >> 8) * ONE + (value & LOWER)
            if not low <= value <= high:
                raise Unusual
            words[spot] = value
        made, issued = sum([words[spot] for spot in self._clocks]), words[row + ISSUED]
        if made != issued or words[row + ROUNDS] > issued:
            raise Unusual

    def _add_reals(self, words: list[Any], reals: Reals, changed: Mask) -> None:
        """Write reals, of which some are told, if they are between their limits."""
        every, size = self._reals.copy(), len(changed)
        told = every[:size]
        told[changed] = reals
        if self._inverses:
            every[self._inverted :] = self._inverted_sums(every.take(self._sums).tolist())
        every.take(np.where(changed, self._lone, self._same), None, told, "clip")
        if b"\0" in ((told >= self._low) & (told <= self._high)).tobytes():
            raise Unusual
        if self._plus.size:
            below, above = told.take(self._ratios)
            ratios = every[size : self._inverted]
            np.divide(above, below + self._plus, ratios, where=below != self._first)
        plain = every.take(self._plain)
        other = (plain.view(np.int64) != self._begun).nonzero()[0]
        # What is as in a fresh row is the same object in all lists.
        for k, value in zip(other.tolist(), plain[other].tolist(), strict=True):
            words[self._spots[k]] = value
        if self._runs.size:
            words[-1] = array("d", every.take(self._runs).tobytes())

    def _inverted_sums(self, sums: Iterable[Any]) -> list[float]:
        """Return inverses of sums."""
        made: list[float] = []
        for (last, fresh), (a, b, c) in zip(self._inverses, sums, strict=True):
            # As long as the last sum is fresh, so is the inverse.
            made += fresh if c == last else inverse(a, b, c)
        return made

    # ----------------------------------------------------------------- writing

    def packed(self, words: list[Any]) -> bytes:
        """Return the body of a row that is given with the shared part."""
        wholes, values = self._wholes, self._values(words)
        made = self._inverted_sums([sums(words) for sums in self._added])
        apart = words[-1] if self._runs.size else b""
        room = self._form.pack(*values), apart, self._room, self._made.pack(*made)
        every = np.frombuffer(b"".join(room), np.int64)
        told = every.take(self._told)
        changed = told != every.take(self._base)
        head = np.packbits(changed).tobytes()
        which, whole = changed[:wholes], told[:wholes]
        # As :func:`calibrant.kernels.bodies.is_short` says.
        shift, lower, offset, large = self._shorter
        long = (whole + offset & large).astype(bool)
        short = (whole >> shift | whole & lower)[which > long].astype(np.int16)
        reals = bytearray(told[wholes:][changed[wholes:]].tobytes())
        tops = coded(reals[NARROW::8])
        del reals[NARROW::8]
        head = b"".join((head, np.packbits(long[which]).tobytes(), tops, short.tobytes()))
        body = b"".join((head, bytes(-len(head) % 8), whole[which & long].tobytes(), reals))
        return body + bytes(-len(body) % 8)


def _tops(told: bytes, start: int, count: int) -> tuple[Any, int]:
    """Return the upper bytes of that many reals, each in its place in a word, and their end."""
    end = start - (-count // 4)
    codes = told[start:end]
    if len(codes) != end - start or (codes and codes[-1] & ((1 << 2 * (-count % 4)) - 1)):
        raise Unusual
    tops = TOPS.take(np.frombuffer(codes, np.uint8), 0).reshape(-1)[:count]
    if codes.translate(None, COMMON):
        other = (tops == 0).nonzero()[0]
        start, end = end, end + len(other)
        if MINUS in told[start:end]:
            raise Unusual
        tops[other] = np.frombuffer(told, np.uint8, len(other), start)
        tops[other] <<= ABOVE
    return tops, end
