"""Monitors: evidence that is worth what it says, whenever it is looked at."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import naive_monitor as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Recalibrator
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput, InvalidType
from calibrant.kernels import evidence as kernel
from calibrant.monitor import Change, Evidence, Monitor, Watch
from calibrant.monitor import monitor as module

pytestmark = pytest.mark.base

Chance = Callable[[tuple[int, ...]], float]

forecasts = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0, 0.05, 0.5, 1e-9])
streams = st.lists(st.tuples(forecasts, st.integers(0, 1)), max_size=40)
inner = st.floats(0.01, 0.99)
calm_streams = st.lists(st.tuples(inner, st.integers(0, 1)), min_size=1, max_size=25)


def followed(rounds: Any, **options: Any) -> Monitor:
    monitor = Monitor(**options)
    for forecast, outcome in rounds:
        monitor.update(forecast, outcome)
    return monitor


def logistic(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def log_odds(p: Any) -> Any:
    return np.log(p / (1.0 - p))


def stream(seed: int, rounds: int, truth: Callable[[Any], Any] = lambda p: p) -> tuple[Any, Any]:
    """Return forecasts and outcomes of chance ``truth(forecast)``."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, rounds)
    return p, (rng.random(rounds) < truth(p)).astype(int)


# Evidence is what the definition says.


STAKES = st.sampled_from(["grid", "learned"])


@given(calm_streams, st.sampled_from([1, 2, 7]), STAKES)
def test_evidence_is_the_product_of_what_the_bets_paid(
    rounds: Any, buckets: int, stakes: str
) -> None:
    monitor = followed(rounds, buckets=buckets, stakes=stakes)
    assert monitor.evidence.now == pytest.approx(naive.wealth(rounds, buckets, stakes), rel=1e-9)
    each = [row.evidence for row in monitor.table()]
    assert each == pytest.approx(naive.bucket_wealth(rounds, buckets), rel=1e-9)


@given(calm_streams)
def test_the_highest_evidence_is_that_of_the_best_prefix(rounds: Any) -> None:
    prefixes = [1.0] + [naive.wealth(rounds[: n + 1], 3) for n in range(len(rounds))]
    found = followed(rounds, buckets=3).evidence
    assert found.highest == pytest.approx(max(prefixes), rel=1e-9)
    assert prefixes[found.at] == pytest.approx(max(prefixes), rel=1e-9)


@given(st.lists(st.tuples(inner, st.integers(0, 1)), min_size=1, max_size=8))
def test_the_sums_find_the_best_start_among_all(rounds: Any) -> None:
    monitor = followed(rounds, buckets=1)
    value, start = max((value, -start) for _, value, start in monitor._sums())
    expected, _ = naive.best_start(rounds)
    assert value == pytest.approx(expected, rel=1e-9)
    products = [best for best, at in [naive.best_start(rounds[int(-start) - 1 :])] if at == 0]
    assert products == pytest.approx([expected], rel=1e-9)


def first(values: list[float], limit: float) -> int | None:
    """Return after how many rounds a value first reached the limit."""
    return next((n for n, value in enumerate(values, 1) if value >= limit), None)


@given(calm_streams)
def test_the_alarm_rings_when_the_evidence_first_reaches_one_over_alpha(rounds: Any) -> None:
    prefixes = [naive.wealth(rounds[: n + 1], 2) for n in range(len(rounds))]
    assert followed(rounds, buckets=2, alpha=0.5).alarm_after == first(prefixes, 2.0)


surprises = st.lists(st.tuples(st.floats(0.02, 0.1), st.integers(0, 1)), min_size=1, max_size=8)


@given(surprises)
@settings(max_examples=50)
def test_the_change_alarm_rings_when_a_weighted_sum_first_reaches_the_run_length(
    rounds: Any,
) -> None:
    prefixes = [naive.best_start(rounds[: n + 1])[0] for n in range(len(rounds))]
    change = followed(rounds, buckets=1, run_length=1.5).change
    assert (change and change.after) == first(prefixes, 1.5)


def test_the_first_learned_bets_are_on_the_forecast_itself_or_on_one_half() -> None:
    monitor = followed([(0.25, 1)], buckets=1, stakes="learned")
    # The constant rate bets on 1/2 and wins (1/2)/(1/4); shift and line bet on the forecast.
    assert monitor.evidence.now == pytest.approx((1.5 + 1.5 + 1.0) / 3)


