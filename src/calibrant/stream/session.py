"""A recalibrator at work on a stream that comes in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import ExpiredTicket
from calibrant.recalibrate import Pending
from calibrant.recalibrate.recalibrator import SHORT
from calibrant.stream.columns import Columns
from calibrant.stream.rows import Rounds, Rules
from calibrant.stream.scale import Scale
from calibrant.summary import AnyStory, Breakdown, tell

__all__ = ["ADDED", "Answers", "Session"]

ADDED: Final = ("forecast", "mean", "bucket", "ticket")
"""The columns that are added."""
WARM_UP: Final = 50_000
"""Forecasts for which the compiler is not worth its start."""

Reals = NDArray[np.float64]


class Answers(NamedTuple):
    """What the recalibrator made of each row."""

    forecast: Reals
    mean: Reals
    bucket: NDArray[np.int64]
    ticket: NDArray[np.int64]

    @property
    def columns(self) -> Sequence[NDArray[Any]]:
        """What is written, a column each."""
        return self

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
        Who makes the forecasts: a recalibrator, or one of groups, classes or numbers.
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

    recalibrator: Any
    collector: Any
    scale: Scale
    seed: int | None
    timed: bool | None = None
    last: float = -np.inf
    skipped: int = 0
    unresolved: int = 0
    pending: Pending = field(default_factory=Pending)
    long: bool = False

    def rules(self, columns: Columns) -> Rules:
        """Return the rules that rows must obey from now on."""
        return Rules(columns, self.scale, self.last)

    def added(self, columns: Columns) -> Sequence[str]:
        """Return the names of the columns that answers add."""
        return ADDED

    def play(self, rounds: Rounds) -> Any:
        """Forecast each row, and learn each outcome when it is known."""
        self.long = self.long or self.recalibrator.issued + len(rounds) > WARM_UP
        parts = [self._play(rounds.cut(part)) for part in self._parts(len(rounds))]
        answers = parts[0] if len(parts) == 1 else self._joined(parts)
        self.unresolved += int((~rounds.known).sum())
        self._follow(rounds, answers)
        return answers

    def none(self) -> Any:
        """Return the answers to no rows."""
        return Answers.none()

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that this session goes on with: of its groups, classes or numbers."""
        return {}

    @property
    def story_parts(self) -> Breakdown | None:
        """What was seen in each group or class; None where there is one stream only."""
        return None

    def story(self, settings: Mapping[str, Any], timing: Mapping[str, float]) -> AnyStory:
        """Return what everything so far amounts to."""
        return tell(
            self.collector,
            self.recalibrator,
            seed=self.seed,
            settings={**settings, "scale": self.scale.kind},
            counts=self.counts,
            timing=timing,
            breakdown=self.story_parts,
        )

    @property
    def counts(self) -> dict[str, int]:
        """Rows that make no round."""
        return {"n_skipped": self.skipped, "n_unresolved": self.unresolved}

    def _joined(self, parts: list[Any]) -> Any:
        return Answers(*map(np.concatenate, zip(*parts, strict=True)))

    def _follow(self, rounds: Rounds, answers: Any) -> None:
        """Let the collector see the rounds whose outcome is known."""
        columns: list[NDArray[Any]] = [rounds.raw, *answers[:2], rounds.outcomes]
        if getattr(self.recalibrator, "raw_safe", None) is not None:
            columns[1] = self.collector.nearest(columns[1])
        if not rounds.known.all():
            columns = [column[rounds.known] for column in columns]
        self.collector.update(*columns, compile=self.long, checked=True)

    def _parts(self, rows: int) -> Iterator[slice]:
        # The recalibrator starts the compiler for any batch that is not short.
        step = rows if self.long else SHORT
        for start in range(0, rows, step):
            yield slice(start, min(start + step, rows))

    def _play(self, rounds: Rounds) -> Any:
        if len(rounds) == 1:
            return self._play_one(rounds)
        first = self.recalibrator.issued
        if self._is_prompt(rounds):
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

    def _is_prompt(self, rounds: Rounds) -> bool:
        """Return whether every outcome is known before the next forecast."""
        return rounds.available is None and bool(rounds.known.all()) and not len(self.pending)

    def _play_one(self, rounds: Rounds) -> Any:
        """Do the same for one row, without the overhead of a batch."""
        number = self.recalibrator.issued
        time = float(number if rounds.time is None else rounds.time[0])
        self._learn_until(time)
        answers = self._ask(rounds, time, number)
        if rounds.known[0]:
            known = time if rounds.available is None else float(rounds.available[0])
            outcome: Any = rounds.outcomes
            told = Pending(np.array([number]), np.array([known]), outcome)
            self.pending = _expected(_appended(self.pending, told))
            self._learn_until(time)
        return answers

    def _ask(self, rounds: Rounds, time: float, number: int) -> Any:
        """Return the answers to one row, whose ticket stays open."""
        ticket = self.recalibrator.forecast(float(rounds.raw[0]), time=time)
        found = (ticket.value, min(ticket.mean, 1.0)), (ticket.bucket, number)
        return Answers(*(np.array([value]) for pair in found for value in pair))

    def _learn_until(self, time: float) -> None:
        """Learn what is known by ``time``, in the order in which it became known."""
        pending = self.pending
        if not len(pending) or pending.available.min() > time:
            return
        known = pending.available <= time
        for t in np.lexsort((pending.number, pending.available))[: int(known.sum())].tolist():
            try:
                self.recalibrator.observe(int(pending.number[t]), pending.outcome[t].item())
            except ExpiredTicket:
                continue
        self.pending = _chosen(pending, ~known)


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
