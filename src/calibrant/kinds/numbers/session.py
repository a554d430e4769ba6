"""A stream of forecasts of numbers: quantiles, or normal distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.kernels.coin import coin
from calibrant.kinds.numbers import SIZES, NumberCollector, Numbers, Seen, columns_of, options_of
from calibrant.recalibrate import Pending
from calibrant.regression import Distributions, QuantileRecalibrator
from calibrant.stream.columns import Columns, Scale
from calibrant.stream.pieces import Piece
from calibrant.stream.rows import Rounds, VectorRules
from calibrant.stream.session import Session, names_of
from calibrant.stream.values import Numbers as Read
from calibrant.summary import kinds

KEY: Final = 2017
"""Of the coins that share out outcomes on atoms where they are scored."""

STRETCH: Final = 1 << 15
"""Rows that are played at a time: enough for the compiler to pay."""


class NumberRules(VectorRules):
    """Check rows with quantiles, or with mean and standard deviation, and read them."""

    def _numbers(self, piece: Piece) -> tuple[Read, Read]:
        return self._table(piece), self.columns.wording.numbers(piece.column(self.columns.outcome))

    def _wrong(self, raw: Read, outcome: Read) -> dict[str, Mask]:
        table = raw.values
        with np.errstate(invalid="ignore"):
            rises = (table[:, 1:] >= table[:, :-1]).all(axis=1)
            wide = table[:, 1] > 0.0
        shaped: Mask = np.asarray(rises if self.columns.quantiles else wide)
        right = np.isfinite(table).all(axis=1) & shaped
        return {"raw": ~right, "outcome": ~(outcome.missing | np.isfinite(outcome.values))}

    def _outcomes(self, values: Reals) -> Any:
        return np.nan_to_num(values)

    def _rules(self) -> dict[str, tuple[str | None, str]]:
        many = len(self.columns.quantiles)
        rising = f"{many} finite numbers that never fall"
        rule = rising if many else "a finite mean and a standard deviation above 0"
        return {"raw": (self.name, rule), "outcome": (self.columns.outcome, "a finite number")}


class NumberAnswers(NamedTuple):
    """What was made of each row.

    Attributes
    ----------
    quantiles
        The recalibrated quantiles, a column for each level.
    ticket
        The number of the forecast.
    inner, outer
        Which levels were moved, and to where; not written.
    values
        The knots of the distributions whose levels were moved; not written.
    """

    quantiles: Reals
    ticket: Words
    inner: Reals
    outer: Reals
    values: Reals

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
    given
        The levels of the columns of quantiles; empty for normal distributions.

    Notes
    -----
    ``columns`` is empty if a bare recalibrator was read and nobody has named them yet.
    """

    outcome_type: ClassVar[type[np.generic]] = np.float64

    recalibrator: QuantileRecalibrator
    collector: NumberCollector
    given: tuple[float, ...] = ()

    @classmethod
    def start(cls, made: QuantileRecalibrator, seed: int | None, *named: Any) -> NumberSession:
        """Return a session before its first row; columns and their levels may be named."""
        waiting: Any = np.empty(0)
        started = cls(made, NumberCollector(made.levels), Scale(), seed)
        started.pending = Pending(outcome=waiting)
        started.columns, started.given = named or ((), ())
        return started

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        return {"quantiles" if self.given else "normal": self.columns}

    def rules(self, columns: Columns) -> NumberRules:
        return NumberRules(columns, self.last)

    def added(self, columns: Columns) -> Sequence[str]:
        return [*(f"forecast_{level!r}" for level in self.recalibrator.levels.tolist()), "ticket"]

    def none(self) -> NumberAnswers:
        table = np.empty((0, len(self.recalibrator.levels)))
        return NumberAnswers(table, np.empty(0, np.int64), table, table, table)

    def asked(self, options: Any) -> dict[str, Any]:
        """Name the columns where the state was of a recalibrator alone; then do as others do."""
        Numbers().refuse(options, self.recalibrator.method)
        if not self.columns:
            named = columns_of(options.quantiles, options.normal, options.levels)
            self.columns, self.given, _ = named
        columns = dict.fromkeys(kinds.options, ()) | self.kept_columns
        return {**self._made_with, **columns, "levels": self._levels}

    @property
    def _made_with(self) -> dict[str, Any]:
        made, own = self.recalibrator, options_of(self.recalibrator)
        sizes: dict[str, Any] = {name: own[name] for name in SIZES if name in own}
        return {"method": made.method, **sizes, "seed": self.seed}

    @property
    def _levels(self) -> tuple[float, ...]:
        return self.given or tuple(self.recalibrator.levels.tolist())

    def words(self) -> list[str]:
        told = {"levels": ",".join(map(repr, self._levels)), **self._made_with}
        named = ((f"--{name}", str(value)) for name, value in told.items() if value is not None)
        return [word for pair in named for word in pair]

    def kept(self) -> tuple[dict[str, Any], dict[str, Words]]:
        own = {"columns": list(self.columns), "given": list(self.given)}
        return {"parts": Numbers.words[0], **own}, {}

    @classmethod
    def restored(cls, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        given = tuple(check.probability(level, "level") for level in settings["given"])
        return {"columns": names_of(settings["columns"]), "given": given}

    def play(self, rounds: Rounds) -> NumberAnswers:
        """Do as other sessions do, in short stretches: tables of levels are wide."""
        parts = []
        for start in range(0, len(rounds), STRETCH):
            made = super().play(rounds.cut(slice(start, start + STRETCH)))
            # Moved levels are known to the collector by now, and nobody else asks.
            spent = {name: getattr(made, name)[:, :0] for name in ("inner", "outer", "values")}
            parts.append(made._replace(**spent))
        joined: NumberAnswers = self._joined(parts)
        return joined

    def _play_prompt(self, rounds: Rounds) -> NumberAnswers:
        run = self.recalibrator.replay(self._distributions(rounds.raw), rounds.outcomes)
        return NumberAnswers(run.quantiles, run.ticket, run.inner, run.outer, run.mixed.values)

    def _ask(self, rounds: Rounds, time: float, number: int) -> NumberAnswers:
        ticket = self.recalibrator.forecast(self._distributions(rounds.raw)[0], time=time)
        tables = ticket.quantiles[None], ticket.inner[None], ticket.outer[None]
        values = ticket._whole().rows.values
        return NumberAnswers(tables[0], np.array([number]), *tables[1:], values)

    def _distributions(self, values: Reals) -> Distributions:
        """Return what rows say: quantiles at given levels, or else mean and deviation."""
        if self.given:
            return Distributions.from_quantiles(self.given, values)
        return Distributions.normal(values[:, 0], values[:, 1])

    def _follow(self, rounds: Rounds, answers: Any) -> None:
        """Follow raw and recalibrated distributions where the outcome is known."""
        known = rounds.known
        if not known.any():
            return
        outcomes: Any = rounds.outcomes[known]
        raw, numbers = self._distributions(rounds.raw[known]), answers.ticket[known]
        mixed = replace(raw, values=answers.values[known])
        now = mixed.moved(answers.inner[known], answers.outer[known])
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
