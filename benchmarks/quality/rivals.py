"""The competitors' algorithms as compiled loops: forecasts, each made before its outcome counts.

All take ``(raw, outcomes, order, known, out, ...)``: before round ``t`` the outcomes of the rounds
``order[:known[t]]`` are known.  The mean forecast of a randomised method is written.
"""

from __future__ import annotations

import math

import numba
import numpy as np

compiled = numba.njit(cache=True)


@compiled
def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


@compiled
def logit(p, clip):
    p = min(max(p, clip), 1.0 - clip)
    return math.log(p / (1.0 - p))


@compiled
def bucket(p, buckets):
    return min(int(p * buckets), buckets - 1)


@compiled
def running_mean(raw, outcomes, order, known, out, buckets):
    count, ones, done = np.zeros(buckets), np.zeros(buckets), 0
    for t in range(len(raw)):
        while done < known[t]:
            j = bucket(raw[order[done]], buckets)
            count[j] += 1.0
            ones[j] += outcomes[order[done]]
            done += 1
        j = bucket(raw[t], buckets)
        out[t] = ones[j] / count[j] if count[j] > 0 else raw[t]


@compiled
def river_sgd(raw, outcomes, order, known, out, step, clip):
    a, b, done = 0.0, 0.0, 0
    for t in range(len(raw)):
        while done < known[t]:
            x = logit(raw[order[done]], clip)
            slip = sigmoid(a * x + b) - outcomes[order[done]]
            a -= step * slip * x
            b -= step * slip
            done += 1
        out[t] = sigmoid(a * logit(raw[t], clip) + b)


@compiled
def river_newton(raw, outcomes, order, known, out, step, eps, intercept_step, clip):
    a, b, h, done = 0.0, 0.0, eps, 0
    for t in range(len(raw)):
        while done < known[t]:
            x = logit(raw[order[done]], clip)
            slip = sigmoid(a * x + b) - outcomes[order[done]]
            h += slip * slip * x * x
            a -= step * slip * x / h
            b -= intercept_step * slip
            done += 1
        out[t] = sigmoid(a * logit(raw[t], clip) + b)


@compiled
def histogram(raw, outcomes, order, known, out, every, buckets):
    count, ones, done = np.zeros(buckets), np.zeros(buckets), 0
    told = np.full(buckets, -1.0)
    for t in range(len(raw)):
        if t % every == 0:
            while done < known[t]:
                j = bucket(raw[order[done]], buckets)
                count[j] += 1.0
                ones[j] += outcomes[order[done]]
                done += 1
            for j in range(buckets):
                if count[j] > 0:
                    told[j] = ones[j] / count[j]
        j = bucket(raw[t], buckets)
        out[t] = told[j] if told[j] >= 0.0 else raw[t]


@compiled
def streaming_isotonic(raw, outcomes, order, known, out, every, buckets, decay):
    weight, ones, told = np.ones(buckets), np.empty(buckets), np.empty(buckets)
    for j in range(buckets):
        ones[j] = told[j] = (j + 0.5) / buckets
    done = 0
    for t in range(len(raw)):
        if t % every == 0 and t > 0:
            weight *= decay
            ones *= decay
            while done < known[t]:
                j = bucket(raw[order[done]], buckets)
                weight[j] += 1.0
                ones[j] += outcomes[order[done]]
                done += 1
            pool(weight, ones, told)
        place = min(max(raw[t] * buckets - 0.5, 0.0), buckets - 1.0)
        j = min(int(place), buckets - 2)
        out[t] = told[j] + (place - j) * (told[j + 1] - told[j])


@compiled
def pool(weight, ones, told):
    size, total, mass, width = (
        0,
        np.empty(len(weight)),
        np.empty(len(weight)),
        np.empty(len(weight)),
    )
    for j in range(len(weight)):
        total[size], mass[size], width[size] = ones[j], weight[j], 1.0
        size += 1
        while size > 1 and total[size - 2] * mass[size - 1] > total[size - 1] * mass[size - 2]:
            size -= 1
            total[size - 1] += total[size]
            mass[size - 1] += mass[size]
            width[size - 1] += width[size]
    at = 0
    for k in range(size):
        for _ in range(int(width[k])):
            told[at] = total[k] / mass[k]
            at += 1


@compiled
def features(p, clip, beta, x):
    p = min(max(p, clip), 1.0 - clip)
    if beta:
        x[0], x[1], x[2] = math.log(p), math.log(1.0 - p), 1.0
    else:
        x[0], x[1] = math.log(p / (1.0 - p)), 1.0


