"""Calibration and regret to the raw forecast, controlled together."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.core import check
from calibrant.kernels.transforms import regret
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.bucket_hedge import FINEST, seeded


@transforms.add("recalibrate_regret")
@dataclass(frozen=True)
class RecalibrateRegret(Transform):
    """Draw grid points that are calibrated, and lose little to the raw forecast.

    One set of grid points serves all raw forecasts, so it learns from few rounds.  It matches the
    raw forecast's loss where Algorithm 1 may beat it.

    Parameters
    ----------
    resolution
        Number m of steps of the grid 0, 1/m, ..., 1.
    seed
        What the draws depend on.  Whoever knows it foresees them: against a real adversary
        take ``secrets.randbits(63)``.

    Notes
    -----
    In expectation over the draws both C1 and the average regret in squared loss are
    O(1/m + sqrt(m/T)), with the step sqrt((m + 2) / t) in round t.  Each round moves along the
    coordinates by at most 1/m + 8/m^2 in expectation, for both outcomes; the tests check that.

    References
    ----------
    Okoroafor, Kleinberg and Sun (2024), "Faster recalibration of an online predictor via
    approachability".

    Examples
    --------
    >>> online = RecalibrateRegret(resolution=10).online()
    >>> online.predict_one(0.33)
    0.3
    """

    name = "recalibrate_regret"
    kernel = regret.KERNEL
    notes = regret.NOTES
    reference = "Okoroafor, Kleinberg and Sun 2024"
    guarantee = "E C1, E regret = O(1/m + sqrt(m/T))"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(log m) a round"

    resolution: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        self._set(
            resolution=check.whole(self.resolution, "resolution", low=1, high=FINEST),
            seed=seeded(self.seed),
        )

    def fresh(self) -> State:
        """Return coordinates of zero."""
        return [self.resolution, self.seed, 0, 0.0, *[0.0] * (self.resolution + 1), 0]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [regret.RESOLUTION, regret.KEY]
