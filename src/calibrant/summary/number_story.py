"""What a run on numbers amounts to, as plain data of bounded size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from calibrant._version import __version__
from calibrant.errors import CorruptState
from calibrant.regression import QuantileRecalibrator
from calibrant.regression.metrics import PitHistogram
from calibrant.summary.number_collector import NumberCollector
from calibrant.summary.story import RUN, VERSION, Story, bare, check_version

__all__ = ["AnyStory", "NumberStory", "options_of", "read_story", "tell_numbers"]

KIND: Final = "numbers"
NAMES: Final = ("raw", "forecast")


@dataclass(frozen=True, eq=False)
class NumberStory:
    """A run on numbers from end to end.

    Attributes
    ----------
    settings
        What it takes to repeat the run.
    summary
        The numbers of the summary, None where there is none; described in the reference.
    pit
        Where outcomes fell in raw and recalibrated distributions.
    trace
        ``rounds``, at which stretches of ``window`` rounds end, and the coverage of ``raw`` and
        ``forecast`` in each: of the interval that the summary names.
    """

    settings: dict[str, Any]
    summary: dict[str, Any]
    pit: dict[str, PitHistogram]
    trace: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the story as JSON-ready data: the summary, and the rest below ``"detail"``."""
        run = {name: value for name, value in self.settings.items() if name in RUN}
        detail = {
            "settings": {k: v for k, v in self.settings.items() if k not in RUN},
            "pit": {name: made.counts for name, made in self.pit.items()},
            "trace": self.trace,
        }
        timing = {**self.summary["timing"], "run": run}
        return bare({**self.summary, "timing": timing, "detail": detail})  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, data: Any) -> NumberStory:
        """Read a story back from what :meth:`to_dict` gave."""
        check_version(data)
        try:
            detail, timing = data["detail"], dict(data["timing"])
            run = timing.pop("run")
            summary = {name: value for name, value in data.items() if name != "detail"}
            pit = {name: _histogram(detail["pit"][name]) for name in NAMES}
            trace = {name: detail["trace"][name] for name in ("rounds", "window", *NAMES)}
            settings = {**detail["settings"], **run}
            return cls(settings, {**summary, "timing": timing}, pit, trace)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            told = f"{type(error).__name__}: {error}"
            raise CorruptState(f"summary must be what calibrant wrote, got {told}") from error


AnyStory: TypeAlias = Story | NumberStory
"""A run, whatever it is about."""


def read_story(data: Any) -> AnyStory:
    """Read back a story of either kind.

    >>> read_story({"version": 0})
    Traceback (most recent call last):
    calibrant.errors.CorruptState: summary must be of version 1, got 0; it was written by another
    release of calibrant
    """
    check_version(data)
    return NumberStory.from_dict(data) if data.get("kind") == KIND else Story.from_dict(data)


def tell_numbers(
    collector: NumberCollector,
    recalibrator: QuantileRecalibrator,
    *,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    counts: Mapping[str, int] | None = None,
    timing: Mapping[str, float] | None = None,
) -> NumberStory:
    """Return the story of everything a collector of numbers has seen.

    Parameters
    ----------
    collector : NumberCollector
        What was seen.
    recalibrator : QuantileRecalibrator
        Who made the forecasts.
    seed, settings, counts, timing
        As in :func:`calibrant.summary.tell`.
    """
    record = recalibrator.certificate()
    account = ("rounds", "open", "expired", "delay")
    told = {
        "version": VERSION,
        "calibrant": __version__,
        "kind": KIND,
        "method": recalibrator.method,
        "seed": seed,
        "n_rounds": collector.rounds,
        "n_skipped": (counts or {}).get("n_skipped", 0),
        "n_unresolved": (counts or {}).get("n_unresolved", 0),
        **{name: _scores(collector, series) for series, name in enumerate(NAMES)},
        "interval": _interval(collector),
        "levels": _levels(collector, recalibrator),
        "certificate": {name: getattr(record, name) for name in account},
        "certificate_holds": record.holds,
        "timing": dict(timing or {}),
    }
    own = {"method": recalibrator.method, "levels": recalibrator.levels.tolist()}
    own |= {**options_of(recalibrator), "seed": seed}
    return NumberStory(
        settings={**own, **(settings or {})},
        summary=bare(told),
        pit={name: collector.pit(series) for series, name in enumerate(NAMES)},
        trace=_trace(collector),
    )


def options_of(recalibrator: QuantileRecalibrator) -> dict[str, Any]:
    """Return the options of a recalibrator's method.

    >>> options_of(QuantileRecalibrator("tracker", step=0.1))
    {'step': 0.1}
    """
    own = recalibrator.to_dict()["settings"]["own"]
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
