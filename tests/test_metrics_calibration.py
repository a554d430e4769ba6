from __future__ import annotations

import math

import naive_metrics as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from calibrant.errors import InvalidInput, InvalidType
from calibrant.metrics import (
    Cells,
    as_cells,
    brier,
    calibration_error,
    decomposition,
    mean_loss,
    mixture_calibration_error,
    mixture_cells,
    rho,
)

forecast = st.one_of(st.sampled_from([0.0, -0.0, 0.1, 0.3, 0.5, 1 - 2**-53, 1.0]), st.floats(0, 1))
rounds = st.lists(st.tuples(forecast, st.integers(0, 1)), min_size=1, max_size=30)
powers = st.sampled_from([1, 1.5, 2, 3])


def columns(run: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [p for p, _ in run], [y for _, y in run]


@given(rounds, powers)
def test_calibration_error_is_its_definition(run: list[tuple[float, int]], power: float) -> None:
    expected = naive.calibration_error(*columns(run), power)
    assert calibration_error(*columns(run), power=power) == pytest.approx(expected, abs=1e-12)


@given(rounds)
def test_cells_hold_every_value_once_in_order(run: list[tuple[float, int]]) -> None:
    cells = as_cells(*columns(run))
    expected = naive.cells(*columns(run))
    assert cells.values.tolist() == list(expected)
    assert cells.counts.tolist() == [len(ys) for ys in expected.values()]
    assert cells.ones.tolist() == [sum(ys) for ys in expected.values()]
    assert cells.rounds == len(run)


def test_both_zeros_are_one_value() -> None:
    assert as_cells([0.0, -0.0], [0, 1]).values.tolist() == [0.0]
    for cells in (as_cells([-0.0], [1]), mixture_cells([-0.0], [[1.0]], [1])):
        assert math.copysign(1.0, cells.values[0]) == 1.0


def test_values_one_ulp_apart_are_two_cells() -> None:
    assert calibration_error([1.0, 1.0 - 2**-53], [1, 0]) == pytest.approx(0.5)


def test_rho_is_the_frequency_of_one_value() -> None:
    forecasts, outcomes = [0.5, 0.5, 0.5, 0.25], [1, 0, 1, 1]
    assert rho(0.5, forecasts, outcomes) == 2 / 3
    assert rho(0.25, as_cells(forecasts, outcomes)) == 1.0
    assert math.isnan(rho(0.75, forecasts, outcomes))


def test_no_rounds_give_nan() -> None:
    assert math.isnan(calibration_error([], []))
    assert math.isnan(brier([], []))
    assert math.isnan(decomposition([], []).sharpness)
    assert math.isnan(mixture_calibration_error([0.5], np.empty((0, 1)), []))


@given(
    st.lists(st.tuples(st.tuples(*[st.floats(0.01, 1)] * 3), st.integers(0, 1)), min_size=1),
    powers,
)
def test_mixtures_count_with_their_weights(run: list, power: float) -> None:
    weights = [np.array(w) / sum(w) for w, _ in run]
    outcomes = [y for _, y in run]
    values = [0.0, 0.5, 1.0]
    expected = naive.mixture_calibration_error(values, weights, outcomes, power)
    found = mixture_calibration_error(values, weights, outcomes, power=power)
    assert found == pytest.approx(expected, abs=1e-12)
    repeated = np.tile(values, (len(run), 1))
    assert mixture_calibration_error(repeated, weights, outcomes, power=power) == found


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=30))
def test_mixtures_that_are_draws_give_the_realised_error(run: list[tuple[int, int]]) -> None:
    index, outcomes = np.array([i for i, _ in run]), [y for _, y in run]
    grid = np.arange(5) / 4
    expected = calibration_error(grid[index], outcomes, power=2)
    found = mixture_calibration_error(grid, np.eye(5)[index], outcomes, power=2)
    assert found == pytest.approx(expected, abs=1e-15)


def test_the_mixture_error_is_at_most_the_mean_of_the_realised_one() -> None:
    outcomes, weight = [1, 0, 1], 0.3
    draws = [[(k >> t) & 1 for t in range(3)] for k in range(8)]
    chance = [math.prod(weight if d else 1 - weight for d in draw) for draw in draws]
    errors = [calibration_error(np.array(d) / 2, outcomes) for d in draws]
    mixed = mixture_calibration_error([0.0, 0.5], [[0.7, 0.3]] * 3, outcomes)
    assert mixed < np.dot(chance, errors)


