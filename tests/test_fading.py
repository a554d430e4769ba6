"""A rule that forgets: what it remembers, in rounds and in time, and what it does not promise."""

from __future__ import annotations

import random

import naive_calibrators as naive
import naive_drift_rules as slow
import numpy as np
import players
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator, metrics
from calibrant.calibrators import Anchored, Fading
from calibrant.errors import InvalidInput, InvalidType
from calibrant.recalibrate.delivery import Pending

pytestmark = pytest.mark.base

NEEDED = "time must be given to a rule that forgets in time, by forecast or replay, got "


def rec_of(kind=Recalibrator, **options):
    given = {"buckets": 1, "seed": 3, "resolution": 6, "half_life": 5.0}
    return kind(method="fading", **given | options)


def law_of(mixture, cells):
    law = np.zeros(cells)
    items = mixture.items() if isinstance(mixture, dict) else mixture
    for k, weight in items:
        law[k] = weight
    return law


def gaps_of(rec):
    """The remembered average gap of each cell."""
    return players.cells_of(rec.calibrator, rec._arena.snapshot()).view(float)[:, 2].copy()


# What is remembered.


@pytest.mark.parametrize("grid", ["endpoints", "midpoints"])
@pytest.mark.parametrize("unit", ["rounds", "time"])
def test_late_outcomes_fade_as_in_the_obvious_version(unit, grid) -> None:
    rec = rec_of(unit=unit, grid=grid, half_life=3.7)
    values = naive.fractions(rec.calibrator.lattice)
    obvious = slow.Fading([float(v) for v in values], 0, 0.5, 3.7)
    rng, waiting, cells, crowd = random.Random(unit), [], len(values), naive.Crowd()
    for number in range(200):
        crowd.forecast(len(waiting))
        obvious.anchor, now = rng.random(), -1e5 + 3.0 * number + rng.random()
        ticket, wanted = rec.forecast(obvious.anchor, time=now), obvious.mixture()
        told = zip(ticket.mixture.indices, ticket.mixture.weights, strict=True)
        assert law_of(told, cells) == pytest.approx(law_of(wanted, cells), abs=1e-11)
        waiting.append((number, ticket, wanted))
        for _ in range(rng.choice([0, 0, 1, 3])):
            if waiting:
                made, found, mixture = waiting.pop(rng.randrange(len(waiting)))
                outcome, among = int(rng.random() < 0.8 * found.raw), crowd.outcome(number - made)
                rec.observe(found, outcome)
                told = found.index, outcome, found.raw, mixture, among
                obvious.update(*told, time=found.time if unit == "time" else None)


def test_a_round_counts_half_after_a_half_life() -> None:
    rule = Fading(resolution=1, half_life=1.0)
    state = rule.start(centre=0.0)
    for outcome in (1, 0):
        state = rule.update(state, 0, outcome)
        assert rule.forecast(state).indices[0] == 0
    first = players.cells_of(rule, state)[0]
    # The first outcome weighs 1/2 of the second: (1/2 * 1 + 1 * 0) / (3/2).
    assert first.view(float)[2:].tolist() == pytest.approx([1 / 3, 1.5, 1.0])
    assert first[:2].tolist() == [1, 2]


def test_with_an_endless_half_life_it_plays_as_anchored_does() -> None:
    raw, outcomes = players.stream(300, 2)
    one = players.by_tickets(rec_of(half_life=1e18), raw, outcomes)
    fixed = Recalibrator("anchored", resolution=6, buckets=1, seed=3)
    other = players.by_tickets(fixed, raw, outcomes)
    assert one[0] == other[0]
    assert one[1] == pytest.approx(other[1], abs=1e-9)


def test_one_round_per_unit_of_time_is_a_half_life_in_rounds() -> None:
    raw, outcomes = players.stream(100, 2)
    one, other = rec_of(), rec_of(unit="time")
    values, means = players.by_tickets(one, raw, outcomes)
    run = other.replay(raw, outcomes, time=np.arange(100.0))
    assert (run.forecast.tolist(), run.mean.tolist()) == (values, means)
    assert gaps_of(one).tolist() == gaps_of(other).tolist()


