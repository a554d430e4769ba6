"""What the numbers allow to be said, and the run in one sentence, also in awkward cases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Mask
from calibrant.metrics import CalibrationCurve, binomial_band
from calibrant.report.tables import number
from calibrant.summary import BucketRow, Headline, Summary

LEVEL: Final = 0.05
"""Probability, at most, of calling calibrated independent forecasts miscalibrated."""
FEWEST: Final = 0.05
"""Share of the rounds that must be off before forecasts are called miscalibrated."""
NEAR: Final = 0.01
"""Distances between forecast and frequency that are too small to matter, but for rare events."""
PART: Final = 0.2
"""Of the probability of the rarer outcome: what is too small to matter there."""
SLIGHT: Final = 0.005
"""Differences of Brier scores that are too small to matter, but for small scores."""
SHARE: Final = 0.025
"""Of the Brier score: what is too small to matter there."""


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

    The exact binomial limits of all k used buckets hold at once with probability 95 %:
    each is taken at ``1 - 0.05 / k``.

    Examples
    --------
    >>> from calibrant.metrics import calibration_curve
    >>> beyond_noise(calibration_curve([0.8] * 100 + [0.2], [1, 0] * 50 + [0], buckets=2)).tolist()
    [False, True]
    """
    used = curve.count > 0
    ones = np.rint(np.where(used, curve.mean_outcome, 0.0) * curve.count)
    level = LEVEL / max(1, int(used.sum()))
    low, high = binomial_band(ones, curve.count, confidence=1.0 - level)
    return np.asarray(used & ((curve.mean_forecast < low) | (curve.mean_forecast > high)))


def off(curve: CalibrationCurve, allowed: float = 0.0) -> bool:
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
    far = np.abs(curve.mean_forecast - curve.mean_outcome) > allowed
    wrong = far & beyond_noise(curve) & matters(curve.mean_forecast, curve.mean_outcome)
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


class Finding(NamedTuple):
    """What happened to calibration, the average distance before and after, and whether it is off.

    Forecasts from a grid cannot be made to come closer than half a step of it: up to there they
    count as fixed.
    """

    ending: str
    raw_gap: float
    now_gap: float
    now_off: bool


def calibration(summary: Summary) -> Finding:
    """Measure calibration before and after in the same equal buckets."""
    raw, now, rate = summary.curves["raw"], summary.curves["forecast"], number(summary["base_rate"])
    before, after, was_off, is_off = spread(raw), spread(now), off(raw), off(now)
    margin = min(NEAR, PART * min(rate, 1.0 - rate))
    ending = "unclear" if was_off else "fine"
    if was_off and after < before:
        ending = "better" if off(now, half_step(summary)) else "fixed"
    elif is_off and after > before + margin:
        ending = "worse"
    return Finding(ending, before, after, is_off)


def half_step(summary: Summary) -> float:
    """Return half the distance of neighbours on the grid of forecasts."""
    return 0.5 / float(summary["resolution"])


def accuracy(summary: Summary) -> str:
    """Say what happened to the Brier score, by its interval.

    ``unknown`` without an interval; ``same`` if every plausible change is too small to
    matter; ``improved`` or ``worse`` if the interval leaves 0 out, ``slightly`` so if it
    hardly matters; else ``unclear``.
    """
    told = summary["regret_brier"]
    value, low, high = (number(told[key]) for key in ("value", "low", "high"))
    if math.isnan(low) or math.isnan(high):
        return "unknown"
    slight = min(SLIGHT, SHARE * number(summary["raw"]["brier"]))
    if max(-low, high) <= slight and (low <= 0.0 <= high or abs(value) <= slight / 5.0):
        return "same"
    if low <= 0.0 <= high:
        return "unclear"
    if abs(value) <= slight:
        return "slightly improved" if high < 0.0 else "slightly worse"
    return "improved" if high < 0.0 else "worse"


WIDE: Final = 0.1
"""Half of a band so wide that the frequency inside says little."""
THIN: Final = 0.005
"""Half of a band so narrow that a third digit is known."""
FEW: Final = 100
"""Rounds below which nothing is claimed about calibration."""
MOST_DIGITS: Final = 4
SMALL_BRIER: Final = 0.01
"""A score below which three digits show little."""

SMALL_LOG: Final = 0.1
"""A log loss below which three digits show little."""
LITTLE: Final = 1e-3
"""A relative change of the log loss that is too small to name."""

