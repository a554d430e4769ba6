"""Group scores in the slow and obvious way: exact fractions, one entry for each pair."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import pytest


class NaiveGroups:
    """Gaps and counts of every group, a bucket being a group with a prior."""

    def __init__(self, values: list[Fraction], buckets: int, prior: int) -> None:
        self.values, self.buckets, self.prior = values, buckets, prior
        self.count: dict[tuple[object, int], int] = defaultdict(int)
        self.ones: dict[tuple[object, int], int] = defaultdict(int)

    def bucket(self, raw: float) -> tuple[str, int]:
        return "bucket", max(j for j in range(self.buckets) if j / self.buckets <= raw)

    def gap(self, group: object, k: int) -> tuple[Fraction, int]:
        """Return S and n, prior included."""
        n = self.count[group, k]
        gap = self.ones[group, k] - n * self.values[k]
        if isinstance(group, tuple) and group[0] == "bucket":
            centre = Fraction(2 * group[1] + 1, 2 * self.buckets)
            return gap + self.prior * (centre - self.values[k]), n + self.prior
        return gap, n

    def average(self, groups: list[object]) -> list[Fraction]:
        pairs = [[self.gap(group, k) for group in groups] for k in range(len(self.values))]
        return [sum((s / n for s, n in row if n), Fraction(0)) for row in pairs]

    def exponential(self, groups: list[object], rate: float) -> list[float]:
        cells = range(len(self.values))
        return [
            sum(2.0 * math.sinh(rate * float(self.gap(group, k)[0])) for group in groups)
            for k in cells
        ]

    def learn(self, groups: list[object], k: int, outcome: int) -> None:
        for group in groups:
            self.count[group, k] += 1
            self.ones[group, k] += outcome

    def energy(self, group: object) -> Fraction:
        """Return the sum of S^2/n over cells, prior left out."""
        total = Fraction(0)
        for k, g in enumerate(self.values):
            if n := self.count[group, k]:
                total += (self.ones[group, k] - n * g) ** 2 / n
        return total


def check_pair(indices: tuple[int, ...], weights: tuple[float, ...], scores: list[float]) -> None:
    """Raise unless the mixture is the two-point rule's for these scores, to rounding."""
    first, last = indices[0], len(scores) - 1
    if len(indices) == 1:
        outwards = (first == 0 and scores[0] < 0) or (first == last and scores[last] > 0)
        assert abs(scores[first]) < 1e-12 or outwards
        return
    assert list(indices) == [first, first + 1]
    assert scores[first] > -1e-12
    assert scores[first + 1] < 1e-12
    share = -scores[first + 1] / (scores[first] - scores[first + 1])
    assert weights[0] == pytest.approx(float(share), rel=1e-6, abs=1e-9)


def half_cell(values: list[Fraction]) -> Fraction:
    widest = max(b - a for a, b in pairwise(values))
    return max(widest / 2, values[0], 1 - values[-1])
