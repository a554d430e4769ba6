"""A stream of forecasts over several classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.classes import recalibrator
from calibrant.core.arrays import Reals, Words
from calibrant.kinds.binary.session import Probabilities
from calibrant.kinds.classes.rows import ClassRules, class_names
from calibrant.stream.columns import Columns, Scale
from calibrant.stream.rows import Rounds
from calibrant.summary import Breakdown, Collector, collector_for

CURVES: Final = 20
"""Up to so many classes each is followed in every round; of more, only the one that comes first."""
ADDED: Final = ("top", "confidence", "mean", "ticket")


class ClassAnswers(NamedTuple):
    """What was made of each row.

    Attributes
    ----------
    top
        The class that comes first, by name or number.
    confidence, mean
        Its probability, as drawn and on average.
    ticket
        The number of the forecast.
    forecast
        The whole vector.
    classwise
        The number of each class before anything made them sum to 1; not written.
    several
        Whether the vector is written as a column for each class, or as one of lists.
    """

    top: NDArray[Any]
    confidence: Reals
    mean: Reals
    ticket: Words
    forecast: Reals
    classwise: Reals
    several: bool

    @property
    def columns(self) -> Sequence[NDArray[Any]]:
        """What is written, a column each."""
        return [*self[:4], *(self.forecast.T if self.several else [self.forecast])]


@dataclass
class ClassSession(Probabilities):
    """A session of a recalibrator over classes, which is made when their number is known.

    Attributes
    ----------
    options
        What the recalibrator is made with.
    breakdown
        What was seen of each class.
    """

    outcome_type: ClassVar[type[np.generic]] = np.int64

    options: dict[str, Any] = field(default_factory=dict)
    breakdown: Breakdown = field(default_factory=lambda: Breakdown("class"))

    @classmethod
    def start(cls, columns: tuple[str, ...], options: dict[str, Any], seed: int) -> ClassSession:
        """Return a session before its first row."""
        unborn = SimpleNamespace(issued=0, rounds=0, classes=None)
        return cls(unborn, Collector([0.0]), Scale(), seed, columns=columns, options=options)

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        return {"proba": self.columns}

    @property
    def several(self) -> bool:
        """Whether each class has a column."""
        return len(self.columns) > 1

    def rules(self, columns: Columns) -> ClassRules:
        return ClassRules(columns, self.recalibrator.classes, self.last)

    def added(self, columns: Columns) -> Sequence[str]:
        vector = [f"forecast_{name}" for name in class_names(self.columns)] or ["forecast"]
        return [*ADDED, *vector]

    def none(self) -> ClassAnswers:
        reals, wholes = np.empty(0), np.empty(0, np.int64)
        top = np.empty(0, "U1") if self.several else wholes
        table = np.empty((0, max(len(self.columns), 1)))
        return ClassAnswers(top, reals, reals, wholes, table, table, self.several)

    def play(self, rounds: Rounds) -> Any:
        if self.recalibrator.classes is None:
            self._begin(rounds.raw.shape[1])
        return super().play(rounds)

    def _begin(self, classes: int) -> None:
        self.recalibrator = recalibrator(classes, seed=self.seed, **self.options)
        self.collector = collector_for(self.recalibrator)

    def _play_prompt(self, rounds: Rounds) -> ClassAnswers:
        run = self.recalibrator.replay(rounds.raw, rounds.outcomes)
        return self._answers(rounds.raw, run, run.forecast, run.first)

    def _ask(self, rounds: Rounds, time: float, number: int) -> Any:
        ticket = self.recalibrator.forecast(rounds.raw[0], time=time)
        return self._answers(rounds.raw, ticket, ticket.value[None], number)

    def _answers(self, raw: Reals, made: Any, forecast: Reals, first: int) -> ClassAnswers:
        """Return the answers of a run or of a ticket."""
        rows, top = np.arange(len(raw)), raw.argmax(axis=1)
        if hasattr(made, "confidence"):
            drawn, mean, classwise = made.confidence, made.confidence_mean, forecast
        else:
            classwise = np.atleast_2d(made.classwise)
            drawn = classwise[rows, top]
            mean = np.atleast_2d(made.classwise_mean)[rows, top]
        names = np.array(class_names(self.columns)) if self.several else np.arange(raw.shape[1])
        sure = np.minimum(np.atleast_1d(mean), 1.0)
        return ClassAnswers(
            names[top], np.atleast_1d(drawn), sure, first + rows, forecast, classwise, self.several
        )

    def _joined(self, parts: list[Any]) -> ClassAnswers:
        *columns, _ = zip(*parts, strict=True)
        joined: Any = [np.concatenate(column) for column in columns]
        return ClassAnswers._make([*joined, self.several])

    def _follow(self, rounds: Rounds, answers: Any) -> None:
        """Follow how sure the first class was and whether it came; and each class, if few."""
        known = rounds.known
        raw, outcomes = rounds.raw[known], rounds.outcomes[known]
        top, sure = raw.argmax(axis=1), raw.max(axis=1)
        right = (outcomes == top).astype(np.uint8)
        drawn, mean = answers.confidence[known], answers.mean[known]
        self.collector.update(sure, drawn, mean, right, compile=self.long, checked=True)
        named = list(class_names(self.columns)) or [str(k) for k in range(raw.shape[1])]
        if raw.shape[1] > CURVES:
            places = self.breakdown.places([named[k] for k in top.tolist()])
            self.breakdown.add(places, sure, drawn, right)
            return
        for k, place in enumerate(self.breakdown.places(named).tolist()):
            said = np.clip(answers.classwise[known, k], 0.0, 1.0)
            self.breakdown.add(np.full(len(raw), place), raw[:, k], said, outcomes == k)
