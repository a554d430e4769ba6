"""The obvious way to score forecasts of numbers, a round at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence


def scores(
    quantiles: Sequence[Sequence[float]], outcomes: Sequence[float], levels: Sequence[float]
) -> dict[str, list[float]]:
    """Coverage and pinball loss of each level; no atoms, infinite quantiles without a loss."""
    told: dict[str, list[float]] = {"coverage": [], "pinball": [], "infinite": []}
    for k, level in enumerate(levels):
        hits = infinite = 0
        total = 0.0
        for row, y in zip(quantiles, outcomes, strict=True):
            q = row[k]
            hits += y <= q
            if math.isinf(q):
                infinite += 1
            else:
                total += level * (y - q) if y > q else (1.0 - level) * (q - y)
        told["coverage"].append(hits / len(outcomes))
        told["infinite"].append(infinite)
        finite = len(outcomes) - infinite
        told["pinball"].append(total / finite if finite else math.nan)
    return told


def stretches(hits: Sequence[bool], window: int) -> list[float]:
    """The share of hits in each complete stretch of rounds."""
    starts = range(0, len(hits) - window + 1, window)
    return [sum(hits[start : start + window]) / window for start in starts]
