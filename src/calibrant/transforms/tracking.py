"""Online Platt scaling, then bucket means."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.registry import transforms
from calibrant.transforms.base import Transform
from calibrant.transforms.bucket_means import BucketMeans
from calibrant.transforms.chain import Composed
from calibrant.transforms.online_platt import platt_of


@transforms.add("tracking")
@dataclass(frozen=True)
class Tracking(Composed):
    """Announce the mean outcome of past rounds whose online Platt forecast was alike (TOPS).

    Parameters
    ----------
    buckets
        Number of buckets of Platt's forecasts, of equal length.
    gamma, rho, clip
        As in :class:`~calibrant.transforms.OnlinePlatt`.

    Notes
    -----
    The Brier score is at most the refinement of Platt's bucketed forecasts plus
    B (1 + ln(T/B)) / T, whatever the outcomes.  No promise of calibration.

    References
    ----------
    Gupta and Ramdas (2023), "Online Platt Scaling with Calibeating".

    Examples
    --------
    >>> online = Tracking().online()
    >>> _ = online.replay([0.9] * 20, [0, 1] * 10)
    >>> 0.0 < online.predict_one(0.9) < 1.0
    True
    """

    name = "tracking"
    reference = "Gupta and Ramdas 2023"
    guarantee = "Brier <= refinement of Platt's buckets + B(1 + ln(T/B))/T"
    assumption = "none"
    cost = "O(1) a round"

    buckets: int = 10
    gamma: float = 0.1
    rho: float = 100.0
    clip: float = 0.01

    @property
    def parts(self) -> tuple[Transform, Transform]:
        """Platt scaling and bucket means."""
        return platt_of(self), BucketMeans(buckets=self.buckets)
