"""The support vector machine as its docstring says it, from the whole history in each round."""

from __future__ import annotations

import math


class NaiveSVM:
    """Keeps every patient; None stands for a value that is not known."""

    def __init__(self, features: int, penalty: float, rate: float) -> None:
        self.features, self.penalty, self.rate = features, penalty, rate
        self.rows: list[list[int | None]] = []
        self.signs: list[int] = []
        self.largest = 0.0
        self.losses: list[float] = []

    def score(self, row: list[int | None]) -> float:
        k = sum(1 for sign in self.signs if sign)
        if k == 0:
            return 0.0
        total = self.rate * sum(self.signs) / math.sqrt(k)
        for j in range(self.features):
            weight, mean, deviation = self.weight(j, k)
            if weight and row[j] is not None:
                total += weight * (row[j] - mean) / deviation
        return total

    def weight(self, j: int, k: int) -> tuple[float, float, float]:
        """The weight of a feature that is centred and scaled, its mean and its deviation."""
        known = [row[j] for row in self.rows if row[j] is not None]
        if len(set(known)) < 2:
            return 0.0, 0.0, 1.0
        mean = sum(known) / len(known)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in known) / len(known))
        pairs = zip(self.rows, self.signs, strict=True)
        z = sum(sign * (row[j] - mean) / deviation for row, sign in pairs if row[j] is not None)
        evidence = z / math.sqrt(k)
        soft = math.copysign(max(0.0, abs(evidence) - self.penalty), evidence)
        return self.rate * soft, mean, deviation

    def round(self, row: list[int | None], outcome: int) -> tuple[float, float]:
        """Return score and raw forecast, then learn."""
        score, sign = self.score(row), 2 * outcome - 1
        self.largest = max(self.largest, abs(score))
        self.losses.append(max(0.0, 1.0 - sign * score))
        self.rows.append(row)
        self.signs.append(sign if sign * score < 1.0 else 0)
        raw = (score + self.largest) / (2.0 * self.largest) if self.largest else 0.5
        return score, raw
