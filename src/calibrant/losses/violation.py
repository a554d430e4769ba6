"""How far a loss is from being proper, found by search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.losses.base import Array, Loss, weighed

# 840 is the least common multiple of 1..8: every fraction with such a denominator is tried.
RESOLUTION = 840
_TOLERANCE = 1e-9
# Forecasts so far from each belief are tried besides those of the grid: the gain is about the
# curvature times the square of a distance, and 2^-17 squared is below the tolerance.
_NEAR = np.concatenate([-(2.0 ** np.arange(-17, -3)), 2.0 ** np.arange(-17, -3)])
_NOISE = 1e-13
_ZOOMS = 8
_POINTS = 33


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
    return np.clip(np.linspace(centre - width, centre + width, _POINTS), 0.0, 1.0)


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
