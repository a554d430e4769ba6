"""Adaptive conformal inference on the level: quantiles of the last scores, at a level that moves.

The state is the head of :mod:`calibrant.kernels.intervals`, the level, and the last scores twice:
in the order in which they came, and sorted.
"""

from __future__ import annotations

import math
from typing import Any, Final

from calibrant.kernels.intervals import (
    ALPHA,
    HEAD,
    INFINITY,
    RADIUS,
    ROUNDS,
    STEP,
    assemble,
    notice,
)
from calibrant.kernels.quantiles import first_at_least

__all__ = ["ACI_QUANTILE"]

LEVEL: Final = HEAD
"""Which part of scores the next radius may miss; outside [0, 1] now and then."""
WINDOW: Final = HEAD + 1
"""How many scores are kept."""
RING: Final = HEAD + 2


def learn_aci_quantile(state: Any, radius: float, score: float) -> None:
    """Move the level by what it met, keep the score, and take the quantile."""
    miss = notice(state, radius, score)
    state[LEVEL] += state[STEP] * (state[ALPHA] - miss)
    size = keep(state, score)
    state[RADIUS] = quantile(state, size)


def keep(state: Any, score: float) -> int:
    """Keep a score in the place of the oldest; return how many there are."""
    window, count = int(state[WINDOW]), int(state[ROUNDS])
    place, ordered = RING + (count - 1) % window, RING + window
    size = min(count - 1, window)
    if size == window:
        gone = first_at_least(state, ordered, size, state[place])
        for k in range(ordered + gone, ordered + size - 1):
            state[k] = state[k + 1]
        size -= 1
    state[place] = score
    k = ordered + size
    while k > ordered and state[k - 1] > score:
        state[k] = state[k - 1]
        k -= 1
    state[k] = score
    return size + 1


def quantile(state: Any, size: int) -> float:
    """Return the score that all but the level's part of the next ones should not exceed.

    Of n scores that come in any order alike with the next one, it is the one of rank
    ``(1 - level) (n + 1)``, rounded up; infinite if there are too few.
    """
    level = state[LEVEL]
    if level <= 0.0 or level >= 1.0:
        return INFINITY if level <= 0.0 else -INFINITY
    rank = math.ceil((1.0 - level) * (size + 1))
    if rank > size:
        return INFINITY
    found: float = state[RING + int(state[WINDOW]) + rank - 1]
    return found


ACI_QUANTILE: Final = assemble("aci_quantile", learn_aci_quantile)
