"""PIT, coverage, pinball loss and CRPS against slow oracles and scoringrules' numbers."""

from __future__ import annotations

import math

import naive_regression as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.errors import InvalidInput, InvalidType
from calibrant.regression import Distribution, Distributions, metrics

pytestmark = pytest.mark.base

number = st.integers(-8, 8).map(lambda k: k / 2)
LEVELS = [0.1, 0.5, 0.9]
Y = [0.0, -1.5, 2.25, 7.0]
TABLE = [[0.5, 1.0, 2.0], [0.0, 0.0, 1.0], [1.0, 2.0, 4.0], [5.0, 6.0, 6.5]]


@st.composite
def tables(draw):
    size = draw(st.integers(1, 8))
    rows = draw(
        st.lists(st.lists(number, min_size=3, max_size=3).map(sorted), min_size=size, max_size=size)
    )
    return rows, draw(st.lists(number, min_size=size, max_size=size))


@given(tables())
def test_coverage_counts_what_is_at_most_the_quantile(table) -> None:
    rows, outcomes = table
    for k, share in enumerate(metrics.coverage(rows, outcomes).tolist()):
        hits = [y <= row[k] for row, y in zip(rows, outcomes, strict=True)]
        assert share == pytest.approx(sum(hits) / len(hits))


@given(tables())
def test_pinball_and_quantile_calibration_are_their_definitions(table) -> None:
    rows, outcomes = table
    found = metrics.pinball(rows, outcomes, LEVELS).tolist()
    for k, level in enumerate(LEVELS):
        losses = [naive.pinball(level, row[k], y) for row, y in zip(rows, outcomes, strict=True)]
        assert found[k] == pytest.approx(sum(losses) / len(losses))
    shares = metrics.coverage(rows, outcomes)
    error = metrics.quantile_calibration_error(rows, outcomes, LEVELS)
    assert error == pytest.approx(sum((s - p) ** 2 for s, p in zip(shares, LEVELS, strict=True)))


def test_pinball_and_interval_scores_agree_with_scoringrules() -> None:
    # What quantile_score and interval_score of scoringrules 0.10.0 give for these, averaged.
    told = [[0.45, 1.35, 0.125, 0.2], [0.5, 0.75, 0.125, 0.5], [0.2, 0.25, 0.175, 0.45]]
    found = metrics.pinball(TABLE, Y, LEVELS)
    assert found == pytest.approx([np.mean(row) for row in told], abs=1e-12)
    low, high = [row[0] for row in TABLE], [row[2] for row in TABLE]
    score = metrics.interval_score(low, high, Y, 0.8)
    assert score == pytest.approx(np.mean([6.5, 16.0, 3.0, 6.5]))


def test_the_crps_is_twice_the_integral_of_the_pinball_loss() -> None:
    forecasts = Distributions.from_quantiles([0.0, 0.3, 1.0], [[-1.0, 0.0, 4.0], [0.0, 0.0, 1.0]])
    outcomes = [0.5, 0.0]
    levels = (np.arange(900) + 0.5) / 900
    integral = 2.0 * metrics.pinball(forecasts, outcomes, levels).mean()
    assert metrics.crps(forecasts, outcomes) == pytest.approx(integral, abs=1e-4)


def test_the_pit_of_right_forecasts_is_flat_and_that_of_wrong_ones_is_not() -> None:
    rng = np.random.default_rng(0)
    outcomes = rng.normal(size=5_000)
    right = Distributions.normal(np.zeros(5_000), np.ones(5_000))
    narrow = Distributions.normal(np.zeros(5_000), np.full(5_000, 0.5))
    flat = metrics.pit_histogram(right, outcomes, intervals=10)
    cup = metrics.pit_histogram(narrow, outcomes, intervals=10)
    assert flat.error < 1e-3
    assert cup.error > 0.02
    assert cup.share[0] > 0.15 > 0.08 > cup.share[5]
    assert flat.counts.sum() == 5_000
    assert flat.edges.tolist() == pytest.approx([k / 10 for k in range(11)])


