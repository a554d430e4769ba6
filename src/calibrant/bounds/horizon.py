"""How many rounds a guarantee needs, and the grid and buckets that need fewest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from calibrant.bounds.accuracy import accuracy_at_the_edge
from calibrant.bounds.algorithm1 import algorithm1
from calibrant.bounds.bound import Bound
from calibrant.bounds.game import game
from calibrant.bounds.prices import Prices, prices
from calibrant.bounds.resolution import first_size, grid_for, natural_grid, stride_for, target
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.losses import Loss, LossLike, require_proper

_LATEST = 10**18
_LARGEST = 2**16
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
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
