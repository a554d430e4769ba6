"""From sums to a summary: scores, windows of rounds, and how sure an average is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant import metrics
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.kernels import tallies
from calibrant.summary.collector import Collector
from calibrant.summary.kind import collector_for, summarise_collected
from calibrant.summary.pieces import NAMES, BucketRow, Headline, Histogram, Parts, Trace, Windows
from calibrant.summary.summary import Engine, Summary, Told, bare

ECE_BUCKETS: Final = 10
HISTOGRAM: Final = 50
OFTEN: Final = 0.01
"""Share of the rounds that makes a bucket much used."""


def summarise(
    recalibrator: Engine,
    raw: ArrayLike,
    forecast: ArrayLike,
    mean: ArrayLike,
    outcomes: ArrayLike,
    *,
    seed: int | None = None,
) -> Summary:
    """Return the summary of rounds that are at hand as arrays.

    Parameters
    ----------
    recalibrator : Recalibrator
        Who made the forecasts, after the last round.
    raw, forecast, mean : array_like
        What came in, what was drawn, and the average announced.
    outcomes : array_like
        0 or 1 for each round.
    seed : int, optional
        What the recalibrator was made with, to be told.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> rec = Recalibrator(seed=1)
    >>> raw, outcomes = [0.9, 0.8, 0.3, 0.9] * 50, [1, 0, 0, 1] * 50
    >>> run = rec.replay(raw, outcomes)
    >>> summary = summarise(rec, raw, run.forecast, run.mean, outcomes, seed=1)
    >>> summary["n_rounds"], round(summary["raw"]["brier"], 4)
    (200, 0.1875)
    """
    collector = collector_for(recalibrator)
    drawn = check.probabilities(forecast, "forecast")
    told = collector.nearest(drawn) if len(collector.values) > tallies.FINE else drawn
    collector.update(raw, told, mean, outcomes)
    made: Summary = summarise_collected(collector, recalibrator, seed=seed)
    return made


class Account(NamedTuple):
    """What only a recalibrator's kind can say of it.

    Attributes
    ----------
    identity, promised
        What the numbers of a summary begin with, and what was promised about them.
    settings
        What it takes to make the recalibrator again.
    bound
        What the theorem promises about C1 and C2 after that many rounds; nan where there is none.
    parts
        The same apart by group or class, if there are any.
    """

    identity: dict[str, Any]
    promised: dict[str, Any]
    settings: dict[str, Any]
    bound: Callable[[int], tuple[float, float]]
    parts: Parts | None = None


def measured(collector: Collector, account: Account, told: Told) -> Summary:
    """Return what a collector of probabilities has seen, with a recalibrator's own account."""
    used, rounds = {name: collector.buckets(name) for name in NAMES}, collector.rounds
    windows, parts = windows_of(collector), account.parts
    curves = {name: used[name].curve() for name in NAMES}
    decompositions = {name: used[name].decomposition() for name in NAMES}
    decompositions["forecast"] = metrics.decomposition(collector.exact().result())
    numbers = {
        **account.identity,
        "n_rounds": rounds,
        **told.counts,
        "base_rate": int(used["raw"].result().ones.sum()) / rounds if rounds else math.nan,
        **{name: _scores(collector, used[name], name, windows) for name in NAMES},
        "auc": _auc(collector),
        "regret_brier": _regret(collector),
        "window": windows.window,
        "windows": places(collector, windows),
        **account.promised,
        "breakdown": None if parts is None else {"kind": parts.kind, "rows": parts.rows},
        "timing": dict(told.timing),
    }
    rows, headline = _rows(collector, curves["raw"]), _headline(curves["raw"], curves["forecast"])
    trace, histogram = _trace(collector, account.bound), _histogram(collector)
    drawn = curves, trace, windows, histogram, decompositions, rows, headline, parts
    return Summary({**account.settings, **told.settings}, bare(numbers), *drawn)


# --------------------------------------------------------------------- the summary


