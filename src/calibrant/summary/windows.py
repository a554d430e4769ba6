"""Calibration error window by window: does it hold all the time?"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.kernels import tallies
from calibrant.summary.collector import Collector
from calibrant.summary.pieces import NAMES, Windows

ENOUGH_WINDOWS: Final = 8
"""Windows of one length that there should be before longer ones are chosen."""


def windows_of(collector: Collector) -> Windows:
    """Return the errors of the longest windows of which there are enough."""
    level = _level(collector.rounds)
    window = tallies.WINDOW << level
    group, shown, worst, where = collector.windows(level)
    number = collector.rounds // window
    starts = np.arange(0, number, group, dtype=np.int64)
    first, last = starts * window + 1, np.minimum(starts + group, number) * window
    found = zip(NAMES, worst.tolist(), where.tolist(), strict=True)
    return Windows(
        window=window if number else 0,
        first=first,
        last=last,
        c2_raw=shown[:, 0],
        c2_forecast=shown[:, 1],
        c2_mean=shown[:, 2],
        worst={n: (w * window + 1, (w + 1) * window, e) for n, e, w in found if number},
    )


def places(collector: Collector, windows: Windows) -> dict[str, Any]:
    """Return how many windows there are, and where the last and the worst ones lie."""
    number = collector.rounds // windows.window if windows.window else 0
    latest = windows.latest.get("raw")
    return {
        "number": number,
        "last": None if latest is None else _span(latest),
        "worst": {name: _span(place) for name, place in windows.worst.items()},
    }


def _span(place: tuple[int, int, float]) -> dict[str, int]:
    return {"first": place[0], "last": place[1]}


def _level(rounds: int) -> int:
    """Return the longest windows of which there are enough, or else the shortest."""
    enough = [
        level
        for level in range(tallies.LEVELS)
        if rounds >= ENOUGH_WINDOWS * (tallies.WINDOW << level)
    ]
    return max(enough, default=0)
