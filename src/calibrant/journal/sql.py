"""What both databases are told and asked in the same words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final, TypeVar

from calibrant.errors import CorruptState, NotStored
from calibrant.journal.events import STATE, Event
from calibrant.journal.parts import Piece, cut, joined
from calibrant.journal.schema import MIGRATIONS, VERSION, schema
from calibrant.journal.store import PAGE, Line, Moment, Named, Pass, Snapshot
from calibrant.journal.vault import Vault, is_sealed

Done = TypeVar("Done")
COLUMNS: Final = "seq, stream, kind, id, key, x, time, answer, code, more"
EVENT: Final = f"select {COLUMNS} from event"
KEPT: Final = 2
"""Snapshots of a stream that are kept: the latest, and one before in case it is damaged."""
TABLES: Final = (("event", "stream"), ("snapshot", "stream"), ("stream", "number"))
"""Where a stream is, and the column that names it."""
PLACES: Final = ("event", "snapshot", "stream", "moment")
"""Tables that know to which place the log had come."""
PUT_STREAM: Final = """insert into stream values (?, ?, ?, ?, ?, ?) on conflict (number)
    do update set name = excluded.name, settings = excluded.settings, body = excluded.body,
    gone = excluded.gone, seq = excluded.seq"""
PUT_PIECE: Final = """insert into snapshot values (?, ?, ?, ?, ?, ?) on conflict (stream, seq, part)
    do update set parts = excluded.parts, shape = excluded.shape, body = excluded.body"""
PUT_TOKEN: Final = """insert into token values (?, ?, ?, ?, ?, ?) on conflict (hash)
    do update set name = excluded.name, scope = excluded.scope, streams = excluded.streams,
    made = excluded.made, revoked = excluded.revoked"""
PUT_MOMENT: Final = "insert into moment values (?, ?) on conflict (seq) do nothing"


class Store(ABC):
    """A database with the tables of :mod:`calibrant.journal.schema`, asked in SQL.

    In SQL, ``mark`` stands for a value, and ``types`` says how columns are declared. Whatever
    cannot be written raises :class:`calibrant.errors.NotStored`.
    """

    mark: ClassVar[str]
    types: ClassVar[dict[str, str]]
    vault: Vault
    _left = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer for a while; what was written then is on disk, or none of it is."""
        yield from self._writing()

    def write(self, work: Callable[[], Done]) -> Done:
        """Do something within :meth:`writing`, which ends at once if an interrupt comes anywhere.

        One that came between the steps of ``with`` would leave it open for as long as somebody
        holds the traceback.
        """
        steps = self._writing()
        try:
            next(steps)
            try:
                done = work()
            except BaseException as error:
                steps.throw(error)
                raise
            next(steps, None)
            return done
        finally:
            steps.close()

    @abstractmethod
    def _writing(self) -> Generator[None, None, None]:
        """Begin to write, and end it once the only step is taken up."""

    @abstractmethod
    def find(self, wanted: Iterable[Named]) -> dict[Named, Event]:
        """Return which of some events are in the log."""

    @abstractmethod
    def tidy(self) -> None:
        """Do what the database wants done now and then, beside whoever writes."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    @abstractmethod
    def _rows(self, text: str, *values: Any) -> list[Any]:
        """Return what a question finds."""

    @abstractmethod
    def _run(self, text: str, *values: Any) -> None:
        """Let something be done on the writer's side."""

    def _asked(self, text: str, *values: Any) -> list[Any]:
        return self._rows(text.replace("?", self.mark), *values)

    def _put(self, text: str, *values: Any) -> None:
        self._run(text.replace("?", self.mark), *values)

    # ------------------------------------------------------------------ versions

    def _make_tables(self) -> None:
        """Make the tables of today, within :meth:`writing`."""
        for statement in schema(self.types):
            self._run(statement)
        self._put(f"insert into schema values (?{self.types['first']})", VERSION)

    def _check_version(self, where: str, old: bool) -> None:
        """Raise unless the tables are those of today, or older ones if that will do."""
        version = self.version()
        if version > VERSION or (version < VERSION and not old):
            what = "it was written by a later release of calibrant"
            if version < VERSION:
                what = "bring it up to date with: calibrant migrate"
            raise CorruptState(f"{where} must be of version {VERSION}, got {version}; {what}")

    def _seal_all(self) -> None:
        """Seal what was written without a key."""
        if not self.vault.sealing or self.version() < VERSION:
            return
        with self.writing():
            for number, body in self._rows("select number, body from stream"):
                if not is_sealed(body):
                    (line,) = (line for line in self.streams() if line.number == number)
                    self.put_stream(line)
                    self.drop_snapshots(number)
                    states = [e for e in self.tail(0) if e.stream == number and e.kind == STATE]
                    self.drop_events([event.seq for event in states])
                    self.add_events(states)

    @abstractmethod
    def add_events(self, events: Sequence[Event]) -> None:
        """Add events at the end of the log, within :meth:`writing`."""

    def version(self) -> int:
        """Return the version of the tables."""
        found = self._rows("select version from schema")
        return int(found[0][0])

    def migrate(self) -> list[int]:
        """Bring the tables up to date, a transaction for each version; return those passed."""
        passed = []
        while (version := self.version()) < VERSION:
            with self.writing():
                for statement in MIGRATIONS[version]:
                    self._run(statement.format(**self.types))
                self._put("update schema set version = ?", version + 1)
            passed.append(version)
        return passed

    # ------------------------------------------------------------------ reading

    def last(self) -> int:
        """Return the place of the last event, or 0; one that was purged counts."""
        found = (self._rows(f"select max(seq) from {table}") for table in PLACES)
        return max(rows[0][0] or 0 for rows in found)

    def _paged(self, columns: str, after: int, upto: int | None) -> Iterator[Any]:
        """Yield rows of events behind a place, in order."""
        most = (1 << 62) if upto is None else upto
        rows: list[Any] = [None] * PAGE
        asked = f"select {columns} from event where seq > ? and seq <= ? order by seq limit ?"
        while len(rows) == PAGE:
            if self._left:
                raise NotStored("log must be read to its end, got one that was left")
            rows = self._asked(asked, after, most, PAGE)
            yield from rows
            after = rows[-1][0] if rows else after

    def leave(self) -> None:
        """Let whoever reads the log from place to place stop with an error."""
        self._left = True

    def tail(self, after: int, upto: int | None = None) -> Iterator[Event]:
        """Yield the events behind a place, in order."""
        return map(self._event, self._paged(COLUMNS, after, upto))

    def names(self, after: int = 0, upto: int | None = None) -> Iterator[Named]:
        """Yield stream, kind and id of every event behind a place."""
        return (tuple(row[1:]) for row in self._paged("seq, stream, kind, id", after, upto))

    def events(self, stream: int, after: int, limit: int) -> list[Event]:
        """Return that many events of a stream behind a place."""
        asked = f"{EVENT} where stream = ? and seq > ? order by seq limit ?"
        return list(map(self._event, self._asked(asked, stream, after, limit)))

    def _event(self, row: Any) -> Event:
        """Return an event as it was before it was sealed."""
        event = Event._make(row)
        if event.kind == STATE:
            return event._replace(answer=self.vault.open(event.answer, _state(event)))
        return event

    def _sealed(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return events as they are stored: whole states among their answers are sealed."""
        if not self.vault.sealing or all(event.kind != STATE for event in events):
            return events
        return [
            event._replace(answer=self.vault.seal(event.answer, _state(event)))
            if event.kind == STATE
            else event
            for event in events
        ]

    def streams(self) -> list[Line]:
        """Return every stream, also deleted ones."""
        asked = "select number, name, settings, body, gone, seq from stream order by number"
        lines = map(Line._make, self._rows(asked))
        return [line._replace(body=self.vault.open(line.body, _stream(line))) for line in lines]

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots that were written whole, the latest first."""
        asked = "select stream, seq, part, parts, shape, body from snapshot order by seq desc, part"
        return joined(map(self._piece, self._rows(asked)))

    def _piece(self, row: Any) -> Piece:
        """Return a piece as it was before it was sealed; a damaged one is empty."""
        piece = Piece._make(row)
        try:
            return piece._replace(body=self.vault.open(piece.body, _place(piece)))
        except CorruptState:
            return piece._replace(body=b"")

    def tokens(self) -> list[Pass]:
        """Return every token."""
        asked = "select hash, name, scope, streams, made, revoked from token order by made"
        return list(map(Pass._make, self._rows(asked)))

    def moments(self) -> list[Moment]:
        """Return when the log had come to which place, in order."""
        return list(map(Moment._make, self._rows("select seq, time from moment order by seq")))

    # ------------------------------------------------------------------ writing

    def put_stream(self, line: Line) -> None:
        """Add a stream, or change one, within :meth:`writing`."""
        self._put(PUT_STREAM, *line._replace(body=self.vault.seal(line.body, _stream(line))))

    def purge(self, number: int) -> None:
        """Remove a stream with its events for good, within :meth:`writing`."""
        for table, column in TABLES:
            self._put(f"delete from {table} where {column} = ?", number)

    def drop_events(self, seqs: Sequence[int]) -> None:
        """Remove events by their places, within :meth:`writing`."""
        for seq in seqs:
            self._put("delete from event where seq = ?", seq)

    def put_snapshots(self, new: Sequence[Snapshot], upto: int) -> None:
        """Add snapshots; those of other streams hold up to ``upto`` now; within :meth:`writing`."""
        for pieces in cut(new):
            self.put_pieces(pieces)
        self.settle_snapshots({one.stream for one in new}, upto)

    def put_pieces(self, pieces: Sequence[Piece]) -> None:
        """Add pieces of snapshots, which count once all are there; within :meth:`writing`."""
        for piece in pieces:
            sealed = self.vault.seal(piece.body, _place(piece))
            self._put(PUT_PIECE, *piece._replace(body=sealed))

    def settle_snapshots(self, new: set[int], upto: int) -> None:
        """Keep the latest snapshots, and let others hold up to ``upto``; within :meth:`writing`."""
        for stream in sorted(new):
            found = "select distinct seq from snapshot where stream = ? order by seq desc"
            for (seq,) in self._asked(found, stream)[KEPT:]:
                self._put("delete from snapshot where stream = ? and seq = ?", stream, seq)
        self._put(
            "update snapshot set seq = ? where stream > 0 and seq < ? and seq = "
            "(select max(seq) from snapshot other where other.stream = snapshot.stream)",
            upto,
            upto,
        )

    def drop_snapshots(self, stream: int) -> None:
        """Remove the snapshots of a stream, within :meth:`writing`."""
        self._put("delete from snapshot where stream = ?", stream)

    def put_token(self, token: Pass) -> None:
        """Add a token, or change one, within :meth:`writing`."""
        self._put(PUT_TOKEN, *token)

    def put_moment(self, moment: Moment) -> None:
        """Note when the log had come to a place, within :meth:`writing`."""
        self._put(PUT_MOMENT, *moment)


def _stream(line: Line) -> str:
    return f"stream {line.number}"


def _state(event: Event) -> str:
    return f"state {event.stream} {event.seq}"


def _place(piece: Piece) -> str:
    # Without the place in the log: a snapshot of a stream at rest is moved on.
    return f"snapshot {piece.stream} {piece.part} {piece.parts} {piece.shape}"
