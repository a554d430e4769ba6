"""How fine a grid, how many buckets and how many rounds a promise takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from calibrant.bounds.accuracy import Prices, accuracy_at_the_edge, prices
from calibrant.bounds.algorithm1 import algorithm1
from calibrant.bounds.game import Bound, game
from calibrant.core import check
from calibrant.core.grid import GRIDS, MAX_SPACED, SPACED, Grid
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
    if kind in SPACED:
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
    return least, MAX_SPACED if grid in SPACED else _LARGEST


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


_LATEST = 10**18
# Two steps reach over the next number: even numbers of buckets can be cheaper than odd ones.
_STEPS = [(a, b) for a in range(-2, 3) for b in range(-2, 3)]


@dataclass(frozen=True)
class Shape:
    """Resolution N, buckets M, and the rounds T after which the guarantee bites."""

    resolution: int
    buckets: int
    rounds: int


def horizon(epsilon: float, bound_after: Callable[[int], Bound | float]) -> int:
    """Return the first round after which a bound stays at or below epsilon.

    Parameters
    ----------
    epsilon
        The target.
    bound_after
        A bound as a function of the number of rounds; it must not grow.

    Examples
    --------
    >>> from calibrant.bounds import foster_hart
    >>> horizon(0.01, lambda rounds: foster_hart(rounds, cells=11, half_cell=0.05))
    11687
    >>> horizon(0.002, lambda rounds: foster_hart(rounds, cells=11, half_cell=0.05))
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: epsilon must be above 0.0025, the bound after 10^18 rounds,
    got 0.002
    """
    e = target(epsilon)
    last = float(bound_after(_LATEST))
    if last > e:
        floor = f"{last:.6g}, the bound after 10^18 rounds"
        raise InvalidInput(f"epsilon must be above {floor}, got {epsilon!r}")
    return _first(lambda rounds: float(bound_after(rounds)) <= e)


def horizon_regret_matching(
    epsilon: float,
    cells: int,
    half_cell: float,
    buckets: int,
    *,
    bound: float = 1.0,
    cost: float | None = None,
) -> int:
    """Return the rounds until ``regret_matching`` is accurate, in closed form.

    Parameters
    ----------
    epsilon
        The extra loss per round to tolerate.
    cells, half_cell, buckets
        K, h and M, as in ``foster_hart``.
    bound
        B, with ``|l(1, p) - l(0, p)| <= B``.
    cost
        The price of buckets; by default the paper's B/M.

    Notes
    -----
    ``T = (2B (1 + h))^2 M K/(epsilon - 2 B h - cost)^2`` solves
    ``2 B (h + (1 + h) sqrt(M K/T)) + cost = epsilon``.

    Examples
    --------
    >>> horizon_regret_matching(0.2, cells=16, half_cell=1 / 30, buckets=15)
    230640
    """
    sizes = game(1, cells, half_cell, buckets)
    B = check.real(bound, "bound", low=0.0, rule="a number of at least 0")
    price = B / sizes.M if cost is None else check.real(cost, "cost", low=0.0)
    spare = target(epsilon) - 2.0 * B * sizes.h - price
    if spare <= 0.0:
        floor = f"2 B half_cell + cost = {2.0 * B * sizes.h + price:.6g}"
        raise InvalidInput(f"epsilon must be above {floor}, got {epsilon!r}")
    return max(1, math.ceil((2.0 * B * (1.0 + sizes.h) / spare) ** 2 * sizes.cells))


def best_shape(
    epsilon: float, loss: LossLike | float = 1.0, method: str = "foster_hart", **options: Any
) -> Shape:
    """Return the resolution and buckets whose guarantee needs the fewest rounds.

    Parameters
    ----------
    epsilon
        The extra loss per round over the raw forecast to tolerate.
    loss
        A proper loss, for ``regret_bound``; or B, for ``accuracy_at_the_edge``.
    method, **options
        The calibrator and what else its theorem takes, as in ``algorithm1``.

    Notes
    -----
    Guarantees against any adversary are far from what happens on ordinary data: look at
    measured errors and at ``foster_hart_measured`` as well.

    Examples
    --------
    >>> best_shape(0.2, 1.0, "regret_matching")
    Shape(resolution=21, buckets=20, rounds=176000)
    >>> best_shape(0.1, "squared", "foster_hart")
    Shape(resolution=4, buckets=12, rounds=7887)
    """
    if isinstance(loss, int | float):
        return _for_every_loss(epsilon, float(loss), method, options)
    return _for_one_loss(epsilon, require_proper(loss), method, options)


def smallest_shape(
    epsilon: float, regret: Callable[[int, int, int], Bound | float], *, stride: int = 1
) -> Shape:
    """Return the resolution and buckets at which a bound first falls to epsilon.

    Parameters
    ----------
    epsilon
        The target.
    regret
        A bound as a function of resolution, buckets and rounds; it must not grow with the
        rounds.
    stride
        What the number of buckets must be a multiple of.

    Notes
    -----
    From the first N = M that can reach the target at all, the search moves to the best of
    the shapes one or two steps of some length away while that helps, then halves the steps.
    That ends in the best shape if the horizon has a single valley, as it had for the bounds
    of this package wherever all shapes were tried.

    Examples
    --------
    >>> from calibrant.bounds import brier_bound
    >>> smallest_shape(0.2, lambda N, M, T: brier_bound(T, N + 1, 1 / (2 * N), M))
    Shape(resolution=3, buckets=13, rounds=2755)
    """
    e = target(epsilon)

    @cache
    def rounds(N: int, k: int) -> float:
        M = k * stride
        reached = min(N, M) > 0 and float(regret(N, M, _LATEST)) <= e
        return _first(lambda T: float(regret(N, M, T)) <= e) if reached else math.inf

    size = first_size(lambda k: float(regret(k, k * stride, _LATEST)), lambda last: last <= e)
    if size is None:
        raise InvalidInput(f"epsilon must be reachable with {_LARGEST} cells, got {epsilon!r}")
    N, k = _lowest(rounds, size)
    return Shape(N, k * stride, int(rounds(N, k)))


@dataclass(frozen=True)
class Rate:
    """One column of the table: orders of growth without constants.

    Attributes
    ----------
    subroutine
        The calibrator inside Algorithm 1.
    time, space
        Work per round and memory.
    calibration
        How far the calibration error is above its limit.
    advantage
        What the paper says in favour of the calibrator.
    """

    subroutine: str
    time: float
    space: float
    calibration: float
    advantage: str


def paper_table(epsilon: float, rounds: int) -> tuple[Rate, Rate]:
    """Return Table 1 of the paper, evaluated at epsilon and T rounds.

    Notes
    -----
    A calibrator with rate ``f(epsilon)/sqrt(T)`` has ``f(epsilon)/sqrt(epsilon T)`` inside
    Algorithm 1 with ``1/epsilon`` buckets: ``f = 1/epsilon`` for regret minimisation and
    ``1/sqrt(epsilon)`` for approachability.  The time of the former is reached by regret
    matching on adjacent swaps only; all pairs need a linear system of that size.

    References
    ----------
    Kuleshov and Ermon (2017), Table 1.

    Examples
    --------
    >>> for rate in paper_table(0.1, 10_000):
    ...     print(f"{rate.subroutine}: {rate.calibration:.3f}")
    regret minimisation: 0.316
    Blackwell approachability: 0.100
    """
    e, T = target(epsilon), check.whole(rounds, "rounds", low=1)
    slow, fast = 1.0 / (e * math.sqrt(e * T)), 1.0 / (e * math.sqrt(T))
    return (
        Rate("regret minimisation", 1.0 / e, 1.0 / e**2, slow, "simplicity"),
        Rate("Blackwell approachability", math.log(1.0 / e), 1.0 / e**2, fast, "efficiency"),
    )


def _for_every_loss(epsilon: float, B: float, method: str, options: dict[str, Any]) -> Shape:
    def regret(N: int, M: int, rounds: int) -> Bound:
        calibration = algorithm1(method, rounds, N + 1, 1.0 / (2 * N), M, **options)
        return accuracy_at_the_edge(calibration.as_c1().value, B, M)

    return smallest_shape(epsilon, regret)


def _for_one_loss(epsilon: float, loss: Loss, method: str, options: dict[str, Any]) -> Shape:
    kind = natural_grid(loss)

    @cache
    def charge(N: int, M: int) -> Prices:
        return prices(loss, M, *grid_for(loss, N, kind)[2:])

    def regret(N: int, M: int, rounds: int) -> float:
        cells, h, _, _ = grid_for(loss, N, kind)
        return charge(N, M).regret(algorithm1(method, rounds, cells, h, M, **options))

    return smallest_shape(epsilon, regret, stride=stride_for(loss))


def _lowest(rounds: Callable[[int, int], float], size: int) -> tuple[int, int]:
    here, distance = (size, size), size
    while distance:
        around = [(here[0] + a * distance, here[1] + b * distance) for a, b in _STEPS]
        best = min(around, key=lambda shape: rounds(*shape))
        if rounds(*best) < rounds(*here):
            here = best
        else:
            distance //= 2
    return here


def _first(enough: Callable[[int], bool]) -> int:
    high = 1
    while not enough(high):
        high *= 2
    return _bisected(enough, high // 2, high)
