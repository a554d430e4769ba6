"""Everything a report tells about a run: numbers first, ink second.

A :class:`Summary` is plain data of bounded size, whatever the number of rounds.
Tables, plots and pages are drawn from it, and from nothing else.
"""

from __future__ import annotations

import math
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, Final, NamedTuple, Self, TypeAlias, TypeVar, get_origin

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.errors import CorruptState
from calibrant.metrics import CalibrationCurve, Decomposition
from calibrant.summary.collector import Breakdown
from calibrant.summary.pieces import BucketRow, Headline, Histogram, Parts, Trace, Windows

VERSION: Final = 1
"""Version of the summary's format."""

SHARED: Final = ("settings", "summary")
"""What all kinds of summaries have."""
RUN: Final = ("command", "inputs", "columns", "scale")
"""Settings that belong to one run: they are stored below ``timing``, apart from the rest."""


Engine: TypeAlias = Any
"""Whoever makes forecasts: a recalibrator of any kind."""

T = TypeVar("T")


class Told(NamedTuple):
    """What is told beside what was measured, as in :func:`.summarise_collected`."""

    seed: int | None
    settings: Mapping[str, Any]
    counts: Mapping[str, int]
    timing: Mapping[str, float]
    breakdown: Breakdown | None


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
        own = {name: value for name, value in self._detail().items() if name not in SHARED}
        detail = {"settings": settings, **own}
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
        split = None if self.parts is None else {"curves": self.parts.curves}
        return vars(self) | {"parts": split}

    @classmethod
    def _read_detail(cls, detail: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
        split, seen = detail.get("parts"), told.get("breakdown")
        parts = None if split is None or seen is None else _read(Parts, {**seen, **split})
        hints = typing.get_type_hints(cls)
        own = [each.name for each in fields(cls) if each.name not in (*SHARED, "parts")]
        return {name: _read(hints[name], detail[name]) for name in own} | {"parts": parts}


def check_version(data: Any) -> None:
    """Refuse data that is no summary of this format."""
    if not isinstance(data, dict) or "version" not in data:
        raise CorruptState("summary must be an object with a version, got something else")
    if data["version"] != VERSION:
        told = f"got {data['version']!r}; it was written by another release of calibrant"
        raise CorruptState(f"summary must be of version {VERSION}, {told}")


def read_if(read: Callable[[bytes], T], data: bytes) -> T | None:
    """Return what was stored; None if it is the state of something else."""
    try:
        return read(data)
    except CorruptState as problem:
        if "of kind" not in str(problem):
            raise
        return None


def bare(value: Any) -> Any:
    """Return ``value`` as JSON has it: pieces by field, arrays as lists, no number as None."""
    if is_dataclass(value):
        return bare(vars(value))
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [bare(item) for item in value]
    if isinstance(value, np.ndarray):
        return bare(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _read(kind: Any, value: Any) -> Any:
    """Return what :func:`bare` made of a value of some type."""
    inner = typing.get_args(kind)
    if kind is float:
        return math.nan if value is None else float(value)
    if kind == Reals:
        return np.array([math.nan if item is None else item for item in value], np.float64)
    if kind == Words:
        return np.array(value, np.int64)
    if is_dataclass(kind):
        return _piece(kind, value)
    if get_origin(kind) is UnionType:
        return None if value is None else _read(inner[0], value)
    if get_origin(kind) is dict:
        return {key: _read(inner[1], item) for key, item in value.items()}
    if get_origin(kind) in (list, tuple):
        kinds = inner if int in inner else [inner[0]] * len(value)
        pairs = zip(kinds, value, strict=True)
        return get_origin(kind)(_read(each, item) for each, item in pairs)
    return int(value) if kind is int else value


def _piece(kind: Any, data: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(kind)
    spare = {name for name in hints if hasattr(kind, name)}  # those with a default
    if not set(hints) - spare <= set(data) <= set(hints):
        told = ", ".join(sorted(set(data) ^ set(hints)))
        raise ValueError(f"{kind.__name__} with other entries: {told}")
    return kind(**{name: _read(hints[name], value) for name, value in data.items()})
