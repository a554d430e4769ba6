"""Calibration errors over exact values, and how well forecasts rank.

Kakade and Foster (2004); Blasiok, Gopalan, Hu and Nakkiran (2023).
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput
from calibrant.metrics.cells import Cells, as_cells, mixture_cells


def checked_power(power: Any) -> float:
    """Return ``power`` as a finite float of at least 1."""
    return check.real(power, "power", low=1.0, rule="a finite number of at least 1")


def calibration_error(
    forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None, *, power: float = 1.0
) -> float:
    """Return ``C^p``: how far outcomes were from what was forecast, value by value.

    For each distinct forecast v, take the distance between v and the frequency of
    outcome 1 when v was forecast, to the given power; average over rounds.  No root
    is taken at the end.

    Parameters
    ----------
    forecasts, outcomes
        As in :func:`~calibrant.metrics.as_cells`.
    power : float
        p, at least 1.

    Returns
    -------
    float
        ``sum_v n_v |rho_v - v|**p / T``; nan without rounds.

    Notes
    -----
    Meant for forecasts from a grid.  On a continuum each value is a cell of its own
    and C^1 is near the mean absolute error, however good the forecasts are; use
    :func:`~calibrant.metrics.smooth_calibration_error` or
    :func:`~calibrant.metrics.atb` there.

    References
    ----------
    Kuleshov and Ermon (2017), definition of ``C_T^p``.

    Examples
    --------
    >>> calibration_error([0.3, 0.3, 0.3, 0.3], [1, 0, 1, 0])
    0.2
    >>> round(calibration_error([0.3, 0.3, 0.3, 0.3], [1, 0, 1, 0], power=2), 12)
    0.04
    """
    cells = as_cells(forecasts, outcomes)
    gaps = np.abs(cells.rho - cells.values) ** checked_power(power)
    return cells.average(gaps @ cells.counts)


def mixture_calibration_error(
    values: ArrayLike, weights: ArrayLike, outcomes: ArrayLike, *, power: float = 1.0
) -> float:
    """Return ``C^p`` of announced mixtures, each value counted with its probability.

    Parameters
    ----------
    values : array_like
        The grid, shape ``(cells,)``, or each round's support, ``(rounds, support)``.
    weights : array_like
        Probabilities, shape ``(rounds, support)``.
    outcomes : array_like
        0 or 1 for each round.
    power : float
        p, at least 1.

    Notes
    -----
    Counts and sums of outcomes are replaced by their expectations over the draws.
    Since ``n |s/n|**p`` is convex, the result never exceeds the expectation of the
    realised C^p as long as neither mixtures nor outcomes depend on the draws.

    Examples
    --------
    >>> mixture_calibration_error([0.0, 1.0], [[0.5, 0.5], [0.5, 0.5]], [0, 1])
    0.5
    """
    return calibration_error(mixture_cells(values, weights, outcomes), power=power)


def rho(value: float, forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None) -> float:
    """Return how often the outcome was 1 when ``value`` was forecast.

    nan if it never was.  ``Cells.rho`` has the frequency for all values at once.

    Examples
    --------
    >>> rho(0.3, [0.3, 0.3, 0.5], [1, 0, 1])
    0.5
    """
    cells = as_cells(forecasts, outcomes)
    found = cells.values == check.probability(value, "value")
    return float(cells.rho[found][0]) if found.any() else math.nan


def atb(
    forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None, *, power: int = 2
) -> float:
    """Return the calibration error of two bins, averaged over where they meet.

    Split the forecasts at a threshold q, sum forecast minus outcome on either side,
    add the squares (or the absolute values) of the two sums per round, and average
    over q uniform in [0, 1].

    Parameters
    ----------
    forecasts, outcomes
        As in :func:`~calibrant.metrics.as_cells`.
    power : {2, 1}
        2 for squares, which makes the metric truthful; 1 for absolute values, which
        makes it comparable with the smooth calibration error.

    Returns
    -------
    float
        A number from 0 to 1; nan without rounds.

    Notes
    -----
    Between two neighbouring values the split does not change, so the average is a
    finite sum over the gaps between sorted values.  With ``power=1``,
    ``2/3 smCE <= ATB <= 6 smCE``.

    References
    ----------
    Hartline, Hu and Wu (2026).

    Examples
    --------
    >>> round(atb([0.3] * 10, [0, 1] * 5), 12)
    0.04
    >>> round(atb([0.3] * 10, [0, 1] * 5, power=1), 12)
    0.2
    """
    if power not in (1, 2):
        raise InvalidInput(f"power must be 1 or 2, got {power!r}")
    cells = as_cells(forecasts, outcomes)
    below = np.concatenate(([0.0], np.cumsum(-cells.excess)))
    gaps = np.diff(cells.values, prepend=0.0, append=1.0)
    sides = np.abs(below) ** power + np.abs(below[-1] - below) ** power
    return cells.average(cells.average(gaps @ sides) if power == 2 else gaps @ sides)


def v_calibration(forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None) -> float:
    """Return the largest regret under V-shaped losses, summed over rounds.

    The loss of threshold v is ``-sign(p - v) * (y - v)``; the regret compares with the
    best constant forecast in hindsight.  The supremum over v is not divided by the
    number of rounds, and limits from either side count.
    Takes forecasts and outcomes as :func:`~calibrant.metrics.as_cells` does.

    Returns
    -------
    float
        At least 0; 0 without rounds.

    Notes
    -----
    With b the mean outcome, a threshold below b costs ``2 sum (y - v)`` over the
    rounds with forecasts below v, which falls in v between two forecasts: only limits
    from above at forecasts matter, and the mirror image above b.  On the wrong side of
    b either sum is below the other one, so neither need be left out there.  Twice the
    result bounds the regret under every proper loss with values in [-1, 1]
    (U-calibration).

    References
    ----------
    Kleinberg, Paes Leme, Schneider and Teng (2023).

    Examples
    --------
    >>> round(v_calibration([0.3] * 10, [0, 1] * 5), 12)
    4.0
    >>> v_calibration([0.5] * 10, [0, 1] * 5)
    0.0
    """
    cells = as_cells(forecasts, outcomes)
    v = cells.values
    from_below = np.cumsum(cells.ones) - v * np.cumsum(cells.counts)
    from_above = v * _suffix_sums(cells.counts) - _suffix_sums(cells.ones)
    return 2.0 * float(np.concatenate(([0.0], from_below, from_above)).max())


def _suffix_sums(array: Reals) -> Reals:
    return np.cumsum(array[::-1])[::-1]


Heap = list[tuple[float, int]]


def smooth_calibration_error(
    forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None
) -> float:
    """Return the largest average of ``w(forecast) * (outcome - forecast)``.

    The supremum runs over all functions w on [0, 1] with values in [-1, 1] and slope
    at most 1: what a bettor could gain per round whose stake depends smoothly on the
    forecast.  Unlike C^1 it changes little when forecasts change little.
    Takes forecasts and outcomes as :func:`~calibrant.metrics.as_cells` does.

    Returns
    -------
    float
        A number from 0 to 1, at most C^1; nan without rounds.

    Notes
    -----
    Let ``F(w)`` be the best gain over the first j values with the j-th stake equal to
    w.  It is concave and piecewise linear on [-1, 1], that is, a set of segments
    sorted by slope, of total length 2.  Going on to a value that lies g further
    inserts a level segment of length 2g and cuts g off either end; adding the next
    excess e to the slopes is a change of origin.  A double-ended queue keeps the
    segments, each of which is inserted and removed once.

    Examples
    --------
    >>> round(smooth_calibration_error([0.3] * 10, [0, 1] * 5), 12)
    0.2
    >>> round(smooth_calibration_error([0.49, 0.51] * 3, [0, 1] * 3), 12)
    0.0049
    """
    cells = as_cells(forecasts, outcomes)
    return cells.average(_largest_gain(cells.values, cells.excess))


def _largest_gain(positions: Reals, excess: Reals) -> float:
    """Maximise ``sum w_j e_j`` over ``|w_j| <= 1``, ``|w_{j+1} - w_j| <= v_{j+1} - v_j``."""
    segments = _Segments()
    gaps = np.diff(positions, prepend=positions[:1])
    for gap, step in zip(gaps.tolist(), excess.tolist(), strict=True):
        segments.widen(gap)
        segments.tilt(step)
    return segments.top()


class _Segments:
    """A concave function on [-1, 1] as linear segments, kept by slope.

    ``origin`` is the running sum of all tilts.  A segment remembers the origin at its
    birth, when it was level; its slope now is the difference, so the steepest segment
    (the leftmost) is the one born at the lowest origin.
    """

    def __init__(self) -> None:
        self.origin = 0.0
        self.left_end = 0.0
        self.lengths = [2.0]
        self.steepest: Heap = [(0.0, 0)]
        self.flattest: Heap = [(-0.0, 0)]

    def widen(self, gap: float) -> None:
        """Replace F(w) by its maximum within ``gap`` of w."""
        heappush(self.steepest, (self.origin, len(self.lengths)))
        heappush(self.flattest, (-self.origin, len(self.lengths)))
        self.lengths.append(2.0 * gap)
        self.left_end += self._cut(self.steepest, gap)
        self._cut(self.flattest, gap)

    def tilt(self, step: float) -> None:
        """Add ``step * w`` to F(w)."""
        self.origin += step
        self.left_end -= step

    def top(self) -> float:
        """Return the maximum of F."""
        slopes = ((self.origin - birth, self.lengths[index]) for birth, index in self.steepest)
        return self.left_end + sum(max(slope, 0.0) * length for slope, length in slopes)

    def _cut(self, heap: Heap, amount: float) -> float:
        """Cut ``amount`` off one end; return what F gains from there (left end only)."""
        gained = 0.0
        while amount > 0.0:
            key, index = heap[0]
            cut = min(self.lengths[index], amount)
            self.lengths[index] -= cut
            amount -= cut
            gained += (self.origin - key) * cut
            if self.lengths[index] == 0.0:
                heappop(heap)
        return gained


def auc(forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None) -> float:
    """Return the chance that a round with outcome 1 has the higher forecast.

    One round with outcome 1 and one with outcome 0 are drawn; equal forecasts count
    one half.  This is the area under the ROC curve.
    Takes forecasts and outcomes as :func:`~calibrant.metrics.as_cells` does.

    Returns
    -------
    float
        A number from 0 to 1; nan unless both outcomes occurred.

    Examples
    --------
    >>> auc([0.1, 0.4, 0.4, 0.9], [0, 0, 1, 1])
    0.875
    """
    cells = as_cells(forecasts, outcomes)
    zeros, ones = cells.zeros, cells.ones
    pairs = float(zeros.sum() * ones.sum())
    halves = ones @ (2.0 * np.cumsum(zeros) - zeros)
    return float(halves / 2.0) / pairs if pairs else math.nan
