from __future__ import annotations

import itertools
import math

import naive_metrics as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calibrant.errors import InvalidInput
from calibrant.metrics import (
    as_buckets,
    binned_calibration_error,
    binomial_band,
    brier,
    calibration_curve,
    calibration_error,
    windowed_calibration_error,
)
from calibrant.metrics.murphy import brier_of_buckets

forecast = st.one_of(st.sampled_from([0.0, -0.0, 0.29, 0.3, 0.7, 1 - 2**-53, 1.0]), st.floats(0, 1))
rounds = st.lists(st.tuples(forecast, st.integers(0, 1)), min_size=1, max_size=30)


def columns(run: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [p for p, _ in run], [y for _, y in run]


@given(rounds, st.integers(1, 40), st.sampled_from([1, 1.5, 2]))
def test_the_binned_error_is_its_definition(
    run: list[tuple[float, int]], buckets: int, power: float
) -> None:
    expected = naive.binned_calibration_error(*columns(run), buckets, power)
    found = binned_calibration_error(*columns(run), buckets=buckets, power=power)
    assert found == pytest.approx(expected, abs=1e-12)


@given(rounds, st.integers(1, 40), st.sampled_from(["width", "mass"]))
def test_bucket_sums_are_sums(run: list[tuple[float, int]], buckets: int, strategy: str) -> None:
    found = as_buckets(*columns(run), buckets=buckets, strategy=strategy)
    p, y = (np.array(c, dtype=float) for c in columns(run))
    assert found.rounds == len(run)
    assert found.ones.sum() == y.sum()
    assert found.forecast_sum.sum() == pytest.approx(p.sum())
    assert found.square_sum.sum() == pytest.approx((p * p).sum())
    assert found.product_sum.sum() == pytest.approx((p * y).sum())
    assert brier_of_buckets(found) == pytest.approx(brier(p, y), abs=1e-12)


@given(rounds, st.integers(1, 40), st.sampled_from(["width", "mass"]))
def test_buckets_hold_only_what_lies_between_their_edges(
    run: list[tuple[float, int]], buckets: int, strategy: str
) -> None:
    found = as_buckets(*columns(run), buckets=buckets, strategy=strategy)
    p = np.array(columns(run)[0])
    last = np.arange(len(found.count)) == len(found.count) - 1
    for lower, upper, count, closed in zip(
        found.lower, found.upper, found.count, last | (strategy == "mass"), strict=True
    ):
        inside = (p >= lower) & ((p <= upper) if closed else (p < upper))
        assert inside.sum() == count


@pytest.mark.parametrize("buckets", [1, 2, 7, 10, 49, 100])
def test_every_edge_opens_its_own_bucket(buckets: int) -> None:
    edges = np.arange(buckets + 1) / buckets
    found = as_buckets(edges, np.zeros(buckets + 1), buckets=buckets)
    assert found.lower.tolist() == edges[:-1].tolist()
    assert found.upper.tolist() == edges[1:].tolist()
    assert found.count.tolist() == [1] * (buckets - 1) + [2]


def test_equal_mass_is_equal_without_ties() -> None:
    values = np.random.default_rng(3).random(60)
    found = as_buckets(values, values > 0.5, buckets=12, strategy="mass")
    assert found.count.tolist() == [5] * 12
    assert found.lower.tolist() == np.sort(values)[::5].tolist()
    assert found.upper.tolist() == np.sort(values)[4::5].tolist()


def test_equal_forecasts_stay_together_where_their_middle_rank_falls() -> None:
    found = as_buckets([0.1] + [0.5] * 8 + [0.9], [0] * 10, buckets=5, strategy="mass")
    assert found.count.tolist() == [1, 8, 1]
    assert found.lower.tolist() == [0.1, 0.5, 0.9]


def test_the_binned_error_hides_what_cancels_within_a_bucket() -> None:
    assert calibration_error([0.4, 0.1], [0, 1]) == pytest.approx(0.65)
    assert binned_calibration_error([0.4, 0.1], [0, 1], buckets=2) == pytest.approx(0.25)


@pytest.mark.parametrize("probability", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_the_debiased_error_is_right_on_average(probability: float, count: int) -> None:
    expected = 0.0
    for outcomes in itertools.product((0, 1), repeat=count):
        ones = sum(outcomes)
        chance = probability**ones * (1 - probability) ** (count - ones)
        found = binned_calibration_error([0.3] * count, outcomes, power=2, debiased=True)
        expected += chance * found
    assert expected == pytest.approx((0.3 - probability) ** 2, abs=1e-12)


def test_single_rounds_say_nothing_about_the_debiased_error() -> None:
    assert binned_calibration_error([0.1, 0.9], [1, 0], power=2, debiased=True) == 0.0
    mixed = binned_calibration_error([0.05, 0.9, 0.9], [1, 1, 1], power=2, debiased=True)
    assert mixed == pytest.approx(0.01 * 2 / 3)
    assert math.isnan(binned_calibration_error([], [], power=2, debiased=True))


def test_only_the_squared_error_can_be_debiased() -> None:
    with pytest.raises(InvalidInput) as caught:
        binned_calibration_error([0.5], [1], debiased=True)
    assert str(caught.value) == "power must be 2 for the debiased error, got 1.0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"buckets": 0}, "buckets must be a whole number of at least 1, got 0"),
        ({"buckets": 2.5}, "buckets must be a whole number of at least 1, got 2.5"),
        ({"strategy": "equal"}, "strategy must be one of 'width', 'mass', got 'equal'"),
    ],
)
def test_bad_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        as_buckets([0.5], [1], **options)
    assert str(caught.value) == message


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 1)), min_size=1, max_size=5),
    st.sampled_from([0.5, 0.9, 0.95, 0.999, 1 - 1e-9]),
)
def test_bands_are_those_of_clopper_and_pearson(
    pairs: list[tuple[int, float]], confidence: float
) -> None:
    n = np.array([count for count, _ in pairs])
    k = np.array([round(count * share) for count, share in pairs])
    low, high = binomial_band(k, n, confidence=confidence)
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        expected_low = np.where(k == 0, 0.0, stats.beta.ppf(tail, k, n - k + 1))
        expected_high = np.where(k == n, 1.0, stats.beta.isf(tail, k + 1, n - k))
    assert low == pytest.approx(expected_low, abs=1e-10)
    assert high == pytest.approx(expected_high, abs=1e-10)


