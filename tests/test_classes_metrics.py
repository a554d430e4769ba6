"""Metrics over classes: against the obvious versions, and what they are on purpose."""

from __future__ import annotations

import math

import naive_classes as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import metrics as binary
from calibrant.classes import metrics
from calibrant.errors import InvalidInput

pytestmark = pytest.mark.base

ERRORS = [metrics.classwise_error, metrics.confidence_error, metrics.top_class_error]
ERRORS += [metrics.full_error]


@st.composite
def games(draw):
    """Forecasts from a coarse grid, so that values repeat, and outcomes."""
    rounds = draw(st.integers(1, 12))
    points = naive.compositions(3, 4)
    rows = [draw(st.sampled_from(points)) for _ in range(rounds)]
    outcomes = [draw(st.integers(0, 2)) for _ in range(rounds)]
    return [[k / 4 for k in row] for row in rows], outcomes


@given(games(), st.sampled_from([1.0, 2.0]))
def test_errors_over_exact_values_are_those_of_the_obvious_loops(game, power) -> None:
    rows, outcomes = game
    full = naive.full_error(rows, outcomes, power)
    assert metrics.full_error(rows, outcomes, power=power) == pytest.approx(full)
    top = naive.top_class_error(rows, outcomes, power)
    assert metrics.top_class_error(rows, outcomes, power=power) == pytest.approx(top)


@given(games())
def test_scores_are_those_of_the_obvious_loops(game) -> None:
    rows, outcomes = game
    pairs = list(zip(rows, outcomes, strict=True))
    squares = [sum((p - (k == y)) ** 2 for k, p in enumerate(row)) for row, y in pairs]
    assert metrics.brier(rows, outcomes) == pytest.approx(sum(squares) / len(rows))
    logs = [-math.log(row[y]) if row[y] else math.inf for row, y in pairs]
    assert metrics.log_loss(rows, outcomes) == pytest.approx(sum(logs) / len(rows))


@given(games())
def test_stronger_errors_are_not_smaller(game) -> None:
    rows, outcomes = game
    for power in (1.0, 2.0):
        confidence = metrics.confidence_error(rows, outcomes, power=power)
        top = metrics.top_class_error(rows, outcomes, power=power)
        assert confidence <= top + 1e-12
        wise = metrics.classwise_error(rows, outcomes, power=power)
        assert 3 * wise <= metrics.full_error(rows, outcomes, power=power) + 1e-12


@given(games())
def test_buckets_of_a_grid_that_separate_its_values_change_nothing(game) -> None:
    rows, outcomes = game
    for error in ERRORS:
        assert error(rows, outcomes, buckets=5) == pytest.approx(error(rows, outcomes), abs=1e-12)


def test_two_classes_are_the_binary_case() -> None:
    rng = np.random.default_rng(1)
    p, y = rng.integers(0, 11, 200) / 10, rng.integers(0, 2, 200)
    rows = np.column_stack([1 - p, p])
    assert metrics.brier(rows, y) == pytest.approx(2 * binary.brier(p, y))
    error = binary.calibration_error(p, y, power=2)
    assert metrics.classwise_error(rows, y, power=2) == pytest.approx(error)
    assert metrics.full_error(rows, y, power=2) == pytest.approx(2 * error)


def test_wider_buckets_merge_rows() -> None:
    rows, outcomes = [[0.6, 0.4], [0.8, 0.2]], [0, 1]
    assert metrics.full_error(rows, outcomes) == pytest.approx(2.0 * (0.4 + 0.8) / 2)
    assert metrics.full_error(rows, outcomes, buckets=2) == pytest.approx(0.4)
    assert metrics.confidence_error(rows, outcomes, buckets=1) == pytest.approx(0.2)


def test_the_floor_is_what_perfect_forecasts_have_on_average() -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(1, 5, 400) / 10 + 0.5
    rows = np.column_stack([values, 1 - values])
    errors = [
        metrics.top_class_error(rows, (rng.random(400) > values).astype(int), power=2)
        for _ in range(300)
    ]
    assert np.mean(errors) == pytest.approx(metrics.top_class_floor(rows), rel=0.15)


def test_the_first_class_may_be_told() -> None:
    rows = [[0.2, 0.5, 0.3], [0.2, 0.5, 0.3]]
    assert metrics.top_class_error(rows, [0, 1], tops=[0, 0]) == pytest.approx(0.3)
    assert metrics.top_class_floor(rows, tops=[0, 1]) == pytest.approx((0.16 + 0.25) / 2)
    with pytest.raises(InvalidInput, match="arrays must be of one length"):
        metrics.top_class_error(rows, [0, 1], tops=[0])


def test_no_rounds_have_no_score() -> None:
    empty = np.empty((0, 3))
    for score in (metrics.brier, metrics.log_loss, *ERRORS):
        assert math.isnan(score(empty, np.empty(0, int)))
    assert math.isnan(metrics.top_class_floor(empty))


@pytest.mark.parametrize("score", [metrics.brier, metrics.log_loss, *ERRORS])
def test_bad_rounds_are_refused(score) -> None:
    with pytest.raises(InvalidInput, match=r"forecasts\[0, 1\] must be a number in \[0, 1\]"):
        score([[0.5, 1.5]], [0])
    with pytest.raises(InvalidInput, match=r"outcomes\[0\] must be a whole number from 0 to 1"):
        score([[0.5, 0.5]], [2])
    with pytest.raises(InvalidInput, match="forecasts must be a table"):
        score([0.5, 0.5], [0])
    with pytest.raises(InvalidInput, match="arrays must be of one length"):
        score([[0.5, 0.5]], [0, 1])
