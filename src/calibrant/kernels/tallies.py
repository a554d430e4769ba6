"""Following a run in one pass: every sum that a summary needs, in one flat state.

Raw and mean forecasts may be any numbers in [0, 1].  For each of these two *series* the
state holds, apart by outcome, counts and exact sums in 1,000 fine cells and in 20 coarse
buckets (50 cells each: an edge j/20 is the same double as 50j/1000), and the product of
the probabilities that the outcomes were given.  Drawn forecasts come from a grid and are
counted by value.  Now and then a round is a *stop*: there the running averages become a
point of the trace, or a window is closed.

::

    header | raw | mean | edges | trace | zeros | first |
    values | homes | counts | cross | levels

Sums are whole numbers in two words, of 2**-30 and of 2**-60 (as in
:mod:`calibrant.metrics.tally`), so they are those of the streaming metrics to the last
bit.  As everywhere in this package, ``words`` and ``reals`` are two views of one
buffer and each word is used through one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.compile import available, compiled
from calibrant.kernels.layout import INDEX, Reals, Words
from calibrant.kernels.place import bucket_of

FINE: Final = 1000
"""Fine cells."""
COARSE: Final = 20
"""Coarse buckets."""
PER: Final = FINE // COARSE
"""Fine cells in a coarse bucket."""
POINTS: Final = 256
"""Points that a trace, or the windows of one length, may have."""
LEVELS: Final = 4
"""Lengths of windows that are followed at once; each is twice the one before."""
WINDOW: Final = 625
"""Rounds in a window of the first level."""
CLIP: Final = 1e-15
"""The least probability that the log loss takes an outcome to have been given."""
MOST: Final = 1 << 31
"""Rounds that the sums have room for."""

ROUNDS, STOP, STRIDE, FILLED, CELLS = range(5)
"""Which word is which.

- ``ROUNDS``: Rounds so far.
- ``STOP``: The next round that is a stop.
- ``STRIDE``: Rounds between points of the trace.
- ``FILLED``: Points of the trace that are there.
- ``CELLS``: Values K that may be drawn.
"""

RAW: Final = 8
"""Where the series of raw forecasts starts."""
PRODUCT, SCALED, CLIPPED = range(3)
"""Which word is which.

- ``PRODUCT``: (real) Product of the outcomes' probabilities, times a power of `HUGE`.
- ``SCALED``: That power.
- ``CLIPPED``: Rounds whose outcome had a probability below `CLIP`.
"""
BUCKETS: Final = 4
"""Five words for each bucket and outcome: count, sum (2), sum of squares (2)."""
BUCKET_WORDS: Final = 2 * COARSE * 5
FINER: Final = BUCKETS + BUCKET_WORDS
"""Three words for each fine cell and outcome: count, sum (2)."""
SERIES_WORDS: Final = FINER + 2 * FINE * 3
MEAN: Final = RAW + SERIES_WORDS
"""Where the series of mean forecasts starts."""

EDGES: Final = MEAN + SERIES_WORDS
"""(real) Edges of the fine cells, and one beyond."""
COLUMNS: Final = 7
TRACE: Final = EDGES + FINE + 1
"""(real) For each point the Brier scores and C2 of raw, drawn and mean, and C1 of drawn."""
ZEROS: Final = TRACE + POINTS * COLUMNS
"""Buckets in which nothing happened."""
FIRST: Final = ZEROS + BUCKET_WORDS
"""For each fine cell the first value that is not below it."""
VALUES: Final = FIRST + FINE
"""(real) The values, and one beyond 1."""

GROUP, WORST = range(2)
"""Which word is which.

