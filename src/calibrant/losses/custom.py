"""A loss made from any function of outcome and forecast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from calibrant.errors import InvalidInput, InvalidType
from calibrant.losses.base import Array, Loss, ends_of
from calibrant.losses.violation import find_violation

_POINTS = 4097
_RULE = "loss must be a number at every forecast"


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

    Where the function divides by zero or overflows, and where it refuses a forecast of 0 or
    1 with a ``ValueError``, as ``math.log`` does, the loss is taken to be infinite.  Any
    other error of the function, and a value that is no number, is an ``InvalidInput``.

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
        """What a search for a violation says; each access searches anew."""
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
        with np.errstate(all="ignore"):
            if self.vectorised:
                return self._many(outcome, values)
            losses = [self._one(outcome, value) for value in values.ravel().tolist()]
        return np.array(losses, dtype=np.float64).reshape(values.shape)

    def _one(self, outcome: int, forecast: float) -> float:
        try:
            loss = self.function(outcome, forecast)
        except ArithmeticError:
            return np.inf
        except Exception as error:
            if isinstance(error, ValueError) and forecast in (0.0, 1.0):
                return np.inf
            raise InvalidInput(_told(error, outcome, forecast)) from error
        if isinstance(loss, np.ndarray) and loss.ndim == 0:
            loss = loss[()]
        if not isinstance(loss, Real | np.bool_):
            raise InvalidType(_told(loss, outcome, forecast))
        return float(loss)

    def _many(self, outcome: int, forecasts: Array) -> Array:
        try:
            losses = self.function(np.full(forecasts.shape, outcome), forecasts)
            return np.broadcast_to(np.asarray(losses, dtype=np.float64), forecasts.shape)
        except Exception as error:
            raise InvalidInput(f"{_RULE}, got {error!r} for an array of forecasts") from error

    def _sampled(self, low: float, high: float) -> Array:
        bottom, top = ends_of(low, high)
        points = np.linspace(bottom, top, _POINTS)
        return np.stack([self.given_zero(points), self.given_one(points)])


def _told(got: object, outcome: int, forecast: float) -> str:
    return f"{_RULE}, got {got!r} for outcome {outcome} and forecast {forecast!r}"
