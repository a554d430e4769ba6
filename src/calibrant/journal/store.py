"""Where a log is kept: what the journal asks of a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from calibrant.journal.events import Event

VERSION: Final = 1
"""Version of the tables."""
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
    """

    number: int
    name: str
    settings: str
    body: bytes
    gone: float | None = None


class Snapshot(NamedTuple):
    """What a stream's events up to ``seq`` amount to."""

    stream: int
    seq: int
    shape: str
    body: bytes


class Pass(NamedTuple):
    """A token as it is stored: a hash, a name, what it may do and in which streams."""

    hash: bytes
    name: str
    scope: str
    streams: str
    made: float
    revoked: float | None = None


class Store(Protocol):
    """A database with the tables ``event``, ``snapshot``, ``stream``, ``token`` and ``schema``.

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

    def events(self, stream: int, after: int, limit: int) -> list[Event]:
        """Return so many events of a stream behind a place."""

    def names(self) -> Iterator[Named]:
        """Yield stream, kind and id of every event."""

    def find(self, wanted: Iterable[Named]) -> dict[Named, Event]:
        """Return those of some events that are in the log."""

    def streams(self) -> list[Line]:
        """Return every stream, also deleted ones."""

    def put_stream(self, line: Line) -> None:
        """Add a stream, or change one, within :meth:`writing`."""

    def purge(self, number: int) -> None:
        """Remove a stream with its events for good, within :meth:`writing`."""

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots, the latest first."""

    def put_snapshots(self, new: Sequence[Snapshot], upto: int) -> None:
        """Add snapshots; those of other streams hold up to ``upto`` now; within :meth:`writing`."""

    def tokens(self) -> list[Pass]:
        """Return every token."""

    def put_token(self, token: Pass) -> None:
        """Add a token, or change one, within :meth:`writing`."""

    def close(self) -> None:
        """Let go of the database."""