def _scores(
    collector: Collector, used: metrics.BucketedCells, name: str, windows: Windows
) -> dict[str, Any]:
    log_loss = collector.log_loss(name)
    brier, c1, c2, smooth, error, sharpness = _measured(collector, used, name)
    return {
        "brier": brier,
        "log_loss": log_loss.value,
        "log_loss_clipped": log_loss.clipped,
        "calibration_l1": c1,
        "calibration_l2": c2,
        "ece": _ece(used),
        "smooth": smooth,
        "smooth_error": error,
        "sharpness": sharpness,
        "last_window_l2": windows.latest[name][2] if windows.latest else math.nan,
        "worst_window_l2": windows.worst[name][2] if windows.worst else math.nan,
    }


def _measured(collector: Collector, used: metrics.BucketedCells, name: str) -> tuple[float, ...]:
    """Return Brier score, C1, C2, smooth error, its own error, and sharpness.

    Of drawn forecasts each value is a cell; raw and mean ones, which may be any numbers, are
    measured in buckets and fine cells.
    """
    if name == "forecast":
        cells = collector.exact().result()
        errors = [metrics.calibration_error(cells, power=power) for power in (1.0, 2.0)]
        smooth, sharp = metrics.smooth_calibration_error(cells), metrics.decomposition(cells)
        return metrics.brier(cells), *errors, smooth, 0.0, sharp.sharpness
    errors, fine = [used.calibration_error(power=p) for p in (1.0, 2.0)], collector.smooth(name)
    return used.brier(), *errors, fine.result(), fine.error_bound, used.decomposition().sharpness


def _ece(used: metrics.BucketedCells) -> float:
    """Return the binned error over 10 buckets, each of which is two of the 20."""
    sums = used.result()
    pairs = (sums.count, sums.ones, sums.forecast_sum)
    count, ones, total = (array.reshape(ECE_BUCKETS, -1).sum(1) for array in pairs)
    rounds = int(count.sum())
    return float(np.abs(ones - total).sum() / rounds) if rounds else math.nan


def _auc(collector: Collector) -> dict[str, Any]:
    raw, mean = (collector.ranking(name) for name in ("raw", "mean"))
    drawn, error = metrics.auc(collector.exact().result()), max(raw.error_bound, mean.error_bound)
    found = {"raw": raw.result(), "forecast": drawn, "mean": mean.result()}
    return found | {"error": error, "unsure": collector.unsure("raw")}


def _regret(collector: Collector) -> dict[str, Any]:
    rounds, points = collector.trace()
    if len(rounds) == 0:
        rounds, points = np.zeros(1, np.int64), np.full((1, tallies.COLUMNS), np.nan)
    stride = int(rounds[0])
    regret = points[:, 1] - points[:, 0]
    even = rounds == stride * np.arange(1, len(rounds) + 1)
    found = batch_means(float(regret[-1]), (regret * rounds)[even], max(stride, 1))
    return dict(vars(found))


# ----------------------------------------------------------------------- the parts


def _trace(collector: Collector, bound: Callable[[int], tuple[float, float]]) -> Trace:
    rounds, points = collector.trace()
    promised = np.array([bound(int(T)) for T in rounds], np.float64).reshape(-1, 2)
    columns: Any = np.hstack([points, promised]).T
    return Trace(rounds, *columns)


