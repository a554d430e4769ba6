"""Events as they stand in the log, and what is asked and told about them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from calibrant.errors import CalibrantError, DamagedLog
from calibrant.kernels.compile import digest
from calibrant.recalibrate.keyed import Key

FORECAST: Final = 0
OUTCOME: Final = 1
CORRECTION: Final = 2
EXPIRY: Final = 3
STATE: Final = 4
KINDS: Final = ("forecast", "outcome", "correction", "expiry", "state")
"""What happens in a stream, by number."""

LEARNED: Final = "learned"
EARLY: Final = "early"
REPEATED: Final = "repeated"
MADE: Final = "made"
CORRECTED: Final = "corrected"
DROPPED: Final = "expired"
TAKEN: Final = "taken"
CHECK: Final = 4
"""Bytes of the checksum at the end of an answer."""

Group: TypeAlias = str | int


class Asked(NamedTuple):
    """What is asked of a stream: a forecast, or that something be learned about one.

    Attributes
    ----------
    stream, kind
        Number of the stream, and which kind of event.
    id
        Name of the forecast that the event is about.
    key
        Which of a keyed stream's rows; None elsewhere, and for outcomes.
    x, time
        Raw forecast, a list of them for classes, or outcome; and when it was made or known, if
        that is told.
    body
        A whole state, where a stream is handed over.
    since
        The event by which a corrected outcome was learned.
    groups
        Names of the groups that a forecast belongs to.
    hidden
        Whether the draw is told with the outcome only.
    early
        Whether outcomes that came early outlive a state that is handed over: logs of earlier
        releases say otherwise.
    was
        The outcome that a correction replaces, if that is told.
    """

    stream: int
    kind: int
    id: str
    key: Key | None
    x: Any
    time: float | None = None
    body: bytes = b""
    since: int = 0
    groups: tuple[Group, ...] = ()
    hidden: bool = False
    early: bool = False
    was: Any = None

    @property
    def more(self) -> str | None:
        """What was asked and is no number: raw forecasts of classes, groups, a hidden draw."""
        told: dict[str, Any] = {}
        if isinstance(self.x, list):
            told["raw"] = self.x
        if self.groups:
            told["groups"] = list(self.groups)
        if self.hidden:
            told["hidden"] = True
        if self.early:
            told["early"] = True
        return json.dumps(told) if told else None


class More(NamedTuple):
    """What an event says besides its numbers."""

    raw: list[float] | None = None
    groups: tuple[Group, ...] = ()
    hidden: bool = False
    early: bool = False


NOTHING: Final = More()


class Event(NamedTuple):
    """A line of the log: what was asked, in which place, and the answer.

    Attributes
    ----------
    seq
        Place in the order of all events.
    stream, kind, id, key, x, time
        What was asked; the key as JSON, or None.
    answer
        What was answered, packed, with a checksum of the line at its end.
    code
        Digest of the kernels that gave the answer.
    more
        What was asked and is no number, as JSON; None for most.
    """

    seq: int
    stream: int
    kind: int
    id: str
    key: str | None
    x: float
    time: float | None
    answer: bytes
    code: int
    more: str | None = None

    @property
    def raw(self) -> Any:
        """The raw forecast: a number, or a list of them for classes."""
        told = read_more(self.more).raw
        return self.x if told is None else told

    @property
    def told(self) -> bytes:
        """The answer without its checksum."""
        return self.answer[:-CHECK]

    def whole(self) -> Event:
        """Return the same event if it is as it was written."""
        if self._fits():
            return self
        for event in filter(Event._fits, self._of_old_logs()):
            return event
        raise DamagedLog(
            f"event {self.seq} must be as it was written, got one whose checksum differs"
        )

    def _fits(self) -> bool:
        return self.answer[-CHECK:] == _sum(self, self.answer[:-CHECK])

    def _of_old_logs(self) -> list[Event]:
        """Return what may have been written: SQLite kept no sign of a zero, and no other type."""
        names, numbers = [self.id, np.str_(self.id)], [self.x, -0.0] if self.x == 0.0 else [self.x]
        told = product(names, numbers, _times(self.time))
        return [self._replace(id=id, x=x, time=time) for id, x, time in told]

    def sealed(self) -> Event:
        """Return the event with the checksum behind its answer."""
        answer = self.answer
        return Event(*self[:7], answer + _sum(self, answer), *self[8:])


class Told(NamedTuple):
    """What came of one request: a status with the event behind it, or an error."""

    status: str
    event: Event | None
    error: CalibrantError | None = None

    def result(self) -> Event:
        """Return the event, or raise the error."""
        if self.event is None:
            raise self.error or CalibrantError("nothing was told")
        return self.event


def _sum(event: Event, told: bytes) -> bytes:
    asked = f"{event[:7]!r} {event[8]} {event[9] or ''}".encode()
    return zlib.crc32(told, zlib.crc32(asked)).to_bytes(CHECK, "little")


def _times(time: float | None) -> list[Any]:
    """Return what may have been told where a log keeps a time: a number of another type."""
    if not isinstance(time, float):
        return [time]
    whole = [int(time), bool(time)] if time.is_integer() else []
    return [time, np.float64(time), *whole, *([-0.0] if time == 0.0 else [])]


def key_text(key: Key | None) -> str | None:
    """Return a key as the log holds it.

    >>> key_text("7"), key_text(7), key_text(None)
    ('"7"', '7', None)
    """
    return None if key is None else json.dumps(key)


def read_key(text: str | None) -> Key | None:
    """Return a key from the log."""
    return None if text is None else json.loads(text)


def read_more(text: str | None) -> More:
    """Return what an event says besides its numbers.

    >>> read_more('{"groups": ["north"]}'), read_more(None).hidden
    (More(raw=None, groups=('north',), hidden=False, early=False), False)
    """
    if text is None:
        return NOTHING
    told = json.loads(text)
    groups, flags = tuple(told.get("groups", ())), (told.get(name) for name in ("hidden", "early"))
    return More(told.get("raw"), groups, *map(bool, flags))


def total(events: Sequence[Event]) -> int:
    """Return the place of the last of some events, or 0."""
    return events[-1].seq if events else 0


def code_digest() -> int:
    """Return a digest of all kernels, those of transforms too: which code gave an answer."""
    return int(digest()[:12], 16)
