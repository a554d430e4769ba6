"""Games against an adversary: who plays, by which rules, and what came of it.

>>> from calibrant import Recalibrator
>>> from calibrant.simulate import play
>>> record = play(Recalibrator(resolution=10, buckets=10, seed=1), "noise", "threshold", 1000)
>>> record.c1 < 0.03
True
"""

from calibrant.simulate.adversary import (
    Adversary,
    Bernoulli,
    Drifting,
    GreedyAccuracy,
    GreedyCalibration,
    Linear,
    Noisy,
    Periodic,
    SignPreserving,
    Switching,
    Threshold,
    adversaries,
)
from calibrant.simulate.board import Announcement, Coins, History
from calibrant.simulate.forecaster import (
    Constant,
    Forecaster,
    Informed,
    Logistic,
    Noise,
    Uniform,
    forecasters,
)
from calibrant.simulate.games import Games, Record, play, play_many

__all__ = [
    "Adversary", "Announcement", "Bernoulli", "Coins", "Constant", "Drifting", "Forecaster",
    "Games", "GreedyAccuracy", "GreedyCalibration", "History", "Informed", "Linear", "Logistic",
    "Noise", "Noisy", "Periodic", "Record", "SignPreserving", "Switching", "Threshold", "Uniform",
    "adversaries", "forecasters", "play", "play_many",
]  # fmt: skip
