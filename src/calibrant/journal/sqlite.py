"""A log in one file of SQLite."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from calibrant.errors import CorruptState, NotStored
from calibrant.journal.events import Event
from calibrant.journal.lock import Lock
from calibrant.journal.sql import EVENT, Store
from calibrant.journal.store import Named
from calibrant.journal.vault import Vault

WAIT: Final = 60.0
"""Seconds that a process waits for others that write."""


class SqliteStore(Store):
    """A file that many processes may write in turn, or one owner.

    Every commit is synced: WAL with ``synchronous = FULL``.

    Parameters
    ----------
    path
        The file; made if it is not there.
    alone
        Whether no other process may add events meanwhile; None for who adds none.
    old
        Whether tables of an earlier version will do.
    vault
        Seals what holds secrets.
    """

    mark = "?"
    types: ClassVar = {
        "big": "integer",
        "int": "integer",
        "small": "integer",
        "real": "real",
        "blob": "blob",
        "epoch": "",
        "first": "",
    }

    def __init__(
        self,
        path: str | Path,
        *,
        alone: bool | None = False,
        old: bool = False,
        vault: Vault | None = None,
    ) -> None:
        self.path, self.vault = Path(path), vault or Vault()
        name = self.path.with_name(self.path.name + ".lock")
        self._lock = None if alone is None else Lock(name, alone=alone)
        self._turn, self._open = threading.RLock(), list[sqlite3.Connection]()
        # A connection sees the file as it was when the first question that is still open was asked,
        # so nobody may ask before another's question is answered, and look-ups have their own.
        self._asking, self._looking = threading.Lock(), threading.Lock()
        try:
            with naming(self.path):
                self._write = self._connected()
                self._read, self._look = self._connected(), self._connected()
                if alone:
                    # An owner moves the log of writes into the file by tidy(), not as it commits.
                    self._write.execute("pragma wal_autocheckpoint = 0")
                self._set_up()
                self._check_version(str(self.path), old)
                self._seal_all()
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
        if self.vault.sealing:
            made.execute("pragma secure_delete = on")
        return made

    def _set_up(self) -> None:
        with self.writing():
            there = self._write.execute("select name from sqlite_master").fetchall()
            if not there:
                self._make_tables()
            elif ("schema",) not in there:
                raise CorruptState(f"{self.path} must be a journal, got another database")

    def _writing(self) -> Generator[None, None, None]:
        with naming(self.path), self._turn:
            try:
                self._write.execute("begin immediate")
                yield
                self._write.execute("commit")
            except BaseException:
                if self._write.in_transaction:
                    self._write.execute("rollback")
                raise

    def add_events(self, events: Sequence[Event]) -> None:
        """Add events at the end of the log, within :meth:`writing`."""
        self._write.executemany(
            "insert into event values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._sealed(events)
        )

    # ------------------------------------------------------------------ reading

    def _rows(self, text: str, *values: Any) -> list[Any]:
        """Return what a question finds: on the writer's side within :meth:`writing`."""
        with naming(self.path):
            if self._turn_is_mine():
                return self._write.execute(text, values).fetchall()
            with self._asking:
                return self._read.execute(text, values).fetchall()

    def _turn_is_mine(self) -> bool:
        return self._write.in_transaction and self._turn._is_owned()  # type: ignore[attr-defined]

    def find(self, wanted: Iterable[Named]) -> dict[Named, Event]:
        """Return which of some events are in the log."""
        with naming(self.path), self._looking:
            asked, found = self._write if self._turn_is_mine() else self._look, {}
            for name in wanted:
                rows = asked.execute(
                    f"{EVENT} where stream = ? and kind = ? and id = ?", name
                ).fetchall()
                if rows:
                    found[name] = self._event(rows[0])
        return found

    # ------------------------------------------------------------------ writing

    def _run(self, text: str, *values: Any) -> None:
        self._write.execute(text, values)

    def tidy(self) -> None:
        """Move what was written from the log of writes into the file, beside whoever writes."""
        with naming(self.path), self._asking:
            self._read.execute("pragma wal_checkpoint(passive)").fetchall()

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

    def __del__(self) -> None:
        # Who has a copy of a model with its journal may not know that there is a file to close.
        if hasattr(self, "_open"):
            self.close()


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
