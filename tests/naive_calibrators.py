"""Slow, obvious calibrators, in exact fractions where the rule allows it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

HALF = Fraction(1, 2)


def fractions(grid):
    return [Fraction(k, grid.denominator) for k in grid.numerators]


def half_cell(values):
    inner = [(b - a) / 2 for a, b in itertools.pairwise(values)]
    return max([values[0], 1 - values[-1], *inner])


def nearest(values, target):
    return min(range(len(values)), key=lambda k: (abs(values[k] - target), -k))


class TwoPoint:
    """Walk from the last draw, cell by cell, to one without score or a pair that disagrees."""

    def __init__(self, values, prior=0, centre=HALF):
        self.values = values
        self.counts = [prior] * len(values)
        self.ones = [prior * centre] * len(values)
        self.position = nearest(values, centre)

    def mixture(self):
        k = self.position
        while self.score(k) != 0:
            towards = k + 1 if self.score(k) > 0 else k - 1
            if not 0 <= towards < len(self.values):
                break
            if self.score(k) * self.score(towards) < 0:
                low = min(k, towards)
                a, b = abs(self.score(low)), abs(self.score(low + 1))
                return {low: b / (a + b), low + 1: a / (a + b)}
            k = towards
        return {k: 1}

    def update(self, k, outcome):
        self.counts[k] += 1
        self.ones[k] += outcome
        self.position = k

    def gap(self, k):
        return self.ones[k] - self.values[k] * self.counts[k]


class FosterHart(TwoPoint):
    def score(self, k):
        return self.gap(k) / self.counts[k] if self.counts[k] else 0


class Anchored(TwoPoint):
    def __init__(self, values, prior=0, centre=HALF, strength=4.0, patience=3.0):
        super().__init__(values)
        self.anchor, self.strength, self.patience = float(centre), strength, patience
        self.regret, self.learned, self.crowd = 0.0, 0, 1

    def known(self, k):
        """The average gap of a cell, as far as it is believed."""
        gap, others = float(self.gap(k)) / self.counts[k] if self.counts[k] else 0.0, self.crowd - 1
        return gap * self.learned / (self.learned + 8 * others) if others else gap

    @property
    def pull(self):
        others, patience = self.crowd - 1, self.patience * self.crowd
        if others:
            patience = max(patience, 2.0 * math.cbrt(others**2 * self.learned))
        return self.strength * min(1.0, math.exp(self.regret / patience))

    def score(self, k):
        return self.known(k) + self.pull * (self.anchor - float(self.values[k]))

    def mixture(self):
        self.position = int(self.anchor * (len(self.values) - 1) + 0.5)
        return super().mixture()

    def update(self, k, outcome, anchor=None, mixture=None, crowd=1):
        anchor, mixture = anchor or self.anchor, mixture or self.mixture()
        mean = sum(weight * float(self.values[i]) for i, weight in mixture.items())
        self.regret += (mean - outcome) ** 2 - (anchor - outcome) ** 2
        self.learned, self.crowd = self.learned + 1, crowd
        super().update(k, outcome)

    def correct(self, k, outcome, anchor, mixture, crowd):
        """Replace an outcome of a cell by ``outcome``."""
        mean = sum(weight * float(self.values[i]) for i, weight in mixture.items())
        self.regret += 2.0 * (2 * outcome - 1) * (anchor - mean)
        self.ones[k] += 2 * outcome - 1
        self.crowd = crowd


class Crowd:
    """How many wait at a time, as far as a stream knows, from what happened to it."""

    def __init__(self):
        self.missing = self.longest = self.learned = 0

    def forecast(self, waiting):
        self.missing = max(self.missing, waiting)

    def outcome(self, between):
        """Count an outcome that so many forecasts came before; return among how many it counts."""
        self.longest = max(self.longest, between)
        found = 1 + min(self.missing, max(self.longest, 10_000 // (1 + self.learned)))
        self.learned += 1
        return found

    def correction(self, between):
        """Count a round that was wrong while so many forecasts were made; return the same."""
        if between > 0:
            self.missing, self.longest = self.missing + 1, max(self.longest, between)
        return 1 + min(self.missing, max(self.longest, 10_000 // (1 + self.learned)))


class RegretMatching(TwoPoint):
    def score(self, k):
        up = self.gap(k) - self.counts[k] * self.half(k, k + 1)
        down = -self.gap(k) - self.counts[k] * self.half(k - 1, k)
        return max(up, 0) - max(down, 0)

    def half(self, low, high):
        inside = low >= 0 and high < len(self.values)
        return (self.values[high] - self.values[low]) / 2 if inside else 1


class Foster99(RegretMatching):
    def score(self, k):
        return super().score(k) / self.counts[k] if self.counts[k] else 0


class RunningMean(TwoPoint):
    def __init__(self, values, prior=0, centre=HALF):
        super().__init__(values, 0, centre)
        self.centre, self.prior = centre, prior

    def mixture(self):
        rounds = self.prior + sum(self.counts)
        if rounds == 0:
            return {self.position: 1}
        return {nearest(self.values, (self.prior * self.centre + sum(self.ones)) / rounds): 1}


class Blackwell(TwoPoint):
    def __init__(self, values, prior=0, centre=HALF, step="adaptive", eta=0.0):
        super().__init__(values, prior, centre)
        self.step, self.eta = step, eta
        self.theta = [float(min(max(prior * (centre - g), -1), 1)) for g in values]
        self.squares = [0.0] * len(values)
        self.rounds = 0

    def score(self, k):
        return self.theta[k]

    def update(self, k, outcome, mixture=None):
        """Move the drawn cell, or each cell of the mixture by its weight."""
        super().update(k, outcome)
        self.rounds += 1
        for cell, weight in (mixture or {k: 1.0}).items():
            self.nudge(cell, weight * (outcome - float(self.values[cell])))

    def nudge(self, k, push):
        self.squares[k] += push * push
        step = {
            "fixed": self.eta,
            "sqrt": math.sqrt(2 * len(self.values) / self.rounds),
            "adaptive": math.sqrt(2 / self.squares[k]) if push else 0.0,
        }[self.step]
        self.theta[k] = min(max(self.theta[k] + step * push, -1.0), 1.0)


class AllPairs:
    """Every regret of every ordered pair, added up round by round."""

    def __init__(self, values, prior=0, centre=HALF, eta=None):
        self.values = np.array([float(g) for g in values])
        self.eta, self.rounds = eta, 0
        squares = (float(centre) - self.values) ** 2
        self.regrets = prior * (squares[:, None] - squares)

    def update(self, law, outcome):
        """Learn at each cell by its weight; a draw is a law on one cell."""
        squares = (outcome - self.values) ** 2
        self.regrets += law[:, None] * (squares[:, None] - squares)
        self.rounds += 1


class ExponentialRegret(AllPairs):
    def rates(self):
        pairs = len(self.values) * (len(self.values) - 1)
        eta = self.eta or math.sqrt(8 * math.log(pairs) / (self.rounds + 1))
        return np.exp(eta * (self.regrets - self.regrets.max()))

    def law(self):
        return stationary(self.rates())


class PolynomialRegret(AllPairs):
    def rates(self):
        return np.maximum(self.regrets, 0.0)


def stationary(rates):
    """Solve for the law that the flow leaves alone, with one equation replaced by its sum."""
    flows = rates - np.diag(rates.sum(1))
    system = np.vstack([flows.T[:-1], np.ones(len(rates))])
    return np.linalg.solve(system, np.eye(len(rates))[-1])


def net_flow(law, rates):
    """Return what flows into each cell less what flows out, relative to what passes through."""
    rates = np.array(rates, float)
    np.fill_diagonal(rates, 0.0)
    inwards, outwards = law @ rates, law * rates.sum(1)
    return np.abs(inwards - outwards) / np.maximum(inwards + outwards, 1e-300)
