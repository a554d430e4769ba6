"""Coins of a whole batch: compiled code makes them some hundred rounds ahead, many at a time.

SipHash takes about as long as a round of the quickest rule, if it is computed in its turn, and a
third of that if several coins are computed side by side.  So compiled batches write the coins of
the next :data:`STRETCH` rounds into the column where the draws of these rounds will stand.  Their
blocks and clocks are found a stretch ahead of each round: processors do both at once.  Plain
Python has coins at hand anyway (:func:`calibrant.kernels.coin.toss`): for it :func:`begin`,
:func:`prepare` and :func:`prepare_alone` do nothing, and :func:`turn` and :func:`turn_alone`
throw.  What compiled code calls instead stands below each of them.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from calibrant.kernels.coin import SPLITMIX, UNIT, coin, secret_word, toss
from calibrant.kernels.layout import CLOCK, COINS, KEY, NARROW, SECRET, Reals, Words
from calibrant.kernels.place import bucket_of

STRETCH: Final = 256
"""Rounds for which coins are made ahead."""
STEPS: Final = 1.0 / UNIT
"""So many coins there are."""


Where: TypeAlias = tuple[int, int, int, int]
"""Where blocks begin, words of each, where edges begin, buckets: said once a batch.

Compiled code would look each of them up again in every round, since what it writes might be them.
"""


def columns(draws: Any, means: Any) -> tuple[Any, Any]:
    """Return the columns of draws and means for the functions below."""
    return draws, means


def columns_ahead(draws: Any, means: Any) -> tuple[Any, Any]:
    """Return draws and means as columns of whole numbers, of coins and of blocks."""
    return draws.view(np.int64), means.view(np.int64)


def begin(words: Words, reals: Reals, at: Where, raw: Any, coins: Any, blocks: Any) -> None:
    """Find blocks and clocks of the first rounds of a batch: compiled code alone does."""


def begin_ahead(words: Words, reals: Reals, at: Where, raw: Any, coins: Any, blocks: Any) -> None:
    """Write block numbers and clocks of the first rounds into the columns."""
    for t in range(STRETCH):
        assign(words, reals, at, raw, t, coins, blocks)


def assign(
    words: Words, reals: Reals, at: Where, raw: Any, t: int, coins: Any, blocks: Any
) -> None:
    """Give round ``t``, if there is one, its block, whose clock moves: compiled code alone does.

    The block's number is written where the mean will be, the clock where the draw will.
    """
    if t < len(raw):
        start, stride, edges, buckets = at
        bucket = bucket_of(reals, edges, buckets, raw[t]) & NARROW
        hand = start + bucket * stride + CLOCK
        clock = words[hand]
        blocks[t], coins[t], words[hand] = bucket, clock, clock + 1


def prepare(words: Words, row: int, at: Where, first: int, coins: Any, blocks: Any) -> None:
    """Make ready the coins of the rounds from ``first`` on, whose blocks and clocks are known."""


def prepare_ahead(words: Words, row: int, at: Where, first: int, coins: Any, blocks: Any) -> None:
    """Write where draws will be coins, as whole numbers of 53 bits, in place of clocks."""
    coins, blocks = coins[first : first + STRETCH], blocks[first : first + STRETCH]
    # Nothing else here, so that the compiler does several rounds together.
    if words[COINS] == SPLITMIX:
        for t in range(len(coins)):
            key = words[at[0] + (blocks[t] & NARROW) * at[1] + KEY]
            coins[t] = int(coin(key, int(coins[t])) * STEPS)
    else:
        low, high = words[row + SECRET], words[row + SECRET + 1]
        for t in range(len(coins)):
            coins[t] = secret_word(low, high, int(blocks[t]), int(coins[t]))


def turn(
    words: Words, reals: Reals, row: int, at: Where, raw: Any, t: int, coins: Any, blocks: Any
) -> tuple[int, float]:
    """Return the block of round ``t`` of a batch, and its coin; the block's clock moves."""
    start, stride, edges, buckets = at
    bucket = bucket_of(reals, edges, buckets, raw[t])
    block = start + bucket * stride
    clock = words[block + CLOCK]
    words[block + CLOCK] = clock + 1
    return block, toss(words, row, block, bucket, clock)


def turn_ahead(
    words: Words, reals: Reals, row: int, at: Where, raw: Any, t: int, coins: Any, blocks: Any
) -> tuple[int, float]:
    """Return the same from what was made ready, and get on with what comes a stretch later."""
    assign(words, reals, at, raw, t + STRETCH, coins, blocks)
    return at[0] + (blocks[t] & NARROW) * at[1], coins[t] * UNIT


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
