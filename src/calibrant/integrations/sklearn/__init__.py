"""calibrant for scikit-learn: a classifier that goes on calibrating, metrics, scorers, a display.

>>> from calibrant.integrations.sklearn import OnlineCalibratedClassifier
>>> from sklearn.naive_bayes import GaussianNB
>>> model = OnlineCalibratedClassifier(GaussianNB(), random_state=7)
>>> model.partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1]).classes_
array([0, 1])
"""

from calibrant.errors import needing

with needing(
    "calibrant.integrations.sklearn needs scikit-learn, which is not installed", "sklearn"
):
    from calibrant.integrations.sklearn.classifier import OnlineCalibratedClassifier
    from calibrant.integrations.sklearn.metrics import (
        ReliabilityDisplay,
        brier_decomposition,
        calibration_error,
        neg_calibration_error_scorer,
        neg_reliability_scorer,
    )

__all__ = [
    "OnlineCalibratedClassifier",
    "ReliabilityDisplay",
    "brier_decomposition",
    "calibration_error",
    "neg_calibration_error_scorer",
    "neg_reliability_scorer",
]