ACCURACY: Final = {
    "same": "accuracy unchanged: ",
    "improved": "accuracy improved: ",
    "slightly improved": "accuracy improved slightly: ",
    "worse": "accuracy got worse: ",
    "slightly worse": "accuracy got slightly worse: ",
    "unclear": "no clear change in accuracy: ",
    "unknown": "",
}


def headline(summary: Summary) -> str:
    """Tell in one sentence what forecasts meant, what they mean now, and what it cost.

    Notes
    -----
    Says "0.8 meant 0.62" of the average forecast and the frequency of outcome 1 in one of 20
    equal intervals.  ``±`` is the larger half of the exact binomial 95 % band there; claims
    that forecasts were off hold at that level over all intervals at once, if outcomes are
    independent.  Changes of accuracy are judged by the interval of the Brier scores'
    difference; accuracy is not called improved where ranking (AUC) or log loss fell: both are
    named then.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> from calibrant.summary import summarise
    >>> raw, outcomes, now = [0.9, 0.7] * 500, [1, 1, 1, 0] * 250, [1.0, 0.5] * 500
    >>> print(headline(summarise(Recalibrator(), raw, now, now, outcomes)))
    Your 0.70 meant 0.50; the forecast in its place is now 0.50 on average; accuracy improved:
    Brier 0.150 → 0.125.
    """
    rounds = int(summary["n_rounds"])
    if rounds == 0 or summary.headline is None:
        return "There are no rounds, so there is nothing to judge."
    if rounds < FEW:
        return f"{_few(summary, rounds)}; {_brier(summary)}."
    if number(summary["base_rate"]) in (0.0, 1.0):
        return f"{_one_class(summary, rounds)}; {_cost(summary)}."
    return f"{_calibration(summary, summary.headline)}; {_cost(summary)}."


def _few(summary: Summary, rounds: int) -> str:
    rate = number(summary["base_rate"])
    shown = f"{rounds} round{'s' if rounds > 1 else ''}"
    if rate in (0.0, 1.0):
        shown += f", {'all ' if rounds > 1 else ''}with outcome {rate:.0f},"
    return f"{shown} {'are' if rounds > 1 else 'is'} too few to judge calibration"


def _one_class(summary: Summary, rounds: int) -> str:
    raw, now = _average(summary.curves["raw"]), _average(summary.curves["forecast"])
    d = digits(raw, now)
    told = f"All {rounds:,} outcomes were {number(summary['base_rate']):.0f}"
    return f"{told}; your forecasts averaged {raw:.{d}f}, the recalibrated ones {now:.{d}f}"


def _average(curve: CalibrationCurve) -> float:
    used = curve.count > 0
    return float(curve.mean_forecast[used] @ curve.count[used] / curve.count.sum())


def _calibration(summary: Summary, region: Headline) -> str:
    found = calibration(summary)
    if found.ending == "fine":
        return _fine(summary, found)
    if found.ending == "worse":
        return f"Calibration got worse: {_apart(found)}"
    here = _compare(summary, region)
    if found.ending == "unclear":
        return f"{here.told}, too uncertain to call it better"
    return here.told + _remark(here, summary, elsewhere=found.ending == "better")


def _fine(summary: Summary, found: Finding) -> str:
    told = f"as far as {int(summary['n_rounds']):,} rounds can tell"
    beyond = bool(beyond_noise(summary.curves["raw"]).any())
    excuse = "too little to matter" if beyond else "within noise"
    noise = f"off by {found.raw_gap:.3f} on average, {excuse}"
    since = f"are off by {found.now_gap:.3f} now" if found.now_off else "stayed so"
    return f"Your forecasts were calibrated already, {told} ({noise}), and {since}"


def _apart(found: Finding) -> str:
    d = digits(found.raw_gap, found.now_gap)
    before, now = (f"{gap:.{max(3, d)}f}" for gap in (found.raw_gap, found.now_gap))
    return f"your forecasts were off by {before} on average, the recalibrated ones are by {now}"


@dataclass(frozen=True)
class Comparison:
    """One place before and after: in words, its distances, and whether all is well there now."""

    told: str
    before: float
    after: float
    noise: float
    well: bool


def _remark(here: Comparison, summary: Summary, *, elsewhere: bool) -> str:
    close = here.after <= half_step(summary) + min(here.noise, THIN)
    if elsewhere and (here.well or close):
        return ", though some recalibrated forecasts are still off"
    if here.well:
        return ""
    if close:
        return f", as close as a resolution of {summary['resolution']} promises"
    return ", closer but not there yet" if here.after < here.before else ", still off"


