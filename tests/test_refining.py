"""The rule whose cells split: its proof, its grid, its bound, and streams of rare events."""

from __future__ import annotations

import math

import naive_refining as naive
import numpy as np
import players
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_calibrators import fractions
from refined import costs_its_variance, points_nowhere, refined_rounds

from calibrant import Calibrant, Recalibrator, bounds, metrics
from calibrant.calibrators import Account, Refining
from calibrant.core.grid import Grid
from calibrant.errors import InvalidInput
from calibrant.kernels.refine import UNIT, VARIANCE
from calibrant.registry import calibrators
from calibrant.regression import Distribution, QuantileRecalibrator

pytestmark = pytest.mark.base
OUTCOMES = (0, 1)


# The proof: Q + p(R) with Q = sum S^2/(n + 1), whatever is in use.


@given(refined_rounds())
def test_neighbours_in_use_point_nowhere_on_average(case) -> None:
    points_nowhere(case)


@given(refined_rounds())
def test_a_round_raises_the_potential_by_the_variance_of_its_pair_at_most(case) -> None:
    costs_its_variance(case)


@given(st.integers(0, 40), st.floats(0, 1), st.data())
def test_the_draw_with_which_a_cell_begins_costs_no_more_than_the_harmonic_sum(n, g, data) -> None:
    """What n visits add to S^2/n, step by step, is at most H(n)."""
    S, added = 0.0, 0.0
    for k in range(n):
        v = data.draw(st.integers(0, 1)) - g
        added += (v - S / (k + 1)) ** 2 / (k + 2)
        S += v
    more = S * S / n - S * S / (n + 1) if n else 0.0
    assert added + more <= sum(1 / k for k in range(1, n + 1)) + 1e-12


# What the state says.


def test_a_split_keeps_every_gap_and_every_count() -> None:
    rng, raw = np.random.default_rng(1), 0.3
    rec = Recalibrator("refining", resolution=2, doublings=3, buckets=1, seed=1)
    tally, steps = {}, set()
    for _ in range(300):
        ticket, y = rec.forecast(raw), int(rng.random() < 0.2)
        steps.add(ticket.step)
        rec.observe(ticket, y)
        n, ones = tally.get(ticket.index, (0, 0))
        tally[ticket.index] = n + 1, ones + y
    account = rec._account()
    assert steps == {8, 4, 2, 1}
    assert {k: (n, y) for k, (n, y) in tally.items() if n} == {
        k: (int(n), int(y))
        for k, (n, y) in enumerate(zip(account.counts[0], account.ones[0], strict=True))
        if n
    }


def test_the_variance_of_all_pairs_is_known() -> None:
    raw, outcomes = players.stream(300, 2)
    rec = Recalibrator("refining", resolution=4, buckets=1, seed=3)
    obvious = naive.Refining(fractions(rec.calibrator.lattice))
    for p, y in zip(raw, outcomes, strict=True):
        ticket = rec.forecast(p)
        obvious.anchor = p
        rec.observe(ticket, y)
        obvious.update(ticket.index, y)
    told = int(rec._account().blocks[0][VARIANCE]) / UNIT
    assert obvious.variance <= told <= obvious.variance + 300 / UNIT


def test_a_grid_of_a_coarser_one_has_all_its_points() -> None:
    for size in (1, 5, 18):
        for width in (1, 2, 3):
            coarse, fine = Grid("graded", size), Grid("graded", size << width)
            assert coarse.numerators == fine.numerators[:: 1 << width]


@given(st.integers(1, 400))
def test_a_graded_grid_is_symmetric_increasing_and_leaves_out_both_ends(n) -> None:
    grid = Grid("graded", n)
    numerators = np.array(grid.numerators)
    assert (np.diff(numerators) > 0).all()
    assert (numerators + numerators[::-1] == grid.denominator).all()
    assert (numerators[0], len(numerators)) == (1 << 10, n + 1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"grid": "logit"}, "grid must be 'graded' or 'endpoints' to be refined, got 'logit'"),
        ({"doublings": 8}, "doublings must be a whole number from 0 to 7, got 8"),
        ({"resolution": 1025}, "resolution must be at most 1024 with 2 doublings, got 1025"),
    ],
)
def test_what_cannot_be_refined_is_refused(options, text) -> None:
    with pytest.raises(InvalidInput) as refused:
        Refining(**options)
    assert str(refused.value) == text


def test_without_a_pull_there_is_no_bound_on_the_loss_to_the_anchors() -> None:
    raw, outcomes = players.stream(50, 1)
    rec = Recalibrator("refining", buckets=1, strength=0.0, seed=1)
    rec.replay(raw, outcomes)
    assert rec.calibrator.regret(rec._account()) is None


# The bound.


