"""State as bytes and as JSON: versioned, checksummed, no pickle.

A document is a *kind* with its version, a dictionary of plain settings and named arrays
of 64-bit words.  As bytes it has two parts, the *shape*, which is the same for all objects with
the same settings, and the *body*::

    magic (8) | length of the shape (4) | shape: JSON | body
    body: length of each array (4 each) | arrays, little-endian, by name | digest (16)

As a dictionary the arrays are lists of integers and the digest is of the same
bytes, so both forms carry exactly the same state and detect the same damage.

The digest is of the shape and of the body before it.  Files of the first format (another magic;
lengths in the JSON head) are read for ever, and never written.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.errors import CorruptState

MAGIC: Final = b"calibrn2"
FIRST_MAGIC: Final = b"calibrnt"
START: Final = len(MAGIC) + 4
DIGEST: Final = 16
STORED: Final = np.dtype("<i8")
WRONG: Final = (AttributeError, TypeError, ValueError, ArithmeticError, RecursionError)
"""What reading crafted data may run into; the last where it is nested too deep."""

Arrays = dict[str, Words]


@dataclass(frozen=True)
class Document:
    """A state to be stored.

    ``version`` is that of the kind, and of the first format where the document was read from it.

    Examples
    --------
    >>> document = Document("note", {"a": 1}, {"words": np.array([1, -2])})
    >>> Document.from_bytes(document.to_bytes(), "note").arrays["words"]
    array([ 1, -2])
    >>> Document.from_bytes(document.to_bytes()[:-1], "note")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    calibrant.errors.CorruptState: state must be whole and unaltered, got 120 bytes whose ...
    """

    kind: str
    settings: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)
    version: int = 1

    @functools.cached_property
    def shape(self) -> bytes:
        """Kind, version, settings and names of arrays, as text that says nothing of the state."""
        shape = {
            "kind": self.kind,
            "version": self.version,
            "settings": self.settings,
            "arrays": sorted(self.arrays),
        }
        return json.dumps(shape, sort_keys=True, allow_nan=False).encode()

    @functools.cached_property
    def origin(self) -> bytes:
        """The shape as it was read, by which what follows from settings may be remembered."""
        return self.shape

    def to_bytes(self) -> bytes:
        """Return the document as bytes; equal documents give equal bytes."""
        return bound_bytes(self.shape, self.arrays)

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, kind: str, version: int = 1
    ) -> Document:
        """Read a document of that kind back, or say what is wrong with the bytes."""
        return cls.read(data)._checked(kind, version)

    @classmethod
    def read(cls, data: bytes | bytearray | memoryview) -> Document:
        """Read a document of any kind back, or say what is wrong with the bytes."""
        data = _as_bytes(data)
        body, digest = data[:-DIGEST], data[-DIGEST:]
        if data[: len(MAGIC)] not in (MAGIC, FIRST_MAGIC) or len(data) < START + DIGEST:
            raise CorruptState(
                f"state must be bytes that to_bytes() gave, got {len(data)} bytes "
                f"starting with {data[:8]!r}"
            )
        if _digest(body) != digest:
            raise CorruptState(
                f"state must be whole and unaltered, got {len(data)} bytes whose checksum differs"
            )
        end = START + int.from_bytes(body[len(MAGIC) : START], "little")
        try:
            return cls._unbound(body, body[START:end], data.startswith(FIRST_MAGIC))
        except (*WRONG, KeyError) as error:
            raise CorruptState(f"state must be what to_bytes() gave, got {error}") from error

    @classmethod
    def _unbound(cls, body: bytes, origin: bytes, first: bool) -> Document:
        """Return the document of which these are all bytes but the digest, and the shape."""
        head, end = _parsed(origin), START + len(origin)
        if first:
            return cls(head["kind"], head["settings"], _arrays(body[end:], head["arrays"]))
        names = head["arrays"]
        start = end + 4 * len(names)
        lengths = np.frombuffer(body[end:start], "<u4").tolist()
        arrays = _arrays(body[start:], dict(zip(names, lengths, strict=True)))
        made = cls(head["kind"], head["settings"], arrays, head["version"])
        made.__dict__["origin"] = origin
        if len(_kinds) >= MOST_KINDS:
            _kinds.clear()
        _kinds[origin] = made.kind
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the document as JSON-ready data."""
        return {
            "kind": self.kind,
            "version": self.version,
            "settings": json.loads(self.shape)["settings"],
            "arrays": {name: array.tolist() for name, array in sorted(self.arrays.items())},
            "format": 2,
            "digest": self.to_bytes()[-DIGEST:].hex(),
        }

    @classmethod
    def from_dict(cls, data: Any, kind: str, version: int = 1) -> Document:
        """Read a document of that kind back, or say what is wrong with the data."""
        return cls.read_dict(data)._checked(kind, version)

    @classmethod
    def read_dict(cls, data: Any) -> Document:
        """Read a document of any kind back, or say what is wrong with the data."""
        try:
            head = _head(data)
            arrays = {str(name): _words(values) for name, values in head["arrays"].items()}
            document = cls(head["kind"], head["settings"], arrays, head["version"])
            first = data.get("format") is None
            digest = (_first_bytes(document) if first else document.to_bytes())[-DIGEST:].hex()
        except (*WRONG, KeyError) as error:
            raise CorruptState(f"state must be what to_dict() gave, got {error}") from error
        if data.get("digest") != digest:
            raise CorruptState("state must be unaltered, got data whose checksum differs")
        return document

    def _checked(self, kind: str, version: int) -> Document:
        if self.kind != kind:
            raise CorruptState(f"state must be of kind {kind!r}, got {self.kind!r}")
        if not 1 <= self.version <= version:
            raise CorruptState(
                f"state must be of version {version} or before, got {self.version!r}; "
                "it was written by a later release of calibrant"
            )
        return self


