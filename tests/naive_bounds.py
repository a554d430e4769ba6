"""Slow and obvious calibrators over exact fractions, and the value of a game against them.

A state holds, per cell, how often it was played and how many of its outcomes were 1:
``((n_0, Y_0), (n_1, Y_1), ...)``.  A score maps grid and state to one signed number per
cell; ``two_point`` turns the numbers into the mixture that every such rule plays.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache
from itertools import pairwise

import registered


def endpoints(N):
    return tuple(Fraction(i, N) for i in range(N + 1))


def midpoints(m):
    return tuple(Fraction(2 * b + 1, 2 * m) for b in range(m))


def half(grid):
    gaps = [b - a for a, b in pairwise(grid)]
    return max([gap / 2 for gap in gaps] + [grid[0], 1 - grid[-1]])


def two_point(theta):
    """An adjacent pair with a change of sign, a cell with score 0, or an end of the grid."""
    if theta[0] <= 0:
        return {0: Fraction(1)}
    for i, (a, b) in enumerate(pairwise(theta)):
        if b == 0:
            return {i + 1: Fraction(1)}
        if b < 0:
            return {i: Fraction(-b) / (a - b), i + 1: Fraction(a) / (a - b)}
    return {len(theta) - 1: Fraction(1)}


def with_prior(grid, state, k0=0, c=Fraction(1, 2)):
    """Counts and signed gaps of each cell, pseudo-rounds included."""
    return [(n + k0, Y - g * n + k0 * (c - g)) for g, (n, Y) in zip(grid, state, strict=True)]


def average_gap(grid, state, **prior):
    return [S / n if n else Fraction(0) for n, S in with_prior(grid, state, **prior)]


def slack_gap(grid, state, **prior):
    """Cumulative gaps beyond half a cell: regret matching on adjacent swaps."""
    h = half(grid)
    return [shrunk(S, h * n) for n, S in with_prior(grid, state, **prior)]


def slack_average(grid, state, **prior):
    """Average gaps beyond half a cell: Foster's rule of 1999."""
    return [
        theta / n if n else Fraction(0)
        for theta, (n, _) in zip(
            slack_gap(grid, state, **prior), with_prior(grid, state, **prior), strict=True
        )
    ]


def shrunk(S, slack):
    size = max(abs(S) - slack, 0)
    return size if S > 0 else -size


def played(state, k, y):
    n, Y = state[k]
    return (*state[:k], (n + 1, Y + y), *state[k + 1 :])


def empty(grid):
    return ((0, 0),) * len(grid)


def gaps(grid, state):
    return [Y - g * n for g, (n, Y) in zip(grid, state, strict=True)]


def c1(grid, state):
    return sum(abs(S) for S in gaps(grid, state)) / sum(n for n, _ in state)


def c2(grid, state):
    parts = zip(gaps(grid, state), state, strict=True)
    return sum(S * S / n for S, (n, _) in parts if n) / sum(n for n, _ in state)


def game_value(grid, score, payoff, rounds):
    """The largest expected payoff of an adversary who sees the state and never the draw."""

    @cache
    def value(state, left):
        if left == 0:
            return payoff(state)
        mixture = two_point(score(grid, state))
        return max(
            sum(w * value(played(state, k, y), left - 1) for k, w in mixture.items())
            for y in (0, 1)
        )

    return value(empty(grid), rounds)


def late_game_value(grid, score, payoff, rounds, delay):
    """The same when the rule learns each outcome only ``delay`` rounds later."""

    @cache
    def value(state, pending, left):
        if left == 0:
            for k, y in pending:
                state = played(state, k, y)
            return payoff(state)
        mixture = two_point(score(grid, state))
        return max(
            sum(w * next_value(state, (*pending, (k, y)), left) for k, w in mixture.items())
            for y in (0, 1)
        )

    def next_value(state, pending, left):
        if len(pending) > delay:
            state, pending = played(state, *pending[0]), pending[1:]
        return value(state, pending, left - 1)

    return value(empty(grid), (), rounds)


def greedy_outcome(grid, S, mixture):
    """The outcome under which the expected sum of absolute gaps grows most."""

    def growth(y):
        return sum(w * (abs(S[k] + y - grid[k]) - abs(S[k])) for k, w in mixture.items())

    return int(growth(1) > growth(0))


