"""Tickets that carry their groups, the counter that keeps their names, and how names are stored."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final, Self

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.core.grid import Grid
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import CorruptState, ForeignTicket
from calibrant.groups.names import Name, Period, names_of
from calibrant.recalibrate.counter import Counter

FEW: Final = 64
"""Tuples of names up to which nothing is given back."""

Names = tuple[Name, ...]


class GroupIssuer(Issuer):
    """What the tickets of one stream with groups have in common.

    ``names`` holds the groups of open tickets by key: a tuple that many tickets share is there
    once.
    """

    __slots__ = ("names",)

    def __init__(self, fingerprint: str, grid: Grid) -> None:
        super().__init__(fingerprint, grid)
        self.names: dict[int, Names] = {}


class GroupTicket(Ticket):
    """A forecast that waits for its outcome, and the groups in which it will count.

    Attributes
    ----------
    groups
        The names of its groups, those from rules included.
    """

    __slots__ = ("groups",)

    groups: Names

    @classmethod
    def revived(cls, issuer: Any, id: int | str, number: int, fields: tuple[Any, ...]) -> Self:
        """Return a ticket again from what the desk kept."""
        made = super().revived(issuer, id, number, fields[:-1])
        made.groups = issuer.names[fields[-1]]
        return made

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket: the key of its names last."""
        return *super().fields, key_of_names(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as JSON-ready data, for callers that store it."""
        return super().to_dict() | {"groups": [written(name) for name in self.groups]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read a ticket back from what :meth:`to_dict` gave."""
        made = super().from_dict(data)
        try:
            made.groups = names_again(data["groups"])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptState(f"ticket must be what to_dict() gave, got {error}") from error
        return made


class GroupCounter(Counter[Any]):
    """Open tickets of a stream with groups, and their names.

    The names of tickets that are closed are dropped once they are as many as those in use.
    """

    __slots__ = ("_most",)

    def __init__(self, *told: Any) -> None:
        super().__init__(*told)
        self._most = FEW

    def file_latest(self) -> None:
        """Put the latest ticket on the desk, and its names into the table."""
        if self.latest is not None:
            names: dict[int, Names] = self.issuer.names
            names[key_of_names(self.latest.groups)] = self.latest.groups
            super().file_latest()
            if len(names) > self._most:
                self.issuer.names = kept = self.names_in_use()
                self._most = FEW + 2 * len(kept)

    def find(self, ticket: Any, issued: int) -> GroupTicket:
        """Return an open ticket given itself or its id, or raise what says why there is none."""
        if isinstance(ticket, Ticket) and not isinstance(ticket, GroupTicket):
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {ticket!r}")
        found: GroupTicket = super().find(ticket, issued)
        return found

    def names_in_use(self) -> dict[int, Names]:
        """Return the names of the tickets on the desk by key, in order."""
        keys = np.unique(self.desk.words()[:, -1]).tolist()
        return {key: self.issuer.names[key] for key in keys}


@functools.lru_cache(maxsize=4096)
def key_of_names(names: Names) -> int:
    """Return 63 bits of a hash of names in their order.

    Two tuples share a key with probability 2**-63.

    >>> key_of_names(("a", 3)) == key_of_names(("a", "3"))
    False
    """
    text = json.dumps(names).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def written(name: Name) -> Any:
    """Return a name as JSON-ready data."""
    return list(name) if isinstance(name, Period) else name


def names_again(parts: Any) -> Names:
    """Return the names that were written so."""
    return names_of([Period(*part) if isinstance(part, list) else part for part in parts])


def text_words(data: Any) -> Words:
    """Return JSON-ready data as words.

    >>> text_of(text_words(["a", ["month", 3]]))
    ['a', ['month', 3]]
    """
    text = json.dumps(data).encode()
    return np.frombuffer(text.ljust(-(-len(text) // 8) * 8), "<i8").astype(np.int64)


def text_of(words: Words) -> Any:
    """Return the data of which :func:`text_words` made words."""
    return json.loads(words.astype("<i8").tobytes())


def recent_words(recent: Iterable[tuple[float, int]]) -> Words:
    """Return draws and outcomes as words, two a round."""
    rounds = list(recent)
    words = np.empty((len(rounds), 2), np.int64)
    words.view(np.float64)[:, 0] = [value for value, _ in rounds]
    words[:, 1] = [outcome for _, outcome in rounds]
    return words.reshape(-1)


def recent_of(words: Words) -> list[tuple[float, int]]:
    """Return the draws and outcomes of which :func:`recent_words` made words."""
    rounds = np.ascontiguousarray(words.reshape(-1, 2))
    values, outcomes = rounds.view(np.float64)[:, 0].tolist(), rounds[:, 1].tolist()
    return [
        (check.probability(value), check.outcome(outcome))
        for value, outcome in zip(values, outcomes, strict=True)
    ]
