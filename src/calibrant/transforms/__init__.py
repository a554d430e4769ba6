"""Transforms of the raw forecast, one file each; importing this package registers them all."""

import warnings

from calibrant.registry import import_modules
from calibrant.transforms.aosa import AOSA
from calibrant.transforms.base import Transform, from_description
from calibrant.transforms.bucket_hedge import BucketHedge
from calibrant.transforms.bucket_means import BucketMeans
from calibrant.transforms.cascade import Cascade
from calibrant.transforms.chain import Chain
from calibrant.transforms.defensive import Defensive
from calibrant.transforms.hat_means import HatMeans
from calibrant.transforms.hedging import Hedging
from calibrant.transforms.identity import Identity
from calibrant.transforms.interval import Interval
from calibrant.transforms.mixture import ExpertMixture, Standing
from calibrant.transforms.online import Online
from calibrant.transforms.online_beta import OnlineBeta
from calibrant.transforms.online_platt import OnlinePlatt
from calibrant.transforms.platt_sgd import PlattSGD
from calibrant.transforms.recalibrate_regret import RecalibrateRegret
from calibrant.transforms.temperature import Temperature
from calibrant.transforms.tracking import Tracking
from calibrant.transforms.windowed_isotonic import WindowedIsotonic
from calibrant.transforms.windowed_platt import WindowedPlatt

__all__ = [
    "AOSA",
    "BucketHedge",
    "BucketMeans",
    "Cascade",
    "Chain",
    "Defensive",
    "ExpertMixture",
    "HatMeans",
    "Hedging",
    "Identity",
    "Interval",
    "Online",
    "OnlineBeta",
    "OnlinePlatt",
    "PlattSGD",
    "RecalibrateRegret",
    "Standing",
    "Temperature",
    "Tracking",
    "Transform",
    "WindowedIsotonic",
    "WindowedPlatt",
    "from_description",
]

import_modules(__name__, __path__)


def __getattr__(name: str) -> type[ExpertMixture]:
    """Return a class by the name that it had before."""
    if name != "Mixture":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    told = "calibrant.transforms.Mixture is now calibrant.transforms.ExpertMixture"
    warnings.warn(told, DeprecationWarning, stacklevel=2)
    return ExpertMixture
