"""A log in a database of PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Final

import psycopg
from psycopg import Connection

from calibrant.errors import NotStored
from calibrant.journal.events import Event
from calibrant.journal.sql import COLUMNS, Store
from calibrant.journal.store import Named
from calibrant.journal.vault import Vault

OWNER: Final = 0x63616C69
"""The advisory lock of who owns the log."""
WAIT: Final = 2.0
"""Seconds until the server has noticed that an owner was killed."""
SOONEST: Final = 0.005
"""Seconds until it is asked again whether it has; twice as many each time, up to a tenth."""
INSERT: Final = f"""insert into event ({COLUMNS}) select * from unnest(
    %s::bigint[], %s::integer[], %s::smallint[], %s::text[], %s::text[], %s::float8[],
    %s::float8[], %s::bytea[], %s::bigint[], %s::text[])"""
# Each by its index: a join's plan changes as the table grows.
FIND: Final = f"""select {COLUMNS} from unnest(%s::integer[], %s::smallint[], %s::text[])
    as wanted (a, b, c), lateral (
    select * from event where stream = wanted.a and kind = wanted.b and id = wanted.c limit 1
) as found"""


class PostgresStore(Store):
    """A database whose log has one owner at a time.

    The owner holds an advisory lock, and an *epoch* that every transaction checks: an owner that
    was asleep while another took over cannot write any more.

    Parameters
    ----------
    address
        As ``postgresql://user@host/database``.
    alone
        Whether this process shall own the log; None for who adds no events.
    old
        Whether tables of an earlier version will do.
    vault
        Seals what holds secrets.
    """

    mark = "%s"
    types: ClassVar = {
        "big": "bigint",
        "int": "integer",
        "small": "smallint",
        "real": "double precision",
        "blob": "bytea",
        "epoch": ", epoch bigint not null",
        "first": ", 0",
    }

    def __init__(
        self,
        address: str,
        *,
        alone: bool | None = None,
        old: bool = False,
        vault: Vault | None = None,
    ) -> None:
        self.vault = vault or Vault()
        self._address, self._alone = address, bool(alone)
        self._turn, self._asking = threading.RLock(), threading.RLock()
        self._epoch: int | None = None
        self._writer: Connection[Any] | None = None
        self._reading: Connection[Any] | None = None
        try:
            with naming():
                self._set_up()
                self._check_version("database", old)
                self._seal_all()
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ connections

    def _set_up(self) -> None:
        write = self._connection()
        with write.transaction():
            write.execute("select pg_advisory_xact_lock(%s)", (OWNER + 1,))
            row = write.execute("select to_regclass('schema')").fetchone()
            if row is None or row[0] is None:
                self._make_tables()

    def _connection(self) -> Connection[Any]:
        """Return the connection that writes, made again if it was lost."""
        made = self._writer
        if made is None or made.closed or made.broken:
            self._writer = None
            made = psycopg.connect(self._address, autocommit=True)
            try:
                self._own(made)
            except BaseException:
                made.close()
                raise
            self._writer = made
        return made

    def _own(self, made: Connection[Any]) -> None:
        if not self._alone:
            return
        end, pause = time.monotonic() + WAIT, SOONEST
        while not self._is_mine(made):
            if time.monotonic() >= end:
                raise NotStored("nobody else must be at work on the database, got one that is")
            time.sleep(pause)
            pause = min(2 * pause, WAIT / 20)
        there = made.execute("select to_regclass('schema')").fetchone()
        if self._epoch is None and there is not None and there[0] is not None:
            self._take_over(made)

    def _is_mine(self, made: Connection[Any]) -> bool:
        row = made.execute("select pg_try_advisory_lock(%s)", (OWNER,)).fetchone()
        return row is not None and bool(row[0])

    def _take_over(self, made: Connection[Any]) -> None:
        row = made.execute("update schema set epoch = epoch + 1 returning epoch").fetchone()
        self._epoch = None if row is None else int(row[0])

    def _reader(self) -> Connection[Any]:
        """Return the connection to ask: the one that writes within :meth:`writing`."""
        if self._turn._is_owned() and self._writer is not None:  # type: ignore[attr-defined]
            return self._writer
        if self._reading is None or self._reading.closed or self._reading.broken:
            self._reading = psycopg.connect(self._address, autocommit=True)
            self._reading.execute("set enable_hashjoin = off")
            self._reading.execute("set enable_mergejoin = off")
            self._reading.execute("set enable_seqscan = off")
            # A scan that is off but needed costs "10000000000": enough to compile it for .3 s.
            self._reading.execute("set jit = off")
        return self._reading

    def _writing(self) -> Generator[None, None, None]:
        with naming(), self._turn:
            write = self._connection()
            if self._alone and self._epoch is None:
                self._take_over(write)
            with write.transaction():
                if self._alone:
                    self._check_epoch(write)
                yield

    def _check_epoch(self, write: Connection[Any]) -> None:
        """Raise if another owner took over; nobody can before this transaction ends."""
        row = write.execute("select epoch from schema for share").fetchone()
        if row is None or row[0] != self._epoch:
            raise NotStored("this process must own the log, got another owner that took over")

    # ------------------------------------------------------------------ reading

    def _rows(self, text: Any, *values: Any) -> list[Any]:
        with naming(), self._asking:
            asked = self._reader()
            try:
                return asked.execute(text, values).fetchall()
            except psycopg.OperationalError:
                if asked is self._writer or not asked.broken:
                    raise
                # Lost since it was used last: who only reads may ask again.
                return self._reader().execute(text, values).fetchall()

    def find(self, wanted: Iterable[Named]) -> dict[Named, Event]:
        """Return which of some events are in the log."""
        columns = [list(column) for column in zip(*wanted, strict=True)]
        found = map(self._event, self._rows(FIND, *columns)) if columns else ()
        return {event[1:4]: event for event in found}

    # ------------------------------------------------------------------ writing

    def _run(self, text: Any, *values: Any) -> None:
        self._connection().execute(text, values)

    def add_events(self, events: Sequence[Event]) -> None:
        """Add events at the end of the log, within :meth:`writing`."""
        if events:
            self._run(INSERT, *(list(column) for column in zip(*self._sealed(events), strict=True)))

    def tidy(self) -> None:
        """Do nothing: the server sees to it."""

    def close(self) -> None:
        """Let go of the database."""
        for held in (self._writer, self._reading):
            if held is not None:
                with suppress(psycopg.Error):
                    held.close()


@contextmanager
def naming() -> Iterator[None]:
    """Say of an error of PostgreSQL that nothing was written."""
    try:
        yield
    except psycopg.errors.UniqueViolation as error:
        raise NotStored(f"another process must not write now, got {error}") from error
    except psycopg.Error as error:
        told = str(error).strip().split("\n")[0]
        raise NotStored(f"database cannot be written or read now: {told}") from error
