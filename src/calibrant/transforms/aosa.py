"""Almost one step ahead: deterministic, close to calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.core import check
from calibrant.kernels.transforms import aosa
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.bucket_hedge import FINEST


@transforms.add("aosa")
@dataclass(frozen=True)
class AOSA(Transform):
    """Announce grid points that are close, round by round, to perfectly calibrated ones.

    Deterministic, and safe against an adversary who sees everything.  Among the grid points that
    the rule allows it takes one near the raw forecast.

    Parameters
    ----------
    resolution
        Number m of steps of the first grid, for m^2 rounds; then twice as many, and so on.
    limit
        Number of steps at most.

    Notes
    -----
    In an epoch of m^2 rounds the l1 distance to the nearest calibrated sequence is at most
    m + m - 1, so about 4 sqrt(T) in all until the limit is reached.  :meth:`distance` gives the
    bound of a run, which is usually much smaller.  No promise about C1, which no deterministic
    rule can give.

    References
    ----------
    Arunachaleswaran, Collina, Roth and Shi (2025), "An elementary predictor obtaining
    2 sqrt(T) + 1 distance to calibration".

    Examples
    --------
    >>> transform = AOSA()
    >>> online = transform.online()
    >>> told = online.replay([0.5] * 100, [0, 1] * 50)
    >>> transform.distance(online.words) <= 2 * (4 + 8 + 16)
    True
    """

    name = "aosa"
    kernel = aosa.KERNEL
    notes = aosa.NOTES
    reference = "Arunachaleswaran, Collina, Roth and Shi 2025"
    guarantee = "distance to calibration <= 2m - 1 in each epoch of m^2 rounds"
    assumption = "none"
    cost = "O(log m) a round, O(m) memory"

    resolution: int = 4
    limit: int = 512

    def __post_init__(self) -> None:
        first = check.whole(self.resolution, "resolution", low=1, high=FINEST)
        self._set(resolution=first, limit=check.whole(self.limit, "limit", low=first, high=FINEST))

    def fresh(self) -> State:
        """Return biases of zero."""
        first = self.resolution
        return [self.limit, first, first * first, 0.0, 0.0, *[0] * (self.limit + 2)]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [aosa.LIMIT]

    def limits(self) -> dict[int, tuple[int, int]]:
        """Return where positions may be."""
        return {aosa.STEPS: (1, self.limit), aosa.LEFT: (1, self.limit * self.limit)}

    def distance(self, words: Sequence[Any]) -> float:
        """Return an upper bound of the run's l1 distance to calibration, summed over rounds."""
        steps = words[aosa.STEPS]
        present = sum(abs(bias) for bias in words[aosa.BIASES : aosa.BIASES + steps + 1])
        found: float = words[aosa.ERROR] + words[aosa.DISTANCE] + present / steps
        return found
