"""Bucket means, then calibration with little regret to them."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.registry import transforms
from calibrant.transforms.base import Transform
from calibrant.transforms.bucket_means import BucketMeans
from calibrant.transforms.chain import Composed
from calibrant.transforms.recalibrate_regret import RecalibrateRegret


@transforms.add("cascade")
@dataclass(frozen=True)
class Cascade(Composed):
    """Calibeat first, then calibrate: refinement and calibration with few cells.

    Parameters
    ----------
    buckets
        Number of buckets of raw forecasts, as in :class:`~calibrant.transforms.BucketMeans`.
    resolution, seed
        As in :class:`~calibrant.transforms.RecalibrateRegret`.

    Notes
    -----
    In expectation over the draws the Brier score is at most the refinement of the buckets plus
    B (1 + ln(T/B)) / T plus O(1/m + sqrt(m/T)), and C1 is O(1/m + sqrt(m/T)).

    References
    ----------
    Foster and Hart (2023), "Calibeating"; Okoroafor, Kleinberg and Sun (2024), "Faster
    recalibration of an online predictor via approachability".

    Examples
    --------
    >>> online = Cascade().online()
    >>> _ = online.replay([0.9] * 100, [0] * 100)
    >>> online.predict_one(0.9)
    0.0
    """

    name = "cascade"
    reference = "Foster and Hart 2023; Okoroafor, Kleinberg and Sun 2024"
    guarantee = "E Brier <= refinement of the buckets + O(1/m + sqrt(m/T)); E C1 likewise"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(log m) a round"

    buckets: int = 20
    resolution: int = 20
    seed: int = 0

    @property
    def parts(self) -> tuple[Transform, Transform]:
        """Bucket means and what calibrates them."""
        return BucketMeans(self.buckets), RecalibrateRegret(self.resolution, self.seed)
