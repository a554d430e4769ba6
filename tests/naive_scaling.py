"""The slow and obvious version of vectors that are mended online, with whole matrices."""

from __future__ import annotations

import numpy as np


def softmax(logits):
    raised = np.exp(logits - logits.max())
    return raised / raised.sum()


def logs_of(raw):
    logs = np.log(np.maximum(raw, 1e-6))
    return logs - logs.mean()


class Memory:
    """How much of the past stays in memory."""

    def __init__(self, memory):
        self.memory, self.rounds = memory, 0.0

    def keep(self, part):
        self.rounds += part
        if self.rounds <= self.memory:
            return 1.0
        kept = 1.0 - part / self.memory
        self.rounds *= kept
        return kept


class Raw:
    def __init__(self, classes):
        pass

    def say(self, raw):
        return raw / raw.sum()

    def learn(self, raw, outcome, part=1.0):
        pass


class Temperature:
    def __init__(self, classes, memory):
        self.a, self.curvature, self.memory = 1.0, 1.0, Memory(memory)

    def say(self, raw):
        return softmax(self.a * logs_of(raw))

    def learn(self, raw, outcome, part=1.0):
        p, x = self.say(raw), logs_of(raw)
        more = part * (p @ x**2 - (p @ x) ** 2)
        self.curvature = self.memory.keep(part) * self.curvature + more
        step = part * (p @ x - x[outcome]) / (self.curvature + 1e-3)
        self.a = np.clip(self.a - step, 0.0, 20.0)


class Vector:
    def __init__(self, classes, memory):
        self.told = np.column_stack([np.ones(classes), np.zeros(classes)])
        self.curvature = np.array([10.0 * np.eye(2)] * classes)
        self.memory = Memory(memory)

    def say(self, raw):
        x = logs_of(raw)
        return softmax(self.told[:, 0] * x + self.told[:, 1])

    def learn(self, raw, outcome, part=1.0):
        p, kept = self.say(raw), self.memory.keep(part)
        for k, x in enumerate(logs_of(raw)):
            seen = np.array([x, 1.0])
            fresh = (1.0 - kept) * 10.0 * np.eye(2)
            more = part * p[k] * (1.0 - p[k]) * np.outer(seen, seen)
            self.curvature[k] = fresh + kept * self.curvature[k] + more
            step = np.linalg.solve(self.curvature[k], part * (p[k] - (k == outcome)) * seen)
            self.told[k] = np.clip(self.told[k] - step, -20.0, 20.0)


class Matrix:
    def __init__(self, classes, memory):
        self.told = np.eye(classes, classes + 1)
        self.curvature, self.variance = 10.0 * np.eye(classes + 1), np.zeros(classes)
        self.memory, self.turn = Memory(memory), 0

    def say(self, raw):
        return softmax(self.told @ np.append(logs_of(raw), 1.0))

    def learn(self, raw, outcome, part=1.0):
        p, kept, seen = self.say(raw), self.memory.keep(part), np.append(logs_of(raw), 1.0)
        size = len(seen)
        self.variance = kept * self.variance + part * p * (1.0 - p)
        self.curvature = kept * self.curvature
        self.curvature[self.turn % size, self.turn % size] += 10.0 * (1.0 - kept) * size
        weight = max(1.0 - p @ p, 1.0 - p[outcome])
        self.curvature += part * weight * np.outer(seen, seen)
        own = (self.variance + 5.0) / (self.variance.sum() + 5.0)
        error = part * (p - np.eye(len(p))[outcome]) / np.maximum(own, 0.2 / len(p))
        step = np.outer(error, np.linalg.solve(self.curvature, seen))
        self.told = np.clip(self.told - step, -20.0, 20.0)
        self.turn += 1


class Confusion:
    def __init__(self, classes, memory):
        self.counts, self.memory = np.zeros((classes, classes)), memory

    def rows(self):
        filled = self.counts + 5.0 * np.eye(len(self.counts)) + 1e-3
        return filled / filled.sum(axis=1, keepdims=True)

    def say(self, raw):
        return raw / raw.sum() @ self.rows()

    def learn(self, raw, outcome, part=1.0):
        had = raw / raw.sum() * self.rows()[:, outcome]
        self.counts *= 1.0 - part / self.memory
        self.counts[:, outcome] += part * had / had.sum()


class Mixture:
    """All experts with their weights."""

    def __init__(self, classes):
        ever = 1e18
        told = [(Temperature, (ever, 200)), (Vector, (ever, 1000, 200))]
        if classes <= 32:
            told += [(Matrix, (ever, 1000)), (Confusion, (ever, 500))]
        made = [kind(classes, memory) for kind, memories in told for memory in memories]
        self.experts = [Raw(classes), *made]
        self.start = np.full(len(self.experts), 0.5 / len(made))
        self.start[0] = 0.5
        self.weights = self.start

    def said(self, raw):
        return np.array([expert.say(raw) for expert in self.experts])

    def say(self, raw):
        return self.weights @ self.said(raw)

    def learn(self, raw, outcome, said=None, part=1.0, crowd=1):
        """Learn an outcome that is one of a crowd, of which experts said something then."""
        said = self.said(raw) if said is None else said
        likely = np.maximum(said[:, outcome], 1e-5) ** (1.0 / crowd)
        for expert in self.experts:
            expert.learn(raw, outcome, part)
        self.weights = self.weights * likely / (self.weights @ likely)
        self.weights = (1.0 - 3e-4 / crowd) * self.weights + 3e-4 / crowd * self.start


class Alike:
    """How much outcomes of a crowd are alike, from all errors so far."""

    def __init__(self, crowd):
        self.crowd, self.errors = crowd, []

    def same(self):
        N, kept = self.crowd, 1.0 - 1.0 / (500.0 + 4.0 * self.crowd)
        together, squares = 4.0 / 6.5, 4.0
        for t, error in enumerate(self.errors):
            ages = np.arange(t)[::-1]
            past = np.array(self.errors[:t]).reshape(t, len(error))
            recent = ((1.0 - 1.0 / N) ** ages) @ past / N
            earlier = ((1.0 - 0.5 / N) ** ages) @ past / (2.0 * N)
            together = together * kept + error @ (recent - earlier)
            squares = squares * kept + error @ error
        return 1.0 + (N - 1.0) * min(max(6.5 * together / squares, 0.0), 1.0)

    def part(self):
        same = self.same()
        slow = same * (1.0 + 512.0 * (same - 1.0) / (1.0 + len(self.errors)))
        return 1.0 / max(np.sqrt(self.crowd), slow)