def test_after_a_long_right_time_there_is_money_on_every_line() -> None:
    monitor = Monitor(buckets=2)
    monitor.update_many([0.5] * 3000, [0, 1] * 1500)
    accounts = monitor._chains[0][kernel.size(2) :]
    assert len(accounts) == kernel.ACCOUNTS == len(naive.LINES) + 1
    # A static mixture would have (24/25) ** 1500 = 1e-27 on odds x 3/2.
    assert min(accounts) > 1e-5
    assert 0.1 < sum(accounts) < 0.6


def test_before_the_first_round_there_is_no_evidence() -> None:
    monitor = Monitor()
    assert monitor.evidence == Evidence(1.0, 1.0, 0)
    assert monitor.evidence.p_value == 1.0
    assert (monitor.alarm, monitor.alarm_after, monitor.since, monitor.change) == (False,) + (
        None,
    ) * 3
    assert all(row.rounds == 0 and math.isnan(row.forecast) for row in monitor.table())


# The guarantee, executed: every history of a few rounds, with its probability.


def histories(rounds: int, chance: Chance) -> Iterator[tuple[tuple[int, ...], float]]:
    for outcomes in itertools.product((0, 1), repeat=rounds):
        p = [chance(outcomes[:t]) for t in range(rounds)]
        yield outcomes, math.prod(c if y else 1 - c for c, y in zip(p, outcomes, strict=True))


def moody(history: tuple[int, ...]) -> float:
    """A forecast that depends on everything before it."""
    return (1 + (7 * sum(history) + 3 * len(history) + 5 * sum(history[-1:])) % 9) / 10


def expected(rounds: int, forecast: Chance, chance: Chance, **options: Any) -> float:
    """Return the mean evidence if every outcome has that chance."""
    total = 0.0
    for outcomes, weight in histories(rounds, chance):
        steps = [(forecast(outcomes[:t]), y) for t, y in enumerate(outcomes)]
        total += weight * followed(steps, **options).evidence.now
    return total


@pytest.mark.parametrize("stakes", ["grid", "learned"])
@pytest.mark.parametrize("buckets", [1, 3, 10])
@pytest.mark.parametrize("rounds", [1, 2, 6])
def test_the_mean_evidence_against_right_forecasts_is_exactly_one(
    rounds: int, buckets: int, stakes: str
) -> None:
    found = expected(rounds, moody, moody, buckets=buckets, stakes=stakes)
    assert found == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("off", [-0.1, -0.04, 0.0, 0.07, 0.1])
def test_the_mean_evidence_within_the_tolerance_is_at_most_one(off: float) -> None:
    def chance(history: tuple[int, ...]) -> float:
        return min(max(moody(history) + off * (-1) ** sum(history), 0.0), 1.0)

    assert expected(6, moody, chance, buckets=2, tolerance=0.1) <= 1.0 + 1e-12


def test_a_tolerance_that_is_too_small_is_noticed_by_that_test() -> None:
    assert expected(6, moody, lambda h: min(moody(h) + 0.09, 1.0), buckets=2) > 1.01


@pytest.mark.parametrize("chance", [0.0, 1e-3, 0.01])
def test_forecasts_beyond_the_clip_stay_valid_for_every_chance_that_they_allow(
    chance: float,
) -> None:
    options = {"buckets": 1, "clip": 0.01}
    assert expected(5, lambda _: 0.0, lambda _: chance, **options) <= 1.0 + 1e-12
    assert expected(5, lambda _: 1.0, lambda _: 1.0 - chance, **options) <= 1.0 + 1e-12


def test_one_surprise_at_a_forecast_of_zero_is_worth_at_most_one_over_the_clip() -> None:
    monitor = followed([(0.0, 1)], buckets=1, clip=1e-3)
    assert 50.0 < monitor.evidence.now <= 1e3
    turned = followed([(1.0, 0)], buckets=1, clip=1e-3)
    assert turned.evidence.now == pytest.approx(monitor.evidence.now, rel=1e-12)


def test_sure_forecasts_that_come_true_raise_no_evidence() -> None:
    monitor = followed([(0.0, 0), (1.0, 1)] * 100)
    assert monitor.evidence.highest == 1.0
    assert not monitor.alarm


