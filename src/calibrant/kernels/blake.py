"""BLAKE2b (RFC 7693) of many short messages: the same bits as :mod:`hashlib`, without its calls.

A processor works on several words at a time where they are treated alike, so messages are hashed in
:data:`LANES`, a block of each in one step; whichever lane is done takes the next message.  Without
a compiler nobody calls these functions: :mod:`hashlib` is faster then.  Words are unsigned in
compiled code, for which the masks are no operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.compile import available, compiled

MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
BLOCK: Final = 16
"""Words of a block."""
LANES: Final = 16
"""Messages that are hashed side by side: fewer, and the compiler writes none of it side by side."""
MESSAGE, SIZE, LAST = 8, 24, 25
"""Where in a room the words of a block begin, the bytes up to its end, and whether it is the last:
so many times the lanes.  Before them stands the state."""
ROOM: Final = 26
NOBODY: Final = -1
IV: Final = (
    0x6A09_E667_F3BC_C908,
    0xBB67_AE85_84CA_A73B,
    0x3C6E_F372_FE94_F82B,
    0xA54F_F53A_5F1D_36F1,
    0x510E_527F_ADE6_82D1,
    0x9B05_688C_2B3E_6C1F,
    0x1F83_D9AB_FB41_BD6B,
    0x5BE0_CD19_137E_2179,
)


def begun(size: int, key: int = 0, salt: bytes = bytes(16)) -> list[int]:
    """Return the words with which a digest of so many bytes begins, and those of the IV.

    ``key`` is the number of bytes of a key, which is then the first block of the message.
    """
    words = [*IV]
    words[0] ^= 0x0101_0000 | key << 8 | size
    words[4] ^= int.from_bytes(salt[:8], "little")
    words[5] ^= int.from_bytes(salt[8:], "little")
    return [*words, *IV]


def quarter(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Return four words, mixed with two of the message."""
    a = (a + b + x) & MASK
    d = d ^ a
    d = (d >> 32 | d << 32) & MASK
    c = (c + d) & MASK
    b = b ^ c
    b = (b >> 24 | b << 40) & MASK
    a = (a + b + y) & MASK
    d = d ^ a
    d = (d >> 16 | d << 48) & MASK
    c = (c + d) & MASK
    b = b ^ c
    return a, (b >> 63 | b << 1) & MASK, c, d


def stir(v: Any, *m: Any) -> Any:
    """Return the state of a block after a round, with the words of the message in its order."""
    a, b, c, d, e, f, g, i, j, k, n, o, p, q, r, s = v
    a, e, j, p = quarter(a, e, j, p, m[0], m[1])
    b, f, k, q = quarter(b, f, k, q, m[2], m[3])
    c, g, n, r = quarter(c, g, n, r, m[4], m[5])
    d, i, o, s = quarter(d, i, o, s, m[6], m[7])
    a, f, n, s = quarter(a, f, n, s, m[8], m[9])
    b, g, o, p = quarter(b, g, o, p, m[10], m[11])
    c, i, j, q = quarter(c, i, j, q, m[12], m[13])
    d, e, k, r = quarter(d, e, k, r, m[14], m[15])
    return a, b, c, d, e, f, g, i, j, k, n, o, p, q, r, s


def eight(room: Any, at: int) -> Any:
    """Return every so many words, eight of them."""
    first = room[at], room[at + LANES], room[at + 2 * LANES], room[at + 3 * LANES]
    at += 4 * LANES
    return first + (room[at], room[at + LANES], room[at + 2 * LANES], room[at + 3 * LANES])  # noqa: RUF005


