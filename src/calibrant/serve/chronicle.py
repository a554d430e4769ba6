"""What is remembered of a stream beside its model: scores, curves, how late outcomes are, alarms.

::

    the writer:   notes each event in a queue, which takes no time to speak of
    who asks, or a thread of the service, works the queue off, in the order of the log:
        forecast:   let it wait in the watch, under its number there
        outcome:    hand the round to the follower and to the watch
        correction: take the round back from the follower; from the watch if it waits there still

The order is that of the log, so a replay of the log gives the same numbers to the last bit.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np

from calibrant.core.codec import Document
from calibrant.errors import CorruptState
from calibrant.journal.fold import Fold, Run
from calibrant.journal.forms import AnyTicket, Model
from calibrant.journal.settings import Settings
from calibrant.journal.store import Line
from calibrant.kernels.tallies import LEVELS, WINDOW
from calibrant.kinds.binary import step_of
from calibrant.monitor import LateWatch, Watch
from calibrant.recalibrate import Table
from calibrant.summary import Breakdown, Collector, Follower, Glance, collector_for, glance, kinds
from calibrant.summary.follower import LONGEST

LEARNING: Final = 500
"""Rounds at the beginning in which recalibrated forecasts are not judged."""
TOLERANCE: Final = 0.02
"""How far a forecast may be from the chance of its outcome and still count as right."""
PATIENCE: Final = 1000
"""Newer forecasts for which the alarm waits for an outcome, unless a stream says otherwise."""
MOST: Final = 50_000
"""Events that may be in the queue; the writer works off more by itself."""
MEANS: Final = 1 << 20
"""Means that are kept, of rules whose tickets do not tell them once they are closed."""
AGES: Final = math.nextafter(LONGEST, 0.0)
"""Seconds that an outcome was late, at most: callers tell any times."""
AT_ONCE: Final = 500
"""Events that are worked off before others may look."""


class Stored(msgspec.Struct):
    """A chronicle as it is stored."""

    follower: bytes
    watch: bytes
    waiting: dict[str, int]
    means: dict[str, float]
    starts: list[int]
    began: int
    untimed: int
    parts: list[str] = []
    table: bytes = b""


class Chronicle:
    """Follows a stream in the order of its log, in constant memory.

    Parameters
    ----------
    model
        Whose forecasts: a recalibrator, or a table of them.
    alarm, patience
        The chance, at most, of a false alarm, and how many newer forecasts may be made until the
        alarm does without an outcome.
    fast
        Whether machine code shall judge rounds.
    names
        What classes are called, where there are any.
    told
        What :meth:`to_bytes` gave, to go on from there.

    Attributes
    ----------
    follower, watch
        What computes scores, and what watches for alarms.
    alpha
        The chance of a false alarm.
    kind, names
        What the kind of the stream tells of tickets, and what classes are called.
    parts
        What was seen in each group or class; None where there are none.
    """

    def __init__(
        self,
        model: Model,
        alarm: float,
        *,
        patience: int = PATIENCE,
        fast: bool = False,
        names: Sequence[str] = (),
        told: bytes | None = None,
    ) -> None:
        self.alpha, self._patience, self._fast = alarm, patience, fast
        self.names, self.kind = names, kinds.of(pattern_of(model)).service
        self.parts: Breakdown | None = None
        self._queue: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._turn = threading.RLock()
        if told is None:
            self._begin(model, 0)
        else:
            self._restore(told)

    def _begin(self, model: Model, seq: int) -> None:
        made = pattern_of(model)
        self.follower = Follower(collector_for(made).values, allowed=step_of(made) / 2.0)
        most = model._max_open if isinstance(model, Table) else model.max_open
        watch = Watch(self.alpha, learning=LEARNING, tolerance=TOLERANCE)
        self._set_watch(LateWatch(watch, horizon=min(self._patience, most)))
        self._waiting: dict[str, int] = {}
        self._means: dict[str, float] = {}
        self._starts, self._began, self.untimed = [seq] * LEVELS, seq, 0
        if self.kind.parts is not None:
            self.parts = Breakdown(self.kind.parts)
            self.parts.places(self.names)

    def _set_watch(self, watch: LateWatch) -> None:
        self.watch = watch.compile() if self._fast else watch

    # ------------------------------------------------------------------ the writer

    def forecast(self, ticket: AnyTicket) -> None:
        """Note a forecast."""
        self._note(self._made, ticket)

    def learned(self, ticket: AnyTicket, seq: int, time: float | None) -> None:
        """Note an outcome that was learned by event ``seq``."""
        self._note(self._closed, ticket, seq, time)

    def corrected(self, ticket: AnyTicket, outcome: int, was: int, since: int) -> None:
        """Note that the outcome ``was``, learned by event ``since``, is another one."""
        self._note(self._changed, ticket, outcome, was, since)

    def expired(self, id: str) -> None:
        """Note that an outcome will never come."""
        self._note(self._gone, id)

    def played(self, run: Run) -> None:
        """Note many forecasts and outcomes at once: what came before is worked off first."""
        self.catch_up()
        with self._turn:
            self._run(run)

    def anew(self, model: Model, seq: int) -> None:
        """Begin again: by event ``seq`` the stream was handed over from elsewhere."""
        self._note(self._begin, model, seq)

    def _note(self, what: Callable[..., None], *told: Any) -> None:
        self._queue.append((what, told))
        if len(self._queue) > MOST:
            self.catch_up()

    # ------------------------------------------------------------------ working off

    def catch_up(self) -> None:
        """Work off what was noted so far."""
        left = len(self._queue)
        while left > 0:
            with self._turn:
                for _ in range(min(AT_ONCE, len(self._queue))):
                    what, told = self._queue.popleft()
                    what(*told)
            left -= AT_ONCE

    def _made(self, ticket: AnyTicket) -> None:
        id, mean = str(ticket.id), self.kind.mean_of(ticket)
        raw = self.kind.raw_of(ticket)
        self._waiting[id] = self.watch.forecast(raw, mean, time=ticket.time)
        self._drop_judged()
        if _has_law(ticket):
            self._means[id] = mean
            if len(self._means) > MEANS:
                del self._means[next(iter(self._means))]

    def _closed(self, ticket: AnyTicket, seq: int, time: float | None) -> None:
        timed = time is not None and ticket.time is not None
        waited = min(max(time - ticket.time, 0.0), AGES) if timed else 0.0  # type: ignore[operator]
        id, told, seen = str(ticket.id), ticket.outcome, self.kind
        assert told is not None
        outcome, value = seen.happened(ticket, told), seen.value_of(ticket)
        mean = self._means.pop(id, value) if _has_law(ticket) else seen.mean_of(ticket)
        rounds = self.follower.take(seen.raw_of(ticket), value, mean, outcome, waited)
        self._add_parts(ticket, told)
        self.untimed += not timed
        if rounds % WINDOW == 0:
            self._end_windows(rounds, seq, time)
        if id in self._waiting:
            self.watch.observe(self._waiting[id], outcome)
            self._drop_judged()

    def _run(self, run: Run) -> None:
        """Work off a run of the log, which has the same outcome as one by one.

        The follower knows of outcomes alone, and who watches takes all in their order.
        """
        told = [k for k, made in enumerate(run.made) if not made]
        timed = [run.time[k] is not None and run.since[k] is not None for k in told]
        waited = [
            min(max(run.time[k] - run.since[k], 0.0), AGES) if known else 0.0  # type: ignore[operator]
            for k, known in zip(told, timed, strict=True)
        ]
        said: tuple[list[Any], ...] = run.raw, run.value, run.mean, run.outcome
        raw, value, mean, outcome = ([column[k] for k in told] for column in said)
        self.untimed += len(told) - sum(timed)
        start = 0
        while start < len(told):
            # Up to where a window ends, which is noted before the next begins.
            end = start + WINDOW - self.follower.rounds % WINDOW
            some = slice(start, end)
            rounds = self.follower.take_many(
                raw[some], value[some], mean[some], outcome[some], waited[some]
            )
            if rounds % WINDOW == 0:
                last = told[end - 1]
                self._end_windows(rounds, run.seq[last], run.time[last])
            start = end
        self._watch_run(run)

    def _watch_run(self, run: Run) -> None:
        waiting, issued = self._waiting, self.watch.issued
        made = [id for id, each in zip(run.id, run.made, strict=True) if each]
        waiting.update(zip(made, range(issued, issued + len(made)), strict=True))
        self.watch.play(
            [(run.raw[k], run.mean[k]) if each else () for k, each in enumerate(run.made)],
            [run.since[k] if each else run.outcome[k] for k, each in enumerate(run.made)],
            [waiting.get(id, -1) for id in run.id],
        )
        self._drop_judged()

    def _end_windows(self, rounds: int, seq: int, time: float | None) -> None:
        """Note by which event and when the windows ended that end with that many rounds."""
        ended = [level for level in range(LEVELS) if rounds % (WINDOW << level) == 0]
        self._starts[: len(ended)] = [seq] * len(ended)
        if time is not None:
            self.follower.stamp(time)

    def _add_parts(self, ticket: AnyTicket, outcome: int, sign: int = 1) -> None:
        """Add a round to its groups or classes, or take it back."""
        found = self.kind.members(ticket, outcome, self.names)
        if found and self.parts is not None:
            names, raw, drawn, happened = zip(*found, strict=True)
            self.parts.add(self.parts.places(names), raw, drawn, happened, sign)

    def _changed(self, ticket: AnyTicket, outcome: int, was: int, since: int) -> None:
        seen = self.kind
        told, before = seen.happened(ticket, outcome), seen.happened(ticket, was)
        if since > self._began:
            self._add_parts(ticket, was, -1)
            self._add_parts(ticket, outcome)
            if told != before:
                said = seen.raw_of(ticket), seen.value_of(ticket), seen.mean_of(ticket)
                self.follower.correct(self._round(since), *said, told)
        number = self._waiting.get(str(ticket.id))
        if number is not None:
            self.watch.observe(number, told)

    def _round(self, since: int) -> int:
        """Return a round in the same windows as that which was learned by event ``since``."""
        rounds = self.follower.rounds
        ended = [
            rounds // (WINDOW << level) * (WINDOW << level)
            for level in range(LEVELS)
            if since <= self._starts[level]
        ]
        return min(ended, default=rounds)

    def _gone(self, id: str) -> None:
        self._means.pop(id, None)
        number = self._waiting.get(id)
        if number is not None:
            self.watch.forget(number)
            self._drop_judged()

    def _drop_judged(self) -> None:
        """Forget the numbers of forecasts that the watch waits for no more."""
        waiting, first = self._waiting, self.watch.issued - self.watch.waiting
        if waiting and next(iter(waiting.values())) < first:
            for id in list(islice(waiting, len(waiting) - self.watch.waiting)):
                del waiting[id]

    # ------------------------------------------------------------------ looking

    def glance(self, open: int = 0, expired: int = 0) -> Glance:
        """Return scores, curves and waiting times of all rounds so far."""
        self.catch_up()
        with self._turn:
            seen, untimed = glance(self.follower, open=open, expired=expired), self.untimed
        waits = seen.waits.copy()
        waits[0] -= untimed
        return replace(seen, waits=waits)

    def collector(self) -> Collector:
        """Return all rounds so far, for a summary."""
        self.catch_up()
        return self.follower.collector()

    def breakdown(self) -> Breakdown | None:
        """Return what was seen in each group or class, if there are outcomes."""
        self.catch_up()
        with self._turn:
            parts = self.parts
            if parts is None or not self.follower.rounds:
                return None
            return Breakdown.from_words(parts.kind, parts.names, parts.words())

    def watched(self) -> LateWatch:
        """Return who watches for alarms, with all that was noted so far."""
        self.catch_up()
        return self.watch

    # ------------------------------------------------------------------ stored

    def to_bytes(self) -> bytes:
        """Return the whole chronicle as bytes."""
        self.catch_up()
        with self._turn:
            stored = Stored(
                self.follower.to_bytes(),
                self.watch.to_bytes(),
                self._waiting,
                self._means,
                self._starts,
                self._began,
                self.untimed,
                *self._stored_parts(),
            )
            return msgspec.msgpack.encode(stored)

    def _stored_parts(self) -> tuple[list[str], bytes]:
        if self.parts is None:
            return [], b""
        return list(self.parts.names), self.parts.words().astype("<i8").tobytes()

    def _restore(self, told: bytes) -> None:
        try:
            stored = msgspec.msgpack.decode(told, type=Stored)
        except msgspec.MsgspecError as error:
            raise CorruptState(f"chronicle must be as it was written, got {error}") from error
        self.follower = Follower.from_bytes(stored.follower)
        self._set_watch(LateWatch.from_bytes(stored.watch))
        self._waiting, self._starts = stored.waiting, stored.starts
        self._means, self._began, self.untimed = stored.means, stored.began, stored.untimed
        if self.kind.parts is not None:
            words = np.frombuffer(stored.table, "<i8").astype(np.int64)
            self.parts = Breakdown.from_words(self.kind.parts, stored.parts, words)


def _has_law(ticket: Any) -> bool:
    """Say whether a ticket's mean is known to the one that was handed out alone."""
    return getattr(ticket, "_law", None) is not None


