"""A classifier whose probabilities go through a service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.client.clients import Client
from calibrant.core.arrays import Reals


class Served:
    """Any model with ``predict_proba`` for two classes, calibrated by a stream of a service.

    ``predict_proba`` returns means, ``draw`` the draws that carry the promise; both take the ids
    under which outcomes are told later.
    """

    def __init__(self, model: Any, client: Client, stream: str) -> None:
        self.model, self.client, self.stream = model, client, stream

    def draw(self, X: Any, ids: Sequence[str] | None = None) -> Reals:
        """Return the drawn forecasts of the second class."""
        return np.array([one.forecast for one in self._asked(X, ids)])

    def predict_proba(self, X: Any, ids: Sequence[str] | None = None) -> Reals:
        """Return the mean forecasts of both classes."""
        mean = np.array([one.mean for one in self._asked(X, ids)])
        return np.stack([1.0 - mean, mean], axis=1)

    def outcome(self, id: str, outcome: int) -> None:
        """Tell what happened."""
        self.client.outcome(self.stream, id, outcome)

    def _asked(self, X: Any, ids: Sequence[str] | None) -> Any:
        raw = np.asarray(self.model.predict_proba(X))[:, 1]
        return self.client.forecasts(self.stream, raw.tolist(), ids)
