"""A stream whose rows belong to groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.groups import GroupRecalibrator
from calibrant.kinds.binary.session import BinarySession
from calibrant.stream.rows import Rounds
from calibrant.stream.session import Answers, Options, Session
from calibrant.summary import Breakdown


@dataclass
class GroupSession(BinarySession):
    """A session of a :class:`~calibrant.groups.GroupRecalibrator`.

    Attributes
    ----------
    recalibrator
        Who makes the forecasts.
    breakdown
        What was seen in each group.
    """

    settles: ClassVar[bool] = False

    recalibrator: GroupRecalibrator
    breakdown: Breakdown = field(default_factory=lambda: Breakdown("group"))

    @classmethod
    def start(cls, made: Any, options: Options, seed: int | None) -> Self:
        session = super().start(made, options, seed)
        session.columns = options.group
        return session

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        return {"group": self.columns}

    def _play_prompt(self, rounds: Rounds) -> Answers:
        groups: Any = rounds.groups
        return self._answers(rounds, groups=groups.tolist())

    def _play_late(self, rounds: Rounds) -> Any:
        return Session._play_late(self, rounds)

    def _ask(self, rounds: Rounds, time: float, number: int, **groups: Any) -> Answers:
        named: Any = rounds.groups
        return super()._ask(rounds, time, number, groups=named[0])

    def _follow(self, rounds: Rounds, answers: Any) -> None:
        super()._follow(rounds, answers)
        groups: Any = rounds.groups
        known = np.flatnonzero(rounds.known).tolist()
        members = [(t, name) for t in known for name in groups[t]]
        row = np.array([t for t, _ in members], np.int64)
        places = self.breakdown.places([name for _, name in members])
        columns = rounds.raw[row], answers.forecast[row], rounds.outcomes[row]
        self.breakdown.add(places, *columns)
