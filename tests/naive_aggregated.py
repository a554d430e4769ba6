"""Intervals that average many, slow and obvious: the oracles of test_regression_aggregated.py."""

from __future__ import annotations

import math

MANY = [0.0, 5e-6, 5e-5]
MANY += [k / 1e4 for k in range(1, 10)] + [k / 1e3 for k in range(1, 10)]
MANY += [k / 1e2 for k in range(1, 10)]
DOUBLED = [0.001 * 2**k for k in range(8)]


class Boa:
    """Bernstein online aggregation of opinions of one end."""

    def __init__(self, count, tail, memory):
        self.tail, self.memory, self.count = tail, memory, count
        self.weights = [1 / count] * count
        self.ahead, self.squares, self.largest = ([0.0] * count for _ in range(3))

    def mean(self, opinions):
        return sum(w * x for w, x in zip(self.weights, opinions, strict=True))

    def learn(self, opinions, score):
        end = self.mean(opinions)
        slope = self.tail - (score > end)
        paces = []
        for k, x in enumerate(opinions):
            r = slope * (end - x)
            self.largest[k] = max(self.memory * self.largest[k], abs(r))
            self.squares[k] = self.memory * self.squares[k] + r * r
            if self.largest[k] < 1e-150:
                paces.append(0.0)
                continue
            root = math.sqrt(math.log(self.count) / self.squares[k])
            paces.append(min(1 / self.largest[k], root))
            self.ahead[k] = self.memory * self.ahead[k] + r - paces[k] * r * r
        if any(paces):
            top = max(p * a for p, a in zip(paces, self.ahead, strict=True) if p)
            raw = [
                p * math.exp(p * a - top) if p else 0.0
                for p, a in zip(paces, self.ahead, strict=True)
            ]
        else:
            raw = [1.0] * self.count
        self.weights = [w / sum(raw) for w in raw]


def radius(kept, level):
    if level <= 0:
        return math.inf
    if level >= 1:
        return -math.inf
    rank = math.ceil((1 - level) * (len(kept) + 1))
    return sorted(kept)[rank - 1] if rank <= len(kept) else math.inf


def agaci(alpha, window, pairs, sides):
    """Radii above and below for pairs of scores above and below."""
    levels, kept, told = [alpha] * 30, [], []
    boas = [Boa(30, alpha / sides, 1.0) for _ in range(sides)]
    ends, opinions, low, high = [math.inf] * sides, None, 0.0, 0.0
    for pair in pairs:
        told.append(tuple(ends))
        score = max(pair[:sides])
        if opinions:
            for k, x in enumerate(opinions):
                levels[k] += MANY[k] * (alpha - (score > x))
            for boa, s in zip(boas, pair, strict=False):
                boa.learn(opinions, s)
        kept, low, high = [*kept, score][-window:], min(low, score), max(high, score)
        found = [radius(kept, level) for level in levels]
        opinions = [max(low, 2 * high - low if x == math.inf else x) for x in found]
        ends = [boa.mean(opinions) for boa in boas]
    return told


def dtaci(alpha, window, horizon, scores):
    levels, weights, kept, told = [alpha] * 8, [1 / 8] * 8, [], []
    spread = (1 - alpha) ** 2 * alpha**3 + (1 - alpha) ** 3 * alpha**2
    eta = math.sqrt(3 / horizon) * math.sqrt((math.log(8 * horizon) + 2) / spread)
    for s in scores:
        told.append(radius(kept, sum(w * level for w, level in zip(weights, levels, strict=True))))
        best = (sum(x >= s for x in kept) + 1) / (len(kept) + 1)
        losses = [alpha * (best - x) - min(0.0, best - x) for x in levels]
        weights = [w * math.exp(-eta * loss) for w, loss in zip(weights, losses, strict=True)]
        share = 0.5 / horizon
        weights = [(1 - share) * w / sum(weights) + share / 8 for w in weights]
        levels = [x + step * (alpha - (x >= best)) for x, step in zip(levels, DOUBLED, strict=True)]
        kept = [*kept, s][-window:]
    return told


class Learner:
    """One memory: where scores lie, how large they are, and where among them the end is."""

    def __init__(self, follow, forget, tail):
        self.follow, self.forget, self.tail = follow, forget, tail
        self.middle, self.size, self.place = 0.0, None, 2.0

    @property
    def opinion(self):
        return self.middle + self.size * self.place

    def learn(self, score, t):
        self.size = abs(score) if self.size is None else self.size
        away = score - self.middle
        above = self.size > 1e-150 and away / self.size > self.place
        above = above or (self.size <= 1e-150 and self.place < 0)
        self.place += 0.5 / self.tail / min(t + 19, 1_000) * (above - self.tail)
        self.size += max(self.forget, 1 / (t + 1)) * (abs(away) - self.size)
        if self.follow:
            self.middle += max(self.follow, 1 / (t + 1)) * away


SLACK, BEND = 0.7, 3.0
MEMORIES = [(0, 0.001), (0, 0.01), (0, 0.05), (0, 0.15), (0.01, 0.01), (0.1, 0.03)]


def blend(alpha, step, pairs, sides):
    """Radii above and below for pairs of scores above and below, and the level at last."""
    tail = alpha / sides
    teams = [[Learner(*memory, tail) for memory in MEMORIES] for _ in range(sides)]
    boas = [Boa(6, tail, 0.999) for _ in range(sides)]
    ends, level, low, high, told = [math.inf] * sides, alpha, 0.0, 0.0, []
    for t, pair in enumerate(pairs, 1):
        told.append(tuple(ends))
        missed = any(s > end for s, end in zip(pair, ends, strict=False))
        level += step * min(alpha, 1 - alpha) * (alpha - missed)
        low, high = min(low, max(pair[:sides])), max(high, max(pair[:sides]))
        for team, boa, s in zip(teams, boas, pair, strict=False):
            if t > 1:
                boa.learn([each.opinion for each in team], s)
            for each in team:
                each.learn(s, t)
        for i, (team, boa) in enumerate(zip(teams, boas, strict=True)):
            if 0 < level < 1:
                odds = math.log(alpha / (1 - alpha)) - math.log(level / (1 - level))
                away = max(min((alpha - level) / min(alpha, 1 - alpha), 1), -1)
                moved = (SLACK * odds + BEND * away**3) * team[4].size
                ends[i] = boa.mean([each.opinion for each in team]) + moved
            else:
                ends[i] = 2 * high - low if level <= 0 else -math.inf
    return told, level
