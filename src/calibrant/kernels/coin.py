"""Coins: a keyed pseudo-random function of a counter, so that a draw can be had again.

The coin of a round is SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012) of the block's clock
and number, under the 128 bits of the row's secret.  Nothing is consumed, so looking ahead costs
nothing, late outcomes change nothing, and two open tickets never share a coin; and whoever
knows any number of coins knows nothing of the others, unless the secret is known too.

States of earlier versions go on with the coins that they had: the output function of SplitMix64
(Steele, Lea and Flood, OOPSLA 2014) at position ``clock`` of the sequence of a block's key, which
is fast, statistically sound, and can be foreseen from very many draws.  The same function serves
wherever nothing is secret, as in games that are simulated.

Keys, clocks and numbers of blocks are not negative; secrets may be.  Compiled code calls these
functions with unsigned arguments (:mod:`calibrant.kernels.compile` casts), for which the masks
are no operation.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.kernels.layout import BUCKETS, COINS, ISSUED, KEY, SECRET, Words

MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
GAMMA: Final = 0x9E37_79B9_7F4A_7C15
FIRST: Final = 0xBF58_476D_1CE4_E5B9
SECOND: Final = 0x94D0_49BB_1331_11EB
UNIT: Final = 2.0**-53

# Complements, each of which is 2**63 or more: so the compiler knows these words to be unsigned.
A: Final = MASK ^ 0x736F_6D65_7073_6575
B: Final = MASK ^ 0x646F_7261_6E64_6F6D
C: Final = MASK ^ 0x6C79_6765_6E65_7261
D: Final = MASK ^ 0x7465_6462_7974_6573
"""With these words SipHash begins."""
LENGTH: Final = MASK ^ 15 << 56
"""The message is fifteen bytes long: eight of the clock, seven of the block's number."""
END: Final = MASK ^ 0xFF

SPLITMIX: Final = 0
"""Value of the header's ``COINS`` where coins are those of earlier versions."""
SIPHASH: Final = 1
"""Value of the header's ``COINS`` where coins come from SipHash."""

CHUNK_BITS: Final = 11
"""Plain Python makes so many coins of a block at a time: singly, one costs more than a forecast."""
CHUNK: Final = (1 << CHUNK_BITS) - 1
MOST_CHUNKS: Final = 256

chunks: dict[int, list[float]] = {}
"""By key: the number of a chunk, and its coins."""

FEW: Final = 8
"""Forecasts of a row whose coins are made one at a time: many rows need only a few."""
EARLY: Final = 16
"""The first coins of a row's blocks are made together, so many of each."""
LATER: Final = 128
"""And so many once one block needs more."""
LANES: Final = 4096
"""But no more than that in all."""

early: dict[tuple[int, int, int], list[float]] = {}
"""By secret and number of blocks: how many coins of each block, and the first ones of all."""


def coin(key: int, clock: int) -> float:
    """Return the number in [0, 1) that decides the draw of round ``clock``, by SplitMix64.

    The 53 high bits of the generator's word, so every value is a multiple of
    2**-53 and exact.

    >>> coin(0, 1)
    0.8833108082136426
    """
    made: float = (splitmix(key, clock) >> 11) * UNIT
    return made


def splitmix(key: Any, clock: Any) -> Any:
    """Return the 64 bits of SplitMix64 at a position of a key's sequence."""
    z = (key + clock * GAMMA) & MASK
    z = ((z ^ (z >> 30)) * FIRST) & MASK
    z = ((z ^ (z >> 27)) * SECOND) & MASK
    return z ^ (z >> 31)


def name_of(low: Any, high: Any, block: Any) -> Any:
    """Return 63 bits that tell the coins of a secret's block from all others in this process.

    They are looked up by it, and it is never stored; arrays of unsigned words do as well.
    """
    return splitmix(splitmix(low, high), block) >> 1


def secret_coin(low: int, high: int, block: int, clock: int) -> float:
    """Return the coin of a block at a clock, under a secret of two words, by SipHash-2-4.

    >>> secret_coin(0, 0, 0, 1)
    0.03164302405450892
    """
    return secret_word(low, high, block, clock) * UNIT


def secret_word(low: int, high: int, block: int, clock: int) -> int:
    """Return the same coin as a whole number of 53 bits."""
    word: int = siphash(low & MASK, high & MASK, clock, block ^ MASK ^ LENGTH) >> 11
    return word


def siphash(low: Any, high: Any, m: Any, last: Any) -> Any:
    """Return the 64 bits of SipHash-2-4 of fifteen bytes, given as two words with their length.

    >>> hex(siphash(0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x0706050403020100, 0x0F0E0D0C0B0A0908))
    '0xa129ca6149be45e5'
    """
    low, high = low ^ MASK, high ^ MASK
    a, b, c, d = mixed(low ^ A, high ^ B, low ^ C, high ^ D ^ m)
    a, b, c, d = mixed(a, b, c, d)
    a, b, c, d = mixed(a ^ m, b, c, d ^ last)
    a, b, c, d = mixed(a, b, c, d)
    a, b, c, d = mixed(a ^ last, b, c ^ MASK ^ END, d)
    a, b, c, d = mixed(a, b, c, d)
    a, b, c, d = mixed(a, b, c, d)
    a, b, c, d = mixed(a, b, c, d)
    return a ^ b ^ c ^ d


