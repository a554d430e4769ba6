"""Snapshots in pieces: none is so large that whoever writes waits for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from calibrant.errors import CorruptState
from calibrant.journal.store import Snapshot

SIZE: Final = 1 << 17
"""Bytes that are written in one transaction, about."""
DIGEST: Final = 16


class Piece(NamedTuple):
    """A part of a snapshot, and of how many."""

    stream: int
    seq: int
    part: int
    parts: int
    shape: str
    body: bytes


def cut(snapshots: Sequence[Snapshot], size: int = SIZE) -> Iterator[list[Piece]]:
    """Yield the pieces of snapshots, as many together as belong in one transaction.

    >>> [len(some) for some in cut([Snapshot(1, 5, "a", bytes(25)), Snapshot(2, 5, "a", b"")], 10)]
    [1, 1, 2]
    """
    waiting, room = list[Piece](), size
    for stream, seq, shape, body in snapshots:
        starts = range(0, max(len(body), 1), size)
        for part, start in enumerate(starts):
            some = body[start : start + size]
            if len(some) > room:
                yield waiting
                waiting, room = [], size
            waiting.append(Piece(stream, seq, part, len(starts), shape, some))
            room -= len(some)
    if waiting:
        yield waiting


def joined(pieces: Iterable[Piece]) -> list[Snapshot]:
    """Return the snapshots of which all pieces are there; those of one come in their order."""
    found = dict[tuple[int, int], list[Piece]]()
    for piece in pieces:
        found.setdefault(piece[:2], []).append(piece)
    whole = (some for some in found.values() if len(some) == some[0].parts)
    return [Snapshot(*some[0][:2], some[0].shape, b"".join(p.body for p in some)) for some in whole]


def closed(told: bytes) -> bytes:
    """Return bytes with their digest behind."""
    return told + hashlib.blake2b(told, digest_size=DIGEST).digest()


def opened(body: bytes) -> bytes:
    """Return what :func:`closed` got."""
    told, digest = body[:-DIGEST], body[-DIGEST:]
    if hashlib.blake2b(told, digest_size=DIGEST).digest() != digest:
        raise CorruptState("snapshot must be as it was written, got other bytes")
    return told
