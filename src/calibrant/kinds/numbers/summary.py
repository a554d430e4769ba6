"""What a run on numbers amounts to, as plain data of bounded size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from calibrant._version import __version__
from calibrant.kinds.numbers.collector import NumberCollector
from calibrant.regression import QuantileRecalibrator
from calibrant.regression.metrics import PitHistogram
from calibrant.summary import VERSION, AnySummary, Told
from calibrant.summary.summary import bare

KIND: Final = "numbers"
NAMES: Final = ("raw", "forecast")


@dataclass(frozen=True, eq=False)
class NumberSummary(AnySummary):
    """A run on numbers from end to end.

    Attributes
    ----------
    settings, summary
        As of any summary.
    pit
        Where outcomes fell in raw and recalibrated distributions.
    trace
        ``rounds``, at which stretches of ``window`` rounds end, and the coverage of ``raw`` and
        ``forecast`` in each: of the interval that the summary names.
    """

    pit: dict[str, PitHistogram]
    trace: dict[str, Any]

    def _detail(self) -> dict[str, Any]:
        return {"pit": {name: made.counts for name, made in self.pit.items()}, "trace": self.trace}

    @classmethod
    def _read_detail(cls, detail: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
        trace = {name: detail["trace"][name] for name in ("rounds", "window", *NAMES)}
        return {"pit": {name: _histogram(detail["pit"][name]) for name in NAMES}, "trace": trace}


def summarised(
    collector: NumberCollector, recalibrator: QuantileRecalibrator, told: Told
) -> NumberSummary:
    """Return the summary of everything a collector of numbers has seen."""
    record = recalibrator.certificate()
    account = ("rounds", "open", "expired", "delay")
    numbers = {
        "version": VERSION,
        "calibrant": __version__,
        "kind": KIND,
        "method": recalibrator.method,
        "seed": told.seed,
        "n_rounds": collector.rounds,
        **told.counts,
        **{name: _scores(collector, series) for series, name in enumerate(NAMES)},
        "interval": _interval(collector),
        "levels": _levels(collector, recalibrator),
        "certificate": {name: getattr(record, name) for name in account},
        "certificate_holds": record.holds,
        "timing": dict(told.timing),
    }
    own = {"method": recalibrator.method, "levels": recalibrator.levels.tolist()}
    own |= {**options_of(recalibrator), "seed": told.seed}
    return NumberSummary(
        settings={**own, **told.settings},
        summary=bare(numbers),
        pit={name: collector.pit(series) for series, name in enumerate(NAMES)},
        trace=_trace(collector),
    )


def options_of(recalibrator: QuantileRecalibrator) -> dict[str, Any]:
    """Return the options of a recalibrator's method.

    >>> options_of(QuantileRecalibrator("tracker", step=0.1))
    {'step': 0.1}
    """
    own = recalibrator.to_dict()["settings"]
    ties = {} if own["ties"] == "random" else {"ties": own["ties"]}
    return dict(own["options"]) | ties


def _scores(collector: NumberCollector, series: int) -> dict[str, float]:
    off = collector.coverage(series) - collector.levels
    return {
        "crps": collector.crps(series),
        "pinball": float(collector.pinball(series).mean()),
        "quantile_calibration_error": float((off**2).sum()),
        "coverage_error": float(np.abs(off).mean()),
        "pit_error": collector.pit(series).error if collector.rounds else math.nan,
        "infinite": float(collector.infinite(series).sum()) / max(1, _asked(collector)),
    }


def _asked(collector: NumberCollector) -> int:
    return collector.rounds * len(collector.levels)


def _interval(collector: NumberCollector) -> dict[str, Any]:
    """Return the interval between the outermost quantiles, or below the only one."""
    levels = collector.levels
    low = float(levels[0]) if len(levels) > 1 else 0.0
    told: dict[str, Any] = {"low": low, "high": float(levels[-1])}
    told["target"] = told["high"] - low
    for series, name in enumerate(NAMES):
        found = collector.coverage(series)
        told[name] = float(found[-1] - found[0]) if len(levels) > 1 else float(found[0])
    return told


def _levels(collector: NumberCollector, recalibrator: QuantileRecalibrator) -> list[dict[str, Any]]:
    """Return each level: how often it was covered, its losses, and what is promised."""
    columns = {
        f"{what}_{name}": getattr(collector, what)(series).tolist()
        for what in ("coverage", "pinball", "infinite")
        for series, name in enumerate(NAMES)
    }
    rows = []
    for k, row in enumerate(recalibrator.certificate().levels):
        promised = {n: v for n, v in row.to_dict().items() if n not in ("level", "coverage")}
        rows.append({"level": row.level, **{n: c[k] for n, c in columns.items()}, **promised})
    return rows


def _trace(collector: NumberCollector) -> dict[str, Any]:
    ends, window, coverage = collector.over_time()
    series = dict(zip(NAMES, coverage.tolist(), strict=True))
    return {"rounds": ends.tolist(), "window": window, **series}


def _histogram(counts: list[int]) -> PitHistogram:
    return PitHistogram(np.arange(len(counts) + 1) / len(counts), np.array(counts, np.int64))
