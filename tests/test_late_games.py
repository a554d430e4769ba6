"""Games solved exactly, against adversaries who hold outcomes back or tell them wrongly."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from fractions import Fraction

import naive_calibrators as naive
import pytest

ANCHORS = (0.3, 0.9, 0.6, 0.1, 0.5)
FATES = {"at once": (0, None), "late": (1, None), "later": (2, None), "wrong": (0, 1)}
"""After how many forecasts an outcome is told, and after how many it is corrected."""


@dataclass
class Said:
    number: int
    cell: int
    outcome: int
    mixture: dict[int, float]
    tell: int
    mend: int | None


@dataclass
class Play:
    """What the rule knows, what is true, and what the lemma reckons with so far."""

    rule: naive.Anchored
    crowd: naive.Crowd = field(default_factory=naive.Crowd)
    open: list[Said] = field(default_factory=list)
    wrong: list[Said] = field(default_factory=list)
    gaps: dict[int, float] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    paid: float = 0.0

    def forecast(self, anchor: float) -> dict[int, float]:
        self.rule.anchor = anchor
        self.crowd.forecast(len(self.open))
        return self.rule.mixture()

    def meet(self, said: Said, anchor: float, slack: float) -> None:
        """Add a visit to what is true, and what the lemma says of it."""
        value, n = float(self.rule.values[said.cell]), self.counts.get(said.cell, 0)
        x, e = said.outcome - value, self.gaps.get(said.cell, 0.0) / n if n else 0.0
        mean = sum(w * float(self.rule.values[k]) for k, w in said.mixture.items())
        lost = (mean - said.outcome) ** 2 - (anchor - said.outcome) ** 2
        self.paid += self.rule.pull * (lost + (mean - anchor) ** 2)
        self.paid -= (x - e) ** 2 / (n + 1) + slack * abs(e - self.rule.known(said.cell))
        self.counts[said.cell] = n + 1
        self.gaps[said.cell] = self.gaps.get(said.cell, 0.0) + x

    def tell(self, now: int) -> None:
        """Tell what is due once so many forecasts were made."""
        for said in [each for each in self.open if each.number + each.tell < now]:
            self.open.remove(said)
            told = said.outcome if said.mend is None else 1 - said.outcome
            among = self.crowd.outcome(now - 1 - said.number)
            self.rule.update(said.cell, told, ANCHORS[said.number], said.mixture, among)
            if said.mend is not None:
                self.wrong.append(said)
        for said in [each for each in self.wrong if each.number + each.mend < now]:
            self.wrong.remove(said)
            among = self.crowd.correction(now - 1 - said.number)
            anchor = ANCHORS[said.number]
            self.rule.correct(said.cell, said.outcome, anchor, said.mixture, among)

    def value(self, rounds: int) -> float:
        squares = sum(self.gaps[k] ** 2 / n for k, n in self.counts.items())
        floor = float(naive.half_cell(self.rule.values))
        return squares + self.paid - rounds * floor**2


def solve(play: Play, number: int, rounds: int, fates: list[str], slack: float) -> float:
    """The most that an adversary can make of squared gaps and regret beyond what is reckoned."""
    if number == rounds:
        return play.value(rounds)
    mixture = play.forecast(ANCHORS[number])
    values = []
    for outcome in (0, 1):
        for fate in fates:
            total = 0.0
            for cell, weight in mixture.items():
                after = copy.deepcopy(play)
                said = Said(number, cell, outcome, mixture, *FATES[fate])
                after.meet(said, ANCHORS[number], slack)
                after.open.append(said)
                after.tell(number + 1)
                total += weight * solve(after, number + 1, rounds, fates, slack)
            values.append(total)
    return max(values)


def start(steps: int) -> Play:
    return Play(naive.Anchored([Fraction(k, steps) for k in range(steps + 1)]))


@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("fates", [["at once", "late"], ["late", "later"], ["at once", "wrong"]])
def test_no_delay_and_no_correction_gains_more_than_the_lemma_says(steps, fates) -> None:
    assert solve(start(steps), 0, 4, fates, slack=2.0) <= 1e-9


@pytest.mark.parametrize("fates", [["at once", "late"], ["at once", "wrong"]])
def test_without_what_delays_cost_the_lemma_would_be_false(fates) -> None:
    assert solve(start(2), 0, 4, fates, slack=0.0) > 0.05


def test_prompt_outcomes_need_no_slack() -> None:
    assert solve(start(3), 0, 5, ["at once"], slack=0.0) <= 1e-9
