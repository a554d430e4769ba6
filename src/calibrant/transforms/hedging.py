"""Online Platt scaling, then a calibrator in each bucket."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.registry import transforms
from calibrant.transforms.base import Transform
from calibrant.transforms.bucket_hedge import BucketHedge
from calibrant.transforms.chain import Composed
from calibrant.transforms.online_platt import platt_of


@transforms.add("hedging")
@dataclass(frozen=True)
class Hedging(Composed):
    """Draw calibrated forecasts in each bucket of online Platt forecasts (HOPS).

    Parameters
    ----------
    buckets
        Number of buckets of Platt's forecasts, of equal length.
    resolution, seed
        As in :class:`~calibrant.transforms.BucketHedge`.
    gamma, rho, clip
        As in :class:`~calibrant.transforms.OnlinePlatt`.

    Notes
    -----
    In expectation over the draws C2 <= 1/(4 N^2) + cells (1 + ln(T / cells)) / T with
    cells = buckets (N + 1), against every adversary that does not foresee the draw.  The paper has
    Foster's rule with slack in each bucket; the average gap used here has no slack.

    References
    ----------
    Gupta and Ramdas (2023), "Online Platt Scaling with Calibeating".

    Examples
    --------
    >>> online = Hedging(seed=7).online()
    >>> told = online.replay([0.9] * 1000, [0, 1] * 500)
    >>> abs(float(told.mean()) - 0.5) < 0.1
    True
    """

    name = "hedging"
    reference = "Gupta and Ramdas 2023"
    guarantee = "E C2 <= 1/(4N^2) + B(N+1)(1 + ln(T/(B(N+1))))/T"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(N) a round at worst, O(1) as a rule"

    buckets: int = 10
    resolution: int = 10
    seed: int = 0
    gamma: float = 0.1
    rho: float = 100.0
    clip: float = 0.01

    @property
    def parts(self) -> tuple[Transform, Transform]:
        """Platt scaling and the calibrators."""
        return platt_of(self), BucketHedge(self.buckets, self.resolution, self.seed)
