"""Algorithm 1: an independent calibrator in each bucket of raw forecasts."""

from calibrant.recalibrate.calibrant import Calibrant
from calibrant.recalibrate.certificate import Certificate
from calibrant.recalibrate.chain import Budget, Chain, Link
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.keyed import KeyedPending, KeyedRun, KeyedTicket, Keys
from calibrant.recalibrate.keyed_record import Certificates
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.run import Run
from calibrant.recalibrate.table import Table

__all__ = [
    "Budget",
    "Calibrant",
    "Certificate",
    "Certificates",
    "Chain",
    "KeyedPending",
    "KeyedRun",
    "KeyedTicket",
    "Keys",
    "Link",
    "Pending",
    "Recalibrator",
    "Run",
    "Table",
]
