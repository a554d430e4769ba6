"""In each bucket a calibrator that draws."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.core import check
from calibrant.kernels.transforms import hedge
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.bucket_means import MOST

FINEST = 1 << 12
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
        What the draws depend on.  Whoever knows it foresees them: against a real adversary
        take ``secrets.randbits(63)``.

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

    name = "bucket_hedge"
    kernel = hedge.KERNEL
    notes = hedge.NOTES
    reference = "Foster 1999; Foster and Hart 2021"
    guarantee = "E C2 <= 1/(4N^2) + B(N+1)(1 + ln(T/(B(N+1))))/T"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(N) a round at worst, O(1) as a rule"

    buckets: int = 10
    resolution: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        self._set(
            buckets=check.whole(self.buckets, "buckets", low=1, high=MOST),
            resolution=check.whole(self.resolution, "resolution", low=1, high=FINEST),
            seed=seeded(self.seed),
        )

    def fresh(self) -> State:
        """Return empty cells; each bucket's search starts at its middle."""
        size, steps = self.buckets, self.resolution
        words: State = [size, steps, self.seed, 0, *[j / size for j in range(size)], 2.0]
        for j in range(size):
            # The grid point nearest to (2j + 1) / (2 size), the upper one of two.
            words += [((2 * j + 1) * steps + size) // (2 * size)] + [0] * (2 * steps + 2)
        return [*words, 0]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [*range(hedge.CLOCK), *range(hedge.EDGES, hedge.EDGES + self.buckets + 1)]

    def limits(self) -> dict[int, tuple[int, int]]:
        """Return where searches may start, and how the ends of the grid may lean."""
        cells, found = self.resolution + 1, {}
        for j in range(self.buckets):
            block = hedge.EDGES + self.buckets + 1 + (2 * cells + 1) * j
            # The ends of the grid can only lean inwards: there each search ends at the latest.
            found[block] = 0, self.resolution
            found[block + 1] = 0, MOST_GAP
            found[block + 2 * cells - 1] = -MOST_GAP, 0
        return found


def seeded(seed: int) -> int:
    """Return a seed that fits into a word."""
    return check.whole(seed, "seed", low=0, high=2**63 - 1)
