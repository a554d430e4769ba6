"""Many rounds added to a collector's sums together, with arrays in place of a loop.

Gives the words that :func:`calibrant.kernels.tallies.collect` gives, to the bit, but for the
products of probabilities, which depend on the order of their factors: these are left alone, and
the logarithms are added up as whole numbers instead (:func:`surprise`).

::

    cut the rounds where windows end and where the trace is thinned; for each piece:
        put every round into the stretch that ends at the next point of the trace
        add up each stretch; the sums at a point are those of all stretches before
        compute all points of the piece at once; close the windows that end here
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.core.place import buckets_of
from calibrant.kernels import portable, tallies
from calibrant.kernels.tallies import BUCKET_WORDS, BUCKETS, COARSE, FINE, FINER, LEVELS, WINDOW

SERIES: Final = (tallies.RAW, tallies.MEAN)
BEHIND: Final = np.array([[0], [tallies.SERIES_WORDS]])
"""How far the words of raw and mean forecasts lie behind those of raw ones."""
NEXT: Final = np.array([[0], [BUCKET_WORDS]])
"""The same in a table of buckets of both."""
LOG_UNIT: Final = float(1 << 40)
"""Logarithms are whole numbers of 2**-40, so that their order changes no sum."""


class Rounds(NamedTuple):
    """Rounds as arrays: raw and mean forecasts (2, n), places of draws among values, outcomes."""

    values: Reals
    cell: Words
    outcome: Words

    def part(self, start: int, end: int) -> Rounds:
        """Return some of the rounds."""
        return Rounds(self.values[:, start:end], self.cell[start:end], self.outcome[start:end])

    def homes(self) -> Words:
        """Return the fine cells of raw and mean forecasts."""
        return buckets_of(self.values.reshape(-1), FINE).reshape(2, -1)


def absorb(
    words: Words, rounds: Rounds, ordered: bool, ending: Callable[[Words], None] | None = None
) -> None:
    """Add rounds to the sums; with ``ordered`` also to the trace and the windows.

    ``ending`` is called with the words whenever one of the shortest windows is about to be closed.
    """
    start, size = 0, len(rounds.cell)
    while start < size:
        done = int(words[tallies.ROUNDS])
        end = min(size, start + _until_cut(words, done)) if ordered else size
        _absorb_piece(words, rounds.part(start, end), ordered)
        if ordered:
            if ending is not None and words[tallies.ROUNDS] % WINDOW == 0:
                ending(words)
            _pause(words, int(words[tallies.ROUNDS]))
        start = end


def _until_cut(words: Words, done: int) -> int:
    """Return after how many more rounds a window ends or the trace is thinned."""
    stride, filled = int(words[tallies.STRIDE]), int(words[tallies.FILLED])
    thinned = (done // stride + tallies.POINTS - filled) * stride
    return min((done // WINDOW + 1) * WINDOW, thinned) - done


def _absorb_piece(words: Words, rounds: Rounds, ordered: bool) -> None:
    done, size = int(words[tallies.ROUNDS]), len(rounds.cell)
    stride = int(words[tallies.STRIDE]) if ordered else 1 << 62
    points = (done + size) // stride - done // stride
    stretch = np.arange(done, done + size) // stride - done // stride
    fine = rounds.homes()
    series = _add_series(words, rounds, fine, stretch, points + 1)
    drawn = _add_drawn(words, rounds, fine[0] // tallies.PER, stretch, points + 1)
    words[tallies.ROUNDS] = done + size
    if ordered and points:
        at = np.arange(done // stride + 1, done // stride + points + 1) * stride
        _mark(words, at, series[:points], drawn[:points])


def _halves(values: Reals) -> tuple[Words, Words]:
    """Return numbers in [0, 1] as whole numbers of 2**-30, and the rest of 2**-60."""
    scaled = values * tallies.UNIT
    high = scaled.astype(np.int64)
    low = ((scaled - high) * tallies.UNIT + tallies.ROUNDING) - tallies.ROUNDING
    return high, low.astype(np.int64)


def _add_series(words: Words, rounds: Rounds, fine: Words, stretch: Words, size: int) -> Words:
    """Add forecasts to both series; return the buckets of both at the end of each stretch."""
    values, told = rounds.values.reshape(-1), rounds.outcome
    sums: list[Any] = [1, *_halves(values), *_halves(values * values)]
    both = words[tallies.RAW : tallies.EDGES]
    cells = (FINER + 3 * (2 * fine + told) + BEHIND).reshape(-1)
    table = np.zeros((size, 2, 2 * COARSE, 5), np.int64)
    flat = table.reshape(-1)
    homes = 5 * (2 * (fine // tallies.PER) + told) + NEXT
    # One-dimensional, which is what adding at places is quick for.
    place = (stretch * (2 * BUCKET_WORDS) + homes).reshape(-1)
    for column, addend in enumerate(sums):
        np.add.at(flat, place + column, addend)
        if column < 3:
            np.add.at(both, cells + column, addend)
    home = buckets_in(words)
    np.cumsum(table, axis=0, out=table)
    table += home
    home[:] = table[-1]
    return table


def buckets_in(words: Words) -> Words:
    """Return the buckets of raw and mean forecasts, as they stand in the words."""
    series = words[tallies.RAW : tallies.EDGES].reshape(2, -1)
    return series[:, BUCKETS : BUCKETS + BUCKET_WORDS].reshape(2, 2 * COARSE, 5)


def _add_drawn(words: Words, rounds: Rounds, coarse: Words, stretch: Words, size: int) -> Words:
    """Count drawn values; return the counts at the end of each stretch."""
    cells = int(words[tallies.CELLS])
    counts, cross = tallies.counts_at(cells), tallies.cross_at(cells)
    table = np.zeros((size, 2 * cells), np.int64)
    np.add.at(table.reshape(-1), stretch * (2 * cells) + 2 * rounds.cell + rounds.outcome, 1)
    np.add.at(words[cross:], coarse * cells + rounds.cell, 1)
    np.cumsum(table, axis=0, out=table)
    table += words[counts : counts + 2 * cells]
    words[counts : counts + 2 * cells] = table[-1]
    return table


# ------------------------------------------------------------------ trace and windows


def _mark(words: Words, rounds: Words, series: Words, drawn: Words) -> None:
    """Write the points of the trace after that many ``rounds``."""
    number, reals = len(rounds), words.view(np.float64)
    points, tables = np.empty((number, tallies.COLUMNS)), series.reshape(-1, 2 * COARSE, 5)
    points[:, [0, 2]] = _squares(tables).reshape(-1, 2)
    points[:, [4, 6]] = gaps(tables).reshape(-1, 2)
    points[:, [1, 3, 5]] = exact(words, drawn).T
    points /= rounds[:, None]
    at = tallies.TRACE + tallies.COLUMNS * int(words[tallies.FILLED])
    reals[at : at + points.size] = points.reshape(-1)
    words[tallies.FILLED] += number
    if words[tallies.FILLED] == tallies.POINTS:
        tallies.thin(words.data, reals.data)


def _squares(table: Words) -> Reals:
    """Return the sums of (outcome - forecast)**2, from the buckets of each point."""
    zero, one = table[:, ::2], table[:, 1::2]
    high, low = ((zero[..., k] + one[..., k] - 2 * one[..., k - 2]).sum(1) for k in (3, 4))
    found = one[..., 0].sum(1) + high * tallies.FROM_HIGH + low * tallies.FROM_LOW
    return np.asarray(found)


def gaps(table: Words) -> Reals:
    """Return the sums of n (mean outcome - mean forecast)**2, from the buckets of each point."""
    zero, one = table[:, ::2], table[:, 1::2]
    count = zero[..., 0] + one[..., 0]
    high, low = (zero[..., k] + one[..., k] for k in (1, 2))
    gap = one[..., 0] - (high * tallies.FROM_HIGH + low * tallies.FROM_LOW)
    return _in_order(gap * gap / np.maximum(count, 1) * (count > 0))


def exact(words: Words, drawn: Words) -> Reals:
    """Return squared error, and the sums of n |gap| and n gap**2, from the counts of values."""
    cells = int(words[tallies.CELLS])
    values = words.view(np.float64)[tallies.VALUES : tallies.VALUES + cells]
    zeros, ones = drawn[:, ::2], drawn[:, 1::2]
    count = zeros + ones
    error = ones * ((1.0 - values) * (1.0 - values)) + zeros * (values * values)
    gap = ones - count * values
    parts = error, np.abs(gap), gap * gap / np.maximum(count, 1)
    return np.array([_in_order(part) for part in parts])


def _in_order(parts: Reals) -> Reals:
    """Return the sum of each row, added from left to right as a loop would."""
    return np.asarray(np.add.accumulate(parts, axis=1)[:, -1])


def _pause(words: Words, rounds: int) -> None:
    """Close the windows that end here, and note the next stop."""
    reals = words.view(np.float64)
    for level in range(LEVELS):
        if rounds % (WINDOW << level) == 0:
            _close(words, reals, level, rounds)
    stride = int(words[tallies.STRIDE])
    stops = (rounds // stride + 1) * stride, (rounds // WINDOW + 1) * WINDOW
    words[tallies.STOP] = min(stops)


def _close(words: Words, reals: Reals, level: int, rounds: int) -> None:
    length = WINDOW << level
    at, window = tallies.level_at(int(words[tallies.CELLS]), level), rounds // length - 1
    flat = words.data, reals.data
    if window == tallies.POINTS * words[at + tallies.GROUP]:
        tallies.fold(*flat, at)
    base = at + tallies.BASE
    values = base + 2 * BUCKET_WORDS
    drawn = tallies.squared_gaps_of_values(*flat, values)
    now, since = buckets_in(words), words[base:values].reshape(2, -1, 5)
    raw, mean = gaps(now - since).tolist()
    for kind, error in enumerate((raw, drawn, mean)):
        tallies.show(*flat, at, kind, window, error / length)
    since[:] = now
    cells = int(words[tallies.CELLS])
    counts = tallies.counts_at(cells)
    words[values : values + 2 * cells] = words[counts : counts + 2 * cells]


# ------------------------------------------------------------------------ corrections


def swap(words: Words, round_: Rounds, number: int, ordered: bool) -> None:
    """Let the outcome of a round, the ``number``-th, be the other one than was added.

    Windows that have ended and points of the trace stay as they were computed; where a
    window under way began after the round, its beginning is corrected as well.
    """
    cells, done = int(words[tallies.CELLS]), int(words[tallies.ROUNDS])
    told, fine = int(round_.outcome[0]), round_.homes()[:, 0].tolist()
    bases = [tallies.level_at(cells, level) + tallies.BASE for level in range(LEVELS)
             if ordered and number <= done // (WINDOW << level) * (WINDOW << level)]  # fmt: skip
    for place, at in enumerate(SERIES):
        _swap_series(words, at, round_.values[place], fine[place], told, bases)
    for start in (tallies.counts_at(cells), *(base + 2 * BUCKET_WORDS for base in bases)):
        words[start + 2 * int(round_.cell[0]) + told] += 1
        words[start + 2 * int(round_.cell[0]) + 1 - told] -= 1


def _swap_series(
    words: Words, at: int, values: Reals, fine: int, told: int, bases: list[int]
) -> None:
    sums = [1, *(int(half[0]) for half in (*_halves(values), *_halves(values * values)))]
    own = 0 if at == tallies.RAW else BUCKET_WORDS
    rows = [(at + FINER + 6 * fine, 3)]
    home = 10 * (fine // tallies.PER)
    rows += [(at + BUCKETS + home, 5), *((base + own + home, 5) for base in bases)]
    for start, width in rows:
        words[start + width * told : start + width * (told + 1)] += sums[:width]
        words[start + width * (1 - told) : start + width * (2 - told)] -= sums[:width]


def holds(words: Words, round_: Rounds) -> bool:
    """Say whether the sums may hold a round with the other outcome."""
    cells, other = int(words[tallies.CELLS]), 1 - int(round_.outcome[0])
    counts = [tallies.counts_at(cells) + 2 * int(round_.cell[0]) + other]
    for at, fine in zip(SERIES, round_.homes()[:, 0].tolist(), strict=True):
        counts.append(at + FINER + 3 * (2 * fine + other))
    return bool((words[counts] > 0).all())


def summed(words: Words, more: Words) -> Words:
    """Return the sums of two collectors of the same values, without trace and windows."""
    cells = int(words[tallies.CELLS])
    found = tallies.flat(words.view(np.float64)[tallies.VALUES : tallies.VALUES + cells].copy())
    counts = slice(tallies.counts_at(cells), tallies.level_at(cells, 0))
    parts = [slice(at + tallies.CLIPPED, at + tallies.SERIES_WORDS) for at in SERIES]
    for part in (slice(tallies.ROUNDS, tallies.ROUNDS + 1), counts, *parts):
        found[part] = words[part] + more[part]
    return found


# -------------------------------------------------------------------------- logarithms


def surprise(rounds: Rounds) -> tuple[list[int], list[int]]:
    """Return the log losses of raw and mean forecasts in units of 2**-40, and counts of clips.

    >>> surprise(Rounds(np.array([[0.5], [0.0]]), np.array([0]), np.array([1])))[1]
    [0, 1]
    """
    given = np.where(rounds.outcome == 1, rounds.values, 1.0 - rounds.values)
    clipped = given < tallies.CLIP
    units = np.rint(-log(np.where(clipped, tallies.CLIP, given)) * LOG_UNIT)
    return units.astype(np.int64).sum(1).tolist(), clipped.sum(1).tolist()


def log(values: Any) -> Reals:
    """Return :func:`calibrant.kernels.portable.log` of positive numbers, to the bit.

    >>> float(log(np.array([0.3]))[0]) == portable.log(0.3)
    True
    """
    m, k = np.frexp(values)
    up = m <= portable.SQRT1_2
    m, k = np.where(up, m + m, m), (k - up).astype(np.float64)
    f = m - 1.0
    s = f / (2.0 + f)
    half = 0.5 * f * f
    tail = portable._tail(s)
    return np.asarray(
        k * portable.LN2_HIGH - ((half - (s * (half + tail) + k * portable.LN2_LOW)) - f)
    )
