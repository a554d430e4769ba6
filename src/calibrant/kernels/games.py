"""Whole games as kernels: an adversary and a forecaster around any calibrator.

The *board* of a game is a buffer of 64-bit words like a calibrator's state, ``board``
read as integers and ``sheet`` read as doubles.  It holds what everybody at the table
knows: the round, the features, the raw forecast, the announced mixture, and for each
grid value how often it was drawn before and with which outcomes.  It never holds the
draw of the round that is being played, so :func:`choose`, which sees nothing but the
board, cannot depend on it.

An adversary is a chance of outcome 1 given the board; deterministic ones have a chance
of 0 or 1.  Adversaries and forecasters are told apart by codes, so that one compiled
game for each calibrator serves all of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

from calibrant.kernels.coin import coin, toss
from calibrant.kernels.compile import compiled
from calibrant.kernels.layout import (
    BLOCKS,
    BUCKETS,
    CELLS,
    CLOCK,
    EDGES,
    INDEX,
    MIXED,
    POSITION,
    ROWS,
    SCRATCH,
    STRIDE,
    TABLE,
    WIDTH,
    Reals,
    Words,
)
from calibrant.kernels.place import bucket_of
from calibrant.kernels.rule import Rule

ROUND, ADVERSARY, FORECASTER, NATURE_KEY, FORECASTER_KEY, SIZE, DENOMINATOR, FIRST = range(8)
"""Which word is which.

- ``ROUND``: Rounds played so far.
- ``ADVERSARY``: Code of the adversary.
- ``FORECASTER``: Code of the forecaster.
- ``NATURE_KEY``: Key of the adversary's coins.
- ``FORECASTER_KEY``: Key of the forecaster's coins.
- ``SIZE``: Number of grid values K.
- ``DENOMINATOR``: Common denominator of the grid values.
- ``FIRST``: First grid value of the announced mixture.
"""
LAST, FEATURE, RAW, MEAN, LOSS, MEAN_LOSS, RAW_LOSS, RULES = range(8, 16)
"""Which word is which.

- ``LAST``: Last grid value of the announced mixture.
- ``FEATURE``: (real) What the adversary revealed; not a number if nothing.
- ``RAW``: (real) The raw forecast.
- ``MEAN``: (real) Mean of the announced mixture.
- ``LOSS``: (real) Sum of the draws' squared losses.
- ``MEAN_LOSS``: (real) Sum of the means' squared losses.
- ``RAW_LOSS``: (real) Sum of the raw forecasts' squared losses.
- ``RULES``: First of the adversary's three settings.
"""
HABITS: Final = 18
"""First of the forecaster's two settings."""
TABLES: Final = 20
"""Where the grid values start, `WORDS` words each."""

NUMERATOR, VALUE, LAW, COUNT, ONES, WEIGHT, EXCESS, WORDS = range(8)
"""Which word is which.

- ``NUMERATOR``: Numerator of the grid value.
- ``VALUE``: (real) The grid value.
- ``LAW``: (real) Its weight in the announced mixture; meaningful from `FIRST` to `LAST`.
- ``COUNT``: How often it was drawn.
- ``ONES``: How many of the outcomes were 1 then.
- ``WEIGHT``: (real) Sum of its announced weights.
- ``EXCESS``: (real) Sum of weight times outcome minus value.
- ``WORDS``: Words for each grid value.
"""

COINS: Final = 64
"""Coins of one round for the adversary, and as many for the forecaster."""

BERNOULLI, PERIODIC, DRIFTING, SWITCHING, NOISY, THRESHOLD, ACCURACY, CALIBRATION = range(8)
SIGNS: Final = 8

CONSTANT, UNIFORM, NOISE, INFORMED = range(4)

COLUMNS: Final = 7
"""Numbers that :func:`measure` writes: C1, C2, both of the mixtures, and the mean squared
losses of draws, means and raw forecasts."""

Game = Callable[[Words, Reals, Words, Reals, Any, Any], None]


def reveal(board: Words, sheet: Reals) -> float:
    """Return the round's feature: the outcome to come, a blurred chance of it, or nothing.

    Only adversaries that do not wait for the announcement have something to reveal.
    """
    if board[ADVERSARY] < NOISY:
        return float(choose(board, sheet))
    if board[ADVERSARY] == NOISY:
        shift = 2.0 * coin(board[NATURE_KEY], COINS * board[ROUND] + 2) - 1.0
        return float(min(max(planned(board, sheet) + sheet[RULES] * shift, 0.0), 1.0))
    return math.nan


