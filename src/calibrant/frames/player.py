"""The rows of an eager frame, played group by group."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput, InvalidType
from calibrant.integrations.live import make
from calibrant.recalibrate import Recalibrator
from calibrant.summary import kinds


@dataclass(frozen=True)
class Player:
    """What :func:`calibrant.frames.replay` was asked for.

    Attributes
    ----------
    columns
        Raw forecasts, outcomes, when these became known, when forecasts were made.
    keys
        The columns whose values tell streams apart.
    recalibrator
        What to go on with, or several by group.
    names
        Of the new columns.
    method, seed, options
        How new recalibrators are made.
    """

    columns: tuple[str, str, str | None, str | None]
    keys: tuple[str, ...]
    recalibrator: Recalibrator | MutableMapping[Any, Recalibrator] | None
    names: tuple[str, str]
    method: str
    seed: int | None
    options: dict[str, Any]

    def seeded(self, seed: int) -> Player:
        """Return the same with a seed, if it had none."""
        return self if self.seed is not None else replace(self, seed=seed)

    def check(self, there: list[str]) -> None:
        """Raise unless all columns are there, and the new ones are not."""
        asked = dict(zip(("raw", "outcome", "available", "time"), self.columns, strict=True))
        for name, column in [*asked.items(), *(("by", key) for key in self.keys)]:
            if column is not None and column not in there:
                raise InvalidInput(f"{name} must be one of the columns {there}, got {column!r}")
        for name, column in zip(("forecast", "mean"), self.names, strict=True):
            if column in there:
                raise InvalidInput(f"{name} must be the name of a new column, got {column!r}")
        made = self.recalibrator
        fits = isinstance(made, MutableMapping) if self.keys else kinds.known_as(None).makes(made)
        if made is not None and not fits:
            rule = "a dictionary beside by" if self.keys else "a recalibrator"
            raise InvalidType(f"recalibrator must be {rule}, got {self.recalibrator!r}")

    def play(self, frame: Any) -> Any:
        """Return a frame with the new columns."""
        drawn, mean = self._by_group(frame) if self.keys else self._at_once(frame)
        backend = frame.implementation
        added = zip(self.names, (drawn, mean), strict=True)
        return frame.with_columns(
            *(nw.new_series(name, made, nw.Float64, backend=backend) for name, made in added)
        )

    def _at_once(self, frame: Any) -> tuple[Reals, Reals]:
        engine: Any = self.recalibrator or make(self.method, self.seed, self.options)
        return _played(engine, self._arrays(frame))

    def _by_group(self, frame: Any) -> tuple[Reals, Reals]:
        drawn, mean = np.empty(len(frame)), np.empty(len(frame))
        arrays = self._arrays(frame)
        kept: Any = {} if self.recalibrator is None else self.recalibrator
        for group, rows in self._groups(frame):
            if group not in kept:
                kept[group] = make(self.method, self.seed, self.options, key=repr(group))
            # Compiled code is shared by all streams: it may be worth it though each is short.
            kept[group]._rows.batch(len(frame))
            parts = [None if array is None else array[rows] for array in arrays]
            drawn[rows], mean[rows] = _played(kept[group], parts)
        return drawn, mean

    def _groups(self, frame: Any) -> Iterator[tuple[Any, Words]]:
        """Yield every group and its rows, in order."""
        values = [frame[key].to_list() for key in self.keys]
        numbers: dict[Any, int] = {}
        known: dict[Any, int] = {}
        codes = np.empty(len(frame), np.int64)
        for row, group in enumerate(zip(*values, strict=True)):
            if (code := known.get(group)) is None:
                plain = tuple(_plain(value) for value in group)
                code = known[group] = numbers.setdefault(plain, len(numbers))
            codes[row] = code
        order = np.argsort(codes, kind="stable")
        cuts = np.searchsorted(codes[order], np.arange(1, len(numbers)))
        for group, rows in zip(numbers, np.split(order, cuts), strict=len(numbers) > 0):
            yield group if len(group) > 1 else group[0], rows

    def _arrays(self, frame: Any) -> list[NDArray[Any] | None]:
        raw, outcome, *moments = self.columns
        told = [None if name is None else _clock(frame[name]) for name in moments]
        return [frame[raw].to_numpy(), frame[outcome].to_numpy(), *told]


def _played(engine: Recalibrator, arrays: Any) -> tuple[Reals, Reals]:
    raw, outcomes, available, time = arrays
    run = engine.replay(raw, outcomes, available=available, time=time)
    return run.forecast, run.mean


def _clock(series: Any) -> NDArray[Any]:
    """Return moments as seconds; numbers as they are."""
    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if isinstance(series.dtype, nw.Datetime):
        micros = series.dt.timestamp("us").cast(nw.Float64).to_numpy()
        return np.asarray(micros, np.float64) / 1e6
    return np.asarray(series.to_numpy())


def _plain(value: Any) -> Any:
    """Return a group's value as every library would give it."""
    # What is missing in pandas cannot be compared, or not even to itself.
    if value is None or type(value).__name__ == "NAType" or value != value:
        return None
    if isinstance(value, np.generic):
        return value.item()
    return value.isoformat() if isinstance(value, datetime.date) else value
