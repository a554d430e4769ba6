"""Commit and reveal: a draw is fixed when its forecast is made, and told with the outcome.

::

    the forecast is answered with    commitment = SHA-256(salt, how many numbers, numbers, id)
    the outcome is answered with     salt and numbers: whoever kept the commitment can compare

The salt follows from the secret of the stream and from the place of the event in the log, so that
a replay gives the same; nobody can find the numbers from the commitment without it.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Sequence
from typing import Final

SALT: Final = 32
"""Bytes of a salt."""


def salt_of(secret: bytes, seq: int, id: str) -> bytes:
    """Return the salt of the forecast that is event ``seq`` of a log."""
    data = seq.to_bytes(8, "little") + id.encode()
    return hashlib.blake2b(data, key=secret, digest_size=SALT, person=b"commitment").digest()


def commitment(salt: bytes, id: str, drawn: Sequence[float]) -> str:
    """Return what is told of numbers that were drawn, before they are: 64 hexadecimal digits.

    SHA-256 of the salt, of how many numbers there are (four bytes), of the numbers (eight bytes
    each, IEEE 754), all with the least byte first, and of the id in UTF-8.

    >>> commitment(bytes(32), "order 1", [0.25])[:16]
    'c60ee3d72d16aecb'
    """
    numbers = struct.pack(f"<I{len(drawn)}d", len(drawn), *drawn)
    return hashlib.sha256(salt + numbers + id.encode()).hexdigest()


def is_kept(told: str, salt: str, id: str, drawn: Sequence[float]) -> bool:
    """Say whether a commitment was to these numbers; the salt is in hexadecimal digits.

    >>> is_kept(commitment(bytes(32), "order 1", [0.25]), "00" * 32, "order 1", [0.75])
    False
    """
    try:
        known = bytes.fromhex(salt)
    except ValueError:
        return False
    return len(known) == SALT and hmac.compare_digest(
        commitment(known, id, drawn).encode(), told.encode()
    )
