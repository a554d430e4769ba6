"""Late outcomes: both outcomes count alike, crowds count little, and the promises under delay."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.late import Late, crowd, score, streams
from calibrant import Calibrant, Recalibrator, bounds
from calibrant.errors import InvalidInput
from calibrant.transforms import BucketMeans, Identity, OnlinePlatt

STREAMS = {stream.name: stream for stream in streams(4_000, 0)}
BY_OUTCOME = [name for name in STREAMS if "late by" in name and name[:3] in ("one", "zer")]
BY_OUTCOME = [name for name in BY_OUTCOME if "tempered" not in name]
HEAVY = ["heavy tail, ones later", "heavy tail, zeros later"]


# Delays that depend on the outcome.


@pytest.mark.parametrize("name", BY_OUTCOME + HEAVY)
def test_delays_that_depend_on_the_outcome_leave_calibrated_forecasts_alone(name) -> None:
    raw, mean, _, c2 = score(STREAMS[name], 0)
    assert mean <= raw + 0.002
    assert c2 <= 0.002


def test_rare_ones_that_come_late_are_not_forgotten() -> None:
    raw, mean, _, c2 = score(STREAMS["rare ones late by 300"], 0)
    assert mean <= raw + 0.0002
    assert c2 <= 0.002


@pytest.mark.parametrize("name", ["ones late by 20, tempered", "heavy tail, ones later, tempered"])
def test_what_is_wrong_is_corrected_though_one_outcome_comes_later(name) -> None:
    raw, mean, binned, c2 = score(STREAMS[name], 0)
    assert mean <= raw - 0.01
    assert c2 <= binned / 4


@pytest.mark.parametrize(("size", "most"), [(10, 0.002), (100, 0.016)])
def test_many_forecasts_that_wait_for_one_result_tell_little(size, most) -> None:
    raw, mean, _, _ = score(STREAMS[f"crowds of {size}"], 0)
    assert mean <= raw + most


def test_a_stream_of_crowds_is_calibrated() -> None:
    # A walk that ends above 0 with the chance that its place says.
    made = crowd(20_000, 2, 5)
    gaps = made.outcomes - made.raw
    assert abs(gaps.mean()) < 0.01
    assert abs((gaps * (made.raw > 0.5)).mean()) < 0.01


def test_outcomes_that_never_come_do_not_stop_the_learning() -> None:
    raw, mean, _, _ = score(STREAMS["half never, tempered"], 0)
    assert mean <= raw - 0.01


def moved(model: Calibrant, raw: float, outcome: int, wait: int) -> np.ndarray:
    """How much each expert's weight moves, in logs, after so many forecasts without outcomes."""
    model = model.copy()
    ticket = model.forecast(raw)
    for _ in range(wait):
        model.forecast(0.5)
    before = np.array([link.weight for link in model.certificate().links])
    model.observe(ticket, outcome)
    after = np.array([link.weight for link in model.certificate().links])
    return np.log(after / before)


@pytest.mark.parametrize("outcome", [0, 1])
def test_an_outcome_moves_the_weights_alike_whenever_it_comes(outcome) -> None:
    rng = np.random.default_rng(3)
    model = Calibrant(seed=1)
    raw, time = rng.random(200), np.arange(200.0)
    model.replay(raw, rng.random(200) < raw**2, time=time, available=np.minimum(time + 40.0, 199.0))
    assert moved(model, 0.7, outcome, 0) == pytest.approx(moved(model, 0.7, outcome, 30), abs=1e-5)


@pytest.mark.parametrize("way", ["replay", "learn_one"])
@pytest.mark.parametrize("make", [Calibrant, lambda seed: Recalibrator("anchored", seed=seed)])
def test_prompt_rounds_after_late_ones_are_the_same_in_every_way(make, way) -> None:
    rng = np.random.default_rng(4)
    raw, outcomes = rng.random(60), rng.integers(0, 2, 60)
    one = make(seed=2)
    waiting = [one.forecast(p) for p in (0.2, 0.9, 0.6)]
    one.observe(waiting[1], 0)
    other = one.copy()
    for p, y in zip(raw.tolist(), outcomes.tolist(), strict=True):
        one.observe(one.forecast(p), y)
    if way == "replay":
        other.replay(raw, outcomes)
    for p, y in zip(raw.tolist(), outcomes.tolist(), strict=True):
        if way == "learn_one":
            other.learn_one(p, y)
    assert one == other


