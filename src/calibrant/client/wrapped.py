"""A classifier whose probabilities go through a service, or through a journal."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.client.clients import Client
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput
from calibrant.journal import Journal


class Served:
    """Any model with ``predict_proba`` for two classes, calibrated by a stream of a service.

    ``predict_proba`` returns means, ``draw`` the draws that carry the promise; both take the ids
    under which outcomes are told later.

    Parameters
    ----------
    model
        Whose probabilities are raw forecasts.
    store
        A client of a service, or a journal without keys of which several processes may have one.
    stream
        Which stream of a service; a journal has one.
    """

    def __init__(self, model: Any, store: Client | Journal, stream: str = "main") -> None:
        self.model, self.store, self.stream = model, store, stream

    def draw(self, X: Any, ids: Sequence[str] | None = None) -> Reals:
        """Return the drawn forecasts of the second class."""
        drawn = [drawn for drawn, _ in self._asked(X, ids)]
        if None in drawn:
            raise InvalidInput("draws must be told with the forecast, got a stream that does not")
        return np.array(drawn)

    def predict_proba(self, X: Any, ids: Sequence[str] | None = None) -> Reals:
        """Return the mean forecasts of both classes."""
        mean = np.array([mean for _, mean in self._asked(X, ids)])
        return np.stack([1.0 - mean, mean], axis=1)

    def outcome(self, id: str, outcome: int) -> None:
        """Tell what happened."""
        if isinstance(self.store, Journal):
            self.store.observe(id, outcome)
        else:
            self.store.outcome(self.stream, id, outcome)

    def _asked(self, X: Any, ids: Sequence[str] | None) -> list[tuple[float, float]]:
        raw = np.asarray(self.model.predict_proba(X))[:, 1].tolist()
        if not isinstance(self.store, Journal):
            made = self.store.forecasts(self.stream, raw, ids)
            return [(one.forecast, one.mean) for one in made]
        names = [secrets.token_hex(16) for _ in raw] if ids is None else list(ids)
        tickets = self.store.play(None, [0] * len(raw), names, raw)
        return [(ticket.value, ticket.mean) for ticket in tickets]
