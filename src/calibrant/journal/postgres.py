"""A log in a database of PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import Connection

from calibrant.errors import CorruptState, NotStored
from calibrant.journal.events import Event
from calibrant.journal.store import PAGE, VERSION, Line, Named, Pass, Snapshot

SCHEMA: Final = """
create table schema (version integer not null, epoch bigint not null);
create table stream (
    number integer primary key, name text not null unique, settings text not null,
    body bytea not null, gone double precision
);
create table event (
    seq bigint primary key, stream integer not null, kind smallint not null, id text not null,
    key text, x double precision not null, time double precision, answer bytea not null,
    code bigint not null, unique (stream, kind, id)
);
create table snapshot (
    stream integer not null, seq bigint not null, shape text not null, body bytea not null,
    primary key (stream, seq)
);
create table token (
    hash bytea primary key, name text not null, scope text not null, streams text not null,
    made double precision not null, revoked double precision
);
"""
OWNER: Final = 0x63616C69
"""The advisory lock of who owns the log."""
COLUMNS: Final = "seq, stream, kind, id, key, x, time, answer, code"
INSERT: Final = f"""insert into event ({COLUMNS}) select * from unnest(
    %s::bigint[], %s::integer[], %s::smallint[], %s::text[], %s::text[], %s::float8[],
    %s::float8[], %s::bytea[], %s::bigint[])"""
# Each by its index: a join's plan changes as the table grows.
FIND: Final = f"""select {COLUMNS} from unnest(%s::integer[], %s::smallint[], %s::text[])
    as wanted (a, b, c), lateral (
    select * from event where stream = wanted.a and kind = wanted.b and id = wanted.c limit 1
) as found"""
KEPT: Final = 2


class PostgresStore:
    """A database whose log has one owner at a time.

    The owner holds an advisory lock, and an *epoch* that every transaction checks: an owner that
    was asleep while another took over cannot write any more.

    Parameters
    ----------
    address
        As ``postgresql://user@host/database``.
    alone
        Whether this process shall own the log; None for who adds no events.
    """

    def __init__(self, address: str, *, alone: bool | None = None) -> None:
        self._address, self._alone = address, bool(alone)
        self._turn, self._asking = threading.RLock(), threading.RLock()
        self._epoch: int | None = None
        self._writer: Connection[Any] | None = None
        self._reading: Connection[Any] | None = None
        try:
            with naming():
                self._set_up()
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
                write.execute(SCHEMA)
                write.execute("insert into schema values (%s, 0)", (VERSION,))
            found = write.execute("select version from schema").fetchone()
        if found is None or found[0] != VERSION:
            raise CorruptState(f"database must be of version {VERSION} or before, got {found}")

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
        row = made.execute("select pg_try_advisory_lock(%s)", (OWNER,)).fetchone()
        if row is None or not row[0]:
            raise NotStored("nobody else must be at work on the database, got one that is")
        there = made.execute("select to_regclass('schema')").fetchone()
        if self._epoch is None and there is not None and there[0] is not None:
            self._take_over(made)

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
        return self._reading

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer for a while; what was written then is on disk, or none of it is."""
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

    def last(self) -> int:
        """Return the place of the last event, or 0; one that was purged counts."""
        asked = "select greatest(coalesce((select max(seq) from event), 0), "
        asked += "coalesce((select max(seq) from snapshot), 0))"
        return int(self._rows(asked)[0][0])

    def tail(self, after: int, upto: int | None = None) -> Iterator[Event]:
        """Yield the events behind a place, in order."""
        most = (1 << 62) if upto is None else upto
        while True:
            rows = self._rows(
                f"select {COLUMNS} from event where seq > %s and seq <= %s order by seq limit %s",
                after,
                most,
                PAGE,
            )
            yield from map(Event._make, rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def events(self, stream: int, after: int, limit: int) -> list[Event]:
        """Return so many events of a stream behind a place."""
        asked = f"select {COLUMNS} from event where stream = %s and seq > %s order by seq limit %s"
        return list(map(Event._make, self._rows(asked, stream, after, limit)))

    def names(self) -> Iterator[Named]:
        """Yield stream, kind and id of every event."""
        after = 0
        while True:
            asked = "select seq, stream, kind, id from event where seq > %s order by seq limit %s"
            rows = self._rows(asked, after, PAGE)
            yield from (tuple(row[1:]) for row in rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def find(self, wanted: Iterable[Named]) -> dict[Named, Event]:
        """Return those of some events that are in the log."""
        columns = [list(column) for column in zip(*wanted, strict=True)]
        found = map(Event._make, self._rows(FIND, *columns)) if columns else ()
        return {event[1:4]: event for event in found}

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

    def _put(self, text: Any, *values: Any) -> None:
        self._connection().execute(text, values)

    def add_events(self, events: Sequence[Event]) -> None:
        """Add events at the end of the log, within :meth:`writing`."""
        if events:
            self._put(INSERT, *(list(column) for column in zip(*events, strict=True)))

    def put_stream(self, line: Line) -> None:
        """Add a stream, or change one, within :meth:`writing`."""
        self._put("delete from stream where number = %s", line.number)
        self._put("insert into stream values (%s, %s, %s, %s, %s)", *line)

    def purge(self, number: int) -> None:
        """Remove a stream with its events for good, within :meth:`writing`."""
        for table, column in (("event", "stream"), ("snapshot", "stream"), ("stream", "number")):
            self._put(f"delete from {table} where {column} = %s", number)

    def put_snapshots(self, new: Sequence[Snapshot], upto: int) -> None:
        """Add snapshots; those of other streams hold up to ``upto`` now; within :meth:`writing`."""
        for snapshot in new:
            self._put("delete from snapshot where stream = %s and seq = %s", *snapshot[:2])
            self._put("insert into snapshot values (%s, %s, %s, %s)", *snapshot)
            self._put(
                "delete from snapshot where stream = %s and seq not in "
                "(select seq from snapshot where stream = %s order by seq desc limit %s)",
                snapshot.stream,
                snapshot.stream,
                KEPT,
            )
        self._put(
            "update snapshot set seq = %s where seq < %s and seq = "
            "(select max(seq) from snapshot other where other.stream = snapshot.stream)",
            upto,
            upto,
        )

    def put_token(self, token: Pass) -> None:
        """Add a token, or change one, within :meth:`writing`."""
        self._put("delete from token where hash = %s", token.hash)
        self._put("insert into token values (%s, %s, %s, %s, %s, %s)", *token)

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