def test_the_bound_falls_with_the_rounds_until_the_grid_is_finest() -> None:
    values = Grid("graded", 15 << 4).values
    found = [bounds.refining(10**k, values, 4).value for k in (3, 4, 5, 6, 7, 8)]
    assert found == sorted(found, reverse=True)
    coarse = bounds.refining(10**8, Grid("graded", 15).values).value
    assert found[-1] < coarse / 50


def test_more_outcomes_outstanding_never_lower_the_bound() -> None:
    values = Grid("graded", 15 << 2).values
    found = [bounds.refining(10_000, values, 2, delay=d).value for d in (0, 1, 10, 1000)]
    assert found == sorted(found)
    assert found[0] < found[-1]


@pytest.mark.parametrize("delay", [1, 5])
def test_late_outcomes_leave_a_promise_in_one_bucket(delay) -> None:
    raw, outcomes = players.stream(200, 4)
    rec, waiting = Recalibrator("refining", buckets=1, seed=1), []
    for p, y in zip(raw, outcomes, strict=True):
        waiting.append((rec.forecast(p), y))
        if len(waiting) > delay:
            rec.observe(*waiting.pop(0))
    told = rec.certificate().bounds
    assert {bound.quantity for bound in told} >= {"C2", "regret"}
    assert all("under delay" in bound.theorem for bound in told if bound.quantity == "C2")


def test_a_promise_for_ever_is_about_the_finest_grid() -> None:
    model = Calibrant.from_epsilon(0.001, method="refining", seed=1)
    made, mixture = model.calibrator, model.transform
    coarser = Refining(resolution=made.resolution - 1)
    limits = []
    for rule in (made, coarser):
        counts = np.full((1, rule.lattice.cells), 10**15)
        blocks = rule.worst_blocks(counts, swaps=True)
        worst = Account(counts, counts // 2, 0, np.array([0.5]), blocks)
        limits.append(rule.regret(worst).value)
        # One round in 16 may be on the first grid, because of swaps of models.
        first = float(np.diff(rule.lattice.values[:: 1 << rule.doublings]).max()) / 2
        floor = rule.lattice.half_cell**2 + first**2 / 16
        assert limits[-1] == pytest.approx((1 + 1 / rule.strength) * floor, rel=1e-3)
    shared = -math.log1p(-mixture.share) / mixture.eta
    assert limits[0] + shared <= 0.001 < limits[1] + shared


# Rare events.


def rare(rounds, seed):
    rng = np.random.default_rng(seed)
    odds = -5.5 + 1.25 * rng.standard_normal(rounds)
    outcomes = (rng.random(rounds) < 1 / (1 + np.exp(-odds))).astype(np.uint8)
    return 1 / (1 + np.exp(-(0.6 * odds - 1.4))), outcomes


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01, 0.001])
def test_all_bars_of_rare_events_are_met(rate) -> None:
    # Imported here, for it needs more than NumPy.
    from benchmarks import rare as rare_events

    # Also that the mean under the log loss loses no more, in log loss, than under the squared one.
    runs = [rare_events.score(rate, 50_000, seed, "refining") for seed in range(6)]
    told = rare_events.Scores(*np.mean([list(vars(run).values()) for run in runs], axis=0).tolist())
    assert [name for name, met in rare_events.bars(rate, 50_000, told).items() if not met] == []
    assert told.ends == 0.0


@pytest.mark.slow
def test_draws_of_rare_events_lose_little_to_their_means() -> None:
    raw, outcomes = rare(20_000, 5)
    run = Calibrant(method="refining", seed=5).replay(raw, outcomes)
    drawn, mean = run.forecast, run.mean
    assert 0.0 < drawn.min() <= drawn.max() < 1.0
    assert metrics.mean_loss(drawn, outcomes, loss="log") <= 1.03 * metrics.mean_loss(
        mean, outcomes, loss="log"
    )
    assert metrics.auc(drawn, outcomes) >= metrics.auc(mean, outcomes) - 0.01
    assert metrics.brier(drawn, outcomes) <= metrics.brier(mean, outcomes) + 0.0003


def test_zero_and_one_are_said_only_if_asked_for() -> None:
    raw, outcomes = np.zeros(50), np.zeros(50, np.uint8)
    run = Calibrant(method="refining", seed=5).replay(raw, outcomes)
    told = Calibrant(method="refining", grid="endpoints", seed=5).replay(raw, outcomes)
    assert run.forecast.min() > 0.0
    assert told.forecast.min() == 0.0
    assert (told.forecast == 0.0).mean() > 0.9


def test_levels_of_a_distribution_may_be_calibrated_by_cells_that_split() -> None:
    made = QuantileRecalibrator("pit", calibrator="refining", resolution=5, seed=1)
    for k in range(40):
        made.observe(made.forecast(Distribution.normal(0.0, 1.0)), float(k % 7 - 3))
    assert QuantileRecalibrator.from_bytes(made.to_bytes()) == made


def test_rules_without_splits_look_at_counts_alone() -> None:
    counts = np.array([[3, 4, 5]])
    assert calibrators.get("anchored")().worst_blocks(counts) is counts
