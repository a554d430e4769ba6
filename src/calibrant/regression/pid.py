"""Conformal PID control: proportion, integral, and a scorecast from outside."""

from __future__ import annotations

from typing import Final

from calibrant.bounds import conformal_pid
from calibrant.core import check
from calibrant.kernels import intervals as kernel
from calibrant.kernels.layout import STATE, Section
from calibrant.regression.interval_method import IntervalMethod, Record, above
from calibrant.regression.registry import interval_methods

WIDEST: Final = 10_000


@interval_methods.add("pid")
class ConformalPID(IntervalMethod):
    """Steps in proportion to the spread of recent scores, and an answer to all errors so far.

    The integral part is ``gain tan(x ln(t + 1) / (saturation (t + 1)))``, x being the errors less
    their target; beyond a quarter turn it is infinite, which is what bounds x.  The part D is
    the ``scorecast`` that the caller gives with a forecast.

    Parameters
    ----------
    step
        How far the radius moves, as a part of the spread of the last ``window`` scores.
    window
        How many scores are looked back at.
    gain
        Of the integral part, in units of the score; None takes the largest score so far.
    saturation
        The smaller, the sooner the integral part answers, and the tighter the bound.
    """

    name = "pid"
    guarantee = "|coverage - target| <= (C (pi/2) (T + 1)/ln(T + 1) + 1)/T, C = saturation"
    assumption = "none: any sequence, every time"
    reference = "Angelopoulos, Candes and Tibshirani (2023), Conformal PID control"
    program = kernel.PID

    def __init__(
        self,
        coverage: float,
        *,
        step: float = 0.1,
        window: int = 100,
        gain: float | None = None,
        saturation: float = 0.2,
    ) -> None:
        size = check.whole(window, "window", low=1, high=WIDEST)
        told = None if gain is None else above(gain, "gain")
        self._options = {
            "step": above(step, "step"),
            "window": size,
            "gain": told,
            "saturation": above(saturation, "saturation"),
        }
        words = Section(kernel.PID_HEAD)
        words.real("SCORES", STATE, "The last scores, as they came.", words=size)
        self._start(coverage, above(step, "step"), None, words)
        self._fresh[kernel.GAIN] = 0.0 if told is None else told
        self._fresh[kernel.SATURATION] = above(saturation, "saturation")
        self._fresh[kernel.WINDOW] = float(size)

    def record(self, delay: int) -> Record:
        """Return the distance of coverage from its target, and its bound."""
        s = self._seat.part()
        bound = conformal_pid(int(s[kernel.ROUNDS]), s[kernel.SATURATION], delay=delay)
        return Record("C1", self.measured(), bound)
