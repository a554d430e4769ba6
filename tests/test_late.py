"""Late outcomes: both outcomes count alike, crowds count little, and the promises under delay."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.late import Late, crowd, score, streams
from calibrant import Calibrant, Recalibrator, Table, bounds, metrics
from calibrant.errors import InvalidInput
from calibrant.kernels.layout import CROWD, LAG
from calibrant.recalibrate.record import account_of
from calibrant.registry import transforms
from calibrant.transforms import BucketMeans, Identity, OnlinePlatt, Temperature

STREAMS = {stream.name: stream for stream in streams(4_000, 0)}
BY_OUTCOME = [name for name in STREAMS if "late by" in name and name[:3] in ("one", "zer")]
BY_OUTCOME = [name for name in BY_OUTCOME if "tempered" not in name]
HEAVY = ["heavy tail, ones later", "heavy tail, zeros later"]


# Delays that depend on the outcome.


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BY_OUTCOME, *HEAVY, "rare ones late by 300"])
@pytest.mark.parametrize("seed", [0, 1])
def test_delays_that_depend_on_the_outcome_leave_calibrated_forecasts_alone(name, seed) -> None:
    made = next(stream for stream in streams(30_000, seed) if stream.name == name)
    raw, mean, _, c2 = score(made, seed)
    assert mean <= raw + 0.001
    assert c2 <= 0.002


def test_rare_ones_that_come_late_are_not_forgotten() -> None:
    raw, mean, _, c2 = score(STREAMS["rare ones late by 300"], 0)
    assert mean <= raw + 0.0002
    assert c2 <= 0.002


def averaged(name: str, rounds: int, seeds: int) -> list[float]:
    """The scores of a stream's default, averaged over streams of this name."""
    made = [next(s for s in streams(rounds, seed) if s.name == name) for seed in range(seeds)]
    return np.mean([score(stream, seed) for seed, stream in enumerate(made)], axis=0).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ones late by 20, tempered", "heavy tail, ones later, tempered"])
def test_what_is_wrong_is_corrected_though_one_outcome_comes_later(name) -> None:
    raw, mean, binned, c2 = averaged(name, 12_000, 4)
    assert mean <= raw - 0.012
    assert c2 <= binned / 8


def test_a_stream_of_crowds_is_calibrated() -> None:
    # A walk that ends above 0 with the chance that its place says.
    made = crowd(20_000, 2, 5)
    gaps = made.outcomes - made.raw
    assert abs(gaps.mean()) < 0.01
    assert abs((gaps * (made.raw > 0.5)).mean()) < 0.01


@pytest.mark.slow
def test_outcomes_that_never_come_do_not_stop_the_learning() -> None:
    raw, mean, _, _ = averaged("half never, tempered", 12_000, 4)
    assert mean <= raw - 0.012


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


@pytest.mark.parametrize("make", [Calibrant, lambda seed: Recalibrator("anchored", seed=seed)])
def test_what_an_interrupt_left_of_a_late_outcome_does_not_reach_a_batch(make) -> None:
    rng = np.random.default_rng(4)
    raw, outcomes = rng.random(60), rng.integers(0, 2, 60)
    one, other = make(seed=2), make(seed=2)
    reals = other._rows.state()[1]
    reals[LAG] = reals[CROWD] = 7.0
    assert one.replay(raw, outcomes).mean.tolist() == other.replay(raw, outcomes).mean.tolist()
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


def between(model: Calibrant, how: str) -> Calibrant:
    """Look at a stream, or let it come back from where it is stored."""
    if how == "mean":
        model.predict_mean_one(0.6)
    if how == "draw":
        model.sample_one(0.6)
    return Calibrant.from_bytes(model.to_bytes()) if how == "restart" else model


@pytest.mark.parametrize("how", ["mean", "draw", "restart"])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", transforms.names())
def test_a_late_outcome_is_learned_for_what_a_transform_says_now(name, again, how) -> None:
    models = [Calibrant(transforms.get(name)(), buckets=2, seed=1) for _ in range(2)]
    for k, model in enumerate(models):
        for p in range(8):
            model.observe(model.forecast(p / 8), p % 2)
        early, late = model.forecast(0.3), model.forecast(0.6)
        model.observe(early, 1)
        if again:
            model.forecast(0.6)
        models[k] = between(model, how) if k else model
        models[k].observe(late.id, 1)
    assert models[0] == models[1]


