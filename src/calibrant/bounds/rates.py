"""The paper's table of rates."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.bounds.resolution import target
from calibrant.core import check


@dataclass(frozen=True)
class Rate:
    """One column of the table: orders of growth without constants.

    Attributes
    ----------
    subroutine
        The calibrator inside Algorithm 1.
    time, space
        Work per round and memory.
    calibration
        How far the calibration error is above its limit.
    advantage
        What the paper says in favour of the calibrator.
    """

    subroutine: str
    time: float
    space: float
    calibration: float
    advantage: str


def paper_table(epsilon: float, rounds: int) -> tuple[Rate, Rate]:
    """Return Table 1 of the paper, evaluated at epsilon and T rounds.

    Notes
    -----
    A calibrator with rate ``f(epsilon)/sqrt(T)`` has ``f(epsilon)/sqrt(epsilon T)`` inside
    Algorithm 1 with ``1/epsilon`` buckets: ``f = 1/epsilon`` for regret minimisation and
    ``1/sqrt(epsilon)`` for approachability.  The time of the former is reached by regret
    matching on adjacent swaps only; all pairs need a linear system of that size.

    References
    ----------
    Kuleshov and Ermon (2017), Table 1.

    Examples
    --------
    >>> for rate in paper_table(0.1, 10_000):
    ...     print(f"{rate.subroutine}: {rate.calibration:.3f}")
    regret minimisation: 0.316
    Blackwell approachability: 0.100
    """
    e, T = target(epsilon), check.whole(rounds, "rounds", low=1)
    slow, fast = 1.0 / (e * math.sqrt(e * T)), 1.0 / (e * math.sqrt(T))
    return (
        Rate("regret minimisation", 1.0 / e, 1.0 / e**2, slow, "simplicity"),
        Rate("Blackwell approachability", math.log(1.0 / e), 1.0 / e**2, fast, "efficiency"),
    )
