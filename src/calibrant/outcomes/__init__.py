"""Outcomes that do not arrive fairly: early only when positive, or only for some forecasts.

>>> from calibrant import Recalibrator
>>> from calibrant.outcomes import WaitForHorizon
>>> clicks = WaitForHorizon(Recalibrator(seed=1), horizon=7.0)
>>> ticket = clicks.forecast(0.2, time=0.0)
>>> _ = clicks.observe(ticket, 1, time=2.5)
>>> [settled.outcome for settled in clicks.advance(7.5)]
[1]
"""

from calibrant.outcomes.pending import PendingUnknown, RateBounds
from calibrant.outcomes.wait import ObservedOnly, WaitForHorizon

__all__ = ["ObservedOnly", "PendingUnknown", "RateBounds", "WaitForHorizon"]
