"""BLAKE2b (RFC 7693) of many short messages: the same bits as :mod:`hashlib`, without its calls.

Without a compiler nobody calls these functions: :mod:`hashlib` is faster then.  Words are unsigned
in compiled code, for which the masks are no operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calibrant.kernels.compile import available, compiled

MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
BLOCK: Final = 16
"""Words of a block."""
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
SIGMA: Final = np.array(
    [
        (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        (14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
        (11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4),
        (7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
        (9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13),
        (2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
        (12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11),
        (13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
        (6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5),
        (10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0),
        (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        (14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
    ],
    np.uint64,
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


def mix(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
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


def compress(h: Any, m: Any, size: Any, last: Any, iv: Any) -> None:
    """Take a block into the state, with the bytes up to its end; ``last`` is all ones or zero."""
    a, b, c, d, e, f, g, i = h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
    j, k, n, o = iv[8], iv[9], iv[10], iv[11]
    p, q, r, s = iv[12] ^ size, iv[13], iv[14] ^ last, iv[15]
    for t in range(12):
        a, e, j, p = mix(a, e, j, p, m[SIGMA[t, 0]], m[SIGMA[t, 1]])
        b, f, k, q = mix(b, f, k, q, m[SIGMA[t, 2]], m[SIGMA[t, 3]])
        c, g, n, r = mix(c, g, n, r, m[SIGMA[t, 4]], m[SIGMA[t, 5]])
        d, i, o, s = mix(d, i, o, s, m[SIGMA[t, 6]], m[SIGMA[t, 7]])
        a, f, n, s = mix(a, f, n, s, m[SIGMA[t, 8]], m[SIGMA[t, 9]])
        b, g, o, p = mix(b, g, o, p, m[SIGMA[t, 10]], m[SIGMA[t, 11]])
        c, i, j, q = mix(c, i, j, q, m[SIGMA[t, 12]], m[SIGMA[t, 13]])
        d, e, k, r = mix(d, e, k, r, m[SIGMA[t, 14]], m[SIGMA[t, 15]])
    h[0] ^= a ^ j
    h[1] ^= b ^ k
    h[2] ^= c ^ n
    h[3] ^= d ^ o
    h[4] ^= e ^ p
    h[5] ^= f ^ q
    h[6] ^= g ^ r
    h[7] ^= i ^ s


def copy(source: Any, target: Any, count: int) -> None:
    """Copy the first words."""
    for n in range(count):
        target[n] = source[n]


def digest_words(words: Any, starts: Any, ends: Any, begin: Any, room: Any, found: Any) -> None:
    """Write eight bytes of digest of each of many messages of whole words.

    ``begin`` is what :func:`begun` gave, with zero and all ones behind; ``room`` has 24 words: the
    state, and a block.
    """
    h, m = room[:8], room[8:24]
    for k in range(len(starts)):
        start, end = starts[k], ends[k]
        size, at = begin[16], start
        copy(begin, h, 8)
        while True:
            count = min(end - at, 16)
            for n in range(count):
                m[n] = words[at + n]
            for n in range(count, 16):
                m[n] = begin[16]
            at += count
            for _ in range(count):
                size += begin[18]
            if at >= end:
                break
            compress(h, m, size, begin[16], begin)
        compress(h, m, size, begin[17], begin)
        found[k] = h[0]


def secrets(told: Any, ends: Any, salt: Any, seeded: Any, keyed: Any, room: Any, out: Any) -> None:
    """Write the secret of each of many keys, given as text: two words each.

    The text of a key is hashed to a salt of sixteen bytes, under which the text of the seed is
    hashed, as :func:`calibrant.recalibrate.secret.secret_of` says.  ``salt`` and ``keyed`` are what
    the two digests begin with, as for :func:`digest_words`; ``seeded`` is the text of the seed as
    words of a block, and its length.
    """
    h, m, start = room[:8], room[8:24], 0
    for k in range(len(ends)):
        copy(salt, h, 8)
        end = ends[k]
        size = salt[16]
        while True:
            for n in range(16):
                m[n] = salt[16]
            count = min(end - start, 128)
            for n in range(count):
                m[n >> 3] |= told[start + n] << (8 * (n & 7))
                size += salt[19]
            start += count
            if start >= end:
                break
            compress(h, m, size, salt[16], salt)
        compress(h, m, size, salt[17], salt)
        m[0], m[1] = h[0], h[1]
        for n in range(2, 16):
            m[n] = salt[16]
        copy(keyed, h, 8)
        compress(h, m, keyed[20], keyed[16], keyed)
        copy(seeded, m, 16)
        compress(h, m, seeded[16], keyed[17], keyed)
        out[2 * k], out[2 * k + 1] = h[0], h[1]


def beginning(size: int, key: int = 0, salt: bytes = bytes(16)) -> Any:
    """Return :func:`begun` as unsigned words, and constants: 0, all ones, 8, 1 and 128."""
    return np.array([*begun(size, key, salt), 0, MASK, 8, 1, 128], np.uint64)


@functools.cache
def machine() -> tuple[Callable[..., None], Callable[..., None]] | None:
    """Return the digests of words, and the secrets of keys, compiled; None without a compiler."""
    if not available():
        return None
    made = (compiled(each, "blake", nogil=True) for each in (digest_words, secrets))
    return next(made), next(made)
