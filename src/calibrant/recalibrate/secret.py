"""From a seed and a key to the keys of all coins."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from calibrant.core import check
from calibrant.errors import InvalidType


class Chosen(bytes):
    """A secret that follows from a seed: whoever knows the seed knows the coins."""


def secret_of(seed: Any, key: Any) -> bytes:
    """Return sixteen bytes that fix every draw; entropy of the system where ``seed`` is None.

    >>> secret_of(7, None) == secret_of(7, None), secret_of(7, "a") == secret_of(7, "b")
    (True, False)
    """
    if seed is None:
        seeded = secrets.token_bytes(32)
    else:
        seeded = b"seed %d" % check.whole(seed, "seed", low=-(1 << 127), high=1 << 127)
    if key is not None and (not isinstance(key, (str, int)) or isinstance(key, bool)):
        raise InvalidType(f"key must be a string or a whole number, got {key!r}")
    named = b"" if key is None else repr(key).encode()
    salt = hashlib.blake2b(named, digest_size=16).digest()
    made = hashlib.blake2b(seeded, key=salt, digest_size=16).digest()
    return made if seed is None else Chosen(made)


def block_key(secret: bytes, block: int) -> int:
    """Return the 63-bit key of a bucket's coins; one tells nothing about another."""
    hashed = hashlib.blake2b(block.to_bytes(8, "little"), key=secret, digest_size=8).digest()
    return int.from_bytes(hashed, "little") >> 1


def fingerprint(secret: bytes, *shape: object) -> str:
    """Return what may be shown of a secret, to tell whose ticket it is.

    ``shape`` is whatever else a ticket depends on: the calibrator, the buckets, the prior.
    """
    return told_fingerprint(secret, repr(shape).encode())


def told_fingerprint(secret: bytes, shape: bytes) -> str:
    """Return the same for a shape whose text is known."""
    hashed = hashlib.blake2b(secret, digest_size=8, person=b"ticket")
    hashed.update(shape)
    return hashed.hexdigest()
