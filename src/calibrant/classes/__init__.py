"""Forecasts over several classes: class by class, for the first class, or whole vectors."""

from calibrant.classes import metrics
from calibrant.classes.certificate import ClassCertificate, SimplexCertificate
from calibrant.classes.choose import recalibrator
from calibrant.classes.one_vs_rest import OneVsRest
from calibrant.classes.run import ClassRun, OneVsRestRun, TopRun
from calibrant.classes.simplex import SimplexRecalibrator
from calibrant.classes.ticket import ClassTicket, OneVsRestTicket, SimplexTicket, TopTicket
from calibrant.classes.top_label import TopLabel

__all__ = [
    "ClassCertificate",
    "ClassRun",
    "ClassTicket",
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
