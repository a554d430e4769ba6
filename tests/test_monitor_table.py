"""What a monitor says of each bucket, with and without a lag: the obvious numbers, and no more."""

from __future__ import annotations

import itertools
import math
from typing import Any

import naive_monitor as naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.monitor import Monitor

pytestmark = pytest.mark.base

BUCKETS = 2
LAGS = st.integers(1, 4)
forecasts = st.floats(0.02, 0.98)
streams = st.lists(st.tuples(forecasts, st.integers(0, 1)), min_size=1, max_size=25)
surprises = st.lists(st.tuples(st.floats(0.02, 0.2), st.integers(0, 1)), min_size=1, max_size=15)


def followed(rounds: Any, **options: Any) -> Monitor:
    monitor = Monitor(buckets=BUCKETS, **options)
    for forecast, outcome in rounds:
        monitor.update(forecast, outcome)
    return monitor


def richest(rounds: Any, lag: int) -> list[float]:
    """What the richest of the gamblers who take turns has, in each bucket."""
    each = [naive.bucket_wealth(rounds[k::lag], BUCKETS) for k in range(lag)]
    return [max(found) for found in zip(*each, strict=True)]


def highest(rounds: Any, lag: int) -> list[float]:
    """The most that any of them ever had, in each bucket."""
    past = [richest(rounds[:n], lag) for n in range(len(rounds) + 1)]
    return [max(found) for found in zip(*past, strict=True)]


@given(streams, LAGS)
def test_evidence_of_a_bucket_is_the_richest_gamblers_over_the_lag(rounds: Any, lag: int) -> None:
    rows = followed(rounds, lag=lag).table()
    wanted = [wealth / lag for wealth in richest(rounds, lag)]
    assert [row.evidence for row in rows] == pytest.approx(wanted, rel=1e-9)


@given(streams, LAGS)
def test_rounds_and_means_of_a_bucket_are_those_of_all_gamblers(rounds: Any, lag: int) -> None:
    for row in followed(rounds, lag=lag).table():
        own = [(p, y) for p, y in rounds if row.low <= p < row.high]
        assert row.rounds == len(own)
        if own:
            assert row.forecast == pytest.approx(sum(p for p, _ in own) / len(own))
            assert row.frequency == pytest.approx(sum(y for _, y in own) / len(own))


@settings(max_examples=50)
@given(surprises, LAGS)
def test_a_bucket_is_flagged_from_lag_times_buckets_over_alpha_on(rounds: Any, lag: int) -> None:
    """An alpha just above and just below where the most that was ever won is the limit."""
    for j, most in enumerate(highest(rounds, lag)):
        edge = BUCKETS * lag / most
        for alpha, flagged in ((edge * (1 + 1e-9), True), (edge * (1 - 1e-9), False)):
            if 0.0 < alpha <= 0.5:
                assert followed(rounds, lag=lag, alpha=alpha).table()[j].flagged == flagged


def test_the_edge_of_a_flag_is_met_with_a_lag() -> None:
    """The test above does not pass for want of surprises."""
    rounds = [(0.02, 1)] * 12
    assert [BUCKETS * lag / highest(rounds, lag)[0] <= 0.5 for lag in (1, 2, 3, 4)] == [True] * 4


def moody(history: tuple[int, ...]) -> float:
    """A forecast that depends on everything before it."""
    return (1 + (7 * sum(history) + 3 * len(history) + 5 * sum(history[-1:])) % 9) / 10


def mean_evidence(rounds: int, lag: int) -> list[float]:
    """The mean evidence in each bucket if every forecast is right, over all histories."""
    total = [0.0] * BUCKETS
    for outcomes in itertools.product((0, 1), repeat=rounds):
        said = [moody(outcomes[:t]) for t in range(rounds)]
        steps = list(zip(said, outcomes, strict=True))
        weight = math.prod(p if y else 1 - p for p, y in steps)
        rows = followed(steps, lag=lag).table()
        total = [so_far + weight * row.evidence for so_far, row in zip(total, rows, strict=True)]
    return total


def test_the_mean_evidence_of_a_bucket_against_right_forecasts_is_one() -> None:
    assert mean_evidence(7, lag=1) == pytest.approx([1.0] * BUCKETS, abs=1e-12)


@pytest.mark.parametrize("lag", [2, 3])
def test_with_a_lag_that_mean_is_below_one_and_only_because_of_the_division(lag: int) -> None:
    found = mean_evidence(7, lag=lag)
    assert all(mean < 1.0 < lag * mean for mean in found)
