"""Metrics that follow a stream in constant memory.

Each has ``update(forecast, outcome)``, ``update_many(forecasts, outcomes)``,
``revert(forecast, outcome)``, ``merge(other)``, ``result()``, ``rounds``, and
``to_dict()`` and ``from_dict(state)`` for JSON.
"""

from calibrant.metrics.streaming.bucketed_cells import BucketedCells
from calibrant.metrics.streaming.equal_mass import EqualMass
from calibrant.metrics.streaming.exact_cells import ExactCells
from calibrant.metrics.streaming.expected_cells import ExpectedCells
from calibrant.metrics.streaming.fine_grid import StreamingATB, StreamingAUC, StreamingSmooth
from calibrant.metrics.streaming.mean_loss import MeanLoss
from calibrant.metrics.streaming.windowed import Windowed, WorstBlock

__all__ = [
    "BucketedCells",
    "EqualMass",
    "ExactCells",
    "ExpectedCells",
    "MeanLoss",
    "StreamingATB",
    "StreamingAUC",
    "StreamingSmooth",
    "Windowed",
    "WorstBlock",
]
