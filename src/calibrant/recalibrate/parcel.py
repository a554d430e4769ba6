"""Streams of keys as parcels: what one key remembers, without the settings that all have.

A parcel is made of words of eight bytes, little-endian::

    version (1 byte) | zeros (3) | words of the body (4) | open tickets (4) | corrections (4)
    body | tickets, a line each | corrections, two words each | digest (8)

The digest is BLAKE2b of what stands before it, salted with a mark of the settings: a parcel of a
table with other settings is refused like one that was altered.  Lines of tickets are those of
:class:`calibrant.core.desk.Desk`, of row 0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Mask, Words
from calibrant.errors import CorruptState, InvalidType
from calibrant.kernels import blake
from calibrant.recalibrate.heap import copied_parts

VERSION: Final = 2
OLD: Final = 1
"""The version of parcels whose bodies are of the first form; these are read for ever."""
HEAD: Final = 2
"""Words before the body."""
TAIL: Final = 1
"""Words after everything else: the digest."""
MANY: Final = 256
"""More parcels than these are hashed by machine code if there is a compiler."""
HALF: Final = (1 << 32) - 1


def mark_of(settings: dict[str, Any]) -> bytes:
    """Return sixteen bytes that tell settings from others."""
    text = json.dumps(settings, sort_keys=True, allow_nan=False).encode()
    return hashlib.blake2b(text, digest_size=16, person=b"parcel").digest()


def mark_of_model(made: str, max_open: int, settings: dict[str, Any]) -> bytes:
    """Return what tells the parcels of a model from those of others."""
    return mark_of({"made": made, "max_open": max_open} | settings)


def digests(words: Words, starts: Words, ends: Words, salt: bytes) -> Words:
    """Return the digest of each of many parts of an array."""
    machine = blake.machine() if len(starts) > MANY else None
    if machine is None:
        told, found = words.astype("<i8", copy=False).data.cast("B"), list[bytes]()
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True):
            found.append(hashlib.blake2b(told[8 * a : 8 * b], digest_size=8, salt=salt).digest())
        return np.frombuffer(b"".join(found), "<i8").astype(np.int64)
    begin = blake.beginning(8, 0, salt)
    return blake.hashed(machine, words, starts, ends, 8 * (ends - starts), begin)[:, 0]


@dataclass(frozen=True)
class Parcels:
    """Parcels one after the other in one array.

    Attributes
    ----------
    words
        The array.
    starts, ends
        Where each parcel starts, and where it ends.
    stride
        Words in the line of a ticket.
    """

    words: Words
    starts: Words
    ends: Words
    stride: int

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def bodies(self) -> tuple[Words, Words]:
        """Where the bodies start, and where they end."""
        first = self.starts + HEAD
        return first, first + (self.words[self.starts] >> 32)

    @property
    def old(self) -> Mask:
        """Which parcels have a body of the first form."""
        found: Mask = (self.words[self.starts] & HALF) == OLD
        return found

    @property
    def tickets(self) -> Words:
        """How many tickets each parcel has."""
        return self.words[self.starts + 1] & HALF

    @property
    def corrected(self) -> Words:
        """How many corrections each parcel has."""
        return (self.words[self.starts + 1] >> 32) & HALF

    @property
    def lines(self) -> Words:
        """The tickets of all parcels, a line each."""
        places = _spread(self.bodies[1], self.tickets, self.stride)
        found: Words = self.words[places[:, None] + np.arange(self.stride)]
        return found

    @property
    def corrections(self) -> Words:
        """The corrections of all parcels, a line of two words each."""
        places = _spread(self.ends - TAIL - 2 * self.corrected, self.corrected, 2)
        found: Words = self.words[places[:, None] + np.arange(2)]
        return found

    def write(self, tickets: Words, lines: Words, corrected: Words, corrections: Words) -> None:
        """Write all but the bodies and digests, for which there is room."""
        size = self.ends - self.starts - HEAD - TAIL - tickets * self.stride - 2 * corrected
        self.words[self.starts] = VERSION | size << 32
        self.words[self.starts + 1] = tickets | corrected << 32
        if len(lines):
            places = _spread(self.bodies[1], tickets, self.stride)
            self.words[places[:, None] + np.arange(self.stride)] = lines
        if len(corrections):
            places = _spread(self.ends - TAIL - 2 * corrected, corrected, 2)
            self.words[places[:, None] + np.arange(2)] = corrections

    def sealed_words(self, salt: bytes) -> Words:
        """Write the digests; return all words."""
        self.words[self.ends - 1] = digests(self.words, self.starts, self.ends - 1, salt)
        return self.words

    def sealed(self, salt: bytes) -> list[bytes]:
        """Write the digests; return the parcels."""
        data = self.sealed_words(salt).astype("<i8", copy=False).tobytes()
        cuts = zip((8 * self.starts).tolist(), (8 * self.ends).tolist(), strict=True)
        return [data[a:b] for a, b in cuts]

    @classmethod
    def opened(
        cls, names: Sequence[Any], parcels: Sequence[Any], stride: int, salt: bytes
    ) -> Parcels:
        """Read parcels; refuse the first that is not whole, and name its key."""
        for name, parcel in zip(names, parcels, strict=True):
            if not isinstance(parcel, (bytes, bytearray, memoryview)):
                told = f"got {type(parcel).__name__}"
                raise InvalidType(f"body of key {name!r} must be bytes, {told}")
        sizes = np.array([len(parcel) for parcel in parcels], np.int64)
        _refuse(names, sizes % 8 != 0, sizes)
        return cls.joined(parcels, stride).intact(names, salt)[1]

    @classmethod
    def joined(cls, parcels: Sequence[Any], stride: int) -> Parcels:
        """Return parcels, whole words each, one after the other."""
        ends = np.cumsum([len(parcel) // 8 for parcel in parcels], dtype=np.int64)
        words = np.frombuffer(b"".join(parcels), "<i8").astype(np.int64)
        return cls(words, np.concatenate([[0], ends[:-1]])[: len(ends)], ends, stride)

    def intact(self, names: Sequence[Any], salt: bytes, skip: bool = False) -> tuple[Mask, Parcels]:
        """Return which parcels are whole, and these; unless others are skipped, refuse the first.

        The array may end before a parcel does.
        """
        sizes, whole = 8 * (self.ends - self.starts), np.ones(len(self), bool)
        whole &= (sizes >= 8 * (HEAD + TAIL)) & (self.starts >= 0) & (self.ends <= len(self.words))
        some = self.chosen(whole)
        tickets, corrected, (first, last) = some.tickets, some.corrected, some.bodies
        fits = (some.old | ((some.words[some.starts] & HALF) == VERSION)) & (last >= first)
        fits &= last + tickets * self.stride + 2 * corrected + TAIL == some.ends
        whole[np.flatnonzero(whole)[~fits]] = False
        some = self.chosen(whole)
        same = digests(some.words, some.starts, some.ends - 1, salt) == some.words[some.ends - 1]
        whole[np.flatnonzero(whole)[~same]] = False
        if not skip:
            _refuse(names, ~whole, sizes)
        return whole, self.chosen(whole)

    def chosen(self, some: Mask) -> Parcels:
        """Return some of the parcels."""
        return Parcels(self.words, self.starts[some], self.ends[some], self.stride)

    def rewritten(self, words: Words, starts: Words, ends: Words) -> Parcels:
        """Return the same parcels, without their digests, with other bodies for the old ones."""
        old, (begin, end), sizes = self.old, self.bodies, self.ends - self.starts
        sizes[old] += ends - starts - (end - begin)[old]
        over = np.cumsum(sizes)
        made = Parcels(np.zeros(int(over[-1]), np.int64), over - sizes, over, self.stride)
        copied_parts(self.words, self.starts, np.full(len(self), HEAD), made.words, made.starts)
        made.words[made.starts[old]] = VERSION | (ends - starts) << 32
        (first, last), rest = made.bodies, self.ends - end
        copied_parts(self.words, end, rest, made.words, last)
        copied_parts(self.words, begin[~old], (end - begin)[~old], made.words, first[~old])
        copied_parts(words, starts, ends - starts, made.words, first[old])
        return made

    def without(self, number: int) -> Parcels:
        """Return all parcels but one."""
        return self.chosen(np.arange(len(self)) != number)


def _refuse(names: Sequence[Any], bad: Mask, sizes: Words) -> None:
    if bad.any():
        k = int(np.argmax(bad))
        raise CorruptState(
            f"body of key {names[k]!r} must be what a table with these settings gave, whole and "
            f"unaltered, got {int(sizes[k])} bytes that are not"
        )


def _spread(starts: Words, counts: Words, step: int) -> Words:
    """Return where the parts of each of many are, ``counts`` of them, a step apart."""
    if not counts.any():
        return np.empty(0, np.int64)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    found: Words = np.repeat(starts, counts) + step * (np.arange(len(first)) - first)
    return found
