"""Slow, obvious versions of the transforms: each takes a whole stream and returns forecasts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Stream = tuple[NDArray[np.float64], NDArray[np.uint8]]


def logit(raw: float, clip: float = 0.01) -> float:
    p = min(max(raw, clip), 1.0 - clip)
    return math.log(p / (1.0 - p))


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def newton(
    features: Any, start: Any, stream: Stream, gamma: float, rho: float, kept: float = 1.0
) -> list[float]:
    """Online Newton steps on the log loss of a linear model of ``features(raw)``."""
    theta, A, told = np.array(start, float), rho * np.eye(len(start)), []
    for raw, y in zip(*stream, strict=True):
        x = features(raw)
        told.append(sigmoid(theta @ x))
        gradient = (told[-1] - y) * x
        A = kept * A + (1.0 - kept) * rho * np.eye(len(start)) + np.outer(gradient, gradient)
        theta -= np.linalg.solve(A, gradient) / gamma
    return told


def identity(stream: Stream) -> list[float]:
    return list(stream[0])


def platt(stream: Stream, gamma: float = 0.1, rho: float = 100.0, kept: float = 1.0) -> list[float]:
    return newton(lambda raw: np.array([logit(raw), 1.0]), (1.0, 0.0), stream, gamma, rho, kept)


online_platt = platt


def hat_means(
    stream: Stream,
    knots: Any = (lambda raw: 20 * raw, 21),
    memory: float = math.inf,
    prior: float = 2.0,
) -> list[float]:
    """Mean errors at knots ``(place(raw), number of knots)``, all of them in every round."""
    place, count = knots
    weights, errors, told = np.zeros(count), np.zeros(count), []
    for raw, y in zip(*stream, strict=True):
        hat = np.maximum(1.0 - np.abs(np.arange(count) - place(raw)), 0.0)
        told.append(min(max(raw + hat @ (errors / (weights + prior)), 0.0), 1.0))
        kept = 1.0 - hat / memory
        weights, errors = weights * kept + hat, errors * kept + hat * (y - raw)
    return told


def beta(stream: Stream, gamma: float = 0.1, rho: float = 25.0) -> list[float]:
    def features(raw: float) -> NDArray[np.float64]:
        p = min(max(raw, 0.01), 0.99)
        return np.array([math.log(p), math.log(1.0 - p), 1.0])

    return newton(features, (1.0, -1.0, 0.0), stream, gamma, rho)


online_beta = beta


def temperature(stream: Stream, gamma: float = 0.1, rho: float = 100.0) -> list[float]:
    return newton(lambda raw: np.array([logit(raw)]), (1.0,), stream, gamma, rho)


def bucket_means(
    stream: Stream, buckets: int = 20, memory: float = math.inf, prior: float = 0.0
) -> list[float]:
    """The weighted mean over the whole past of the bucket, newest outcome first."""
    past: list[list[int]] = [[] for _ in range(buckets)]
    told = []
    for raw, y in zip(*stream, strict=True):
        outcomes = past[max(j for j in range(buckets) if j / buckets <= raw)]
        weights = [(1.0 - 1.0 / memory) ** age for age in range(len(outcomes))]
        total = prior + sum(weights)
        ones = sum(w * outcome for w, outcome in zip(weights, outcomes, strict=True))
        told.append((prior * raw + ones) / total if total else raw)
        outcomes.insert(0, int(y))
    return told


def chain(stream: Stream) -> list[float]:
    return bucket_means((np.array(platt(stream)), stream[1]))


def tracking(stream: Stream) -> list[float]:
    return bucket_means((np.array(platt(stream)), stream[1]), 10)


def weigh_experts(
    advice: NDArray[np.float64], outcomes: Any, share: float, eta: float, form: str, start: Any
) -> list[float]:
    """Exponential weights over columns of ``advice``; form: substitution, mean or bayes."""
    weights, told = np.array(start) / sum(start), []
    first = weights
    for p, y in zip(advice, outcomes, strict=True):
        if form == "substitution":
            g = [-np.log(weights @ np.exp(-eta * (p - end) ** 2)) / eta for end in (0, 1)]
            told.append((1.0 + g[0] - g[1]) / 2.0)
        else:
            told.append(weights @ p)
        likely = (p if y else 1.0 - p) if form == "bayes" else np.exp(-eta * (p - y) ** 2)
        weights = weights * likely / (weights @ likely)
        weights = (1.0 - share) * weights + share * first
    return [float(p) for p in told]


def hedge(stream: Stream, buckets: int, resolution: int, coins: list[float]) -> list[float]:
    """The average-gap rule in each bucket, with fractions instead of integers."""
    N, told = resolution, []
    n = np.zeros((buckets, N + 1))
    Y = np.zeros((buckets, N + 1))
    at = [round((2 * j + 1) * N / (2 * buckets) + 1e-9) for j in range(buckets)]
    for raw, y, u in zip(*stream, coins, strict=True):
        j = max(k for k in range(buckets) if k / buckets <= raw)
        gap = [round(Y[j, i] * N - i * n[j, i]) for i in range(N + 1)]
        i = at[j]
        while gap[i] and gap[i] > 0 and gap[i + 1] > 0:
            i += 1
        while gap[i] and gap[i] < 0 and gap[i - 1] < 0:
            i -= 1
        if gap[i] > 0:
            k = i + 1 if gap[i + 1] == 0 else pick(gap, n[j], i, u)
        elif gap[i] < 0:
            k = i - 1 if gap[i - 1] == 0 else pick(gap, n[j], i - 1, u)
        else:
            k = i
        told.append(k / N)
        n[j, k], Y[j, k], at[j] = n[j, k] + 1, Y[j, k] + y, k
    return told


def pick(gap: list[int], n: NDArray[np.float64], i: int, u: float) -> int:
    a, b = gap[i] / n[i], -gap[i + 1] / n[i + 1]
    return i if u < b / (a + b) else i + 1


def regret(stream: Stream, m: int, coins: list[float]) -> list[float]:
    """Okoroafor, Kleinberg and Sun: the first grid point that may be played, nearest by halving."""
    a, b, told = np.zeros(m + 1), 0.0, []
    for t, (q, y, u) in enumerate(zip(*stream, coins, strict=True), 1):

        def f(i: int, end: int, q: float = q, b: float = b) -> float:
            return float(a[i] * (i / m - end) + b * ((i / m - end) ** 2 - (q - end) ** 2))

        lo, hi, k, weight = 0, m, math.floor(q * m + 0.5), None
        while max(f(k, 0), f(k, 1)) > 0.0:
            lo, hi = (k, hi) if f(k, 1) >= f(k, 0) else (lo, k)
            if hi - lo == 1:
                up, down = f(lo, 1) - f(lo, 0), f(hi, 0) - f(hi, 1)
                weight = 1.0 if up <= 0 else 0.0 if down <= 0 else down / (up + down)
                k = lo if u < weight else hi
                break
            k = (lo + hi) // 2
        told.append(k / m)
        eta = math.sqrt((m + 2) / t)
        a[k] = np.clip(a[k] + eta * (k / m - y), -1.0, 1.0)
        b = float(np.clip(b + eta * ((k / m - y) ** 2 - (q - y) ** 2), 0.0, 1.0))
    return told


def lean(past: list[tuple[float, float, int]], q: float, x: float, star: bool, K: Any) -> float:
    """K29's test with the whole past and a kernel of (forecast, raw) pairs."""
    total = sum(K((q, x), (p, raw)) * (y - p) for p, raw, y in past)
    return total + (0.5 * K((q, x), (q, x)) * (1.0 - 2.0 * q) if star else 0.0)