@pytest.mark.parametrize("run_length", [1.0, 2.0])
@pytest.mark.parametrize("rounds", [4, 9])
def test_the_change_alarm_rings_as_seldom_as_its_run_length_says(
    rounds: int, run_length: float
) -> None:
    rung = minimum = 0.0
    for outcomes, weight in histories(rounds, lambda _: 0.04):
        steps = [(0.04, y) for y in outcomes]
        change = followed(steps, buckets=1, run_length=run_length).change
        rung += weight * (change is not None)
        minimum += weight * (rounds if change is None else change.after)
    # The proof's inequality: run_length P(N <= T) <= E min(N, T).
    assert 0.0 < run_length * rung <= minimum <= rounds


@given(inner, st.floats(0.0, 1.0), st.floats(0.0, 0.3), st.floats(1e-6, 0.1), st.floats(0.0, 1.0))
def test_no_bet_has_a_mean_above_one_for_a_chance_that_the_forecast_allows(
    q: float, forecast: float, tolerance: float, clip: float, where: float
) -> None:
    low, high = min(forecast - tolerance, 1 - clip), max(forecast + tolerance, clip)
    chance = min(max(low + where * (high - low), 0.0), 1.0)
    paid = [kernel.ratio(q, clip, low, high, y) for y in (0, 1)]
    assert chance * paid[1] + (1 - chance) * paid[0] <= 1.0 + 1e-9
    assert all(0.0 < p <= 1.0 / clip for p in paid)


@pytest.mark.slow
def test_peeking_after_every_round_keeps_the_false_alarms_below_alpha() -> None:
    rung = 0
    for seed in range(150):
        monitor = Monitor(alpha=0.1, buckets=5)
        monitor.update_many(*stream(seed, 150))
        rung += monitor.alarm
    # Binomial(150, 0.1) is above 32 with probability 1e-5.
    assert rung <= 32


@pytest.mark.slow
def test_peeking_for_long_keeps_the_false_alarms_below_alpha(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SHORT", 0)
    rung = changes = 0
    for seed in range(200):
        monitor = Monitor(alpha=0.1, run_length=10_000)
        monitor.update_many(*stream(seed, 1_000))
        rung += monitor.alarm
        changes += monitor.change is not None
    # Both have probability 0.1 at the most; Binomial(200, 0.1) is above 40 with 1e-5.
    assert rung <= 40
    assert changes <= 40


# Power.

FAULTS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "too low": (lambda p: logistic(log_odds(p) + 1.0), 500),
    "too high": (lambda p: logistic(log_odds(p) - 1.0), 500),
    "over-confident": (lambda p: logistic(0.4 * log_odds(p)), 1000),
    "under-confident": (lambda p: logistic(2.0 * log_odds(p)), 1000),
    "upside down": (lambda p: 1.0 - p, 100),
    "one bucket": (lambda p: np.where((p > 0.4) & (p < 0.45), 0.9, p), 2500),
}


@pytest.mark.parametrize("name", FAULTS)
def test_forecasts_that_are_off_are_found_out(name: str) -> None:
    truth, enough = FAULTS[name]
    monitor = Monitor(alpha=0.01)
    monitor.update_many(*stream(3, enough, truth))
    assert monitor.alarm
    assert monitor.evidence.p_value <= 0.01
    assert monitor.since is not None


def test_the_bucket_that_is_off_is_flagged_and_no_other() -> None:
    monitor = Monitor(alpha=0.01)
    monitor.update_many(*stream(3, 2500, FAULTS["one bucket"][0]))
    flagged = [row for row in monitor.table() if row.flagged]
    assert [(row.low, row.high) for row in flagged] == [(0.4, 0.45)]
    assert flagged[0].frequency - flagged[0].forecast == pytest.approx(0.475, abs=0.1)
    assert sum(row.rounds for row in monitor.table()) == 2500


def broken_stream(name: str, before: int, after: int, seed: int) -> tuple[Any, Any]:
    good, bad = stream(seed, before), stream(seed + 1, after, FAULTS[name][0])
    return tuple(np.concatenate(pair) for pair in zip(good, bad, strict=True))


@pytest.mark.parametrize("name", FAULTS)
def test_a_change_is_found_with_the_round_since_when(name: str) -> None:
    monitor = Monitor(alpha=0.01, run_length=1e5)
    monitor.update_many(*broken_stream(name, 1500, FAULTS[name][1], seed=11))
    assert monitor.change is not None
    assert monitor.since == monitor.change.since == pytest.approx(1500, abs=200)
    assert monitor.change.after > 1500


