"""A grid that grows: the rule, the proof and the bound."""

from __future__ import annotations

import math
import random

import naive_calibrators as naive
import naive_drift_rules as slow
import numpy as np
import players
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Recalibrator, bounds, metrics
from calibrant.calibrators import Growing
from calibrant.errors import InvalidInput
from calibrant.kernels import anchor as kernel
from calibrant.kernels.anchor import PULL, REGRET, STEP
from calibrant.kernels.layout import MIXED, SCALE, TABLE
from calibrant.simulate import play

pytestmark = pytest.mark.base

FINE = {"resolution": 1, "doublings": 3}
"""Grids of 1, 2, 4 and 8 steps; refined after 30, 263 and 2,280 outcomes."""


def rec_of(**options):
    return Recalibrator("growing", **{"buckets": 1, "seed": 3} | FINE | options)


def law_of(indices, weights, cells):
    law = np.zeros(cells)
    law[list(indices)] = [float(w) for w in weights]
    return law


# The rule.


def test_a_grid_is_refined_when_what_is_left_to_learn_costs_less_than_its_floor() -> None:
    assert [kernel.due(n) for n in (1, 2, 4)] == [30, 263, 2280]
    for n in [*range(1, 60), 100, 333, 640]:
        assert kernel.due(n) == slow.due(n)


@pytest.mark.parametrize("strength", [0.0, 4.0])
def test_a_growing_rule_plays_as_its_obvious_version_does(strength) -> None:
    rule = Growing(**FINE, strength=strength)
    state, rng = rule.start(centre=0.3), random.Random(strength)
    values = naive.fractions(rule.lattice)
    obvious = slow.Growing(values, 0, 0.3, 3, strength=strength)
    for _ in range(290):
        mixture, wanted = rule.forecast(state), obvious.mixture()
        law = law_of(mixture.indices, mixture.weights, 9)
        assert law == pytest.approx(law_of(wanted, wanted.values(), 9), abs=1e-12)
        drawn = rng.choices(range(9), law)[0]
        outcome = int(rng.random() < 0.45)
        state = rule.update(state, drawn, outcome)
        obvious.update(drawn, outcome)
    assert obvious.step == 2


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_late_outcomes_are_learned_for_the_pair_that_was_announced(compiled) -> None:
    rec = rec_of().compile() if compiled else rec_of()
    obvious = slow.Growing(naive.fractions(rec.calibrator.lattice), 0, 0.5, 3)
    rng, waiting, widths, crowd = random.Random(5), [], set(), naive.Crowd()
    for number in range(400):
        crowd.forecast(len(waiting))
        obvious.anchor = rng.random()
        ticket, wanted = rec.forecast(obvious.anchor), obvious.mixture()
        law = law_of(ticket.mixture.indices, ticket.mixture.weights, 9)
        assert law == pytest.approx(law_of(wanted, wanted.values(), 9), abs=1e-12)
        waiting.append((number, ticket, wanted))
        for _ in range(rng.choice([0, 0, 1, 3])):
            if waiting:
                made, found, mixture = waiting.pop(rng.randrange(len(waiting)))
                widths.add((found.step, obvious.step))
                outcome = int(rng.random() < 0.8 * found.raw)
                rec.observe(found, outcome)
                among = crowd.outcome(number - made)
                obvious.update(found.index, outcome, found.raw, mixture, among)
    assert {(8, 8), (8, 4), (4, 4), (4, 2), (2, 2)} <= widths


def test_before_it_grows_it_plays_as_anchored_does() -> None:
    raw, outcomes = players.stream(400, 1)
    fine = Recalibrator("growing", resolution=4, doublings=2, seed=3, buckets=2)
    coarse = Recalibrator("anchored", resolution=4, seed=3, buckets=2)
    assert players.by_tickets(fine, raw, outcomes) == players.by_tickets(coarse, raw, outcomes)


