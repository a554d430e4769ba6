"""Algorithm 1: an independent calibrator in each bucket of raw forecasts."""

from calibrant.recalibrate.certificate import Certificate
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.run import Run

__all__ = ["Certificate", "Pending", "Recalibrator", "Run"]
