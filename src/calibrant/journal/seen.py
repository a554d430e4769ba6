"""Which ids were certainly never seen: spares look-ups in the log."""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice
from typing import Final

import numpy as np

from calibrant.errors import CorruptState
from calibrant.journal.parts import closed, opened

FIRST: Final = 1 << 12
"""Words of the first layer, each of 64 bits."""
LARGEST: Final = 1 << 20
"""Words of a layer, at most."""
FILL: Final = 4
"""Ids for each word of a full layer: one in a hundred that were not seen is taken for seen."""
OFTEN: Final = 16
"""A filter is written again when one in this many ids is new."""
PIECE: Final = 10_000
"""Ids that are added together, at most."""
MANY: Final = 100
"""Ids that are worth being added together."""
KEY: Final = 16
HEAD: Final = KEY + 16

Name = tuple[int, int, str]
Mark = tuple[int, int]
"""Hash of an id, and the bits that it sets."""


class Seen:
    """A filter of ids: what was added is always found, anything else hardly ever.

    An id sets three bits of one word, chosen by its hash under a random key, so that nobody can
    choose ids that collide.  A full layer stays as it is and gets another, twice as large, beside
    it.

    >>> seen = Seen()
    >>> seen.add((1, 0, "a"))
    >>> (1, 0, "a") in seen, (1, 0, "b") in seen
    (True, False)
    """

    __slots__ = ("_hash", "_key", "_layers", "_room", "_saved", "count")

    def __init__(self) -> None:
        self._set_key(secrets.token_bytes(KEY))
        self._layers: list[array[int]] = []
        self._room = self.count = self._saved = 0

    def _set_key(self, key: bytes) -> None:
        # A copy of what has read the key already takes half the time of reading it again.
        self._key, self._hash = key, blake2b(digest_size=8, key=key)

    def mark(self, name: Name) -> Mark:
        """Return an id's hash and its bits."""
        h = int.from_bytes(self._digest(name), "little")
        return h, 1 << (h >> 40 & 63) | 1 << (h >> 46 & 63) | 1 << (h >> 52 & 63)

    def _digest(self, name: Name) -> bytes:
        hashed = self._hash.copy()
        hashed.update(f"{name[0]} {name[1]} {name[2]}".encode("utf-8", "surrogatepass"))
        return hashed.digest()

    def __contains__(self, name: Name) -> bool:
        return self.holds(self.mark(name))

    def holds(self, mark: Mark) -> bool:
        """Say whether an id may have been added, by its mark."""
        h, bits = mark
        return any(words[h & (len(words) - 1)] & bits == bits for words in self._layers)

    def add(self, name: Name) -> None:
        """Add an id."""
        self.put(self.mark(name))

    def add_all(self, names: Iterable[Name]) -> None:
        """Add ids; of many those of a piece are added together, which is faster."""
        rest = iter(names)
        while some := list(islice(rest, PIECE)):
            if len(some) < MANY:
                for name in some:
                    self.put(self.mark(name))
            else:
                self._put_together(some)

    def _put_together(self, names: list[Name]) -> None:
        left = np.frombuffer(b"".join(map(self._digest, names)), "<u8").astype(np.uint64)
        while len(left):
            words = self._open_layer()
            h, left = left[: self._room], left[self._room :]
            bits = np.zeros(len(h), np.uint64)
            for shift in (40, 46, 52):
                bits |= np.uint64(1) << (h >> np.uint64(shift) & np.uint64(63))
            places = (h & np.uint64(len(words) - 1)).astype(np.int64)
            np.bitwise_or.at(np.frombuffer(words, np.uint64), places, bits)
            self._room -= len(h)
            self.count += len(h)

    def _open_layer(self) -> array[int]:
        """Return the layer that has room, which may be a new one."""
        if not self._room:
            size = _size(len(self._layers))
            self._layers.append(array("Q", bytes(8 * size)))
            self._room = FILL * size
        return self._layers[-1]

    def put(self, mark: Mark) -> None:
        """Add an id by its mark."""
        h, bits = mark
        words = self._open_layer()
        words[h & (len(words) - 1)] |= bits
        self._room -= 1
        self.count += 1

    def is_due(self) -> bool:
        """Say whether enough is new for a filter of this size to be written again."""
        return self.count > self._saved + self.count // OFTEN

    def body(self) -> bytes:
        """Return the filter as bytes, for a snapshot."""
        self._saved = self.count
        head = self._key, self.count.to_bytes(8, "little"), self._room.to_bytes(8, "little")
        return closed(b"".join((*head, *(words.tobytes() for words in self._layers))))

    @classmethod
    def from_body(cls, body: bytes) -> Seen:
        """Return the filter of which :meth:`body` told."""
        told = opened(body)
        made, start = cls(), HEAD
        made._set_key(told[:KEY])
        made.count = made._saved = int.from_bytes(told[KEY : KEY + 8], "little")
        made._room = int.from_bytes(told[KEY + 8 : HEAD], "little")
        while start < len(told):
            end = start + 8 * _size(len(made._layers))
            if end > len(told):
                raise CorruptState("filter of ids must have whole layers, got a part of one")
            made._layers.append(array("Q", told[start:end]))
            start = end
        return made


def _size(layer: int) -> int:
    """Return the words of a layer by its number."""
    return min(FIRST << layer, LARGEST)
