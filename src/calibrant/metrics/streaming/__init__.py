"""Metrics that follow a stream in constant memory.

Each has ``update(forecast, outcome)``, ``update_many(forecasts, outcomes)``,
``revert(forecast, outcome)``, ``merge(other)``, ``result()``, ``rounds``, and
``to_dict()`` and ``from_dict(state)`` for JSON.
"""

from calibrant.metrics.streaming.cells import ExactCells, ExpectedCells
from calibrant.metrics.streaming.tallied import (
    BucketedCells,
    EqualMass,
    StreamingATB,
    StreamingAUC,
    StreamingSmooth,
)
from calibrant.metrics.streaming.windowed import MeanLoss, Windowed, WorstBlock

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
