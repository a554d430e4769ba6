"""Following raw, drawn and mean forecasts in constant memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput
from calibrant.kernels import portable, tallies
from calibrant.metrics import BucketedCells, ExactCells, StreamingAUC, StreamingSmooth
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
        arrays: tuple[NDArray[Any], ...] = (
            (np.asarray(raw), np.asarray(forecast), np.asarray(mean), np.asarray(outcomes))
            if checked
            else (
                check.probabilities(raw, "raw"),
                check.probabilities(forecast, "forecast"),
                check.probabilities(mean, "mean"),
                check.outcomes(outcomes),
            )
        )
        names = ("raw", "forecast", "mean", "outcomes")
        rounds = check.same_length(**dict(zip(names, arrays, strict=True)))
        if self.rounds + rounds > tallies.MOST:
            raise InvalidInput(f"rounds must be at most {tallies.MOST}, got {self.rounds + rounds}")
        fast = rounds > WARM_UP if compile is None else compile
        if not checked:
            self._refuse_stray(arrays[1], fast)
        self._run(tallies.collect, fast, *arrays)

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

    def buckets(self, name: str) -> BucketedCells:
        """Return the rounds of ``"raw"``, ``"forecast"`` or ``"mean"`` in 20 equal buckets."""
        if name == "forecast":
            homes = np.repeat(self._homes, 2) * 2 + np.tile([0, 1], len(self.values))
            tables = self._sums_of_values(homes, 2 * tallies.COARSE, powers=2)
        else:
            at = _SERIES[name] + tallies.BUCKETS
            table = self._words[at : at + tallies.BUCKET_WORDS].reshape(-1, 5)
            tables = [table[:, 0].tolist(), _join(table, 1), _join(table, 3)]
        return BucketedCells.from_dict(_state("BucketedCells", tallies.COARSE, *tables))

    def smooth(self, name: str) -> StreamingSmooth:
        """Return the raw or mean forecasts in 1,000 fine cells, for the smooth error."""
        counts, sums = self._fine(name)
        return StreamingSmooth.from_dict(_state("StreamingSmooth", tallies.FINE, counts, sums))

    def ranking(self, name: str) -> StreamingAUC:
        """Return the raw or mean forecasts in 1,000 fine cells, for the area under the curve."""
        counts, _ = self._fine(name)
        return StreamingAUC.from_dict(_state("StreamingAUC", tallies.FINE, counts))

    def exact(self) -> ExactCells:
        """Return the drawn forecasts by exact value."""
        zeros, ones = self._counts.T.tolist()
        content = {"limit": max(4096, len(self.values)), "closed": True}
        grid = {"values": self.values.tolist(), "zeros": zeros, "ones": ones}
        return ExactCells.from_dict(seal_state("ExactCells", **content, **grid))

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
        number = self.rounds // (tallies.WINDOW << level)
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
