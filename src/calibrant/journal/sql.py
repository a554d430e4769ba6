"""What both databases are asked in the same words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from calibrant.journal.events import Event
from calibrant.journal.store import PAGE, Line, Pass, Snapshot

COLUMNS: Final = "seq, stream, kind, id, key, x, time, answer, code"
EVENT: Final = f"select {COLUMNS} from event"
KEPT: Final = 2
"""Snapshots of a stream that are kept: the latest, and one before in case it is damaged."""
TABLES: Final = (("event", "stream"), ("snapshot", "stream"), ("stream", "number"))
"""Where a stream is, and the column that names it."""


class Sql(ABC):
    """Reads a store by SQL; ``mark`` stands for a value."""

    mark: ClassVar[str]

    @abstractmethod
    def _rows(self, text: Any, *values: Any) -> list[Any]:
        """Return what a question finds."""

    def _asked(self, text: str, *values: Any) -> list[Any]:
        return self._rows(text.replace("?", self.mark), *values)

    def last(self) -> int:
        """Return the place of the last event, or 0; one that was purged counts."""
        found = (self._rows(f"select max(seq) from {table}") for table in ("event", "snapshot"))
        return max(rows[0][0] or 0 for rows in found)

    def tail(self, after: int, upto: int | None = None) -> Iterator[Event]:
        """Yield the events behind a place, in order."""
        most = (1 << 62) if upto is None else upto
        rows: list[Any] = [None] * PAGE
        while len(rows) == PAGE:
            asked = f"{EVENT} where seq > ? and seq <= ? order by seq limit ?"
            rows = self._asked(asked, after, most, PAGE)
            yield from map(Event._make, rows)
            after = rows[-1][0] if rows else after

    def events(self, stream: int, after: int, limit: int) -> list[Event]:
        """Return so many events of a stream behind a place."""
        asked = f"{EVENT} where stream = ? and seq > ? order by seq limit ?"
        return list(map(Event._make, self._asked(asked, stream, after, limit)))

    def streams(self) -> list[Line]:
        """Return every stream, also deleted ones."""
        asked = "select number, name, settings, body, gone from stream order by number"
        return list(map(Line._make, self._rows(asked)))

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots, the latest first."""
        asked = "select stream, seq, shape, body from snapshot order by seq desc"
        return list(map(Snapshot._make, self._rows(asked)))

    def tokens(self) -> list[Pass]:
        """Return every token."""
        asked = "select hash, name, scope, streams, made, revoked from token order by made"
        return list(map(Pass._make, self._rows(asked)))
