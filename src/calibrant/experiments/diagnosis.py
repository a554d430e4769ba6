"""Who is ill, from genotypes, one patient at a time: learn, choose, recalibrate.

A linear support vector machine with an l1 penalty makes raw forecasts; the default of this
package and plain Algorithm 1 recalibrate them.  The penalty is the one of several with the least
progressive hinge loss: nothing that has to do with calibration is looked at.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.place import buckets_of
from calibrant.errors import InvalidInput
from calibrant.learners.online_svm import Alleles, OnlineL1SVM
from calibrant.metrics import auc, binned_calibration_error, brier
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.simulate.games import Progress

PENALTIES: Final = (3.0, 3.5, 4.0, 4.5, 5.0)
BUCKETS: Final = 10
"""In which calibration errors are measured, as in the paper's figure."""
EARLY: Final = 300
"""Rounds of which errors say little."""


class Genotypes(Protocol):
    """Where patients come from."""

    @property
    def outcomes(self) -> Bits:
        """1 for each subject who is ill, else 0."""

    @property
    def snps(self) -> int:
        """How many SNPs there are."""

    def patients(self, order: Sequence[int] | Words) -> Iterator[Alleles]:
        """Yield the genotypes of one subject after the other, in this order."""


@dataclass(frozen=True, eq=False)
class PackedFile:
    """Genotypes of a few thousand SNPs in one .npz file, four to a byte.

    Attributes
    ----------
    packed
        One row a SNP, four subjects a byte, the first in its lowest two bits.
    outcomes
        1 for each subject who is ill, else 0.
    """

    packed: Bits
    outcomes: Bits

    @classmethod
    def open(cls, path: str | Path) -> PackedFile:
        """Read the file."""
        if not Path(path).is_file():
            raise InvalidInput(f"path must be a file of packed genotypes, got {str(path)!r}")
        with np.load(path) as found:
            return cls(found["packed"], found["case"])

    @property
    def snps(self) -> int:
        """How many SNPs there are."""
        return len(self.packed)

    def patients(self, order: Sequence[int] | Words) -> Iterator[Alleles]:
        """Yield the genotypes of one subject after the other, in this order."""
        for subject in np.asarray(order).tolist():
            column = self.packed[:, subject // 4]
            yield (column >> 2 * (subject % 4) & 3).astype(np.int8)


# The learners.


@dataclass(frozen=True, eq=False)
class Race:
    """What learners with different penalties said in one pass, and how they did.

    Attributes
    ----------
    outcomes
        In the order of the pass.
    penalties
        One a learner.
    hinge_losses
        The mean over all rounds, each before it was learned.
    forecasts
        Raw forecasts: one row a learner, one column a round.
    in_use
        How many SNPs had a weight at the end.
    seconds
        CPU time that each learner would take alone, reading included.
    """

    outcomes: Bits
    penalties: tuple[float, ...]
    hinge_losses: tuple[float, ...]
    forecasts: Reals
    in_use: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def best(self) -> int:
        """Which learner had the least hinge loss."""
        return int(np.argmin(self.hinge_losses))


def race(
    source: Genotypes,
    *,
    penalties: Sequence[float] = PENALTIES,
    seed: int = 1,
    progress: Progress | None = None,
) -> Race:
    """Let learners with these penalties see all patients once, in an order drawn by the seed.

    Examples
    --------
    >>> from calibrant.experiments.diagnosis import PackedFile, race
    >>> three = PackedFile(np.array([[0b100100], [0b011001]], np.uint8), np.array([0, 1, 1]))
    >>> race(three, penalties=[1.0]).forecasts.round(3)
    array([[0.5  , 0.   , 0.914]])
    """
    order = np.random.default_rng(check.whole(seed, "seed")).permutation(len(source.outcomes))
    learners = [OnlineL1SVM(source.snps, penalty=each) for each in penalties]
    outcomes, forecasts = source.outcomes[order], np.empty((len(learners), len(order)))
    # One clock a learner, and the last for reading.
    clocks, rows = [0.0] * (len(learners) + 1), source.patients(order)
    for t, outcome in enumerate(outcomes.tolist()):
        with _timed(clocks, -1):
            row = next(rows)
        for k, learner in enumerate(learners):
            with _timed(clocks, k):
                forecasts[k, t] = learner.predict_one(row)
                learner.learn_one(row, outcome)
        if progress is not None:
            progress(t + 1, len(order))
    strengths, losses = tuple(s.penalty for s in learners), tuple(s.hinge_loss for s in learners)
    used = tuple(len(each.chosen) for each in learners)
    seconds = tuple(clock + clocks[-1] for clock in clocks[:-1])
    return Race(outcomes, strengths, losses, forecasts, used, seconds)


@contextmanager
def _timed(clocks: list[float], k: int) -> Iterator[None]:
    """Add the CPU time of what is done inside to a clock."""
    started = time.process_time()
    yield
    clocks[k] += time.process_time() - started


# What recalibration makes of them.


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Raw forecasts of the chosen learner, and what became of them.

    Attributes
    ----------
    race
        The learners.
    drawn, mean
        Of the default: one row a seed, one column a round.
    plain
        Drawn forecasts of plain Algorithm 1, likewise.
    """

    race: Race
    drawn: Reals
    mean: Reals
    plain: Reals

    @property
    def outcomes(self) -> Bits:
        """Who was ill, in the order of the pass."""
        return self.race.outcomes

    @property
    def raw(self) -> Reals:
        """The raw forecasts."""
        return np.asarray(self.race.forecasts[self.race.best])

    @property
    def late_auc(self) -> float:
        """How well the raw forecasts of the second half rank patients."""
        half = len(self.outcomes) // 2
        return auc(self.raw[half:], self.outcomes[half:])

    def error(self, forecasts: Reals) -> float:
        """Return the calibration error (ECE) at the end, the mean over the seeds."""
        return float(np.mean([self._ece(row) for row in np.atleast_2d(forecasts)]))

    def loss(self, forecasts: Reals) -> float:
        """Return the squared loss at the end, the mean over the seeds."""
        return float(np.mean([brier(row, self.outcomes) for row in np.atleast_2d(forecasts)]))

    def lower(self, forecasts: Reals) -> float:
        """Return at which part of the rounds beyond 300 the error was below that of raw.

        nan if there are no more.
        """
        before = running_error(self.raw, self.outcomes)[EARLY:]
        if not len(before):
            return math.nan
        rows = [running_error(row, self.outcomes)[EARLY:] for row in np.atleast_2d(forecasts)]
        return float(np.mean(np.array(rows) < before))

    def _ece(self, forecasts: Reals) -> float:
        return binned_calibration_error(forecasts, self.outcomes, buckets=BUCKETS)


def diagnose(
    source: Genotypes,
    *,
    seeds: Sequence[int] = (1,),
    order: int = 1,
    penalties: Sequence[float] = PENALTIES,
    progress: Progress | None = None,
) -> Diagnosis:
    """Run the experiment: learn, choose the penalty, recalibrate.

    Parameters
    ----------
    source
        A :class:`~calibrant.experiments.genotypes.BedFile` or a :class:`PackedFile`.
    seeds
        Of the recalibrators' draws.
    order
        Seed of the order in which patients come.
    penalties
        From which the one with the least progressive hinge loss is chosen.
    progress
        Called with how many patients were seen and how many there are.
    """
    raced = race(source, penalties=penalties, seed=order, progress=progress)
    raw, outcomes = raced.forecasts[raced.best], raced.outcomes
    default = [Calibrant(seed=seed).replay(raw, outcomes) for seed in seeds]
    plain = [Recalibrator(seed=seed).replay(raw, outcomes) for seed in seeds]
    return Diagnosis(
        raced,
        np.array([run.forecast for run in default]),
        np.array([run.mean for run in default]),
        np.array([run.forecast for run in plain]),
    )


def running_error(forecasts: ArrayLike, outcomes: ArrayLike, buckets: int = BUCKETS) -> Reals:
    """Return the binned calibration error of the first t rounds, for each t.

    Examples
    --------
    >>> running_error([0.5, 0.5, 0.9], [1, 0, 1], buckets=2).round(3)
    array([0.5  , 0.   , 0.033])
    """
    values, binary = check.probabilities(forecasts), check.outcomes(outcomes)
    rows = np.arange(check.same_length(forecasts=values, outcomes=binary))
    gaps = np.zeros((len(rows), buckets))
    gaps[rows, buckets_of(values, buckets)] = values - binary
    return np.asarray(np.abs(np.cumsum(gaps, axis=0)).sum(axis=1) / (rows + 1))
