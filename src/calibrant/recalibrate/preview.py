"""What the next round would announce, looked at without a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.core.gate import passing
from calibrant.kernels.layout import ASIDE, CELL
from calibrant.recalibrate.recalibrator import Recalibrator


class Preview:
    """Look at the draw and the mean that a recalibrator would announce next.

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
    """

    __slots__ = ("_recalibrator",)

    def __init__(self, recalibrator: Recalibrator) -> None:
        self._recalibrator = recalibrator

    def one(self, raw: float) -> tuple[float, float]:
        """Return draw and mean of the next round, if its raw forecast is this."""
        raw = check.probability(raw)
        return self.seen(raw, False), self.seen(raw, True)

    def seen(self, raw: float, mean: bool) -> float:
        """Return the mean, or else the draw, for a raw forecast known to be a float in [0, 1]."""
        rec = self._recalibrator
        with passing(rec._gate):
            place, weight, *_ = rec._peek(raw)
            if place & ASIDE:
                return raw
            if mean:
                return rec._rows.mean_of(place, weight)
            return rec._issuer.values[place & CELL]

    def many(self, raws: Any) -> tuple[Reals, Reals]:
        """Return draws and means of many rows, all as the very next round, a coin each."""
        # A copy that can be written to: the compiler knows one kind of arrays only.
        values, rec = np.array(check.probabilities(raws)), self._recalibrator
        with passing(rec._gate):
            return rec._rows.preview(rec._row, values)
