"""A loss made from any function of outcome and forecast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.errors import InvalidType
from calibrant.losses.base import Array, Loss, ends_of
from calibrant.losses.violation import find_violation

__all__ = ["CustomLoss"]

_POINTS = 4097


@dataclass(frozen=True)
class CustomLoss(Loss):
    """A loss given by ``function(outcome, forecast)``, its constants found numerically.

    The function is called with one outcome and one forecast at a time, so plain Python
    with ``if`` and ``math`` will do.  Say ``vectorised=True`` if it takes arrays.

    Parameters
    ----------
    function
        Returns a number for an outcome of 0 or 1 and a forecast in [0, 1].
    label
        The name for messages; by default the function's own.
    vectorised
        Whether the function may be called with arrays.

    Notes
    -----
    ``bound``, ``swing`` and ``lipschitz`` are taken over 4,097 evenly spaced forecasts
    that include both ends.  For a proper loss the curves are monotone, so the first two
    are exact; the slope is that of the steepest chord and may fall short of a slope that
    is reached between two points only.

    Examples
    --------
    >>> def asymmetric(outcome, forecast):
    ...     return 3 * (1 - forecast) ** 2 if outcome else forecast ** 2
    >>> loss = CustomLoss(asymmetric)
    >>> loss.name, loss.proper, loss.bound(), loss(1, 0.5)
    ('asymmetric', False, 3.0, 0.75)
    """

    function: Callable[[Any, Any], Any]
    label: str | None = None
    vectorised: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be called."""
        if not callable(self.function):
            raise InvalidType(f"function must be callable, got {self.function!r}")

    @property
    def name(self) -> str:
        """The label, or else the function's own name."""
        return self.label or str(getattr(self.function, "__name__", repr(self.function)))

    @property
    def proper(self) -> bool:
        """What a search for a violation says; it is repeated on each access."""
        return find_violation(self).proper

    def given_zero(self, forecast: Array) -> Array:
        """Return the function at outcome 0."""
        return self._at(0, forecast)

    def given_one(self, forecast: Array) -> Array:
        """Return the function at outcome 1."""
        return self._at(1, forecast)

    def bound(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the largest size seen."""
        return float(np.abs(self._sampled(low, high)).max())

    def swing(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the largest minus the smallest difference between the two curves."""
        zero, one = self._sampled(low, high)
        return float(np.ptp(one - zero))

    def lipschitz(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return the slope of the steepest chord between neighbouring points."""
        if low == high:
            return 0.0
        rise = np.abs(np.diff(self._sampled(low, high), axis=1)).max()
        return float(rise * (_POINTS - 1) / (high - low))

    def curvature(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return infinity: a search gives no certain constant."""
        ends_of(low, high)
        return np.inf

    def _at(self, outcome: int, forecast: Array) -> Array:
        values = np.asarray(forecast, dtype=np.float64)
        if self.vectorised:
            losses = self.function(np.full(values.shape, outcome), values)
            return np.asarray(losses, dtype=np.float64)
        losses = [float(self.function(outcome, value)) for value in values.ravel().tolist()]
        return np.array(losses, dtype=np.float64).reshape(values.shape)

    def _sampled(self, low: float, high: float) -> Array:
        bottom, top = ends_of(low, high)
        points = np.linspace(bottom, top, _POINTS)
        return np.stack([self.given_zero(points), self.given_one(points)])
