"""The slow, obvious version of the rule whose cells split, and its theorem."""

from __future__ import annotations

import itertools
import math

import naive_calibrators as naive
from naive_bounds import log_cap, visits


class Refining(naive.Anchored):
    """The anchored rule over the points in use, whose averages begin with one more draw."""

    def __init__(self, values, prior=0, centre=naive.HALF, doublings=2, strength=5.3, **options):
        super().__init__(values, prior, centre, strength, **options)
        self.steps, self.variance = [2**width for width in range(doublings, 0, -1)], 0.0
        self.first = range(0, len(values), 2**doublings)

    @property
    def used(self):
        """Points of the first grid, and the middles of neighbours that were drawn often enough."""
        found = list(self.first)
        for step in self.steps:
            pairs = [(a, b) for a, b in itertools.pairwise(found) if b - a == step]
            found = sorted(found + [(a + b) // 2 for a, b in pairs if self.splits(a, b)])
        return found

    def splits(self, a, b):
        half, middle = (self.values[b] - self.values[a]) / 2, self.values[(a + b) // 2]
        return ((self.counts[a] + self.counts[b]) * half**2) ** 2 >= (middle * (1 - middle)) ** 3

    def known(self, k):
        count = self.counts[k]
        return super().known(k) * count / (count + 1)

    def mixture(self):
        """Walk from the neighbours in use around the anchor."""
        used = self.used
        below = [k for k in used[1:-1] if self.values[k] <= self.anchor]
        low = below[-1] if below else used[0]
        high = used[used.index(low) + 1]
        up, down = self.score(low) > 0, self.score(high) < 0
        self.position = used.index(high if up and not down else low)
        part = _Walk([self.values[k] for k in used], [self.score(k) for k in used], self.position)
        return {used[k]: weight for k, weight in part.mixture().items()}

    def update(self, k, outcome, anchor=None, mixture=None, crowd=1):
        mixture = mixture or self.mixture()
        mean = sum(w * float(self.values[i]) for i, w in mixture.items())
        self.variance += sum(w * (float(self.values[i]) - mean) ** 2 for i, w in mixture.items())
        super().update(k, outcome, anchor, mixture, crowd)


class _Walk(naive.TwoPoint):
    def __init__(self, values, scores, position):
        super().__init__(values)
        self.scores, self.position = scores, position

    def score(self, k):
        return self.scores[k]


def halves(values, doublings):
    """Half the distance squared of all pairs that can ever be announced, and until when."""
    for width in range(doublings, -1, -1):
        step = 2**width
        for a in range(0, len(values) - 1, step):
            half, middle = (values[a + step] - values[a]) / 2, values[a + step // 2]
            due = (middle * (1 - middle)) ** 1.5 / half**2 if width else float("inf")
            yield half**2, due, width


def theorems(r, doublings=2):
    if r.D:
        return []
    values = [float(value) for value in r.grid]
    end = 11.6 * max(values[0], 1 - values[-1]) ** 2
    used = min(r.M, r.T)
    left, squares = r.T / used, 0.0
    pairs = list(halves(values, doublings))
    for square, due, _ in sorted(pairs, key=lambda pair: -pair[0]):
        rounds = min(left, -(-due // 1))
        squares, left = squares + rounds * square, left - rounds
    cells = len(values[:: 2**doublings])
    for level in range(doublings, 0, -1):
        draws = 2 * r.T / used
        for due in sorted(-(-due // 1) for _, due, width in pairs if width == level):
            cells, draws = cells + min(1, draws / due), max(draws - due, 0)
    # A mixture may ask for the first grid, for 512 rounds in 8192 and not before 2048.
    if doublings:
        squares += 512 * len(range(2049, r.T + 1, 8192)) * max(pairs)[0] / used
    k = min(used * cells, r.T)
    worst = (15.9 * used + used * squares + k * log_cap(r.T / k, 0)) / r.T + end
    buckets = len({bucket for bucket, _ in r.cells})
    spread = sum(_variance(values, mixture) for *_, mixture in r.rounds)
    return [("C2", worst), ("C2", (15.9 * buckets + spread + visits(r)) / r.T + end)]


def regret(r):
    values = [float(value) for value in r.grid]
    end = 11.6 * max(values[0], 1 - values[-1]) ** 2
    spread = sum(_variance(values, mixture) for *_, mixture in r.rounds) / r.T
    return (spread + visits(r) / r.T + end) / 5.3 + spread


def _variance(values, mixture):
    """In parts of 2**-20, rounded up."""
    mean = sum(w * values[k] for k, w in mixture)
    return math.ceil(sum(w * (values[k] - mean) ** 2 for k, w in mixture) * 2**20) / 2**20
