"""What the live page asks for, whoever answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from calibrant.monitor import LateAlarm
from calibrant.summary import AnySummary, Glance, Part, Windows


@dataclass(frozen=True)
class Board:
    """What the alarms of a stream say.

    Attributes
    ----------
    alarms
        Those that have rung; their times are in seconds since 1970, or None.
    alpha
        The chance, at most, of a false alarm; None where nothing is watched.
    judged, missing
        Forecasts that were judged, and those whose outcome was not known in time.
    assumptions
        Under which assumptions the promise holds.
    learning
        Rounds at the beginning in which recalibrated forecasts are not judged.
    step
        Distance of neighbours on the grid of draws, which cannot come closer than half of it.
    """

    alarms: tuple[LateAlarm, ...] = ()
    alpha: float | None = None
    judged: int = 0
    missing: int = 0
    assumptions: tuple[str, ...] = ()
    learning: int = 0
    step: float = 0.0


class Source(Protocol):
    """Streams to be shown.

    Methods are called from other threads than the event loop's, several at a time.  A name that
    is not known raises :class:`calibrant.errors.UnknownName`.
    """

    def streams(self) -> Sequence[str]:
        """Return the names of all streams, in the order in which they are shown."""

    def glance(self, name: str) -> Glance:
        """Return what is asked for every second; waiting times are in seconds."""

    def board(self, name: str) -> Board:
        """Return what the alarms say."""

    def story(self, name: str) -> AnySummary:
        """Return the whole summary; asked for every ten seconds at most."""

    def windows(self, name: str, level: int | None) -> Windows | None:
        """Return errors in windows of ``625 * 2**level`` rounds, or of a length that suits.

        None where there are no windows, as of a merged stream.
        """

    def certificate(self, name: str) -> str:
        """Return the certificate in words."""

    def settings(self, name: str) -> Mapping[str, Any]:
        """Return what the stream was made with."""

    def keys(self, name: str) -> Sequence[Part]:
        """Return what was seen of each key; none where there are no keys."""
