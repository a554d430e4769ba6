"""Slow and obvious versions of what calibrant.advice computes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

Table = Sequence[Sequence[float]]


def pair_regret(weights: Table, losses: Table, i: int, j: int) -> float:
    """Return what playing j in place of i would have saved."""
    return math.fsum(w[i] * (loss[i] - loss[j]) for w, loss in zip(weights, losses, strict=True))


def external_regret(weights: Table, losses: Table) -> float:
    """Return the expected loss less the best expert's, as the paper's definition reads."""
    paid = 0.0
    for w, loss in zip(weights, losses, strict=True):
        for i in range(len(w)):
            paid += w[i] * loss[i]
    return paid - min(math.fsum(loss[i] for loss in losses) for i in range(len(losses[0])))


def internal_regret(weights: Table, losses: Table) -> float:
    """Return the largest regret over all pairs i, j."""
    experts = range(len(weights[0]))
    return max(pair_regret(weights, losses, i, j) for i in experts for j in experts)


def swap_regret(weights: Table, losses: Table) -> float:
    """Return the largest saving over all N^N maps of experts to experts."""
    experts = range(len(weights[0]))
    return max(
        math.fsum(pair_regret(weights, losses, i, image[i]) for i in experts)
        for image in itertools.product(experts, repeat=len(experts))
    )


def stationary_law(rates: Table) -> list[float]:
    """Return the law of an irreducible chain by the tree theorem, in exact fractions.

    The weight of state r is the sum, over all ways to give each other state a successor
    such that all paths end in r, of the product of the rates used.
    """
    exact = [[Fraction(rate) for rate in row] for row in rates]
    weights = [_tree_weight(exact, root) for root in range(len(exact))]
    return [float(weight / sum(weights)) for weight in weights]


def _tree_weight(rates: list[list[Fraction]], root: int) -> Fraction:
    others = [i for i in range(len(rates)) if i != root]
    total = Fraction(0)
    for successors in itertools.product(range(len(rates)), repeat=len(others)):
        step = dict(zip(others, successors, strict=True))
        if all(_reaches(step, i, root) for i in others):
            total += math.prod((rates[i][j] for i, j in step.items()), start=Fraction(1))
    return total


def _reaches(step: dict[int, int], state: int, root: int) -> bool:
    for _ in range(len(step)):
        state = step.get(state, root)
    return state == root


def mixture_of_swaps(law: Sequence[float], pair_weights: Table) -> list[float]:
    """Return the mixture of the laws that arise from ``law`` by moving i's weight to j."""
    experts = range(len(law))
    mixed = [0.0 for _ in experts]
    for i, j in itertools.permutations(experts, 2):
        moved = list(law)
        moved[j] += moved[i]
        moved[i] = 0.0
        for k in experts:
            mixed[k] += pair_weights[i][j] * moved[k]
    return mixed