def chronicle_of(model: Model, line: Line, told: bytes | None, *, fast: bool = False) -> Chronicle:
    """Return who follows a stream: somebody new, or as stored."""
    settings = Settings.from_json(line.settings)
    patience, names = settings.made.get("patience", PATIENCE), names_in(settings, model)
    return Chronicle(model, settings.alarm, patience=patience, fast=fast, names=names, told=told)


def names_in(settings: Settings, model: Model) -> list[str]:
    """Return what the classes of a stream are called: their numbers, where nothing else is told."""
    return settings.labels or [str(k) for k in range(getattr(model, "classes", 0))]


def chronicle_in(fold: Fold) -> Chronicle:
    """Return who follows a stream."""
    assert isinstance(fold.witness, Chronicle)
    return fold.witness


def catch_up(folds: Sequence[Fold]) -> None:
    """Work off what the chronicles of some streams have noted."""
    for fold in folds:
        if isinstance(fold.witness, Chronicle):
            fold.witness.catch_up()


def pattern_of(model: Model) -> Any:
    """Return a recalibrator without rounds, as each key of a table begins; or the model itself."""
    if not isinstance(model, Table):
        return model
    made = model._made
    empty = Document(made.kind, model._settings()["pattern"], {}, made.version)
    return made._unborn(empty)
