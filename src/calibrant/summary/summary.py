"""Everything a report tells about a run: numbers first, ink second.

A :class:`Summary` is plain data of bounded size, whatever the number of rounds.
Tables, plots and pages are drawn from it, and from nothing else.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from calibrant.errors import CorruptState
from calibrant.metrics import CalibrationCurve, Decomposition
from calibrant.summary.breakdown import Part
from calibrant.summary.pieces import (
    BucketRow,
    Headline,
    Histogram,
    Parts,
    Trace,
    Windows,
    plain,
)

VERSION: Final = 1
"""Version of the summary's format."""

RUN: Final = ("command", "inputs", "columns", "scale")
"""Settings that belong to one run: they are stored below ``timing``, apart from the rest."""


@dataclass(frozen=True, eq=False)
class AnySummary(ABC):
    """A run, whatever it is about; ``summary[key]`` is one of its numbers.

    Attributes
    ----------
    settings
        What it takes to repeat the run: the recalibrator's parameters and, from the command
        line, ``command``, ``inputs``, ``columns`` and ``scale``.
    summary
        The numbers of the summary, None where there is none; its keys are described in the
        reference.
    """

    settings: dict[str, Any]
    summary: dict[str, Any]

    def __getitem__(self, key: str) -> Any:
        """Return one of the numbers."""
        return self.summary[key]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON-ready data: its numbers, and the rest below ``"detail"``."""
        run = {name: value for name, value in self.settings.items() if name in RUN}
        settings = {k: v for k, v in self.settings.items() if k not in RUN}
        timing = {**self.summary["timing"], "run": run}
        detail = {"settings": settings, **self._detail()}
        return bare({**self.summary, "timing": timing, "detail": detail})  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read a summary back from what :meth:`to_dict` gave."""
        check_version(data)
        try:
            detail, timing = data["detail"], dict(data["timing"])
            settings = {**detail["settings"], **timing.pop("run")}
            told = {name: value for name, value in data.items() if name != "detail"}
            told["timing"] = timing
            return cls(settings, told, **cls._read_detail(detail, told))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            wrong = f"{type(error).__name__}: {error}"
            raise CorruptState(f"summary must be what calibrant wrote, got {wrong}") from error

    @abstractmethod
    def _detail(self) -> dict[str, Any]:
        """Return what a report is drawn from, beside the numbers."""

    @classmethod
    @abstractmethod
    def _read_detail(cls, detail: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that :meth:`_detail` told."""


@dataclass(frozen=True, eq=False)
class Summary(AnySummary):
    """A run on probabilities from end to end.

    Attributes
    ----------
    settings, summary
        As of any summary.
    curves
        Reliability of ``"raw"``, ``"forecast"`` and ``"mean"`` in 20 equal buckets.
    trace, windows, histogram, decompositions, buckets
        The parts of a report.
    headline
        None without rounds.
    parts
        The same apart by group or class; None where there is one stream only.
    """

    curves: dict[str, CalibrationCurve]
    trace: Trace
    windows: Windows
    histogram: Histogram
    decompositions: dict[str, Decomposition]
    buckets: list[BucketRow]
    headline: Headline | None
    parts: Parts | None = None

    def _detail(self) -> dict[str, Any]:
        return {
            "curves": {name: plain(curve) for name, curve in self.curves.items()},
            "trace": plain(self.trace),
            "windows": plain(self.windows),
            "histogram": plain(self.histogram),
            "decompositions": {name: plain(d) for name, d in self.decompositions.items()},
            "buckets": [plain(row) for row in self.buckets],
            "headline": None if self.headline is None else plain(self.headline),
            "parts": None if self.parts is None else self.parts.detail(),
        }

    @classmethod
    def _read_detail(cls, detail: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
        headline, split = detail["headline"], detail["decompositions"]
        return {
            "curves": {name: _read(CalibrationCurve, c) for name, c in detail["curves"].items()},
            "trace": _read(Trace, detail["trace"]),
            "windows": _read(Windows, detail["windows"]),
            "histogram": _read(Histogram, detail["histogram"]),
            "decompositions": {name: _read(Decomposition, d) for name, d in split.items()},
            "buckets": [_read(BucketRow, row) for row in detail["buckets"]],
            "headline": None if headline is None else _read(Headline, headline),
            "parts": _parts(detail.get("parts"), told.get("breakdown")),
        }


def check_version(data: Any) -> None:
    """Refuse data that is no summary of this format."""
    if not isinstance(data, dict) or "version" not in data:
        raise CorruptState("summary must be an object with a version, got something else")
    if data["version"] != VERSION:
        raise CorruptState(
            f"summary must be of version {VERSION}, got {data['version']!r}; "
            "it was written by another release of calibrant"
        )


def _parts(detail: dict[str, Any] | None, told: dict[str, Any] | None) -> Parts | None:
    if detail is None or told is None:
        return None
    curves = {
        name: tuple(_read(CalibrationCurve, curve) for curve in pair)
        for name, pair in detail["curves"].items()
    }
    return Parts(told["kind"], [_read(Part, row) for row in told["rows"]], curves)


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
    if type_name in ("Reals", "Reals"):
        return np.array([math.nan if item is None else item for item in value], np.float64)
    if type_name in ("Wholes", "Words"):
        return np.array(value, np.int64)
    if type_name.startswith("dict"):
        return {key: (int(a), int(b), float(error)) for key, (a, b, error) in value.items()}
    return value
