"""Rounds of the rule whose cells split, from any counts, and what the proof says of each."""

from __future__ import annotations

import math

import naive_refining
import numpy as np
import players
from hypothesis import strategies as st
from naive_calibrators import fractions

from calibrant.calibrators import Refining
from calibrant.kernels.anchor import PULL, REGRET
from calibrant.kernels.layout import LEAST_STEP, MIXED, ONE


@st.composite
def refined_rounds(draw, steps=(1,)):
    """Any counts of all points, an anchor, a regret; and the mixture that is announced then.

    Neighbours must be one of ``steps`` apart at least.
    """
    rule = Refining(
        resolution=draw(st.integers(1, 4)),
        doublings=draw(st.integers(0, 3)),
        grid=draw(st.sampled_from(["graded", "endpoints"])),
        strength=draw(st.sampled_from([0.0, 0.5, 4.0, 50.0])),
        patience=draw(st.sampled_from([2.85, 3.0, 20.0])),
    )
    cells, state = rule.lattice.cells, rule.start().copy()
    counts = np.array(draw(st.lists(st.integers(0, 30), min_size=cells, max_size=cells)))
    ones = np.array([draw(st.integers(0, int(n))) for n in counts])
    anchor, regret = draw(st.floats(0, 1)), draw(st.floats(-30, 30))
    gaps = (ones - counts * rule.lattice.values) / (counts + 1)
    players.cells_of(rule, state)[:, 0] = ONE * ones + (counts - ones)
    pull = rule.strength * math.exp(min(regret / rule.patience, 0.0))
    at = players.block_of(state)
    state.view(float)[[MIXED, at + REGRET, at + PULL]] = anchor, regret, pull
    state[LEAST_STEP] = step = draw(st.sampled_from(steps))
    obvious = naive_refining.Refining(fractions(rule.lattice), doublings=rule.doublings)
    obvious.counts = counts.tolist()
    obvious.steps = [each for each in obvious.steps if each > step]
    return rule, obvious.used, gaps, anchor, regret, pull, rule.forecast(state)


def points_nowhere(case) -> None:
    """Check that the mean score of the announced pair vanishes, and that they are neighbours."""
    rule, used, gaps, anchor, _, pull, mixture = case
    scores = gaps + pull * (anchor - rule.lattice.values)
    told = sum(w * scores[k] for k, w in zip(mixture.indices, mixture.weights, strict=True))
    low, *rest = mixture.indices
    outwards = (low == 0 and told < 0) or (low == used[-1] and told > 0)
    assert abs(told) < 1e-12 * (1 + pull) or (not rest and outwards)
    assert low in used
    assert rest in ([], used[used.index(low) + 1 :][:1])


def costs_its_variance(case) -> None:
    """Check the induction step: either outcome raises the potential by the variance at most."""
    rule, _, gaps, anchor, regret, _, mixture = case
    c, R0, values = rule.strength, rule.patience, rule.lattice.values

    def potential(x):
        return c * R0 * math.exp(x / R0) if x < 0 else c * (R0 + x)

    drawn = list(zip(mixture.indices, mixture.weights, strict=True))
    spread = sum(w * (values[k] - mixture.mean) ** 2 for k, w in drawn)
    end = (1 + 2 * c) * max(values[0], 1 - values[-1]) ** 2
    for y in (0, 1):
        drift = sum(w * (2 * gaps[k] * (y - values[k]) - gaps[k] ** 2) for k, w in drawn)
        lost = (mixture.mean - y) ** 2 - (anchor - y) ** 2
        assert drift + potential(regret + lost) - potential(regret) <= spread + end + 1e-9
