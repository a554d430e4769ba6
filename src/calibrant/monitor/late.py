"""Alarms where outcomes come late and in any order.

::

    forecast: if `horizon` forecasts wait, the outcome of the first is missing: drop that forecast
              let the new forecast wait; judge what can be judged
    observe:  note the outcome; judge what can be judged
    judge:    while the outcome of the first that waits is known, or missing:
              hand forecast and outcome to the watch, unless missing; many rounds together
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Words, as_words
from calibrant.core.codec import Document, kind_of
from calibrant.core.gate import Gate
from calibrant.core.stateful import Stateful
from calibrant.errors import CorruptState, InvalidInput, InvalidType
from calibrant.monitor.monitor import Monitor
from calibrant.monitor.watch import Watch

KIND: Final = "late_watch"
MAX_HORIZON: Final = 1_000_000
MARKS: Final = 256
"""Moments that are kept, so that rounds can be told as forecasts and times."""
TOGETHER: Final = 256
"""Rounds that are handed to the watch together, unless somebody asks before."""
MISSING: Final = -1
"""An outcome that will never come."""
REPORTED: Final = (
    "whether an outcome is known before the forecast {:,} later is made does not depend on the "
    "outcome"
)
APART: Final = (
    "outcomes that are outstanding together do not depend on one another, given the forecasts"
)
Watcher: TypeAlias = Monitor | Watch


class _Waiting(NamedTuple):
    """A forecast that is not judged yet."""

    values: tuple[float, ...]
    time: float
    outcome: int | None = None


class _Ready(NamedTuple):
    """A forecast with its outcome, and how many forecasts had been made when both were known."""

    number: int
    waiting: _Waiting
    issued: int


class _Moment(NamedTuple):
    """How many rounds were judged before a forecast, which one it is, and when it was made."""

    judged: int
    number: int
    time: float


@dataclass(frozen=True)
class LateAlarm:
    """An alarm about a stream whose outcomes come late.

    Attributes
    ----------
    name
        Whose alarm: ``"raw"`` or ``"calibrated"`` of a watch, ``"forecast"`` of a monitor.
    number, time
        At the outcome of which forecast it rang, and when that forecast was made; the time is None
        where none was told.
    issued
        How many forecasts had been made by then.
    since, since_time
        From about which forecast on forecasts were wrong, and when that one was made: estimates.
    """

    name: str
    number: int
    time: float | None
    issued: int
    since: int
    since_time: float | None


class LateWatch(Stateful):
    """Watch a stream whose outcomes come late and in any order.

    Forecasts wait in the order in which they were made until their outcomes are known, and go to a
    monitor in that order.  Where the outcome is not known when the forecast ``horizon`` later is
    made, it counts as missing: nobody bets on it.

    Parameters
    ----------
    watch
        A new :class:`Monitor`, or a :class:`Watch` of raw and calibrated forecasts; by default the
        latter.  The object is this one's own from now on.
    horizon
        Forecasts that may wait at a time.

    Notes
    -----
    The alarm rings with probability at most alpha although the forecasts are right *if* what
    :attr:`assumptions` says is so.  A missing outcome is a bet that is called off; calling off
    bets costs nothing if nobody knows which would have been won.  Outcomes that are known early
    when they are 1, such as sales, break that: wait longer than any outcome takes.  With
    ``lag`` of at least ``horizon`` in the watch's settings, no more is assumed; else, outcomes
    that are outstanding together must not depend on one another.

    Safe to call from several threads: every call holds the gate.

    Examples
    --------
    >>> late = LateWatch(Monitor(alpha=0.01), horizon=5)
    >>> for k in range(60):
    ...     number = late.forecast(0.9)
    ...     if k >= 2:
    ...         _ = late.observe(number - 2, k % 2)
    >>> late.alarms[0].number, late.waiting
    (16, 2)
    >>> late
    LateWatch(horizon=5, issued=60, waiting=2, missing=0, alarms: 'forecast')
    """

    kind: ClassVar = KIND

    __slots__ = (
        "_fast", "_gate", "_issued", "_limit", "_missing", "_moments", "_open", "_ready", "_rung",
        "_stride", "_undo", "_watch",
    )  # fmt: skip

    def __init__(self, watch: Watcher | None = None, *, horizon: int = 1000) -> None:
        made = Watch() if watch is None else watch
        if not isinstance(made, (Monitor, Watch)):
            raise InvalidType(f"watch must be a Monitor or a Watch, got {watch!r}")
        if made.rounds:
            raise InvalidInput(f"watch must be new, got one after {made.rounds} rounds")
        self._watch = made
        self._horizon(horizon)
        self._open: dict[int, _Waiting] = {}
        self._issued = self._missing = 0
        self._moments: list[_Moment] = []
        self._stride = 1
        self._rung: dict[str, tuple[int, float, int]] = {}
        self._ready: list[_Ready] = []
        self._fast: bool | None = None
        self._undo: dict[int, _Waiting] | None = None
        self._gate = Gate()

    def compile(self) -> Self:
        """Let machine code judge rounds from now on, where there is a compiler; return self.

        Changes no result.  It takes a while to compile; a round takes less time from then on.
        """
        self._fast = True
        return self

    def _horizon(self, horizon: Any) -> None:
        self._limit = check.whole(horizon, "horizon", low=1, high=MAX_HORIZON)

    # -------------------------------------------------------------------- rounds

    def forecast(self, *values: float, time: check.When = None) -> int:
        """Note a forecast; return its number, counted from 0.

        Parameters
        ----------
        *values
            What was announced: one number for a monitor; the raw and the mean forecast for a watch.
        time
            When, in any unit that grows.
        """
        names = self.names
        if len(values) != len(names):
            told = f"{len(names)} numbers ({', '.join(names)})"
            raise InvalidInput(f"values must be {told}, got {len(values)}")
        made = tuple(map(check.probability, values, names))
        moment = math.nan if time is None else check.moment(time)
        with self._gate:
            return self._wait(_Waiting(made, moment))

    def _wait(self, made: _Waiting) -> int:
        """Let a forecast wait, and drop the first of those that do if there are too many."""
        number, first = self._issued, self._issued - self._limit
        changes = {number: made}
        if first in self._open:
            changes = {first: self._open[first]._replace(outcome=MISSING), number: made}
        self._change(changes, number + 1)
        return number

    def play(
        self, values: Sequence[tuple[float, ...]], told: Sequence[float | None], of: Sequence[int]
    ) -> None:
        """Note many forecasts and outcomes in their order, as one by one.

        Parameters
        ----------
        values
            What was announced, for each forecast; an empty tuple for each outcome.
        told
            When a forecast was made, or None; or an outcome.
        of
            The number of the forecast whose outcome it is; of forecasts it is not looked at.
        """
        made = np.array([each for each in values if each], np.float64).reshape(-1, len(self.names))
        flat = made.ravel()
        check.refuse_first(~((flat >= 0.0) & (flat <= 1.0)), flat, "values", "in [0, 1]")
        with self._gate:
            kept = [(each, each._kept()) for each in self._monitors().values()]
            undo: dict[int, _Waiting] = {}
            ready, issued, self._undo = list(self._ready), self._issued, undo
            moments, stride, rung, missing = self._moments, self._stride, self._rung, self._missing
            try:
                for announced, said, number in zip(values, told, of, strict=True):
                    if announced:
                        self._wait(_Waiting(announced, math.nan if said is None else said))
                    elif number in self._open:
                        self._note(number, int(said or 0))
            except BaseException:
                for each, before in kept:
                    each._put_back(before)
                waiting = sorted((self._open | undo).items())
                self._open = {number: each for number, each in waiting if number < issued}
                self._ready, self._issued = ready, issued
                self._moments, self._stride = moments, stride
                self._rung, self._missing = rung, missing
                raise
            finally:
                self._undo = None

    def observe(self, number: int, outcome: int) -> bool:
        """Note an outcome; return whether it counts, which it does not if it came too late.

        An outcome that was told before and is not judged yet is replaced.
        """
        told = check.outcome(outcome)
        with self._gate:
            return self._noted(number, told)

    def forget(self, number: int) -> bool:
        """Note that the outcome of a forecast will never come; return whether that counts."""
        with self._gate:
            return self._noted(number, MISSING)

    def _noted(self, number: Any, outcome: int) -> bool:
        place = check.whole(number, "number")
        if place >= self._issued:
            raise InvalidInput(f"number must be of a forecast that was made, got {place!r}")
        if place not in self._open:
            return False
        self._note(place, outcome)
        return True

    def _note(self, number: int, outcome: int) -> None:
        """Note what became of a forecast that waits, and judge what can be judged."""
        self._change({number: self._open[number]._replace(outcome=outcome)}, self._issued)

    def _change(self, changes: dict[int, _Waiting], issued: int) -> None:
        """Take in what is new; interrupted while forecasts are judged, go on where that was."""
        before = self._issued
        self._remember(changes)
        try:
            # No call between these.
            self._open |= changes
            self._issued = issued
            self._judge_first(before)
        except BaseException:
            self._judge_first(before)
            raise

    def _remember(self, numbers: Iterable[int]) -> None:
        """Know how forecasts waited that change in a batch, which may have to be undone."""
        if self._undo is not None:
            for number in self._open.keys() & numbers:
                self._undo.setdefault(number, self._open[number])

    def _judge_first(self, issued: int) -> None:
        # Those that wait are the latest, all of them.
        for first in range(self._issued - len(self._open), self._issued):
            waiting = self._open[first]
            if waiting.outcome is None:
                return
            self._remember([first])
            if waiting.outcome == MISSING:
                self._missing += 1
                del self._open[first]
            else:
                self._judge(first, waiting, issued)

    def _judge(self, number: int, waiting: _Waiting, issued: int) -> None:
        judged, moments, stride = number - self._missing, self._moments, self._stride
        if judged % stride == 0:
            moments = [*moments, _Moment(judged, number, waiting.time)]
            if len(moments) == MARKS:
                moments, stride = moments[::2], 2 * stride
        ready = [_Ready(number, waiting, issued)]
        # No call between these: interrupted, a round is ready or still waits.
        self._moments, self._stride = moments, stride
        self._ready += ready
        del self._open[number]
        if len(self._ready) >= TOGETHER:
            self._hand_over()

    def _hand_over(self) -> None:
        """Let the watch judge what is ready, and note in which rounds alarms rang."""
        ready, judged = self._ready, self._issued - len(self._open) - self._missing
        if not ready:
            return
        before = judged - len(ready)
        # Interrupted after this, the watch has judged some of what is ready next time.
        if new := ready[self._watch.rounds - before :]:
            columns = np.array([each.waiting.values for each in new]).T
            update: Any = self._watch.update_many
            update(*columns, [each.waiting.outcome for each in new], compile=self._fast)
        rung = dict(self._rung)
        for name, monitor in self._monitors().items():
            after = monitor.alarm_after
            if name not in rung and after is not None:
                rang = ready[after - before - 1]
                rung[name] = rang.number, rang.waiting.time, rang.issued
        rung = dict(sorted(rung.items(), key=lambda rung: rung[1][0]))
        self._rung, self._ready = rung, []

    def restart(self) -> None:
        """Forget all evidence and begin anew, after a change that was dealt with."""
        with self._gate:
            self._hand_over()
            watch = self._watch.copy()
            watch.restart()
            self._watch, self._rung = watch, {}

    # ------------------------------------------------------------------ findings

    @property
    def names(self) -> tuple[str, ...]:
        """What is told of each forecast, which is also what alarms are about."""
        return ("forecast",) if isinstance(self._watch, Monitor) else ("raw", "calibrated")

    def _monitors(self) -> dict[str, Monitor]:
        watch = self._watch
        each = (watch,) if isinstance(watch, Monitor) else (watch.raw, watch.calibrated)
        return dict(zip(self.names, each, strict=True))

    @property
    def watch(self) -> Watcher:
        """A copy of the monitor or the watch, as far as forecasts are judged."""
        with self._gate:
            self._hand_over()
            return self._watch.copy()

    @property
    def horizon(self) -> int:
        """Forecasts that may wait at a time."""
        return self._limit

    @property
    def issued(self) -> int:
        """Forecasts so far."""
        return self._issued

    @property
    def waiting(self) -> int:
        """Forecasts that are not judged yet."""
        return len(self._open)

    @property
    def judged(self) -> int:
        """Forecasts whose outcomes were judged."""
        with self._gate:
            return self._issued - len(self._open) - self._missing

    @property
    def missing(self) -> int:
        """Forecasts whose outcomes were not known in time."""
        return self._missing

    @property
    def alarm(self) -> bool:
        """Whether an alarm has rung."""
        return bool(self.alarms)

    @property
    def alarms(self) -> tuple[LateAlarm, ...]:
        """The alarms that have rung, in the order in which they did."""
        with self._gate:
            self._hand_over()
            monitors = self._monitors()
            return tuple(self._told(name, monitors[name]) for name in self._rung)

    def _told(self, name: str, monitor: Monitor) -> LateAlarm:
        number, time, issued = self._rung[name]
        since = self._moment(monitor.since or 0)
        return LateAlarm(name, number, _or_none(time), issued, since.number, _or_none(since.time))

    def _moment(self, judged: int) -> _Moment:
        """Return the last moment kept that is not after so many rounds."""
        before = [moment for moment in self._moments if moment.judged <= judged]
        return before[-1]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Under which assumptions an alarm is false with probability at most alpha."""
        lag = next(iter(self._monitors().values()))._settings["lag"]
        told = REPORTED.format(self._limit)
        return (told,) if lag >= self._limit else (told, APART)

    # --------------------------------------------------------------------- state

    def __repr__(self) -> str:
        rung = ", ".join(repr(alarm.name) for alarm in self.alarms)
        state = f"alarms: {rung}" if rung else "no alarm"
        counts = f"issued={self._issued}, waiting={self.waiting}, missing={self._missing}"
        return f"LateWatch(horizon={self._limit}, {counts}, {state})"

    def _document(self) -> Document:
        with self._gate:
            self._hand_over()
            data = self._watch.to_bytes()
            rows = [[n, *w.values, w.time, _code(w.outcome)] for n, w in self._open.items()]
            rung = {
                name: [n, _or_none(time), issued] for name, (n, time, issued) in self._rung.items()
            }
            arrays = {"watch": as_words(data), "open": _bits(rows), "moments": _bits(self._moments)}
            counts = {"issued": self._issued, "missing": self._missing, "stride": self._stride}
            settings = {"horizon": self._limit, "bytes": len(data), "rung": rung, **counts}
            return Document(KIND, settings, arrays)

    def _restore(self, document: Document) -> None:
        s, arrays = document.settings, document.arrays
        data = arrays["watch"].astype("<i8").tobytes()[: s["bytes"]]
        watch: type[Watcher] = Monitor if kind_of(data) == Monitor.kind else Watch
        self._watch, self._gate = watch.from_bytes(data), Gate()
        self._ready, self._fast, self._undo = [], None, None
        self._horizon(s["horizon"])
        self._issued, self._missing = (check.whole(s[n], n) for n in ("issued", "missing"))
        self._stride = check.whole(s["stride"], "stride", low=1)
        rows = arrays["open"].view(np.float64).reshape(-1, 3 + len(self.names)).tolist()
        self._open = {int(row[0]): _waiting(row[1:]) for row in rows}
        kept = arrays["moments"].view(np.float64).reshape(-1, 3).tolist()
        self._moments = [_Moment(int(judged), int(n), time) for judged, n, time in kept]
        self._rung = {
            check.choice(name, "name", self.names): (
                check.whole(n, "number"),
                _number(time),
                issued,
            )
            for name, (n, time, issued) in s["rung"].items()
        }
        self._refuse_unsound()

    def _refuse_unsound(self) -> None:
        moments, first = self._moments, self._issued - len(self._open)
        sound = (
            list(self._open) == list(range(first, self._issued))
            and len(self._open) <= self._limit
            and self._watch.rounds + self._missing == first
            and len(moments) < MARKS
            and bool(moments) == bool(self._watch.rounds)
            and moments == sorted(moments)
        )
        if not sound:
            raise CorruptState("state must be of a late watch, got forecasts that cannot wait so")


def _code(outcome: int | None) -> float:
    return math.nan if outcome is None else float(outcome)


def _waiting(row: list[float]) -> _Waiting:
    *values, time, outcome = row
    for value in values:
        check.probability(value, "forecast")
    told = None if math.isnan(outcome) else int(outcome)
    if told not in (None, 0, 1, MISSING):
        raise InvalidInput(f"outcome must be 0 or 1, got {told!r}")
    return _Waiting(tuple(values), time, told)


def _or_none(time: float) -> float | None:
    return None if math.isnan(time) else time


def _number(time: float | None) -> float:
    return math.nan if time is None else check.moment(time)


def _bits(rows: Any) -> Words:
    """Return rows of numbers as words."""
    return np.array([list(row) for row in rows], np.float64).reshape(-1).view(np.int64)
