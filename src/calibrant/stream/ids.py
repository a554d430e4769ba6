"""Forecasts that are known by an id, so that outcomes of later rows and files find them.

An id is kept as a number of 64 bits: of a million ids two share one with a chance of 3 in 100
million.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from calibrant.core.arrays import Words
from calibrant.stream.wording import shown


class Open(NamedTuple):
    """A forecast whose outcome has not come: its ticket, and what was said before and after."""

    ticket: int
    raw: float
    forecast: float
    mean: float


@dataclass
class Book:
    """Which ids wait for their outcome, and which have theirs.

    Attributes
    ----------
    open
        Forecasts that wait, by their ids.
    learned
        Ids whose outcome was learned.
    found, repeated
        Outcomes that found their forecast, and rows that said nothing new, in this run.
    """

    open: dict[int, Open] = field(default_factory=dict)
    learned: set[int] = field(default_factory=set)
    found: int = 0
    repeated: int = 0

    def __contains__(self, known: int | None) -> bool:
        return known in self.open or known in self.learned

    def __bool__(self) -> bool:
        return bool(self.open or self.learned)

    def note(self, ids: Sequence[int], rounds: Any, answers: Any) -> None:
        """Take note of rows that were forecast."""
        columns = answers.ticket, rounds.raw, answers.forecast, answers.mean
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for known, told, row in zip(ids, rounds.known.tolist(), rows, strict=True):
            if told:
                self.learned.add(known)
            else:
                self.open[known] = Open(*row)

    def settle(self, known: int) -> Open:
        """Return the forecast whose outcome came, and count it among those that are learned."""
        self.learned.add(known)
        self.found += 1
        return self.open.pop(known)

    def arrays(self) -> dict[str, Words]:
        """Return everything as words, to be stored."""
        values = np.array([each[1:] for each in self.open.values()], np.float64).reshape(-1, 3)
        return {
            "id_open": np.array(list(self.open), np.int64),
            "id_ticket": np.array([each.ticket for each in self.open.values()], np.int64),
            "id_values": np.ascontiguousarray(values.ravel()).view(np.int64),
            "id_learned": np.array(sorted(self.learned), np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Words]) -> Book | None:
        """Return the book that was stored, None if none was."""
        if "id_learned" not in arrays:
            return None
        values = arrays["id_values"].view(np.float64).reshape(-1, 3).tolist()
        rows = zip(arrays["id_ticket"].tolist(), values, strict=True)
        found = [Open(ticket, *row) for ticket, row in rows]
        opened = dict(zip(arrays["id_open"].tolist(), found, strict=True))
        return cls(opened, set(arrays["id_learned"].tolist()))


def number_of(value: Any) -> int | None:
    """Return the number that an id is kept as; None if there is no id.

    >>> number_of("a17") == number_of(" a17 "), number_of(17.0) == number_of("17"), number_of("")
    (True, True, None)
    """
    if value is None or value == "":
        return None
    return int.from_bytes(blake2b(shown(value).encode(), digest_size=8).digest(), signed=True)


def runs(ids: Sequence[int | None], book: Book) -> Iterator[tuple[bool, list[int]]]:
    """Yield rows that follow each other and are all new, or all seen before, also among the ids.

    >>> list(runs([1, 2, 1, 3], Book(learned={2})))
    [(True, [0]), (False, [1, 2]), (True, [3])]
    """
    fresh: set[int | None] = set()
    new = []
    for known in ids:
        new.append(known not in fresh and known not in book)
        fresh.add(known)
    for first, rows in groupby(range(len(ids)), key=lambda row: new[row]):
        yield first, list(rows)
