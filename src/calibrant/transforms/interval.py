"""Interval forecasts that are judged at their better end."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.core import check
from calibrant.kernels.transforms import interval
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.bucket_hedge import FINEST


@transforms.add("interval")
@dataclass(frozen=True)
class Interval(Transform):
    """Announce a point, or an interval between the midpoints of two neighbouring cells.

    An interval is judged at the end that is nearer to the outcome; with this much freedom a
    deterministic rule is calibrated, and fast.  The forecast is the middle of the interval;
    ``online().interval_one(raw)`` gives the interval itself.

    Parameters
    ----------
    resolution
        Number m of cells of [0, 1], of equal length.

    Notes
    -----
    Judged at the better ends, C1 <= 1/(2m) + m/T on every sequence of outcomes.  No promise about
    the C1 of the middles.

    References
    ----------
    Gupta and Ramdas (2022), "Faster online calibration without randomization: interval forecasts
    and the power of two choices".

    Examples
    --------
    >>> online = Interval(resolution=10).online()
    >>> for outcome in (1, 1, 0, 1):
    ...     online.learn_one(0.42, outcome)
    >>> online.interval_one(0.42)
    (0.55, 0.65)
    """

    name = "interval"
    kernel = interval.KERNEL
    notes = interval.NOTES
    reference = "Gupta and Ramdas 2022"
    guarantee = "C1 at the better ends <= 1/(2m) + m/T"
    assumption = "none"
    cost = "O(m) a round at worst"

    resolution: int = 10

    def __post_init__(self) -> None:
        self._set(resolution=check.whole(self.resolution, "resolution", low=1, high=FINEST))

    def fresh(self) -> State:
        """Return empty cells."""
        return [self.resolution, *[0] * (2 * self.resolution + 2)]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [interval.CELLS]

    def interval(self, words: State, raw: float) -> tuple[float, float]:
        """Return the interval that is announced for a raw forecast."""
        start = min(int(raw * self.resolution), self.resolution - 1)
        low, high = interval.search(words, 0, start)
        return (2 * low + 1) / (2 * self.resolution), (2 * high + 1) / (2 * self.resolution)
