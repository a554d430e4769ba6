"""The calibrators; importing this package registers them all."""

from calibrant.calibrators.anchored import Anchored, Fading, Growing
from calibrant.calibrators.base import Account, Calibrator
from calibrant.calibrators.blackwell import Blackwell
from calibrant.calibrators.gaps import Foster99, FosterHart, RegretMatching
from calibrant.calibrators.pairs import ExponentialRegret, PolynomialRegret
from calibrant.calibrators.refining import Refining
from calibrant.calibrators.running_mean import RunningMean
from calibrant.registry import import_modules

__all__ = [
    "Account", "Anchored", "Blackwell", "Calibrator", "ExponentialRegret", "Fading", "Foster99",
    "FosterHart", "Growing", "PolynomialRegret", "Refining", "RegretMatching",
    "RunningMean",
]  # fmt: skip

import_modules(__name__, __path__)
