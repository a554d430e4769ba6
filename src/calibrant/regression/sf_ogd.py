"""Scale-free online gradient descent on the pinball loss."""

from __future__ import annotations

from calibrant.kernels.intervals import SF_OGD
from calibrant.regression.interval_method import IntervalMethod, scale_of
from calibrant.regression.registry import interval_methods


@interval_methods.add("sf_ogd")
class ScaleFree(IntervalMethod):
    """Steps of ``scale / sqrt(3 G)``, where G adds up the squares of error less target.

    Parameters
    ----------
    scale
        What the largest score is taken to be; None takes the largest so far.
    """

    name = "sf_ogd"
    guarantee = "|coverage - target| falls as 1/sqrt(T); from the steps that were made"
    assumption = "none: any sequence, every time"
    reference = "Bhatnagar, Wang, Xiong and Bai (2023), Improved online conformal prediction"
    program = SF_OGD

    def __init__(self, coverage: float, *, scale: float | None = None) -> None:
        self._options = {"scale": scale_of(scale)}
        self._start(coverage, 1.0, scale_of(scale))
