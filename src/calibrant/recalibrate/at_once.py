"""States of binary streams whose shape was read before, read without a document.

Services load, play and store many states of a few shapes.  What follows from a shape is remembered,
and so is the digest of its text: what is left is a body.  Whatever is unusual is left to
:meth:`calibrant.recalibrate.stream.Stream.from_bytes`, which also says what is wrong.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from calibrant.calibrators.arena import Arena
from calibrant.core.codec import DIGEST, MAGIC, START, Document, begun
from calibrant.kernels import bodies
from calibrant.recalibrate.secret import APART, Secret
from calibrant.recalibrate.spec import Spec

ARRAYS: Final = ["body", "tickets"]
"""Arrays of a stream that has no corrections, in the order in which they are stored."""
LENGTHS: Final = 4 * len(ARRAYS)
NO_TICKETS: Final = bytes(4)
"""Length of the tickets, where none are open."""
MOST: Final = 256
OFTEN: Final = 1023
"""In rounds whose number has all of these bits, plain steps look whether there is machine code; so
do states of one spec that are read, of which each may play few rounds."""


class Known(NamedTuple):
    """What follows from the text of a shape."""

    begin: bytes
    kind: str
    spec: Spec
    max_open: int
    origin: str | None
    digest: Any


_known: dict[bytes, Known] = {}
"""By all that stands before the lengths of arrays."""
_latest: dict[str, Known] = {}
"""Of each kind the one that was read last: to compare a text is quicker than to look it up."""


def remember(document: Document, spec: Spec, max_open: int, version: int) -> None:
    """Remember the shape of a document that was read, if it says how states are written today."""
    usual = sorted(document.arrays) == ARRAYS and APART not in document.settings
    today = document.version == version and document.origin == document.shape
    if spec.lists is None or not usual or not today:
        return
    if len(_known) >= MOST:
        _known.clear()
    begin, digest = begun(document.shape)
    told = document.settings["secret_from"]
    _known[begin] = Known(begin, document.kind, spec, max_open, told, digest)


def read(kind: str, data: bytes) -> tuple[Spec, Secret, int, Arena] | None:
    """Return spec, secret, cap on open tickets and row of a state; None if it is unusual."""
    known = _latest.get(kind)
    if known is None or not data.startswith(known.begin):
        known = _known.get(data[: START + int.from_bytes(data[len(MAGIC) : START], "little")])
        if known is None or known.kind != kind:
            return None
        _latest[kind] = known
    end = len(known.begin)
    size, start = int.from_bytes(data[end : end + 4], "little"), end + LENGTHS
    if data[end + 4 : start] != NO_TICKETS or len(data) != start + 8 * size + DIGEST:
        return None
    digest = known.digest.copy()
    digest.update(data[end:-DIGEST])
    if digest.digest() != data[-DIGEST:]:
        return None
    spec = known.spec
    look_for_machine(spec)
    words: Any = _words(spec, data[start:-DIGEST])
    if words is None:
        return None
    arena, secret = spec.arena_with(words)
    return spec, Secret.of(secret, known.origin), known.max_open, arena


def look_for_machine(spec: Spec) -> None:
    """Take over machine code, if there is some, once many states of a spec were read."""
    if spec.ready is None:
        read = spec.body.read = spec.body.read + 1
        if read & OFTEN == OFTEN and spec.transform is not None and spec.is_made():
            spec.compile()


def with_length(body: bytes) -> bytes:
    """Return what follows the shape if there are no open tickets, but for the digest."""
    return (len(body) >> 3).to_bytes(4, "little") + NO_TICKETS + body


def _words(spec: Spec, body: bytes) -> Any:
    """Return the shared part and the row of a body: an array once steps are compiled."""
    if spec.ready is not None and bodies.made:
        return spec.body.flat(np.frombuffer(body, np.int64), False, bodies.made[0].unpack)
    assert spec.lists is not None
    return spec.lists.read(body)
