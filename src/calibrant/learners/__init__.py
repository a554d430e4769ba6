"""Learners that make raw forecasts: one round at a time, in one pass."""

from calibrant.learners.online_svm import OnlineL1SVM

__all__ = ["OnlineL1SVM"]
