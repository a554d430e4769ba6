"""Everything a report tells about a run: numbers first, ink second.

A :class:`Story` is plain data of bounded size, whatever the number of rounds.
Tables, plots and pages are drawn from it, and from nothing else.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import CorruptState
from calibrant.metrics import CalibrationCurve, Decomposition

__all__ = [
    "NAMES",
    "VERSION",
    "BucketRow",
    "Headline",
    "Histogram",
    "Story",
    "Trace",
    "Windows",
    "bare",
]

NAMES: Final = ("raw", "forecast", "mean")
"""The three kinds of forecasts that a story compares."""

VERSION: Final = 1
"""Version of the summary's format."""

RUN: Final = ("command", "inputs", "columns", "scale")
"""Settings that belong to one run: they are stored below ``timing``, apart from the rest."""

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Trace:
    """Averages from the first round up to each of at most 512 later ones.

    Attributes
    ----------
    rounds
        How many rounds each point covers.
    brier_raw, brier_forecast, brier_mean
        Brier scores.
    c1_forecast, c2_forecast
        Calibration errors of the drawn forecasts over their exact values.
    c2_raw, c2_mean
        Calibration errors over 20 equal buckets.
    bound_c1, bound_c2
        What the theorem promises after so many rounds; nan where there is none.
    """

    rounds: Wholes
    brier_raw: Reals
    brier_forecast: Reals
    brier_mean: Reals
    c1_forecast: Reals
    c2_raw: Reals
    c2_forecast: Reals
    c2_mean: Reals
    bound_c1: Reals
    bound_c2: Reals


@dataclass(frozen=True, eq=False)
class Windows:
    """Calibration errors of consecutive windows of rounds, over 20 equal buckets.

    Attributes
    ----------
    window
        Rounds in a window; 0 if there were too few rounds for one.
    first, last
        The rounds that each of at most 512 points covers, counted from 1.  A point covers
        one window or, on a long stream, several, and shows the largest error among them.
    c2_raw, c2_forecast, c2_mean
        The errors.
    worst
        For each kind of forecast the first and the last round of its worst window, and the
        error there.  Empty if there were too few rounds.
    """

    window: int
    first: Wholes
    last: Wholes
    c2_raw: Reals
    c2_forecast: Reals
    c2_mean: Reals
    worst: dict[str, tuple[int, int, float]]


@dataclass(frozen=True, eq=False)
class Histogram:
    """How often forecasts fell into each of 50 equal intervals; the last one is closed."""

    edges: Reals
    raw: Wholes
    forecast: Wholes
    mean: Wholes


@dataclass(frozen=True)
class BucketRow:
    """What became of the raw forecasts in one of 20 equal intervals.

    Attributes
    ----------
    low, high
        The interval.
    count
        Rounds.
    mean_raw, rate, mean_forecast
        The average raw forecast, the frequency of outcome 1, and the average of the
        forecasts drawn in those same rounds; nan without rounds.
    """

    low: float
    high: float
    count: int
    mean_raw: float
    rate: float
    mean_forecast: float


@dataclass(frozen=True)
class Headline:
    """One region of probabilities, before and after.

    The region is the one of 20 equal intervals that raw and drawn forecasts both used
    often and in which raw forecasts added most to the calibration error.

    Attributes
    ----------
    low, high
        The region.
    raw_said, raw_meant, raw_low, raw_high, raw_count
        Average raw forecast there, frequency of outcome 1, its exact binomial 95 % band,
        and rounds.
    now_said, now_means, now_low, now_high, now_count
        The same for the drawn forecasts; nan if none fell there.
    """

    low: float
    high: float
    raw_said: float
    raw_meant: float
    raw_low: float
    raw_high: float
    raw_count: int
    now_said: float
    now_means: float
    now_low: float
    now_high: float
    now_count: int