def test_without_doublings_it_is_anchored() -> None:
    raw, outcomes = players.stream(600, 1)
    one, other = (
        Recalibrator(name, resolution=2, seed=3, buckets=1, **options)
        for name, options in (("growing", {"doublings": 0}), ("anchored", {}))
    )
    assert players.by_tickets(one, raw, outcomes) == players.by_tickets(other, raw, outcomes)
    assert one.certificate().bounds[0].value == other.certificate().bounds[0].value


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"grid": "logit"}, "grid must be 'endpoints' to be refined, got 'logit'"),
        ({"doublings": 8}, "doublings must be a whole number from 0 to 7, got 8"),
        (
            {"resolution": 513},
            "resolution must be at most 512 with 5 doublings, got 513",
        ),
        ({"strength": -1.0}, "strength must be in [0, 1e6], got -1.0"),
    ],
)
def test_a_grid_that_cannot_be_refined_is_refused(options, text) -> None:
    with pytest.raises(InvalidInput) as refused:
        Growing(**options)
    assert str(refused.value) == text


def test_only_a_point_of_the_pair_can_have_been_drawn() -> None:
    rule = Growing(**FINE)
    for index in (1, 4, 16):
        with pytest.raises(InvalidInput) as refused:
            rule.update(rule.start(), index, 1)
        assert str(refused.value) == f"index must be one of the mixture's 0, 8, got {index}"


def test_the_finest_grid_has_room_from_the_start() -> None:
    rule = Growing(resolution=512)
    assert (rule.resolution, rule.lattice.resolution) == (512, 16_384)
    assert Growing(**rule.parameters) == rule


# The proof.


@st.composite
def grown_rounds(draw):
    """Any counts at points in use, an anchor, a regret; and the mixture that is announced then."""
    rule = Growing(
        resolution=draw(st.integers(1, 3)),
        doublings=draw(st.integers(0, 2)),
        strength=draw(st.sampled_from([0.0, 0.5, 4.0, 50.0])),
        patience=draw(st.sampled_from([2.85, 3.0, 20.0])),
    )
    cells, state, left = rule.lattice.cells, rule.start().copy(), draw(st.integers(0, 2))
    left = min(left, rule.doublings)
    numbers = draw(st.lists(st.integers(0, 30), min_size=cells, max_size=cells))
    counts = np.where(np.arange(cells) % 2**left == 0, numbers, 0)
    ones = np.array([draw(st.integers(0, int(n))) for n in counts])
    anchor, regret = draw(st.floats(0, 1)), draw(st.floats(-30, 30))
    gaps = np.where(counts > 0, ones / np.maximum(counts, 1) - rule.lattice.values, 0.0)
    pull = rule.strength * math.exp(min(regret / rule.patience, 0.0))
    at, table = players.block_of(state), state[int(state[TABLE]) :][:cells]
    block = players.cells_of(rule, state)
    block[:, 0], block[:, 1] = state[SCALE] * ones - counts * table, counts
    block.view(float)[:, 2] = gaps
    state[at + STEP] = left
    state.view(float)[[MIXED, at + REGRET, at + PULL]] = anchor, regret, pull
    return rule, 2**left, gaps, anchor, regret, pull, rule.forecast(state)


@given(grown_rounds())
def test_a_pair_of_neighbours_in_use_points_nowhere_on_average(case) -> None:
    rule, step, gaps, anchor, _, pull, mixture = case
    scores = gaps + pull * (anchor - rule.lattice.values)
    told = sum(w * scores[k] for k, w in zip(mixture.indices, mixture.weights, strict=True))
    assert abs(told) < 1e-12 * (1 + pull)
    low, *rest = mixture.indices
    assert low % step == 0
    assert rest in ([], [low + step])


@given(grown_rounds())
def test_a_round_raises_the_potential_by_half_a_step_squared_at_most(case) -> None:
    rule, step, gaps, anchor, regret, _, mixture = case
    c, R0, values = rule.strength, rule.patience, rule.lattice.values

    def potential(x):
        return c * R0 * math.exp(x / R0) if x < 0 else c * (R0 + x)

    half = step / (2 * rule.lattice.resolution)
    for y in (0, 1):
        drift = sum(
            w * (2 * gaps[k] * (y - values[k]) - gaps[k] ** 2)
            for k, w in zip(mixture.indices, mixture.weights, strict=True)
        )
        lost = (mixture.mean - y) ** 2 - (anchor - y) ** 2
        assert drift + potential(regret + lost) - potential(regret) <= half**2 + 1e-9


# The bound.


