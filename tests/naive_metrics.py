"""Slow, obvious metrics over lists: the oracles for calibrant.metrics."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction


def bucket(value, buckets):
    return max(j for j in range(buckets) if j / buckets <= value)


def cells(forecasts, outcomes):
    seen = defaultdict(list)
    for forecast, outcome in zip(forecasts, outcomes, strict=True):
        seen[forecast].append(outcome)
    return dict(sorted(seen.items()))


def calibration_error(forecasts, outcomes, power):
    total = 0.0
    for value, ys in cells(forecasts, outcomes).items():
        total += len(ys) * abs(sum(ys) / len(ys) - value) ** power
    return total / len(forecasts)


def mixture_calibration_error(values, weights, outcomes, power):
    total = 0.0
    for i, value in enumerate(values):
        weight = sum(row[i] for row in weights)
        ones = sum(row[i] * y for row, y in zip(weights, outcomes, strict=True))
        if weight > 0:
            total += weight * abs(ones / weight - value) ** power
    return total / len(outcomes)


def mean(values):
    return sum(map(Fraction, values)) / len(values)


def binned_calibration_error(forecasts, outcomes, buckets, power):
    total = 0.0
    for j in range(buckets):
        rows = [(p, y) for p, y in zip(forecasts, outcomes, strict=True) if bucket(p, buckets) == j]
        if rows:
            gap = mean([y for _, y in rows]) - mean([p for p, _ in rows])
            total += len(rows) * abs(float(gap)) ** power
    return total / len(forecasts)


def brier(forecasts, outcomes):
    return float(mean([(Fraction(p) - y) ** 2 for p, y in zip(forecasts, outcomes, strict=True)]))


def auc(forecasts, outcomes):
    rows = list(zip(forecasts, outcomes, strict=True))
    pairs = [(p, q) for p, y in rows for q, z in rows if y == 1 and z == 0]
    return sum((p > q) + (p == q) / 2 for p, q in pairs) / len(pairs)


def external_regret(forecasts, outcomes, loss, alternatives):
    rows = list(zip(forecasts, outcomes, strict=True))
    own = sum(loss(y, p) for p, y in rows)
    return own - min(sum(loss(y, q) for _, y in rows) for q in alternatives)


def savings(forecasts, outcomes, loss, alternatives):
    found = {}
    for value, ys in cells(forecasts, outcomes).items():
        for other in [value, *alternatives]:
            found[value, other] = sum(loss(y, value) - loss(y, other) for y in ys)
    return found


def internal_regret(forecasts, outcomes, loss, alternatives):
    return max(savings(forecasts, outcomes, loss, alternatives).values())


def swap_regret(forecasts, outcomes, loss, alternatives):
    table = savings(forecasts, outcomes, loss, alternatives)
    return sum(max(s for (v, _), s in table.items() if v == value) for value in set(forecasts))


def split_error(forecasts, outcomes, threshold, power):
    low = sum(p - y for p, y in zip(forecasts, outcomes, strict=True) if p <= threshold)
    high = sum(p - y for p, y in zip(forecasts, outcomes, strict=True) if p > threshold)
    return (abs(low) ** power + abs(high) ** power) / len(forecasts) ** power


def v_regret(forecasts, outcomes, threshold):
    def loss(p, y):
        return -((p > threshold) - (p < threshold)) * (y - threshold)

    own = sum(loss(p, y) for p, y in zip(forecasts, outcomes, strict=True))
    return own - min(sum(loss(q, y) for y in outcomes) for q in (-1, threshold, 2))
