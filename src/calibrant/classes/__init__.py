"""Forecasts over several classes: class by class, for the first class, or whole vectors."""

from calibrant.classes import metrics
from calibrant.classes.calibrant import ClassCalibrant, recalibrator
from calibrant.classes.certificate import ClassCertificate, SimplexCertificate
from calibrant.classes.mended import MendedRun, MendedTicket
from calibrant.classes.reductions import OneVsRest, TopLabel
from calibrant.classes.run import ClassRun, OneVsRestRun, TopRun
from calibrant.classes.simplex import SimplexRecalibrator
from calibrant.classes.ticket import ClassTicket, OneVsRestTicket, SimplexTicket, TopTicket

__all__ = [
    "ClassCalibrant",
    "ClassCertificate",
    "ClassRun",
    "ClassTicket",
    "MendedRun",
    "MendedTicket",
    "OneVsRest",
    "OneVsRestRun",
    "OneVsRestTicket",
    "SimplexCertificate",
    "SimplexRecalibrator",
    "SimplexTicket",
    "TopLabel",
    "TopRun",
    "TopTicket",
    "metrics",
    "recalibrator",
]
