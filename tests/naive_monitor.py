"""Slow and obvious versions of what a monitor computes: products, no logarithms, all starts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

Rounds = Sequence[tuple[float, int]]
SHIFTS = (4 / 5, 2 / 3, 1 / 2, 1 / 4, 5 / 4, 3 / 2, 2, 4)
SLOPES = (-1, 0, 1 / 2, 3 / 4, 5 / 4, 3 / 2)
LOCAL = (1 / 3, 2 / 3, 3 / 2, 3)


def paid(q: float, forecast: float, outcome: int) -> float:
    return q / forecast if outcome else (1 - q) / (1 - forecast)


def rate(rounds: Rounds) -> float:
    wealth, ones = 1.0, 0
    for n, (forecast, outcome) in enumerate(rounds):
        wealth *= paid((ones + 0.5) / (n + 1), forecast, outcome)
        ones += outcome
    return wealth


def shift(rounds: Rounds) -> float:
    wealth, turn, firmness = 1.0, 0.0, 1.0
    for forecast, outcome in rounds:
        q = 1 / (1 + math.exp(-turn) * (1 - forecast) / forecast)
        wealth *= paid(q, forecast, outcome)
        firmness += q * (1 - q)
        turn += (outcome - q) / firmness
    return wealth


def line(rounds: Rounds) -> float:
    wealth, slope, intercept = 1.0, 1.0, 0.0
    a, b, c = 1.0, 0.0, 1.0
    for forecast, outcome in rounds:
        x = math.log(forecast / (1 - forecast))
        q = 1 / (1 + math.exp(-slope * x - intercept))
        wealth *= paid(q, forecast, outcome)
        a, b, c = a + q * (1 - q) * x * x, b + q * (1 - q) * x, c + q * (1 - q)
        slope += (outcome - q) * (c * x - b) / (a * c - b * b)
        intercept += (outcome - q) * (a - b * x) / (a * c - b * b)
    return wealth


def bucket_wealth(rounds: Rounds, buckets: int) -> list[float]:
    split = [
        [r for r in rounds if min(int(r[0] * buckets), buckets - 1) == j] for j in range(buckets)
    ]
    return [(rate(part) + shift(part)) / 2 for part in split]


LINES = [
    *((factor, 1.0) for factor in (4 / 5, 2 / 3, 4 / 9, 5 / 4, 3 / 2, 9 / 4)),
    *((1.0, power) for power in (1 / 2, 3 / 4, 7 / 8, 9 / 8, 5 / 4, 3 / 2)),
    *((factor, power) for factor in (2 / 3, 3 / 2) for power in (3 / 4, 5 / 4)),
]
"""Factors and powers of the odds on which there is money from the start."""


def grid(rounds: Rounds) -> float:
    """What fixed lines have together, and one purse from which nothing is bet."""
    money = [1 / (len(LINES) + 1)] * (len(LINES) + 1)
    for n, (forecast, outcome) in enumerate(rounds, 1):
        share, total = 1 / (n + 2000), sum(money)
        money = [(1 - share) * each + share * total / len(money) for each in money]
        for k, (factor, power) in enumerate(LINES, 1):
            odds = factor * (forecast / (1 - forecast)) ** power
            money[k] *= paid(odds / (1 + odds), forecast, outcome)
    return sum(money)


def wealth(rounds: Rounds, buckets: int, stakes: str = "grid") -> float:
    each = bucket_wealth(rounds, buckets)
    mean, product = sum(each) / buckets, math.prod(each)
    if stakes == "learned":
        return (mean + product + line(rounds)) / 3
    return 0.3 * mean + 0.05 * (product + line(rounds)) + 0.6 * grid(rounds)


def alternatives(forecast: float, buckets: int) -> Iterator[tuple[float, float]]:
    """Yield what each bet of the change alarm says, with its weight."""
    odds = forecast / (1 - forecast)
    turned = [odds * s for s in SHIFTS] + [odds**s for s in SLOPES]
    yield from ((o / (1 + o), 1 / (2 * len(turned))) for o in turned)
    yield from ((odds * s / (1 + odds * s), 1 / (8 * buckets)) for s in LOCAL)


def best_start(rounds: Rounds) -> tuple[float, int]:
    """Return the largest weighted product over alternatives and starts, and that start (M = 1)."""
    found = []
    for k in range(len(SHIFTS) + len(SLOPES) + len(LOCAL)):
        for start in range(len(rounds)):
            value = 1.0
            for forecast, outcome in rounds[start:]:
                q, weight = list(alternatives(forecast, 1))[k]
                value *= paid(q, forecast, outcome)
            found.append((value * weight, start))
    return max(found)
