"""How fine grid and buckets must be for a target accuracy, given time enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from calibrant.bounds.prices import prices
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.losses import Loss, LossLike, Misclassification, require_proper

__all__ = ["grid_for", "resolution_paper", "resolution_sharp", "stride_for", "target"]

_LARGEST = 2**16


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


def resolution_sharp(epsilon: float, loss: LossLike | float = 1.0) -> int:
    """Return an N = M whose regret in the limit is below epsilon.

    Parameters
    ----------
    epsilon
        The extra loss per round to tolerate in the limit.
    loss
        A proper loss, for the smallest such N; or B, for ``ceil(2B/epsilon) + 1``, where
        ``2B * 1/(2N) + B/M = 2B/N`` is small enough for every loss with that B.

    Notes
    -----
    For a loss, the limit of ``regret_bound`` on a grid of N + 1 points (or N midpoints where
    the loss is infinite at 0 or 1) with a calibrator whose C1 tends to half a cell.

    Examples
    --------
    >>> resolution_sharp(0.1), resolution_sharp(0.1, "squared"), resolution_sharp(0.1, "log")
    (21, 15, 58)
    """
    e = target(epsilon)
    if isinstance(loss, int | float):
        return _ceil(2.0 * _constant(loss) / e) + 1
    found = require_proper(loss)
    return _smallest(lambda N: _limit(found, N) < e, stride_for(found), epsilon)


def grid_for(loss: Loss, resolution: int) -> tuple[int, float, float, float]:
    """Return cells, half a cell, least and largest value of the grid that suits a loss.

    Points 0, 1/N, ..., 1, unless the loss is infinite at 0 or 1: then N midpoints.

    Examples
    --------
    >>> from calibrant.losses import get_loss
    >>> grid_for(get_loss("squared"), 10), grid_for(get_loss("log"), 10)
    ((11, 0.05, 0.0, 1.0), (10, 0.05, 0.05, 0.95))
    """
    h = 1.0 / (2.0 * resolution)
    if math.isinf(loss.bound()):
        return resolution, h, h, 1.0 - h
    return resolution + 1, h, 0.0, 1.0


def stride_for(loss: Loss) -> int:
    """Return what the number of buckets must be a multiple of: 2 if the loss jumps at 1/2."""
    return 2 if isinstance(loss, Misclassification) else 1


def target(epsilon: Any) -> float:
    """Return a tolerance above 0."""
    return check.real(epsilon, "epsilon", low=1e-12, rule="a number of at least 1e-12")


def _limit(loss: Loss, resolution: int) -> float:
    _, h, low, high = grid_for(loss, resolution)
    return prices(loss, resolution, low, high).regret(h)


def _smallest(enough: Callable[[int], bool], stride: int, epsilon: float) -> int:
    high = 1
    while not enough(high * stride):
        high *= 2
        if high > _LARGEST:
            raise InvalidInput(f"epsilon must be reachable with {_LARGEST} cells, got {epsilon!r}")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle * stride) else (middle, high)
    return high * stride


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
