"""Conformal intervals: each method against its oracle, its bound and an adversary."""

from __future__ import annotations

import itertools
import math

import naive_regression as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import bounds
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels import intervals as kernel
from calibrant.regression import ConformalInterval, interval_methods

pytestmark = pytest.mark.base

scores = st.lists(st.integers(0, 12).map(lambda k: k / 4), min_size=1, max_size=60)
coverages = st.sampled_from([0.5, 0.8, 0.9, 0.97])
EVERY = tuple(interval_methods.names())
every = pytest.mark.parametrize("method", EVERY)


def kept(record):
    """Say whether what was measured is below its bound, however little that says."""
    if record.bound is None or record.measured is None:
        return True
    return record.measured <= record.bound.value + 1e-9


def drifting(rounds=2_000, seed=0):
    """Scores whose size changes tenfold three times."""
    rng = np.random.default_rng(seed)
    size = np.array([0.1, 1.0, 0.1, 0.5])[np.arange(rounds) * 4 // rounds]
    return np.minimum(np.abs(rng.normal(size=rounds)) * size / 3.0, 1.0)


def given_scores(method, coverage=0.9, **options):
    return ConformalInterval(method, coverage=coverage, score="given", seed=1, **options)


# Against the oracles.


@given(coverages, scores, st.sampled_from([None, 3.0]))
def test_aci_is_the_printed_algorithm(coverage, scores, scale) -> None:
    run = given_scores("aci", coverage, step=0.1, scale=scale).replay(None, scores)
    told = naive.aci(1 - coverage, 0.1, scores, scale)
    assert run.radius.tolist() == pytest.approx(told, abs=1e-9)


@given(coverages, scores, st.sampled_from([1, 3, 500]), st.sampled_from([0.01, 0.3]))
def test_aci_on_the_level_is_the_printed_algorithm(coverage, scores, window, step) -> None:
    run = given_scores("aci_quantile", coverage, step=step, window=window).replay(None, scores)
    told = naive.aci_quantile(1 - coverage, step, window, scores)
    assert run.radius.tolist() == told


@given(coverages, scores)
def test_scale_free_descent_is_the_printed_algorithm(coverage, scores) -> None:
    run = given_scores("sf_ogd", coverage, scale=3.0).replay(None, scores)
    assert run.radius.tolist() == pytest.approx(naive.sf_ogd(1 - coverage, scores, 3.0), abs=1e-9)


@given(coverages, scores, st.sampled_from([1, 4, 100]), st.sampled_from([0.05, 1.0]))
def test_pid_is_the_printed_algorithm(coverage, scores, window, saturation) -> None:
    options = {"window": window, "saturation": saturation, "gain": 2.0, "step": 0.1}
    run = given_scores("pid", coverage, **options).replay(None, scores)
    told = naive.pid(1 - coverage, 0.1, window, 2.0, saturation, scores)
    assert run.radius.tolist() == pytest.approx(told, rel=1e-6, abs=1e-6)


@given(coverages, scores)
def test_saocp_is_the_printed_algorithm(coverage, scores) -> None:
    run = given_scores("saocp", coverage, scale=3.0).replay(None, scores)
    assert run.radius.tolist() == pytest.approx(naive.saocp(1 - coverage, scores, 3.0), abs=1e-7)


def test_saocp_keeps_to_its_oracle_for_long() -> None:
    # Beyond, the last bits of sums in another order decide whom to trust.
    given = drifting(700)[:350]
    run = given_scores("saocp", scale=1.0).replay(None, given)
    told = naive.saocp(1 - 0.9, given.tolist(), 1.0)
    assert run.radius.tolist() == pytest.approx(told, abs=1e-12)


@given(st.integers(1, 5_000))
def test_the_places_of_experts_are_free_when_they_are_needed(now) -> None:
    # Who is alive in round `now` by lifetime is who stands in the table by place.
    def order(t):
        return (t & -t).bit_length() - 1

    alive = {t for t in range(1, now + 1) if now < t + 8 * 2 ** order(t)}
    state = [0.0] * (kernel.EXPERTS + kernel.ORDERS * kernel.PER_ORDER * kernel.EXPERT)
    for t in range(max(1, now - 8 * now), now + 1):
        kernel.hire(state, 0, t, 0.0)
    found = {int(b) for b in state[kernel.EXPERTS + kernel.BORN :: kernel.EXPERT] if b}
    # The table may still hold one of the highest order, whose successor has not come.
    late = {t for t in found - alive if t + 8 * 2 ** order(t) <= now}
    assert alive <= found
    assert late == set()


# Bounds.


@every
@given(coverage=coverages, scores=scores)
def test_coverage_is_within_its_bound_after_every_round_of_any_sequence(
    method, coverage, scores
) -> None:
    band = given_scores(method, coverage)
    for score in scores:
        band.observe(band.forecast(), score)
        record = band.certificate()
        assert kept(record)
        assert (record.bound is None) == (method == "saocp" or not band._method.record(0).bound)
        assert abs(record.coverage - coverage) == pytest.approx(record.measured or 0.0) or (
            method == "saocp"
        )


@given(coverage=coverages, scores=scores, step=st.sampled_from([0.01, 0.1, 1.0]))
def test_fact_15_adaptive_conformal_inference_keeps_within_its_range(
    coverage, scores, step
) -> None:
    band = given_scores("aci", coverage, step=step, scale=1.0)
    run = band.replay(None, scores)
    largest = max(scores)
    missed = 1.0 - np.cumsum(run.covered) / np.arange(1, len(scores) + 1)
    for t, share in enumerate(missed.tolist(), 1):
        assert abs(share - (1 - coverage)) <= bounds.aci(t, largest, step).value + 1e-12
    assert (run.radius >= -step).all()
    assert (run.radius <= largest + step).all()
    made = band.certificate().bound.value
    assert made <= bounds.aci(len(scores), largest, step).value + 1e-12


@given(coverage=coverages, scores=scores)
def test_the_bound_of_scale_free_descent_from_its_steps_is_below_the_one_beforehand(
    coverage, scores
) -> None:
    band = given_scores("sf_ogd", coverage, scale=3.0)
    band.replay(None, scores)
    made = band.certificate().bound.value
    assert made <= bounds.sf_ogd(len(scores), max(scores), 3.0, coverage).value + 1e-9


@every
@pytest.mark.parametrize("aim", ["above", "below", "turns"])
def test_an_adversary_who_sees_the_radius_cannot_break_the_bound(method, aim) -> None:
    options = {"scale": 1.0} if method in ("aci", "saocp", "sf_ogd") else {}
    band = given_scores(method, 0.8, **options)
    for t in range(600):
        ticket = band.forecast()
        up = aim == "above" or (aim == "turns" and (t // 100) % 2 == 0)
        # Just above what is covered, as long as scores may be that large.
        score = 0.0 if not up else min(max(ticket.radius + 1e-9, 0.0), 1.0)
        band.observe(ticket, score)
        record = band.certificate()
        assert kept(record)
    assert kept(band.certificate())


def test_the_adversary_bites() -> None:
    # A radius that does not learn misses every time.
    band = given_scores("aci", 0.8, step=1e-9, scale=1.0)
    for _ in range(200):
        ticket = band.forecast()
        band.observe(ticket, min(ticket.radius + 1e-6, 1.0))
    assert band.certificate().coverage == 0.0


@every
@given(rounds=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8)), min_size=1, max_size=60))
def test_late_outcomes_cost_what_the_bound_says(method, rounds) -> None:
    band, waiting = given_scores(method, 0.8), []
    for lag, score in rounds:
        waiting.append((band.forecast(), score / 4))
        while len(waiting) > lag:
            band.observe(*waiting.pop(len(waiting) // 2))
    for ticket, score in waiting:
        band.observe(ticket, score)
    record = band.certificate()
    assert kept(record)
    assert record.delay <= 6
    if method == "aci_quantile":
        assert record.bound == bounds.quantile_tracker(len(rounds), 0.02, delay=record.delay)
    if method == "pid":
        told = bounds.conformal_pid(len(rounds), 0.2, delay=record.delay)
        assert record.bound == told


def test_without_the_delay_the_bound_would_be_too_small() -> None:
    band = given_scores("aci", 0.5, step=1.0, scale=1.0)
    tickets = [band.forecast() for _ in range(20)]
    for ticket in tickets:
        band.observe(ticket, 1.0)
    record = band.certificate()
    assert record.measured > bounds.aci(20, 1.0, 1.0).value
    assert kept(record)


@pytest.mark.parametrize("seed", range(3))
def test_saocp_regrets_little_on_every_dyadic_interval(seed) -> None:
    given = drifting(1_024, seed)
    band = given_scores("saocp", scale=1.0)
    run = band.replay(None, given)
    own = np.array([naive.loss(0.1, r, s) for r, s in zip(run.radius, given, strict=True)])
    rivals = np.linspace(0.0, 1.0, 201)
    table = np.where(
        given > rivals[:, None], 0.9 * (given - rivals[:, None]), 0.1 * (rivals[:, None] - given)
    )
    for size, start in itertools.product((16, 64, 256, 1_024), range(0, 1_024, 16)):
        if start + size <= 1_024:
            part = slice(start, start + size)
            regret = own[part].sum() - table[:, part].sum(axis=1).min()
            assert regret / size <= bounds.saocp(1_024, 1.0, length=size).value
    record = band.certificate()
    fixed = table[:: 200 // 40, :].sum(axis=1).min()
    assert record.quantity == "regret"
    assert record.measured == pytest.approx((own.sum() - fixed) / 1_024, abs=2e-3)
    assert kept(record)


def test_saocp_adapts_where_scale_free_descent_does_not() -> None:
    # After 4,000 calm rounds scores are ten times as large: small steps take long.
    calm = np.abs(np.random.default_rng(1).normal(size=4_060)) / 30
    calm[4_000:] *= 10
    late = {}
    for method in ("sf_ogd", "saocp"):
        run = given_scores(method, scale=1.0).replay(None, calm)
        late[method] = run.covered[4_000:].mean()
    assert late["saocp"] > 0.8
    assert late["sf_ogd"] < late["saocp"] - 0.1


def test_scores_beyond_the_scale_void_the_promise_of_saocp() -> None:
    band = given_scores("saocp", scale=1.0)
    band.observe(band.forecast(), 2.0)
    record = band.certificate()
    assert record.bound is None
    assert record.holds is None
    assert record.measured == pytest.approx(0.0, abs=2.0)
    unknown = given_scores("saocp")
    unknown.observe(unknown.forecast(), 2.0)
    assert unknown.certificate().measured is None
    assert "regret not measured\n  no guarantee" in str(unknown.certificate())


@pytest.mark.slow
@every
def test_every_method_reaches_its_coverage_on_drifting_scores(method) -> None:
    band = given_scores(method, 0.9)
    band.replay(None, drifting(4_000))
    assert band.certificate().coverage == pytest.approx(0.9, abs=0.02)


def test_scores_that_are_all_nothing_need_no_radius() -> None:
    for method in EVERY:
        band = given_scores(method)
        run = band.replay(None, np.zeros(20))
        assert run.covered.all()
        assert run.radius[np.isfinite(run.radius)].tolist() == [0.0] * np.isfinite(run.radius).sum()
        assert kept(band.certificate())


def test_the_integral_part_covers_everything_or_nothing_when_it_must() -> None:
    band = given_scores("pid", 0.5, saturation=0.05, step=0.01)
    radii = []
    for _ in range(12):
        ticket = band.forecast()
        radii.append(ticket.radius)
        band.observe(ticket, 1.0)
    assert math.inf in radii
    calm = given_scores("pid", 0.5, saturation=0.05)
    run = calm.replay(None, np.zeros(12))
    assert -math.inf in run.radius.tolist()


# Scores, scorecasts and input.


def test_the_score_is_the_distance_to_the_point_forecast() -> None:
    rng = np.random.default_rng(0)
    centres, outcomes = rng.normal(size=80), rng.normal(size=80)
    band, other = ConformalInterval("aci_quantile", seed=1), given_scores("aci_quantile")
    run = band.replay(centres, outcomes)
    same = other.replay(None, np.abs(outcomes - centres))
    assert run.radius.tolist() == same.radius.tolist()
    assert run.low.tolist() == (centres - run.radius).tolist()
    assert run.high.tolist() == (centres + run.radius).tolist()
    inside = (run.low <= outcomes) & (outcomes <= run.high)
    assert (run.covered == inside).mean() > 0.98
    assert same.low.tolist() == same.high.tolist() == []
    assert band.coverage == 0.9


def test_a_scorecast_is_taken_off_the_score_and_added_to_the_radius() -> None:
    rng = np.random.default_rng(0)
    expected = rng.random(300) * 10
    given = expected + rng.random(300)
    band, plain = given_scores("pid"), given_scores("pid")
    run = band.replay(None, given, scorecasts=expected)
    without = plain.replay(None, given - expected)
    assert run.radius.tolist() == (without.radius + expected).tolist()
    assert run.covered.tolist() == without.covered.tolist()
    single = given_scores("pid")
    for score, cast in zip(given.tolist(), expected.tolist(), strict=True):
        low, high = single.predict_one(scorecast=cast)
        assert low == -high
        single.learn_one(None, score, scorecast=cast)
    assert single == band


def test_tickets_of_given_scores_have_a_radius() -> None:
    band = given_scores("aci", scale=2.0)
    band.learn_one(None, 1.0)
    ticket = band.forecast()
    assert (ticket.centre, ticket.radius) == (None, pytest.approx(0.09))
    assert repr(ticket) == "IntervalTicket(id=1, radius=0.09, open)"
    assert (ticket.low, ticket.high) == (-ticket.radius, ticket.radius)


def test_negative_scores_are_fine() -> None:
    given = np.random.default_rng(0).normal(size=500) - 3.0
    for method in EVERY:
        band = given_scores(method, 0.8)
        band.replay(None, given)
        assert kept(band.certificate())
        assert band.certificate().coverage == pytest.approx(0.8, abs=0.1)


BAD = {
    "coverage 0": ({"coverage": 0.0}, "coverage must be between 0 and 1, got 0.0"),
    "coverage 1": ({"coverage": 1}, "coverage must be between 0 and 1, got 1"),
    "score": ({"score": "mine"}, "score must be one of 'residual', 'given', got 'mine'"),
    "step": ({"step": 0}, "step must be above 0, got 0"),
    "scale": ({"method": "aci", "scale": -1.0}, "scale must be above 0, got -1.0"),
    "window": (
        {"method": "pid", "window": 0},
        "window must be a whole number from 1 to 10000, got 0",
    ),
    "gain": ({"method": "pid", "gain": 0.0}, "gain must be above 0, got 0.0"),
    "saturation": ({"method": "pid", "saturation": 0.0}, "saturation must be above 0, got 0.0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_refused(case) -> None:
    options, told = BAD[case]
    with pytest.raises(InvalidInput) as caught:
        ConformalInterval(**options)
    assert str(caught.value) == told


def test_settings_that_are_no_numbers_are_refused_as_such() -> None:
    with pytest.raises(InvalidType, match="step must be a finite number, got 'small'"):
        ConformalInterval(step="small")


def test_points_and_scores_are_not_mixed_up() -> None:
    band = given_scores("aci")
    for call in (band.forecast, band.predict_one, lambda c: band.learn_one(c, 1.0)):
        with pytest.raises(
            InvalidInput, match=r"centre must be None where scores are given, got 1"
        ):
            call(1.0)
    with pytest.raises(InvalidInput, match="centre must be None where scores are given"):
        band.replay([1.0], [1.0])
    points = ConformalInterval()
    with pytest.raises(InvalidType, match="centre must be a finite number, got None"):
        points.forecast()
    with pytest.raises((InvalidInput, InvalidType), match="centres"):
        points.replay(None, [1.0])
    with pytest.raises((InvalidInput, InvalidType), match="scorecast must be a finite number"):
        points.forecast(1.0, scorecast=math.nan)
    with pytest.raises(InvalidInput, match=r"scorecasts\[0\] must be a finite number, got inf"):
        points.replay([1.0], [1.0], scorecasts=[math.inf])
    assert points.issued == band.issued == 0


BOUNDS = {
    "rounds": (
        lambda: bounds.quantile_tracker(0, 0.1),
        "rounds must be a whole number of at least 1, got 0",
    ),
    "step": (lambda: bounds.quantile_tracker(5, 0.0), "step must be above 0, got 0.0"),
    "delay": (
        lambda: bounds.aci(5, 1.0, 0.1, delay=-1),
        "delay must be a whole number of at least 0, got -1",
    ),
    "span": (
        lambda: bounds.aci(5, -1.0, 0.1),
        "span must be a finite number of at least 0, got -1.0",
    ),
    "coverage": (
        lambda: bounds.sf_ogd(5, 1.0, 1.0, 1.0),
        "coverage must be between 0 and 1, got 1.0",
    ),
    "length": (
        lambda: bounds.saocp(5, 1.0, length=6),
        "length must be a whole number from 1 to 5, got 6",
    ),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_bounds_say_what_they_need(case) -> None:
    call, told = BOUNDS[case]
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value) == told


def test_bounds_are_the_formulas_of_their_theorems() -> None:
    assert bounds.quantile_tracker(1_000, 0.1).value == pytest.approx(1.1 / 100)
    assert bounds.quantile_tracker(1_000, 0.1, delay=2).value == pytest.approx(1.3 / 100)
    assert bounds.aci(1_000, 4.0, 0.5).value == pytest.approx(4.5 / 500)
    assert bounds.step_sizes(100, 1.0, 0.5, 8.0, idle=3, delay=1).value == pytest.approx(0.19)
    pid = (0.3 * math.pi / 2 * 1_001 / math.log(1_001) + 1 + 4) / 1_000
    assert bounds.conformal_pid(1_000, 0.3, delay=4).value == pytest.approx(pid)
    assert bounds.conformal_pid(1, 1.0).value == pytest.approx(math.pi / math.log(2.0) + 1)
    assert bounds.saocp(100, 2.0, length=25).value == pytest.approx(
        30.0 * math.sqrt((math.log(100) + 1) / 25)
    )
    assert bounds.saocp(100, 2.0).quantity == "regret"
    assert {bounds.aci(9, 1.0, 0.1).source, bounds.aci(9, 1.0, 0.1, delay=1).source} == {
        "cited",
        "sharper",
    }


# Numbers at the ends of what a double can be.

ODD = {
    "huge": [(-1.0) ** k * 1.7e308 for k in range(40)],
    "tiny": [k % 3 * 5e-324 for k in range(40)],
    "small": [k % 3 * 1e-310 for k in range(40)],
    "huge and tiny": [(0.0, 1e-310, 1e300, 1.0)[k % 4] for k in range(40)],
}


@every
@pytest.mark.parametrize("outcomes", ODD.values(), ids=list(ODD))
def test_numbers_of_any_size_leave_a_state_that_can_be_read(method, outcomes) -> None:
    band, other = (ConformalInterval(method, seed=1) for _ in range(2))
    centres = [-y if abs(y) > 1e307 else 0.0 for y in outcomes]
    for centre, outcome in zip(centres, outcomes, strict=True):
        ticket = band.observe(band.forecast(centre), outcome)
        assert not math.isnan(ticket.low)
        assert not math.isnan(ticket.high)
    other.replay(centres, outcomes)
    assert other == band
    assert ConformalInterval.from_bytes(band.to_bytes()) == band
    assert kept(band.certificate())


def test_saocp_goes_on_where_hundreds_of_bets_are_won_in_a_row() -> None:
    band = ConformalInterval("saocp", seed=1)
    waiting = [band.forecast(0.0) for _ in range(1_500)]
    for ticket in waiting:
        band.observe(ticket, 1.0)
    assert band.forecast(0.0).high == pytest.approx(1.0, abs=0.1)
    assert ConformalInterval.from_bytes(band.to_bytes()) == band


@every
@pytest.mark.parametrize("sides", [1, 2])
def test_a_zero_below_zero_is_the_same_in_a_batch(method, sides) -> None:
    options = {"sides": sides} if method in ("agaci", "blend") else {}
    band, other = (ConformalInterval(method, seed=1, **options) for _ in range(2))
    outcomes = [-0.0, 1.0, 0.0, -0.0, 2.0, -0.0] * 4
    for outcome in outcomes:
        band.observe(band.forecast(0.0), outcome)
    other.replay([0.0] * len(outcomes), outcomes)
    assert other == band


@every
def test_a_coverage_that_leaves_nothing_to_be_missed_less_is_refused(method) -> None:
    with pytest.raises(InvalidInput, match="coverage must be between 0 and 1, got 1e-300"):
        ConformalInterval(method, coverage=1e-300, seed=1)
    ConformalInterval(method, coverage=2.0**-53, seed=1).replay([0.0] * 9, range(9))


def test_an_option_that_would_move_anything_to_infinity_is_refused() -> None:
    for method, name in (("aci", "step"), ("saocp", "scale"), ("pid", "gain"), ("blend", "step")):
        with pytest.raises(InvalidInput, match=f"{name} must be at most 1e"):
            ConformalInterval(method, seed=1, **{name: 1e101})
        ConformalInterval(method, seed=1, **{name: 1e100}).replay([0.0] * 9, range(9))
    with pytest.raises(InvalidInput, match="step must be above 0"):
        ConformalInterval("blend", step=5e-324)