def _compare(summary: Summary, region: Headline) -> Comparison:
    half = max(region.now_means - region.now_low, region.now_high - region.now_means)
    if region.now_count > 0 and half <= WIDE and matters(region.raw_said, region.raw_meant):
        return _by_forecast(region, half)
    return _by_raw(max(summary.buckets, key=_weight))


def _weight(row: BucketRow) -> float:
    return row.count * (row.mean_raw - row.rate) ** 2 if row.count else 0.0


def _by_forecast(region: Headline, half: float) -> Comparison:
    """Compare what a forecast meant with what an equal one means now."""
    shown = (region.raw_said, region.raw_meant, region.now_said, region.now_means)
    d = max(digits(*shown), 3 if half < THIN else 2)
    before, meant, now, means = (f"{value:.{d}f}" for value in shown)
    told = f"Your {before} meant {meant}; now {now} means {means} ± {half:.{d}f}"
    return _comparison(told, shown, (region.now_low, region.now_high), half)


def _by_raw(row: BucketRow) -> Comparison:
    """Compare what was said with what is said in its place, where that is elsewhere."""
    d = digits(row.mean_raw, row.rate, row.mean_forecast)
    raw, rate, now = (f"{value:.{d}f}" for value in (row.mean_raw, row.rate, row.mean_forecast))
    low, high = binomial_band([round(row.rate * row.count)], [row.count])
    told = f"Your {raw} meant {rate}; the forecast in its place is now {now} on average"
    pairs = (row.mean_raw, row.rate, row.mean_forecast, row.rate)
    return _comparison(told, pairs, (low[0], high[0]), 0.0)


def _comparison(
    told: str, pairs: tuple[float, ...], band: tuple[float, float], noise: float
) -> Comparison:
    raw, rate, now, since = pairs
    well = not matters(now, since) or bool(band[0] <= now <= band[1])
    return Comparison(told, abs(raw - rate), abs(now - since), noise, well)


def digits(*values: float) -> int:
    """Return how many digits after the point tell ``values`` apart, near 0 and near 1 too.

    Examples
    --------
    >>> digits(0.8, 0.62), digits(0.01, 0.0013), digits(0.99996, 0.78), digits(0.9996)
    (2, 3, 3, 4)
    """
    sides = [min(value, 1.0 - value) for value in values]
    needed = max([2, *(_leading(side) for side in sides if side > 0.0)])
    apart = max(values) - min(values)
    return min(needed, MOST_DIGITS, 1 + max(2, _leading(apart)) if apart else MOST_DIGITS)


def _leading(value: float) -> int:
    """Return the place after the point of the first digit that is not 0."""
    return -math.floor(math.log10(value))


def _cost(summary: Summary) -> str:
    verdict = accuracy(summary)
    if "improved" in verdict and fell(summary):
        return f"accuracy is mixed: {_brier(summary)}, {_others(summary)}"
    return ACCURACY[verdict] + _brier(summary)


def fell(summary: Summary) -> bool:
    """Say whether ranking or log loss got worse, whatever happened to the Brier score.

    Ranking by more than 0.005 of AUC, log loss by more than a thousandth.
    """
    auc, losses = summary["auc"], [number(summary[k]["log_loss"]) for k in ("raw", "forecast")]
    lost = number(auc["raw"]) - number(auc["forecast"])
    return lost > SLIGHT or losses[1] > losses[0] * (1.0 + LITTLE)


def _others(summary: Summary) -> str:
    """Tell log loss and AUC before and after."""
    raw, now = (number(summary[name]["log_loss"]) for name in ("raw", "forecast"))
    d = 3 if max(raw, now) >= SMALL_LOG else 5
    before, after = (number(summary["auc"][name]) for name in ("raw", "forecast"))
    return f"log loss {raw:.{d}f} → {now:.{d}f}, AUC {before:.3f} → {after:.3f}"


def _brier(summary: Summary) -> str:
    raw, now = (number(summary[name]["brier"]) for name in ("raw", "forecast"))
    d = 3 if max(raw, now) >= SMALL_BRIER else 5
    if accuracy(summary) not in ("same", "unclear", "unknown") and f"{raw:.{d}f}" == f"{now:.{d}f}":
        d += 2
    return f"Brier {raw:.{d}f} → {now:.{d}f}"
