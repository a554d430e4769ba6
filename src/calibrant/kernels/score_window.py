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
    recount,
    replace_first,
)
from calibrant.kernels.layout import FIXED, STATE, Section
from calibrant.kernels.quantiles import first_at_least

OWN_HEAD: Final = Section(HEAD)
LEVEL: Final = OWN_HEAD.real(
    "LEVEL", STATE, "Which part of scores the next radius may miss; outside [0, 1] now and then."
)
WINDOW: Final = OWN_HEAD.real("WINDOW", FIXED, "How many scores are kept.")
RING: Final = len(OWN_HEAD)
"""Where the last scores start, as they came; as many sorted ones follow."""


def learn_aci_quantile(state: Any, at: int, radius: float, score: float) -> None:
    """Move the level by what it met, keep the score, and take the quantile."""
    miss = notice(state, at, radius, score)
    state[at + LEVEL] += state[at + STEP] * (state[at + ALPHA] - miss)
    size = keep(state, at, score)
    state[at + RADIUS] = quantile(state, at, size)


def amend_aci_quantile(state: Any, at: int, radius: float, before: float, after: float) -> None:
    """Move the level by the difference; replace the score if it is among the last ones."""
    change = recount(state, at, radius, before, after)
    state[at + LEVEL] -= state[at + STEP] * change
    window = int(state[at + WINDOW])
    size = min(int(state[at + ROUNDS]), window)
    if replace_first(state, at + RING, size, before, after):
        ordered = at + RING + window
        drop(state, ordered, size, before)
        insert(state, ordered, size - 1, after)
    state[at + RADIUS] = quantile(state, at, size)


def keep(state: Any, at: int, score: float) -> int:
    """Keep a score in the place of the oldest; return how many there are."""
    window, count = int(state[at + WINDOW]), int(state[at + ROUNDS])
    place, ordered = at + RING + (count - 1) % window, at + RING + window
    size = min(count - 1, window)
    if size == window:
        drop(state, ordered, size, state[place])
        size -= 1
    state[place] = score
    insert(state, ordered, size, score)
    return size + 1


def drop(state: Any, ordered: int, size: int, score: float) -> None:
    """Take a score out of the sorted ones."""
    gone = first_at_least(state, ordered, size, score)
    for k in range(ordered + gone, ordered + size - 1):
        state[k] = state[k + 1]


def insert(state: Any, ordered: int, size: int, score: float) -> None:
    """Put a score among the sorted ones."""
    k = ordered + size
    while k > ordered and state[k - 1] > score:
        state[k] = state[k - 1]
        k -= 1
    state[k] = score


def quantile(state: Any, at: int, size: int) -> float:
    """Return the score that all but the level's part of the next ones should not exceed.

    Of n scores that come in any order alike with the next one, it is the one of rank
    ``(1 - level) (n + 1)``, rounded up; infinite if there are too few.
    """
    level = state[at + LEVEL]
    if level <= 0.0 or level >= 1.0:
        return INFINITY if level <= 0.0 else -INFINITY
    rank = math.ceil((1.0 - level) * (size + 1))
    if rank > size:
        return INFINITY
    found: float = state[at + RING + int(state[at + WINDOW]) + rank - 1]
    return found


ACI_QUANTILE: Final = assemble("aci_quantile", learn_aci_quantile, amend_aci_quantile)
