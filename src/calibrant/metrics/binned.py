"""Binned calibration error (ECE): C^p after forecasts are merged into buckets."""

from __future__ import annotations

from numpy.typing import ArrayLike

from calibrant.errors import InvalidInput
from calibrant.metrics.buckets import Buckets, as_buckets
from calibrant.metrics.calibration import calibration_error


def binned_calibration_error(
    forecasts: ArrayLike,
    outcomes: ArrayLike,
    *,
    buckets: int = 10,
    strategy: str = "width",
    power: float = 1.0,
    debiased: bool = False,
) -> float:
    """Return the distance of mean outcome and mean forecast, averaged over buckets.

    Parameters
    ----------
    forecasts, outcomes, buckets, strategy
        As in :func:`~calibrant.metrics.as_buckets`.
    power : float
        The distance is taken to this power, at least 1; no root is taken.
    debiased : bool
        Take off an estimate of what sampling noise adds; needs ``power=2``.

    Returns
    -------
    float
        nan without rounds.  The debiased error may be negative.

    Notes
    -----
    Not C^p: within a bucket errors of opposite sign cancel, so the binned error is at
    most C^p over exact values.  The squared gap of a bucket exceeds the true one by
    ``q(1-q)/n`` on average, q its probability; ``ybar (1-ybar)/(n-1)`` estimates that
    without bias where outcomes in a bucket are independent with one probability (with
    unequal ones it takes off too much).  Buckets with a single round contribute 0 then.

    References
    ----------
    Kumar, Liang and Ma, "Verified uncertainty calibration" (2019).

    Examples
    --------
    >>> binned_calibration_error([0.0, 0.25, 0.75, 1.0], [0, 0, 1, 1], buckets=2)
    0.125
    >>> binned_calibration_error([0.5] * 4, [0, 1, 0, 1], power=2, debiased=True)
    -0.08333333333333333
    """
    grouped = as_buckets(forecasts, outcomes, buckets=buckets, strategy=strategy)
    return error_of_buckets(grouped, power=power, debiased=debiased)


def error_of_buckets(buckets: Buckets, *, power: float = 1.0, debiased: bool = False) -> float:
    """Return the binned calibration error of sums that are there already."""
    if not debiased:
        return calibration_error(buckets.cells, power=power)
    if power != 2:
        raise InvalidInput(f"power must be 2 for the debiased error, got {power!r}")
    return _debiased(buckets)


def _debiased(buckets: Buckets) -> float:
    cells = buckets.cells
    several = cells.counts > 1.0
    n, rho = cells.counts[several], cells.rho[several]
    gaps = (rho - cells.values[several]) ** 2 - rho * (1.0 - rho) / (n - 1.0)
    return cells.average(gaps @ n)