def test_a_restart_between_late_outcomes_changes_nothing() -> None:
    one = Calibrant(seed=5)
    tickets = [one.forecast(p / 10) for p in range(1, 9)]
    other = Calibrant.from_bytes(one.to_bytes())
    for ticket in tickets[::-1]:
        one.observe(ticket.id, ticket.number % 2)
        other = Calibrant.from_bytes(other.to_bytes())
        other.observe(ticket.id, ticket.number % 2)
    assert one == other


# The promises.


def test_a_correction_keeps_the_patience_of_the_crowd() -> None:
    rec = Recalibrator("anchored", buckets=1, seed=1)
    for _ in range(20):
        tickets = [rec.forecast(0.3) for _ in range(10)]
        closed = [rec.observe(ticket, 1) for ticket in tickets]
    before = rec.forecast(0.3).mean
    rec.correct(rec.correct(closed[3], 0), 1)
    assert rec.forecast(0.3).mean == pytest.approx(before, abs=1e-9)


def delayed(model: Recalibrator, rounds: int, lags: tuple[int, int], seen: str) -> Recalibrator:
    """Let an adversary name the outcome that hurts, and hold it back by what it is."""
    rng, due = np.random.default_rng(6), {}
    for t in range(rounds):
        ticket = model.forecast(float(rng.choice([0.2, 0.5, 0.9])))
        outcome = int(getattr(ticket, seen) <= 0.5)
        due.setdefault(t + lags[outcome], []).append((ticket, outcome))
        for held, told in due.pop(t, []):
            model.observe(held, told)
    return model


@pytest.mark.parametrize("lags", [(0, 7), (7, 0), (3, 60)])
@pytest.mark.parametrize("seen", ["mean", "mixed"])
def test_adversaries_who_choose_delays_stay_below_the_bounds(lags, seen) -> None:
    made = delayed(Calibrant(seed=2), 4_000, lags, seen).certificate()
    assert made.delay > 0
    assert made.bound("C2") >= made.c2
    assert made.bound("regret") >= made.mixed_regret
    assert made.holds
    assert made.raw_bound is None


def test_late_promises_are_for_one_bucket_of_the_rule_itself() -> None:
    times = np.arange(300.0)
    for method, options in [("anchored", {"buckets": 3}), ("growing", {}), ("fading", {})]:
        rec = Recalibrator(method, seed=1, **({"buckets": 1} | options))
        rec.replay(np.full(300, 0.4), times % 2 == 0, time=times, available=times + 3.0)
        assert rec.certificate().bounds == ()
    rec = Recalibrator("anchored", buckets=1, seed=1, strength=0.0)
    rec.replay(np.full(300, 0.4), times % 2 == 0, time=times, available=times + 3.0)
    assert {bound.quantity for bound in rec.certificate().bounds} >= {"C1", "C2"}


