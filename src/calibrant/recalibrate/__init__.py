"""Algorithm 1: an independent calibrator in each bucket of raw forecasts."""

from calibrant.recalibrate.calibrant import Calibrant
from calibrant.recalibrate.certificate import Certificate
from calibrant.recalibrate.chain import Budget, Chain, Link
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.run import Run
from calibrant.recalibrate.table import Table

__all__ = [
    "Budget",
    "Calibrant",
    "Certificate",
    "Chain",
    "Link",
    "Pending",
    "Recalibrator",
    "Run",
    "Table",
]
