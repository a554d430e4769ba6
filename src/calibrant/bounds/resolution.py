"""How fine grid and buckets must be for a target accuracy, given time enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from calibrant.bounds.prices import prices
from calibrant.core import check
from calibrant.core.grid import GRIDS, MAX_SPACED, Grid
from calibrant.errors import InvalidInput
from calibrant.losses import Loss, LossLike, Misclassification, require_proper

_LARGEST = 2**16
_TRIED = 2**8
_STUCK = 0.9


def resolution_paper(epsilon: float, loss: LossLike | float = 1.0) -> int:
    """Return the paper's ``N = M = 3B/epsilon``, rounded up.

    Parameters
    ----------
    epsilon
        The extra loss per round to tolerate in the limit.
    loss
        A proper loss, or B itself.  B must dominate the loss and its slope, so it is 2 for
        the squared loss.  For the misclassification loss it is 1, and the result is made
        even, so that one half is a bucket edge.

    Notes
    -----
    Theorem 1 of the paper.  A loss that is unbounded, or has unbounded slope without being
    the misclassification loss, has no such N; ``resolution_sharp`` may still have one.

    Examples
    --------
    >>> resolution_paper(0.1), resolution_paper(0.1, "squared")
    (30, 60)
    >>> resolution_paper(0.2), resolution_paper(0.2, "misclassification")
    (15, 16)
    """
    e = target(epsilon)
    if isinstance(loss, int | float):
        return _ceil(3.0 * _constant(loss) / e)
    found = require_proper(loss)
    return _multiple(_ceil(3.0 * _paper_constant(found) / e), stride_for(found))


def resolution_sharp(epsilon: float, loss: LossLike | float = 1.0, grid: str | None = None) -> int:
    """Return an N = M whose regret in the limit is below epsilon.

    Parameters
    ----------
    epsilon
        The extra loss per round to tolerate in the limit.
    loss
        A proper loss, for the smallest such N; or B, for ``ceil(2B/epsilon) + 1``, where
        ``2B * 1/(2N) + B/M = 2B/N`` is small enough for every loss with that B.
    grid
        The kind of grid, where a loss is given; by default N + 1 points from 0 to 1, or N
        midpoints where the loss is infinite at 0 or 1.

    Notes
    -----
    For a loss, the first N with ``regret_limit(loss, N, N, grid) < epsilon`` whose grid has
    more than one point.  Under a loss of one's own that jumps it may not be the smallest.

    Examples
    --------
    >>> resolution_sharp(0.1), resolution_sharp(0.1, "squared"), resolution_sharp(0.1, "log")
    (21, 15, 58)
    >>> resolution_sharp(0.1, "squared", "logit"), resolution_sharp(0.1, "squared", "arcsine")
    (25, 21)
    """
    e = target(epsilon)
    if isinstance(loss, int | float):
        return _ceil(2.0 * _constant(loss) / e) + 1
    found = require_proper(loss)
    kind = _kind(found, grid)
    stride, (least, most) = stride_for(found), _sizes(kind)
    size = first_size(
        lambda k: _limit(found, k * stride, k * stride, kind),
        lambda limit: limit < e,
        least=-(-least // stride),
        most=most // stride,
    )
    if size is None:
        raise InvalidInput(f"epsilon must be reachable with {most} cells, got {epsilon!r}")
    return size * stride


def regret_limit(loss: LossLike, resolution: int, buckets: int, grid: str | None = None) -> float:
    """Return what the regret to the raw forecast tends to at most.

    Parameters
    ----------
    loss
        A proper loss.
    resolution, buckets
        N and M.
    grid
        The kind of grid, by default that of ``resolution_sharp``.

    Notes
    -----
    The limit of ``regret_bound`` for a calibrator whose C1 tends to half a cell, as that of
    every calibrator with a guarantee does, unless its step is fixed.

    Examples
    --------
    >>> [round(regret_limit("squared", 15, 15, grid), 3) for grid in ("endpoints", "logit")]
    [0.099, 0.142]
    """
    M = check.whole(buckets, "buckets", low=1)
    found = require_proper(loss)
    return _limit(found, resolution, M, _kind(found, grid))


def grid_for(
    loss: Loss, resolution: int, grid: str | None = None
) -> tuple[int, float, float, float]:
    """Return cells, half a cell, least and largest value of a grid.

    Without a kind, the one that suits the loss: points 0, 1/N, ..., 1 or N midpoints.

    Examples
    --------
    >>> from calibrant.losses import get_loss
    >>> grid_for(get_loss("squared"), 10), grid_for(get_loss("log"), 10)
    ((11, 0.05, 0.0, 1.0), (10, 0.05, 0.05, 0.95))
    """
    N, kind = check.whole(resolution, "resolution", low=1), _kind(loss, grid)
    if kind in ("logit", "arcsine"):
        spaced = Grid(kind, N)
        return spaced.cells, spaced.half_cell, float(spaced.values[0]), float(spaced.values[-1])
    h = 1.0 / (2.0 * N)
    if kind == "midpoints":
        return N, h, h, 1.0 - h
    return N + 1, h, 0.0, 1.0


def natural_grid(loss: Loss) -> str:
    """Return the kind of grid that suits a loss: midpoints if it is infinite at 0 or 1."""
    return "midpoints" if math.isinf(loss.bound()) else "endpoints"


def first_size(
    limit: Callable[[int], float],
    enough: Callable[[float], bool],
    *,
    least: int = 1,
    most: int = _LARGEST,
) -> int | None:
    """Return a size whose limit is enough, or None if there is none up to ``most``.

    Sizes are doubled until one is enough, and the last step is bisected: where limits fall
    with the size, that gives the smallest.  Where a loss jumps they fall only at sizes that
    put an edge on the jump, and from one power of two to the next not at all; once that
    shows, all sizes up to 256 are tried.

    Examples
    --------
    >>> first_size(lambda size: 1 / size, lambda limit: limit < 0.1)
    11
    >>> first_size(lambda size: 0 if size % 10 == 0 else 1, lambda limit: limit < 0.1)
    10
    """
    size, before, tried = least, math.inf, False
    while size <= most:
        now = limit(size)
        if enough(now):
            return _bisected(lambda middle: enough(limit(middle)), max(size // 2, least - 1), size)
        if size > _TRIED and not tried and now > _STUCK * before:
            tried = True
            small = (k for k in range(least, _TRIED) if enough(limit(k)))
            if (found := next(small, None)) is not None:
                return found
        size, before = 2 * size, now
    return None


def stride_for(loss: Loss) -> int:
    """Return what the number of buckets must be a multiple of: 2 if the loss jumps at 1/2."""
    return 2 if isinstance(loss, Misclassification) else 1


def target(epsilon: Any) -> float:
    """Return a tolerance above 0."""
    return check.real(epsilon, "epsilon", low=1e-12, rule="a number of at least 1e-12")


def _limit(loss: Loss, resolution: int, buckets: int, grid: str) -> float:
    _, h, low, high = grid_for(loss, resolution, grid)
    return prices(loss, buckets, low, high).regret(h)


def _bisected(enough: Callable[[int], bool], low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _kind(loss: Loss, grid: str | None) -> str:
    return natural_grid(loss) if grid is None else check.choice(grid, "grid", GRIDS)


def _sizes(grid: str) -> tuple[int, int]:
    # A grid of one value would do for a large epsilon, and forecast nothing.
    least = 1 if grid == "endpoints" else 2
    return least, MAX_SPACED if grid in ("logit", "arcsine") else _LARGEST


def _paper_constant(loss: Loss) -> float:
    slope = 0.0 if stride_for(loss) == 2 else loss.lipschitz()
    B = max(loss.bound(), slope)
    if math.isinf(B):
        raise InvalidInput(f"loss must be bounded, with a bounded slope, got {loss.name!r}")
    return B


def _constant(bound: float) -> float:
    return check.real(bound, "loss", low=1e-12, rule="a loss or a number above 0")


def _multiple(number: int, stride: int) -> int:
    return -(-number // stride) * stride


def _ceil(number: float) -> int:
    # 3 / 0.1 may come out a hair above 30.
    return math.ceil(number * (1.0 - 1e-12))