def answer(board: Words, sheet: Reals) -> float:
    """Return the raw forecast."""
    code = board[FORECASTER]
    if code == CONSTANT:
        return float(sheet[HABITS])
    if code == INFORMED:
        return float(sheet[HABITS] * (1.0 - sheet[FEATURE]) + sheet[HABITS + 1] * sheet[FEATURE])
    u = coin(board[FORECASTER_KEY], COINS * board[ROUND])
    if code == UNIFORM:
        return u
    return 1.0 if u < sheet[HABITS] else 0.0


def choose(board: Words, sheet: Reals) -> int:
    """Return the outcome: 1 if the adversary's own coin falls below its chance."""
    return int(coin(board[NATURE_KEY], COINS * board[ROUND]) < chance(board, sheet))


def chance(board: Words, sheet: Reals) -> float:
    """Return the probability of outcome 1 that the adversary decides on."""
    code = board[ADVERSARY]
    if code <= NOISY:
        return planned(board, sheet)
    if code == THRESHOLD:
        return 1.0 if sheet[MEAN] <= sheet[RULES] else 0.0
    if code == ACCURACY:
        level = sheet[RAW] if board[RULES] == 1 else 0.5
        return 1.0 if sheet[MEAN] <= level else 0.0
    if code == CALIBRATION:
        return 1.0 if pressure(board, sheet) >= 0.0 else 0.0
    return refuge(board, sheet)


