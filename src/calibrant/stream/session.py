"""A recalibrator at work on a stream that comes in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import ExpiredTicket
from calibrant.recalibrate import Pending, Recalibrator
from calibrant.recalibrate.recalibrator import SHORT
from calibrant.stream.rows import Rounds
from calibrant.stream.scale import Scale
from calibrant.summary import Collector

__all__ = ["Answers", "Session"]

WARM_UP: Final = 50_000
"""Forecasts for which the compiler is not worth its start."""

Reals = NDArray[np.float64]


class Answers(NamedTuple):
    """What the recalibrator made of each row."""

    forecast: Reals
    mean: Reals
    bucket: NDArray[np.int64]
    ticket: NDArray[np.int64]

    @classmethod
    def none(cls) -> Answers:
        """Return the answers to no rows."""
        reals, wholes = np.empty(0), np.empty(0, np.int64)
        return cls(reals, reals, wholes, wholes)


@dataclass
class Session:
    """Everything that goes on from one piece of a stream to the next.

    Attributes
    ----------
    recalibrator
        Who makes the forecasts.
    collector
        Who follows them.
    scale
        What raw forecasts are given as.
    seed
        What the recalibrator was made with, if known.
    timed
        Whether rows say when they were made; None before the first one.
    last
        When the last row was made.
    skipped, unresolved
        Rows that broke a rule, and rows without an outcome.
    pending
        Outcomes that were not known yet when the last forecast was made.
    long
        Whether the stream is known to be long, so that the compiler may start at once.
    """

    recalibrator: Recalibrator
    collector: Collector
    scale: Scale
    seed: int | None
    timed: bool | None = None
    last: float = -np.inf
    skipped: int = 0
    unresolved: int = 0
    pending: Pending = field(default_factory=Pending)
    long: bool = False

    def play(self, rounds: Rounds) -> Answers:
        """Forecast each row, and learn each outcome when it is known."""
        self.long = self.long or self.recalibrator.issued + len(rounds) > WARM_UP
        parts = [self._play(_cut(rounds, part)) for part in self._parts(len(rounds))]
        answers = parts[0] if len(parts) == 1 else _joined(parts)
        columns: list[NDArray[Any]] = [rounds.raw, *answers[:2], rounds.outcomes]
        if not rounds.known.all():
            self.unresolved += int((~rounds.known).sum())
            columns = [column[rounds.known] for column in columns]
        self.collector.update(*columns, compile=self.long, checked=True)
        return answers

    def _parts(self, rows: int) -> Iterator[slice]:
        # The recalibrator starts the compiler for any batch that is not short.
        step = rows if self.long else SHORT
        for start in range(0, rows, step):
            yield slice(start, min(start + step, rows))

    def _play(self, rounds: Rounds) -> Answers:
        if len(rounds) == 1:
            return self._play_one(rounds)
        first = self.recalibrator.issued
        if rounds.available is None and rounds.known.all() and not len(self.pending):
            run = self.recalibrator.replay(rounds.raw, rounds.outcomes)
        else:
            time = _order(first, len(rounds)) if rounds.time is None else rounds.time
            told = time if rounds.available is None else rounds.available
            available = np.where(rounds.known, told, np.inf)
            run = self.recalibrator.replay(
                rounds.raw, rounds.outcomes, available=available, time=time, carry=self.pending
            )
            self.pending = _expected(run.pending)
        # A mean is a sum of products and may round to just above 1.
        mean = np.minimum(run.mean, 1.0, out=run.mean)
        return Answers(run.forecast, mean, run.bucket, run.ticket)

    def _play_one(self, rounds: Rounds) -> Answers:
        """Do the same for one row, without the overhead of a batch."""
        number = self.recalibrator.issued
        time = float(number if rounds.time is None else rounds.time[0])
        self._learn_until(time)
        ticket = self.recalibrator.forecast(float(rounds.raw[0]), time=time)
        if rounds.known[0]:
            known = time if rounds.available is None else float(rounds.available[0])
            told = Pending(np.array([number]), np.array([known]), rounds.outcomes)
            self.pending = _expected(_appended(self.pending, told))
            self._learn_until(time)
        mean = min(ticket.mean, 1.0)
        found = (ticket.value, mean), (ticket.bucket, number)
        return Answers(*(np.array([value]) for pair in found for value in pair))

    def _learn_until(self, time: float) -> None:
        """Learn what is known by ``time``, in the order in which it became known."""
        pending = self.pending
        if not len(pending) or pending.available.min() > time:
            return
        known = pending.available <= time
        for t in np.lexsort((pending.number, pending.available))[: int(known.sum())].tolist():
            try:
                self.recalibrator.observe(int(pending.number[t]), int(pending.outcome[t]))
            except ExpiredTicket:
                continue
        self.pending = _chosen(pending, ~known)


def _joined(parts: list[Answers]) -> Answers:
    return Answers(*map(np.concatenate, zip(*parts, strict=True)))


def _cut(rounds: Rounds, part: slice) -> Rounds:
    return Rounds(
        rounds.raw[part],
        rounds.outcomes[part],
        rounds.known[part],
        None if rounds.time is None else rounds.time[part],
        None if rounds.available is None else rounds.available[part],
    )


def _order(first: int, rows: int) -> Reals:
    return np.arange(first, first + rows, dtype=np.float64)


def _expected(pending: Pending) -> Pending:
    """Leave out the outcomes that will never come; their tickets expire by themselves."""
    return _chosen(pending, np.isfinite(pending.available))


def _chosen(pending: Pending, wanted: NDArray[np.bool_]) -> Pending:
    return Pending(pending.number[wanted], pending.available[wanted], pending.outcome[wanted])


def _appended(pending: Pending, more: Pending) -> Pending:
    pairs = zip(vars(pending).values(), vars(more).values(), strict=True)
    return Pending(*(np.concatenate(pair) for pair in pairs))
