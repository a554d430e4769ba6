"""Transforms of the raw forecast; importing this package registers them all."""

import warnings

from calibrant.registry import import_modules
from calibrant.transforms.base import Online, Transform, from_description
from calibrant.transforms.buckets import BucketHedge, BucketMeans, HatMeans
from calibrant.transforms.chain import Cascade, Chain, Hedging, Tracking
from calibrant.transforms.grids import AOSA, Defensive, Interval, RecalibrateRegret
from calibrant.transforms.identity import Identity
from calibrant.transforms.mixture import ExpertMixture, Standing
from calibrant.transforms.online_platt import OnlineBeta, OnlinePlatt, PlattSGD
from calibrant.transforms.temperature import Temperature
from calibrant.transforms.windowed import WindowedIsotonic, WindowedPlatt

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