def test_the_account_of_the_long_run_forgets_nothing() -> None:
    raw, outcomes = players.stream(500, 3)
    rec = rec_of(half_life=0.1)
    values, _ = players.by_tickets(rec, raw, outcomes)
    certificate = rec.certificate()
    assert certificate.c2 == pytest.approx(metrics.calibration_error(values, outcomes, power=2))
    assert certificate.loss == pytest.approx(metrics.brier(values, outcomes))
    assert (certificate.bounds, certificate.holds) == ((), None)
    assert str(certificate).endswith("no guarantee")


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=30),
    st.integers(0, 29),
    st.sampled_from(["rounds", "time"]),
)
def test_a_correction_leaves_what_the_right_outcome_would_have_left(rounds, wrong, unit) -> None:
    rec, wrong = rec_of(unit=unit), wrong % len(rounds)
    tickets = []
    for k, (p, y) in enumerate(rounds):
        tickets.append(rec.forecast(p, time=1.5 * k))
        rec.observe(tickets[-1], 1 - y if k == wrong else y)
    rec.correct(tickets[wrong], rounds[wrong][1])
    obvious = slow.Fading(rec.calibrator.lattice.values.tolist(), 0, 0.5, 5.0)
    for ticket in tickets:
        time = ticket.time if unit == "time" else float(ticket.number)
        obvious.update(ticket.index, ticket.outcome, ticket.raw, {0: 1.0}, time=time)
    averages = [obvious.gap(k) / max(n, 1) for k, n in enumerate(obvious.counts)]
    assert gaps_of(rec) == pytest.approx(averages, abs=1e-12)


def test_no_correction_takes_an_average_where_no_outcomes_could() -> None:
    rec = rec_of(buckets=2, half_life=1.0)
    tickets = [rec.forecast(0.1) for _ in range(12)]
    values = rec.calibrator.lattice.values
    for ticket in reversed(tickets):
        rec.observe(ticket, 1)
    for ticket in tickets:
        rec.correct(ticket, 0)
        assert (gaps_of(rec) >= -values).all()
    for ticket in tickets:
        rec.correct(ticket, 1)
        assert (gaps_of(rec) <= 1 - values).all()


@given(
    st.lists(st.tuples(st.floats(-1e308, 1e308), st.integers(0, 1)), min_size=1, max_size=12),
    st.sampled_from([5e-324, 1.0, 1e300]),
)
def test_any_times_and_any_half_life_leave_possible_averages(rounds, half_life) -> None:
    rec = rec_of(unit="time", half_life=half_life)
    tickets = [rec.forecast(0.5, time=time) for time, _ in rounds]
    values = rec.calibrator.lattice.values
    for ticket, (_, y) in zip(tickets, rounds, strict=True):
        rec.observe(ticket, y)
        gaps = gaps_of(rec)
        assert ((gaps >= -values - 1e-12) & (gaps <= 1 - values + 1e-12)).all()


# What must be given.


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"half_life": 0.0}, InvalidInput, "half_life must be a finite number above 0, got 0.0"),
        ({"half_life": "1"}, InvalidType, "half_life must be a finite number above 0, got '1'"),
        ({"unit": "days"}, InvalidInput, "unit must be one of 'rounds', 'time', got 'days'"),
        ({"patience": 1.0}, InvalidInput, "patience must be at least 2.85, got 1.0"),
    ],
)
def test_a_bad_half_life_is_refused(options, error, text) -> None:
    with pytest.raises(error) as refused:
        Fading(**options)
    assert str(refused.value) == text


@pytest.mark.parametrize("kind", [Recalibrator, Calibrant])
def test_a_rule_that_forgets_in_time_is_told_the_time(kind) -> None:
    rec = rec_of(kind, unit="time")
    before = rec.to_bytes()
    for call, got in [
        (lambda: rec.forecast(0.5), "None"),
        (lambda: rec.replay([0.5], [1]), "None"),
        (lambda: rec.sample_one(0.5), "sample_one, which takes none"),
        (lambda: rec.predict_one(0.5), "sample_one, which takes none"),
        (lambda: rec.learn_one(0.5, 1), "learn_one, which takes none"),
    ]:
        with pytest.raises(InvalidInput) as refused:
            call()
        assert str(refused.value) == NEEDED + got
    assert rec.to_bytes() == before


