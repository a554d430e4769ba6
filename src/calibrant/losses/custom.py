"""Whether a loss is proper, by looking for a lie that pays; and losses of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.errors import InvalidInput, InvalidType
from calibrant.losses.base import Array, Loss, ends_of, weighed

# 840 is the least common multiple of 1..8: every fraction with such a denominator is tried.
RESOLUTION = 840
_TOLERANCE = 1e-9
# Forecasts so far from each belief are tried besides those of the grid: the gain is about the
# curvature times the square of a distance, and 2^-17 squared is below the tolerance.
_NEAR = np.concatenate([-(2.0 ** np.arange(-17, -3)), 2.0 ** np.arange(-17, -3)])
_NOISE = 1e-13
_ZOOMS = 8
_NEARBY = 33


@dataclass(frozen=True)
class ProperCheck:
    """What a search for a violation of properness found.

    Attributes
    ----------
    proper
        Whether no violation beyond the tolerance was found.
    violation
        The largest expected loss that honesty was seen to cost; 0 up to rounding for a
        proper loss.
    belief
        The probability of the outcome 1 at which the violation was seen.
    better
        The forecast that does better than announcing the belief.
    """

    proper: bool
    violation: float
    belief: float
    better: float


def find_violation(loss: Loss, resolution: int = RESOLUTION) -> ProperCheck:
    """Search beliefs and forecasts on a grid and near each belief, then around the worst pair.

    The largest ``E_p l(y, p) - min_q E_p l(y, q)`` is taken over all p and q in
    ``k/resolution``, ends included, so a jump of the loss and a tie between two forecasts
    are seen as they are; and over q at distances of 1/16, 1/32, ..., 2^-17 from p, so a best
    forecast that lies between p and its neighbour on the grid is seen as well.  If that
    exceeds 1e-9 times the largest finite loss (or 1e-9, whichever is more), the loss is
    improper, and both p and q are refined by zooming in.
    """
    grid = np.arange(check.whole(resolution, "resolution", low=2) + 1) / resolution
    violation, belief, better = _worst(loss, grid, grid)
    if violation <= _tolerance(loss, grid):
        return ProperCheck(True, violation, belief, better)
    return ProperCheck(False, *_zoomed(loss, grid, (violation, belief, better)))


def gaps(loss: Loss, beliefs: Array, candidates: Array) -> tuple[Array, Array]:
    """Return what honesty costs at each belief, and the best forecast that was tried there.

    Tried are the candidates, and forecasts near the belief.
    """
    honest = weighed(beliefs, *_curves(loss, beliefs))
    near = np.clip(beliefs[:, np.newaxis] + _NEAR, 0.0, 1.0)
    far = np.broadcast_to(candidates, (len(beliefs), len(candidates)))
    gap, better = _gains(honest, beliefs, far, *_curves(loss, candidates))
    closer, beside = _gains(honest, beliefs, near, *_curves(loss, near))
    # Rounding must not trade a round number for its neighbour.
    gained = closer > gap * (1.0 + _TOLERANCE) + _NOISE
    return np.where(gained, closer, gap), np.where(gained, beside, better)


def _gains(
    honest: Array, beliefs: Array, forecasts: Array, zero: Array, one: Array
) -> tuple[Array, Array]:
    table = weighed(beliefs[:, np.newaxis], zero, one)
    rows, column = np.arange(len(beliefs)), np.argmin(table, axis=1)
    with np.errstate(invalid="ignore"):
        gap = honest - table[rows, column]
    # Two infinite losses of one sign differ by nothing that could be used.
    return np.where(np.isnan(gap), 0.0, gap), forecasts[rows, column]


def _worst(loss: Loss, beliefs: Array, candidates: Array) -> tuple[float, float, float]:
    gap, better = gaps(loss, beliefs, candidates)
    row = int(np.argmax(gap))
    return float(gap[row]), float(beliefs[row]), float(better[row])


def _zoomed(
    loss: Loss, grid: Array, found: tuple[float, float, float]
) -> tuple[float, float, float]:
    width = float(grid[1])
    for _ in range(_ZOOMS):
        beliefs = _around(found[1], width)
        candidates = np.unique(np.concatenate([grid, _around(found[2], width)]))
        seen = _worst(loss, beliefs, candidates)
        # A gain within rounding would only trade a round number for its neighbour.
        found = seen if seen[0] > found[0] * (1.0 + _TOLERANCE) else found
        width /= 8.0
    return found


def _around(centre: float, width: float) -> Array:
    return np.clip(np.linspace(centre - width, centre + width, _NEARBY), 0.0, 1.0)


def _tolerance(loss: Loss, grid: Array) -> float:
    sizes = np.abs(np.concatenate(_curves(loss, grid)))
    return _TOLERANCE * float(max(1.0, sizes[np.isfinite(sizes)].max(initial=0.0)))


def _curves(loss: Loss, forecasts: Array) -> tuple[Array, Array]:
    zero, one = loss.given_zero(forecasts), loss.given_one(forecasts)
    broken = np.isnan(zero) | np.isnan(one)
    if broken.any():
        where = float(forecasts[broken][0])
        raise InvalidInput(f"loss must be a number at every forecast, got nan at {where!r}")
    return zero, one


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
        """What a search for a violation says; each access searches again."""
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