def planned(board: Words, sheet: Reals) -> float:
    """Return the probability of outcome 1 of an adversary that looks at nothing."""
    code, t = board[ADVERSARY], board[ROUND]
    if code == BERNOULLI:
        return float(sheet[RULES])
    if code == PERIODIC:
        return float((board[RULES + 1] >> (t % board[RULES])) & 1)
    if code == NOISY:
        return coin(board[NATURE_KEY], COINS * t + 1)
    length = board[RULES + 2]
    if code == SWITCHING:
        return float(sheet[RULES + (t // length) % 2])
    climb = 1.0 - abs(1.0 - 2.0 * (t % length) / length)
    return float(sheet[RULES] + (sheet[RULES + 1] - sheet[RULES]) * climb)


def gap(board: Words, k: int) -> int:
    """Return the scaled gap of grid value ``k``: outcomes less what was forecast."""
    at = TABLES + WORDS * k
    scaled: int = board[DENOMINATOR] * board[at + ONES] - board[at + NUMERATOR] * board[at + COUNT]
    return scaled


def share(gap: int, count: int, power: int) -> float:
    """Return what a grid value adds to the calibration error: ``|gap|`` or ``gap**2 / count``."""
    size = float(abs(gap))
    return size if power == 1 else size * size / count


def pressure(board: Words, sheet: Reals) -> float:
    """Return how much larger the expected calibration error is after outcome 1 than after 0."""
    power, total = board[RULES], 0.0
    for k in range(board[FIRST], board[LAST] + 1):
        at = TABLES + WORDS * k
        zero, count = gap(board, k) - board[at + NUMERATOR], board[at + COUNT] + 1
        up = share(zero + board[DENOMINATOR], count, power)
        total += sheet[at + LAW] * (up - share(zero, count, power))
    return total


def refuge(board: Words, sheet: Reals) -> float:
    """Return the probability under which the signs of the gaps are safe.

    A positive gap at a value below the probability, or a negative one at a value above
    it, can only grow on average.  Of all ways to split the grid into a lower and an
    upper part, the lowest one that keeps most is taken; neighbouring ways that keep as
    much make room, and the probability is in the middle of it.
    """
    size, kept = board[SIZE], 0
    for k in range(size):
        kept += max(-gap(board, k), 0)
    best, first, last = kept, 0, 0
    for k in range(size):
        kept += gap(board, k)
        if kept > best:
            best, first, last = kept, k + 1, k + 1
        elif kept == best and last == k:
            last = k + 1
    low = sheet[TABLES + WORDS * (first - 1) + VALUE] if first > 0 else 0.0
    high = sheet[TABLES + WORDS * last + VALUE] if last < size else 1.0
    return 0.5 * (low + high)


def announce_pair(board: Words, sheet: Reals, low: int, weight: float, step: int) -> None:
    """Put a two-point mixture on the board; its points lie ``step`` grid values apart."""
    at = TABLES + WORDS * low
    sheet[at + LAW] = weight
    sheet[MEAN] = weight * sheet[at + VALUE]
    board[FIRST] = low
    board[LAST] = low
    if weight < 1.0:
        for k in range(low + 1, low + step):
            sheet[TABLES + WORDS * k + LAW] = 0.0
        high = at + WORDS * step
        sheet[high + LAW] = 1.0 - weight
        sheet[MEAN] += (1.0 - weight) * sheet[high + VALUE]
        board[LAST] = low + step


def announce_law(board: Words, sheet: Reals, reals: Reals, law: int) -> None:
    """Put a mixture over all grid values on the board; its weights start at ``reals[law]``."""
    board[FIRST] = 0
    board[LAST] = board[SIZE] - 1
    sheet[MEAN] = 0.0
    for k in range(board[SIZE]):
        at = TABLES + WORDS * k
        sheet[at + LAW] = reals[law + k]
        sheet[MEAN] += reals[law + k] * sheet[at + VALUE]


def close_round(board: Words, sheet: Reals, cell: int, outcome: int) -> None:
    """Enter the draw and the outcome; from now on they are history."""
    drawn = TABLES + WORDS * cell
    board[drawn + COUNT] += 1
    board[drawn + ONES] += outcome
    for k in range(board[FIRST], board[LAST] + 1):
        at = TABLES + WORDS * k
        sheet[at + WEIGHT] += sheet[at + LAW]
        sheet[at + EXCESS] += sheet[at + LAW] * (outcome - sheet[at + VALUE])
    sheet[LOSS] += (outcome - sheet[drawn + VALUE]) * (outcome - sheet[drawn + VALUE])
    sheet[MEAN_LOSS] += (outcome - sheet[MEAN]) * (outcome - sheet[MEAN])
    sheet[RAW_LOSS] += (outcome - sheet[RAW]) * (outcome - sheet[RAW])
    board[ROUND] += 1


def measure(board: Words, sheet: Reals, results: Any, row: int) -> None:
    """Write the errors and losses so far, averages over rounds, from ``results[row]`` on."""
    T, scale = board[ROUND], board[DENOMINATOR]
    c1, c2, mixed1, mixed2 = 0.0, 0.0, 0.0, 0.0
    for k in range(board[SIZE]):
        at = TABLES + WORDS * k
        here = float(gap(board, k)) / scale
        c1 += abs(here)
        c2 += here * here / max(board[at + COUNT], 1)
        excess, weight = sheet[at + EXCESS], sheet[at + WEIGHT]
        mixed1 += abs(excess)
        if weight > 0.0:
            mixed2 += excess * excess / weight
    results[row] = c1 / T
    results[row + 1] = c2 / T
    results[row + 2] = mixed1 / T
    results[row + 3] = mixed2 / T
    results[row + 4] = sheet[LOSS] / T
    results[row + 5] = sheet[MEAN_LOSS] / T
    results[row + 6] = sheet[RAW_LOSS] / T


@functools.cache
def game_of(rule: Rule) -> Game:
    """Return ``game(words, reals, board, sheet, marks, results)`` for a calibrator's rule.

    The game goes from the board's present round to the last of ``marks``, and measures at
    each of them.
    """
    draw, update, full_support = rule.draw, rule.update, rule.full_support

    def game(
        words: Words, reals: Reals, board: Words, sheet: Reals, marks: Any, results: Any
    ) -> None:
        cells, table = words[CELLS] & INDEX, words[TABLE] & INDEX
        row = words[ROWS] & INDEX
        blocks, stride = (row + words[BLOCKS]) & INDEX, words[STRIDE] & INDEX
        edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
        for m in range(len(marks)):
            while board[ROUND] < marks[m]:
                sheet[FEATURE] = reveal(board, sheet)
                sheet[RAW] = answer(board, sheet)
                bucket = bucket_of(reals, edges, buckets, sheet[RAW]) & INDEX
                at = blocks + bucket * stride
                u = toss(words, row, at, bucket, words[at + CLOCK])
                reals[MIXED] = sheet[RAW]
                cell, side, weight = draw(words, reals, at, cells, table, u)
                if full_support:
                    announce_law(board, sheet, reals, words[SCRATCH] & INDEX)
                else:
                    step = 1 << (side >> WIDTH)
                    announce_pair(board, sheet, cell - (side & 1) * step, weight, step)
                y = choose(board, sheet)
                update(words, reals, at, table, cell, side, weight, y)
                words[at + POSITION] = cell
                words[at + CLOCK] += 1
                close_round(board, sheet, cell, y)
            measure(board, sheet, results, COLUMNS * m)

    return game


def compiled_game_of(rule: Rule) -> Game:
    """Return the compiled game of a calibrator's rule; it lets other threads run."""
    return compiled(game_of(rule), rule.name, nogil=True)
