"""Slow, obvious versions of the rules that grow and fade."""

from __future__ import annotations

import itertools
import math

import naive_calibrators as naive


def due(resolution):
    """The least T with K (1 + ln(T/K))/T <= 1/(4 N^2), by doubling and halving."""
    cells, floor = resolution + 1, 1 / (4 * resolution**2)

    def enough(rounds):
        return cells * (1 + math.log(rounds / cells)) / rounds <= floor

    high = next(cells * 2**k for k in itertools.count() if enough(cells * 2**k))
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


class Growing(naive.Anchored):
    """The anchored rule over every so-manieth value, fewer left out whenever that is due."""

    def __init__(self, values, prior=0, centre=naive.HALF, doublings=5, **options):
        super().__init__(values, prior, centre, **options)
        self.step = 2**doublings

    @property
    def used(self):
        return range(0, len(self.values), self.step)

    def mixture(self):
        used = self.used
        part = naive.Anchored([self.values[k] for k in used])
        part.counts, part.ones = ([of[k] for k in used] for of in (self.counts, self.ones))
        for name in ("anchor", "strength", "patience", "regret", "learned", "crowd"):
            setattr(part, name, getattr(self, name))
        return {used[k]: weight for k, weight in part.mixture().items()}

    def update(self, k, outcome, anchor=None, mixture=None, crowd=1):
        super().update(k, outcome, anchor, mixture, crowd)
        if self.step > 1 and self.learned >= due(len(self.used) - 1):
            self.step //= 2


class Fading(naive.Anchored):
    """The anchored rule over averages of all gaps so far, each with the weight it has left."""

    def __init__(self, values, prior=0, centre=naive.HALF, half_life=1000.0, **options):
        super().__init__(values, prior, centre, **options)
        self.half_life, self.past = half_life, [[] for _ in values]

    def gap(self, k):
        """The average times the visits, which the anchored rule divides by."""
        latest = max((time for time, _ in self.past[k]), default=0.0)
        left = [2.0 ** ((time - latest) / self.half_life) for time, _ in self.past[k]]
        total = sum(w * (y - self.values[k]) for w, (_, y) in zip(left, self.past[k], strict=True))
        return self.counts[k] * total / sum(left) if left else 0.0

    def update(self, k, outcome, anchor=None, mixture=None, crowd=1, time=None):
        now = float(self.learned) if time is None else time
        super().update(k, outcome, anchor, mixture, crowd)
        self.past[k].append((now, outcome))
