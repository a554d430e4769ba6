"""What the numbers allow to be said, and the run in one sentence, also in awkward cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import Final

from calibrant.core.arrays import Mask
from calibrant.kinds.binary import judgement
from calibrant.kinds.binary.tables import tally
from calibrant.metrics import CalibrationCurve, binomial_band
from calibrant.report.tables import number
from calibrant.summary import BucketRow, Summary

SLIGHT: Final = 0.005
"""Differences of Brier scores, and of AUC, that are too small to matter, but for small scores."""
SHARE: Final = 0.025
"""Of the Brier score, and of the log loss: what is too small to matter there."""
TINY: Final = 1e-4
"""Differences of log losses that are too small to matter anywhere: of what is said of zeros."""


def calibration(summary: Summary) -> judgement.Finding:
    """Measure calibration before and after in the same equal buckets."""
    curves, rate = summary.curves, number(summary["base_rate"])
    return judgement.compared(curves["raw"], curves["forecast"], rate, *_grid(summary))


def _grid(summary: Summary) -> tuple[str, int]:
    return str(summary.summary.get("calibrator")), int(summary["resolution"])


def accuracy(summary: Summary) -> str:
    """Say what happened to the Brier score, by its interval.

    ``unknown`` without an interval; ``same`` if every plausible change is too small to
    matter, or no printed digit shows it; ``improved`` or ``worse`` if the interval leaves
    0 out, ``slightly`` so if it hardly matters; else ``unclear``.
    """
    told = summary["regret_brier"]
    value, low, high = (number(told[key]) for key in ("value", "low", "high"))
    if math.isnan(low) or math.isnan(high):
        return "unknown"
    if abs(value) < SEEN:
        return "same"
    slight = min(SLIGHT, SHARE * number(summary["raw"]["brier"]))
    if max(-low, high) <= slight and (low <= 0.0 <= high or abs(value) <= slight / 5.0):
        return "same"
    if low <= 0.0 <= high:
        return "unclear"
    if abs(value) <= slight:
        return "slightly improved" if high < 0.0 else "slightly worse"
    return "improved" if high < 0.0 else "worse"


SEEN: Final = 5e-8
"""A change of the Brier score below it is not seen in seven digits, the most that are printed;
a smaller spread of forecasts is what rounding leaves."""
MOST_DIGITS: Final = 4
SMALL_BRIER: Final = 0.01
"""A score below which three digits show little."""
SMALL_LOG: Final = 0.1
"""A log loss below which three digits show little."""
RANKS: Final = 3
"""Digits of an AUC."""
ROUNDING: Final = 1e-12
"""A variance below this part of the squared mean may be nothing but rounding."""
SMALLEST: Final = 1e-18
"""Squares are added up in steps that are a little smaller."""
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
LOG_LOSS_ROSE: Final = ACCURACY | {"same": "Brier score unchanged but a worse log loss: "}
"""What is said where the log loss rose by enough to matter."""


def opening(summary: Summary) -> tuple[str, ...]:
    """Tell what became of the same cases in per cent, then what it cost: accuracy and ranking.

    Notes
    -----
    "Cases you gave 80 %" are those of one of 20 equal intervals of raw forecasts, the one in which
    most was to be corrected; their frequency and the average of the forecasts drawn for them are
    told.  Claims that forecasts were off hold at the 95 % level over all intervals at once, if
    outcomes are independent.  Changes of accuracy are judged by the interval of the Brier
    scores' difference; accuracy is not called improved where log loss or ranking (AUC) got
    worse, by however little is printed, nor unchanged where the log loss rose by 2.5 % or more.

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
    if rounds < judgement.FEW:
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
    place = _place(summary)
    if found.ending == "unclear":
        return f"{_told(place, summary)}, too few cases to call it better"
    return _told(place, summary) + _remark(place, summary, elsewhere=found.ending == "better")


def _fine(summary: Summary, found: judgement.Finding) -> str:
    told, raw = f"as far as {int(summary['n_rounds']):,} rounds can tell", summary.curves["raw"]
    excuse, said = f"noise alone leaves about {points(judgement.noise(raw))}", raw.mean_forecast
    small = (
        found.raw_gap > judgement.noise(raw) and not judgement.matters(said, raw.mean_outcome).any()
    )
    if small or (raw.count > 0)[judgement.known(raw) != said].any():
        excuse = "too little to matter"
    gap = f"off by {points(found.raw_gap)} on average, {excuse}"
    since = f"are off by {points(found.now_gap)} now" if found.now_off else "stayed so"
    return f"Your forecasts were right already, {told} ({gap}), and {since}"


def _apart(found: judgement.Finding) -> str:
    before, now = points(found.raw_gap), points(found.now_gap)
    return f"your forecasts were off by {before} on average, calibrant's are by {now}"


GIVEN: Final = {"logit": "whose log-odds amount to", "score": "whose scores are read as"}
"""What was done to give a probability, where none was given."""
COLUMNS: Final = ("mean_raw", "rate", "count")
MEANS: Final = ("mean_raw", "rate", "mean_forecast")
WIDER: Final = (1, 5, 10)
"""How many neighbouring buckets are told of together, if narrower ones have too few cases."""


