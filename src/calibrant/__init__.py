"""Probabilities you can trust on a live stream.

>>> from calibrant import Recalibrator
>>> rec = Recalibrator(seed=7)
>>> ticket = rec.forecast(0.83)
>>> _ = rec.observe(ticket, 1)
"""

from calibrant.recalibrate import Calibrant, Certificate, Pending, Recalibrator, Run

__all__ = ["Calibrant", "Certificate", "Pending", "Recalibrator", "Run", "__version__"]

from calibrant._version import __version__
