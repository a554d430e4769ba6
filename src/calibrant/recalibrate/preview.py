"""What the next round would announce, looked at without a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.gate import passing, wait
from calibrant.kernels.preview import look_ahead
from calibrant.recalibrate.recalibrator import Recalibrator

__all__ = ["Preview"]


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

    __slots__ = ("_looks", "_recalibrator", "_step")

    def __init__(self, recalibrator: Recalibrator) -> None:
        self._recalibrator = recalibrator
        safe = getattr(recalibrator, "raw_safe", None) is not None
        self._looks = look_ahead(recalibrator._functions, recalibrator._program, safe)
        self._step: Any = None

    def one(self, raw: float) -> tuple[float, float]:
        """Return draw and mean of the next round, if its raw forecast is this."""
        raw = check.probability(raw)
        return self.seen(raw, False), self.seen(raw, True)

    def seen(self, raw: float, mean: bool) -> float:
        """Return the mean, or else the draw, for a raw forecast known to be a float in [0, 1]."""
        rec = self._recalibrator
        gate = rec._gate
        try:
            del gate[0]
        except IndexError:
            wait(gate)
        try:
            if rec._steps is None:
                words = rec._words or rec._to_plain()
                return self._looks.one(words, words, raw, 0)[mean]
            if self._step is None:
                self._step = self._looks.step(rec._machine)
            made: float = self._step(rec._machine, raw, mean)
            return made
        finally:
            gate.append(None)

    def many(self, raws: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return draws and means of many rows, all as the very next round, a coin each."""
        # A copy that can be written to: the compiler knows one kind of arrays only.
        values = np.array(check.probabilities(raws))
        draws, means, rec = np.empty(len(values)), np.empty(len(values)), self._recalibrator
        with passing(rec._gate):
            if rec._batch_program(len(values)) is not None:
                flat = rec._to_flat()
                self._looks.machine(flat, flat.view(np.float64), values, draws, means)
                rec._use_steps()
            else:
                words = rec._to_plain()
                self._looks.many(words, words, values.tolist(), draws, means)
                rec._use_steps()
        return draws, means