def test_a_key_learns_late_outcomes_whatever_other_keys_were_asked() -> None:
    table, lone = Table(Calibrant(Temperature()), seed=1), Calibrant(Temperature(), seed=1, key="a")
    waiting = [(table.forecast("a", p), lone.forecast(p)) for p in (0.3, 0.6, 0.8)]
    for tickets in waiting[:2]:
        for stream, ticket in zip((table, lone), tickets, strict=True):
            stream.observe(ticket, 1)
    table.forecast("a", 0.8)
    table.forecast("b", 0.5)
    lone.forecast(0.8)
    table.observe(waiting[2][0], 1)
    lone.observe(waiting[2][1], 1)
    assert table.row("a") == lone.to_bytes()


@pytest.mark.parametrize("experts", [None, Temperature()])
def test_a_round_that_was_looked_at_is_learned_for_what_experts_say_now(experts) -> None:
    one, other = (Calibrant(experts, buckets=2, seed=1) for _ in range(2))
    for model in (one, other):
        for p in range(1, 200):
            model.learn_one(p / 200, p > 100)
        model.sample_one(0.9)
        model.learn_one(0.1, 1)
        if model is other:
            model.predict_mean_one(0.9)
        model.learn_one(0.9, 1)
    assert one == other


# The promises.


def test_a_correction_keeps_the_patience_of_the_crowd() -> None:
    rec = Recalibrator("anchored", buckets=1, seed=1)
    for _ in range(20):
        tickets = [rec.forecast(0.3) for _ in range(10)]
        closed = [rec.observe(ticket, 1) for ticket in tickets]
    before = rec.predict_mean_one(0.3)
    assert before < 0.6
    rec.correct(rec.correct(closed[-1], 0), 1)
    assert rec.predict_mean_one(0.3) == pytest.approx(before, abs=1e-9)
    # A round that was wrong while others were forecast makes the crowd larger by one.
    rec.correct(rec.correct(closed[3], 0), 1)
    assert rec.predict_mean_one(0.3) < before - 1e-4


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
    assert made.holds is (True if max(lags) < 10 else None)
    assert made.raw_bound is None


def once_late(rounds: int, make=Calibrant, **options) -> Recalibrator:
    """Play prompt rounds in the midst of which one outcome comes two forecasts late."""
    rng = np.random.default_rng(9)
    raw = rng.random(rounds)
    times = np.arange(float(rounds))
    known = times.copy()
    known[rounds // 2] += 3.0
    model = make(seed=3, **options)
    model.replay(raw, rng.random(rounds) < raw, time=times, available=known)
    return model


@pytest.mark.slow
def test_after_one_late_outcome_the_promise_comes_back() -> None:
    found = [once_late(rounds).certificate() for rounds in (1_000, 20_000, 60_000)]
    assert {made.delay for made in found} == {1}
    assert found[0].promised("C2") is None
    assert found[0].early == pytest.approx(4_000, rel=0.5)
    assert 2.0 * found[2].promised("C2") < found[1].promised("C2") < 0.35
    assert [made.holds for made in found] == [True, True, True]
    # The mixture has no bound, which is said, and so none is promised to the raw forecast.
    assert {made.promised("regret") for made in found} == {None}
    assert all(link.bound is None for made in found for link in made.links)
    told = "the mixture's own loss has no bound, for outcomes came late"
    assert [told in str(made) for made in found] == [False, True, True]
    assert all("without a bound, for outcomes came late" in made.details() for made in found)


def test_a_mixture_that_was_told_wrongly_promises_nothing_to_the_raw_forecast() -> None:
    model = Calibrant(seed=1)
    for k in range(2_000):
        y = k % 2
        model.correct(model.observe(model.forecast(0.1 + 0.8 * y), 1 - y), y)
    made = model.certificate()
    assert made.delay == 0
    assert made.regret > 0.2
    assert made.promised("regret") is made.raw_bound is None
    assert {link.bound for link in made.links} == {None}
    assert made.c2 <= made.promised("C2")
    assert "the mixture's own loss has no bound, for outcomes came late or were" in str(made)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["anchored", "growing"])
