"""Raw and recalibrated forecasts apart by group or by class, in constant memory for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from calibrant.core.arrays import Words
from calibrant.core.place import buckets_of
from calibrant.metrics import CalibrationCurve, binomial_band

BUCKETS: Final = 20
SERIES: Final = 2
"""Raw forecasts, and those that were announced in their place."""
UNIT: Final = float(1 << 30)
"""Sums are whole numbers of 2**-30, so that the order of rounds changes none of them."""
CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Part:
    """What was said in one group or class and what happened, over 20 equal buckets.

    Attributes
    ----------
    name, rounds, rate
        Which one, its rounds, and the frequency of outcome 1.
    mean_raw, mean_forecast
        The averages that were said, before and after.
    c1_raw, c2_raw, c1_forecast, c2_forecast
        Calibration errors before and after.
    bound
        What the theorem says about the error after; None without one.
    """

    name: str
    rounds: int
    rate: float
    mean_raw: float
    mean_forecast: float
    c1_raw: float
    c2_raw: float
    c1_forecast: float
    c2_forecast: float
    bound: float | None = None


class Breakdown:
    """Follow raw and announced forecasts in each of several parts, which may appear any time.

    Parameters
    ----------
    kind
        What the parts are: ``"group"`` or ``"class"``.

    Examples
    --------
    >>> followed = Breakdown("group")
    >>> followed.add(followed.places(["a", "b", "a"]), [0.9, 0.2, 0.9], [0.5, 0.2, 0.5], [1, 0, 0])
    >>> [(part.name, part.rounds, round(part.c2_raw, 2)) for part in followed.parts()]
    [('a', 2, 0.16), ('b', 1, 0.04)]
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._places: dict[str, int] = {}
        # For each part, series and bucket: rounds, ones, and the sum of forecasts.
        self._table: Words = np.zeros((0, SERIES, BUCKETS, 3), np.int64)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def names(self) -> tuple[str, ...]:
        """All parts, in the order in which they appeared."""
        return tuple(self._places)

    def places(self, names: Sequence[str]) -> Words:
        """Return the place of each part by name; new ones get one."""
        found = [self._places.setdefault(name, len(self._places)) for name in names]
        if len(self) > len(self._table):
            room = np.zeros((len(self) + len(self) // 2, SERIES, BUCKETS, 3), np.int64)
            room[: len(self._table)] = self._table
            self._table = room
        return np.array(found, np.int64)

    def add(self, places: Any, raw: Any, forecast: Any, outcomes: Any) -> None:
        """Add rounds, each in the part at its place."""
        happened = np.asarray(outcomes, np.int64)
        for series, values in enumerate((raw, forecast)):
            told = np.asarray(values, np.float64)
            where: Any = places, series, buckets_of(told, BUCKETS)
            sums = np.rint(told * UNIT).astype(np.int64)
            columns = np.column_stack([np.ones_like(happened), happened, sums])
            np.add.at(self._table, where, columns)

    def parts(self) -> list[Part]:
        """Return what was measured in each part."""
        return [self._part(name, place) for name, place in self._places.items()]

    def _part(self, name: str, place: int) -> Part:
        raw, now = self._measured(place, 0), self._measured(place, 1)
        rounds, ones = self._table[place, 0, :, :2].sum(0).tolist()
        rate = ones / rounds if rounds else np.nan
        return Part(name, rounds, rate, raw[0], now[0], *raw[1:], *now[1:])

    def _measured(self, place: int, series: int) -> tuple[float, float, float]:
        """Return the mean forecast, C1 and C2."""
        count, ones, sums = self._table[place, series].T
        used, rounds = count > 0, int(count.sum())
        if rounds == 0:
            return np.nan, np.nan, np.nan
        gaps = (ones - sums / UNIT)[used]
        c1, c2 = float(np.abs(gaps).sum()), float((gaps**2 / count[used]).sum())
        return float(sums.sum()) / UNIT / rounds, c1 / rounds, c2 / rounds

    def curve(self, name: str, series: int) -> CalibrationCurve:
        """Return the reliability of a part before (``series`` 0) or after (1)."""
        count, ones, sums = self._table[self._places[name], series].T
        low, high = binomial_band(ones, count, confidence=CONFIDENCE)
        with np.errstate(invalid="ignore"):
            means = sums / UNIT / count, ones / count
        edges = np.arange(BUCKETS + 1) / BUCKETS
        return CalibrationCurve(edges[:-1], edges[1:], count.copy(), *means, low, high, CONFIDENCE)

    def largest(self, most: int) -> list[str]:
        """Return the parts with the most rounds, at most so many, in order of appearance."""
        rounds = self._table[: len(self), 0, :, 0].sum(1)
        kept = sorted(np.argsort(-rounds, kind="stable")[:most].tolist())
        return [self.names[place] for place in kept]

    # --------------------------------------------------------------------- state

    def words(self) -> Words:
        """Return the sums, to be stored beside the names."""
        return self._table[: len(self)].reshape(-1).copy()

    @classmethod
    def from_words(cls, kind: str, names: Sequence[str], words: Words) -> Self:
        """Return what goes on where :meth:`words` was called."""
        made = cls(kind)
        made.places(names)
        made._table = words.reshape(len(names), SERIES, BUCKETS, 3).copy()
        return made