def mixed(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    """Return the four words of SipHash after a round."""
    a, c = (a + b) & MASK, (c + d) & MASK
    b, d = ((b << 13 | b >> 51) & MASK) ^ a, ((d << 16 | d >> 48) & MASK) ^ c
    a, c = ((a << 32 | a >> 32) + d) & MASK, (c + b) & MASK
    b, d = ((b << 17 | b >> 47) & MASK) ^ c, ((d << 21 | d >> 43) & MASK) ^ a
    return a, b, (c << 32 | c >> 32) & MASK, d


def toss(words: Words, row: int, at: int, block: int, clock: int) -> float:
    """Return the coin of a row's block at a clock, as the header says that coins are thrown.

    Plain Python makes the coins of a block many at a time.
    """
    chunk = chunks.get(words[at + KEY])
    if chunk is not None and chunk[0] == clock >> CHUNK_BITS:
        return chunk[(clock & CHUNK) + 1]
    return toss_anew(words, row, words[at + KEY], block, clock)


def toss_anew(words: Words, row: int, key: int, block: int, clock: int) -> float:
    """Return a coin that is not at hand, and have the next ones at hand if that is worth it."""
    secret, old = (words[row + SECRET], words[row + SECRET + 1]), words[COINS] == SPLITMIX
    if clock < LATER and not old:
        first = early.get((*secret, words[BUCKETS]))
        if first is None or clock >= first[0]:
            first = _first_coins(words, row, secret, clock)
        if first is not None:
            return first[block * int(first[0]) + clock + 1]
    # Among more blocks than there is room for, each gets its chunk now and then; and a look ahead
    # does not take away the chunk of the next rounds, only to have it made again.  A chunk of later
    # rounds is of another row with this secret, which began earlier.
    held, full = chunks.get(key), len(chunks) >= MOST_CHUNKS
    apart = full and clock & (EARLY - 1)
    if held is not None:
        apart = clock & (LATER - 1 if held[0] > clock >> CHUNK_BITS else CHUNK)
    if clock < EARLY or apart:
        return coin(key, clock) if old else secret_coin(*secret, block, clock)
    clocks = np.arange(clock & ~CHUNK, (clock | CHUNK) + 1, dtype=np.uint64)
    made: Any = coin(np.uint64(key), clocks) if old else coins(*secret, block, clocks)  # type: ignore[arg-type]
    _keep(chunks, key, [clock >> CHUNK_BITS, *made.tolist()])
    return chunks[key][(clock & CHUNK) + 1]


def _first_coins(words: Words, row: int, secret: tuple[int, int], clock: int) -> list[float] | None:
    """Make the first coins of all blocks of a row, or None if that is not worth it."""
    each, blocks = EARLY if clock < EARLY else LATER, words[BUCKETS]
    if words[row + ISSUED] < FEW or not 4 * EARLY <= each * blocks <= LANES:
        return None
    numbers = np.repeat(np.arange(blocks, dtype=np.uint64), each)
    clocks = np.tile(np.arange(each, dtype=np.uint64), blocks)
    made: list[float] = [each, *coins(*secret, numbers, clocks).tolist()]
    _keep(early, (*secret, blocks), made)
    return made


def _keep(kept: dict[Any, list[float]], key: Any, made: list[float]) -> None:
    """Keep coins for later, and drop the oldest ones if these are too many."""
    if len(kept) >= MOST_CHUNKS and key not in kept:
        kept.pop(next(iter(kept)), None)
    kept[key] = made


def coins(low: int, high: int, blocks: Any, clocks: Any) -> Any:
    """Return :func:`secret_coin` of many blocks and clocks, as arrays of unsigned words.

    Rows of a table take the place of two of the four words each, for fewer and longer steps.

    >>> coins(1, 2, 3, np.arange(9, dtype=np.uint64)).tolist()[8] == secret_coin(1, 2, 3, 8)
    True
    """
    last = np.asarray(blocks, np.uint64) ^ MASK ^ LENGTH
    even, odd, spare = np.empty((3, 2, len(clocks)), np.uint64)
    low, high = low & MASK ^ MASK, high & MASK ^ MASK
    even[0], even[1], odd[0], odd[1] = low ^ A, low ^ C, high ^ B, high ^ D
    odd[1] ^= clocks
    _two_rounds(even, odd, spare)
    even[0] ^= clocks
    odd[1] ^= last
    _two_rounds(even, odd, spare)
    even[0] ^= last
    even[1] ^= np.uint64(MASK ^ END)
    _two_rounds(even, odd, spare)
    _two_rounds(even, odd, spare)
    word = even[0] ^ even[1] ^ odd[0] ^ odd[1]
    return (word >> np.uint64(11)) * UNIT


def _two_rounds(even: Any, odd: Any, spare: Any) -> None:
    """Mix twice what stands in two tables: a and c, b and d."""
    for _ in range(2):
        even += odd
        _turn(odd, INNER, spare)
        odd ^= even
        _turn(even[0], HALF, spare[0])
        even += odd[::-1]
        _turn(odd, OUTER, spare)
        odd ^= even[::-1]
        _turn(even[1], HALF, spare[1])


def _turn(table: Any, by: tuple[Any, Any], spare: Any) -> None:
    np.left_shift(table, by[0], out=spare)
    np.right_shift(table, by[1], out=table)
    np.bitwise_or(table, spare, out=table)


INNER: Final = np.array([[13], [16]], np.uint64), np.array([[51], [48]], np.uint64)
OUTER: Final = np.array([[17], [21]], np.uint64), np.array([[47], [43]], np.uint64)
HALF: Final = np.uint64(32), np.uint64(32)
"""By how many bits SipHash turns its words to the left, and so to the right."""
