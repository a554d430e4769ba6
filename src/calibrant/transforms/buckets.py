"""What past outcomes in a bucket of raw forecasts tell: their mean, means at knots, or a draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from calibrant.core import check
from calibrant.core.limits import refuse_large
from calibrant.kernels.layout import REAL_COUNT
from calibrant.kernels.portable import logit
from calibrant.kernels.transforms import hats, hedge, means
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms
from calibrant.transforms.base import Ratio, State, Transform, rules

MOST: int = 1 << 16
FINEST: Final = 1 << 12
number: Final = partial(check.whole, low=1, high=MOST)
steps: Final = partial(check.whole, low=1, high=FINEST)
seeded: Final = partial(check.whole, low=0, high=2**63 - 1)
unsigned: Final = partial(check.real, low=0.0, rule="a finite number of at least 0")


def remembered(memory: Any, name: str) -> float:
    """Return the memory of a transform that forgets, infinite for none that does not."""
    if memory is None or memory == math.inf:
        return math.inf
    return check.real(memory, name, low=1.0, rule="a number of at least 1, or None")


@transforms.add("bucket_means")
@dataclass(frozen=True)
class BucketMeans(Transform):
    """Announce the mean of the past outcomes in the raw forecast's bucket.

    Where a bucket has seen nothing, the raw forecast.

    Parameters
    ----------
    buckets
        Number of buckets, of equal length.
    memory
        How many visits a bucket remembers: at each visit the past loses one part in
        ``memory``.  Infinite (or None): nothing is forgotten.
    prior
        How many outcomes, worth the raw forecast each, are mixed into every mean.

    Notes
    -----
    Without forgetting and prior the Brier score is at most that of the best value for each bucket
    in hindsight plus (1/T) sum_j H(n_j) <= B (1 + ln(T/B)) / T, whatever the outcomes
    (*calibeating*).  No promise of calibration against an adversary: the forecast is not random.

    References
    ----------
    Foster and Hart (2023), "Calibeating: beating forecasters at their own game".

    Examples
    --------
    >>> online = BucketMeans(buckets=4, prior=1.0).online()
    >>> online.learn_one(0.9, 0)
    >>> online.predict_one(0.9)
    0.45
    """

    kernel = means.KERNEL
    checks = rules(buckets=number, memory=remembered, prior=unsigned)
    reference = "Foster and Hart 2023"
    guarantee = "Brier <= refinement of the buckets + B(1 + ln(T/B))/T"
    assumption = "no forgetting, no prior"

    buckets: int = 20
    memory: float | None = math.inf
    prior: float = 0.0

    @property
    def kept(self) -> float:
        """Which part of the past is left after a visit."""
        return 1.0 - 1.0 / (self.memory or math.inf)

    def fresh(self) -> State:
        """Return empty buckets."""
        return fresh_bank((self,))

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return constants_of_bank((self,))


def fresh_bank(members: tuple[BucketMeans, ...]) -> State:
    """Return the empty buckets of several members that share them."""
    size = members[0].buckets
    refuse_large((2 * len(members) + 1) * size)
    words: State = [size]
    words += [member.kept for member in members] + [member.prior for member in members]
    words += [j / size for j in range(size)] + [2.0]
    return words + [0.0] * (2 * len(members) * size)


def constants_of_bank(members: tuple[BucketMeans, ...]) -> list[int]:
    """Return which words of a bank come before its cells."""
    return list(range(means.KEPT + 2 * len(members) + members[0].buckets + 1))


@transforms.add("hat_means")
@dataclass(frozen=True)
class HatMeans(Transform):
    """Add to the raw forecast the mean error of the forecasts around it.

    Errors are averaged at knots, and what is added in between lies on the line between two
    knots: no steps at the borders of buckets, and within a cell forecasts still differ.  Right
    for errors of any shape, monotone or not, that is smooth at the scale of a cell.

    Parameters
    ----------
    cells
        Number of cells between knots; with ``scale="logit"`` this many for a unit of log-odds.
    memory
        How many visits a knot remembers; infinite (or None) for all of them.
    prior
        How many rounds without error each knot starts from; it keeps the raw forecast where
        little is known.
    scale
        ``"linear"``, or ``"logit"``: knots evenly on the log-odds, so finer near 0 and 1.
    clip
        With ``"logit"``, raw forecasts are moved into [clip, 1 - clip] to find their knots.

    Notes
    -----
    A relative of calibeating (Foster and Hart 2023), whose means are of outcomes in buckets.
    No promise.

    Examples
    --------
    >>> online = HatMeans(cells=10).online()
    >>> for _ in range(100):
    ...     online.learn_one(0.8, 1)
    ...     online.learn_one(0.8, 0)
    >>> round(online.predict_one(0.8), 2), round(online.predict_one(0.85), 2)
    (0.5, 0.7)
    """

    notes = 0
    checks = rules(
        cells=number,
        memory=remembered,
        prior=partial(check.real, low=1e-9, rule="a finite number above 0"),
        scale=partial(check.choice, options=("linear", "logit")),
        clip=partial(check.real, low=1e-15, high=0.49, rule="in [1e-15, 0.49]"),
    )
    fixed = hats.CELLS, hats.FORGOTTEN, hats.PRIOR, hats.SCALE, hats.SHIFT, hats.REACH
    reference = "hat functions on calibeating; Foster and Hart 2023"

    cells: int = 20
    memory: float | None = math.inf
    prior: float = 2.0
    scale: str = "linear"
    clip: float = 1e-6

    @property
    def kernel(self) -> Kernel:
        """The functions for this scale."""
        return hats.PLAIN if self.scale == "linear" else hats.LOG_ODDS

    def note_positions(self) -> list[int]:
        """Return where the cell of the last prediction is noted."""
        return [hats.CELL, hats.PART]

    def fresh(self) -> State:
        """Return knots without errors."""
        reach = -logit(self.clip)
        cells = self.cells if self.scale == "linear" else math.ceil(2.0 * reach * self.cells)
        shift = 0.0 if self.scale == "linear" else 0.5 * cells
        forgotten = 1.0 / (self.memory or math.inf)
        head = [cells, forgotten, self.prior, float(self.cells), shift, reach]
        return [*head, 0, 0.0, *[0.0] * (hats.WIDTH * (cells + 1))]

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return the limits of weights and sums of errors."""
        knots = range(hats.KNOTS, self.size, hats.WIDTH)
        errors = dict.fromkeys([knot + 1 for knot in knots], (-REAL_COUNT[1], REAL_COUNT[1]))
        return errors | dict.fromkeys(knots, REAL_COUNT)

    def ratios(self) -> list[Ratio]:
        """Return the mean error of each knot: its sum of errors over its weight and the prior."""
        knots = range(hats.KNOTS, self.size, hats.WIDTH)
        return [(knot + hats.MEAN, knot + 1, knot, self.prior) for knot in knots]

    @property
    def knots(self) -> tuple[int, str, float]:
        """What says where the knots are."""
        return self.cells, self.scale, self.clip


