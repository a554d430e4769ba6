"""Recalibrated distributions: the tracker's guarantee, PIT levels, atoms and sorting."""

from __future__ import annotations

import math

import naive_regression as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import bounds
from calibrant.calibrators import FosterHart
from calibrant.errors import InvalidInput, InvalidType, UnknownName
from calibrant.kernels.layout import SCALE
from calibrant.recalibrate.secret import SAFE, coin_at, secret_of
from calibrant.regression import Distribution, Distributions, QuantileRecalibrator, metrics
from calibrant.regression.pit import TAILS, LevelCalibrator, LevelSpec

pytestmark = pytest.mark.base

number = st.integers(-8, 8).map(lambda k: k / 2)
steps = st.sampled_from([0.01, 0.1, 0.5, 2.0])
levels = st.lists(st.integers(1, 19), min_size=1, max_size=4, unique=True).map(
    lambda ks: sorted(k / 20 for k in ks)
)


def positions(rec):
    return rec._method.positions


def stream(rounds, seed=0, sd=0.5, shift=0.3):
    """Normal forecasts that are too narrow and too low."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=rounds)
    return Distributions.normal(mean, np.full(rounds, sd)), mean + shift + rng.normal(size=rounds)


# The tracker.


@given(levels, steps, st.lists(st.tuples(number, st.integers(1, 8), number), max_size=40))
def test_the_tracker_is_the_printed_algorithm(levels, step, rounds) -> None:
    rec = QuantileRecalibrator("tracker", levels, step=step, seed=1)
    functions = [lambda q, m=m, s=s: naive.normal_quantile(m, s, q) for m, s, _ in rounds]
    told, last = naive.track(levels, step, functions, [y for *_, y in rounds])
    for (mean, sd, y), said in zip(rounds, told, strict=True):
        ticket = rec.forecast(Distribution.normal(mean, sd))
        assert ticket.tracked.tolist() == pytest.approx(said, abs=1e-9)
        assert ticket.quantiles.tolist() == sorted(ticket.tracked.tolist())
        rec.observe(ticket, y)
    assert positions(rec).tolist() == pytest.approx(last, abs=1e-9)


def kept(record):
    """Say whether what was measured is below its bound, however little that says."""
    if record.bound is None or record.measured is None:
        return True
    return record.measured <= record.bound.value + 1e-9


@given(levels, steps, st.sampled_from(["random", "below"]), st.data())
def test_fact_15_coverage_is_within_its_bound_after_every_round_of_any_sequence(
    levels, step, ties, data
) -> None:
    rec = QuantileRecalibrator("tracker", levels, step=step, ties=ties, seed=1)
    rows = data.draw(st.lists(st.tuples(st.lists(number, min_size=3, max_size=3), number)))
    for members, y in rows:
        rec.observe(rec.forecast(Distribution.from_samples(members)), y)
        record = rec.certificate()
        assert all(map(kept, record.levels))
        bound = (1.0 + step) / (step * rec.rounds)
        assert all(row.bound.value == pytest.approx(bound, rel=1e-12) for row in record.levels)
        assert (positions(rec) >= -step - 1e-12).all()
        assert (positions(rec) <= 1.0 + step + 1e-12).all()


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("step", [0.01, 0.1, 1.0])
def test_an_adversary_who_sees_the_quantile_cannot_break_the_bound(step, side) -> None:
    rec = QuantileRecalibrator("tracker", [0.25, 0.5, 0.9], step=step, seed=1)
    worst = 0.0
    for _ in range(400):
        ticket = rec.forecast(Distribution.normal(0.0, 1.0))
        aim = ticket.tracked[1]
        # On one side of what was announced, as long as that is finite.
        y = aim + side * 1e-6 if math.isfinite(aim) else 0.0
        rec.observe(ticket, y)
        record = rec.certificate()
        assert all(map(kept, record.levels))
        worst = max(worst, *(row.measured / row.bound.value for row in record.levels))
    # What a position in the middle can move, of what the bound allows: the adversary bites.
    assert worst > 0.24 + 0.21 * (step < 1.0)


@given(st.lists(st.tuples(st.integers(0, 6), number), min_size=1, max_size=60), steps)
def test_late_outcomes_cost_what_the_bound_says(rounds, step) -> None:
    rec, waiting = QuantileRecalibrator("tracker", [0.2, 0.7], step=step, seed=1), []
    for lag, y in rounds:
        waiting.append((rec.forecast(Distribution.normal(0.0, 1.0)), y))
        while len(waiting) > lag:
            rec.observe(*waiting.pop(len(waiting) // 2))
    for ticket, y in waiting:
        rec.observe(ticket, y)
    record = rec.certificate()
    assert all(map(kept, record.levels))
    assert record.delay <= 6
    expected = bounds.quantile_tracker(len(rounds), step, delay=record.delay)
    assert record.levels[0].bound == expected


def test_without_the_delay_the_bound_would_be_too_small() -> None:
    rec = QuantileRecalibrator("tracker", [0.5], step=1.0, seed=1)
    tickets = [rec.forecast(Distribution.normal(0.0, 1.0)) for _ in range(20)]
    for ticket in tickets:
        rec.observe(ticket, -5.0)
    (row,) = rec.certificate().levels
    assert row.measured > bounds.quantile_tracker(20, 1.0).value
    assert kept(row)


@given(levels, steps, st.lists(st.tuples(number, number), min_size=1, max_size=40))
def test_sorting_keeps_the_sum_over_levels_and_never_hurts_the_pinball_loss(
    levels, step, rounds
) -> None:
    rec = QuantileRecalibrator("tracker", levels, step=step, seed=1)
    raw = Distributions.normal([mean for mean, _ in rounds], np.ones(len(rounds)))
    outcomes = np.array([y for _, y in rounds])
    run = rec.replay(raw, outcomes)
    before = (outcomes[:, None] <= run.tracked).mean(axis=0)
    after = (outcomes[:, None] <= run.quantiles).mean(axis=0)
    assert before.sum() == pytest.approx(after.sum())
    told = [row.coverage for row in rec.certificate().levels]
    assert told == pytest.approx(after.tolist())
    for k, y in enumerate(outcomes.tolist()):
        if np.isfinite(run.tracked[k]).all():
            losses = [
                sum(naive.pinball(p, x, y) for p, x in zip(levels, xs, strict=True))
                for xs in (run.quantiles[k], run.tracked[k])
            ]
            assert losses[0] <= losses[1] + 1e-9
    # The mean of the errors over levels keeps the guarantee of each.
    bound = bounds.quantile_tracker(len(rounds), step).value
    assert abs((after - levels).mean()) <= bound + 1e-12


@given(steps, st.lists(number, max_size=60))
def test_positions_that_cross_come_apart_again(step, outcomes) -> None:
    rec = QuantileRecalibrator("tracker", [0.3, 0.4, 0.8], step=step, seed=1)
    for y in outcomes:
        before = np.diff(positions(rec))
        rec.observe(rec.forecast(Distribution.normal(0.0, 1.0)), y)
        after = np.diff(positions(rec))
        assert (after >= -step).all()
        assert (after[before < 0] > before[before < 0]).all()


def test_one_level_alone_may_lose_its_guarantee_by_sorting() -> None:
    # Levels closer than the step: positions cross, and one level pays for the other.
    rng = np.random.default_rng(3)
    for _ in range(200):
        rec = QuantileRecalibrator("tracker", [0.45, 0.55], step=2.0, seed=1)
        rec.replay(Distributions.normal(np.zeros(50), np.ones(50)), rng.normal(size=50))
        rows = rec.certificate().levels
        assert all(map(kept, rows))
        assert any(abs(row.coverage - row.level) > row.bound.value for row in rows)


def test_a_position_outside_says_nothing_about_the_whole_distribution() -> None:
    rec = QuantileRecalibrator("tracker", [0.1, 0.9], step=0.5, seed=1)
    rec.learn_one(Distribution.normal(0.0, 1.0), -5.0)
    ticket = rec.forecast(Distribution.normal(0.0, 1.0))
    assert ticket.quantiles[0] == -math.inf
    assert ticket.inner.tolist()[0] == ticket.outer.tolist()[0] == 0.0
    assert math.isfinite(ticket.value.crps(0.0))
    assert ticket.value.quantile(0.9) == pytest.approx(ticket.quantiles[1], abs=1e-6)
    rec.learn_one(Distribution.normal(0.0, 1.0), 5.0)
    rec.learn_one(Distribution.normal(0.0, 1.0), 5.0)
    rec.learn_one(Distribution.normal(0.0, 1.0), 5.0)
    assert rec.forecast(Distribution.normal(0.0, 1.0)).quantiles[1] == math.inf


# One calibrator a level.


@pytest.mark.parametrize(("level", "scale"), [(0.0, 5), (1.0, 5), (0.5, 10), (0.75, 20)])
def test_gaps_of_a_level_alone_have_the_smallest_common_denominator(level, scale) -> None:
    spec = LevelSpec(FosterHart(resolution=5), 1, 1, "squared", level=level)
    assert spec.layout.shared[SCALE] == scale


def test_chances_are_those_of_one_recalibrator_a_level() -> None:
    raw, outcomes = stream(300)
    rec = QuantileRecalibrator("pit", [0.2, 0.5], seed=3, resolution=10)
    run = rec.replay(raw, outcomes)
    inner = np.union1d([0.2, 0.5], TAILS)
    seed = int.from_bytes(secret_of(3, None), "little", signed=True)
    for k, level in enumerate(inner.tolist()):
        engine = LevelCalibrator(level, "foster_hart", seed=seed, key=k, resolution=10, prior=1)
        below = outcomes <= raw.quantile([level])[:, 0]
        own = engine.replay(np.full(300, level), below)
        assert run.drawn[:, k].tolist() == own.forecast.tolist()
    assert run.outer.tolist() == np.sort(run.drawn, axis=1).tolist()
    assert run.inner[0].tolist() == inner.tolist()


def test_a_level_starts_as_if_it_were_right() -> None:
    rec = QuantileRecalibrator("pit", [0.1, 0.37, 0.9], seed=1)
    ticket = rec.forecast(Distribution.normal(0.0, 1.0))
    assert ticket.outer == pytest.approx(ticket.inner, abs=1 / 50)
    assert ticket.mean.quantile(0.5) == pytest.approx(0.0, abs=0.1)


@pytest.mark.slow
def test_forecasts_become_calibrated_and_better() -> None:
    raw, outcomes = stream(1_100)
    # The tracker's outer levels are often beyond the end, and say nothing about the tails then.
    for method, error in (("pit", 0.004), ("tracker", 0.02)):
        rec = QuantileRecalibrator(method, levels=9, seed=1)
        run = rec.replay(raw, outcomes)
        assert metrics.crps(run.mean, outcomes) < 0.95 * metrics.crps(raw, outcomes)
        before = metrics.pit_histogram(raw, outcomes, intervals=10).error
        after = metrics.pit_histogram(run.forecast, outcomes, intervals=10).error
        assert before > 0.05
        assert after < error
        assert metrics.crps(run.forecast, outcomes) < 0.95 * metrics.crps(raw, outcomes)
        assert rec.certificate().holds
        assert rec.certificate().error < 0.03


def test_the_rows_of_a_certificate_are_those_of_the_levels() -> None:
    raw, outcomes = stream(500)
    rec = QuantileRecalibrator("pit", [0.3, 0.6], seed=2)
    run = rec.replay(raw, outcomes)
    rows = rec.certificate().levels
    assert [row.level for row in rows] == [0.3, 0.6]
    found = (outcomes[:, None] <= run.quantiles).mean(axis=0)
    assert [row.coverage for row in rows] == pytest.approx(found.tolist())
    for row in rows:
        k = np.flatnonzero(run.inner[0] == row.level)[0]
        below = outcomes <= raw.quantile([row.level])[:, 0]
        values = np.unique(run.drawn[:, k])
        parts = [
            (below[run.drawn[:, k] == v].mean() - v, (run.drawn[:, k] == v).mean()) for v in values
        ]
        assert row.measured == pytest.approx(sum(w * gap**2 for gap, w in parts))
        assert row.quantity == "C2"
    assert "0.300: covered" in rec.certificate().details()


@pytest.mark.parametrize("calibrator", ["blackwell", "running_mean"])
def test_the_bound_is_that_of_the_calibrator_if_it_has_one(calibrator) -> None:
    raw, outcomes = stream(300)
    rec = QuantileRecalibrator("pit", [0.5], calibrator=calibrator, resolution=10, seed=1)
    rec.replay(raw, outcomes)
    (row,) = rec.certificate().levels
    assert row.quantity == ("C1" if calibrator == "blackwell" else "C2")
    assert (row.bound is None) == (calibrator == "running_mean")
    assert (rec.certificate().holds is None) == (calibrator == "running_mean")


def test_an_adversary_who_does_not_see_the_draw_cannot_break_a_level() -> None:
    rec = QuantileRecalibrator("pit", [0.5], seed=1, resolution=10)
    for _ in range(1_500):
        ticket = rec.forecast(Distribution.normal(0.0, 1.0))
        k = np.flatnonzero(ticket.inner == 0.5)[0]
        # Below the raw median whenever that was said to be unlikely.
        rec.observe(ticket, -1.0 if ticket.outer_mean[k] < 0.5 else 1.0)
    (row,) = rec.certificate().levels
    assert row.holds
    assert row.measured < 0.02


# Atoms.


def rain(rounds, seed=0):
    """Ensembles of rain that say dry in half of their members, where 80 % of days are dry."""
    rng = np.random.default_rng(seed)
    members = np.where(rng.random((rounds, 10)) < 0.5, 0.0, rng.exponential(size=(rounds, 10)))
    members[:, 0] = 0.0
    outcomes = np.where(rng.random(rounds) < 0.8, 0.0, rng.exponential(size=rounds))
    return Distributions.from_samples(members), outcomes


@pytest.mark.parametrize("method", ["pit", "tracker"])
def test_dry_days_are_shared_out_among_the_levels_that_say_dry(method) -> None:
    raw, outcomes = rain(1_000)
    rec = QuantileRecalibrator(method, 9, seed=1)
    run = rec.replay(raw, outcomes)
    assert rec.certificate().error < 0.03
    assert metrics.pit_histogram(raw, outcomes, intervals=10).error > 0.02
    assert metrics.pit_histogram(run.forecast, outcomes, intervals=10).error < 0.006
    dry = [part.cdf(np.zeros(1_000)).mean() for part in (raw, run.forecast)]
    assert dry[0] < 0.56
    assert dry[1] > 0.65


def test_a_plain_comparison_counts_every_dry_day_as_covered() -> None:
    raw, outcomes = rain(1_000)
    plain = QuantileRecalibrator("pit", [0.3], ties="below", seed=1)
    run = plain.replay(raw, outcomes)
    k = np.flatnonzero(run.inner[0] == 0.3)[0]
    assert run.drawn[-1, k] > 0.7
    shared = QuantileRecalibrator("pit", [0.3], seed=1).replay(raw, outcomes)
    assert shared.drawn[-300:, k].mean() < 0.6


def test_the_coin_of_an_atom_is_that_of_its_ticket_however_late_the_outcome() -> None:
    rec = QuantileRecalibrator("tracker", [0.5], step=1.0, seed=9)
    dry = Distribution.from_samples([0.0, 0.0, 0.0, 1.0])
    tickets = [rec.forecast(dry) for _ in range(30)]
    for ticket in reversed(tickets):
        before = positions(rec)[0]
        rec.observe(ticket, 0.0)
        covered = coin_at(secret_of(9, None), SAFE, 0, ticket.number) < 0.5 / 0.75
        assert positions(rec)[0] == pytest.approx(before + 0.5 - covered)


# Input.


def test_levels_are_a_number_or_given_in_order() -> None:
    assert QuantileRecalibrator(levels=3, seed=1).levels.tolist() == [0.25, 0.5, 0.75]
    rec = QuantileRecalibrator(levels=[0.1, 0.9], seed=1)
    rec.levels[0] = 7.0
    assert rec.levels.tolist() == [0.1, 0.9]
    assert rec.method == "mixed"
    for bad, told in (
        (0, "levels must be a whole number from 1 to 1000, got 0"),
        ([], "number of levels must be a whole number from 1 to 1000, got 0"),
        ([0.5, 0.5], r"levels\[1\] must be above the one before it, got 0.5"),
        ([0.0, 0.5], r"levels\[0\] must be between 0 and 1, got 0.0"),
    ):
        with pytest.raises(InvalidInput, match=told):
            QuantileRecalibrator(levels=bad)
    with pytest.raises((InvalidInput, InvalidType), match="levels"):
        QuantileRecalibrator(levels=True)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="ties must be one of 'random', 'below', got 'maybe'"):
        QuantileRecalibrator(ties="maybe")
    for step in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidInput, match="step must be"):
            QuantileRecalibrator("tracker", step=step)
    with pytest.raises(UnknownName):
        QuantileRecalibrator(calibrator="nobody")
    with pytest.raises(InvalidInput, match="calibrator must be the name of one, got 7"):
        QuantileRecalibrator(calibrator=7)
    with pytest.raises(InvalidType, match="options must be ones of method 'tracker', got 'prior'"):
        QuantileRecalibrator("tracker", prior=3)


def test_only_distributions_come_in() -> None:
    rec = QuantileRecalibrator(seed=1, levels=[0.5])
    moved = Distributions.normal([0.0], [1.0]).moved(np.array([[0.5]]), np.array([[0.6]]))
    for call in (rec.forecast, rec.predict_one, lambda raw: rec.learn_one(raw, 1.0)):
        with pytest.raises(InvalidType, match=r"raw forecast must be a Distribution, got 0\.5"):
            call(0.5)
        with pytest.raises(InvalidInput, match="a normal distribution as it was given"):
            call(moved[0])
    with pytest.raises(InvalidInput, match="a normal distribution as it was given"):
        rec.replay(moved, [1.0])
    with pytest.raises(InvalidType, match="raw forecasts must be Distributions or a list, got "):
        rec.replay(Distribution.normal(0.0, 1.0), [1.0])
    with pytest.raises(InvalidType, match="raw forecasts must be Distributions or a list of Dis"):
        rec.replay(5, [1.0])
    mixed = [Distribution.normal(0.0, 1.0), Distribution.from_samples([1.0])]
    with pytest.raises(InvalidInput, match="raw forecasts must be of one form and size"):
        rec.replay(mixed, [1.0, 1.0])
    assert rec.issued == 0


def test_lists_of_distributions_are_replayed_like_tables() -> None:
    for table in (
        Distributions.normal([0.0, 1.0], [1.0, 2.0]),
        Distributions.from_cdf([0.0, 1.0], [[0.1, 0.9], [0.3, 0.4]]),
        Distributions.from_samples([[0.0, 1.0], [3.0, 4.0]]),
    ):
        one, other = (QuantileRecalibrator("tracker", 3, seed=1) for _ in range(2))
        one.replay(table, [0.5, 0.7])
        run = other.replay([table[0], table[1]], [0.5, 0.7])
        assert one == other
        assert len(run) == 2
    assert len(other.replay([], [])) == 0


@pytest.mark.parametrize("method", ["mixed", "pit", "tracker"])
def test_a_batch_has_the_distributions_and_means_of_single_rounds(method) -> None:
    raw, outcomes = stream(30)
    batch, single = (QuantileRecalibrator(method, levels=3, seed=4) for _ in range(2))
    run = batch.replay(raw, outcomes)
    for k, y in enumerate(outcomes):
        ticket = single.forecast(raw[k])
        assert (run.forecast[k].cdf(y), run.mean[k].cdf(y)) == (
            ticket.value.cdf(y),
            ticket.mean.cdf(y),
        )
        single.observe(ticket, y)


@settings(max_examples=5)
@given(st.integers(0, 1000))
def test_seeds_fix_the_draws(seed) -> None:
    raw, outcomes = stream(40)
    first, again = (QuantileRecalibrator(levels=3, seed=seed) for _ in range(2))
    assert first.replay(raw, outcomes).drawn.tolist() == again.replay(raw, outcomes).drawn.tolist()
    other = QuantileRecalibrator(levels=3, seed=seed, key="b")
    assert other.replay(raw, outcomes).drawn.tolist() != again.replay(raw, outcomes).drawn.tolist()


def test_a_step_that_would_take_positions_to_infinity_is_refused() -> None:
    with pytest.raises(InvalidInput, match="step must be at most 1e"):
        QuantileRecalibrator("tracker", 3, step=1e101)
