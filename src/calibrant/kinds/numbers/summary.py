"""A run on numbers: who follows forecasts in constant memory, and what they amount to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant._version import __version__
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.place import buckets_of
from calibrant.errors import CorruptState
from calibrant.regression import QuantileRecalibrator
from calibrant.regression.distribution import target_levels
from calibrant.regression.metrics import PitHistogram, over
from calibrant.summary import VERSION, AnySummary, Told
from calibrant.summary.summary import bare

KIND: Final = "collector of numbers"
NAMES: Final = ("raw", "forecast")
SERIES: Final = len(NAMES)
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
        self._covered, self._infinite = np.zeros((2, SERIES, many), np.int64)
        self._pinball, self._crps = np.zeros((SERIES, many)), np.zeros(SERIES)
        self._pit = np.zeros((SERIES, INTERVALS), np.int64)
        self._blocks = np.zeros((BLOCKS, SERIES, 2), np.int64)

    def update(self, raw: Seen, forecast: Seen, outcomes: ArrayLike) -> None:
        """Add rounds, in order."""
        told = np.asarray(outcomes, np.float64)
        first, self.rounds = self.rounds, self.rounds + len(told)
        while self.rounds > BLOCKS * self._stride:
            pairs = self._blocks.reshape(BLOCKS // 2, 2, SERIES, 2).sum(axis=1)
            self._blocks[: BLOCKS // 2], self._blocks[BLOCKS // 2 :] = pairs, 0
            self._stride *= 2
        places = np.arange(first, self.rounds) // self._stride
        for series, seen in enumerate((raw, forecast)):
            covered = self._add(series, seen, told)
            np.add.at(self._blocks[:, series], places, covered[:, [0, -1]])

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
        return np.asarray(over(self._covered[series], self.rounds))

    def infinite(self, series: int) -> Words:
        """Return in how many rounds each quantile was infinite."""
        return np.array(self._infinite[series])

    def pinball(self, series: int) -> Reals:
        """Return the mean pinball loss of each level over rounds in which it was finite."""
        rounds = self.rounds - self._infinite[series]
        means = self._pinball[series] / np.maximum(rounds, 1)
        return np.where(rounds > 0, means, np.nan)

    def crps(self, series: int) -> float:
        """Return the mean CRPS; nan without rounds."""
        return float(over(self._crps[series], self.rounds))

    def pit(self, series: int) -> PitHistogram:
        """Return where outcomes fell in their distributions."""
        return PitHistogram.of(self._pit[series].copy())

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
        ends = np.cumsum([HEAD + many, *(part.size for part in made._parts())])
        if len(words) != ends[-1]:
            raise CorruptState(f"state must be of {many} levels, got {len(words)} words")
        for part, told in zip(made._parts(), np.split(words, ends[:-1])[1:], strict=True):
            part[...] = told.view(part.dtype).reshape(part.shape)
        return made

    def _parts(self) -> tuple[NDArray[Any], ...]:
        sums = self._covered, self._infinite, self._pinball, self._crps
        return (*sums, self._pit, self._blocks)


def _added(total: Reals, more: Reals) -> Reals:
    """Add rows one after the other, so that it makes no difference where a batch ends."""
    return np.asarray(np.add.accumulate(np.vstack([total, more]), axis=0)[-1])


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

    @classmethod
    def of(cls, collector: NumberCollector, recalibrator: QuantileRecalibrator, told: Told) -> Self:
        """Return the summary of everything a collector of numbers has seen."""
        record = recalibrator.certificate()
        account = ("rounds", "open", "expired", "delay")
        numbers = {
            "version": VERSION,
            "calibrant": __version__,
            "kind": "numbers",
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
        return cls(
            settings={**own, **told.settings},
            summary=bare(numbers),
            pit={name: collector.pit(series) for series, name in enumerate(NAMES)},
            trace=_trace(collector),
        )

    def _detail(self) -> dict[str, Any]:
        return {"pit": {name: made.counts for name, made in self.pit.items()}, "trace": self.trace}

    @classmethod
    def _read_detail(cls, detail: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
        trace = {name: detail["trace"][name] for name in ("rounds", "window", *NAMES)}
        counts = {name: np.array(detail["pit"][name], np.int64) for name in NAMES}
        return {"pit": {n: PitHistogram.of(each) for n, each in counts.items()}, "trace": trace}


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
    asked = collector.rounds * len(off)
    return {
        "crps": collector.crps(series),
        "pinball": float(collector.pinball(series).mean()),
        "quantile_calibration_error": float((off**2).sum()),
        "coverage_error": float(np.abs(off).mean()),
        "pit_error": collector.pit(series).error if collector.rounds else math.nan,
        "infinite": float(collector.infinite(series).sum()) / max(1, asked),
    }


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
