"""Coins of a whole batch: compiled code makes them some hundred rounds ahead, many at a time.

SipHash takes about as long as a round of the quickest rule, if it is computed in its turn, and a
third of that if several coins are computed side by side.  So compiled batches write the coins of
the next :data:`STRETCH` rounds into the column where the draws of these rounds will stand.  Plain
Python has coins at hand anyway (:func:`calibrant.kernels.coin.toss`): for it :func:`prepare` and
:func:`prepare_alone` do nothing, and :func:`turn` and :func:`turn_alone` throw.  What compiled
code calls instead stands below each of them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.kernels.coin import SPLITMIX, UNIT, coin, secret_word, toss
from calibrant.kernels.layout import (
    BLOCKS,
    BUCKETS,
    CLOCK,
    COINS,
    EDGES,
    INDEX,
    KEY,
    NARROW,
    SECRET,
    STRIDE,
    Reals,
    Words,
)
from calibrant.kernels.place import bucket_of

STRETCH: Final = 256
"""Rounds for which coins are made ahead."""
STEPS: Final = 1.0 / UNIT
"""So many coins there are."""


def prepare(
    words: Words, reals: Reals, row: int, raw: Any, first: int, draws: Any, means: Any
) -> None:
    """Make ready the coins of the rounds from ``first`` on, whose raw forecasts are known."""


def prepare_ahead(
    words: Words, reals: Reals, row: int, raw: Any, first: int, draws: Any, means: Any
) -> None:
    """Write where draws and means will be coins, as whole numbers of 53 bits, and buckets."""
    blocks, stride = (row + words[BLOCKS]) & INDEX, words[STRIDE] & NARROW
    edges, buckets = words[EDGES] & INDEX, words[BUCKETS] & INDEX
    raw = raw[first : first + STRETCH]
    coins = draws[first : first + STRETCH].view(np.int64)
    numbers = means[first : first + STRETCH].view(np.int64)
    for t in range(len(raw)):
        bucket = bucket_of(reals, edges, buckets, raw[t]) & NARROW
        at = blocks + bucket * stride + CLOCK
        clock = words[at]
        numbers[t], coins[t], words[at] = bucket, clock, clock + 1
    if words[COINS] == SPLITMIX:
        for t in range(len(raw)):
            key = words[blocks + (numbers[t] & NARROW) * stride + KEY]
            coins[t] = int(coin(key, int(coins[t])) * STEPS)
    else:
        low, high = words[row + SECRET], words[row + SECRET + 1]
        for t in range(len(raw)):
            coins[t] = secret_word(low, high, int(numbers[t]), int(coins[t]))


def turn(
    words: Words, reals: Reals, row: int, raw: float, t: int, draws: Any, means: Any
) -> tuple[int, float]:
    """Return the block of round ``t`` of a batch, and its coin; the block's clock moves."""
    edges = words[EDGES]
    bucket = bucket_of(reals, edges, words[BUCKETS], raw)
    at = row + words[BLOCKS] + bucket * words[STRIDE]
    clock = words[at + CLOCK]
    words[at + CLOCK] = clock + 1
    return at, toss(words, row, at, bucket, clock)


def turn_ahead(
    words: Words, reals: Reals, row: int, raw: float, t: int, draws: Any, means: Any
) -> tuple[int, float]:
    """Return the same from what was made ready."""
    blocks, stride = (row + words[BLOCKS]) & INDEX, words[STRIDE] & NARROW
    at = blocks + (means.view(np.int64)[t] & NARROW) * stride
    return at, draws.view(np.int64)[t] * UNIT


def prepare_alone(words: Words, row: int, at: int, first: int, draws: Any) -> None:
    """Make ready the coins of the rounds from ``first`` on, all of which are in one block."""


def prepare_alone_ahead(words: Words, row: int, at: int, first: int, draws: Any) -> None:
    """Write these coins where draws will be, as whole numbers of 53 bits."""
    clock, coins = words[at + CLOCK], draws[first : first + STRETCH].view(np.int64)
    if words[COINS] == SPLITMIX:
        for t in range(len(coins)):
            coins[t] = int(coin(words[at + KEY], clock + t) * STEPS)
    else:
        low, high = words[row + SECRET], words[row + SECRET + 1]
        for t in range(len(coins)):
            coins[t] = secret_word(low, high, 0, clock + t)


def turn_alone(words: Words, row: int, at: int, t: int, draws: Any) -> float:
    """Return the coin of round ``t`` of a batch, all of which is in one block."""
    return toss(words, row, at, 0, words[at + CLOCK])


def turn_alone_ahead(words: Words, row: int, at: int, t: int, draws: Any) -> float:
    """Return the same from what was made ready."""
    made: float = draws.view(np.int64)[t] * UNIT
    return made
