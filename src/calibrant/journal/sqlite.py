"""A log in one file of SQLite."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from calibrant.errors import CorruptState, NotStored
from calibrant.journal.events import Event
from calibrant.journal.lock import Lock
from calibrant.journal.store import PAGE, VERSION, Line, Named, Pass, Snapshot

SCHEMA: Final = """
create table schema (version integer not null);
create table stream (
    number integer primary key, name text not null unique, settings text not null,
    body blob not null, gone real
);
create table event (
    seq integer primary key, stream integer not null, kind integer not null, id text not null,
    key text, x real not null, time real, answer blob not null, code integer not null,
    unique (stream, kind, id)
);
create table snapshot (
    stream integer not null, seq integer not null, shape text not null, body blob not null,
    primary key (stream, seq)
);
create table token (
    hash blob primary key, name text not null, scope text not null, streams text not null,
    made real not null, revoked real
);
"""
WAIT: Final = 60.0
"""Seconds that a process waits for others that write."""
EVENT: Final = "select seq, stream, kind, id, key, x, time, answer, code from event"
KEPT: Final = 2
"""Snapshots of a stream that are kept: the latest, and one before in case it is damaged."""


class SqliteStore:
    """A file that many processes may write in turn, or one owner.

    Every commit is synced: WAL with ``synchronous = FULL``.

    Parameters
    ----------
    path
        The file; made if it is not there.
    alone
        Whether no other process may add events meanwhile; None for who adds none.
    """

    def __init__(self, path: str | Path, *, alone: bool | None = False) -> None:
        self.path = Path(path)
        name = self.path.with_name(self.path.name + ".lock")
        self._lock = None if alone is None else Lock(name, alone=alone)
        self._turn, self._open = threading.RLock(), list[sqlite3.Connection]()
        try:
            with naming(self.path):
                self._write = self._connected()
                self._read = self._connected()
                self._set_up()
        except BaseException:
            self.close()
            raise

    def _connected(self) -> sqlite3.Connection:
        if not self.path.exists():
            self.path.touch(0o600)
        made = sqlite3.connect(
            self.path, timeout=WAIT, isolation_level=None, check_same_thread=False
        )
        self._open.append(made)
        made.execute("pragma journal_mode = wal")
        made.execute("pragma synchronous = full")
        return made

    def _set_up(self) -> None:
        with self.writing():
            there = self._write.execute("select name from sqlite_master").fetchall()
            if not there:
                for statement in SCHEMA.split(";\n"):
                    self._write.execute(statement)
                self._write.execute("insert into schema values (?)", (VERSION,))
            elif ("schema",) not in there:
                raise CorruptState(f"{self.path} must be a journal, got another database")
            (version,) = self._write.execute("select version from schema").fetchone()
        if version != VERSION:
            raise CorruptState(
                f"{self.path} must be of version {VERSION} or before, got {version}; "
                "it was written by a later release of calibrant"
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer for a while; what was written then is on disk, or none of it is."""
        with naming(self.path), self._turn:
            self._write.execute("begin immediate")
            try:
                yield
                self._write.execute("commit")
            except BaseException:
                if self._write.in_transaction:
                    self._write.execute("rollback")
                raise

    def add_events(self, events: Sequence[Event]) -> None:
        """Add events at the end of the log, within :meth:`writing`."""
        self._write.executemany("insert into event values (?, ?, ?, ?, ?, ?, ?, ?, ?)", events)

    # ------------------------------------------------------------------ reading

    def _rows(self, text: str, *values: Any) -> list[Any]:
        """Return what a question finds: on the writer's side within :meth:`writing`."""
        with naming(self.path):
            return self._reader().execute(text, values).fetchall()

    def _reader(self) -> sqlite3.Connection:
        return self._write if self._write.in_transaction and self._turn_is_mine() else self._read

    def _turn_is_mine(self) -> bool:
        return self._turn._is_owned()  # type: ignore[attr-defined, no-any-return]

    def last(self) -> int:
        """Return the place of the last event, or 0; one that was purged counts."""
        asked = "select max(coalesce((select max(seq) from event), 0), "
        asked += "coalesce((select max(seq) from snapshot), 0))"
        return int(self._rows(asked)[0][0])

    def tail(self, after: int, upto: int | None = None) -> Iterator[Event]:
        """Yield the events behind a place, in order."""
        most = (1 << 62) if upto is None else upto
        while True:
            rows = self._rows(
                f"{EVENT} where seq > ? and seq <= ? order by seq limit ?", after, most, PAGE
            )
            yield from map(Event._make, rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def events(self, stream: int, after: int, limit: int) -> list[Event]:
        """Return so many events of a stream behind a place."""
        asked = f"{EVENT} where stream = ? and seq > ? order by seq limit ?"
        return list(map(Event._make, self._rows(asked, stream, after, limit)))

    def names(self) -> Iterator[Named]:
        """Yield stream, kind and id of every event."""
        with naming(self.path):
            yield from self._read.execute("select stream, kind, id from event")

    def find(self, wanted: Iterable[Named]) -> dict[Named, Event]:
        """Return those of some events that are in the log."""
        with naming(self.path):
            asked, found = self._reader(), {}
            for name in wanted:
                row = asked.execute(
                    f"{EVENT} where stream = ? and kind = ? and id = ?", name
                ).fetchone()
                if row is not None:
                    found[name] = Event._make(row)
        return found

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

    # ------------------------------------------------------------------ writing

    def put_stream(self, line: Line) -> None:
        """Add a stream, or change one, within :meth:`writing`."""
        self._write.execute("insert or replace into stream values (?, ?, ?, ?, ?)", line)

    def purge(self, number: int) -> None:
        """Remove a stream with its events for good, within :meth:`writing`."""
        for table, column in (("event", "stream"), ("snapshot", "stream"), ("stream", "number")):
            self._write.execute(f"delete from {table} where {column} = ?", (number,))

    def put_snapshots(self, new: Sequence[Snapshot], upto: int) -> None:
        """Add snapshots; those of other streams hold up to ``upto`` now; within :meth:`writing`."""
        write = self._write
        write.executemany("insert or replace into snapshot values (?, ?, ?, ?)", new)
        for stream in {snapshot.stream for snapshot in new}:
            write.execute(
                "delete from snapshot where stream = ? and seq not in "
                "(select seq from snapshot where stream = ? order by seq desc limit ?)",
                (stream, stream, KEPT),
            )
        write.execute(
            "update snapshot set seq = ? where seq < ? and seq = "
            "(select max(seq) from snapshot other where other.stream = snapshot.stream)",
            (upto, upto),
        )

    def put_token(self, token: Pass) -> None:
        """Add a token, or change one, within :meth:`writing`."""
        self._write.execute("insert or replace into token values (?, ?, ?, ?, ?, ?)", token)

    def backup(self, path: str | Path) -> None:
        """Write a copy of the file while it is in use."""
        goal = sqlite3.connect(path)
        try:
            with naming(Path(path)), goal:
                source = self._connected()
                source.backup(goal, pages=1024)
                self._open.remove(source)
                source.close()
        finally:
            goal.close()

    def close(self) -> None:
        """Let go of the file."""
        for connection in self._open:
            connection.close()
        self._open.clear()
        if self._lock is not None:
            self._lock.close()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say of an error of SQLite in which file it happened."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise NotStored(f"{path}: another process must not write now, got {error}") from error
    except sqlite3.OperationalError as error:
        raise NotStored(f"{path}: cannot be written or read now: {error}") from error
    except sqlite3.DatabaseError as error:
        raise CorruptState(f"{path} must be a whole journal, got {error}") from error
