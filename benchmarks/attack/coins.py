"""Adversaries who know the source and all draws so far, and want the next coin."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from benchmarks.attack.registry import attack
from calibrant import Recalibrator
from calibrant.kernels.coin import GAMMA, MASK, coin
from calibrant.recalibrate.secret import SAFE, coins_from

SEEN = 1 << 12
WINDOW = 64
PLACES = 1 << 20
BITS: Any = np.uint64(1) << np.arange(WINDOW, dtype=np.uint64)[::-1]


def searched(bits: Any) -> int | None:
    """Look for a run of bits among the first places of the earlier coins' cycle."""
    windows = np.lib.stride_tricks.sliding_window_view(bits, WINDOW) @ BITS
    table = dict(zip(windows.tolist(), range(len(windows)), strict=True))
    clocks = np.arange(WINDOW, dtype=np.uint64)
    for step in range(0, PLACES, len(windows)):
        guessed: Any = coin(np.uint64(step * GAMMA & MASK), clocks)  # type: ignore[arg-type]
        found = table.get(int((guessed >= 0.5).astype(np.uint64) @ BITS))
        if found is not None:
            return step - found
    return None


@attack(
    "search for the key of coins",
    "a key is found that predicts the coming coins, from 4,096 highest bits of coins",
    tries=100,
    quick=2,
)
def keys(tries: int, rng: random.Random) -> int:
    """Take every place of a cycle for a key, as finds the key of earlier coins."""
    place = rng.randrange(SEEN, PLACES)
    clocks = np.arange(SEEN, dtype=np.uint64)
    old: Any = coin(np.uint64(place * GAMMA & MASK), clocks)  # type: ignore[arg-type]
    # An attack that finds nothing anywhere would show nothing.
    damage = int(searched((old >= 0.5).astype(np.uint64)) != place)
    for _ in range(tries):
        secret = rng.randbytes(16)
        bits = (coins_from(secret, SAFE, rng.randrange(20), 0, SEEN) >= 0.5).astype(np.uint64)
        damage += searched(bits) is not None
    return damage


@attack(
    "outcomes corrected later",
    "C2 of the draws is above what the certificate promises",
    tries=50,
    quick=2,
)
def late_truth(tries: int, rng: random.Random) -> int:
    """Report 0 at once, and the truth much later, as broke bounds that counted no corrections."""
    damage = 0
    for _ in range(tries):
        model = Recalibrator("foster_hart", resolution=10, buckets=1)
        closed = [model.observe(model.forecast(0.5), 0) for _ in range(600)]
        for ticket in closed:
            if ticket.value < 0.5:
                model.correct(ticket, 1)
        told = model.certificate()
        limit = told.promised("C2")
        damage += limit is not None and told.c2 > limit
    return damage
