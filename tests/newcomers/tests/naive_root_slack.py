"""The slow, obvious excess over the root of the count, and its theorem."""

from __future__ import annotations

import math

from naive_bounds import starts
from naive_calibrators import RegretMatching


class RootSlack(RegretMatching):
    def score(self, k):
        return float(super().score(k)) / math.sqrt(self.counts[k]) if self.counts[k] else 0


def theorems(r):
    if r.D:
        return []
    (shift, before), weight = starts(r, worst=True), r.T + r.k0 * r.k
    grown = 2 * (1 + r.h) ** 2 * math.sqrt(r.k * r.T) + (before / math.sqrt(r.k0) if r.k0 else 0)
    reach = math.sqrt(grown * math.sqrt(r.k * weight))
    return [("C1", (r.h * weight + reach + shift) / r.T)]
