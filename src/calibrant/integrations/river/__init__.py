"""calibrant for River: a classifier and a regressor that wrap yours, metrics, a drift detector.

>>> from calibrant.integrations.river import RecalibratedClassifier
>>> from river import linear_model
>>> model = RecalibratedClassifier(linear_model.LogisticRegression(), seed=7)
>>> model.learn_one({"x": 1.0}, True)
>>> sorted(model.predict_proba_one({"x": 1.0}))
[False, True]
"""

from calibrant.errors import needing
from calibrant.integrations.labels import Announced

with needing("calibrant.integrations.river needs River, which is not installed", "river"):
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

__all__ = [
    "Announced",
    "Brier",
    "CalibrationDrift",
    "CalibrationError",
    "RecalibratedClassifier",
    "RecalibratedRegressor",
    "Reliability",
]
