"""From sums to a summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibrant import metrics
from calibrant.core import check
from calibrant.kernels import tallies
from calibrant.summary.collector import Collector
from calibrant.summary.interval import batch_means
from calibrant.summary.kind import Engine, Told, collector_for, summarise_collected
from calibrant.summary.pieces import NAMES, BucketRow, Headline, Histogram, Parts, Trace, Windows
from calibrant.summary.summary import Summary, bare
from calibrant.summary.windows import places, windows_of

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
        What the theorem promises about C1 and C2 after so many rounds; nan where there is none.
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
    used = {name: collector.buckets(name) for name in NAMES}
    windows = windows_of(collector)
    curves = {name: used[name].curve() for name in NAMES}
    decompositions = {name: used[name].decomposition() for name in NAMES}
    decompositions["forecast"] = metrics.decomposition(collector.exact().result())
    numbers = {
        **account.identity,
        **_counted(collector, used["raw"], told.counts),
        **{name: _scores(collector, used[name], name, windows) for name in NAMES},
        "auc": _auc(collector),
        "regret_brier": _regret(collector),
        "window": windows.window,
        "windows": places(collector, windows),
        **account.promised,
        "breakdown": None if account.parts is None else account.parts.told(),
        "timing": dict(told.timing),
    }
    return Summary(
        settings={**account.settings, **told.settings},
        summary=bare(numbers),
        curves=curves,
        trace=_trace(collector, account.bound),
        windows=windows,
        histogram=_histogram(collector),
        decompositions=decompositions,
        buckets=_rows(collector, curves["raw"]),
        headline=_headline(curves["raw"], curves["forecast"]),
        parts=account.parts,
    )


# --------------------------------------------------------------------- the summary


def _counted(
    collector: Collector, raw: metrics.BucketedCells, counts: Mapping[str, int]
) -> dict[str, Any]:
    rounds, ones = collector.rounds, int(raw.result().ones.sum())
    return {"n_rounds": rounds, **counts, "base_rate": ones / rounds if rounds else math.nan}


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


def _trace(collector: Collector, bound: Callable[[int], tuple[float, float]]) -> Trace:
    rounds, points = collector.trace()
    promised = [bound(int(T)) for T in rounds]
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