@pytest.mark.parametrize(
    ("values", "weights", "outcomes", "message"),
    [
        ([0.5], [1.0], [1], "weights must be of shape (rounds, support), got (1,)"),
        ([0.5], [[0.9]], [1], "weights[0] must be a distribution, got [0.9]"),
        ([0, 1], [[1, 0], [2, -1]], [1, 0], "weights[1] must be a distribution, got [2.0, -1.0]"),
        ([0.5], [[math.nan]], [1], "weights[0] must be a distribution, got [nan]"),
        ([0, 1], [[1.0]], [1], "values must be of shape (1,) or (1, 1), got (2,)"),
        ([1.5], [[1.0]], [1], "values[0] must be a number in [0, 1], got 1.5"),
        (
            [0.5],
            [[1.0]],
            [1, 0],
            "arrays must be of one length, got: weights has 1, outcomes has 2",
        ),
    ],
)
def test_bad_mixtures_are_refused(values, weights, outcomes, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        mixture_cells(values, weights, outcomes)
    assert str(caught.value) == message


@pytest.mark.parametrize("power", [0.99, 0, -1, math.nan, math.inf])
def test_a_power_below_one_is_refused(power: float) -> None:
    with pytest.raises(InvalidInput, match=r"power must be a finite number of at least 1, got"):
        calibration_error([0.5], [1], power=power)


def test_outcomes_go_with_arrays_and_not_with_cells() -> None:
    with pytest.raises(InvalidType, match="beside an array of forecasts, got None"):
        calibration_error([0.5])
    with pytest.raises(InvalidType, match="outcomes must be left out beside Cells"):
        calibration_error(as_cells([0.5], [1]), [1])


@pytest.mark.parametrize(
    ("forecasts", "outcomes"),
    [([1.0000001], [1]), ([math.nan], [1]), ([0.5], [2]), ([0.5, 0.5], [1]), ([-1e-9], [0])],
)
def test_bad_rounds_are_refused(forecasts: list[float], outcomes: list[int]) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        calibration_error(forecasts, outcomes)


def test_cells_that_make_no_sense_are_refused() -> None:
    one, two = np.ones(1), np.array([0.5, 0.25])
    with pytest.raises(InvalidInput, match="values must be in ascending order"):
        Cells(two, np.ones(2), np.zeros(2))
    for counts, ones in ((one, 2 * one), (0 * one, 0 * one), (one, -one)):
        with pytest.raises(InvalidInput, match="ones must be from 0 to positive counts"):
            Cells(one, counts, ones)


@given(rounds)
def test_brier_is_the_mean_squared_error(run: list[tuple[float, int]]) -> None:
    expected = naive.brier(*columns(run))
    assert brier(*columns(run)) == pytest.approx(expected, abs=1e-15)
    assert mean_loss(*columns(run), loss="squared") == pytest.approx(expected, abs=1e-15)


@given(rounds)
def test_murphy_adds_up_over_exact_values(run: list[tuple[float, int]]) -> None:
    parts = decomposition(*columns(run))
    assert parts.brier == pytest.approx(naive.brier(*columns(run)), abs=1e-12)
    whole = parts.reliability - parts.resolution + parts.uncertainty
    assert parts.brier == pytest.approx(whole, abs=1e-12)
    assert parts.brier == pytest.approx(parts.reliability + parts.refinement, abs=1e-12)
    assert parts.reliability == calibration_error(*columns(run), power=2)
    assert parts.sharpness == pytest.approx(np.var(columns(run)[0]), abs=1e-12)
    assert (parts.within_variance, parts.within_covariance) == (0.0, 0.0)


@given(rounds, st.integers(1, 12), st.sampled_from(["width", "mass"]))
def test_murphy_adds_up_over_buckets_with_the_inner_terms(
    run: list[tuple[float, int]], buckets: int, strategy: str
) -> None:
    parts = decomposition(*columns(run), buckets=buckets, strategy=strategy)
    whole = parts.reliability - parts.resolution + parts.uncertainty
    whole += parts.within_variance - parts.within_covariance
    assert parts.brier == pytest.approx(naive.brier(*columns(run)), abs=1e-12)
    assert parts.brier == pytest.approx(whole, abs=1e-12)
    assert parts.sharpness == pytest.approx(np.var(columns(run)[0]), abs=1e-12)


def test_within_terms_are_those_of_the_formula() -> None:
    p, y = np.array([0.1, 0.3, 0.7, 0.8]), np.array([0, 1, 0, 1])
    parts = decomposition(p, y, buckets=2)
    halves = (slice(0, 2), slice(2, 4))
    variance = sum(((p[h] - p[h].mean()) ** 2).sum() for h in halves) / 4
    covariance = sum(((p[h] - p[h].mean()) * (y[h] - y[h].mean())).sum() for h in halves) / 4
    assert parts.within_variance == pytest.approx(variance, abs=1e-15)
    assert parts.within_covariance == pytest.approx(2 * covariance, abs=1e-15)


def test_cells_cannot_be_put_into_buckets() -> None:
    with pytest.raises(InvalidType, match="must be arrays if there are buckets, got Cells"):
        decomposition(as_cells([0.5], [1]), buckets=3)


def test_fact_1_the_calibrated_constant_loses_more_under_absolute_loss() -> None:
    outcomes = [0, 0, 1] * 4
    third, zero = [1 / 3] * 12, [0.0] * 12
    assert mean_loss(third, outcomes, loss="absolute") == pytest.approx(4 / 9)
    assert mean_loss(zero, outcomes, loss="absolute") == pytest.approx(1 / 3)
    assert mean_loss(third, outcomes, loss="squared") == pytest.approx(2 / 9)
    assert mean_loss(zero, outcomes, loss="squared") == pytest.approx(1 / 3)
    assert calibration_error(third, outcomes) == pytest.approx(0.0)


@given(hnp.arrays(np.float64, st.integers(1, 50), elements=forecast))
def test_fact_2_an_adversary_that_sees_the_draw_wins(forecasts: np.ndarray) -> None:
    outcomes = forecasts <= 0.5
    assert calibration_error(forecasts, outcomes) >= 0.5 - 1e-12
    assert calibration_error(forecasts, outcomes, power=2) >= 0.25 - 1e-12


@given(rounds, st.lists(st.integers(0, 3), min_size=30, max_size=30), powers)
def test_fact_9_the_whole_is_at_most_as_bad_as_its_parts(
    run: list[tuple[float, int]], groups: list[int], power: float
) -> None:
    parts = [[r for r, g in zip(run, groups, strict=False) if g == group] for group in range(4)]
    errors = [len(part) * calibration_error(*columns(part), power=power) for part in parts if part]
    assert calibration_error(*columns(run), power=power) <= sum(errors) / len(run) + 1e-12