def test_a_change_tells_what_would_have_helped_and_where() -> None:
    def told(name: str) -> tuple[str, int | None]:
        monitor = Monitor(run_length=1e4)
        monitor.update_many(*broken_stream(name, 500, FAULTS[name][1], seed=5))
        assert isinstance(monitor.change, Change)
        return monitor.change.remedy, monitor.change.bucket

    assert told("too low") in [("odds x 2", None), ("odds x 4", None)]
    assert told("upside down") == ("odds ^ -1", None)
    assert told("one bucket") == ("odds", 8)


def test_without_a_change_alarm_since_is_where_the_best_run_of_bets_began() -> None:
    monitor = Monitor(alpha=0.01, run_length=1e100)
    monitor.update_many(*broken_stream("upside down", 300, 200, seed=5))
    assert monitor.alarm
    assert monitor.change is None
    assert monitor.since == pytest.approx(300, abs=20)


# Lags.


def overlapping(seed: int, rounds: int, lag: int) -> tuple[Any, Any]:
    """Outcomes that share most of their causes: whether any of the next ``lag`` events occurs."""
    rng = np.random.default_rng(seed)
    events = rng.random(rounds + lag) < 0.13
    seen = np.array([events[t : t + lag].any() for t in range(rounds)])
    return np.full(rounds, 1 - 0.87**lag), seen.astype(int)


@pytest.mark.slow
def test_gamblers_that_take_turns_are_not_fooled_by_overlapping_outcomes() -> None:
    def alarms(lag: int) -> int:
        monitors = [Monitor(alpha=0.1, buckets=1, lag=lag) for _ in range(40)]
        for seed, monitor in enumerate(monitors):
            monitor.update_many(*overlapping(seed, 250, 10))
        return sum(monitor.alarm for monitor in monitors)

    assert alarms(lag=1) > 12
    assert alarms(lag=10) <= 12


def test_a_lag_still_leaves_power_and_counts_rounds_of_the_stream() -> None:
    monitor = Monitor(alpha=0.01, run_length=1e4, lag=3, buckets=4)
    monitor.update_many(*broken_stream("upside down", 600, 300, seed=5))
    assert monitor.alarm_after is not None
    assert monitor.alarm_after > 600
    assert monitor.since == pytest.approx(600, abs=30)
    assert monitor.evidence.at <= 900
    assert sum(row.rounds for row in monitor.table()) == 900


@given(streams, st.integers(1, 5))
def test_each_gambler_sees_every_so_manyth_round(rounds: Any, lag: int) -> None:
    monitor = followed(rounds, buckets=2, alpha=0.5, lag=lag, run_length=3)
    own = {"buckets": 2, "alpha": 0.5 / lag, "run_length": 3 if lag == 1 else 6}
    alone = [followed(rounds[k::lag], **own) for k in range(lag)]
    richest = max(one.evidence.now for one in alone)
    assert monitor.evidence.now == pytest.approx(richest / lag)
    rung = [k + (one.alarm_after - 1) * lag + 1 for k, one in enumerate(alone) if one.alarm_after]
    assert monitor.alarm_after == min(rung, default=None)
    found = [k + (one.change.after - 1) * lag + 1 for k, one in enumerate(alone) if one.change]
    assert (monitor.change and monitor.change.after) == min(found, default=None)


# Loop and batch, copies and bytes.


@given(streams, st.integers(1, 4), st.integers(0, 40))
def test_a_batch_is_the_loop_wherever_it_is_cut(rounds: Any, lag: int, cut: int) -> None:
    batch = Monitor(buckets=3, lag=lag)
    for part in (rounds[:cut], rounds[cut:]):
        batch.update_many([p for p, _ in part], [y for _, y in part])
    assert batch == followed(rounds, buckets=3, lag=lag)


