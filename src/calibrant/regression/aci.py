"""Adaptive conformal inference on the radius."""

from __future__ import annotations

from calibrant.kernels.intervals import ACI
from calibrant.regression.interval_method import IntervalMethod, above, scale_of
from calibrant.regression.registry import interval_methods


@interval_methods.add("aci")
class AdaptiveConformal(IntervalMethod):
    """After each score, ``radius += step scale (missed - (1 - coverage))``.

    Parameters
    ----------
    step
        How far the radius moves, as a part of the scale.
    scale
        What the largest score is taken to be; None takes the largest so far.
    """

    name = "aci"
    guarantee = "|coverage - target| <= (D + eta)/(eta T), eta = step scale, scores within D"
    assumption = "none: any sequence, every time"
    reference = "Gibbs and Candes (2021), Adaptive conformal inference under distribution shift"
    program = ACI

    def __init__(self, coverage: float, *, step: float = 0.05, scale: float | None = None) -> None:
        self._options = {"step": above(step, "step"), "scale": scale_of(scale)}
        self._start(coverage, above(step, "step"), scale_of(scale))