def _place(summary: Summary) -> BucketRow:
    """Return where most was to be corrected, of the narrowest intervals that show it."""
    rows, raw = summary.buckets, summary.curves["raw"]
    if (far := judgement.beyond_noise(raw)).any():
        return _worst(rows, far, judgement.matters(raw.mean_forecast, raw.mean_outcome))
    for size in WIDER:
        wide = [_joined(rows[k : k + size]) for k in range(0, len(rows), size)]
        said, rate, count = ([getattr(row, name) for row in wide] for name in COLUMNS)
        if (far := judgement.beyond(said, rate, count, judgement.LEVEL / len(wide))).any():
            return _worst(wide, far, judgement.matters(said, rate))
    return _joined(rows)


def _worst(rows: Sequence[BucketRow], far: Mask, large: Mask) -> BucketRow:
    """Return where most is wrong of the intervals beyond noise, by enough to matter if any is."""
    return max(compress(rows, far & large if (far & large).any() else far), key=_weight)


def _joined(rows: Sequence[BucketRow]) -> BucketRow:
    used, count = [row for row in rows if row.count], sum(row.count for row in rows)
    sums = (sum(getattr(row, name) * row.count for row in used) for name in MEANS)
    return BucketRow(rows[0].low, rows[-1].high, count, *(total / max(1, count) for total in sums))


def _weight(row: BucketRow) -> float:
    return row.count * (row.mean_raw - row.rate) ** 2


def _told(row: BucketRow, summary: Summary) -> str:
    """Compare what was said of some cases with what happened and with what is said of them now."""
    raw, rate, now = percents(row.mean_raw, row.rate, row.mean_forecast)
    given = GIVEN.get(str(summary.settings.get("scale")), "you gave")
    return f"Cases {given} {raw} came true {rate} of the time. calibrant gives them {now}"


def _remark(row: BucketRow, summary: Summary, *, elsewhere: bool) -> str:
    low, high = binomial_band([round(row.rate * row.count)], [row.count])
    well = (
        not judgement.matters(row.mean_forecast, row.rate) or low[0] <= row.mean_forecast <= high[0]
    )
    before, after = abs(row.mean_raw - row.rate), abs(row.mean_forecast - row.rate)
    rule, resolution = _grid(summary)
    close = after <= judgement.half_step(rule, resolution, row.mean_forecast, row.count)
    if elsewhere and (well or close):
        return ", though some of its forecasts are still off"
    if well:
        return ""
    if close:
        steps = "" if rule == judgement.SPLITS else f" of {resolution} steps"
        return f", as close as its grid{steps} allows"
    raw, _, now = percents(row.mean_raw, row.rate, row.mean_forecast)
    return ", closer but not there yet" if after < before and raw != now else ", still off"


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
    if "worse" not in verdict and _costs_much_log_loss(summary):
        return f"{LOG_LOSS_ROSE[verdict]}{scores}{told}"
    named = _costs_log_loss(summary) and "improved" in ranking
    return f"{ACCURACY[verdict]}{scores if named else _brier(summary)}{told}"


def _costs_log_loss(summary: Summary) -> bool:
    """Say whether the log loss got worse, by anything that is seen in the digits printed."""
    raw, now = (number(summary[name]["log_loss"]) for name in ("raw", "forecast"))
    d = _log_digits(raw, now)
    return round(now, d) > round(raw, d)


def _costs_much_log_loss(summary: Summary) -> bool:
    """Say whether the log loss got worse by enough to matter."""
    raw, now = (number(summary[name]["log_loss"]) for name in ("raw", "forecast"))
    return _costs_log_loss(summary) and now - raw > max(SHARE * raw, TINY)


def _costs_ranking(summary: Summary) -> bool:
    """Say whether the ranking got worse, by anything that is seen in the digits printed."""
    before, after = (number(summary["auc"][name]) for name in ("raw", "forecast"))
    worse = round(after, RANKS) < round(before, RANKS)
    return worse and not _is_constant(summary) and not _unsure(summary)


def _unsure(summary: Summary) -> float:
    """Return how far the raw AUC may be off where that hides whether it changed; else 0."""
    told = summary["auc"]
    before, after, error = (number(told.get(name)) for name in ("raw", "forecast", "unsure"))
    return error if abs(after - before) <= error else 0.0


def _is_constant(summary: Summary) -> bool:
    """Say whether all raw forecasts are the same, so that there is no ranking to lose.

    The variance of what is all the same is 0 but for rounding.
    """
    rounding = max(SMALLEST, ROUNDING * _average(summary.curves["raw"]) ** 2)
    return number(summary["raw"]["sharpness"]) <= rounding


def _is_slight(summary: Summary) -> bool:
    """Say whether the ranking changed by too little to matter."""
    before, after = (number(summary["auc"][name]) for name in ("raw", "forecast"))
    return abs(after - before) <= SLIGHT


def _ranking(summary: Summary) -> str:
    """Tell whether cases that came true still rank above the others; nothing if it is undefined."""
    before, after = (number(summary["auc"][name]) for name in ("raw", "forecast"))
    if math.isnan(before) or math.isnan(after) or _is_constant(summary):
        return ""
    if (error := _unsure(summary)) > SLIGHT:
        return f"ranking not known: AUC {before:.{RANKS}f} ± {error:.{RANKS}f} → {after:.{RANKS}f}"
    change = round(after, RANKS) - round(before, RANKS)
    better, worse = ("hardly changed",) * 2 if error else RANKING[_is_slight(summary)]
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
