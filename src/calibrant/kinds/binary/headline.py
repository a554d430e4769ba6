"""The run in one sentence, right in the awkward cases too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from calibrant.kinds.binary.judge import (
    Accuracy,
    Finding,
    accuracy,
    beyond_noise,
    calibration,
    half_step,
    matters,
)
from calibrant.metrics import CalibrationCurve, binomial_band
from calibrant.report.tables import number
from calibrant.summary import BucketRow, Headline, Summary

WIDE: Final = 0.1
"""Half of a band so wide that the frequency inside says little."""
THIN: Final = 0.005
"""Half of a band so narrow that a third digit is known."""
FEW: Final = 100
"""Rounds below which nothing is claimed about calibration."""
MOST_DIGITS: Final = 4
SMALL_BRIER: Final = 0.01
"""A score below which three digits show little."""

ACCURACY: Final[dict[Accuracy, str]] = {
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
    difference.

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
    return Comparison(
        told=f"Your {before} meant {meant}; now {now} means {means} ± {half:.{d}f}",
        before=abs(region.raw_said - region.raw_meant),
        after=abs(region.now_said - region.now_means),
        noise=half,
        well=not matters(region.now_said, region.now_means)
        or region.now_low <= region.now_said <= region.now_high,
    )


def _by_raw(row: BucketRow) -> Comparison:
    """Compare what was said with what is said in its place, where that is elsewhere."""
    d = digits(row.mean_raw, row.rate, row.mean_forecast)
    raw, rate, now = (f"{value:.{d}f}" for value in (row.mean_raw, row.rate, row.mean_forecast))
    low, high = binomial_band([round(row.rate * row.count)], [row.count])
    return Comparison(
        told=f"Your {raw} meant {rate}; the forecast in its place is now {now} on average",
        before=abs(row.mean_raw - row.rate),
        after=abs(row.mean_forecast - row.rate),
        noise=0.0,
        well=not matters(row.mean_forecast, row.rate)
        or bool(low[0] <= row.mean_forecast <= high[0]),
    )


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
    return ACCURACY[accuracy(summary)] + _brier(summary)


def _brier(summary: Summary) -> str:
    raw, now = (number(summary[name]["brier"]) for name in ("raw", "forecast"))
    d = 3 if max(raw, now) >= SMALL_BRIER else 5
    if accuracy(summary) not in ("same", "unclear", "unknown") and f"{raw:.{d}f}" == f"{now:.{d}f}":
        d += 2
    return f"Brier {raw:.{d}f} → {now:.{d}f}"