@pytest.mark.parametrize("lag", [1, 3])
def test_long_batches_work_on_an_array_and_give_the_same(
    lag: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = stream(1, 60)
    plain = Monitor(lag=lag)
    plain.update_many(*rounds)
    monkeypatch.setattr(module, "SHORT", 0)
    monkeypatch.setattr(module, "available", lambda: True)
    monkeypatch.setattr(module, "compiled", lambda function, *_, **__: function)
    array = Monitor(lag=lag)
    array.update_many(*rounds)
    assert array == plain


@pytest.mark.slow
def test_machine_code_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    p, y = stream(1, 5000)
    p[::50], p[1::50] = 0.0, 1.0
    plain, fast = Monitor(tolerance=0.01), Monitor(tolerance=0.01)
    plain.update_many(p, y)
    monkeypatch.setattr(module, "SHORT", 0)
    fast.update_many(p, y)
    assert fast == plain


def test_a_state_of_the_first_version_keeps_its_stakes() -> None:
    learned = followed([(0.3, 1), (0.6, 0)], stakes="learned")
    now = learned._document()
    before = {name: value for name, value in now.settings.items() if name != "stakes"}
    stored = Document("monitor", before, now.arrays, version=1).to_bytes()
    assert Monitor.from_bytes(stored) == learned
    assert "stakes='learned'" in repr(learned)


@given(streams, st.integers(0, 40), st.integers(1, 3), STAKES)
@settings(max_examples=50)
def test_cut_stored_and_resumed_it_goes_on_the_same(
    rounds: Any, cut: int, lag: int, stakes: str
) -> None:
    whole = followed(rounds, lag=lag, buckets=4, stakes=stakes)
    half = followed(rounds[:cut], lag=lag, buckets=4, stakes=stakes)
    for restored in (
        Monitor.from_bytes(half.to_bytes()),
        Monitor.from_dict(half.to_dict()),
        pickle.loads(pickle.dumps(half)),
        half.copy(),
    ):
        assert restored == half
        for forecast, outcome in rounds[cut:]:
            restored.update(forecast, outcome)
        assert restored == whole
        assert repr(restored) == repr(whole)


READS: dict[str, Callable[[Monitor], Any]] = {
    "alarm": lambda monitor: monitor.alarm,
    "alarm_after": lambda monitor: monitor.alarm_after,
    "change": lambda monitor: monitor.change,
    "evidence": lambda monitor: monitor.evidence,
    "repr": repr,
    "rounds": lambda monitor: monitor.rounds,
    "since": lambda monitor: monitor.since,
    "state": lambda monitor: monitor.to_dict(),
    "table": lambda monitor: monitor.table(),
}


@pytest.mark.parametrize("lag", [1, 2])
@pytest.mark.parametrize("name", READS)
def test_reading_changes_nothing(name: str, lag: int) -> None:
    monitor = followed([(0.9, 0), (0.2, 1), (0.9, 0)] * 20, lag=lag, buckets=4)
    before = monitor.to_bytes()
    # In words: nan, the mean of no rounds, equals nothing, not even itself.
    assert repr(READS[name](monitor)) == repr(READS[name](monitor))
    assert monitor.to_bytes() == before


def test_a_copy_is_independent() -> None:
    first = followed([(0.5, 1)])
    second = first.copy()
    second.update(0.5, 0)
    assert first != second
    assert first.rounds == 1
    assert first.__eq__(3) is NotImplemented
    with pytest.raises(TypeError):
        hash(first)


def test_the_state_is_small_and_does_not_grow() -> None:
    short, long = followed([(0.3, 1)] * 10), followed([(0.3, 1)] * 99)
    assert len(short.to_bytes()) == len(long.to_bytes()) < 4096


def test_evidence_without_end_is_counted_up_to_a_limit() -> None:
    monitor = followed([(1e-6, 1)] * 100 + [(0.99, 0)] * 300)
    assert math.exp(595) < monitor.evidence.now <= math.exp(600.1)
    assert monitor.table()[0].evidence <= math.exp(600.1)
    assert not math.isnan(sum(monitor._chains[0]))


def test_hopeless_bets_end_at_nothing_and_not_at_an_error() -> None:
    monitor = Monitor(buckets=1)
    chain = monitor._chains[0]
    block = kernel.blocks_at(1)
    for at in (block + kernel.RATE, block + kernel.SHIFT, block + kernel.EVIDENCE):
        chain[at] = -800.0
    chain[kernel.PRODUCT] = chain[kernel.PLATT] = -800.0
    chain[kernel.size(1) :] = [0.0] * kernel.ACCOUNTS
    monitor.update(0.5, 1)
    assert monitor.evidence.now == 0.0
    assert Monitor.from_bytes(monitor.to_bytes()) == monitor


# Restarting and skipping.


def test_a_restart_forgets_the_evidence_and_counts_on() -> None:
    monitor = followed([(0.9, 0)] * 50)
    monitor.restart()
    assert (monitor.rounds, monitor.alarm, monitor.since) == (50, False, None)
    assert monitor.evidence == Evidence(1.0, 1.0, 50)
    for _ in range(20):
        monitor.update(0.9, 0)
    alone = followed([(0.9, 0)] * 20)
    assert alone.alarm_after is not None
    assert monitor.alarm_after == 50 + alone.alarm_after
    assert monitor.since == 50
    assert Monitor.from_bytes(monitor.to_bytes()) == monitor


def test_skipped_rounds_are_counted_and_not_judged() -> None:
    monitor = Monitor()
    monitor.skip(30)
    monitor.skip(10)
    monitor.update_many([0.9] * 20, [0] * 20)
    assert (monitor.rounds, monitor.since) == (60, 40)
    with pytest.raises(InvalidInput) as caught:
        monitor.skip(1)
    assert str(caught.value) == "skip must come before the first round, got 20 rounds"


# Bad input.

BAD_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"alpha": 0.0}, "alpha must be a number from 1e-100 to 0.5, got 0.0"),
    ({"alpha": 0.6}, "alpha must be a number from 1e-100 to 0.5, got 0.6"),
    ({"buckets": 0}, "buckets must be a whole number from 1 to 1000, got 0"),
    ({"run_length": 0.5}, "run_length must be a number from 1 to 1e100, got 0.5"),
    ({"tolerance": -0.1}, "tolerance must be a number from 0 to 0.5, got -0.1"),
    ({"clip": 0.0}, "clip must be a number from 1e-12 to 0.1, got 0.0"),
    ({"lag": 0}, "lag must be a whole number from 1 to 1000, got 0"),
    ({"stakes": "all"}, "stakes must be one of 'grid', 'learned', got 'all'"),
]


