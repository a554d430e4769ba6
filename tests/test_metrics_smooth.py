from __future__ import annotations

import itertools
import math

import naive_metrics as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.metrics import roc_auc_score

from calibrant.errors import InvalidInput
from calibrant.metrics import (
    as_cells,
    atb,
    auc,
    calibration_error,
    smooth_calibration_error,
    v_calibration,
)

forecast = st.one_of(
    st.sampled_from([0.0, 0.25, 0.3, 0.5, 0.75, 1 - 2**-53, 1.0]),
    st.integers(0, 20).map(lambda k: k / 20),
    st.floats(0, 1),
)
rounds = st.lists(st.tuples(forecast, st.integers(0, 1)), min_size=1, max_size=25)


def columns(run: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [p for p, _ in run], [y for _, y in run]


def smooth_by_linear_programme(forecasts: list[float], outcomes: list[int]) -> float:
    cells = as_cells(forecasts, outcomes)
    size = len(cells.values)
    steps = np.eye(size - 1, size, 1) - np.eye(size - 1, size)
    limits = np.tile(np.diff(cells.values), 2)
    rows = np.concatenate((steps, -steps))
    found = linprog(-cells.excess, A_ub=rows, b_ub=limits, bounds=(-1, 1), method="highs")
    return -found.fun / len(forecasts)


@settings(max_examples=100)
@given(rounds)
def test_the_smooth_error_solves_the_linear_programme(run: list[tuple[float, int]]) -> None:
    expected = smooth_by_linear_programme(*columns(run))
    assert smooth_calibration_error(*columns(run)) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_the_smooth_error_of_long_runs_solves_the_linear_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forecasts = rng.beta(0.5 + seed / 3, 1.0, 400)
    outcomes = rng.random(400) < np.sin(5 * forecasts + seed) ** 2
    expected = smooth_by_linear_programme(forecasts, outcomes)
    assert smooth_calibration_error(forecasts, outcomes) == pytest.approx(expected, abs=1e-9)


def test_a_constant_stake_is_as_good_as_any_on_one_value() -> None:
    assert smooth_calibration_error([0.3] * 4, [1, 0, 1, 0]) == pytest.approx(0.2)
    assert smooth_calibration_error([0.3] * 4, [0, 0, 0, 0]) == pytest.approx(0.3)


@given(rounds)
def test_the_smooth_error_lies_between_the_bias_and_the_calibration_error(
    run: list[tuple[float, int]],
) -> None:
    p, y = columns(run)
    smooth = smooth_calibration_error(p, y)
    assert abs(np.mean(p) - np.mean(y)) - 1e-12 <= smooth <= calibration_error(p, y) + 1e-12


@given(rounds, st.floats(0, 0.01))
def test_small_moves_change_the_smooth_error_little(
    run: list[tuple[float, int]], move: float
) -> None:
    p, y = columns(run)
    moved = [min(value + move, 1.0) for value in p]
    difference = smooth_calibration_error(p, y) - smooth_calibration_error(moved, y)
    assert abs(difference) <= 2 * move + 1e-12


@settings(max_examples=50)
@given(rounds, st.sampled_from([1, 2]))
def test_atb_is_the_average_over_all_splits(run: list[tuple[float, int]], power: int) -> None:
    p, y = columns(run)
    edges = sorted({0.0, 1.0, *p})
    pairs = itertools.pairwise(edges)
    splits = [(b - a) * naive.split_error(p, y, a, power) for a, b in pairs]
    assert atb(p, y, power=power) == pytest.approx(sum(splits), abs=1e-12)


def test_atb_agrees_with_random_splits() -> None:
    rng = np.random.default_rng(11)
    forecasts, outcomes = rng.random(8), rng.random(8) < 0.5
    draws = [naive.split_error(forecasts, outcomes, q, 2) for q in rng.random(20_000)]
    error = 4 * np.std(draws) / math.sqrt(len(draws))
    assert atb(forecasts, outcomes) == pytest.approx(np.mean(draws), abs=error)


@given(rounds)
def test_atb_of_absolute_values_is_within_constants_of_the_smooth_error(
    run: list[tuple[float, int]],
) -> None:
    smooth = smooth_calibration_error(*columns(run))
    assert 2 / 3 * smooth - 1e-12 <= atb(*columns(run), power=1) <= 6 * smooth + 1e-12


def test_fact_16_known_values() -> None:
    constant, half = [0.3] * 10, [0, 1] * 5
    assert smooth_calibration_error(constant, half) == pytest.approx(0.2)
    assert atb(constant, half, power=1) == pytest.approx(0.2)
    assert atb(constant, half) == pytest.approx(0.04)
    near, outcomes = [0.49, 0.51] * 3, [0, 1] * 3
    assert 6 * calibration_error(near, outcomes) == pytest.approx(2.94)
    assert 6 * smooth_calibration_error(near, outcomes) == pytest.approx(0.0294)


@pytest.mark.parametrize("power", [0, 3, 1.5, "2"])
def test_atb_has_two_forms_only(power: float) -> None:
    with pytest.raises(InvalidInput) as caught:
        atb([0.5], [1], power=power)
    assert str(caught.value) == f"power must be 1 or 2, got {power!r}"


@given(rounds)
def test_fact_17_v_calibration_is_the_worst_threshold(run: list[tuple[float, int]]) -> None:
    p, y = columns(run)
    near = [v + move for v in {*p, sum(y) / len(y)} for move in (-1e-9, 0.0, 1e-9)]
    grid = [k / 97 for k in range(98)]
    thresholds = [v for v in (*near, *grid) if 0 <= v <= 1]
    expected = max(naive.v_regret(p, y, v) for v in thresholds)
    assert v_calibration(p, y) >= expected - 1e-9
    assert v_calibration(p, y) <= max(expected, 0.0) + 1e-6


@given(rounds)
def test_v_calibration_is_at_most_twice_the_calibration_error(run: list) -> None:
    assert (
        0 <= v_calibration(*columns(run)) <= 2 * len(run) * calibration_error(*columns(run)) + 1e-9
    )


@given(rounds.filter(lambda run: 0 < sum(y for _, y in run) < len(run)))
def test_auc_counts_pairs(run: list[tuple[float, int]]) -> None:
    assert auc(*columns(run)) == pytest.approx(naive.auc(*columns(run)), abs=1e-12)


def test_auc_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    forecasts = np.round(rng.random(500), 2)
    outcomes = rng.random(500) < forecasts
    assert auc(forecasts, outcomes) == pytest.approx(roc_auc_score(outcomes, forecasts))


def test_auc_needs_both_outcomes() -> None:
    assert math.isnan(auc([0.2, 0.3], [1, 1]))


def test_no_rounds_give_nan_or_no_regret() -> None:
    assert math.isnan(smooth_calibration_error([], []))
    assert math.isnan(atb([], []))
    assert math.isnan(auc([], []))
    assert v_calibration([], []) == 0.0
