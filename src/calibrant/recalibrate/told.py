"""The verbs of a stream that may be told what is known besides the raw forecast."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.gate import passing
from calibrant.core.ticket import Ticket
from calibrant.recalibrate.context import Known
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.late import Played
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.run import Run

forecast, sample_one, learn_one = (
    Recalibrator.forecast,
    Recalibrator.sample_one,
    Recalibrator.learn_one,
)
"""Found here without a look at the class: these calls are the shortest there are."""


class Told(Recalibrator):
    """A recalibrator of which an expert may read context.

    Where none does and none is told, each verb is that of a recalibrator.
    """

    __slots__ = ()

    def forecast(
        self, raw: float, *, id: str | None = None, time: float | None = None, context: Known = None
    ) -> Ticket:
        """Announce a calibrated forecast for a raw one, and keep a ticket for its outcome.

        Parameters
        ----------
        raw, id, time
            As in :meth:`calibrant.Recalibrator.forecast`.
        context
            What is known besides, numbers and strings by name, where an expert reads it.
        """
        if self._reads is context:
            # What is not passed on costs nothing.
            if id is None and time is None:
                return forecast(self, raw)
            return forecast(self, raw, id=id, time=time)
        value, name, when = check.probability(raw), *self._named(id, time)
        told = self._features(context)
        with passing(self._gate):
            self._rows.tell(told)
            return self._open_ticket(value, name, when)

    def _take_back(self, number: int, most: int) -> None:
        self._withdraw(number)

    def sample_one(self, raw: float, *, context: Known = None) -> float:
        """Return the draw that the next round with this raw forecast would announce.

        Changes nothing; :meth:`learn_one` with the same raw forecast and context makes it a round.
        """
        if self._reads is context:
            return sample_one(self, raw)
        if self._timed:
            raise self._no_time("sample_one, which takes none")
        return self._sample_with(check.probability(raw), context)

    predict_one = sample_one
    """An older name for it."""

    def predict_mean_one(self, raw: float, *, context: Known = None) -> float:
        """Return the mean that the next round with this raw forecast would announce.

        Changes nothing, and notes nothing; the mean has no guarantee of its own.
        """
        told = None if self._reads is context else self._features(context)
        return self._mean_one(check.probability(raw), told)

    def learn_one(self, raw: float, outcome: int, *, context: Known = None) -> None:
        """Make a round of the last :meth:`sample_one` with this raw forecast and context.

        Without one, the round is drawn now.  Refused if a forecast in the same bucket
        came between: the announced draw would no longer be this round's.
        """
        if self._reads is context:
            learn_one(self, raw, outcome)
            return
        if self._timed:
            raise self._no_time("learn_one, which takes none")
        self._book_with(check.probability(raw), check.outcome(outcome), context)

    def replay(
        self,
        raw: Any,
        outcomes: Any,
        *,
        context: Known = None,
        available: Any = None,
        time: Any = None,
        carry: Pending | None = None,
    ) -> Run:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        raw, outcomes, available, time, carry
            As in :meth:`calibrant.Recalibrator.replay`.
        context
            Columns of features by name, as :meth:`forecast` takes them one by one.
        """
        return self._replay(raw, outcomes, available, time, carry, context)

    def play(
        self, kind: Any, id: Any, x: Any, time: Any = None, *, context: Known = None
    ) -> Played:
        """Play a log of forecasts and outcomes in its order, as the calls one by one would.

        Parameters
        ----------
        kind, id, x, time
            As in :meth:`calibrant.Recalibrator.play`.
        context
            Columns of features by name, a row for each event; those of outcomes are not looked at.
        """
        return self._play_log(kind, id, x, time, context)

    def forecast_many(
        self, raw: Any, *, id: Any = None, time: Any = None, context: Known = None
    ) -> Played:
        """Announce many forecasts, one after the other, and keep a ticket for each."""
        values = check.probabilities(raw)
        return self._play_log(np.zeros(len(values), np.int64), id, values, time, context)
