"""Slow and obvious versions of what the losses compute."""

from __future__ import annotations

import math

FORMULAS = {
    "squared": lambda y, p: (y - p) ** 2,
    "log": lambda y, p: -log(p if y else 1 - p),
    "misclassification": lambda y, p: float((p >= 0.5) != (y == 1)),
    "spherical": lambda y, p: 1 - (p if y else 1 - p) / math.sqrt(p**2 + (1 - p) ** 2),
    "absolute": lambda y, p: abs(y - p),
    "hinge": lambda y, p: max(0.0, 1 - (2 * y - 1) * (2 * p - 1)),
}


def log(p):
    return math.log(p) if p > 0 else -math.inf


def expected(formula, belief, forecast):
    parts = [(1 - belief, formula(0, forecast)), (belief, formula(1, forecast))]
    return sum(weight * loss for weight, loss in parts if weight > 0)


def violation(formula, points):
    """The largest cost of honesty over all pairs of points, by trying them all."""
    return max(
        expected(formula, p, p) - min(expected(formula, p, q) for q in points) for p in points
    )


def bucket_cost(formula, bottom, top, points=400):
    """What the best constant of a bucket loses at most to a forecast in it, by trying them all."""
    inside = [bottom + (top - bottom) * k / points for k in range(points + 1)]
    least = [min(formula(y, p) for p in inside) for y in (0, 1)]
    return min(max(formula(y, q) - least[y] for y in (0, 1)) for q in inside)
