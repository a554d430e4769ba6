"""The calibrators, one file each; importing this package registers them all."""

from calibrant.calibrators.anchored import Anchored
from calibrant.calibrators.base import Account, Calibrator
from calibrant.calibrators.blackwell import Blackwell
from calibrant.calibrators.exponential_regret import ExponentialRegret
from calibrant.calibrators.fading import Fading
from calibrant.calibrators.foster99 import Foster99
from calibrant.calibrators.foster_hart import FosterHart
from calibrant.calibrators.growing import Growing
from calibrant.calibrators.polynomial_regret import PolynomialRegret
from calibrant.calibrators.regret_matching import RegretMatching
from calibrant.calibrators.running_mean import RunningMean
from calibrant.registry import import_modules

__all__ = [
    "Account",
    "Anchored",
    "Blackwell",
    "Calibrator",
    "ExponentialRegret",
    "Fading",
    "Foster99",
    "FosterHart",
    "Growing",
    "PolynomialRegret",
    "RegretMatching",
    "RunningMean",
]

import_modules(__name__, __path__)