- ``GROUP``: Windows for each point.
- ``WORST``: (real) Largest error of a window, of raw, drawn and mean.
"""
WHERE: Final = 4
"""Which window that was, counted from 0."""
SHOWN: Final = 8
"""(real) For each point the largest error of its windows, of raw, drawn and mean."""
BASE: Final = SHOWN + 3 * POINTS
"""The buckets of raw and mean when the window began, and then the counts of values (2K)."""
LEVEL_WORDS: Final = BASE + 2 * BUCKET_WORDS
"""Words of a level, apart from these 2K."""

UNIT: Final = float(1 << 30)
FROM_HIGH: Final = 2.0**-30
FROM_LOW: Final = 2.0**-60
TINY: Final = 2.0**-900
HUGE: Final = 2.0**900
ROUNDING: Final = 1.5 * 2.0**52
"""Adding and taking off this number rounds to a whole one, ties to even."""


def collect(words: Words, reals: Reals, raw: Any, drawn: Any, mean: Any, outcomes: Any) -> None:
    """Add rounds, in order."""
    rounds, stop, cells = words[ROUNDS], words[STOP], words[CELLS] & INDEX
    raw_product, mean_product = reals[RAW + PRODUCT], reals[MEAN + PRODUCT]
    for t in range(len(raw)):
        y, p, f, m = int(outcomes[t]), raw[t], drawn[t], mean[t]
        bucket = add(words, reals, RAW, p, y)
        add(words, reals, MEAN, m, y)
        k = find(words, reals, f)
        words[counts_at(cells) + 2 * k + y] += 1
        words[cross_at(cells) + bucket * cells + k] += 1
        raw_product *= given(words, RAW, p, y)
        if raw_product < TINY:
            raw_product *= HUGE
            words[RAW + SCALED] += 1
        mean_product *= given(words, MEAN, m, y)
        if mean_product < TINY:
            mean_product *= HUGE
            words[MEAN + SCALED] += 1
        rounds += 1
        if rounds == stop:
            stop = pause(words, reals, rounds)
    words[ROUNDS], words[STOP] = rounds, stop
    reals[RAW + PRODUCT], reals[MEAN + PRODUCT] = raw_product, mean_product


def add(words: Words, reals: Reals, at: int, value: float, outcome: int) -> int:
    """Add a forecast and its outcome to a series; return the forecast's bucket."""
    j = bucket_of(reals, EDGES, FINE, value) & INDEX
    scaled = value * UNIT
    high = int(scaled)
    low = int(((scaled - high) * UNIT + ROUNDING) - ROUNDING)
    cell = at + FINER + 3 * (2 * j + outcome)
    words[cell] += 1
    words[cell + 1] += high
    words[cell + 2] += low
    home = at + BUCKETS + 5 * (2 * (j // PER) + outcome)
    words[home] += 1
    words[home + 1] += high
    words[home + 2] += low
    scaled = value * value * UNIT
    high = int(scaled)
    words[home + 3] += high
    words[home + 4] += int(((scaled - high) * UNIT + ROUNDING) - ROUNDING)
    return j // PER


def find(words: Words, reals: Reals, value: float) -> int:
    """Return the first value that may be drawn and is not below ``value``."""
    k = words[FIRST + bucket_of(reals, EDGES, FINE, value)] & INDEX
    while reals[VALUES + k] < value:
        k += 1
    return k  # type: ignore[no-any-return]


def stray(words: Words, reals: Reals, drawn: Any) -> int:
    """Return the first row whose forecast may not be drawn, or -1."""
    for t in range(len(drawn)):
        if reals[VALUES + find(words, reals, drawn[t])] != drawn[t]:
            return t
    return -1


def given(words: Words, at: int, value: float, outcome: int) -> float:
    """Return the probability that a forecast gave its outcome, clipped; count the clips."""
    probability = value if outcome == 1 else 1.0 - value
    if probability < CLIP:
        words[at + CLIPPED] += 1
        return CLIP
    return probability


def pause(words: Words, reals: Reals, rounds: int) -> int:
    """Do what is due at a stop, and return the next one."""
    if rounds % words[STRIDE] == 0:
        mark(words, reals, rounds, TRACE + COLUMNS * words[FILLED])
        words[FILLED] += 1
        if words[FILLED] == POINTS:
            thin(words, reals)
    cells = words[CELLS]
    for level in range(LEVELS):
        length = WINDOW << level
        if rounds % length == 0:
            close(words, reals, level_at(cells, level), rounds // length - 1, length)
    stride = words[STRIDE]
    return min((rounds // stride + 1) * stride, (rounds // WINDOW + 1) * WINDOW)  # type: ignore[no-any-return]


def mark(words: Words, reals: Reals, rounds: int, to: int) -> None:
    """Write the averages over all rounds so far to ``to``."""
    reals[to] = squared_error(words, RAW + BUCKETS) / rounds
    reals[to + 2] = squared_error(words, MEAN + BUCKETS) / rounds
    reals[to + 4] = squared_gaps(words, RAW + BUCKETS, ZEROS) / rounds
    reals[to + 6] = squared_gaps(words, MEAN + BUCKETS, ZEROS) / rounds
    error, first, second = exact_sums(words, reals)
    reals[to + 1] = error / rounds
    reals[to + 3] = first / rounds
    reals[to + 5] = second / rounds


def squared_error(words: Words, at: int) -> float:
    """Return the sum of (outcome - forecast)**2 over the buckets at ``at``."""
    ones, high, low = 0, 0, 0
    for zero in range(at, at + BUCKET_WORDS, 10):
        ones += words[zero + 5]
        high += words[zero + 3] + words[zero + 8] - 2 * words[zero + 6]
        low += words[zero + 4] + words[zero + 9] - 2 * words[zero + 7]
    return ones + high * FROM_HIGH + low * FROM_LOW


def squared_gaps(words: Words, at: int, base: int) -> float:
    """Return the sum of n (mean outcome - mean forecast)**2 since ``base`` was noted."""
    total = 0.0
    for zero in range(at, at + BUCKET_WORDS, 10):
        since = base + zero - at
        ones = words[zero + 5] - words[since + 5]
        count = ones + words[zero] - words[since]
        if count > 0:
            high = words[zero + 1] + words[zero + 6] - words[since + 1] - words[since + 6]
            low = words[zero + 2] + words[zero + 7] - words[since + 2] - words[since + 7]
            gap = ones - (high * FROM_HIGH + low * FROM_LOW)
            total += gap * gap / count
    return total


def exact_sums(words: Words, reals: Reals) -> tuple[float, float, float]:
    """Return the drawn forecasts' squared error, and the sums of n |gap| and n gap**2."""
    error, first, second = 0.0, 0.0, 0.0
    cells = words[CELLS]
    for k in range(cells):
        counts = counts_at(cells) + 2 * k
        zeros, ones = words[counts], words[counts + 1]
        count = zeros + ones
        if count > 0:
            value = reals[VALUES + k]
            error += ones * ((1.0 - value) * (1.0 - value)) + zeros * (value * value)
            gap = ones - count * value
            first += abs(gap)
            second += gap * gap / count
    return error, first, second


def squared_gaps_of_values(words: Words, reals: Reals, base: int) -> float:
    """Return what :func:`squared_gaps` is for the drawn forecasts in the same buckets."""
    total, ones, count, forecasts = 0.0, 0, 0, 0.0
    cells = words[CELLS]
    for k in range(cells):
        counts = counts_at(cells) + 2 * k
        happened = words[counts + 1] - words[base + 2 * k + 1]
        drawn = happened + words[counts] - words[base + 2 * k]
        ones += happened
        count += drawn
        forecasts += drawn * reals[VALUES + k]
        home = homes_at(cells) + k
        last = k + 1 == cells or words[home + 1] != words[home]
        if last and count > 0:
            gap = ones - forecasts
            total += gap * gap / count
            ones, count, forecasts = 0, 0, 0.0
    return total


def thin(words: Words, reals: Reals) -> None:
    """Keep every second point of the trace."""
    for point in range(POINTS // 2):
        for column in range(COLUMNS):
            old = TRACE + COLUMNS * (2 * point + 1) + column
            reals[TRACE + COLUMNS * point + column] = reals[old]
    words[FILLED] = POINTS // 2
    words[STRIDE] *= 2


def close(words: Words, reals: Reals, at: int, window: int, length: int) -> None:
    """Close a window of a level and begin the next one."""
    if window == POINTS * words[at + GROUP]:
        fold(words, reals, at)
    base = at + BASE
    values = base + 2 * BUCKET_WORDS
    show(words, reals, at, 0, window, squared_gaps(words, RAW + BUCKETS, base) / length)
    show(words, reals, at, 1, window, squared_gaps_of_values(words, reals, values) / length)
    mean = squared_gaps(words, MEAN + BUCKETS, base + BUCKET_WORDS)
    show(words, reals, at, 2, window, mean / length)
    for word in range(BUCKET_WORDS):
        words[base + word] = words[RAW + BUCKETS + word]
        words[base + BUCKET_WORDS + word] = words[MEAN + BUCKETS + word]
    cells = words[CELLS]
    for word in range(2 * cells):
        words[values + word] = words[counts_at(cells) + word]


def show(words: Words, reals: Reals, at: int, kind: int, window: int, error: float) -> None:
    """Put the error of a window into its point, and keep the largest of all."""
    group = words[at + GROUP]
    point = at + SHOWN + 3 * (window // group) + kind
    if window % group == 0 or error > reals[point]:
        reals[point] = error
    if window == 0 or error > reals[at + WORST + kind]:
        reals[at + WORST + kind] = error
        words[at + WHERE + kind] = window


def fold(words: Words, reals: Reals, at: int) -> None:
    """Let each point stand for twice as many windows."""
    for point in range(POINTS // 2):
        for kind in range(3):
            one = reals[at + SHOWN + 6 * point + kind]
            other = reals[at + SHOWN + 6 * point + 3 + kind]
            reals[at + SHOWN + 3 * point + kind] = max(one, other)
    words[at + GROUP] *= 2


def homes_at(cells: int) -> int:
    """Return where the bucket of each value stands."""
    return VALUES + cells + 1


def counts_at(cells: int) -> int:
    """Return where the counts of the values stand, two for each: outcome 0, outcome 1."""
    return VALUES + 2 * cells + 1


def cross_at(cells: int) -> int:
    """Return where the counts of the values stand again, apart by the raw forecast's bucket."""
    return VALUES + 4 * cells + 1


def level_at(cells: int, level: int) -> int:
    """Return where a level of windows stands."""
    return VALUES + (4 + COARSE) * cells + 1 + level * (LEVEL_WORDS + 2 * cells)


def machine(function: Callable[..., Any], compile: bool) -> Callable[..., Any]:
    """Return ``function``, compiled if that is asked for and possible."""
    return compiled(function, "run") if compile and available() else function


def flat(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the state before the first round, for drawn forecasts among ``values``."""
    cells = len(values)
    words = np.zeros(level_at(cells, LEVELS), np.int64)
    reals = words.view(np.float64)
    words[[STOP, STRIDE, CELLS]] = 1, 1, cells
    reals[[RAW + PRODUCT, MEAN + PRODUCT]] = 1.0
    edges = np.arange(FINE) / FINE
    reals[EDGES : EDGES + FINE] = edges
    words[FIRST : FIRST + FINE] = np.searchsorted(values, edges)
    reals[VALUES : VALUES + cells] = values
    reals[[EDGES + FINE, VALUES + cells]] = 2.0
    homes = np.searchsorted(edges[::PER], values, side="right") - 1
    words[homes_at(cells) : counts_at(cells)] = homes
    words[[level_at(cells, level) + GROUP for level in range(LEVELS)]] = 1
    return words
