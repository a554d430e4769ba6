"""Forecasts of numbers, slow and obvious: the oracles of tests/test_regression_*.py."""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise
from statistics import NormalDist


def curve_cdf(knots, x):
    """Chance of at most x under a CDF that goes straight from knot to knot."""
    if x < knots[0][0]:
        return 0.0
    best = 0.0
    for (v0, l0), (v1, l1) in pairwise(knots):
        if v0 <= x:
            best = max(best, l0)
        if v1 <= x:
            best = max(best, l1)
        elif v0 <= x:
            best = max(best, l0 + (l1 - l0) * (x - v0) / (v1 - v0))
    return best


def curve_below(knots, x):
    """Chance of less than x."""
    if x <= knots[0][0]:
        return 0.0
    best = 0.0
    for (v0, l0), (v1, l1) in pairwise(knots):
        if v0 < x:
            best = max(best, l0)
        if v1 < x:
            best = max(best, l1)
        elif v0 < x:
            best = max(best, l0 + (l1 - l0) * (x - v0) / (v1 - v0))
    return best


def sample_cdf(members, x):
    return sum(m <= x for m in members) / len(members)


def sample_below(members, x):
    return sum(m < x for m in members) / len(members)


def sample_crps(members, y):
    """The kernel form of the CRPS of an empirical distribution."""
    n = len(members)
    near = sum(abs(m - y) for m in members) / n
    return near - sum(abs(a - b) for a in members for b in members) / (2 * n * n)


def crps_by_pieces(cdf, breaks, y, parts=1):
    """The integral of (F - 1{x >= y})**2 by Gauss' two points: exact where F is straight."""
    total, off = 0.0, 0.5 / math.sqrt(3)
    for low, high in pairwise(sorted({*breaks, y})):
        width = (high - low) / parts
        for k in range(parts):
            middle = low + (k + 0.5) * width
            points = middle - off * width, middle + off * width
            total += width / 2 * sum((cdf(x) - (x >= y)) ** 2 for x in points)
    return total


def pinball(level, quantile, y):
    return level * (y - quantile) if y > quantile else (1 - level) * (quantile - y)


def normal_quantile(mean, sd, q):
    if q < 0:
        return -math.inf
    if q > 1:
        return math.inf
    return mean + sd * (NormalDist().inv_cdf(q) if 0 < q < 1 else (math.inf if q else -math.inf))


def track(levels, step, quantile_functions, outcomes):
    """The quantile tracker as printed: quantiles before each outcome, and the last positions."""
    q, told = list(levels), []
    for quantile, y in zip(quantile_functions, outcomes, strict=True):
        said = [quantile(position) for position in q]
        told.append(said)
        q = [at + step * (p - (y <= x)) for at, p, x in zip(q, levels, said, strict=True)]
    return told, q


def aci(alpha, step, scores, scale=None):
    radius, told, largest = 0.0, [], 0.0
    for s in scores:
        told.append(radius)
        largest = max(largest, s)
        radius += step * (largest if scale is None else scale) * ((s > radius) - alpha)
    return told


def aci_quantile(alpha, step, window, scores):
    level, kept, told = alpha, deque(maxlen=window), []
    for s in scores:
        rank = math.ceil((1 - level) * (len(kept) + 1))
        if level <= 0 or (level < 1 and rank > len(kept)):
            radius = math.inf
        else:
            radius = -math.inf if level >= 1 else sorted(kept)[rank - 1]
        told.append(radius)
        level += step * (alpha - (s > radius))
        kept.append(s)
    return told


def sf_ogd(alpha, scores, scale):
    radius, told, squares = 0.0, [], 0.0
    for s in scores:
        told.append(radius)
        gradient = alpha - (s > radius)
        squares += gradient**2
        radius -= scale / math.sqrt(3) * gradient / math.sqrt(squares)
    return told


def pid(alpha, step, window, gain, saturation, scores):
    radius, told, kept, part, excess = 0.0, [], deque(maxlen=window), 0.0, 0.0
    for t, s in enumerate(scores, 1):
        told.append(radius)
        kept.append(s)
        error = (s > radius) - alpha
        excess += error
        part += step * (max(kept) - min(kept)) * error
        angle = excess * math.log(t + 1) / (saturation * (t + 1))
        if abs(angle) >= math.pi / 2:
            radius = math.copysign(math.inf, angle)
        else:
            radius = part + gain * math.tan(angle)
    return told


class Expert:
    def __init__(self, born, radius):
        self.born, self.radius = born, radius
        order = 0
        while born % 2 ** (order + 1) == 0:
            order += 1
        self.life = 8 * 2**order
        self.squares = self.z = self.wz = 0.0
        self.age = 0
        self.prior = 1 / (born**2 * (1 + math.floor(math.log2(born))))

    @property
    def weight(self):
        return self.z / self.age * (1 + self.wz) if self.age else 0.0


def loss(alpha, radius, s):
    return (1 - alpha) * (s - radius) if s > radius else alpha * (radius - s)


def mix(experts):
    trusted = [e.prior * max(e.weight, 0.0) for e in experts]
    if sum(trusted) <= 0:
        trusted = [e.prior for e in experts]
    return sum(w * e.radius for w, e in zip(trusted, experts, strict=True)) / sum(trusted)


def saocp(alpha, scores, scale):
    """Experts in a list that is searched: those whose life is over are taken out."""
    experts, told = [Expert(1, 0.0)], []
    for t, s in enumerate(scores, 1):
        radius = mix(experts)
        told.append(radius)
        meta = loss(alpha, radius, s)
        for e in experts:
            w = e.weight
            ahead = (meta - loss(alpha, e.radius, s)) / (scale * max(alpha, 1 - alpha))
            ahead = min(max(ahead, -1.0 if w > 0 else 0.0), 1.0)
            gradient = alpha - (s > e.radius)
            e.z, e.wz, e.age = e.z + ahead, e.wz + ahead * w, e.age + 1
            e.squares += gradient**2
            e.radius -= scale / math.sqrt(3) * gradient / math.sqrt(e.squares)
        start = mix(experts)
        experts = [e for e in experts if t + 1 < e.born + e.life]
        experts.append(Expert(t + 1, start))
    return told
