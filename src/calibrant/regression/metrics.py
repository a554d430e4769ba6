"""How good forecasts of numbers were: PIT, coverage, pinball loss and CRPS.

Forecasts are :class:`Distributions`, or a table of quantiles, a round a row and a level a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.place import buckets_of
from calibrant.errors import InvalidInput, InvalidType
from calibrant.regression.distribution import Distribution, Distributions, finite, target_levels


@dataclass(frozen=True, eq=False)
class PitHistogram:
    """How often the PIT fell into each of several intervals of equal width.

    Attributes
    ----------
    edges, counts
        Borders of the intervals, and how many rounds fell between them.
    """

    edges: Reals
    counts: Words

    @classmethod
    def of(cls, counts: Words) -> Self:
        """Return the histogram of these counts, which fell into intervals of equal width."""
        return cls(np.arange(len(counts) + 1) / len(counts), counts)

    @property
    def share(self) -> Reals:
        """Which part of rounds fell into each interval; calibrated forecasts have equal ones."""
        return np.asarray(self.counts / max(1, int(self.counts.sum())))

    @property
    def error(self) -> float:
        """The sum of squared differences to equal shares."""
        return float(((self.share - 1.0 / len(self.counts)) ** 2).sum())


def pit(forecasts: Distributions, outcomes: ArrayLike, *, seed: int | None = 0) -> Reals:
    """Return the PIT of each outcome: where it lies in its forecast, from 0 to 1.

    On an atom the PIT is drawn evenly from what the atom covers (randomised PIT), by the
    generator of this ``seed``; None takes the middle of the atom instead.

    >>> dry = Distributions.from_samples([[0.0, 0.0, 0.0, 1.0]])
    >>> pit(dry, [0.0], seed=None), pit(dry, [2.0])
    (array([0.375]), array([1.]))
    """
    given = _distributions(forecasts)
    if seed is None:
        return given.pit(outcomes)
    generator = np.random.default_rng(check.whole(seed, "seed"))
    return given.pit(outcomes, generator.random(len(given)))


def pit_histogram(
    forecasts: Distributions, outcomes: ArrayLike, *, intervals: int = 20, seed: int | None = 0
) -> PitHistogram:
    """Count the PIT in intervals of equal width: flat if the forecasts are calibrated.

    A cup means forecasts that are too narrow, a cap ones that are too wide, a slope a bias.

    >>> pit_histogram(Distributions.normal([0, 0], [1, 1]), [-1.0, 2.0], intervals=2).counts
    array([1, 1])
    """
    size = check.whole(intervals, "intervals", low=1)
    found = np.clip(pit(forecasts, outcomes, seed=seed), 0.0, 1.0)
    return PitHistogram.of(np.bincount(buckets_of(found, size), minlength=size))


def coverage(quantiles: Any, outcomes: ArrayLike, levels: Any = None) -> Reals:
    """Return how often outcomes were at most each quantile.

    ``quantiles`` is a table, or :class:`Distributions` with the ``levels`` to ask for.

    >>> coverage([[1.0, 3.0], [1.0, 3.0]], [2.0, 0.0]).tolist()
    [0.5, 1.0]
    """
    table, told = _table(quantiles, outcomes, levels)
    return np.asarray(over((told[:, None] <= table).sum(axis=0), len(told)))


def quantile_calibration_error(quantiles: Any, outcomes: ArrayLike, levels: Any) -> float:
    """Return the sum over levels of the squared distance of coverage from its level.

    An outcome that equals its quantile counts as covered: forecasts with atoms need
    :func:`pit_histogram`, which shares them out.

    >>> round(quantile_calibration_error([[1.0, 3.0], [1.0, 3.0]], [2.0, 0.0], [0.2, 0.8]), 3)
    0.13
    """
    table, told, wanted = _followed(quantiles, outcomes, levels)
    return float(((coverage(table, told) - wanted) ** 2).sum())


def pinball(quantiles: Any, outcomes: ArrayLike, levels: Any) -> Reals:
    """Return the mean pinball loss of each level.

    Twice its integral over all levels is the CRPS.

    >>> pinball([[1.0, 3.0]], [2.0], [0.2, 0.8]).round(3).tolist()
    [0.2, 0.2]
    """
    table, told, wanted = _followed(quantiles, outcomes, levels)
    above = told[:, None] - table
    with np.errstate(invalid="ignore"):
        losses = np.where(above > 0.0, wanted * above, (wanted - 1.0) * above)
    return np.asarray(over(losses.sum(axis=0), len(told)))


def crps(forecasts: Distributions, outcomes: ArrayLike) -> float:
    """Return the mean continuous ranked probability score, in closed form.

    >>> round(crps(Distributions.normal([0.0], [1.0]), [0.0]), 6)
    0.233695
    """
    losses = _distributions(forecasts).crps(outcomes)
    return float(over(losses.sum(), len(losses)))


def interval_score(low: ArrayLike, high: ArrayLike, outcomes: ArrayLike, coverage: float) -> float:
    """Return the mean width of intervals plus ``2/(1 - coverage)`` times what lies outside.

    >>> round(interval_score([0.0, 0.0], [1.0, 1.0], [0.5, 1.1], 0.9), 6)
    2.0
    """
    told = finite(outcomes, "outcomes")
    ends = [check.numbers(end, name, "numbers") for name, end in (("low", low), ("high", high))]
    check.same_length(low=ends[0], high=ends[1], outcomes=told)
    wanted = check.probability(coverage, "coverage")
    if wanted == 1.0:
        raise InvalidInput(f"coverage must be below 1, got {coverage!r}")
    outside = np.maximum(ends[0] - told, 0.0) + np.maximum(told - ends[1], 0.0)
    return float(over((ends[1] - ends[0] + 2.0 / (1.0 - wanted) * outside).sum(), len(told)))


def coverage_over_time(covered: ArrayLike) -> Reals:
    """Return coverage of the first rounds, for more and more of them.

    ``covered`` is 0 or 1 a round, or a table of these with a column for each level.

    >>> coverage_over_time([1, 0, 1, 1]).round(2).tolist()
    [1.0, 0.5, 0.67, 0.75]
    """
    hits = _hits(covered)
    rounds = np.arange(1, len(hits) + 1).reshape(-1, *[1] * (hits.ndim - 1))
    return np.asarray(np.cumsum(hits, axis=0) / rounds)


def windowed_coverage(covered: ArrayLike, *, window: int = 500) -> Reals:
    """Return coverage in each complete block of ``window`` rounds.

    >>> windowed_coverage([1, 0, 1, 1, 0], window=2).tolist()
    [0.5, 1.0]
    """
    hits, size = _hits(covered), check.whole(window, "window", low=1)
    blocks = len(hits) // size
    return np.asarray(hits[: blocks * size].reshape(blocks, size, *hits.shape[1:]).mean(axis=1))


def _hits(covered: ArrayLike) -> Bits:
    array = np.asarray(covered)
    if array.ndim not in (1, 2):
        raise InvalidInput(f"covered must be a column or a table, got shape {array.shape}")
    return check.outcomes(array.ravel(), "covered").reshape(array.shape)


def _distributions(forecasts: Any) -> Distributions:
    if isinstance(forecasts, Distribution):
        return forecasts.rows
    if not isinstance(forecasts, Distributions):
        raise InvalidType(f"forecasts must be Distributions, got {forecasts!r}")
    return forecasts


def _table(quantiles: Any, outcomes: ArrayLike, levels: Any) -> tuple[Reals, Reals]:
    told = finite(outcomes, "outcomes")
    if isinstance(quantiles, Distributions):
        if levels is None:
            raise InvalidInput("levels must be given with distributions, got None")
        quantiles = quantiles.quantile(target_levels(levels))
    array = np.asarray(quantiles, dtype=np.float64)
    if array.ndim != 2 or np.isnan(array).any():
        raise InvalidInput(f"quantiles must be a table of numbers, got shape {array.shape}")
    check.same_length(quantiles=array, outcomes=told)
    return array, told


def _followed(quantiles: Any, outcomes: ArrayLike, levels: Any) -> tuple[Reals, Reals, Reals]:
    wanted = target_levels(levels)
    table, told = _table(quantiles, outcomes, wanted)
    if table.shape[1] != len(wanted):
        rule = f"{len(wanted)} columns, a level each"
        raise InvalidInput(f"quantiles must have {rule}, got {table.shape[1]}")
    return table, told, wanted


def over(total: Any, rounds: int) -> Any:
    """Return a mean; nan without rounds."""
    return total / rounds if rounds else np.asarray(total) * np.nan