@pytest.mark.parametrize("buckets", [1, 4])
def test_outcomes_that_never_come_cost_little_and_void_nothing(method, buckets) -> None:
    rng = np.random.default_rng(7)
    raw = rng.random(30_000)
    outcomes = rng.random(30_000) < raw
    never, prompt = (Recalibrator(method, buckets=buckets, seed=1) for _ in range(2))
    never.forecast(0.5)
    for rec in (never, prompt):
        rec.replay(raw, outcomes)
    found, known = never.certificate(), prompt.certificate()
    assert found.delay == 0
    assert known.bound("C2") < found.bound("C2") < known.bound("C2") + 0.1
    assert known.promised("C2") < found.promised("C2") < 1.0
    assert found.holds


@pytest.mark.slow
def test_a_mixture_that_waits_in_vain_pays_for_it_once() -> None:
    rng = np.random.default_rng(8)
    raw = rng.random(20_000)
    model = Calibrant(seed=1)
    model.forecast(0.5)
    model.replay(raw, rng.random(20_000) < raw)
    made = model.certificate()
    assert made.delay == 0
    slowly = {link.bound > 0.5 for link in made.links}
    assert slowly == {True}
    assert all(link.holds for link in made.links)


def test_one_run_keeps_what_is_promised_of_it_under_delay() -> None:
    kept = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model, due = Recalibrator("anchored", buckets=1, resolution=8, seed=seed), {}
        for t in range(600):
            ticket = model.forecast(0.5)
            outcome = int(ticket.mean < 0.5)
            due.setdefault(t + int(rng.integers(0, 2)), []).append((ticket, outcome))
            for held, told in due.pop(t, []):
                model.observe(held, told)
        made = model.certificate(failure=0.2)
        assert made.delay == 1
        assert len(made.sure) >= 3
        measured = {"C1": made.c1, "C2": made.c2, "regret": made.regret}
        kept += [measured[b.quantity] <= b.value for b in made.sure]
    assert all(kept)


@pytest.mark.parametrize("first", [0, 1])
def test_news_of_one_kind_first_breaks_no_promise(first) -> None:
    # Outcomes are those that hurt; what surprises the rule is told up to three forecasts later.
    model, waiting = Recalibrator("anchored", buckets=1, seed=4), []
    for t in range(6_000):
        ticket = model.forecast(0.5)
        waiting.append((t, ticket, int(ticket.mean < 0.5 + 0.2 * (t % 2))))
        due = [each for each in waiting if each[2] == first or each[0] <= t - 3]
        waiting = [each for each in waiting if each not in due]
        for _, held, outcome in due:
            model.observe(held, outcome)
    made = model.certificate()
    assert 0 < made.delay <= 3
    assert made.c2 <= made.promised("C2") < 1.0
    assert made.c2 < 0.02
    assert made.holds


def test_certificates_quote_the_bounds_by_name() -> None:
    rec = once_late(2_000, lambda seed: Recalibrator("anchored", buckets=1, seed=seed))
    account = account_of(rec._spec, rec._arena.row())
    waits = {"delay": account.delay, "lag": account.lag, "missing": account.missing}
    assert waits == {"delay": 1, "lag": 2, "missing": 1}
    made, h = rec.certificate(failure=0.1), rec.calibrator.lattice.half_cell
    sure = {bound.quantity: bound.value for bound in made.sure}
    late = bounds.anchored_late(account.counts, h, failure=0.05, **waits)
    lost = bounds.anchored_late_regret(account.counts, h, failure=0.05, **waits)
    assert (sure["C2"], sure["regret"]) == pytest.approx((late.value, lost.value), abs=1e-12)
    assert late.theorem == lost.theorem == "average gap with an anchor, under delay"
    assert "with probability at least 0.95" in late.assumption
    # Without chance, the same for the expectation.
    known = bounds.anchored_late(account.counts, h, **waits).value
    assert made.bound("C2") == pytest.approx(known)
    assert known == pytest.approx(late.value - bounds.azuma(2_000, 0.05))


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
    for broken in ({"delay": 2}, {"lag": 0}, {"missing": 0}):
        told = {"delay": 1, "lag": 1, "missing": 1} | broken
        with pytest.raises(InvalidInput):
            bounds.anchored_late([[3, 4]], 0.25, **told)
    with pytest.raises(InvalidInput, match="buckets must be 1 where outcomes were late, got 2"):
        bounds.anchored_late([[3, 4], [5, 6]], 0.25, delay=1, lag=1, missing=1)


