"""A stream of forecasts of numbers: quantiles, or normal distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.coin import coin
from calibrant.recalibrate import Pending
from calibrant.regression import Distributions, QuantileRecalibrator
from calibrant.stream.columns import Columns
from calibrant.stream.number_rows import NumberRules, columns_of, distributions
from calibrant.stream.rows import Rounds
from calibrant.stream.scale import Scale
from calibrant.stream.session import Session
from calibrant.summary import NumberCollector, NumberStory, Seen, tell_numbers

__all__ = ["NumberAnswers", "NumberSession"]

KEY: Final = 2017
"""Of the coins that share out outcomes on atoms where they are scored."""

STRETCH: Final = 1 << 15
"""Rows that are played at a time: enough for the compiler to pay."""

Reals = NDArray[np.float64]


class NumberAnswers(NamedTuple):
    """What was made of each row.

    Attributes
    ----------
    quantiles
        The recalibrated quantiles, a column for each level.
    ticket
        The number of the forecast.
    inner, outer
        Which levels of the raw distribution were moved, and to where; not written.
    """

    quantiles: Reals
    ticket: NDArray[np.int64]
    inner: Reals
    outer: Reals

    @property
    def columns(self) -> Sequence[NDArray[Any]]:
        """What is written, a column each."""
        return [*self.quantiles.T, self.ticket]


@dataclass
class NumberSession(Session):
    """A session of a :class:`~calibrant.regression.QuantileRecalibrator`.

    Attributes
    ----------
    recalibrator
        Who makes the forecasts.
    collector
        Who follows them.
    columns
        The columns of quantiles, or those of mean and standard deviation; empty if a bare
        recalibrator was read and nobody has named them yet.
    given
        The levels of the columns of quantiles; empty for normal distributions.
    """

    recalibrator: QuantileRecalibrator
    collector: NumberCollector
    columns: tuple[str, ...] = ()
    given: tuple[float, ...] = ()

    @classmethod
    def start(
        cls,
        made: QuantileRecalibrator,
        seed: int | None,
        columns: tuple[str, ...] = (),
        given: tuple[float, ...] = (),
    ) -> NumberSession:
        """Return a session before its first row."""
        follower = NumberCollector(made.levels)
        session = cls(made, follower, Scale(), seed, columns=columns, given=given)
        session.pending = Pending(outcome=_no_outcomes())
        return session

    def name_columns(
        self, quantiles: tuple[str, ...], normal: tuple[str, ...], levels: tuple[float, ...]
    ) -> None:
        """Say which columns to read, where the state was of a recalibrator alone."""
        if not self.columns:
            self.columns, self.given, _ = columns_of(quantiles, normal, levels)

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        return {"quantiles" if self.given else "normal": self.columns}

    def rules(self, columns: Columns) -> NumberRules:
        return NumberRules(columns, self.last)

    def added(self, columns: Columns) -> Sequence[str]:
        return [*(f"forecast_{level!r}" for level in self.recalibrator.levels.tolist()), "ticket"]

    def none(self) -> NumberAnswers:
        table = np.empty((0, len(self.recalibrator.levels)))
        return NumberAnswers(table, np.empty(0, np.int64), table, table)

    def story(self, settings: Mapping[str, Any], timing: Mapping[str, float]) -> NumberStory:
        return tell_numbers(
            self.collector,
            self.recalibrator,
            seed=self.seed,
            settings=settings,
            counts=self.counts,
            timing=timing,
        )

    def play(self, rounds: Rounds) -> NumberAnswers:
        """Do as other sessions do, in short stretches: tables of levels are wide."""
        parts = []
        for start in range(0, len(rounds), STRETCH):
            made = super().play(rounds.cut(slice(start, start + STRETCH)))
            # Moved levels are known to the collector by now, and nobody else asks.
            parts.append(made._replace(inner=made.inner[:, :0], outer=made.outer[:, :0]))
        return self._joined(parts)

    def _play(self, rounds: Rounds) -> Any:
        if len(rounds) == 1:
            return self._play_one(rounds)
        if not self._is_prompt(rounds):
            rows = [self._play_one(rounds.cut(slice(t, t + 1))) for t in range(len(rounds))]
            return self._joined(rows)
        run = self.recalibrator.replay(self._distributions(rounds.raw), rounds.outcomes)
        tickets = run.first + np.arange(len(rounds))
        return NumberAnswers(run.quantiles, tickets, run.inner, run.outer)

    def _ask(self, rounds: Rounds, time: float, number: int) -> NumberAnswers:
        ticket = self.recalibrator.forecast(self._distributions(rounds.raw)[0], time=time)
        tables = ticket.quantiles[None], ticket.inner[None], ticket.outer[None]
        return NumberAnswers(tables[0], np.array([number]), *tables[1:])

    def _distributions(self, values: Reals) -> Distributions:
        return distributions(values, self.given)

    def _joined(self, parts: list[Any]) -> NumberAnswers:
        return NumberAnswers(*map(np.concatenate, zip(*parts, strict=True)))

    def _follow(self, rounds: Rounds, answers: Any) -> None:
        """Follow raw and recalibrated distributions where the outcome is known."""
        known = rounds.known
        if not known.any():
            return
        outcomes: Any = rounds.outcomes[known]
        raw, numbers = self._distributions(rounds.raw[known]), answers.ticket[known]
        now = raw.moved(answers.inner[known], answers.outer[known])
        self.collector.update(
            _seen(raw, raw.quantile(self.recalibrator.levels), outcomes, numbers),
            _seen(now, answers.quantiles[known], outcomes, numbers),
            outcomes,
        )


def _seen(rows: Distributions, quantiles: Reals, outcomes: Reals, numbers: Any) -> Seen:
    """Return the scores of each row; on an atom the coin of its forecast decides."""
    low, high = rows.below(outcomes), rows.cdf(outcomes)
    coins = np.full(len(outcomes), 0.5)
    for t in np.flatnonzero(high > low).tolist():
        coins[t] = coin(KEY, int(numbers[t]))
    return Seen(quantiles, low + coins * (high - low), rows.crps(outcomes))


def _no_outcomes() -> Any:
    return np.empty(0)
