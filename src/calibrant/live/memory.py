"""Streams of this process as a source of the live page."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant import summary
from calibrant.core import check
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput, UnknownName
from calibrant.kernels.tallies import WINDOW
from calibrant.kinds.binary import step_of
from calibrant.live.source import Board
from calibrant.monitor import LateWatch, Watch
from calibrant.summary.collected import windows_of


class Stream:
    """A recalibrator with all that the live page asks: followed, watched and timed.

    Parameters
    ----------
    recalibrator
        Who makes forecasts: a ``Calibrant`` or a ``Recalibrator``, new.
    alpha
        The chance, at most, of a false alarm.
    horizon
        Forecasts that may wait for their outcomes before these count as missing for the alarm.
    learning
        Rounds at the beginning in which recalibrated forecasts are not judged.
    tolerance
        How far a forecast may be from the chance of its outcome and still count as right.

    Notes
    -----
    Times are seconds since 1970, given by the caller.  Safe to call from several threads.

    Examples
    --------
    >>> from calibrant import Calibrant
    >>> stream = Stream(Calibrant(seed=1))
    >>> ticket = stream.forecast(0.7, time=0.0)
    >>> _ = stream.observe(ticket.id, 1, time=5.0)
    >>> stream.glance().rounds, stream.glance().waited(1.0)
    (1, 8.0)
    """

    def __init__(
        self,
        recalibrator: Any,
        *,
        alpha: float = 0.01,
        horizon: int = 1000,
        learning: int = 500,
        tolerance: float = 0.02,
    ) -> None:
        self.recalibrator, self.alpha = recalibrator, alpha
        watch = Watch(alpha, learning=learning, tolerance=tolerance)
        self.follower = summary.Follower(recalibrator, allowed=step_of(recalibrator) / 2.0)
        self.watch = LateWatch(watch, horizon=horizon)
        self.learning = learning
        self._made: dict[Any, tuple[int, float, str | None]] = {}
        self._seen = summary.Breakdown("group")
        self._lock = threading.Lock()

    # -------------------------------------------------------------------- rounds

    def forecast(
        self, raw: float, *, time: check.Time, id: str | None = None, key: str | None = None
    ) -> Ticket:
        """Make a forecast; its ``key`` is shown on the page."""
        time = check.moment(time)
        with self._lock:
            ticket: Ticket = self.recalibrator.forecast(raw, id=id)
            number = self.watch.forecast(ticket.raw, min(ticket.mean, 1.0), time=time)
            self._made[ticket.id] = number, time, key
            return ticket

    def observe(self, id: Any, outcome: int, *, time: check.Time) -> Ticket:
        """Report the outcome of a forecast by its id."""
        time = check.moment(time)
        with self._lock:
            if id not in self._made:
                raise InvalidInput(f"id must be of a forecast that is open, got {id!r}")
            ticket: Ticket = self.recalibrator.observe(id, outcome)
            number, made, key = self._made.pop(id)
            self.watch.observe(number, outcome)
            rounds = self.follower.settle(ticket, max(time - made, 0.0))
            if rounds % WINDOW == 0:
                self.follower.stamp(time)
            if key is not None:
                place = self._seen.places([key])
                self._seen.add(place, [ticket.raw], [ticket.value], [outcome])
            return ticket

    # ------------------------------------------------------------------ findings

    def glance(self) -> summary.Glance:
        """Return what the page asks for every second."""
        return summary.glance(self.follower, open=len(self._made))

    def board(self) -> Board:
        """Return what the alarms say."""
        watch = self.watch
        told = watch.judged, watch.missing, watch.assumptions, self.learning
        return Board(watch.alarms, self.alpha, *told, step_of(self.recalibrator))

    def story(self) -> summary.AnySummary:
        """Return the whole summary."""
        with self._lock:
            made: summary.AnySummary = summary.summarise_collected(
                self.follower.collector(), self.recalibrator
            )
            return made

    def keys(self) -> list[summary.Part]:
        """Return what was seen of each key."""
        with self._lock:
            return self._seen.parts()


class Memory:
    """Streams of this process, by name.

    Examples
    --------
    >>> from calibrant import Calibrant
    >>> source = Memory(sales=Stream(Calibrant(seed=1)))
    >>> source.streams(), source.glance("sales").rounds
    (('sales',), 0)
    """

    def __init__(self, streams: Mapping[str, Stream] | None = None, **named: Stream) -> None:
        self._streams = dict(streams or {}) | named

    def __getitem__(self, name: str) -> Stream:
        try:
            return self._streams[name]
        except KeyError:
            known = ", ".join(map(repr, self._streams)) or "none"
            raise UnknownName(f"stream must be one of {known}, got {name!r}") from None

    def streams(self) -> Sequence[str]:
        """Return all names."""
        return tuple(self._streams)

    def glance(self, name: str) -> summary.Glance:
        """Return what is asked for every second."""
        return self[name].glance()

    def board(self, name: str) -> Board:
        """Return what the alarms say."""
        return self[name].board()

    def story(self, name: str) -> summary.AnySummary:
        """Return the whole summary."""
        return self[name].story()

    def windows(self, name: str, level: int | None) -> summary.Windows | None:
        """Return errors in windows of one length; None if rounds have no order."""
        follower = self[name].follower
        return None if follower.merged else windows_of(follower.collector(), level)

    def certificate(self, name: str) -> str:
        """Return the certificate in words."""
        return str(self[name].recalibrator.certificate())

    def settings(self, name: str) -> Mapping[str, Any]:
        """Return what the stream was made with."""
        stream = self[name]
        own = {"alarm level": stream.alpha, "horizon": stream.watch.horizon}
        return {**stream.story().settings, **own}

    def keys(self, name: str) -> Sequence[summary.Part]:
        """Return what was seen of each key."""
        return self[name].keys()