def half_steps(resolution, doublings, rounds):
    """The squared half step of every round, one by one."""
    found, n, left = [], resolution, doublings
    for t in range(rounds):
        while left and t >= slow.due(n):
            n, left = 2 * n, left - 1
        found.append(1 / (4 * n * n))
    return found


@pytest.mark.parametrize("rounds", [1, 30, 31, 400])
def test_the_bound_adds_up_what_every_round_may_cost(rounds) -> None:
    floors = sum(half_steps(1, 2, rounds))
    k = min({1: 2, 30: 2, 31: 3, 400: 5}[rounds], rounds)
    wanted = (12.0 + floors + k * (1 + math.log(rounds / k))) / rounds
    assert bounds.growing(rounds, 1, 2).value == pytest.approx(wanted, rel=1e-12)
    more = bounds.growing(rounds, 1, 2, failure=1e-6)
    assert more.value == pytest.approx(wanted + math.sqrt(2 * math.log(1e6) / rounds), rel=1e-12)
    assert "at least 0.999999" in more.assumption


@given(st.lists(st.integers(0, 400), min_size=1, max_size=4).filter(any))
def test_the_worst_split_over_buckets_is_the_even_one(rounds) -> None:
    counts = np.zeros((len(rounds), 5), int)
    counts[:, 0] = rounds
    used, total = sum(n > 0 for n in rounds), sum(rounds)
    floors = sum(sum(half_steps(1, 2, n)) for n in rounds)
    harmonic = sum(1 / i for n in rounds for i in range(1, n + 1))
    seen = bounds.growing_measured(counts, 1, 2)
    assert seen.value == pytest.approx((12 * used + floors + harmonic) / total, rel=1e-9)
    regret = bounds.growing_regret(counts, 1, 2)
    assert regret.value == pytest.approx(((floors + harmonic) / 4 + floors) / total, rel=1e-9)
    assert seen.value <= bounds.growing(total, 1, 2, buckets=len(rounds)).value + 1e-12


def test_the_bound_has_no_floor_as_long_as_doublings_are_left() -> None:
    found = [bounds.growing(10**k, 20, 30).value for k in range(4, 16)]
    scaled = [
        value / (math.log(10**k) / 10**k) ** (2 / 3)
        for k, value in zip(range(4, 16), found, strict=True)
    ]
    assert all(0.5 < s < 2.5 for s in scaled)
    assert bounds.growing(10**15, 20, 2).value == pytest.approx(1 / (4 * 80**2), rel=1e-3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: bounds.growing(0, 2, 1), "rounds must be a whole number of at least 1, got 0"),
        (
            lambda: bounds.growing_measured([[1, 2, 3]], 2, 1),
            "counts must be rows of 5 numbers, got 3",
        ),
        (
            lambda: bounds.growing_regret([[1, 2]], 1, 0, strength=0.0),
            "strength must be a finite number above 0, got 0.0",
        ),
    ],
)
def test_a_bound_of_nonsense_is_refused(call, text) -> None:
    with pytest.raises(InvalidInput) as refused:
        call()
    assert str(refused.value) == text


def test_no_promise_is_made_about_late_outcomes_or_without_a_pull() -> None:
    rec = rec_of()
    first, second = rec.forecast(0.5), rec.forecast(0.5)
    rec.observe(second, 1)
    rec.observe(first, 0)
    assert rec.certificate().bounds == ()
    rec = rec_of(strength=0.0)
    rec.replay([0.5], [1])
    account = rec._account()
    assert rec.calibrator.regret(account) is None
    assert rec.calibrator.measured(account).value == pytest.approx(0.25 + 1)


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["threshold", "greedy_calibration", "bernoulli"])
def test_the_draws_get_below_the_floor_of_the_first_grid_whoever_plays(adversary) -> None:
    floor = 1 / 4
    grown, fixed = rec_of(), Recalibrator("anchored", resolution=1, buckets=1, seed=3)
    record = play(grown, "uniform", adversary, 4000, seed=1)
    play(fixed, "uniform", adversary, 4000, seed=1)
    assert fixed.certificate().c2 > 0.8 * floor
    assert grown.certificate().c2 < 0.1 * floor
    assert grown.certificate().holds
    assert grown.certificate().c2 == pytest.approx(
        metrics.calibration_error(record.forecast, record.outcomes, power=2)
    )
