"""A stream of point forecasts, and intervals around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from calibrant.kinds.intervals import IntervalCollector, Intervals
from numpy.typing import NDArray

from calibrant.core.arrays import Mask, Reals, Words
from calibrant.recalibrate import Pending
from calibrant.regression import ConformalInterval
from calibrant.stream.columns import Columns, Scale
from calibrant.stream.pieces import Piece
from calibrant.stream.rows import Rounds, VectorRules
from calibrant.stream.session import Session, names_of
from calibrant.stream.values import Numbers
from calibrant.summary import kinds


class IntervalRules(VectorRules):
    """Check rows with a point forecast and read them."""

    def _numbers(self, piece: Piece) -> tuple[Numbers, Numbers]:
        return self._table(piece), self.columns.wording.numbers(piece.column(self.columns.outcome))

    def _wrong(self, raw: Numbers, outcome: Numbers) -> dict[str, Mask]:
        wrong = ~(outcome.missing | np.isfinite(outcome.values))
        return {"raw": ~np.isfinite(raw.values[:, 0]), "outcome": wrong}

    def _outcomes(self, values: Reals) -> Any:
        return np.nan_to_num(values)

    def _rules(self) -> dict[str, tuple[str | None, str]]:
        return {name: (column, "a finite number") for name, column in self._named()}

    def _named(self) -> list[tuple[str, str]]:
        return [("raw", self.name), ("outcome", self.columns.outcome)]


class IntervalAnswers(NamedTuple):
    """The interval of each row, and the number of its forecast."""

    low: Reals
    high: Reals
    ticket: Words

    @property
    def columns(self) -> Sequence[NDArray[Any]]:
        """What is written, a column each."""
        return list(self)


@dataclass
class IntervalSession(Session):
    """A session of a :class:`~calibrant.regression.ConformalInterval`."""

    outcome_type: ClassVar[type[np.generic]] = np.float64

    @classmethod
    def start(
        cls, made: ConformalInterval, seed: int | None, columns: tuple[str, ...]
    ) -> IntervalSession:
        """Return a session before its first row."""
        waiting: Any = np.empty(0)
        pending = Pending(outcome=waiting)
        return cls(made, IntervalCollector(), Scale(), seed, pending=pending, columns=columns)

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        return {"centre": self.columns}

    def rules(self, columns: Columns) -> IntervalRules:
        return IntervalRules(columns, self.last)

    def added(self, columns: Columns) -> Sequence[str]:
        return ("low", "high", "ticket")

    def none(self) -> IntervalAnswers:
        return IntervalAnswers(np.empty(0), np.empty(0), np.empty(0, np.int64))

    def asked(self, options: Any) -> dict[str, Any]:
        none = dict.fromkeys(kinds.options, ())
        own = {"coverage": (self.recalibrator.coverage,), "method": self.recalibrator.method}
        return {**none, **self.kept_columns, **own, "seed": self.seed}

    def words(self) -> list[str]:
        seed = [] if self.seed is None else ["--seed", str(self.seed)]
        return ["--coverage", repr(self.recalibrator.coverage), *seed]

    def kept(self) -> tuple[dict[str, Any], dict[str, Words]]:
        return {"parts": Intervals.words[0], "columns": list(self.columns)}, {}

    @classmethod
    def restored(cls, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        return {"columns": names_of(settings["columns"])}

    def _play_prompt(self, rounds: Rounds) -> IntervalAnswers:
        run = self.recalibrator.replay(rounds.raw[:, 0], rounds.outcomes)
        return IntervalAnswers(run.low, run.high, run.first + np.arange(len(rounds)))

    def _ask(self, rounds: Rounds, time: float, number: int) -> IntervalAnswers:
        ticket = self.recalibrator.forecast(float(rounds.raw[0, 0]), time=time)
        ends = np.array([ticket.low]), np.array([ticket.high])
        return IntervalAnswers(*ends, np.array([number]))

    def _follow(self, rounds: Rounds, answers: Any) -> None:
        known = rounds.known
        ends = answers.low[known], answers.high[known]
        outcomes: Any = rounds.outcomes[known]
        self.collector.update(rounds.raw[known, 0], *ends, outcomes)