def _histogram(collector: Collector) -> Histogram:
    shape = (HISTOGRAM, tallies.FINE // HISTOGRAM)
    counts = {name: collector.counts(name).reshape(shape).sum(1) for name in NAMES}
    return Histogram(edges=np.arange(HISTOGRAM + 1) / HISTOGRAM, **counts)


def _rows(collector: Collector, raw: metrics.CalibrationCurve) -> list[BucketRow]:
    columns = (raw.lower, raw.upper, raw.count, raw.mean_forecast, raw.mean_outcome)
    table = zip(*(column.tolist() for column in (*columns, collector.mean_drawn())), strict=True)
    return [BucketRow(*row) for row in table]


def _headline(raw: metrics.CalibrationCurve, now: metrics.CalibrationCurve) -> Headline | None:
    rounds = int(raw.count.sum())
    if rounds == 0:
        return None
    often = np.minimum(raw.count, now.count) >= max(1.0, OFTEN * rounds)
    share = np.nan_to_num(raw.count * (raw.mean_forecast - raw.mean_outcome) ** 2)
    j = int(np.where(often, share, -1.0).argmax() if often.any() else raw.count.argmax())
    return Headline(float(raw.lower[j]), float(raw.upper[j]), *_at(raw, j), *_at(now, j))


def _at(curve: metrics.CalibrationCurve, j: int) -> list[Any]:
    band = curve.band_low, curve.band_high
    columns = curve.mean_forecast, curve.mean_outcome, *band, curve.count
    return [column[j].item() for column in columns]


ENOUGH_WINDOWS: Final = 8
"""Windows of one length that there should be before longer ones are chosen."""


def windows_of(collector: Collector, level: int | None = None) -> Windows:
    """Return the errors of windows of ``625 * 2**level`` rounds.

    Without a level, of the longest windows of which there are enough, or else the shortest.
    """
    rounds, levels = collector.windowed, range(tallies.LEVELS)
    if level is None:
        enough = (k for k in levels if rounds >= ENOUGH_WINDOWS * (tallies.WINDOW << k))
        level = max(enough, default=0)
    window = tallies.WINDOW << level
    group, shown, worst, where = collector.windows(level)
    number = rounds // window
    starts = np.arange(0, number, group, dtype=np.int64)
    first, last = starts * window + 1, np.minimum(starts + group, number) * window
    found = zip(NAMES, worst.tolist(), where.tolist(), strict=True)
    spans = {n: (w * window + 1, (w + 1) * window, e) for n, e, w in found if number}
    errors = shown[:, 0], shown[:, 1], shown[:, 2]
    return Windows(window if number else 0, first, last, *errors, spans)


def places(collector: Collector, windows: Windows) -> dict[str, Any]:
    """Return how many windows there are, and where the last and the worst ones lie."""
    number = collector.rounds // windows.window if windows.window else 0
    latest = windows.latest.get("raw")
    last = None if latest is None else _span(latest)
    worst = {name: _span(place) for name, place in windows.worst.items()}
    return {"number": number, "last": last, "worst": worst}


def _span(place: tuple[int, int, float]) -> dict[str, int]:
    return {"first": place[0], "last": place[1]}


FEWEST: Final = 8
"""Blocks below which no interval is given."""
BLOCKS: Final = 32
"""Blocks to merge down to; there may be up to twice as many."""
_QUANTILE: Final = 1.959963984540054
_METHOD: Final = "batch means, Student t, 95 %"


@dataclass(frozen=True)
class Interval:
    """An average with its confidence interval; nan where there are too few rounds for one."""

    value: float
    low: float
    high: float
    blocks: int
    method: str = _METHOD


def batch_means(value: float, totals: Reals, stride: int) -> Interval:
    """Return the interval of an average from running totals at equal distances.

    Parameters
    ----------
    value : float
        The average over all rounds.
    totals : ndarray
        The sum of the first ``stride``, ``2 * stride``, ... rounds.
    stride : int
        Rounds between two of them.

    Notes
    -----
    Rounds are grouped into 32 to 63 long blocks, whose averages are treated as
    independent: right for a stationary stream whose memory is much shorter than a block.
    Below 64 strides a block is one stride, and below 8 there is no interval.

    References
    ----------
    Schmeiser, "Batch size effects in the analysis of simulation output" (1982).

    Examples
    --------
    >>> found = batch_means(0.5, np.cumsum([0.0, 1.0] * 8), 1)
    >>> round(found.low, 3), round(found.high, 3), found.blocks
    (0.225, 0.775, 16)
    """
    merged = max(1, len(totals) // BLOCKS)
    ends = totals[merged - 1 :: merged]
    means = np.diff(ends, prepend=0.0) / (merged * stride)
    if len(means) < FEWEST:
        return Interval(value, math.nan, math.nan, len(means))
    spread = float(np.std(means, ddof=1)) / math.sqrt(len(means))
    reach = student(len(means) - 1) * spread
    return Interval(value, value - reach, value + reach, len(means))


def student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, to three digits from 7 degrees on.

    Examples
    --------
    >>> round(student(7), 3), round(student(31), 3)
    (2.364, 2.04)
    """
    z, n = _QUANTILE, float(freedom)
    # Cornish-Fisher expansion in 1/n (Abramowitz and Stegun, 26.7.5).
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / n + second / n**2 + third / n**3
