"""Slow and obvious versions of what calibrant.classes computes."""

from __future__ import annotations

import itertools

import numpy as np


def compositions(classes, total):
    """All tuples of whole numbers that sum to ``total``."""
    every = itertools.product(range(total + 1), repeat=classes)
    return [numbers for numbers in every if sum(numbers) == total]


def nearest_distance(vector, classes, resolution):
    """Squared distance to the nearest grid point, by looking at all of them."""
    points = np.array(compositions(classes, resolution)) / resolution
    return float(((points - vector) ** 2).sum(axis=1).min())


def water_filling(own, left, cap):
    """Share out ``left`` in proportion up to a cap, by bisection; the rest goes to those with 0."""
    own = np.array(own, float)
    own = own / own.sum() if own.sum() else own
    low, high = 0.0, 1e18
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(cap, middle * own).sum() < left else (low, middle)
    shares = np.minimum(cap, low * own)
    without = own == 0.0
    if without.any() and left - shares.sum() > 1e-12:
        shares[without] = (left - shares.sum()) / without.sum()
    return shares


def projection(row):
    """The nearest distribution by bisection on what is taken off every number."""
    low, high = min(row) - 1.0, max(row)
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(np.array(row) - middle, 0.0).sum() > 1.0:
            low = middle
        else:
            high = middle
    return np.maximum(np.array(row) - high, 0.0)


def least_distance(table, distances, allowed):
    """The least expected distance of a mixture that is cheap whatever comes.

    Tries every basic solution: some outcomes at the limit, as many points plus one.
    """
    points, outcomes = table.shape
    best = np.inf
    for size in range(1, outcomes + 2):
        for support in itertools.combinations(range(points), size):
            for tight in itertools.combinations(range(outcomes), size - 1):
                matrix = np.vstack([table[list(support)][:, list(tight)].T, np.ones(size)])
                right = np.append(np.full(size - 1, allowed), 1.0)
                if abs(np.linalg.det(matrix)) < 1e-12:
                    continue
                weights = np.linalg.solve(matrix, right)
                cheap = (weights @ table[list(support)] <= allowed + 1e-9).all()
                if (weights >= -1e-9).all() and cheap:
                    best = min(best, float(weights @ distances[list(support)]))
    return best


def full_error(forecasts, outcomes, power):
    """Vector by vector."""
    groups = {}
    for forecast, outcome in zip(map(tuple, forecasts), outcomes, strict=True):
        groups.setdefault(forecast, []).append(outcome)
    total = 0.0
    for forecast, seen in groups.items():
        for k, p in enumerate(forecast):
            total += len(seen) * abs(seen.count(k) / len(seen) - p) ** power
    return total / len(outcomes)


def top_class_error(forecasts, outcomes, power):
    """Class by class and value by value."""
    groups = {}
    for forecast, outcome in zip(forecasts, outcomes, strict=True):
        top = max(range(len(forecast)), key=lambda k: forecast[k])
        groups.setdefault((top, forecast[top]), []).append(outcome == top)
    each = (len(r) * abs(sum(r) / len(r) - sure) ** power for (_, sure), r in groups.items())
    return sum(each) / len(outcomes)
