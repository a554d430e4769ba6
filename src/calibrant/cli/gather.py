"""All rounds of some inputs at once, for commands that play them more than once."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any

import numpy as np

from calibrant.cli.screen import say_guesses
from calibrant.stream import Answers, Columns, Job, OnFault, Scale, Session, replay
from calibrant.stream.interrupts import insist
from calibrant.stream.replay import Progress
from calibrant.stream.rows import Rounds
from calibrant.stream.source import Source
from calibrant.summary import Collector


@dataclass(frozen=True)
class Gathered:
    """Rounds that were read, and the columns they came from."""

    rounds: Rounds
    columns: Columns

    @property
    def delivery(self) -> dict[str, Any]:
        """When forecasts were made and outcomes became known; empty if all were at once."""
        prompt = self.rounds.available is None and self.rounds.known.all()
        return {} if prompt else self.rounds.delivery()


def gather(
    job: Job, scale: str | None, on_fault: OnFault, *, limit: int | None, progress: Progress
) -> Gathered:
    """Read the rounds of a job, at most ``limit`` of them, by the rules of a replay.

    Columns that were guessed are told.
    """
    session, found = _Gathering(scale, limit), []

    def begin(source: Source, columns: Columns) -> None:
        found.append(columns)
        say_guesses(job, columns)

    with contextlib.suppress(_Enough):
        replay(job, session, on_fault, start=begin, progress=progress)
    insist()
    return Gathered(session.all(), found[0])


class _Enough(Exception):
    """There are as many rounds as were asked for."""


class _Gathering(Session):
    """A session that keeps rounds instead of playing them."""

    def __init__(self, scale: str | None, limit: int | None) -> None:
        count: Any = SimpleNamespace(issued=0)
        super().__init__(count, Collector([0.0]), Scale(scale or "probability"), None)
        self._limit, self._pieces = limit, list[Rounds]()

    def play(self, rounds: Rounds) -> Answers:
        counted: Any = self.recalibrator
        counted.issued += len(rounds)
        self._pieces.append(rounds)
        if self._limit is not None and counted.issued >= self._limit:
            raise _Enough
        return Answers.none()

    def all(self) -> Rounds:
        """Return what was kept, as one piece."""
        names = [each.name for each in fields(Rounds)]
        columns = ([getattr(piece, name) for piece in self._pieces] for name in names)
        return Rounds(*(_joined(column, self._limit) for column in columns))


def _joined(column: list[Any], limit: int | None) -> Any:
    return None if column[0] is None else np.concatenate(column)[:limit]