def test_the_late_bound_grows_with_the_delay_and_heals() -> None:
    def bound(rounds: int, delay: int, lag: int) -> float:
        table = [[rounds // 20] * 20]
        return bounds.anchored_late(table, 0.025, delay=delay, lag=lag, missing=delay).value

    assert bound(10**5, 2, 2) < bound(10**5, 20, 20) < bound(10**5, 20, 500)
    values = [bound(10**n, 5, 50) - 0.025**2 for n in range(4, 12)]
    assert all(later < value / 4 for value, later in itertools.pairwise(values))
    for broken in ({"delay": 0}, {"lag": 0}, {"missing": 0}):
        told = {"delay": 1, "lag": 1, "missing": 1} | broken
        with pytest.raises(InvalidInput):
            bounds.anchored_late([[3, 4]], 0.25, **told)


@given(st.integers(1, 10**6), st.floats(0.0, 1.0), st.floats(2.85, 50.0), st.floats(0.0, 1.0))
def test_what_waits_moves_the_potential_by_its_square(others, part, patience, gap) -> None:
    # A round at which at most twice the known crowd waits.
    slow = patience * (1 + others)
    u = part * 2 * others / slow
    bent = 2.0 * math.exp(u + 1.0 / slow) / slow
    assert bent <= 0.6
    assert (1.0 - bent) * gap**2 - 2.0 * (math.exp(u) - 1.0) * gap >= -5.3 * u * u - 1e-12


@given(st.floats(-60.0, 60.0), st.floats(2.85, 100.0), st.floats(0.0, 50.0))
def test_more_patience_raises_the_potential_by_no_more_than_itself(regret, patience, more) -> None:
    def potential(slow: float) -> float:
        return slow * math.exp(regret / slow) if regret < 0.0 else slow + regret

    assert -1e-9 <= potential(patience + more) - potential(patience) <= more + 1e-9


@pytest.mark.parametrize("size", [1, 4, 25])
@pytest.mark.parametrize("aim", ["q", "coin", "late"])
def test_a_mixture_in_crowds_loses_no_more_than_its_bound(size, aim) -> None:
    model = Calibrant((Identity(), OnlinePlatt(), BucketMeans(5)), seed=3, share=1e-3)
    rng, rounds = np.random.default_rng(8), 2_000
    for start in range(0, rounds, size):
        tickets = [model.forecast(float(p)) for p in rng.random(size)]
        for ticket in tickets:
            told = {"q": ticket.mixed <= 0.5, "coin": rng.random() < 0.5, "late": start > 1_000}
            model.observe(ticket, int(told[aim]))
    for link in model.certificate().links:
        assert link.regret <= bounds.mixture_in_crowds(rounds, 3, 1e-3, size).value + 1e-4


def swung(crowd: int, cycles: int) -> float:
    """The regret of exponential weights that learn one outcome at a time when it tells nothing."""
    logs, losses, own = [0.0, 0.0], [0.0, 0.0], 0.0

    def told(said: list[float]) -> float:
        weights = [math.exp(log - max(logs)) for log in logs]
        ones, zeros = (
            sum(w * math.exp(-2.0 * (p - y) ** 2) for w, p in zip(weights, said, strict=True))
            for y in (1, 0)
        )
        return 0.5 + math.log(ones / zeros) / 4.0

    def play(said: list[float]) -> float:
        for k in (0, 1):
            losses[k] += (said[k] - 1.0) ** 2
        return (told(said) - 1.0) ** 2

    def learn(said: list[float]) -> None:
        for k in (0, 1):
            logs[k] -= 2.0 / crowd * (said[k] - 1.0) ** 2

    for good in [0, 1] * cycles:
        late = [float(k == good) for k in (0, 1)]
        for winner in (1 - good, good):
            if winner == good:
                own += play(late)
            for _ in range(60 * crowd):
                said = [0.525 if k == winner else 0.475 for k in (0, 1)]
                own += play(said)
                learn(said)
        learn(late)
    return own - min(losses)


@pytest.mark.parametrize("crowd", [2, 5])
def test_one_outcome_that_waits_for_long_can_cost_a_mixture_for_ever(crowd) -> None:
    few, many = swung(crowd, 5), swung(crowd, 20)
    assert few > 3.0
    assert many > 3.9 * few


def test_without_crowds_the_two_bounds_on_mixtures_agree() -> None:
    known = bounds.mixture(5_000, 7, 3e-4, start=0.5).value
    assert bounds.mixture_in_crowds(5_001, 7, 3e-4, 1, start=0.5).value == pytest.approx(
        known * 5_000 / 5_001, abs=1e-7
    )
    assert bounds.mixture_in_crowds(5_000, 7, 3e-4, 1).value > known


def test_a_stream_has_as_many_delays_as_rounds() -> None:
    assert all(isinstance(stream, Late) for stream in STREAMS.values())
    assert {len(stream.raw) - len(stream.known) for stream in STREAMS.values()} == {0}
