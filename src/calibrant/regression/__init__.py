"""Numbers: predictive distributions that become calibrated, and intervals that cover.

>>> from calibrant.regression import Distribution, QuantileRecalibrator
>>> rec = QuantileRecalibrator("tracker", levels=[0.1, 0.5, 0.9], seed=7)
>>> ticket = rec.forecast(Distribution.normal(20.0, 2.0))
>>> _ = rec.observe(ticket, 24.1)
>>> rec.rounds
1
"""

from calibrant.regression.aci import AdaptiveConformal
from calibrant.regression.aci_quantile import AdaptiveQuantile
from calibrant.regression.certificate import IntervalCertificate, LevelRow, QuantileCertificate
from calibrant.regression.distribution import Distribution, Distributions
from calibrant.regression.interval import ConformalInterval
from calibrant.regression.interval_method import IntervalMethod
from calibrant.regression.level_method import LevelMethod
from calibrant.regression.pid import ConformalPID
from calibrant.regression.pit import Pit
from calibrant.regression.quantile import QuantileRecalibrator
from calibrant.regression.registry import interval_methods, quantile_methods
from calibrant.regression.run import IntervalRun, QuantileRun
from calibrant.regression.saocp import StronglyAdaptive
from calibrant.regression.sf_ogd import ScaleFree
from calibrant.regression.ticket import IntervalTicket, NumberTicket, QuantileTicket
from calibrant.regression.tracker import Tracker

__all__ = [
    "AdaptiveConformal",
    "AdaptiveQuantile",
    "ConformalInterval",
    "ConformalPID",
    "Distribution",
    "Distributions",
    "IntervalCertificate",
    "IntervalMethod",
    "IntervalRun",
    "IntervalTicket",
    "LevelMethod",
    "LevelRow",
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
