"""What a shard remembers, as one value of Spark's state: the body of each of its keys.

A shelf is bytes::

    magic "cshelf1\\0" (8) | shards (4) | keys (4) | bytes of the names (8)
    names, as a list in JSON | last sequence number of each key (8 each) | end of each body (8 each)
    bodies, as calibrant.Table.bodies gives them
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from calibrant.errors import CorruptState, InvalidInput
from calibrant.recalibrate.keyed import Key

MAGIC: Final = b"cshelf1\0"
HEAD: Final = struct.Struct("<8sIIQ")


@dataclass
class Shelf:
    """The keys of a shard: of each the number of its last event, and its body.

    Examples
    --------
    >>> shelf = Shelf(64, {"a": 7}, {"a": b"body"})
    >>> Shelf.from_bytes(shelf.to_bytes(), 64) == shelf
    True
    """

    shards: int
    last: dict[Key, int] = field(default_factory=dict)
    bodies: dict[Key, bytes] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the shelf as one value."""
        names = json.dumps(list(self.last)).encode()
        bodies = [self.bodies[key] for key in self.last]
        last = np.fromiter(self.last.values(), "<i8", len(self.last)).tobytes()
        ends = np.cumsum([len(body) for body in bodies], dtype="<i8").tobytes()
        head = HEAD.pack(MAGIC, self.shards, len(bodies), len(names))
        return b"".join([head, names, last, ends, *bodies])

    @classmethod
    def from_bytes(cls, data: bytes, shards: int | None = None) -> Shelf:
        """Return the shelf whose :meth:`to_bytes` this is; refuse that of another sharding."""
        try:
            magic, told, count, length = HEAD.unpack_from(data)
            start = HEAD.size + length
            names = json.loads(data[HEAD.size : start])
            last, ends = np.frombuffer(data, "<i8", 2 * count, start).reshape(2, -1).tolist()
        except (ValueError, struct.error):
            raise CorruptState(f"state must be a shelf, got {len(data)} other bytes") from None
        first = start + 16 * count
        whole = magic == MAGIC and len(names) == count
        if not whole or len(data) != first + (ends[-1] if count else 0):
            raise CorruptState(f"state must be a shelf, got {len(data)} other bytes")
        if shards is not None and told != shards:
            raise InvalidInput(f"shards must be {told}, as at the first start, got {shards}")
        cuts = zip([0, *ends], ends, strict=False)
        bodies = [data[first + a : first + b] for a, b in cuts]
        return cls(told, dict(zip(names, last, strict=True)), dict(zip(names, bodies, strict=True)))
