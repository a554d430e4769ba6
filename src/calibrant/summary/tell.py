"""From sums to a story."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant import metrics
from calibrant.calibrators import Calibrator
from calibrant.core import check
from calibrant.kernels import tallies
from calibrant.recalibrate import Recalibrator
from calibrant.summary.breakdown import Breakdown
from calibrant.summary.collector import Collector
from calibrant.summary.interval import batch_means
from calibrant.summary.parts import parts_of
from calibrant.summary.promise import (
    Engine,
    collector_for,
    identity,
    parameters,
    promised,
)
from calibrant.summary.story import (
    NAMES,
    BucketRow,
    Headline,
    Histogram,
    Story,
    Trace,
    Windows,
    bare,
)
from calibrant.summary.windows import places, windows_of

__all__ = ["summarise", "tell"]

ECE_BUCKETS: Final = 10
HISTOGRAM: Final = 50
OFTEN: Final = 0.01
"""Share of the rounds that makes a bucket much used."""

Reals = NDArray[np.float64]


def summarise(
    recalibrator: Recalibrator,
    raw: ArrayLike,
    forecast: ArrayLike,
    mean: ArrayLike,
    outcomes: ArrayLike,
    *,
    seed: int | None = None,
) -> Story:
    """Return the story of rounds that are at hand as arrays.

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
    >>> rec = Recalibrator(seed=1)
    >>> raw, outcomes = [0.9, 0.8, 0.3, 0.9] * 50, [1, 0, 0, 1] * 50
    >>> run = rec.replay(raw, outcomes)
    >>> story = summarise(rec, raw, run.forecast, run.mean, outcomes, seed=1)
    >>> story.summary["n_rounds"], round(story.summary["raw"]["brier"], 4)
    (200, 0.1875)
    """
    collector = collector_for(recalibrator)
    drawn = check.probabilities(forecast, "forecast")
    told = collector.nearest(drawn) if len(collector.values) > tallies.FINE else drawn
    collector.update(raw, told, mean, outcomes)
    return tell(collector, recalibrator, seed=seed)


def tell(
    collector: Collector,
    recalibrator: Engine,
    *,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    counts: Mapping[str, int] | None = None,
    timing: Mapping[str, float] | None = None,
    breakdown: Breakdown | None = None,
) -> Story:
    """Return the story of everything a collector has seen.

    Parameters
    ----------
    collector : Collector
        What was seen.
    recalibrator : Recalibrator, GroupRecalibrator, OneVsRest or TopLabel
        Who made the forecasts.
    seed : int, optional
        What the recalibrator was made with.
    settings : mapping, optional
        More of what it takes to repeat the run.
    counts : mapping, optional
        ``n_skipped`` and ``n_unresolved``, rows that make no round; 0 by default.
    timing : mapping, optional
        Seconds and rates: the only part that two equal runs may differ in.
    breakdown : Breakdown, optional
        What was seen in each group or class.
    """
    parts = None if breakdown is None else parts_of(breakdown, recalibrator)
    used = {name: collector.buckets(name) for name in NAMES}
    trace = _trace(collector, recalibrator)
    windows = windows_of(collector)
    curves = {name: used[name].curve() for name in NAMES}
    decompositions = {name: used[name].decomposition() for name in NAMES}
    decompositions["forecast"] = metrics.decomposition(collector.exact().result())
    told = {
        **identity(recalibrator, seed),
        **_counted(collector, used["raw"], counts or {}),
        **{name: _scores(collector, used[name], name, windows) for name in NAMES},
        "auc": _auc(collector),
        "regret_brier": _regret(collector),
        "window": windows.window,
        "windows": places(collector, windows),
        **promised(recalibrator.certificate()),
        "breakdown": None if parts is None else parts.told(),
        "timing": dict(timing or {}),
    }
    return Story(
        settings={**parameters(recalibrator, seed), **(settings or {})},
        summary=bare(told),
        curves=curves,
        trace=trace,
        windows=windows,
        histogram=_histogram(collector),
        decompositions=decompositions,
        buckets=_rows(collector, curves["raw"]),
        headline=_headline(curves["raw"], curves["forecast"]),
        parts=parts,
    )


# --------------------------------------------------------------------- the summary


def _counted(
    collector: Collector, raw: metrics.BucketedCells, counts: Mapping[str, int]
) -> dict[str, Any]:
    rounds, ones = collector.rounds, int(raw.result().ones.sum())
    return {
        "n_rounds": rounds,
        "n_skipped": counts.get("n_skipped", 0),
        "n_unresolved": counts.get("n_unresolved", 0),
        "base_rate": ones / rounds if rounds else math.nan,
    }


def _scores(
    collector: Collector, used: metrics.BucketedCells, name: str, windows: Windows
) -> dict[str, Any]:
    log_loss = collector.log_loss(name)
    own = _of_values(collector) if name == "forecast" else _of_series(collector, used, name)
    return {
        "brier": own["brier"],
        "log_loss": log_loss.value,
        "log_loss_clipped": log_loss.clipped,
        "calibration_l1": own["calibration_l1"],
        "calibration_l2": own["calibration_l2"],
        "ece": _ece(used),
        "smooth": own["smooth"],
        "smooth_error": own["smooth_error"],
        "sharpness": own["sharpness"],
        "last_window_l2": windows.latest[name][2] if windows.latest else math.nan,
        "worst_window_l2": windows.worst[name][2] if windows.worst else math.nan,
    }


def _of_values(collector: Collector) -> dict[str, float]:
    """Measure the drawn forecasts, of which each value is a cell of its own."""
    cells = collector.exact().result()
    return {
        "brier": metrics.brier(cells),
        "calibration_l1": metrics.calibration_error(cells),
        "calibration_l2": metrics.calibration_error(cells, power=2.0),
        "smooth": metrics.smooth_calibration_error(cells),
        "smooth_error": 0.0,
        "sharpness": metrics.decomposition(cells).sharpness,
    }


def _of_series(collector: Collector, used: metrics.BucketedCells, name: str) -> dict[str, float]:
    """Measure raw or mean forecasts, which may be any numbers, in buckets and fine cells."""
    smooth = collector.smooth(name)
    return {
        "brier": used.brier(),
        "calibration_l1": used.calibration_error(),
        "calibration_l2": used.calibration_error(power=2.0),
        "smooth": smooth.result(),
        "smooth_error": smooth.error_bound,
        "sharpness": used.decomposition().sharpness,
    }


def _ece(used: metrics.BucketedCells) -> float:
    """Return the binned error over 10 buckets, each of which is two of the 20."""
    sums = used.result()
    pairs = (sums.count, sums.ones, sums.forecast_sum)
    count, ones, total = (array.reshape(ECE_BUCKETS, -1).sum(1) for array in pairs)
    rounds = int(count.sum())
    return float(np.abs(ones - total).sum() / rounds) if rounds else math.nan


def _auc(collector: Collector) -> dict[str, Any]:
    ranked = {name: collector.ranking(name) for name in ("raw", "mean")}
    return {
        "raw": ranked["raw"].result(),
        "forecast": metrics.auc(collector.exact().result()),
        "mean": ranked["mean"].result(),
        "error": max(ranked["raw"].error_bound, ranked["mean"].error_bound),
    }


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


def _trace(collector: Collector, recalibrator: Engine) -> Trace:
    rounds, points = collector.trace()
    promised = [_promised(recalibrator, int(T)) for T in rounds]
    c1, c2 = np.array(promised, np.float64).reshape(-1, 2).T
    return Trace(
        rounds=rounds,
        brier_raw=points[:, 0],
        brier_forecast=points[:, 1],
        brier_mean=points[:, 2],
        c1_forecast=points[:, 3],
        c2_raw=points[:, 4],
        c2_forecast=points[:, 5],
        c2_mean=points[:, 6],
        bound_c1=c1,
        bound_c2=c2,
    )


def _promised(recalibrator: Engine, rounds: int) -> tuple[float, float]:
    if not isinstance(recalibrator, Recalibrator):
        return math.nan, math.nan
    rule: Calibrator = recalibrator.calibrator
    bound = rule.bound(rounds, buckets=recalibrator.buckets, prior=recalibrator.prior)
    if bound is None or bound.quantity not in ("C1", "C2"):
        return math.nan, math.nan
    return bound.as_c1().value, bound.value if bound.quantity == "C2" else math.nan


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


def _at(curve: metrics.CalibrationCurve, j: int) -> tuple[float, float, float, float, int]:
    return (
        float(curve.mean_forecast[j]),
        float(curve.mean_outcome[j]),
        float(curve.band_low[j]),
        float(curve.band_high[j]),
        int(curve.count[j]),
    )
