"""Slow and obvious calibrators over exact fractions, and the value of a game against them.

A state holds, per cell, how often it was played and how many of its outcomes were 1:
``((n_0, Y_0), (n_1, Y_1), ...)``.  A score maps grid and state to one signed number per
cell; ``two_point`` turns the numbers into the mixture that every such rule plays.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from itertools import pairwise


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
