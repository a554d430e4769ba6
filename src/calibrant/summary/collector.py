"""Following forecasts in constant memory: all together, and apart by group or class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant import metrics
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.place import buckets_of
from calibrant.errors import CorruptState, InvalidInput
from calibrant.kernels import portable, tallies
from calibrant.metrics.tally import fixed, seal_state

KIND: Final = "collector"
WARM_UP: Final = 50_000
"""Rounds in a batch for which the compiler is worth its start, unless told otherwise."""


_SERIES: Final = {"raw": tallies.RAW, "mean": tallies.MEAN}
_LOG_HUGE: Final = 900.0 * float(np.log(2.0))


@dataclass(frozen=True)
class LogLoss:
    """An average log loss, and in how many rounds an outcome's probability was raised.

    The probability that a forecast gave the outcome counts as 1e-15 where it was less;
    without that, a single sure mistake would make the average infinite.
    """

    value: float
    clipped: int


class Collector:
    """Follow a run: what every number and picture of a summary is made from.

    Parameters
    ----------
    values : array_like
        The values that may be drawn, in ascending order: ``calibrator.lattice.values``.

    Notes
    -----
    The memory depends on the number of values only.  Cutting the run into batches
    elsewhere changes nothing, and neither does the compiler.

    Examples
    --------
    >>> collector = Collector([0.0, 0.5, 1.0])
    >>> collector.update([0.3, 0.8], [0.5, 1.0], [0.4, 0.9], [0, 1])
    >>> collector.rounds, round(collector.buckets("raw").brier(), 6)
    (2, 0.065)
    """

    def __init__(self, values: ArrayLike) -> None:
        grid = check.probabilities(values, "values")
        if len(grid) == 0 or (np.diff(grid) <= 0.0).any():
            raise InvalidInput(f"values must be in ascending order, got {grid!r}")
        self._adopt(tallies.flat(grid))

    def _adopt(self, words: Words) -> None:
        self._words, self._reals = words, words.view(np.float64)
        cells = int(words[tallies.CELLS])
        counts, cross = tallies.counts_at(cells), tallies.cross_at(cells)
        self.values: Reals = self._reals[tallies.VALUES : tallies.VALUES + cells]
        self._homes = words[tallies.homes_at(cells) : counts]
        self._counts = words[counts:cross].reshape(-1, 2)
        self._cross = words[cross : tallies.level_at(cells, 0)].reshape(tallies.COARSE, cells)

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return int(self._words[tallies.ROUNDS])

    @property
    def windowed(self) -> int:
        """Rounds whose order is known, so that there is a trace and there are windows."""
        return self.rounds

    def update(
        self,
        raw: ArrayLike,
        forecast: ArrayLike,
        mean: ArrayLike,
        outcomes: ArrayLike,
        *,
        compile: bool | None = None,
        checked: bool = False,
    ) -> None:
        """Add rounds, in order.

        Parameters
        ----------
        raw, forecast, mean : array_like
            What came in, what was drawn, and what was announced on average.
        outcomes : array_like
            0 or 1 for each round.
        compile : bool, optional
            Whether to use the compiler where there is one; by default for long batches.
            Changes no result.
        checked : bool
            Whether all are arrays that a recalibrator took or gave, doubles and bytes, so
            that there is nothing to check.
        """
        given = {"raw": raw, "forecast": forecast, "mean": mean}
        told: dict[str, NDArray[Any]] = {
            name: np.asarray(values) if checked else check.probabilities(values, name)
            for name, values in given.items()
        }
        told["outcomes"] = np.asarray(outcomes) if checked else check.outcomes(outcomes)
        rounds = check.same_length(**told)
        if self.rounds + rounds > tallies.MOST:
            raise InvalidInput(f"rounds must be at most {tallies.MOST}, got {self.rounds + rounds}")
        fast = rounds > WARM_UP if compile is None else compile
        if not checked:
            self._refuse_stray(told["forecast"], fast)
        self._run(tallies.collect, fast, *told.values())

    def _refuse_stray(self, drawn: Reals, fast: bool) -> None:
        row = self._run(tallies.stray, fast, drawn)
        if row >= 0:
            told = float(drawn[row])
            raise InvalidInput(f"forecast[{row}] must be a value of the grid, got {told!r}")

    def _run(self, kernel: Callable[..., Any], fast: bool, *arrays: NDArray[Any]) -> Any:
        machine = tallies.machine(kernel, fast)
        if machine is not kernel:
            return machine(self._words, self._reals, *arrays)
        plain = [array.tolist() for array in arrays]
        return kernel(self._words.data, self._reals.data, *plain)

    def nearest(self, forecasts: Reals) -> Reals:
        """Return for each forecast the value that is nearest to it."""
        above = np.searchsorted(self.values, forecasts).clip(1, len(self.values) - 1)
        low, high = self.values[above - 1], self.values[above]
        return np.asarray(np.where(forecasts - low < high - forecasts, low, high))

    # ------------------------------------------------------------------ measures

    def buckets(self, name: str) -> metrics.BucketedCells:
        """Return the rounds of ``"raw"``, ``"forecast"`` or ``"mean"`` in 20 equal buckets."""
        if name == "forecast":
            homes = np.repeat(self._homes, 2) * 2 + np.tile([0, 1], len(self.values))
            tables = self._sums_of_values(homes, 2 * tallies.COARSE, powers=2)
        else:
            at = _SERIES[name] + tallies.BUCKETS
            table = self._words[at : at + tallies.BUCKET_WORDS].reshape(-1, 5)
            tables = [table[:, 0].tolist(), _join(table, 1), _join(table, 3)]
        return metrics.BucketedCells.from_dict(_state("BucketedCells", tallies.COARSE, *tables))

    def smooth(self, name: str) -> metrics.StreamingSmooth:
        """Return the raw or mean forecasts in 1,000 fine cells, for the smooth error."""
        counts, sums = self._fine(name)
        return metrics.StreamingSmooth.from_dict(
            _state("StreamingSmooth", tallies.FINE, counts, sums)
        )

    def ranking(self, name: str) -> metrics.StreamingAUC:
        """Return the raw or mean forecasts in 1,000 fine cells, for the area under the curve."""
        counts, _ = self._fine(name)
        return metrics.StreamingAUC.from_dict(_state("StreamingAUC", tallies.FINE, counts))

    def unsure(self, name: str) -> float:
        """Return how far the area may be off, if equal averages in a cell mean that all are equal.

        That is half the share of pairs in one cell whose two outcomes had other averages.
        """
        counts, sums = self._fine(name)
        cells = zip(counts[0::2], counts[1::2], sums[0::2], sums[1::2], strict=True)
        apart = sum(zero * one for zero, one, low, high in cells if low * one != high * zero)
        return _over(apart / 2, sum(counts[0::2]) * sum(counts[1::2]))

    def exact(self) -> metrics.ExactCells:
        """Return the drawn forecasts by exact value."""
        zeros, ones = self._counts.T.tolist()
        content = {"limit": max(4096, len(self.values)), "closed": True}
        grid = {"values": self.values.tolist(), "zeros": zeros, "ones": ones}
        return metrics.ExactCells.from_dict(seal_state("ExactCells", **content, **grid))

    def counts(self, name: str) -> Words:
        """Return how often forecasts fell into each of the 1,000 fine cells."""
        if name != "forecast":
            return np.asarray(np.reshape(self._fine(name)[0], (-1, 2)).sum(1), np.int64)
        edges = self._reals[tallies.EDGES : tallies.EDGES + tallies.FINE]
        homes = np.searchsorted(edges, self.values, side="right") - 1
        counts = np.zeros(tallies.FINE, np.int64)
        np.add.at(counts, homes, self._counts.sum(1))
        return counts

    def log_loss(self, name: str) -> LogLoss:
        """Return the average log loss."""
        if name == "forecast":
            return self._log_loss_of_values()
        at = _SERIES[name]
        product, scaled = float(self._reals[at + tallies.PRODUCT]), self._words[at + tallies.SCALED]
        total = float(scaled) * _LOG_HUGE - portable.log(product)
        return LogLoss(_over(total, self.rounds), int(self._words[at + tallies.CLIPPED]))

    def _log_loss_of_values(self) -> LogLoss:
        total, clipped = 0.0, 0
        for value, counts in zip(self.values.tolist(), self._counts.tolist(), strict=True):
            for given, count in zip((1.0 - value, value), counts, strict=True):
                total -= count * portable.log(max(given, tallies.CLIP))
                clipped += count if given < tallies.CLIP else 0
        return LogLoss(_over(total, self.rounds), clipped)

    def mean_drawn(self) -> Reals:
        """Return the average drawn forecast in each of 20 equal buckets of raw forecasts."""
        divisor = self._cross.sum(1).astype(np.float64)
        divisor[divisor == 0.0] = np.nan
        return np.asarray(self._cross @ self.values / divisor)

    def trace(self) -> tuple[Words, Reals]:
        """Return the rounds and the averages of each point, the last of all rounds.

        The columns are the Brier scores of raw, drawn and mean, C1 of the drawn values, and
        C2 of raw buckets, drawn values and mean buckets.
        """
        words = self._words.copy()
        reals, filled, stride = words.view(np.float64), *words[[tallies.FILLED, tallies.STRIDE]]
        rounds = stride * np.arange(1, filled + 1)
        if self.rounds > filled * stride:
            to = tallies.TRACE + tallies.COLUMNS * int(filled)
            tallies.mark(words.data, reals.data, self.rounds, to)
            rounds = np.append(rounds, self.rounds)
        size = len(rounds) * tallies.COLUMNS
        points = reals[tallies.TRACE : tallies.TRACE + size]
        return rounds, points.reshape(-1, tallies.COLUMNS)

    def windows(self, level: int) -> tuple[int, Reals, Reals, Words]:
        """Return the windows of ``625 * 2**level`` rounds.

        How many of them a point stands for, the points (their largest error, of raw, drawn
        and mean), the largest of all, and which window that was.
        """
        at = tallies.level_at(len(self.values), level)
        group = int(self._words[at + tallies.GROUP])
        number = self.windowed // (tallies.WINDOW << level)
        size = 3 * -(-number // group)
        shown = self._reals[at + tallies.SHOWN : at + tallies.SHOWN + size].reshape(-1, 3)
        worst = self._reals[at + tallies.WORST : at + tallies.WORST + 3]
        return group, shown, worst, self._words[at + tallies.WHERE : at + tallies.WHERE + 3]

    # --------------------------------------------------------------------- state

    def document(self) -> Document:
        """Return the whole state, to be stored."""
        return Document(KIND, {}, {"words": self._words})

    @classmethod
    def from_document(cls, document: Document) -> Self:
        """Return a collector that goes on where :meth:`document` was called."""
        words = document.arrays.get("words", np.zeros(0, np.int64))
        cells = int(words[tallies.CELLS]) if len(words) > tallies.CELLS else 0
        if len(words) != tallies.level_at(cells, tallies.LEVELS):
            raise CorruptState(f"state must be of a collector, got {len(words)} words")
        made = cls.__new__(cls)
        made._adopt(words.copy())
        return made

    def _fine(self, name: str) -> tuple[list[int], list[int]]:
        at = _SERIES[name] + tallies.FINER
        table = self._words[at : at + 6 * tallies.FINE].reshape(-1, 3)
        return table[:, 0].tolist(), _join(table, 1)

    def _sums_of_values(self, homes: Words, size: int, powers: int) -> list[list[int]]:
        tables = [[0] * size for _ in range(powers + 1)]
        grid = [(v, v * v) for v in self.values.tolist()]
        units = [(1, fixed(v), fixed(w)) for v, w in grid for _ in range(2)]
        counts = self._counts.reshape(-1).tolist()
        for home, count, addends in zip(homes.tolist(), counts, units, strict=True):
            for table, addend in zip(tables, addends, strict=True):
                table[home] += count * addend
        return tables


def _state(kind: str, size: int, counts: list[int], *sums: list[int]) -> dict[str, Any]:
    rows = [[str(total) for total in row] for row in sums]
    return seal_state(kind, size=size, counts=counts, sums=rows)


def _join(table: Words, column: int) -> list[int]:
    pairs = zip(table[:, column].tolist(), table[:, column + 1].tolist(), strict=True)
    return [(high << 30) + low for high, low in pairs]


def _over(total: float, rounds: int) -> float:
    return total / rounds if rounds else float("nan")


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
    verdict
        What became of it, by the rule of the headline.
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
    verdict: str = "not judged"


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

    def add(self, places: Any, raw: Any, forecast: Any, outcomes: Any, sign: int = 1) -> None:
        """Add rounds, each in the part at its place; with sign -1, take them back."""
        happened = np.asarray(outcomes, np.int64)
        for series, values in enumerate((raw, forecast)):
            told = np.asarray(values, np.float64)
            where: Any = places, series, buckets_of(told, BUCKETS)
            sums = np.rint(told * UNIT).astype(np.int64)
            columns = np.column_stack([np.ones_like(happened), happened, sums])
            np.add.at(self._table, where, sign * columns)

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

    def curve(self, name: str, series: int, *, bands: bool = True) -> metrics.CalibrationCurve:
        """Return the reliability of a part before (``series`` 0) or after (1)."""
        count, ones, sums = self._table[self._places[name], series].T
        low, high = np.zeros((2, BUCKETS))  # what takes long
        if bands:
            low, high = metrics.binomial_band(ones, count, confidence=CONFIDENCE)
        with np.errstate(invalid="ignore"):
            means = sums / UNIT / count, ones / count
        edges = np.arange(BUCKETS + 1) / BUCKETS
        return metrics.CalibrationCurve(
            edges[:-1], edges[1:], count.copy(), *means, low, high, CONFIDENCE
        )

    def largest(self, most: int) -> list[str]:
        """Return the parts with the most rounds, at most that many, in order of appearance."""
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
