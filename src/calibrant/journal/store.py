"""Where a log is kept: what the journal asks of a database."""

from __future__ import annotations

from typing import Final, NamedTuple

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
