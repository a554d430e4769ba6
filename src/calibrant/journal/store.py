"""Where a log is kept: what the journal asks of a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

from calibrant.journal.events import Event

PAGE: Final = 10_000
"""Events that are read at a time."""

Named = tuple[int, int, str]
"""Stream, kind and id of an event."""


class Line(NamedTuple):
    """A stream as it is stored.

    Attributes
    ----------
    number, name
        By which events and people know the stream.
    settings
        :class:`.Settings` as JSON.
    body
        The model before its first event, as bytes.
    gone
        When the stream was deleted; None while it is there.
    seq
        Up to which event ``body`` holds: 0, unless events were purged.
    """

    number: int
    name: str
    settings: str
    body: bytes
    gone: float | None = None
    seq: int = 0


class Snapshot(NamedTuple):
    """What a stream's events up to ``seq`` amount to."""

    stream: int
    seq: int
    shape: str
    body: bytes


class Moment(NamedTuple):
    """When the log had come to a place, by the clock of who wrote."""

    seq: int
    time: float


class Pass(NamedTuple):
    """A token as it is stored: a hash, a name, what it may do and in which streams."""

    hash: bytes
    name: str
    scope: str
    streams: str
    made: float
    revoked: float | None = None


class Store(Protocol):
    """A database with the tables of :mod:`calibrant.journal.schema`.

    Whatever cannot be written raises :class:`calibrant.errors.NotStored`.
    """

    def writing(self) -> AbstractContextManager[None]:
        """Be the only writer for a while; what was written then is on disk, or none of it is."""

    def add_events(self, events: Sequence[Event]) -> None:
        """Add events at the end of the log, within :meth:`writing`."""

    def last(self) -> int:
        """Return the place of the last event, or 0."""

    def tail(self, after: int, upto: int | None = None) -> Iterator[Event]:
        """Yield the events behind a place, in order."""

    def leave(self) -> None:
        """Let whoever reads the log from place to place stop with an error."""

    def events(self, stream: int, after: int, limit: int) -> list[Event]:
        """Return that many events of a stream behind a place."""

    def names(self, after: int = 0, upto: int | None = None) -> Iterator[Named]:
        """Yield stream, kind and id of every event behind a place."""

    def find(self, wanted: Iterable[Named]) -> dict[Named, Event]:
        """Return which of some events are in the log."""

    def streams(self) -> list[Line]:
        """Return every stream, also deleted ones."""

    def put_stream(self, line: Line) -> None:
        """Add a stream, or change one, within :meth:`writing`."""

    def purge(self, number: int) -> None:
        """Remove a stream with its events for good, within :meth:`writing`."""

    def drop_events(self, seqs: Sequence[int]) -> None:
        """Remove events by their places, within :meth:`writing`."""

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots that were written whole, the latest first."""

    def put_snapshots(self, new: Sequence[Snapshot], upto: int) -> None:
        """Add snapshots; those of other streams hold up to ``upto`` now; within :meth:`writing`."""

    def put_pieces(self, pieces: Sequence[Any]) -> None:
        """Add pieces of snapshots, which count once all are there; within :meth:`writing`."""

    def settle_snapshots(self, new: set[int], upto: int) -> None:
        """Keep the latest snapshots, and let others hold up to ``upto``; within :meth:`writing`."""

    def drop_snapshots(self, stream: int) -> None:
        """Remove the snapshots of a stream, within :meth:`writing`."""

    def moments(self) -> list[Moment]:
        """Return when the log had come to which place, in order."""

    def put_moment(self, moment: Moment) -> None:
        """Note when the log had come to a place, within :meth:`writing`."""

    def version(self) -> int:
        """Return the version of the tables."""

    def migrate(self) -> list[int]:
        """Bring the tables up to date, a transaction for each version; return those passed."""

    def tokens(self) -> list[Pass]:
        """Return every token."""

    def put_token(self, token: Pass) -> None:
        """Add a token, or change one, within :meth:`writing`."""

    def tidy(self) -> None:
        """Do what the database wants done now and then, beside whoever writes."""

    def close(self) -> None:
        """Let go of the database."""