def play(grid, score, rounds, seed):
    """A game of floats against the greedy adversary; the final state."""
    coin, grid, state = random.Random(seed), [float(g) for g in grid], empty(grid)
    for _ in range(rounds):
        mixture = two_point([float(theta) for theta in score(grid, state)])
        y = greedy_outcome(grid, gaps(grid, state), mixture)
        state = played(state, coin.choices(list(mixture), list(mixture.values()))[0], y)
    return state


# What a certificate must promise, from the rounds alone.  A round is a tuple of bucket, drawn
# cell, outcome and mixture, the last as pairs of cell and weight.


class Run:
    """The rounds of a game, and the letters in which theorems speak of them."""

    def __init__(self, rounds, grid, buckets, prior, delay):
        self.grid, self.M, self.k0, self.D = [float(g) for g in grid], buckets, prior, delay
        self.T, self.K, self.h = len(rounds), len(grid), float(half(grid))
        self.rounds, self.k = rounds, min(len(grid) * buckets, len(rounds))
        self.cells = sorted({(j, k) for j, k, _, _ in rounds})

    def outcomes(self, cell):
        return [y for j, k, y, _ in self.rounds if (j, k) == cell]

    def start(self, cell):
        """The signed gap with which the prior starts a cell."""
        j, k = cell
        return self.k0 * ((2 * j + 1) / (2 * self.M) - self.grid[k])

    def increments(self, cell, expected):
        _, k = cell
        if not expected:
            return sum((y - self.grid[k]) ** 2 for y in self.outcomes(cell))
        return sum(
            (w * (y - self.grid[k])) ** 2
            for i, _, y, mixture in self.rounds
            for c, w in mixture
            if (i, c) == cell
        )


def log_cap(each, k0):
    return 1 / (1 + k0) + math.log((each + k0) / (1 + k0))


def foster_hart_worst(r):
    each = r.T / r.k
    bias = r.k0 * each / (each + r.k0)
    return r.h**2 + r.k * ((1 + 2 * r.D) * log_cap(each, r.k0) + bias) / r.T


def foster_hart_counted(r):
    total = 0
    for cell in r.cells:
        y = r.outcomes(cell)
        n, mean, c = len(y), sum(y) / len(y), (2 * cell[0] + 1) / (2 * r.M)
        total += (1 + 2 * r.D) * sum(1 / (r.k0 + t) for t in range(1, n + 1))
        total += r.k0 * n / (n + r.k0) * (mean - c) ** 2
    return r.h**2 + total / r.T


def anchored_floor(r, values):
    return max(r.h**2, 9 * max(values[0], 1 - values[-1]) ** 2)


def anchored(r, values, worst):
    total = r.k * log_cap(r.T / r.k, 0) if worst else visits(r)
    used = min(r.M, r.T) if worst else len({bucket for bucket, _ in r.cells})
    return anchored_floor(r, values) + (12 * used + total) / r.T


def anchored_regret(r, values):
    return (anchored_floor(r, values) + visits(r) / r.T) / 4 + r.h**2


def coarse(r, steps, worst):
    """What ``growing`` promises before its first grid, of so many steps, is refined."""
    cells = min((steps + 1) * r.M, r.T)
    total = cells * log_cap(r.T / cells, 0) if worst else visits(r)
    used = min(r.M, r.T) if worst else len({bucket for bucket, _ in r.cells})
    return 1 / (2 * steps) ** 2 + (12 * used + total) / r.T


def coarse_regret(r, steps):
    return (1 / (2 * steps) ** 2 + visits(r) / r.T) / 4 + 1 / (2 * steps) ** 2


def visits(r):
    return sum(sum(1 / t for t in range(1, len(r.outcomes(cell)) + 1)) for cell in r.cells)


def starts(r, worst):
    """Sum of |s|, and of the squared excess over half a cell."""
    s = [r.k0] * (r.M * r.K) if worst else [abs(r.start(cell)) for cell in r.cells]
    return sum(s), sum(max(x - r.h * r.k0, 0) ** 2 for x in s)


def regret_matching(r, worst):
    k, (shift, before) = r.k if worst else len(r.cells), starts(r, worst)
    reach = math.sqrt(k * (before + (1 + 2 * r.D) * r.T * (1 + r.h) ** 2))
    return (r.h * (r.T + r.k0 * k) + reach + shift) / r.T