def test_the_randomised_pit_of_atoms_is_flat() -> None:
    rng = np.random.default_rng(1)
    members = np.where(rng.random((4_000, 50)) < 0.6, 0.0, rng.exponential(size=(4_000, 50)))
    forecasts = Distributions.from_samples(members)
    outcomes = np.where(rng.random(4_000) < 0.6, 0.0, rng.exponential(size=4_000))
    assert metrics.pit_histogram(forecasts, outcomes, intervals=10).error < 2e-3
    assert metrics.pit_histogram(forecasts, outcomes, intervals=10, seed=None).error > 0.1
    one, other = (metrics.pit(forecasts, outcomes, seed=5) for _ in range(2))
    assert one.tolist() == other.tolist()
    assert metrics.pit(forecasts, outcomes, seed=6).tolist() != one.tolist()


def test_coverage_over_time_and_in_windows() -> None:
    covered = np.array([1, 1, 0, 1, 0, 0, 1])
    assert metrics.coverage_over_time(covered)[[0, 2, 6]].tolist() == pytest.approx(
        [1, 2 / 3, 4 / 7]
    )
    assert metrics.windowed_coverage(covered, window=3).tolist() == pytest.approx([2 / 3, 1 / 3])
    table = np.column_stack([covered, 1 - covered])
    assert metrics.coverage_over_time(table)[-1].tolist() == pytest.approx([4 / 7, 3 / 7])
    assert metrics.windowed_coverage(table, window=7).tolist() == [pytest.approx([4 / 7, 3 / 7])]
    assert metrics.windowed_coverage([], window=2).tolist() == []


def test_distributions_and_tables_are_measured_alike() -> None:
    forecasts = Distributions.from_quantiles(LEVELS, TABLE)
    for measure in (metrics.pinball, metrics.quantile_calibration_error):
        assert measure(forecasts, Y, LEVELS) == pytest.approx(measure(TABLE, Y, LEVELS))
    assert metrics.coverage(forecasts, Y, LEVELS).tolist() == metrics.coverage(TABLE, Y).tolist()
    single = Distribution.normal(0.0, 1.0)
    assert metrics.crps(single, [1.0]) == pytest.approx(single.crps(1.0))


def test_infinite_quantiles_cover_everything_and_cost_everything() -> None:
    assert metrics.coverage([[-math.inf, math.inf]], [1.0]).tolist() == [0.0, 1.0]
    assert metrics.pinball([[-math.inf, math.inf]], [1.0], [0.1, 0.9]).tolist() == [math.inf] * 2


def test_nothing_has_no_average() -> None:
    nothing = Distributions.normal([], [])
    assert math.isnan(metrics.crps(nothing, []))
    assert np.isnan(metrics.coverage(nothing, [], LEVELS)).all()
    assert metrics.pit_histogram(nothing, [], intervals=4).share.tolist() == [0.0] * 4


BAD = {
    "no levels": (
        lambda: metrics.coverage(Distributions.normal([0], [1]), [0.0]),
        "levels must be given with distributions, got None",
    ),
    "columns": (
        lambda: metrics.pinball(TABLE, Y, [0.5]),
        "quantiles must have 1 columns, a level each, got 3",
    ),
    "error's columns": (
        lambda: metrics.quantile_calibration_error(TABLE, Y, [0.5]),
        "quantiles must have 1 columns, a level each, got 3",
    ),
    "shape": (
        lambda: metrics.coverage([1.0, 2.0], [1.0, 2.0]),
        "quantiles must be a table of numbers, got shape (2,)",
    ),
    "lengths": (
        lambda: metrics.coverage(TABLE, [1.0]),
        "arrays must be of one length, got: quantiles has 4, outcomes has 1",
    ),
    "intervals": (
        lambda: metrics.pit_histogram(Distributions.normal([0], [1]), [0.0], intervals=0),
        "intervals must be a whole number of at least 1, got 0",
    ),
    "coverage": (
        lambda: metrics.interval_score([0.0], [1.0], [0.5], 1.0),
        "coverage must be below 1, got 1.0",
    ),
    "covered": (
        lambda: metrics.coverage_over_time([0, 2]),
        "covered[1] must be 0 or 1, got 2",
    ),
    "covered's shape": (
        lambda: metrics.windowed_coverage(np.zeros((1, 1, 1))),
        "covered must be a column or a table, got shape (1, 1, 1)",
    ),
    "window": (
        lambda: metrics.windowed_coverage([1], window=0),
        "window must be a whole number of at least 1, got 0",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_a_reason(case) -> None:
    call, told = BAD[case]
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value) == told


def test_only_distributions_have_a_pit() -> None:
    with pytest.raises(InvalidType, match=r"forecasts must be Distributions, got 0\.5"):
        metrics.pit(0.5, [0.5])
