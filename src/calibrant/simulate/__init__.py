"""Games against an adversary: who plays, by which rules, and what came of it.

>>> from calibrant import Recalibrator
>>> from calibrant.simulate import play
>>> record = play(Recalibrator(resolution=10, buckets=10, seed=1), "noise", "threshold", 1000)
>>> record.c1 < 0.03
True
"""

from calibrant.simulate.adaptive import GreedyAccuracy, GreedyCalibration, SignPreserving, Threshold
from calibrant.simulate.adversary import Adversary, adversaries
from calibrant.simulate.announcement import Announcement, History
from calibrant.simulate.batch import Games, play_many
from calibrant.simulate.coins import Coins
from calibrant.simulate.forecaster import (
    Constant,
    Forecaster,
    Informed,
    Logistic,
    Noise,
    Uniform,
    forecasters,
)
from calibrant.simulate.oblivious import Bernoulli, Drifting, Linear, Noisy, Periodic, Switching
from calibrant.simulate.play import play
from calibrant.simulate.record import Record

__all__ = [
    "Adversary",
    "Announcement",
    "Bernoulli",
    "Coins",
    "Constant",
    "Drifting",
    "Forecaster",
    "Games",
    "GreedyAccuracy",
    "GreedyCalibration",
    "History",
    "Informed",
    "Linear",
    "Logistic",
    "Noise",
    "Noisy",
    "Periodic",
    "Record",
    "SignPreserving",
    "Switching",
    "Threshold",
    "Uniform",
    "adversaries",
    "forecasters",
    "play",
    "play_many",
]
