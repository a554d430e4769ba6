"""The values that a calibrator may announce, as exact fractions.

Every grid is a list of whole numerators over one denominator, so gaps between
outcomes and announced values are integers whatever the grid.  The spaced grids
are rounded to multiples of 2**-24: the rounded values *are* the grid.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.kernels.portable import log, sigmoid

SPACED: Final = ("logit", "arcsine", "graded")
"""Grids that are not even."""
GRIDS: Final = ("endpoints", "midpoints", *SPACED)
MAX_RESOLUTION: Final = 16_384
FINE: Final = 1 << 24
MAX_SPACED: Final = 4_096
"""Beyond this neighbours of a spaced grid, near 0 and 1, would be less than 2**-24 apart."""
LEAST: Final = 1 << 10
"""The first value of a graded grid is this times 2**-24: 2**-14."""
EVEN: Final = 0.22
"""Which part of a graded grid's steps is there for probabilities; the others are for odds."""


@dataclass(frozen=True)
class Grid:
    """A set of values in [0, 1] at a resolution of about ``1 / resolution``.

    Parameters
    ----------
    kind
        ``"endpoints"``: i/N for i = 0..N.  ``"midpoints"``: (i + 1/2)/N for i < N;
        it leaves out 0 and 1, where the log loss is infinite.  ``"logit"``: N values
        with equal steps in log-odds between 1/(2N) and 1 - 1/(2N).  ``"arcsine"``:
        sin²(π(2i + 1)/(4N)) for i < N, finer towards 0 and 1, made for the log loss.
        ``"graded"``: N + 1 values from 2**-14 to 1 - 2**-14 with equal steps of a mean of
        probability and log-odds: even in the middle, in proportion to p and to 1 - p at the
        ends, so that rare events are resolved as finely as common ones.
    resolution
        The N above.

    Examples
    --------
    >>> Grid("endpoints", 4).values
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> Grid("midpoints", 4).values
    array([0.125, 0.375, 0.625, 0.875])
    >>> Grid("arcsine", 3).values.round(3)
    array([0.067, 0.5  , 0.933])
    >>> Grid("graded", 8).values.round(5)[:5]
    array([6.0000e-05, 1.3600e-03, 2.5950e-02, 1.9309e-01, 5.0000e-01])
    """

    kind: str = "endpoints"
    resolution: int = 20

    def __post_init__(self) -> None:
        check.choice(self.kind, "grid", GRIDS)
        least = 2 if self.kind in ("logit", "arcsine") else 1
        most = MAX_SPACED if self.kind in SPACED else MAX_RESOLUTION
        size = check.whole(self.resolution, "resolution", low=least, high=most)
        object.__setattr__(self, "resolution", size)

    @functools.cached_property
    def denominator(self) -> int:
        """The common denominator of all values."""
        return {"endpoints": self.resolution, "midpoints": 2 * self.resolution}.get(self.kind, FINE)

    @functools.cached_property
    def numerators(self) -> tuple[int, ...]:
        """Whole numerators of the values, increasing."""
        n = self.resolution
        if self.kind == "endpoints":
            return tuple(range(n + 1))
        if self.kind == "midpoints":
            return tuple(range(1, 2 * n, 2))
        if self.kind == "graded":
            return _graded(n)
        spaced = _logit_spaced(n) if self.kind == "logit" else _arcsine_spaced(n)
        return tuple(round(FINE * value) for value in spaced)

    @property
    def cells(self) -> int:
        """Number of values K."""
        return len(self.numerators)

    @functools.cached_property
    def values(self) -> Reals:
        """The values as doubles, each the one nearest to its fraction."""
        values = np.array([k / self.denominator for k in self.numerators])
        values.flags.writeable = False
        return values

    @functools.cached_property
    def half_cell(self) -> float:
        """How far a value in [0, 1] can be from the grid: the floor of every bound.

        >>> Grid("endpoints", 10).half_cell, Grid("midpoints", 10).half_cell
        (0.05, 0.05)
        """
        k, d = self.numerators, self.denominator
        widest = max((b - a for a, b in itertools.pairwise(k)), default=0)
        return max(widest / (2 * d), k[0] / d, (d - k[-1]) / d)

    def nearest(self, numerator: int, denominator: int) -> int:
        """Return the index of the value nearest to a fraction; a tie goes to the higher one.

        >>> Grid("endpoints", 10).nearest(7, 20)
        4
        """
        low, high = 0, self.cells - 1
        while low < high:
            middle = (low + high) // 2
            twice = self.numerators[middle] + self.numerators[middle + 1]
            if 2 * numerator * self.denominator < twice * denominator:
                high = middle
            else:
                low = middle + 1
        return low


def _logit_spaced(n: int) -> list[float]:
    reach = log(2.0 * n - 1.0)
    return [sigmoid(reach * (2 * i - n + 1) / (n - 1)) for i in range(n)]


def _arcsine_spaced(n: int) -> list[float]:
    return [math.sin(math.pi * (2 * i + 1) / (4 * n)) ** 2 for i in range(n)]


def _graded(n: int) -> tuple[int, ...]:
    low = [_graded_at(i / n) for i in range((n + 1) // 2)]
    middle = [FINE // 2] if n % 2 == 0 else []
    return (*low, *middle, *(FINE - k for k in reversed(low)))


def _graded_at(part: float) -> int:
    """Return the least numerator below the middle behind which so much of the grid's steps lies."""
    low, high = LEAST, FINE // 2
    while low < high:
        middle = (low + high) // 2
        if _graded_scale(middle) < part:
            low = middle + 1
        else:
            high = middle
    return low


def _graded_scale(k: int) -> float:
    """Return which part of the steps lies below a value: a mean of its probability and log-odds."""
    even = (k - LEAST) / (FINE - 2 * LEAST)
    reach = log(FINE / LEAST - 1.0)
    odds = 0.5 + 0.5 * log(k / (FINE - k)) / reach
    return EVEN * even + (1.0 - EVEN) * odds
