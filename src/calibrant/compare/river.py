"""River's logistic regression on the log-odds, as its users calibrate today."""

from __future__ import annotations

import importlib
import math
import pickle
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from calibrant.compare.method import Method
from calibrant.compare.player import Announced

CLIP: Final = 1e-3
"""How close to 0 and 1 raw forecasts may come before their log-odds are taken."""


def river_methods() -> list[Method]:
    """Return both methods; River is imported when one of them starts."""
    return [
        Logistic("river_sgd", "River's LogisticRegression on the log-odds, SGD(0.01).", "SGD"),
        Logistic("river_newton", "The same with optim.Newton(0.1).", "Newton"),
    ]


@dataclass(frozen=True)
class Logistic(Method):
    """Two weights, learned one outcome at a time.

    ``optimizer`` names the class in ``river.optim``; its settings are River's defaults.
    """

    kind: ClassVar[str] = "river"

    optimizer: str

    def start(self, seed: int) -> Learner:
        optimizer = getattr(importlib.import_module("river.optim"), self.optimizer)
        steps = {"SGD": 0.01, "Newton": 0.1}
        linear: Any = importlib.import_module("river.linear_model")
        return Learner(linear.LogisticRegression(optimizer=optimizer(steps[self.optimizer])))


class Learner:
    """One of River's classifiers with the log-odds as its only feature."""

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier

    def announce(self, raw: float) -> Announced:
        forecast = self._classifier.predict_proba_one(_features(raw))[True]
        return Announced(forecast, forecast)

    def learn(self, raw: float, outcome: int) -> None:
        self._classifier.learn_one(_features(raw), bool(outcome))

    def size(self) -> int:
        return len(pickle.dumps(self._classifier))


def _features(raw: float) -> dict[str, float]:
    inside = min(max(raw, CLIP), 1.0 - CLIP)
    return {"logit": math.log(inside / (1.0 - inside))}
