"""What the numbers allow to be said, and the run in one sentence, also in awkward cases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Mask, Reals
from calibrant.kinds.binary.tables import tally
from calibrant.metrics import CalibrationCurve, binomial_band
from calibrant.report.tables import number
from calibrant.summary import BucketRow, Summary

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
    curves, rate = summary.curves, number(summary["base_rate"])
    now = curves["forecast"]
    return compared(curves["raw"], now, rate, half_step(summary, now.mean_forecast, now.count))


def compared(
    raw: CalibrationCurve, now: CalibrationCurve, rate: float, allowed: ArrayLike
) -> Finding:
    """Compare forecasts before and after; ``allowed`` is half a step of the grid of the latter."""
    before, after, was_off, is_off = spread(raw), spread(now), off(raw), off(now)
    margin = min(NEAR, PART * min(rate, 1.0 - rate))
    ending = "unclear" if was_off else "fine"
    if was_off and after < before:
        ending = "better" if off(now, allowed) else "fixed"
    elif is_off and after > before + margin:
        ending = "worse"
    return Finding(ending, before, after, is_off)


def half_step(summary: Summary, said: ArrayLike, count: ArrayLike) -> Reals:
    """Return half the distance of neighbours on the grid, or at most that, around forecasts.

    On a grid that splits cells (``refining``) n draws around g leave no neighbours in use whose
    half distance is above ``(g (1 - g))**0.75 / sqrt(n)``.
    """
    g, n = np.asarray(said, np.float64), np.maximum(np.asarray(count, np.float64), 1.0)
    even = np.full(g.shape, 0.5 / float(summary["resolution"]))
    if not _splits(summary):
        return even
    return np.asarray((g * (1.0 - g)) ** 0.75 / np.sqrt(n))


def _splits(summary: Summary) -> bool:
    return bool(summary.summary.get("calibrator") == SPLITS)


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


FEW: Final = 100
"""Rounds below which nothing is claimed about calibration."""
MOST_DIGITS: Final = 4
SMALL_BRIER: Final = 0.01
"""A score below which three digits show little."""
SMALL_LOG: Final = 0.1
"""A log loss below which three digits show little."""
RANKS: Final = 3
"""Digits of an AUC."""
RANKING: Final = {
    True: ("improved slightly", "got slightly worse"),
    False: ("improved", "got worse"),
}
"""What became of the ranking, if by little and if by more."""

ACCURACY: Final = {
    "same": "Accuracy unchanged: ",
    "improved": "Accuracy improved: ",
    "slightly improved": "Accuracy improved slightly: ",
    "worse": "Accuracy got worse: ",
    "slightly worse": "Accuracy got slightly worse: ",
    "unclear": "No clear change in accuracy: ",
    "mixed": "Accuracy is mixed: ",
    "unknown": "",
}
LESS_RANKED: Final = {
    True: "Lower errors but a slightly worse ranking: ",
    False: "Lower errors but a worse ranking: ",
}
"""What is said where every score improved but the ranking, by little and by more."""


def opening(summary: Summary) -> tuple[str, ...]:
    """Tell what became of the same cases in per cent, then what it cost: accuracy and ranking.

    Notes
    -----
    "Cases you gave 80 %" are those of one of 20 equal intervals of raw forecasts, the one in which
    most was to be corrected; their frequency and the average of the forecasts drawn for them are
    told.  Claims that forecasts were off hold at the 95 % level over all intervals at once, if
    outcomes are independent.  Changes of accuracy are judged by the interval of the Brier
    scores' difference; accuracy is not called improved where log loss or ranking (AUC) got
    worse, by however little is printed.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> from calibrant.summary import summarise
    >>> raw, outcomes, now = [0.9, 0.7] * 500, [1, 1, 1, 0] * 250, [1.0, 0.5] * 500
    >>> for told in opening(summarise(Recalibrator(), raw, now, now, outcomes)):
    ...     print(told)
    Cases you gave 70 % came true 50 % of the time. calibrant gives them 50 %.
    Accuracy improved: Brier 0.150 → 0.125; ranking unchanged: AUC 0.833 → 0.833.
    """
    rounds = int(summary["n_rounds"])
    if rounds == 0 or summary.headline is None:
        return ("There are no rounds, so there is nothing to judge.",)
    if rounds < FEW:
        return f"{_few(summary, rounds)}.", f"{_brier(summary)}."
    if number(summary["base_rate"]) in (0.0, 1.0):
        return f"{_one_class(summary, rounds)}.", f"{_cost(summary)}."
    told = f"{_calibration(summary)}.", f"{_cost(summary)}."
    return (*told, parts) if (parts := tally(summary)) else told


def _few(summary: Summary, rounds: int) -> str:
    rate = number(summary["base_rate"])
    shown = f"{rounds} round{'s' if rounds > 1 else ''}"
    if rate in (0.0, 1.0):
        shown += f", {'all ' if rounds > 1 else ''}with outcome {rate:.0f},"
    return f"{shown} {'are' if rounds > 1 else 'is'} too few to judge calibration"


def _one_class(summary: Summary, rounds: int) -> str:
    raw, now = _average(summary.curves["raw"]), _average(summary.curves["forecast"])
    before, after = percents(raw, now)
    told = f"All {rounds:,} outcomes were {number(summary['base_rate']):.0f}"
    return f"{told}. Your forecasts averaged {before}, calibrant's {after}"


def _average(curve: CalibrationCurve) -> float:
    used = curve.count > 0
    return float(curve.mean_forecast[used] @ curve.count[used] / curve.count.sum())


def _calibration(summary: Summary) -> str:
    found = calibration(summary)
    if found.ending == "fine":
        return _fine(summary, found)
    if found.ending == "worse":
        return f"Calibration got worse: {_apart(found)}"
    here = _compare(max(summary.buckets, key=_weight))
    if found.ending == "unclear":
        return f"{here.told}, too few cases to call it better"
    return here.told + _remark(here, summary, elsewhere=found.ending == "better")


def _fine(summary: Summary, found: Finding) -> str:
    told = f"as far as {int(summary['n_rounds']):,} rounds can tell"
    beyond = bool(beyond_noise(summary.curves["raw"]).any())
    excuse = "too little to matter" if beyond else "within noise"
    noise = f"off by {points(found.raw_gap)} on average, {excuse}"
    since = f"are off by {points(found.now_gap)} now" if found.now_off else "stayed so"
    return f"Your forecasts were right already, {told} ({noise}), and {since}"


def _apart(found: Finding) -> str:
    before, now = points(found.raw_gap), points(found.now_gap)
    return f"your forecasts were off by {before} on average, calibrant's are by {now}"


@dataclass(frozen=True)
class Comparison:
    """One place before and after: in words, its distances, and whether all is well there now.

    Besides, what is said there now and how often.
    """

    told: str
    before: float
    after: float
    well: bool
    said: float
    count: int


def _remark(here: Comparison, summary: Summary, *, elsewhere: bool) -> str:
    close = here.after <= half_step(summary, here.said, here.count)
    if elsewhere and (here.well or close):
        return ", though some of its forecasts are still off"
    if here.well:
        return ""
    if close:
        steps = (
            ""
            if summary.summary.get("calibrator") == SPLITS
            else f" of {summary['resolution']} steps"
        )
        return f", as close as its grid{steps} allows"
    return ", closer but not there yet" if here.after < here.before else ", still off"


def _weight(row: BucketRow) -> float:
    return row.count * (row.mean_raw - row.rate) ** 2 if row.count else 0.0


def _compare(row: BucketRow) -> Comparison:
    """Compare what was said of some cases with what happened and with what is said of them now."""
    raw, rate, now = percents(row.mean_raw, row.rate, row.mean_forecast)
    low, high = binomial_band([round(row.rate * row.count)], [row.count])
    told = f"Cases you gave {raw} came true {rate} of the time. calibrant gives them {now}"
    well = not matters(row.mean_forecast, row.rate) or low[0] <= row.mean_forecast <= high[0]
    before, after = abs(row.mean_raw - row.rate), abs(row.mean_forecast - row.rate)
    return Comparison(told, before, after, bool(well), row.mean_forecast, row.count)


def percents(*values: float) -> list[str]:
    """Return probabilities in per cent, with as many digits as tell them apart.

    Examples
    --------
    >>> percents(0.8, 0.62), percents(0.01, 0.0013), percents(0.9996, 1.0)
    (['80 %', '62 %'], ['1.0 %', '0.1 %'], ['99.96 %', '100.00 %'])
    """
    d = digits(*values) - 2
    return [f"{100.0 * value:.{d}f} %" for value in values]


def points(gap: float) -> str:
    """Return a distance of probabilities in percentage points.

    >>> points(0.0041), points(0.1), points(0.00002)
    ('0.4 points', '10.0 points', '0.002 points')
    """
    d = 1 if gap >= 0.0005 or gap == 0.0 else 3
    return f"{100.0 * gap:.{d}f} points"


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
    told = f"; {ranking}" if (ranking := _ranking(summary)) else ""
    scores = f"{_brier(summary)}, {_log_loss(summary)}"
    if "improved" in verdict and _costs_log_loss(summary):
        return f"{ACCURACY['mixed']}{scores}{told}"
    if "improved" in verdict and _costs_ranking(summary):
        return f"{LESS_RANKED[_is_slight(summary)]}{scores}, {_auc(summary)}"
    return f"{ACCURACY[verdict]}{_brier(summary)}{told}"


def _costs_log_loss(summary: Summary) -> bool:
    """Say whether the log loss got worse, by anything that is seen in the digits printed."""
    raw, now = (number(summary[name]["log_loss"]) for name in ("raw", "forecast"))
    d = _log_digits(raw, now)
    return round(now, d) > round(raw, d)


def _costs_ranking(summary: Summary) -> bool:
    """Say whether the ranking got worse, by anything that is seen in the digits printed."""
    before, after = (number(summary["auc"][name]) for name in ("raw", "forecast"))
    return round(after, RANKS) < round(before, RANKS) and not _is_constant(summary)


def _is_constant(summary: Summary) -> bool:
    """Say whether all raw forecasts are the same, so that there is no ranking to lose."""
    return number(summary["raw"]["sharpness"]) == 0.0


def _is_slight(summary: Summary) -> bool:
    """Say whether the ranking changed by too little to matter."""
    before, after = (number(summary["auc"][name]) for name in ("raw", "forecast"))
    return abs(after - before) <= SLIGHT


def _ranking(summary: Summary) -> str:
    """Tell whether cases that came true still rank above the others; nothing if it is undefined."""
    before, after = (number(summary["auc"][name]) for name in ("raw", "forecast"))
    if math.isnan(before) or math.isnan(after) or _is_constant(summary):
        return ""
    change = round(after, RANKS) - round(before, RANKS)
    better, worse = RANKING[_is_slight(summary)]
    word = "unchanged" if change == 0.0 else better if change > 0.0 else worse
    return f"ranking {word}: {_auc(summary)}"


def _auc(summary: Summary) -> str:
    before, after = (number(summary["auc"][name]) for name in ("raw", "forecast"))
    return f"AUC {before:.{RANKS}f} → {after:.{RANKS}f}"


def _log_digits(raw: float, now: float) -> int:
    return 3 if max(raw, now) >= SMALL_LOG else 5


def _log_loss(summary: Summary) -> str:
    raw, now = (number(summary[name]["log_loss"]) for name in ("raw", "forecast"))
    d = _log_digits(raw, now)
    return f"log loss {raw:.{d}f} → {now:.{d}f}"


def _brier(summary: Summary) -> str:
    raw, now = (number(summary[name]["brier"]) for name in ("raw", "forecast"))
    d = 3 if max(raw, now) >= SMALL_BRIER else 5
    if accuracy(summary) not in ("same", "unclear", "unknown") and f"{raw:.{d}f}" == f"{now:.{d}f}":
        d += 2
    return f"Brier {raw:.{d}f} → {now:.{d}f}"
