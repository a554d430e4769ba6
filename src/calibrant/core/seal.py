"""Keyed digests: whoever lacks the key can neither write nor alter a state unnoticed.

Sealed bytes are those of a state, as ever, between a magic and a digest::

    magic (8) | state | BLAKE2b of magic and state, keyed (32)

Sealed data is the dictionary of a state with that digest, of the same bytes, as ``"seal"``.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, Final

from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput, InvalidType

MAGIC: Final = b"calibrns"
DIGEST: Final = 32
LEAST_KEY: Final = 16
"""Bytes that a key must have."""


def sealed(data: bytes, key: bytes | None) -> bytes:
    """Return a state's bytes with the digest of a key, or as they are without one.

    >>> state = Document("note", {}).to_bytes()
    >>> key = bytes(32)
    >>> opened(sealed(state, key), key) == state
    True
    """
    return data if key is None else MAGIC + data + _digest(data, key)


def opened(data: Any, key: bytes | None) -> Any:
    """Return a state's bytes without the digest, if that is of the key."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        return data
    whole = bytes(data)
    if not _to_open(whole.startswith(MAGIC), key):
        return data
    state, digest = whole[len(MAGIC) : -DIGEST], whole[-DIGEST:]
    _compare(_digest(state, key), digest)
    return state


def sealed_data(data: dict[str, Any], state: bytes, key: bytes | None) -> dict[str, Any]:
    """Return a state's dictionary with the digest of a key, or as it is without one."""
    return data if key is None else data | {"seal": _digest(state, key).hex()}


def opened_data(data: Any, key: bytes | None) -> Any:
    """Return a state's dictionary without the digest, if that is of the key."""
    if not isinstance(data, dict) or not _to_open("seal" in data, key):
        return data
    state = {name: value for name, value in data.items() if name != "seal"}
    told = data["seal"] if isinstance(data["seal"], str) else ""
    _compare(_digest(Document.read_dict(state).to_bytes(), key).hex().encode(), told.encode())
    return state


def _to_open(is_sealed: bool, key: bytes | None) -> bool:
    """Say whether there is a seal to be opened; raise where one of seal and key is missing."""
    if is_sealed and key is None:
        raise CorruptState("state must be read with authenticate=, the key it was written with")
    if key is not None and not is_sealed:
        raise CorruptState("state must be one that was written with authenticate=, got one without")
    return is_sealed


def _digest(state: bytes, key: Any) -> bytes:
    if not isinstance(key, (bytes, bytearray)):
        raise InvalidType(f"authenticate must be bytes, got {type(key).__name__}")
    if len(key) < LEAST_KEY:
        raise InvalidInput(f"authenticate must have {LEAST_KEY} bytes or more, got {len(key)}")
    # A key of any length, for BLAKE2b takes 64 bytes at most.
    short = hashlib.blake2b(key, person=b"calibrant seal").digest()
    return hashlib.blake2b(MAGIC + state, key=short, digest_size=DIGEST).digest()


def _compare(own: bytes, told: bytes) -> None:
    if not hmac.compare_digest(own, told):
        raise CorruptState("state must be unaltered and of this key, got another keyed digest")
