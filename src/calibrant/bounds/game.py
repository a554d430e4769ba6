"""What every theorem is told: how many rounds, on which grid, in how many buckets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.errors import InvalidInput

EXPECTED = (
    "in expectation over the draws, against an adversary who sees the mixture and the past "
    "but never the draw"
)
PATHWISE = "for every sequence of outcomes, whatever the adversary sees"

_ABOVE_ZERO = float(np.nextafter(0.0, 1.0))
_BELOW_ONE = float(np.nextafter(1.0, 0.0))


@dataclass(frozen=True)
class Game:
    """Checked sizes of one game; the letters are those of the paper.

    Attributes
    ----------
    T
        Rounds.
    K
        Grid points of one calibrator.
    h
        Half a cell of that calibrator's grid.
    M
        Buckets, each with a calibrator of its own.
    """

    T: int
    K: int
    h: float
    M: int

    @property
    def cells(self) -> int:
        """All grid points of all buckets."""
        return self.K * self.M

    @property
    def visited(self) -> int:
        """Grid points that can have been played, at most."""
        return min(self.cells, self.T)


def game(rounds: Any, cells: Any, half_cell: Any, buckets: Any = 1) -> Game:
    """Return the checked sizes."""
    return Game(
        T=check.whole(rounds, "rounds", low=1),
        K=check.whole(cells, "cells", low=1),
        h=check.real(half_cell, "half_cell", low=0.0, high=1.0, rule="a number in [0, 1]"),
        M=check.whole(buckets, "buckets", low=1),
    )


def half_cell(grid: ArrayLike) -> float:
    """Return the largest distance from a point of [0, 1] to its nearest grid point.

    That is half the widest spacing, or the distance from 0 or 1 to the grid if larger.

    Examples
    --------
    >>> half_cell([0.0, 0.25, 0.5, 0.75, 1.0])
    0.125
    >>> half_cell([0.125, 0.375, 0.625, 0.875])
    0.125
    >>> half_cell([0.5])
    0.5
    """
    points = check.probabilities(grid, "grid")
    if points.size == 0 or (np.diff(points) <= 0.0).any():
        raise InvalidInput(f"grid must be increasing and not empty, got {points.tolist()!r}")
    spacing = np.diff(points, prepend=-points[0], append=2.0 - points[-1])
    return float(spacing.max() / 2.0)


def probable(failure: Any) -> float:
    """Return a failure probability strictly between 0 and 1."""
    return check.real(
        failure, "failure", low=_ABOVE_ZERO, high=_BELOW_ONE, rule="a number in (0, 1)"
    )


def probably(failure: float) -> str:
    """Return the words for a bound that fails with that probability."""
    return (
        f"with probability at least {1.0 - failure:g} over the draws, against an adversary who "
        "sees the mixture and the past but never the draw"
    )


def strength(prior: Any) -> float:
    """Return the number of pseudo-rounds per grid point, at least 0."""
    return check.real(prior, "prior", low=0.0, rule="a number of at least 0")


def pull(centre: Any) -> float:
    """Return the largest squared distance of a frequency from the prior's mean.

    ``None`` stands for a mean that is not known, or differs between buckets: 1.
    """
    if centre is None:
        return 1.0
    c = check.probability(centre, "centre")
    return max(c, 1.0 - c) ** 2


def prior_costs(sizes: Game, k0: float, given: Any) -> tuple[float, float]:
    """Return sum |s_i| and sum max(|s_i| - h k0, 0)^2 over the gaps s_i that cells start with.

    Where none are given each is taken to be k0 in size, the worst.
    """
    if given is None:
        return sizes.cells * k0, sizes.cells * (k0 * (1.0 - sizes.h)) ** 2
    gaps = np.abs(np.asarray(given, dtype=np.float64).ravel())
    if gaps.size != sizes.cells or not np.isfinite(gaps).all():
        raise InvalidInput(f"prior_scores must be {sizes.cells} finite numbers, got {given!r}")
    return float(gaps.sum()), float((np.maximum(gaps - sizes.h * k0, 0.0) ** 2).sum())