def test_a_ticket_that_lost_its_time_teaches_nothing() -> None:
    rec = rec_of(unit="time")
    ticket, other = rec.forecast(0.5, time=1.0), rec.forecast(0.5, time=2.0)
    kept = rec.observe(other, 1)
    ticket._time = kept._time = None
    before = gaps_of(rec)
    for call in (lambda: rec.observe(ticket, 1), lambda: rec.correct(kept, 0)):
        with pytest.raises(InvalidInput, match=r"^time must be given .* without one$"):
            call()
    assert gaps_of(rec).tolist() == before.tolist()


def test_a_ticket_that_lost_its_time_is_not_carried_into_a_batch() -> None:
    rec = rec_of(unit="time")
    ticket = rec.forecast(0.5, time=1.0)
    ticket._time = None
    waiting = Pending(np.array([ticket.number]), np.array([1.5]), np.array([1]))
    before = rec.to_bytes()
    with pytest.raises(InvalidInput) as refused:
        rec.replay([0.5], [1], time=[2.0], carry=waiting)
    assert str(refused.value) == f"{NEEDED}{ticket!r} without one"
    assert rec.to_bytes() == before


def test_no_theorem_is_quoted() -> None:
    rule = Fading()
    assert rule.bound(1000) is rule.measured(None) is rule.regret(None) is None
    assert "none" in rule.guarantee


# What it is good for, and what it is not.


def wave(rounds, seed=11):
    """Raw forecasts under a wave whose phase moves all the time."""
    rng = np.random.default_rng(seed)
    raw = rng.random(rounds)
    phase = np.linspace(0.0, 1.0, rounds)
    chance = 0.5 + 0.4 * np.sin(2.0 * np.pi * (1.5 * raw + phase))
    return raw.tolist(), (rng.random(rounds) < chance).astype(int).tolist()


def worst_block(rec, raw, outcomes):
    values, _ = players.by_tickets(rec, raw, outcomes)
    return metrics.windowed_calibration_error(values, outcomes, window=2000).worst


def test_the_worst_stretch_under_drift_is_better_than_without_forgetting() -> None:
    raw, outcomes = wave(10_000)
    options = {"buckets": 20, "resolution": 20}
    # So it is under seven of eight seeds.
    fading = worst_block(rec_of(half_life=50.0, seed=0, **options), raw, outcomes)
    fixed = worst_block(Recalibrator("anchored", seed=0, **options), raw, outcomes)
    assert fading < 0.6 * fixed


def against_the_mean(rec, rounds):
    """Let outcomes be what the mean does not expect; return C2 of the draws and of the means."""
    rng, tickets = random.Random(1), []
    for _ in range(rounds):
        ticket = rec.forecast(rng.random())
        tickets.append(rec.observe(ticket, int(ticket.mean < 0.5)))
    outcomes = [ticket.outcome for ticket in tickets]
    means = [ticket.mean for ticket in tickets]
    return rec.certificate().c2, metrics.calibration_error(means, outcomes, power=2)


@pytest.mark.parametrize("method", ["anchored", "fading", "growing"])
def test_the_mean_loses_to_an_adversary_and_the_draw_does_not(method) -> None:
    options = {"half_life": 69.0} if method == "fading" else {}
    draw, mean = against_the_mean(Recalibrator(method, buckets=1, seed=3, **options), 3000)
    assert draw < 0.01
    assert mean > 0.24


def test_what_is_forgotten_adds_up_beyond_any_bound_of_the_rule_that_remembers() -> None:
    bound = Anchored(resolution=6).bound(6000).value
    kept, _ = against_the_mean(Recalibrator("anchored", resolution=6, buckets=1, seed=3), 6000)
    lost, _ = against_the_mean(rec_of(half_life=0.5), 6000)
    assert kept < bound < lost
