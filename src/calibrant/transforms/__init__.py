"""Transforms of the raw forecast; importing this package registers them all."""

from calibrant._renamed import renamed
from calibrant.registry import import_modules
from calibrant.transforms.base import Online, Transform, from_description
from calibrant.transforms.buckets import BucketHedge, BucketMeans, HatMeans
from calibrant.transforms.chain import Cascade, Chain, Hedging, Tracking
from calibrant.transforms.context import Context
from calibrant.transforms.grids import AOSA, Defensive, Interval, RecalibrateRegret
from calibrant.transforms.history import History
from calibrant.transforms.mixture import ExpertMixture, Identity, Standing
from calibrant.transforms.online_platt import OnlineBeta, OnlinePlatt, PlattSGD
from calibrant.transforms.temperature import Temperature
from calibrant.transforms.windowed import WindowedIsotonic, WindowedPlatt

__all__ = [
    "AOSA", "BucketHedge", "BucketMeans", "Cascade", "Chain", "Context", "Defensive",
    "ExpertMixture", "HatMeans", "Hedging", "History", "Identity", "Interval", "Online",
    "OnlineBeta", "OnlinePlatt", "PlattSGD", "RecalibrateRegret", "Standing", "Temperature",
    "Tracking", "Transform", "WindowedIsotonic", "WindowedPlatt", "from_description",
]  # fmt: skip

import_modules(__name__, __path__)

__getattr__ = renamed(__name__, {"Mixture": "calibrant.transforms:ExpertMixture"})
