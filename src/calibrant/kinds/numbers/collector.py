"""Following forecasts of numbers in constant memory: coverage, pinball loss, CRPS and PIT."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.place import buckets_of
from calibrant.errors import CorruptState
from calibrant.regression.distribution import target_levels
from calibrant.regression.metrics import PitHistogram

KIND: Final = "collector of numbers"
SERIES: Final = 2
"""Raw distributions, and those that were announced in their place."""
INTERVALS: Final = 20
BLOCKS: Final = 256
"""Stretches of rounds that are kept apart; when all are full, pairs of them become one."""
SHOWN: Final = 24
"""Stretches that are told at most: shorter ones are mostly noise."""
HEAD: Final = 3
NEAR: Final = 1e-9
"""An outcome on a quantile has that level as its PIT, up to rounding."""


class Seen(NamedTuple):
    """What was said in each round: quantiles at the levels, PIT of the outcome, CRPS."""

    quantiles: Reals
    pit: Reals
    crps: Reals


class NumberCollector:
    """Follow raw and recalibrated distributions: what a summary of numbers is made from.

    Parameters
    ----------
    levels : array_like
        The levels of the quantiles.

    Notes
    -----
    The memory depends on the number of levels only.  Cutting the run into batches elsewhere
    changes nothing: sums are added up round by round.

    Examples
    --------
    >>> collector = NumberCollector([0.5])
    >>> raw = Seen(np.array([[1.0], [1.0]]), np.array([0.4, 0.9]), np.array([0.1, 0.3]))
    >>> collector.update(raw, raw, [0.8, 1.5])
    >>> collector.coverage(0).tolist(), collector.crps(0), collector.pinball(0).round(3).tolist()
    ([0.5], 0.2, [0.175])
    """

    def __init__(self, levels: ArrayLike) -> None:
        self.levels: Reals = target_levels(levels)
        many = len(self.levels)
        self.rounds, self._stride = 0, 1
        self._covered: Words = np.zeros((SERIES, many), np.int64)
        self._infinite: Words = np.zeros((SERIES, many), np.int64)
        self._pinball: Reals = np.zeros((SERIES, many))
        self._crps: Reals = np.zeros(SERIES)
        self._pit: Words = np.zeros((SERIES, INTERVALS), np.int64)
        self._blocks: Words = np.zeros((BLOCKS, SERIES, 2), np.int64)

    def update(self, raw: Seen, forecast: Seen, outcomes: ArrayLike) -> None:
        """Add rounds, in order."""
        told = np.asarray(outcomes, np.float64)
        first, self.rounds = self.rounds, self.rounds + len(told)
        while self.rounds > BLOCKS * self._stride:
            self._merge()
        places = np.arange(first, self.rounds) // self._stride
        for series, seen in enumerate((raw, forecast)):
            covered = self._add(series, seen, told)
            np.add.at(self._blocks[:, series], places, covered[:, [0, -1]])

    def _merge(self) -> None:
        pairs = self._blocks.reshape(BLOCKS // 2, 2, SERIES, 2).sum(axis=1)
        self._blocks[: BLOCKS // 2], self._blocks[BLOCKS // 2 :] = pairs, 0
        self._stride *= 2

    def _add(self, series: int, seen: Seen, outcomes: Reals) -> Words:
        """Add one series; return which quantiles covered the outcomes."""
        y, pit = outcomes[:, None], seen.pit[:, None]
        on = (y == seen.quantiles) & (pit <= self.levels + NEAR)
        covered: Words = ((y < seen.quantiles) | on).astype(np.int64)
        finite = np.isfinite(seen.quantiles)
        above = np.where(finite, y - np.where(finite, seen.quantiles, 0.0), 0.0)
        losses = np.where(above > 0.0, self.levels * above, (self.levels - 1.0) * above)
        self._covered[series] += covered.sum(axis=0)
        self._infinite[series] += (~finite).sum(axis=0)
        self._pinball[series] = _added(self._pinball[series], losses)
        self._crps[series] = _added(self._crps[series : series + 1], seen.crps[:, None])[0]
        cells = buckets_of(np.clip(seen.pit, 0.0, 1.0), INTERVALS)
        self._pit[series] += np.bincount(cells, minlength=INTERVALS)
        return covered

    # ------------------------------------------------------------------ measures

    def coverage(self, series: int) -> Reals:
        """Return how often outcomes were below each quantile; nan without rounds.

        One that equals its quantile is covered; on an atom the PIT shares it out.
        """
        return np.asarray(_over(self._covered[series], self.rounds))

    def infinite(self, series: int) -> Words:
        """Return in how many rounds each quantile was infinite."""
        return np.array(self._infinite[series])

    def pinball(self, series: int) -> Reals:
        """Return the mean pinball loss of each level over rounds in which it was finite."""
        rounds = self.rounds - self._infinite[series]
        pairs = zip(self._pinball[series], rounds.tolist(), strict=True)
        return np.array([float(_over(total, n)) for total, n in pairs])

    def crps(self, series: int) -> float:
        """Return the mean CRPS; nan without rounds."""
        return float(_over(self._crps[series], self.rounds))

    def pit(self, series: int) -> PitHistogram:
        """Return where outcomes fell in their distributions."""
        return PitHistogram(np.arange(INTERVALS + 1) / INTERVALS, self._pit[series].copy())

    def over_time(self) -> tuple[Words, int, Reals]:
        """Return where complete stretches end, their length, and the coverage in each.

        Coverage is that of the interval between the outermost quantiles, or with a single level
        that of its quantile; a row for each series.
        """
        merged = 1
        while self.rounds // (merged * self._stride) > SHOWN:
            merged *= 2
        window = merged * self._stride
        number = self.rounds // window
        sums = self._blocks[: number * merged].reshape(number, merged, SERIES, 2).sum(axis=1)
        inside = sums[:, :, 1] - (sums[:, :, 0] if len(self.levels) > 1 else 0)
        ends = np.arange(1, number + 1, dtype=np.int64) * window
        return ends, window, np.asarray(inside.T / window)

    # --------------------------------------------------------------------- state

    def document(self) -> Document:
        """Return the whole state."""
        head = np.array([self.rounds, self._stride, len(self.levels)], np.int64)
        parts = [part.reshape(-1) for part in self._parts()]
        words = [part.view(np.int64) for part in (self.levels, *parts)]
        return Document(KIND, {}, {"words": np.concatenate([head, *words])})

    @classmethod
    def from_document(cls, document: Document) -> Self:
        """Return what goes on where :meth:`document` was called."""
        words = document.arrays["words"]
        rounds, stride, many = words[:HEAD].tolist()
        made = cls(words[HEAD : HEAD + many].view(np.float64).copy())
        made.rounds, made._stride = rounds, stride
        at = HEAD + many
        if len(words) != at + sum(part.size for part in made._parts()):
            raise CorruptState(f"state must be of {many} levels, got {len(words)} words")
        for part in made._parts():
            part[...] = words[at : at + part.size].view(part.dtype).reshape(part.shape)
            at += part.size
        return made

    def _parts(self) -> tuple[NDArray[Any], ...]:
        sums = self._covered, self._infinite, self._pinball, self._crps
        return (*sums, self._pit, self._blocks)


def _added(total: Reals, more: Reals) -> Reals:
    """Add rows one after the other, so that it makes no difference where a batch ends."""
    return np.asarray(np.add.accumulate(np.vstack([total, more]), axis=0)[-1])


def _over(total: Any, rounds: int) -> Any:
    return total / rounds if rounds else np.asarray(total) * np.nan
