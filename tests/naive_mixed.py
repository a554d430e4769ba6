"""Experts who shift and scale forecasts of numbers, slow and obvious: an oracle."""

from __future__ import annotations

import math

LEVELS = [(j + 0.5) / 16 for j in range(16)]


def mean(numbers, weights=None):
    weights = [1.0] * len(numbers) if weights is None else weights
    pairs = zip(weights, numbers, strict=True)
    return sum(w * x for w, x in pairs) / sum(weights)


def weighted(parts, fade):
    """Return what is left of the parts of rounds, each faded by all that came later."""
    later = [1.0]
    for part in reversed(parts[1:]):
        later.append(later[-1] * (1.0 - (1.0 - fade) * part))
    return [part * left for part, left in zip(parts, reversed(later), strict=bool(parts))]


class Moments:
    """Means of the whole past, with weights that fade; nothing is kept up to date."""

    def __init__(self, fade, *, sloped=False, flat=False):
        self.fade, self.sloped, self.flat = fade, sloped, flat
        self.past, self.kept = [], []

    def weights(self):
        return self.kept

    def level(self, most):
        """Remember no more rounds than that."""
        whole = sum(self.kept)
        self.kept = [w * min(1.0, most / whole) for w in self.kept] if whole else []

    def centre(self, c):
        w = self.weights()
        x, y = ([row[k] for row in self.past] for k in (0, 1))
        mx, my, slope = mean(x, w), mean(y, w), 1.0
        variance = mean([(a - mx) ** 2 for a in x], w)
        if self.sloped and variance > 0:
            both = mean([(a - mx) * (b - my) for a, b in zip(x, y, strict=True)], w)
            shrink = 5 / sum(w)
            slope = (both + shrink * variance) / (variance + shrink * variance)
            slope = min(max(slope, -10), 10)
        return my + slope * (c - mx)

    def say(self, c, d):
        w = self.weights()
        if sum(w) <= 2.5:
            return c, d
        away, width = (mean([row[k] for row in self.past], w) for k in (2, 3))
        return self.centre(c), away if self.flat else d * away / width

    def learn(self, c, d, u, y, usual, part=1.0):
        away = abs(y - self.centre(c)) if self.past else d
        self.past.append((c, y, away, d))
        self.kept = [w * (1.0 - (1.0 - self.fade) * part) for w in self.kept] + [part]


class Descent:
    def __init__(self, rate, adaptive):
        self.rate, self.adaptive = rate, adaptive
        self.shift, self.stretch, self.slopes = 0.0, 1.0, []

    def say(self, c, d):
        return c + self.shift, d * self.stretch

    def learn(self, c, d, u, y, usual, part=1.0):
        centre, spread = self.say(c, d)
        under = [(y < centre + spread * v) - p for v, p in zip(u, LEVELS, strict=True)]
        slope = 2 * mean(under), 2 * mean([e * v for e, v in zip(under, u, strict=True)])
        self.slopes.append((*slope, part))
        squares = [sum(s[2] * s[k] ** 2 for s in self.slopes) for k in (0, 1)]
        steps = [self.rate / math.sqrt(s) if self.adaptive and s else self.rate for s in squares]
        self.shift -= usual * steps[0] * slope[0] * part
        self.stretch *= max(0.1, 1 - steps[1] * slope[1] * part)


def score(centre, spread, u, y):
    """Twice the mean pinball loss of the quantiles ``centre + spread u``."""
    off = [y - (centre + spread * v) for v in u]
    return 2 * mean([max(p * e, (p - 1) * e) for p, e in zip(LEVELS, off, strict=True)])


class Alike:
    """How much outcomes of a crowd are alike, from all errors so far."""

    def __init__(self, crowd):
        self.crowd, self.errors = crowd, []

    def average(self, past, over):
        """The mean over so many, or over all if these are fewer: the last ones count most."""
        found = 0.0
        for k, error in enumerate(past):
            found += (error - found) / min(k + 1, over)
        return found

    def part(self):
        if self.crowd == 1:
            return 1.0
        N, kept, together, squares = self.crowd, 1 - 1 / (500 + 4 * self.crowd), 20 / 7.6, 20.0
        for t, error in enumerate(self.errors[1:], 1):
            recent, earlier = (self.average(self.errors[:t], k * N) for k in (1, 2))
            together = together * kept + (error - earlier) * (recent - earlier)
            squares = squares * kept + (error - earlier) ** 2
        same = 1 + (N - 1) * min(max(7.6 * together / squares, 0), 1)
        slow = same * (1 + 512 * (same - 1) / (1 + len(self.errors)))
        return 1 / max(math.sqrt(N), slow)


def mixed(quantiles, outcomes, crowd=1):
    """Return centre and spread of the raw forecast and of the mixture, a round a row.

    Outcomes come in turn after as many forecasts as are a crowd.
    """
    experts = [Moments(1.0), Moments(0.99), Moments(0.95), Moments(299 / 300, flat=True)]
    experts += [Moments(1.0, sloped=True), Moments(0.99, sloped=True)]
    experts += [Descent(0.1, False), Descent(0.3, True)]
    first = [0.5] + [0.5 / 8] * 8
    weights, losses, spreads, parts, ties, told = first, [], [], [], 0, []
    alike, waiting = Alike(crowd), []
    for q, y in zip(quantiles, outcomes, strict=True):
        c = mean(q)
        d = mean([abs(x - c) for x in q])
        u = [(x - c) / d if d else 0.0 for x in q]
        said = [(c, d)] + [expert.say(c, d) for expert in experts]
        both = [sum(w * s[k] for w, s in zip(weights, said, strict=True)) for k in (0, 1)]
        seen = len(losses)
        told.append([c, d, *((c, d) if not seen or (ties and ties * 20 >= seen) else both)])
        waiting.append((q, y, c, d, u, said, told[-1][2:]))
        if len(waiting) < crowd:
            continue
        for q, y, c, d, u, said, ours in waiting:
            part = alike.part()
            alike.errors.append((y - ours[0]) / ours[1])
            ties += y in q
            own = [score(*s, u, y) for s in said]
            losses.append(sum(w * x for w, x in zip(weights, own, strict=True)))
            spreads.append(d)
            parts.append(part)
            fades = weighted(parts, 0.995)
            usual = max(mean(losses, fades), (max(own) - min(own)) / 8) * crowd
            bare = [
                w * math.exp((min(own) - x) / usual) if usual else w
                for w, x in zip(weights, own, strict=True)
            ]
            share = 3e-4 / crowd
            weights = [
                (1 - share) * w / sum(bare) + share * f for w, f in zip(bare, first, strict=True)
            ]
            for expert in experts:
                if isinstance(expert, Moments) and crowd > 1:
                    expert.level(part * (len(parts) - 1))
                own = min(part, 1 / crowd) if isinstance(expert, Descent) else part
                expert.learn(c, d, u, y, mean(spreads, fades), own)
        waiting = []
    return told