def test_bands_of_rare_events_are_right_in_relative_terms() -> None:
    low, high = binomial_band([1, 3], [10**8, 10**8])
    assert low == pytest.approx(stats.beta.ppf(0.025, [1, 3], [10**8, 10**8 - 2]), rel=1e-7)
    assert high == pytest.approx(stats.beta.isf(0.025, [2, 4], [10**8 - 1, 10**8 - 3]), rel=1e-7)


def test_bands_cover_as_often_as_they_promise() -> None:
    count = 25
    low, high = binomial_band(np.arange(count + 1), np.full(count + 1, count), confidence=0.9)
    for probability in np.linspace(0.01, 0.99, 99):
        chance = stats.binom.pmf(np.arange(count + 1), count, probability)
        assert chance[(low <= probability) & (probability <= high)].sum() >= 0.9


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, math.nan])
def test_confidence_lies_strictly_between_zero_and_one(confidence: float) -> None:
    with pytest.raises(InvalidInput, match="confidence must be a number strictly between 0 and 1"):
        binomial_band([1], [2], confidence=confidence)


@pytest.mark.parametrize(
    ("ones", "counts"), [([3], [2]), ([-1], [2]), ([1], [2, 2]), ([[1]], [[2]])]
)
def test_counts_that_make_no_sense_have_no_band(ones: list, counts: list) -> None:
    with pytest.raises(InvalidInput, match="ones must be a flat array from 0 to counts, got"):
        binomial_band(ones, counts)


def test_a_curve_has_counts_means_and_bands() -> None:
    curve = calibration_curve([0.0, 0.1, 0.6, 1.0], [0, 1, 1, 1], buckets=4, confidence=0.8)
    assert curve.lower.tolist() == [0.0, 0.25, 0.5, 0.75]
    assert curve.upper.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.count.tolist() == [2, 0, 1, 1]
    assert curve.mean_forecast.tolist() == pytest.approx([0.05, math.nan, 0.6, 1.0], nan_ok=True)
    assert curve.mean_outcome.tolist() == pytest.approx([0.5, math.nan, 1.0, 1.0], nan_ok=True)
    assert curve.band_low == pytest.approx([stats.beta.ppf(0.1, 1, 2), 0, 0.1, 0.1])
    assert curve.band_high == pytest.approx([stats.beta.isf(0.1, 2, 1), 1, 1, 1])
    assert curve.confidence == 0.8


def test_a_curve_of_equal_mass_has_no_empty_buckets() -> None:
    curve = calibration_curve([0.2] * 9 + [0.8], [0, 1] * 5, buckets=5, strategy="mass")
    assert curve.count.tolist() == [9, 1]


@given(rounds, st.integers(1, 12), st.sampled_from([1, 2]))
def test_windows_are_aligned_blocks(run: list[tuple[float, int]], window: int, power: int) -> None:
    found = windowed_calibration_error(*columns(run), window=window, buckets=5, power=power)
    blocks = [run[i : i + window] for i in range(0, len(run) - window + 1, window)]
    expected = [naive.binned_calibration_error(*columns(b), 5, power) for b in blocks]
    assert found.errors.tolist() == pytest.approx(expected, abs=1e-12)
    assert found.window == window


def test_the_worst_window_is_the_first_of_the_largest() -> None:
    outcomes = [1, 0, 1, 1, 0, 0, 1, 0, 1]
    found = windowed_calibration_error([0.5] * 9, outcomes, window=2)
    assert (found.worst, found.worst_block, len(found.errors)) == (0.25, 1, 4)


def test_without_a_complete_block_there_is_no_worst() -> None:
    found = windowed_calibration_error([0.5] * 3, [0, 0, 0], window=4)
    assert math.isnan(found.worst)
    assert found.worst_block is None
