"""What is held against the bars: anything with ``replay``, ``forecast`` and ``observe``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Factory", "find", "resolution"]

Factory = Callable[..., Any]
"""Called with ``seed``; returns a new model."""


def find(name: str) -> Factory:
    """Return the default of the package, or Algorithm 1 with the calibrator of that name."""
    import calibrant

    if name == "calibrant":
        if (default := getattr(calibrant, "Calibrant", None)) is None:
            raise SystemExit("this version of the package has no Calibrant: name a calibrator")
        return lambda seed: default(seed=seed).compile()
    return lambda seed: calibrant.Recalibrator(name, seed=seed).compile()


def resolution(model: Any) -> int:
    """Return N, the reciprocal of the distance between neighbouring grid values, at least 20.

    A rule whose cells split begins with fewer, and is held to what a grid of 20 steps must reach.
    """
    return max(int(model.calibrator.resolution), 20)
