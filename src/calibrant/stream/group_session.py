"""A stream whose rows belong to groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.groups import GroupRecalibrator
from calibrant.stream.rows import Rounds
from calibrant.stream.session import Answers, Session
from calibrant.summary import Breakdown

__all__ = ["GroupSession"]


@dataclass
class GroupSession(Session):
    """A session of a :class:`~calibrant.groups.GroupRecalibrator`.

    Attributes
    ----------
    recalibrator
        Who makes the forecasts.
    columns
        The columns whose values are groups.
    breakdown
        What was seen in each group.
    """

    recalibrator: GroupRecalibrator
    columns: tuple[str, ...] = ()
    breakdown: Breakdown = field(default_factory=lambda: Breakdown("group"))

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        return {"group": self.columns}

    @property
    def story_parts(self) -> Breakdown:
        return self.breakdown

    def _play(self, rounds: Rounds) -> Any:
        if len(rounds) > 1 and not self._is_prompt(rounds):
            rows = [self._play_one(rounds.cut(slice(t, t + 1))) for t in range(len(rounds))]
            return self._joined(rows)
        if len(rounds) == 1:
            return self._play_one(rounds)
        groups: Any = rounds.groups
        run = self.recalibrator.replay(rounds.raw, rounds.outcomes, groups=groups.tolist())
        return Answers(run.forecast, np.minimum(run.mean, 1.0), run.bucket, run.ticket)

    def _ask(self, rounds: Rounds, time: float, number: int) -> Any:
        groups: Any = rounds.groups
        ticket = self.recalibrator.forecast(float(rounds.raw[0]), groups=groups[0], time=time)
        found = (ticket.value, min(ticket.mean, 1.0)), (ticket.bucket, number)
        return Answers(*(np.array([value]) for pair in found for value in pair))

    def _follow(self, rounds: Rounds, answers: Any) -> None:
        super()._follow(rounds, answers)
        groups: Any = rounds.groups
        known = np.flatnonzero(rounds.known).tolist()
        members = [(t, name) for t in known for name in groups[t]]
        row = np.array([t for t, _ in members], np.int64)
        places = self.breakdown.places([name for _, name in members])
        columns = rounds.raw[row], answers.forecast[row], rounds.outcomes[row]
        self.breakdown.add(places, *columns)