@compiled
def newton(raw, outcomes, order, known, out, rho, gamma, clip, beta):
    # Online Newton steps on the log loss; the projection onto the ball of radius 100 never acts.
    size = 3 if beta else 2
    inverse, theta, x = np.eye(size) / rho, np.zeros(size), np.empty(size)
    theta[0] = 1.0
    if beta:
        theta[1] = -1.0
    done = 0
    for t in range(len(raw)):
        while done < known[t]:
            features(raw[order[done]], clip, beta, x)
            slip = sigmoid(np.dot(theta, x)) - outcomes[order[done]]
            slope = slip * x
            turned = inverse @ slope
            inverse -= np.outer(turned, turned) / (1.0 + np.dot(slope, turned))
            theta -= (inverse @ slope) / gamma
            done += 1
        features(raw[t], clip, beta, x)
        out[t] = sigmoid(np.dot(theta, x))


@compiled
def foster99(raw, outcomes, order, known, out, buckets, cells):
    # Foster (1999) within each bucket, on midpoints; the mean of the announced pair is written.
    count, ones = np.zeros((buckets, cells)), np.zeros((buckets, cells))
    low, law = np.empty(len(raw), np.int64), np.empty(len(raw))
    np.random.seed(0)
    done = 0
    for t in range(len(raw)):
        while done < known[t]:
            i = order[done]
            j, k = bucket(raw[i], buckets), low[i] + (np.random.random() >= law[i])
            count[j, k] += 1.0
            ones[j, k] += outcomes[i]
            done += 1
        j = bucket(raw[t], buckets)
        low[t], law[t] = pair(count[j], ones[j], bucket(raw[t], cells))
        out[t] = (low[t] + 0.5 + (1.0 - law[t])) / cells


@compiled
def lean(count, ones, k):
    if count[k] == 0.0:
        return 0.0
    gap = ones[k] / count[k] - (k + 0.5) / len(count)
    half = 0.5 / len(count)
    return 0.0 if abs(gap) <= half else gap


@compiled
def pair(count, ones, k):
    last = len(count) - 1
    here = lean(count, ones, k)
    while here != 0.0:
        ahead = 1 if here > 0.0 else -1
        if k + ahead < 0 or k + ahead > last:
            break
        there = lean(count, ones, k + ahead)
        if there * here < 0.0:
            up, down = (here, -there) if ahead > 0 else (there, -here)
            return min(k, k + ahead), down / (up + down)
        k, here = k + ahead, there
    return k, 1.0


@compiled
def regret_coordinate(raw, outcomes, order, known, out, cells):
    # Okoroafor, Kleinberg and Sun (2024) with the squared loss and steps sqrt((m + 2) / t).
    lean, b, done = np.zeros(cells + 1), 0.0, 0
    low, law = np.empty(len(raw), np.int64), np.empty(len(raw))
    np.random.seed(0)
    for t in range(len(raw)):
        while done < known[t]:
            i = order[done]
            k, y = low[i] + (np.random.random() >= law[i]), outcomes[i]
            g, step = k / cells, math.sqrt((cells + 2.0) / (done + 1.0))
            lean[k] = min(max(lean[k] + step * (g - y), -1.0), 1.0)
            b = min(max(b + step * ((g - y) ** 2 - (raw[i] - y) ** 2), 0.0), 1.0)
            done += 1
        low[t], law[t] = halves(lean, b, raw[t], cells)
        out[t] = (low[t] + (1.0 - law[t])) / cells


@compiled
def worth(lean, b, q, cells, k, y):
    g = k / cells
    return lean[k] * (g - y) + b * ((g - y) ** 2 - (q - y) ** 2)


@compiled
def halves(lean, b, q, cells):
    for k in (int(q * cells + 0.5), 0, cells):
        if worth(lean, b, q, cells, k, 0) <= 0.0 and worth(lean, b, q, cells, k, 1) <= 0.0:
            return k, 1.0
    low, high = 0, cells
    while high - low > 1:
        k = (low + high) // 2
        zero, one = worth(lean, b, q, cells, k, 0), worth(lean, b, q, cells, k, 1)
        if zero <= 0.0 and one <= 0.0:
            return k, 1.0
        if one >= zero:
            low = k
        else:
            high = k
    up = worth(lean, b, q, cells, low, 1) - worth(lean, b, q, cells, low, 0)
    down = worth(lean, b, q, cells, high, 0) - worth(lean, b, q, cells, high, 1)
    return low, down / (up + down) if up + down > 0.0 else 1.0
