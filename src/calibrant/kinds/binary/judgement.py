"""Are forecasts right: what a curve shows beyond noise, and what became of it."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Mask, Reals
from calibrant.metrics import CalibrationCurve
from calibrant.metrics.buckets import outside
from calibrant.report.tables import number
from calibrant.summary import Part

SPLITS: Final = "refining"
"""The rule whose grid becomes finer where it is visited."""
LEVEL: Final = 0.05
"""Probability, at most, of calling calibrated independent forecasts miscalibrated."""
FEWEST: Final = 0.05
"""Share of the rounds that must be off before forecasts are called miscalibrated."""
NEAR: Final = 0.01
"""Distances between forecast and frequency that are too small to matter, but for rare events."""
PART: Final = 0.2
"""Of the probability of the rarer outcome: what is too small to matter there."""
EXPECTED: Final = 5.0
"""Variance of the number of outcomes 1 below which no trend is judged."""
FEW: Final = 100
"""Rounds below which nothing is claimed about calibration."""
VERDICTS: Final = {
    "fine": "right already",
    "fixed": "fixed",
    "better": "better but still off",
    "worse": "worse",
    "unclear": "no better",
}
"""What is said of one group or class, by what happened to its calibration."""


def matters(said: ArrayLike, rate: ArrayLike) -> Mask:
    """Say where forecast and frequency differ by enough to matter.

    By more than 0.01, or a fifth of the rarer outcome's probability where that is less.

    Examples
    --------
    >>> matters([0.505, 0.53, 0.01], [0.5, 0.5, 0.001]).tolist()
    [False, True, True]
    """
    p, q = np.asarray(said, np.float64), np.asarray(rate, np.float64)
    rarer = np.maximum(np.minimum(p, 1.0 - p), np.minimum(q, 1.0 - q))
    return np.asarray(np.abs(p - q) > np.minimum(NEAR, PART * rarer))


def beyond_noise(curve: CalibrationCurve) -> Mask:
    """Say of each bucket whether noise alone hardly explains its distance.

    The exact binomial limits of all k used buckets hold at once with probability 97.5 %:
    each is taken at ``1 - 0.025 / k``.

    Examples
    --------
    >>> from calibrant.metrics import calibration_curve
    >>> beyond_noise(calibration_curve([0.8] * 100 + [0.2], [1, 0] * 50 + [0], buckets=2)).tolist()
    [False, True]
    """
    level = LEVEL / 2.0 / max(1, int((curve.count > 0).sum()))
    return beyond(curve.mean_forecast, curve.mean_outcome, curve.count, level)


def beyond(said: ArrayLike, rate: ArrayLike, count: ArrayLike, level: float = LEVEL) -> Mask:
    """Say where forecasts are outside the exact binomial limits of frequencies."""
    n, p, q = np.asarray(count, np.float64), np.nan_to_num(said), np.nan_to_num(rate)
    return np.asarray((n > 0.0) & outside(np.rint(q * n), n, p, confidence=1.0 - level))


def trend(curve: CalibrationCurve) -> Reals:
    r"""Return how likely outcomes are by a trend over all buckets; what was said if it is noise.

    Notes
    -----
    The score test of :math:`P(y) = p + p (1 - p) (a + b (p - \bar p))` against :math:`a = b = 0`,
    at 97.5 %: forecasts too high or too low, too bold or too timid, all buckets together. It has
    Spiegelhalter's z as one direction, and finds in some hundred rounds what no bucket shows.
    It is a score test in the manner of Cox's, with the slope in the forecast, not in its log-odds.
    Nothing is found where fewer than five outcomes 1, or 0, were to be expected; the slope is left
    out where its skewness is larger than the shift's is there, since single misses of forecasts
    that are nearly sure would decide it. A trend counts where it is twice as far from what was
    said as matters in a bucket.

    References
    ----------
    Cox, Biometrika 45 (1958), 562-565; Spiegelhalter, Statistics in Medicine 5 (1986), 421-433.

    Examples
    --------
    >>> from calibrant.metrics import calibration_curve
    >>> trend(calibration_curve([0.2, 0.8] * 60, [0, 1, 1, 0] * 30, buckets=2)).round(2).tolist()
    [0.5, 0.5]
    """
    count, said = curve.count, np.nan_to_num(curve.mean_forecast)
    spare, more = said * (1.0 - said), count * (np.nan_to_num(curve.mean_outcome) - said)
    weight = count * spare
    if (total := float(weight.sum())) < EXPECTED:
        return said
    away = said - float(weight @ said) / total
    moment = max(float(weight @ away**2), 1e-12)
    shift, slope = float(more.sum()), float(more @ away)
    third = float((weight * (said**2 + (1.0 - said) ** 2)) @ np.abs(away) ** 3)
    if EXPECTED * third**2 > moment**3:  # hardly more than one outcome decides the slope
        slope = 0.0
    surprise = shift**2 / total + slope**2 / moment
    if surprise <= 2.0 * math.log(2.0 / LEVEL):  # chi-squared with two degrees of freedom
        return said
    fit = np.clip(said + spare * (shift / total + away * slope / moment), 0.0, 1.0)
    return np.where(matters(said, (said + fit) / 2.0), fit, said)


def known(curve: CalibrationCurve) -> Reals:
    """Return how likely outcomes are in each bucket, as far as more than noise says so.

    The frequency where that of the bucket itself is beyond noise, else the :func:`trend`.
    """
    return np.where(beyond_noise(curve), curve.mean_outcome, trend(curve))


def off(curve: CalibrationCurve, allowed: ArrayLike = 0.0) -> bool:
    """Say whether a twentieth of the rounds is off, beyond noise and by enough to matter.

    Buckets that hardly any round fell into do not make a forecaster miscalibrated, nor do
    distances up to ``allowed``.

    Examples
    --------
    >>> from calibrant.metrics import calibration_curve
    >>> off(calibration_curve([0.8] * 100, [1, 0] * 50))
    True
    >>> off(calibration_curve([0.8] * 10, [1, 0] * 5))
    False
    """
    said, rate = np.nan_to_num(curve.mean_forecast), known(curve)
    wrong = (np.abs(said - rate) > allowed) & matters(said, rate)
    rounds = int(curve.count[wrong].sum())
    return rounds > 0 and rounds >= FEWEST * int(curve.count.sum())


def spread(curve: CalibrationCurve) -> float:
    """Return the average distance of frequency and forecast over the curve's buckets.

    Examples
    --------
    >>> from calibrant.metrics import calibration_curve
    >>> round(spread(calibration_curve([0.8, 0.8], [1, 0])), 12)
    0.3
    """
    used = curve.count > 0
    gaps = np.abs(curve.mean_outcome - curve.mean_forecast)[used]
    rounds = int(curve.count.sum())
    return float(gaps @ curve.count[used] / rounds) if rounds else math.nan


def noise(curve: CalibrationCurve) -> float:
    """Return the :func:`spread` that chance alone leaves on average of forecasts that are right.

    Examples
    --------
    >>> from calibrant.metrics import calibration_curve
    >>> round(noise(calibration_curve([0.5] * 100, [1, 0] * 50)), 3)
    0.04
    """
    said = np.nan_to_num(curve.mean_forecast)
    each = np.sqrt(2.0 / math.pi * curve.count * said * (1.0 - said))
    return float(each.sum() / max(1, int(curve.count.sum())))


class Finding(NamedTuple):
    """What happened to calibration, the average distance before and after, and whether it is off.

    Forecasts from a grid cannot be made to come closer than half a step of it: up to there they
    count as fixed.
    """

    ending: str
    raw_gap: float
    now_gap: float
    now_off: bool


def compared(
    raw: CalibrationCurve, now: CalibrationCurve, rate: float, rule: str, resolution: int
) -> Finding:
    """Compare forecasts before and after, the latter from the grid of a rule."""
    allowed = half_step(rule, resolution, now.mean_forecast, now.count)
    before, after, was_off, is_off = spread(raw), spread(now), off(raw), off(now)
    # The distance over 20 buckets varies by about a sixth of its noise, a difference by a quarter.
    margin = min(NEAR, PART * min(rate, 1.0 - rate)) + noise(now) / 4.0
    ending = "unclear" if was_off else "fine"
    if was_off and after < before:
        ending = "better" if off(now, allowed) else "fixed"
    elif is_off and after > before + margin:
        ending = "worse"
    return Finding(ending, before, after, is_off)


def half_step(rule: str, resolution: int, said: ArrayLike, count: ArrayLike) -> Reals:
    """Return half the distance of neighbours on the grid, or at most that, around forecasts.

    On a grid that splits cells (``refining``) n draws around g leave no neighbours in use whose
    half distance is above ``(g (1 - g))**0.75 / sqrt(n)``.
    """
    g, n = np.nan_to_num(said), np.maximum(count, 1)
    if rule != SPLITS:
        return np.full(g.shape, 0.5 / float(resolution))
    return np.asarray((g * (1.0 - g)) ** 0.75 / np.sqrt(n))


def verdict(
    part: Part, raw: CalibrationCurve, now: CalibrationCurve, rule: str, resolution: int
) -> str:
    """Return what became of one group or class, by the rule of the headline."""
    if part.rounds < FEW:
        return "too few rounds"
    if part.c2_forecast > number(part.bound):
        return "bound exceeded"
    return VERDICTS[compared(raw, now, part.rate, rule, resolution).ending]
