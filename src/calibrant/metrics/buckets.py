"""Forecasts in buckets: errors, curves with bands, and windows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.place import buckets_of
from calibrant.errors import InvalidInput
from calibrant.metrics.calibration import calibration_error, checked_power
from calibrant.metrics.cells import Cells, checked_rounds
from calibrant.metrics.tally import Tally

# A log-concave density has at most e**(1-t) of its mass beyond t standard deviations,
# so what is cut off at 40 is below 1e-16.  64 nodes integrate the rest to 1e-12.
_REACH = 40.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_HALVINGS = 64
_ALMOST_MINUS_ONE = float(np.nextafter(-1.0, 0.0))


def checked_confidence(confidence: Any) -> float:
    """Return ``confidence`` as a float strictly between 0 and 1."""
    rule = "a number strictly between 0 and 1"
    low, high = float(np.nextafter(0.0, 1.0)), float(np.nextafter(1.0, 0.0))
    return check.real(confidence, "confidence", low=low, high=high, rule=rule)


def binomial_band(
    ones: ArrayLike, counts: ArrayLike, *, confidence: float = 0.95
) -> tuple[Reals, Reals]:
    """Return lower and upper limits for the probability behind each frequency.

    Parameters
    ----------
    ones : array_like
        How many of the outcomes were 1.
    counts : array_like
        How many outcomes there were; 0 gives the band [0, 1].
    confidence : float
        The probability, at least, with which a band covers the truth.

    Notes
    -----
    The coverage holds for one band whose outcomes are independent with one common
    probability; it is not simultaneous over buckets.  Limits agree with
    ``scipy.stats.beta.ppf`` to 1e-9 and better for counts up to 10**9.

    References
    ----------
    Clopper and Pearson, Biometrika 26 (1934), 404-413.

    Examples
    --------
    >>> low, high = binomial_band([0, 7], [10, 10])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.3475], [0.3085, 0.9333])
    """
    tail = (1.0 - checked_confidence(confidence)) / 2.0
    k, n = (np.asarray(a, dtype=np.float64) for a in (ones, counts))
    if k.ndim != 1 or k.shape != n.shape or not ((k >= 0) & (k <= n)).all():
        raise InvalidInput(f"ones must be a flat array from 0 to counts, got {ones!r}")
    return _lower_limit(tail, k, n), 1.0 - _lower_limit(tail, n - k, n)


def outside(ones: Reals, counts: Reals, said: Reals, *, confidence: float) -> Mask:
    """Say where probabilities lie outside the limits of :func:`binomial_band`, without these.

    >>> ones, counts, said = np.array([7.0, 7.0]), np.array([10.0, 10.0]), np.array([0.34, 0.4])
    >>> outside(ones, counts, said, confidence=0.95).tolist()
    [True, False]
    """
    tail = (1.0 - confidence) / 2.0
    low, high = (
        _is_below(tail, ones, counts, said),
        _is_below(tail, counts - ones, counts, 1.0 - said),
    )
    return np.asarray(low | high)


def _is_below(tail: float, k: Reals, n: Reals, x: Reals) -> Mask:
    """Say where x is below the lower limit: if ``P(Beta(k, n - k + 1) <= x)`` is below the tail."""
    a, b = np.maximum(k, 1.0), n - k + 1.0
    start, end = _support(a, b)
    return np.asarray((k > 0) & _has_less(tail, start, np.clip(x, start, end), end, a, b))


def _lower_limit(tail: float, k: Reals, n: Reals) -> Reals:
    limit = np.zeros_like(k)
    some = k > 0
    limit[some] = _beta_quantile(tail, k[some], n[some] - k[some] + 1.0)
    return limit


def _beta_quantile(level: float, a: Reals, b: Reals) -> Reals:
    """Solve ``P(Beta(a, b) <= x) = level`` by bisection, for a, b of at least 1."""
    start, end = low, high = _support(a, b)
    for _ in range(_HALVINGS):
        x = (low + high) / 2.0
        below = _has_less(level, start, x, end, a, b)
        low, high = np.where(below, x, low), np.where(below, high, x)
    return (low + high) / 2.0


def _support(a: Reals, b: Reals) -> tuple[Reals, Reals]:
    """Return the ends of the interval that has all of a Beta law that is seen in a float."""
    mean = a / (a + b)
    reach = _REACH * np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    return np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)


def _has_less(level: float, start: Reals, x: Reals, end: Reals, a: Reals, b: Reals) -> Mask:
    """Say where less than ``level`` of a Beta law lies up to x."""
    return np.asarray(_mass(start, x, a, b) * (1.0 - level) < _mass(x, end, a, b) * level)


def _mass(start: Reals, end: Reals, a: Reals, b: Reals) -> Reals:
    """Integrate the Beta density, scaled to 1 at its mean, by Gauss and Legendre.

    Only ratios of masses are used, so the scale is free; taking it at the mean
    keeps the logarithm small where the mass is, whatever a and b.
    """
    mean = (a / (a + b))[:, None]
    half = (end - start) / 2.0
    away = ((start + end) / 2.0)[:, None] + half[:, None] * _NODES - mean
    log_density = (a[:, None] - 1.0) * _log1p(away / mean)
    log_density += (b[:, None] - 1.0) * _log1p(-away / (1.0 - mean))
    return np.asarray(half * (np.exp(log_density) @ _WEIGHTS))


def _log1p(x: Reals) -> Reals:
    return np.log1p(np.maximum(x, _ALMOST_MINUS_ONE))


@dataclass(frozen=True, eq=False)
class Buckets:
    """Sums over the rounds of each bucket.

    Parameters
    ----------
    lower, upper : ndarray
        For equal width, the edges ``[lower, upper)``, the last bucket closed; for
        equal mass, the smallest and the largest forecast in the bucket.
    count : ndarray
        Rounds.
    ones : ndarray
        Outcomes that were 1.
    forecast_sum, square_sum, product_sum : ndarray
        Sums of the forecast, of its square, and of forecast times outcome.
    """

    lower: Reals
    upper: Reals
    count: Words
    ones: Words
    forecast_sum: Reals
    square_sum: Reals
    product_sum: Reals

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return int(self.count.sum())

    @property
    def cells(self) -> Cells:
        """Each bucket that is not empty as one cell at its mean forecast."""
        used = self.count > 0
        count, ones = (a[used].astype(np.float64) for a in (self.count, self.ones))
        return Cells(_means(self.forecast_sum[used], count), count, ones)


def as_buckets(
    forecasts: ArrayLike, outcomes: ArrayLike, *, buckets: int = 10, strategy: str = "width"
) -> Buckets:
    """Group rounds into buckets.

    Parameters
    ----------
    forecasts : array_like
        Numbers in [0, 1].
    outcomes : array_like
        0 or 1 for each forecast.
    buckets : int
        How many buckets.
    strategy : {"width", "mass"}
        ``"width"``: ``[j/M, (j+1)/M)``, the last one closed.  ``"mass"``: each bucket
        has about T/M rounds; equal forecasts stay together, in the bucket that holds
        the middle of their ranks, and buckets left empty are dropped.

    Examples
    --------
    >>> as_buckets([0.0, 0.29, 0.3, 1.0], [0, 1, 0, 1], buckets=10).count.tolist()
    [1, 0, 1, 1, 0, 0, 0, 0, 0, 1]
    >>> as_buckets([0.1, 0.2, 0.3, 0.9], [0, 1, 0, 1], buckets=2, strategy="mass").upper.tolist()
    [0.2, 0.9]
    """
    number = check.whole(buckets, "buckets", low=1)
    by_mass = check.choice(strategy, "strategy", ("width", "mass")) == "mass"
    values, binary = checked_rounds(forecasts, outcomes)
    index = _mass_index(values, number) if by_mass else buckets_of(values, number)
    tally = Tally(number, 2)
    tally.add_many(index, values, binary)
    return _equal_mass(tally, index, values) if by_mass else equal_width(tally)


def equal_width(tally: Tally) -> Buckets:
    """Return the buckets of a tally over equal widths."""
    edges = np.arange(len(tally.table()) + 1) / len(tally.table())
    return _buckets(tally, edges[:-1], edges[1:])


def tally_cells(tally: Tally) -> Cells:
    """Return each bucket that is not empty as one cell at its mean forecast."""
    table = tally.table()
    used = table.any(axis=1)
    count, ones = table.sum(axis=1)[used].astype(np.float64), table[used, 1].astype(np.float64)
    return Cells(_means(tally.real_sums(0).sum(axis=1)[used], count), count, ones)


def _means(sums: Reals, count: Reals) -> Reals:
    # Neighbouring means may be equal to the last bit; rounding must not swap them.
    return np.maximum.accumulate(sums / count)


def _buckets(tally: Tally, lower: Reals, upper: Reals) -> Buckets:
    table, first, second = tally.table(), tally.real_sums(0), tally.real_sums(1)
    sums = (first.sum(axis=1), second.sum(axis=1), first[:, 1])
    return Buckets(lower, upper, table.sum(axis=1), table[:, 1], *sums)


def _mass_index(values: Reals, buckets: int) -> Words:
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(ranks * buckets // (2 * max(len(values), 1)), dtype=np.int64)


def _equal_mass(tally: Tally, index: Words, values: Reals) -> Buckets:
    size = len(tally.table())
    lower, upper = np.ones(size), np.zeros(size)
    np.minimum.at(lower, index, values)
    np.maximum.at(upper, index, values)
    full = _buckets(tally, lower, upper)
    used = full.count > 0
    return Buckets(*(getattr(full, name)[used] for name in Buckets.__dataclass_fields__))


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


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """A calibration curve, one entry per bucket: numbers only, ready to be drawn.

    Parameters
    ----------
    lower, upper : ndarray
        The bucket's edges (equal width) or extreme forecasts (equal mass).
    count : ndarray
        Rounds.
    mean_forecast, mean_outcome : ndarray
        nan in empty buckets.
    band_low, band_high : ndarray
        Exact binomial confidence limits of the mean outcome.
    confidence : float
        The level of the bands.
    """

    lower: Reals
    upper: Reals
    count: Words
    mean_forecast: Reals
    mean_outcome: Reals
    band_low: Reals
    band_high: Reals
    confidence: float


def calibration_curve(
    forecasts: ArrayLike,
    outcomes: ArrayLike,
    *,
    buckets: int = 10,
    strategy: str = "width",
    confidence: float = 0.95,
) -> CalibrationCurve:
    """Return mean forecast, mean outcome and its confidence band for each bucket.

    Parameters
    ----------
    forecasts, outcomes, buckets, strategy
        As in :func:`~calibrant.metrics.as_buckets`.
    confidence : float
        Of each band by itself, strictly between 0 and 1.

    Notes
    -----
    A band covers the bucket's mean probability with at least this confidence if
    outcomes are independent with equal probabilities within the bucket.  Against an
    adversary, or under drift, read it as a yardstick for noise only.

    Examples
    --------
    >>> curve = calibration_curve([0.1, 0.2, 0.8, 1.0], [0, 1, 1, 1], buckets=2)
    >>> curve.count.tolist(), curve.mean_outcome.tolist()
    ([2, 2], [0.5, 1.0])
    >>> curve.band_low.round(3).tolist(), curve.band_high.round(3).tolist()
    ([0.013, 0.158], [0.987, 1.0])
    """
    grouped = as_buckets(forecasts, outcomes, buckets=buckets, strategy=strategy)
    return curve_of_buckets(grouped, confidence=confidence)


def curve_of_buckets(buckets: Buckets, *, confidence: float = 0.95) -> CalibrationCurve:
    """Return the calibration curve of sums that are there already."""
    low, high = binomial_band(buckets.ones, buckets.count, confidence=confidence)
    divisor = np.where(buckets.count > 0, buckets.count, np.nan)
    means = buckets.forecast_sum / divisor, buckets.ones / divisor
    ends = buckets.lower, buckets.upper
    return CalibrationCurve(*ends, buckets.count, *means, low, high, float(confidence))


@dataclass(frozen=True, eq=False)
class WindowedError:
    """The binned calibration error of each complete block of ``window`` rounds.

    Parameters
    ----------
    window : int
        Rounds per block.
    errors : ndarray
        One error per complete block, in order.
    """

    window: int
    errors: Reals

    @property
    def worst(self) -> float:
        """The largest error of a block; nan if no block is complete."""
        return float(self.errors.max()) if len(self.errors) else math.nan

    @property
    def worst_block(self) -> int | None:
        """The first block with the largest error, counted from 0."""
        return int(self.errors.argmax()) if len(self.errors) else None


def windowed_calibration_error(
    forecasts: ArrayLike,
    outcomes: ArrayLike,
    *,
    window: int = 5000,
    buckets: int = 20,
    power: float = 2.0,
) -> WindowedError:
    """Return the binned calibration error of consecutive blocks of rounds.

    Parameters
    ----------
    forecasts : array_like
        Numbers in [0, 1], in the order of time.
    outcomes : array_like
        0 or 1 for each forecast.
    window : int
        Rounds per block: block b holds rounds ``b*window`` to ``(b+1)*window - 1``.
    buckets : int
        How many buckets of equal width.
    power : float
        As in :func:`~calibrant.metrics.binned_calibration_error`.

    Notes
    -----
    Rounds after the last complete block are left out, since the error of a short
    block is mostly noise.

    Examples
    --------
    >>> found = windowed_calibration_error([0.5] * 8, [0, 1, 0, 1, 1, 1, 1, 1], window=4)
    >>> found.errors.tolist(), found.worst, found.worst_block
    ([0.0, 0.25], 0.25, 1)
    """
    length = check.whole(window, "window", low=1)
    number = check.whole(buckets, "buckets", low=1)
    exponent = checked_power(power)
    values, binary = checked_rounds(forecasts, outcomes)
    index = buckets_of(values, number)
    errors = []
    for start in range(0, len(values) - length + 1, length):
        block, tally = slice(start, start + length), Tally(number, 1)
        tally.add_many(index[block], values[block], binary[block])
        errors.append(calibration_error(tally_cells(tally), power=exponent))
    return WindowedError(length, np.array(errors))
