"""State as bytes and as JSON: versioned, checksummed, no pickle.

A document is a *kind*, a version, a dictionary of plain settings and named arrays
of 64-bit words.  As bytes::

    magic (8) | length of the head (4) | head: JSON | arrays, little-endian | digest (16)

As a dictionary the arrays are lists of integers and the digest is of the same
bytes, so both forms carry exactly the same state and detect the same damage.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import CorruptState

__all__ = ["VERSION", "Document"]

MAGIC: Final = b"calibrnt"
VERSION: Final = 1
DIGEST: Final = 16


@dataclass(frozen=True)
class Document:
    """A state to be stored.

    Examples
    --------
    >>> document = Document("note", {"a": 1}, {"words": np.array([1, -2])})
    >>> Document.from_bytes(document.to_bytes(), "note").arrays["words"]
    array([ 1, -2])
    >>> Document.from_bytes(document.to_bytes()[:-1], "note")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    calibrant.errors.CorruptState: state must be whole and unaltered, got 119 bytes whose ...
    """

    kind: str
    settings: dict[str, Any]
    arrays: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the document as bytes; equal documents give equal bytes."""
        head = {
            "kind": self.kind,
            "version": VERSION,
            "settings": self.settings,
            "arrays": {name: len(array) for name, array in self.arrays.items()},
        }
        text = json.dumps(head, sort_keys=True, allow_nan=False).encode()
        words = b"".join(self.arrays[name].astype("<i8").tobytes() for name in sorted(self.arrays))
        body = MAGIC + len(text).to_bytes(4, "little") + text + words
        return body + _digest(body)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, kind: str) -> Document:
        """Read a document of that kind back, or say what is wrong with the bytes."""
        data = _as_bytes(data)
        if not data.startswith(MAGIC) or len(data) < len(MAGIC) + 4 + DIGEST:
            raise CorruptState(
                f"state must be bytes that to_bytes() gave, got {len(data)} bytes "
                f"starting with {data[:8]!r}"
            )
        body, digest = data[:-DIGEST], data[-DIGEST:]
        if _digest(body) != digest:
            raise CorruptState(
                f"state must be whole and unaltered, got {len(data)} bytes whose checksum differs"
            )
        start = len(MAGIC) + 4
        end = start + int.from_bytes(body[len(MAGIC) : start], "little")
        with _refusing("to_bytes()"):
            head = _head(json.loads(body[start:end]), kind)
            return cls(kind, head["settings"], _arrays(body[end:], head["arrays"]))

    def to_dict(self) -> dict[str, Any]:
        """Return the document as JSON-ready data."""
        return {
            "kind": self.kind,
            "version": VERSION,
            "settings": self.settings,
            "arrays": {name: array.tolist() for name, array in sorted(self.arrays.items())},
            "digest": self.to_bytes()[-DIGEST:].hex(),
        }

    @classmethod
    def from_dict(cls, data: Any, kind: str) -> Document:
        """Read a document of that kind back, or say what is wrong with the data."""
        with _refusing("to_dict()"):
            head = _head(data, kind)
            arrays = {str(name): _words(values) for name, values in head["arrays"].items()}
            document = cls(kind, head["settings"], arrays)
            digest = document.to_bytes()[-DIGEST:].hex()
        if data.get("digest") != digest:
            raise CorruptState("state must be unaltered, got data whose checksum differs")
        return document


@contextmanager
def _refusing(source: str) -> Iterator[None]:
    """Say of anything that cannot be read that it is not what ``source`` gave."""
    try:
        yield
    except CorruptState:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise CorruptState(f"state must be what {source} gave, got {error}") from error


def _as_bytes(data: Any) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise CorruptState(f"state must be bytes, got {type(data).__name__}")
    return bytes(data)


def _head(head: Any, kind: str) -> dict[str, Any]:
    if not isinstance(head, dict) or head.get("kind") != kind:
        found = head.get("kind") if isinstance(head, dict) else type(head).__name__
        raise CorruptState(f"state must be of kind {kind!r}, got {found!r}")
    if head.get("version") != VERSION:
        raise CorruptState(
            f"state must be of version {VERSION}, got {head.get('version')!r}; "
            "it was written by another release of calibrant"
        )
    if not isinstance(head["settings"], dict):
        raise TypeError("settings that are no dictionary")
    return head


def _arrays(words: bytes, lengths: dict[str, int]) -> dict[str, NDArray[np.int64]]:
    flat = np.frombuffer(words, "<i8").astype(np.int64)
    if sum(lengths.values()) != len(flat) or min(lengths.values(), default=0) < 0:
        raise ValueError(f"{len(flat)} words where {lengths} were said to be")
    cuts = np.cumsum([lengths[name] for name in sorted(lengths)])
    return dict(zip(sorted(lengths), np.split(flat, cuts[:-1]) if len(cuts) else [], strict=True))


def _words(values: Any) -> NDArray[np.int64]:
    if not all(type(value) is int for value in values):
        raise TypeError("words that are no whole numbers")
    return np.array(values, np.int64)


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST).digest()
