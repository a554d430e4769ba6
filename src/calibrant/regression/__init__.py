"""Numbers: predictive distributions that become calibrated, and intervals that cover.

>>> from calibrant.regression import Distribution, QuantileRecalibrator
>>> rec = QuantileRecalibrator("tracker", levels=[0.1, 0.5, 0.9], seed=7)
>>> ticket = rec.forecast(Distribution.normal(20.0, 2.0))
>>> _ = rec.observe(ticket, 24.1)
>>> rec.rounds
1
"""

from calibrant.regression.aggregated import AgACI, Blend, DtACI
from calibrant.regression.distribution import Distribution, Distributions
from calibrant.regression.interval import ConformalInterval
from calibrant.regression.interval_method import (
    AdaptiveConformal,
    AdaptiveQuantile,
    ConformalPID,
    IntervalMethod,
    ScaleFree,
    StronglyAdaptive,
    interval_methods,
)
from calibrant.regression.level_method import LevelMethod, Tracker, quantile_methods
from calibrant.regression.mixed import Mixed
from calibrant.regression.pit import Pit
from calibrant.regression.quantile import QuantileRecalibrator
from calibrant.regression.record import (
    IntervalCertificate,
    IntervalRun,
    LevelRow,
    QuantileCertificate,
    QuantileRun,
)
from calibrant.regression.ticket import IntervalTicket, NumberTicket, QuantileTicket

__all__ = [
    "AdaptiveConformal",
    "AdaptiveQuantile",
    "AgACI",
    "Blend",
    "ConformalInterval",
    "ConformalPID",
    "Distribution",
    "Distributions",
    "DtACI",
    "IntervalCertificate",
    "IntervalMethod",
    "IntervalRun",
    "IntervalTicket",
    "LevelMethod",
    "LevelRow",
    "Mixed",
    "NumberTicket",
    "Pit",
    "QuantileCertificate",
    "QuantileRecalibrator",
    "QuantileRun",
    "QuantileTicket",
    "ScaleFree",
    "StronglyAdaptive",
    "Tracker",
    "interval_methods",
    "quantile_methods",
]