def foster99(r, worst, midpoints):
    k, (shift, before) = r.k if worst else len(r.cells), starts(r, worst)
    weight, grown = r.T + r.k0 * k, k * log_cap(r.T / k, r.k0) + (before / r.k0 if r.k0 else 0)
    derived = (r.h * weight + math.sqrt(weight * grown) + shift) / r.T
    quoted = r.h + 2 * math.sqrt(r.k / r.T)
    return min(derived, quoted) if midpoints and r.k0 == 0 else derived


def blackwell_fixed(r, horizon):
    eta, energy = math.sqrt(r.M * r.K / horizon), r.M * r.K * (4 if r.k0 else 1)
    return r.h + energy / (2 * eta * r.T) + eta / 2


def blackwell_counted(r, expected):
    cells = [(j, k) for j in range(r.M) for k in range(r.K)]
    total = sum(math.sqrt(r.increments(cell, expected)) for cell in cells)
    return r.h + 2 * math.sqrt(2) * total / r.T


def exponential(r, horizon):
    log = math.log(r.K * (r.K - 1))
    if horizon is None:
        regret = (3 * math.sqrt(r.M * r.T) + r.M) * math.sqrt(log / 8)
    else:
        eta = math.sqrt(8 * r.M * log / horizon)
        regret = r.M * log / eta + eta * r.T / 8
    return r.h**2 + (r.K * regret + 2 * r.k0 * r.M * r.K) / r.T


def polynomial(r):
    cells = r.M * r.K
    reach = math.sqrt(r.k0**2 * cells * (r.K - 1) / 2 + (r.K - 1) * r.T)
    return r.h**2 + (math.sqrt(cells) * reach + r.k0 * cells) / r.T


WITH_THEOREMS = [
    "anchored",
    "blackwell",
    "exponential_regret",
    "foster99",
    "foster_hart",
    "growing",
    "polynomial_regret",
    "regret_matching",
]
"""Whose theorems are worked out here; others have a file of their own, or none."""


def theorems(r, name, midpoints, step="adaptive", horizon=None, updates=None):
    """The worst case and what was counted, as pairs of quantity and value."""
    if own := registered.own(name, "theorems"):
        return own(r)
    late = r.D and name not in ("foster_hart", "regret_matching")
    if name not in WITH_THEOREMS or late:
        return []
    if name == "foster_hart":
        return [("C2", foster_hart_worst(r)), ("C2", foster_hart_counted(r))]
    if name == "anchored":
        return [("C2", anchored(r, r.grid, worst)) for worst in (True, False)]
    if name == "growing":
        return [("C2", coarse(r, (r.K - 1) // 32, worst)) for worst in (True, False)]
    if name == "regret_matching":
        return [("C1", regret_matching(r, worst)) for worst in (True, False)]
    if name == "foster99":
        return [("C1", foster99(r, worst, midpoints)) for worst in (True, False)]
    expected = updates == "expected" or (name == "exponential_regret" and updates is None)
    pseudo = "pseudo " if expected else ""
    if name == "exponential_regret":
        return [(pseudo + "C2", exponential(r, horizon))]
    if name == "polynomial_regret":
        return [(pseudo + "C2", polynomial(r))]
    if step == "fixed":
        return [(pseudo + "C1", blackwell_fixed(r, horizon))]
    if step == "sqrt":
        return [(pseudo + "C1", r.h + 2 * math.sqrt(2 * r.M * r.K / r.T))]
    worst = r.h + 2 * math.sqrt(2 * r.k / r.T)
    return [(pseudo + "C1", worst), (pseudo + "C1", blackwell_counted(r, expected))]


def promises(r, found, price):
    """All that follows from a theorem; ``price`` turns C1, or C2, into regret."""
    quantity, value = found
    if quantity == "C2":
        return [found, ("C1", math.sqrt(value)), ("regret", price(math.sqrt(value), value))]
    if quantity == "C1":
        return [found, ("regret", price(value, None))]
    c1, c2 = (value, None) if quantity == "pseudo C1" else (math.sqrt(value), value)
    return [("C1", c1 + math.sqrt(r.k / r.T)), ("regret", price(c1, c2)), found]


def priced(loss, curvature, comparators, cost, grid):
    """What calibration errors and buckets cost together, for ``loss(outcome, forecast)``."""
    everything = [*map(float, grid), *comparators]
    tilts = [loss(1, p) - loss(0, p) for p in everything]
    swing = max(tilts) - min(tilts)

    def price(c1, c2):
        paid = swing * c1
        return (paid if c2 is None else min(paid, curvature * c2)) + cost

    return price