@pytest.mark.parametrize(("options", "message"), BAD_SETTINGS)
def test_bad_settings_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Monitor(**options)
    assert str(caught.value) == message


BAD_ROUNDS: list[tuple[Any, Any, type[Exception], str]] = [
    (1.5, 1, InvalidInput, "forecast must be a number in [0, 1], got 1.5"),
    (math.nan, 1, InvalidInput, "forecast must be a number in [0, 1], got nan"),
    (None, 1, InvalidType, "forecast must be a number in [0, 1], got None"),
    (0.5, 2, InvalidInput, "outcome must be 0 or 1, got 2"),
    (0.5, "1", InvalidType, "outcome must be 0 or 1, got '1'"),
]


@pytest.mark.parametrize(("forecast", "outcome", "error", "message"), BAD_ROUNDS)
def test_bad_rounds_are_named_and_change_nothing(
    forecast: Any, outcome: Any, error: type[Exception], message: str
) -> None:
    monitor, watch = followed([(0.4, 1)]), Watch()
    before, watched = monitor.to_bytes(), watch.to_bytes()
    with pytest.raises(error) as caught:
        monitor.update(forecast, outcome)
    assert str(caught.value) == message
    with pytest.raises(error):
        monitor.update_many([0.5, forecast], [1, outcome])
    for raw in (0.5, forecast):
        with pytest.raises(error):
            watch.update(raw, forecast, outcome)
        with pytest.raises(error):
            watch.update_many([0.5, raw], [0.5, forecast], [1, outcome])
    assert monitor.to_bytes() == before
    assert watch.to_bytes() == watched


def test_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidInput, match="forecasts has 2, outcomes has 1"):
        Monitor().update_many([0.5, 0.5], [1])
    with pytest.raises(InvalidInput, match="raw has 1, forecasts has 2, outcomes has 2"):
        Watch().update_many([0.5], [0.5, 0.5], [1, 1])


def altered(monitor: Monitor, change: Callable[[dict[str, Any], Any], Any]) -> bytes:
    document = monitor._document()
    settings, words = dict(document.settings), document.arrays["chains"].copy()
    words = change(settings, words)
    arrays = {} if words is None else {"chains": words}
    return Document("monitor", settings, arrays, Monitor.version).to_bytes()


def set_words(at: int, value: float) -> Callable[[dict[str, Any], Any], Any]:
    def change(_: dict[str, Any], words: Any) -> Any:
        words.view(np.float64)[at] = value
        return words

    return change


def set_setting(name: str, value: Any) -> Callable[[dict[str, Any], Any], Any]:
    def change(settings: dict[str, Any], words: Any) -> Any:
        settings[name] = value
        return words

    return change


