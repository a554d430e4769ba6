"""Rounds grouped by the exact value that was forecast.

Everything the exact metrics need of a run is, for each distinct forecast, how often
it was announced and how many of those outcomes were 1.  :class:`Cells` holds these
sums.  Each metric over exact values takes either two arrays (forecasts, outcomes) or
one ``Cells``, so the same function serves a batch, a stream and a mixture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals
from calibrant.errors import InvalidInput, InvalidType

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums of a run, one entry per forecast value.

    Parameters
    ----------
    values : ndarray
        The forecasts, in ascending order.
    counts : ndarray
        How often each was announced (the total weight, for mixtures); above 0.
    ones : ndarray
        How many of these outcomes were 1 (their weight, for mixtures).

    Examples
    --------
    >>> cells = as_cells([0.5, 0.2, 0.5, 0.5], [1, 0, 1, 0])
    >>> cells.values.tolist(), cells.counts.tolist(), cells.ones.tolist()
    ([0.2, 0.5], [1.0, 3.0], [0.0, 2.0])
    """

    values: Reals
    counts: Reals
    ones: Reals

    def __post_init__(self) -> None:
        check.same_length(values=self.values, counts=self.counts, ones=self.ones)
        if np.any(np.diff(self.values) < 0.0):
            raise InvalidInput(f"values must be in ascending order, got {self.values!r}")
        if np.any((self.counts <= 0.0) | (self.ones < 0.0) | (self.ones > self.counts)):
            raise InvalidInput(f"ones must be from 0 to positive counts, got {self.ones!r}")

    @property
    def rounds(self) -> float:
        """The number of rounds."""
        return float(self.counts.sum())

    @property
    def zeros(self) -> Reals:
        """How many outcomes were 0, per value."""
        return self.counts - self.ones

    @property
    def rho(self) -> Reals:
        """The frequency of outcome 1, per value."""
        return self.ones / self.counts

    @property
    def excess(self) -> Reals:
        """The sum of outcome minus forecast, per value."""
        return self.ones - self.values * self.counts

    def average(self, total: SupportsFloat) -> float:
        """Return ``total`` per round, or nan if there were no rounds."""
        rounds = self.rounds
        return float(total) / rounds if rounds else math.nan


def as_cells(forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None) -> Cells:
    """Group rounds by forecast; ``Cells`` pass through.

    Parameters
    ----------
    forecasts : array_like or Cells
        Numbers in [0, 1]; 0.0 and -0.0 are one value.
    outcomes : array_like, optional
        0 or 1 for each forecast; left out beside ``Cells``.
    """
    if isinstance(forecasts, Cells):
        if outcomes is not None:
            raise InvalidType(f"outcomes must be left out beside Cells, got {outcomes!r}")
        return forecasts
    if outcomes is None:
        raise InvalidType("outcomes must be an array beside an array of forecasts, got None")
    return _group(*checked_rounds(forecasts, outcomes))


def checked_rounds(forecasts: ArrayLike, outcomes: ArrayLike) -> tuple[Reals, Bits]:
    """Return both arrays, checked and of one length."""
    values = check.probabilities(forecasts, "forecasts")
    binary = check.outcomes(outcomes)
    check.same_length(forecasts=values, outcomes=binary)
    return values, binary


def mixture_cells(values: ArrayLike, weights: ArrayLike, outcomes: ArrayLike) -> Cells:
    """Group announced mixtures by value: each round adds its weights, not a draw.

    Parameters
    ----------
    values : array_like
        The grid, shape ``(cells,)``, or the support of each round, shape
        ``(rounds, support)``.
    weights : array_like
        The probability of each value in each round, shape ``(rounds, support)``.
    outcomes : array_like
        0 or 1 for each round.

    Notes
    -----
    The sums are the expectations of the realised ones over the draws, given the
    mixtures; the "pseudo" quantities of Abernethy, Bartlett and Hazan (2011).

    Examples
    --------
    >>> cells = mixture_cells([0.0, 0.5, 1.0], [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]], [1, 0])
    >>> cells.values.tolist(), cells.counts.tolist(), cells.ones.tolist()
    ([0.0, 0.5], [0.5, 1.5], [0.5, 0.5])
    """
    table = checked_weights(weights)
    binary = check.outcomes(outcomes)
    check.same_length(weights=table, outcomes=binary)
    support = _support(values, table.shape)
    happened = np.repeat(binary, table.shape[1])
    played = table.ravel() > 0.0
    return _group_weighted(support[played], table.ravel()[played], happened[played])


def checked_weights(weights: ArrayLike) -> Reals:
    """Return ``weights`` as a table whose rows are distributions, to within 1e-9."""
    table = np.asarray(weights, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidInput(f"weights must be of shape (rounds, support), got {table.shape}")
    total = table.sum(axis=1)
    bad = ~((table >= 0.0).all(axis=1) & (np.abs(total - 1.0) <= _SUM_TOLERANCE))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(f"weights[{row}] must be a distribution, got {table[row].tolist()}")
    return table


def _support(values: ArrayLike, shape: tuple[Any, ...]) -> Reals:
    grid = np.asarray(values, dtype=np.float64)
    if grid.shape != shape and grid.shape != shape[1:]:
        raise InvalidInput(f"values must be of shape {shape[1:]} or {shape}, got {grid.shape}")
    return check.probabilities(np.broadcast_to(grid, shape).ravel(), "values")


def _group(values: Reals, outcomes: Bits) -> Cells:
    # Two sorts of plain values are several times faster than one argsort.
    event = outcomes == 1
    at_one, ones = np.unique(values[event], return_counts=True)
    at_zero, zeros = np.unique(values[~event], return_counts=True)
    distinct = np.union1d(at_zero, at_one)
    table = np.zeros((2, len(distinct)), dtype=np.float64)
    table[0, np.searchsorted(distinct, at_zero)] = zeros
    table[1, np.searchsorted(distinct, at_one)] = ones
    return Cells(distinct + 0.0, table[0] + table[1], table[1])


def _group_weighted(values: Reals, weights: Reals, outcomes: Bits) -> Cells:
    distinct, inverse = np.unique(values, return_inverse=True)
    size = len(distinct)
    keys = 2 * inverse + outcomes
    table = np.bincount(keys, weights=weights, minlength=2 * size).reshape(size, 2)
    zeros, ones = table.T.astype(np.float64)
    return Cells(distinct + 0.0, zeros + ones, ones)
