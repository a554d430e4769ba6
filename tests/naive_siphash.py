"""SipHash as its paper has it, for messages of any length and any numbers of rounds.

Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012, section 2.
"""

from __future__ import annotations

WORD = 1 << 64


def turned(x: int, bits: int) -> int:
    return (x << bits | x >> 64 - bits) % WORD


def sip_round(v: list[int]) -> None:
    v[0] = (v[0] + v[1]) % WORD
    v[1] = turned(v[1], 13)
    v[1] ^= v[0]
    v[0] = turned(v[0], 32)
    v[2] = (v[2] + v[3]) % WORD
    v[3] = turned(v[3], 16)
    v[3] ^= v[2]
    v[0] = (v[0] + v[3]) % WORD
    v[3] = turned(v[3], 21)
    v[3] ^= v[0]
    v[2] = (v[2] + v[1]) % WORD
    v[1] = turned(v[1], 17)
    v[1] ^= v[2]
    v[2] = turned(v[2], 32)


def siphash(key: bytes, message: bytes, c: int = 2, d: int = 4) -> int:
    """SipHash-c-d of a message under a key of sixteen bytes."""
    k = [int.from_bytes(key[i : i + 8], "little") for i in (0, 8)]
    letters = b"somepseudorandomlygeneratedbytes"
    v = [k[i % 2] ^ int.from_bytes(letters[8 * i : 8 * i + 8], "big") for i in range(4)]
    last = message[len(message) // 8 * 8 :]
    padded = (
        message[: len(message) - len(last)] + last.ljust(7, b"\0") + bytes([len(message) % 256])
    )
    for i in range(0, len(padded), 8):
        m = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= m
        for _ in range(c):
            sip_round(v)
        v[0] ^= m
    v[2] ^= 0xFF
    for _ in range(d):
        sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]