DAMAGE = {
    "no chains": lambda settings, words: None,
    "a short chain": lambda settings, words: words[:-1],
    "no alpha": lambda settings, words: (settings.pop("alpha"), words)[1],
    "a bad alpha": set_setting("alpha", 2),
    "another alpha": set_setting("alpha", 0.02),
    "other buckets": set_setting("buckets", 21),
    "a bad number of rounds": set_setting("rounds", -1),
    "more rounds before": set_setting("before", 5),
    "no numbers": set_words(kernel.NOW, math.nan),
    "other edges": set_words(kernel.HEADER + 1, 0.3),
    "no stakes": lambda settings, words: (settings.pop("stakes"), words)[1],
    "other stakes": set_setting("stakes", "learned"),
    "debts": set_words(-1, -1e-9),
    "a sum beyond all": set_words(kernel.LEADER, 1e30),
    "a sum before all": set_words(kernel.LEADER, -1.0),
    "an alarm to come": set_words(kernel.ALARM, 5.0),
    "a change before the first round": set_words(kernel.CHANGE, -1.0),
    "more rounds than reals count": set_words(kernel.ROUNDS, 1e17),
    "more money than is counted": set_words(-2, 1e260),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_bytes_that_are_no_monitor_are_refused(name: str) -> None:
    data = altered(followed([(0.3, 1)]), DAMAGE[name])
    with pytest.raises(CorruptState, match="state must be of a monitor, got "):
        Monitor.from_bytes(data)


# Side by side.


def distorted(seed: int, rounds: int) -> tuple[Any, Any, Any]:
    raw, outcomes = stream(seed, rounds, FAULTS["over-confident"][0])
    run = Recalibrator(seed=seed).replay(raw, outcomes)
    return raw, run.mean, outcomes


def test_a_watch_sees_that_the_raw_forecasts_are_off_and_the_calibrated_ones_are_not() -> None:
    watch = Watch(alpha=0.01, learning=2000)
    watch.update_many(*distorted(4, 4000))
    assert watch.raw.alarm
    assert not watch.calibrated.alarm
    assert watch.calibrated.rounds == watch.rounds == 4000
    assert watch.calibrated.evidence.at >= 2000


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_a_watch_in_parts_is_the_watch_one_by_one(cut: int, learning: int, rounds: int) -> None:
    columns = [column[:rounds] for column in distorted(4, 30)]
    parts, loop = (Watch(learning=learning, buckets=3) for _ in range(2))
    parts.update_many(*(column[:cut] for column in columns))
    parts = Watch.from_bytes(parts.to_bytes())
    parts.update_many(*(column[cut:] for column in columns))
    for raw, forecast, outcome in zip(*columns, strict=True):
        loop.update(raw, forecast, int(outcome))
    assert parts == loop
    assert parts.copy() == loop
    assert repr(parts) == repr(loop)


def test_a_watch_can_be_stored_copied_and_pickled() -> None:
    watch = Watch(learning=3)
    watch.update_many([0.9] * 30, [0.1] * 30, [0] * 30)
    for other in (
        Watch.from_dict(watch.to_dict()),
        pickle.loads(pickle.dumps(watch)),
        watch.copy(),
    ):
        assert other == watch
        other.update(0.9, 0.1, 0)
        assert other != watch


def test_a_watch_takes_closed_tickets() -> None:
    rec, watch = Recalibrator(seed=1), Watch()
    ticket = rec.forecast(0.7)
    with pytest.raises(InvalidInput, match="ticket must be closed, got Ticket"):
        watch.settle(ticket)
    with pytest.raises(InvalidType, match="ticket must be a Ticket, got 3"):
        watch.settle(3)  # type: ignore[arg-type]
    watch.settle(rec.observe(ticket, 1))
    expected = Watch()
    expected.update(0.7, ticket.mean, 1)
    assert watch == expected
    assert watch.__eq__(3) is NotImplemented


def test_a_watch_begins_anew_with_both() -> None:
    watch = Watch()
    watch.update_many([0.9] * 30, [0.9] * 30, [0] * 30)
    assert watch.raw.alarm
    watch.restart()
    assert not watch.raw.alarm
    assert not watch.calibrated.alarm
    assert watch.rounds == 30


def test_bytes_that_are_no_watch_are_refused() -> None:
    for settings_, arrays in (({}, {}), ({"learning": -1}, {}), ({"learning": 0, "raw": "x"}, {})):
        with pytest.raises(CorruptState, match="state must be of a watch"):
            Watch.from_bytes(Document("watch", settings_, arrays).to_bytes())
