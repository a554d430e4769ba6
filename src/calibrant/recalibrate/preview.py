"""What the next round would announce, looked at without a trace."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.core.mixture import Mixture
from calibrant.core.ticket import Ticket
from calibrant.kernels.layout import ASIDE, CELL
from calibrant.recalibrate.context import Known
from calibrant.recalibrate.recalibrator import Recalibrator


class Previewed(NamedTuple):
    """What the next round would announce.

    Attributes
    ----------
    value, mean
        The draw, and the forecast on average.
    mixture
        The points that the draw comes from, with their weights.
    fallback
        Whether value and mean are the raw forecast, to keep to a budget.
    """

    value: float
    mean: float
    mixture: Mixture
    fallback: bool


class Preview:
    """Look at the draw, the mean and the mixture that a recalibrator would announce next.

    Nothing is noted and no coin is used up, so a preview may be taken any number of times, of
    any raw forecast, and a round that follows at once announces exactly what was seen.

    Parameters
    ----------
    recalibrator
        Whose forecasts; it is kept, not copied.

    Examples
    --------
    >>> rec = Recalibrator(seed=7)
    >>> Preview(rec).one(0.83)
    (0.85, 0.825)
    >>> ticket = rec.forecast(0.83)
    >>> ticket.value, round(ticket.mean, 12)
    (0.85, 0.825)
    >>> Preview(rec).whole(0.4).mixture.values == rec.forecast(0.4).mixture.values
    True
    """

    __slots__ = ("_recalibrator",)

    def __init__(self, recalibrator: Recalibrator) -> None:
        self._recalibrator = recalibrator

    def one(self, raw: float) -> tuple[float, float]:
        """Return draw and mean of the next round, if its raw forecast is this."""
        raw = check.probability(raw)
        return self.seen(raw, False), self.seen(raw, True)

    def whole(self, raw: float) -> Previewed:
        """Return all that the next round would announce, if its raw forecast is this."""
        raw, rec = check.probability(raw), self._recalibrator
        with rec._gate:
            place, weight, *_ = rec._peek(raw)
            law, _ = rec._rows.law_and_advice()
        ticket = Ticket(rec._issuer, 0, 0, place, weight, raw, None, None, law)
        mean = min(max(ticket.mean, 0.0), 1.0)
        return Previewed(ticket.value, mean, ticket.mixture, ticket.fallback)

    def seen(self, raw: float, mean: bool, told: list[int] | None = None) -> float:
        """Return the mean, or else the draw, for a raw forecast known to be a float in [0, 1].

        ``told`` is what is known besides, as an expert reads it.
        """
        rec = self._recalibrator
        if mean:
            return rec._mean_one(raw, told)
        with rec._gate:
            place, *_ = rec._peek(raw, told)
        return raw if place & ASIDE else rec._issuer.values[place & CELL]

    def many(self, raws: Any, context: Known = None) -> tuple[Reals, Reals]:
        """Return draws and means of many rows, all as the very next round, a coin each.

        Where an expert reads context, that may be given as columns by name.
        """
        # A copy that can be written to: the compiler knows one kind of arrays only.
        values, rec = np.array(check.probabilities(raws)), self._recalibrator
        told = rec._columns_of(context, len(values))
        with rec._gate:
            return rec._rows.preview(rec._row, values, told)
