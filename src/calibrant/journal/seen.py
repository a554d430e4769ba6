"""Which ids were certainly never seen: spares look-ups in the log."""

from __future__ import annotations

from array import array
from typing import Final

FIRST: Final = 1 << 12
"""Words of the first layer, each of 64 bits."""
FILL: Final = 4
"""Ids for each word of a full layer: one in a hundred that were not seen is taken for seen."""


class Seen:
    """A filter of ids: what was added is always found, anything else hardly ever.

    An id sets three bits of one word, chosen by its hash, which differs from process to process so
    that nobody can choose ids that collide.  A full layer stays as it is and gets another, twice
    as large, beside it.

    >>> seen = Seen()
    >>> seen.add("a")
    >>> "a" in seen, "b" in seen
    (True, False)
    """

    __slots__ = ("_layers", "_room")

    def __init__(self) -> None:
        self._layers: list[array[int]] = []
        self._room = 0

    def __contains__(self, item: object) -> bool:
        h = hash(item)
        bits = 1 << (h >> 40 & 63) | 1 << (h >> 46 & 63) | 1 << (h >> 52 & 63)
        return any(words[h & (len(words) - 1)] & bits == bits for words in self._layers)

    def add(self, item: object) -> None:
        """Add an id."""
        if not self._room:
            size = 2 * len(self._layers[-1]) if self._layers else FIRST
            self._layers.append(array("Q", bytes(8 * size)))
            self._room = FILL * size
        h, words = hash(item), self._layers[-1]
        words[h & (len(words) - 1)] |= (
            1 << (h >> 40 & 63) | 1 << (h >> 46 & 63) | 1 << (h >> 52 & 63)
        )
        self._room -= 1
