"""calibrant for River: a classifier and a regressor that wrap yours, metrics, a drift detector.

>>> from calibrant.integrations.river import RecalibratedClassifier
>>> from river import linear_model
>>> model = RecalibratedClassifier(linear_model.LogisticRegression(), seed=7)
>>> model.learn_one({"x": 1.0}, True)
>>> sorted(model.predict_proba_one({"x": 1.0}))
[False, True]
"""

from calibrant.errors import MissingExtra, requirement
from calibrant.integrations.labels import Announced

try:
    from calibrant.integrations.river.classifier import (
        RecalibratedClassifier,
        RecalibratedRegressor,
    )
    from calibrant.integrations.river.metrics import (
        Brier,
        CalibrationDrift,
        CalibrationError,
        Reliability,
    )
except ModuleNotFoundError as error:
    told = "calibrant.integrations.river needs River, which is not installed"
    raise MissingExtra(f"{told}: pip install {requirement('river')}") from error

__all__ = [
    "Announced",
    "Brier",
    "CalibrationDrift",
    "CalibrationError",
    "RecalibratedClassifier",
    "RecalibratedRegressor",
    "Reliability",
]