def potc(stream: Stream, m: int) -> list[tuple[int, int, int]]:
    """For each round the bins at the ends of the interval and the one that is scored."""
    n, Y, told = [0] * m, [0] * m, []
    for raw, y in zip(*stream, strict=True):
        mean = [Y[b] / n[b] if n[b] else (b + 0.5) / m for b in range(m)]
        short = [mean[b] > (b + 1) / m + 1e-12 for b in range(m)]
        long = [mean[b] < b / m - 1e-12 for b in range(m)]
        b = min(int(raw * m), m - 1)
        while short[b] and not long[b + 1] and (short[b + 1]):
            b += 1
        while long[b] and not short[b - 1] and long[b - 1]:
            b -= 1
        low, high = b, b
        if short[b]:
            low, high = (b, b + 1) if long[b + 1] else (b + 1, b + 1)
        elif long[b]:
            low, high = (b - 1, b) if short[b - 1] else (b - 1, b - 1)
        scored = high if y else low
        n[scored], Y[scored] = n[scored] + 1, Y[scored] + int(y)
        told.append((low, high, scored))
    return told


def interval(stream: Stream, m: int = 10) -> list[float]:
    """The middle between the bins at both ends."""
    return [(low + high + 1) / (2 * m) for low, high, _ in potc(stream, m)]