@given(st.integers(1, 10**6), st.floats(0.0, 1.0), st.floats(2.85, 50.0), st.floats(0.0, 1.0))
def test_what_waits_moves_the_potential_by_its_square(others, part, patience, gap) -> None:
    # A round at which at most 1.5 times the known crowd waits, each with a regret of up to 2.
    slow = patience * (1 + others)
    u = 2 * math.floor(part * 1.5 * others) / slow
    bent = 2.0 * math.exp(u + 1.0 / slow) / slow
    assert bent <= 0.6
    assert (1.0 - bent) * gap**2 - 2.0 * (math.exp(u) - 1.0) * gap >= -4.5 * u * u - 1e-12


def rises(patience: float, waits: list[tuple[int, int, int]]) -> float:
    """By how much the patience of a rule rises in all, with what is missing and late meanwhile."""
    total, before = 0.0, 0.0
    for count, (learned, missing, longest) in enumerate(waits, 1):
        others = min(missing, max(longest, 10_000 // (1 + learned)))
        now = max(patience * (1 + others), 2.0 * math.cbrt(others**2 * count))
        total, before = total + max(now - before, 0.0), now
    return total


@pytest.mark.parametrize("seed", range(12))
def test_patience_rises_by_no_more_than_the_bound_reckons_with(seed) -> None:
    rng = np.random.default_rng(seed)
    rounds = 25_000
    missing = np.cumsum(rng.random(rounds) < [1e-4, 1e-3, 1.0][seed % 3])
    missing = np.minimum(missing, 10 ** rng.integers(0, 5)) + 1
    longest = np.where(np.arange(rounds) < rng.integers(0, rounds), 0, 10 ** rng.integers(0, 4))
    longest = longest * (seed % 2)
    waits = list(zip(range(rounds), missing.tolist(), longest.tolist(), strict=True))
    told = {"delay": 0, "lag": int(longest[-1]), "missing": int(missing[-1])}
    free = {"patience": 3.0, "strength": 0.0}
    reckoned = bounds.late_cost(rounds, 0.0, **told | free | {"strength": 1.0})
    reckoned -= bounds.late_cost(rounds, 0.0, **told | free)
    assert rises(3.0, waits) <= 3.0 + rounds * reckoned


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


def test_no_two_streams_are_made_of_the_same_random_numbers() -> None:
    by_rows = [tuple(stream.raw[:20].tolist()) for stream in STREAMS.values()]
    crowds = [name for name in STREAMS if name.startswith("crowds")]
    # Crowds whose forecasts are too sure are those that are right, made too sure.
    assert len(set(by_rows)) == len(STREAMS)
    outcomes = {STREAMS[name].outcomes[:200].tobytes() for name in STREAMS if name not in crowds}
    assert len(outcomes) == len(STREAMS) - len(crowds)


def test_c2_of_draws_is_over_their_exact_values() -> None:
    made = STREAMS["late by up to 20"]
    time = np.arange(4_000.0)
    run = Calibrant(seed=3).replay(made.raw, made.outcomes, time=time, available=made.known)
    assert len(set(run.forecast.tolist())) > 21
    _, _, _, c2 = score(made, 3)
    assert c2 == pytest.approx(metrics.calibration_error(run.forecast, made.outcomes, power=2))