@dataclass(frozen=True, eq=False)
class Story:
    """A run from end to end.

    Attributes
    ----------
    settings
        What it takes to repeat the run: the recalibrator's parameters and, from the command
        line, ``command``, ``inputs``, ``columns`` and ``scale``.
    summary
        The numbers of the summary, None where there is none; its keys are described in the
        reference.
    curves
        Reliability of ``"raw"``, ``"forecast"`` and ``"mean"`` in 20 equal buckets.
    trace, windows, histogram, decompositions, buckets
        The parts of a report.
    headline
        None without rounds.
    """

    settings: dict[str, Any]
    summary: dict[str, Any]
    curves: dict[str, CalibrationCurve]
    trace: Trace
    windows: Windows
    histogram: Histogram
    decompositions: dict[str, Decomposition]
    buckets: list[BucketRow]
    headline: Headline | None

    def to_dict(self) -> dict[str, Any]:
        """Return the story as JSON-ready data: the summary, and the rest below ``"detail"``."""
        run = {name: value for name, value in self.settings.items() if name in RUN}
        detail = {
            "settings": {k: v for k, v in self.settings.items() if k not in RUN},
            "curves": {name: _plain(curve) for name, curve in self.curves.items()},
            "trace": _plain(self.trace),
            "windows": _plain(self.windows),
            "histogram": _plain(self.histogram),
            "decompositions": {name: _plain(d) for name, d in self.decompositions.items()},
            "buckets": [_plain(row) for row in self.buckets],
            "headline": None if self.headline is None else _plain(self.headline),
        }
        timing = {**self.summary["timing"], "run": run}
        return bare({**self.summary, "timing": timing, "detail": detail})  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, data: Any) -> Story:
        """Read a story back from what :meth:`to_dict` gave."""
        _check_version(data)
        try:
            summary = {name: value for name, value in data.items() if name != "detail"}
            timing = dict(data["timing"])
            run = timing.pop("run")
            return _story(data["detail"], run, {**summary, "timing": timing})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            told = f"{type(error).__name__}: {error}"
            raise CorruptState(f"summary must be what calibrant wrote, got {told}") from error


def _check_version(data: Any) -> None:
    if not isinstance(data, dict) or "version" not in data:
        raise CorruptState("summary must be an object with a version, got something else")
    if data["version"] != VERSION:
        raise CorruptState(
            f"summary must be of version {VERSION}, got {data['version']!r}; "
            "it was written by another release of calibrant"
        )


def _story(detail: dict[str, Any], run: dict[str, Any], summary: dict[str, Any]) -> Story:
    headline = detail["headline"]
    return Story(
        settings={**detail["settings"], **run},
        summary=summary,
        curves={name: _read(CalibrationCurve, c) for name, c in detail["curves"].items()},
        trace=_read(Trace, detail["trace"]),
        windows=_read(Windows, detail["windows"]),
        histogram=_read(Histogram, detail["histogram"]),
        decompositions={n: _read(Decomposition, d) for n, d in detail["decompositions"].items()},
        buckets=[_read(BucketRow, row) for row in detail["buckets"]],
        headline=None if headline is None else _read(Headline, headline),
    )


def _plain(part: Any) -> dict[str, Any]:
    return {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}


def bare(value: Any) -> Any:
    """Return ``value`` with arrays as lists and numbers that JSON lacks as None."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [bare(item) for item in value]
    if isinstance(value, np.ndarray):
        return bare(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _read(kind: type[Any], data: dict[str, Any]) -> Any:
    fields = {f.name: str(f.type) for f in dataclasses.fields(kind)}
    if set(data) != set(fields):
        told = ", ".join(sorted(set(data) ^ set(fields)))
        raise ValueError(f"{kind.__name__} with other entries: {told}")
    return kind(**{name: _typed(data[name], fields[name]) for name in fields})


def _typed(value: Any, type_name: str) -> Any:
    if type_name == "float":
        return math.nan if value is None else float(value)
    if type_name in ("Reals", "NDArray[np.float64]"):
        return np.array([math.nan if item is None else item for item in value], np.float64)
    if type_name in ("Wholes", "NDArray[np.int64]"):
        return np.array(value, np.int64)
    if type_name.startswith("dict"):
        return {key: (int(a), int(b), float(error)) for key, (a, b, error) in value.items()}
    return value