def bound_bytes(shape: bytes, arrays: Arrays) -> bytes:
    """Return the bytes of a document, given its shape and its arrays."""
    return joined(*begun(shape), arrays)


def begun(shape: bytes) -> tuple[bytes, Any]:
    """Return with what all documents of a shape begin, and the digest of that.

    A copy of the digest goes on with the rest.
    """
    begin = MAGIC + len(shape).to_bytes(4, "little") + shape
    return begin, hashlib.blake2b(begin, digest_size=DIGEST)


def joined(begin: bytes, digest: Any, arrays: Arrays) -> bytes:
    """Return the bytes of a document, given its beginning and its arrays."""
    names = sorted(arrays)
    lengths = b"".join(len(arrays[name]).to_bytes(4, "little") for name in names)
    # Large arrays are copied once.
    parts: list[Any] = [
        lengths,
        *(np.ascontiguousarray(arrays[name], STORED).data for name in names),
    ]
    hashed = digest.copy()
    for part in parts:
        hashed.update(part)
    return b"".join([begin, *parts, hashed.digest()])


def kind_of(data: Any) -> str:
    """Return of which kind a state is, given as bytes or as a dictionary.

    >>> kind_of(Document("note", {}).to_bytes()), kind_of(Document("note", {}).to_dict())
    ('note', 'note')
    """
    if isinstance(data, dict):
        return Document.read_dict(data).kind
    # A shape that was read before tells its kind; whether the rest is whole is seen in reading.
    told = _as_bytes(data)
    end = START + int.from_bytes(told[len(MAGIC) : START], "little")
    known = _kinds.get(told[START:end]) if told.startswith(MAGIC) else None
    return Document.read(told).kind if known is None else known


MOST_KINDS: Final = 256
_kinds: dict[bytes, str] = {}
"""By shape, of which kind it is."""


def _first_bytes(document: Document) -> bytes:
    """Return a document as bytes of the first format, of which its dictionary has the digest."""
    head = {
        "kind": document.kind,
        "version": document.version,
        "settings": document.settings,
        "arrays": {name: len(array) for name, array in document.arrays.items()},
    }
    text = json.dumps(head, sort_keys=True, allow_nan=False).encode()
    words = b"".join(document.arrays[k].astype("<i8").tobytes() for k in sorted(document.arrays))
    body = FIRST_MAGIC + len(text).to_bytes(4, "little") + text + words
    return body + _digest(body)


def _as_bytes(data: Any) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise CorruptState(f"state must be bytes, got {type(data).__name__}")
    return bytes(data)


@functools.lru_cache(maxsize=256)
def _parsed(text: bytes) -> dict[str, Any]:
    """Return what a head says; many documents have the same, so nobody may change it."""
    return _head(json.loads(text))


def _head(head: Any) -> dict[str, Any]:
    if not isinstance(head, dict) or not isinstance(head.get("kind"), str):
        raise TypeError("data without a kind")
    if type(head.get("version")) is not int:
        raise TypeError(f"version {head.get('version')!r}")
    if not isinstance(head["settings"], dict):
        raise TypeError("settings that are no dictionary")
    return head


def _arrays(words: bytes, lengths: dict[str, int]) -> dict[str, Words]:
    flat = np.frombuffer(words, STORED).astype(np.int64)
    if sum(lengths.values()) != len(flat) or min(lengths.values(), default=0) < 0:
        raise ValueError(f"{len(flat)} words where {lengths} were said to be")
    arrays, start = {}, 0
    for name in sorted(lengths):
        arrays[name] = flat[start : start + lengths[name]]
        start += lengths[name]
    return arrays


def _words(values: Any) -> Words:
    if not all(type(value) is int for value in values):
        raise TypeError("words that are no whole numbers")
    return np.array(values, np.int64)


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST).digest()