def compress(room: Any, iv: Any) -> None:
    """Take a block into the state, in every lane."""
    for lane in range(LANES):
        a, b, c, d, e, f, g, h = eight(room, MESSAGE * LANES + lane)
        i, j, k, l, m, n, o, p = eight(room, (MESSAGE + 8) * LANES + lane)  # noqa: E741
        size, last = iv[12] ^ room[SIZE * LANES + lane], iv[14] ^ room[LAST * LANES + lane]
        v = eight(room, lane) + (iv[8], iv[9], iv[10], iv[11], size, iv[13], last, iv[15])  # noqa: RUF005
        v = stir(v, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
        v = stir(v, o, k, e, i, j, p, n, g, b, m, a, c, l, h, f, d)
        v = stir(v, l, i, m, a, f, c, p, n, k, o, d, g, h, b, j, e)
        v = stir(v, h, j, d, b, n, m, l, o, c, g, f, k, e, a, p, i)
        v = stir(v, j, a, f, h, c, e, k, p, o, b, l, m, g, i, d, n)
        v = stir(v, c, m, g, k, a, l, i, d, e, n, h, f, p, o, b, j)
        v = stir(v, m, f, b, p, o, n, e, k, a, h, g, d, j, c, i, l)
        v = stir(v, n, l, h, o, m, b, d, j, f, a, p, e, i, g, c, k)
        v = stir(v, g, p, o, j, l, d, a, i, m, c, n, h, b, e, k, f)
        v = stir(v, k, c, i, e, h, g, b, f, p, l, j, o, d, m, n, a)
        v = stir(v, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
        v = stir(v, o, k, e, i, j, p, n, g, b, m, a, c, l, h, f, d)
        room[lane] ^= v[0] ^ v[8]
        room[LANES + lane] ^= v[1] ^ v[9]
        room[2 * LANES + lane] ^= v[2] ^ v[10]
        room[3 * LANES + lane] ^= v[3] ^ v[11]
        room[4 * LANES + lane] ^= v[4] ^ v[12]
        room[5 * LANES + lane] ^= v[5] ^ v[13]
        room[6 * LANES + lane] ^= v[6] ^ v[14]
        room[7 * LANES + lane] ^= v[7] ^ v[15]


def fill_lane(room: Any, lane: int, words: Any, start: int, count: int, zero: Any) -> None:
    """Write so many words of a message into a lane, and zeros behind."""
    at = MESSAGE * LANES + lane
    if count == BLOCK:
        for n in range(BLOCK):
            room[at + n * LANES] = words[start + n]
        return
    for n in range(count):
        room[at + n * LANES] = words[start + n]
    for n in range(count, BLOCK):
        room[at + n * LANES] = zero


def digest(
    words: Any, starts: Any, ends: Any, sizes: Any, begin: Any, room: Any, turns: Any, found: Any
) -> None:
    """Write two words of the digest of each of many messages.

    A message is told in words, of which the last may be filled up with zeros: ``sizes`` are the
    bytes.  ``begin`` is what :func:`beginning` gave; ``turns`` tells of each lane which message is
    there, and behind the lanes of each where in the words it goes on.
    """
    taken, done = 0, 0
    for lane in range(LANES):
        turns[lane] = NOBODY
    while done < len(starts):
        for lane in range(LANES):
            if turns[lane] < 0 and taken < len(starts):
                turns[lane], turns[LANES + lane] = taken, starts[taken]
                taken += 1
                for n in range(8):
                    room[n * LANES + lane] = begin[n]
            if turns[lane] >= 0:
                k, at = turns[lane], turns[LANES + lane]
                count = min(ends[k] - at, BLOCK)
                fill_lane(room, lane, words, at, count, begin[16])
                turns[LANES + lane] = at + count
                over = at + count >= ends[k]
                room[SIZE * LANES + lane] = sizes[k] if over else 8 * (at + count - starts[k])
                room[LAST * LANES + lane] = begin[17] if over else begin[16]
        compress(room, begin)
        for lane in range(LANES):
            k = turns[lane]
            if k >= 0 and turns[LANES + lane] >= ends[k]:
                found[2 * k], found[2 * k + 1] = room[lane], room[LANES + lane]
                turns[lane] = NOBODY
                done += 1


@functools.lru_cache(maxsize=64)
def beginning(size: int, key: int = 0, salt: bytes = bytes(16)) -> Any:
    """Return :func:`begun` as unsigned words, 0, and all ones; only to be read."""
    return np.array([*begun(size, key, salt), 0, MASK], np.uint64)


@functools.cache
def machine() -> Callable[..., None] | None:
    """Return the digests of many messages, compiled; None without a compiler."""
    return compiled(digest, "blake", nogil=True) if available() else None


def hashed(
    make: Callable[..., None], words: Any, starts: Any, ends: Any, sizes: Any, begin: Any
) -> NDArray[np.int64]:
    """Return two words of the digest of each of many messages, by what :func:`machine` gave."""
    found, room = np.empty(2 * len(starts), np.uint64), np.zeros(ROOM * LANES, np.uint64)
    turns = np.empty(2 * LANES, np.int64)
    make(words.view(np.uint64), starts, ends, sizes, begin, room, turns, found)
    told: NDArray[np.int64] = found.view(np.int64).reshape(-1, 2)
    return told