MOST_GAP = 1 << 62


@transforms.add("bucket_hedge")
@dataclass(frozen=True)
class BucketHedge(Transform):
    """Draw, in each bucket of raw forecasts, between two neighbouring grid points.

    Algorithm 1 of Kuleshov and Ermon with the average-gap rule, as a transform that may stand
    in a chain; for tickets, means and certificates use :class:`calibrant.Recalibrator`.

    Parameters
    ----------
    buckets
        Number of buckets, of equal length.
    resolution
        Number N of steps of the grid 0, 1/N, ..., 1.
    seed
        What the draws depend on.  Whoever knows it, or works it out of very many draws, foresees
        them: against a real adversary take :class:`calibrant.Recalibrator`, whose draws follow
        from a secret.

    Notes
    -----
    In expectation over the draws C2 <= 1/(4 N^2) + cells (1 + ln(T / cells)) / T, against every
    adversary that does not foresee the draw, where cells = buckets (N + 1).

    References
    ----------
    Foster (1999), "A proof of calibration via Blackwell's approachability theorem"; Foster and
    Hart (2021), "Forecast hedging and calibration".

    Examples
    --------
    >>> online = BucketHedge(buckets=4, resolution=10).online()
    >>> for _ in range(5):
    ...     online.learn_one(0.3, 1)
    >>> online.predict_one(0.3)
    0.9
    """

    kernel = hedge.KERNEL
    checks = rules(buckets=number, resolution=steps, seed=seeded)
    notes = 1
    reference = "Foster 1999; Foster and Hart 2021"
    guarantee = "E C2 <= 1/(4N^2) + B(N+1)(1 + ln(T/(B(N+1))))/T"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(N) a round at worst, O(1) as a rule"

    buckets: int = 10
    resolution: int = 20
    seed: int = 0

    def fresh(self) -> State:
        """Return empty cells; each bucket's search starts at its middle."""
        size, steps = self.buckets, self.resolution
        refuse_large(size * (2 * steps + 4))
        words: State = [size, steps, self.seed, 0, *[j / size for j in range(size)], 2.0]
        for j in range(size):
            # The grid point nearest to (2j + 1) / (2 size), the upper one of two.
            words += [((2 * j + 1) * steps + size) // (2 * size)] + [0] * (2 * steps + 2)
        return [*words, 0]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [*range(hedge.CLOCK), *range(hedge.EDGES, hedge.EDGES + self.buckets + 1)]

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return where searches may start, and the signs of scores at the ends of the grid."""
        cells = self.resolution + 1
        found: dict[int, tuple[float, float]] = {}
        for j in range(self.buckets):
            block = hedge.EDGES + self.buckets + 1 + (2 * cells + 1) * j
            # Scores at the ends can only point inwards: there each search ends at the latest.
            found[block] = 0, self.resolution
            found[block + 1] = 0, MOST_GAP
            found[block + 2 * cells - 1] = -MOST_GAP, 0
        return found
