"""Intervals that average many learners: their oracles, two sides, and what is promised."""

from __future__ import annotations

import json
import math

import naive_aggregated as naive
import numpy as np
import pytest
from golden.state_steps import STATES, dictionary_of
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.interval_series import volatile
from calibrant import bounds
from calibrant.core.codec import Document
from calibrant.errors import InvalidInput
from calibrant.kernels import blend as kernel
from calibrant.kernels import gammas, opinions
from calibrant.kernels.intervals import ALPHA, LEVEL, MISSES, STEP
from calibrant.regression import ConformalInterval, IntervalTicket, metrics

pytestmark = pytest.mark.base

errors = st.lists(st.integers(-12, 12).map(lambda k: k / 4), min_size=1, max_size=40)
coverages = st.sampled_from([0.5, 0.8, 0.9, 0.97])
SIDED = ("agaci", "blend")
sided = pytest.mark.parametrize("method", SIDED)


def close(found, expected):
    assert list(map(tuple, found)) == [pytest.approx(row, abs=1e-7) for row in expected]


def around(method, given, **options):
    """Intervals around 0, and the radii above and below that were announced."""
    band = ConformalInterval(method, seed=1, **options)
    run = band.replay(np.zeros(len(given)), given)
    return band, list(zip(run.high.tolist(), (-run.low).tolist(), strict=True))


def skewed(rounds=1_500, seed=0):
    rng = np.random.default_rng(seed)
    return rng.exponential(1.0, rounds) * np.where(np.arange(rounds) < rounds // 2, 1.0, 3.0)


# Against the oracles.  Where opinions are tied, the last bits decide: errors are random reals.


@given(coverages, st.integers(0, 99), st.sampled_from([3, 500]), st.sampled_from([1, 2]))
@settings(max_examples=40)
def test_agaci_is_the_printed_algorithm(coverage, seed, window, sides) -> None:
    found = np.random.default_rng(seed).normal(0.3, 1.0, 50)
    options = {"coverage": coverage, "window": window, "sides": sides}
    _, radii = around("agaci", found, **options)
    pairs = [(y, -y) for y in found.tolist()] if sides == 2 else [(abs(y),) for y in found.tolist()]
    told = naive.agaci(1 - coverage, window, pairs, sides)
    close(radii, told if sides == 2 else [row * 2 for row in told])


def test_the_steps_are_those_of_the_papers() -> None:
    assert pytest.approx(naive.MANY) == gammas.MANY
    assert pytest.approx(naive.DOUBLED) == gammas.DOUBLED


@given(coverages, errors, st.sampled_from([1, 3, 500]), st.sampled_from([1, 20, 500]))
@settings(max_examples=60)
def test_dtaci_is_the_printed_algorithm(coverage, scores, window, horizon) -> None:
    options = {"coverage": coverage, "window": window, "horizon": horizon}
    run = ConformalInterval("dtaci", score="given", seed=1, **options).replay(None, scores)
    told = naive.dtaci(1 - coverage, window, horizon, scores)
    assert run.radius.tolist() == told


def test_a_level_at_which_a_score_is_just_not_covered_moves_down() -> None:
    # Of one score so far, a level of 1/2 takes the smaller half: what is larger is missed.
    band = ConformalInterval("dtaci", score="given", coverage=0.5, seed=1)
    band.learn_one(None, 1.0)
    state = band._seat.reals()
    tried = slice(band._seat.at + gammas.TRIED, band._seat.at + gammas.TRIED + gammas.PACES)
    state[tried] = [0.5] * gammas.PACES
    band.learn_one(None, 2.0)
    expected = [0.5 - 0.5 * step for step in naive.DOUBLED]
    assert list(band._seat.reals()[tried]) == pytest.approx(expected)


@given(coverages, st.integers(0, 99), st.sampled_from([0.2, 2.0]), st.sampled_from([1, 2]))
@settings(max_examples=40)
def test_the_blend_is_the_printed_algorithm(coverage, seed, step, sides) -> None:
    found = np.random.default_rng(seed).normal(0.3, 1.0, 60)
    options = {"coverage": coverage, "step": step, "sides": sides}
    band, radii = around("blend", found, **options)
    pairs = [(y, -y) for y in found.tolist()] if sides == 2 else [(abs(y),) for y in found.tolist()]
    told, level = naive.blend(1 - coverage, step, pairs, sides)
    close(radii, told if sides == 2 else [row * 2 for row in told])
    assert band._seat.part()[LEVEL] == pytest.approx(level)


@sided
def test_given_scores_are_played_as_one_side(method) -> None:
    found = np.abs(np.random.default_rng(3).normal(size=200))
    one = ConformalInterval(method, score="given", seed=1)
    other = ConformalInterval(method, sides=1, seed=1)
    run, same = one.replay(None, found), other.replay(np.zeros(200), found)
    assert run.radius.tolist() == same.radius.tolist()
    assert same.low.tolist() == (-same.high).tolist()
    assert one._seat.part() == other._seat.part()
    assert one._method.fields == other._method.fields == "ddd"


# Two sides.


def test_the_default_finds_each_end_by_itself() -> None:
    y, zeros = skewed(), np.zeros(1_500)
    band = ConformalInterval(seed=1)
    run = band.replay(zeros, y)
    assert band.method == "blend"
    late = slice(1_000, None)
    # Of exponential errors of size 3 one in twenty is below 0.15, and one in twenty above 9.
    assert np.median(run.low[late]) == pytest.approx(0.15, abs=0.5)
    assert np.median(run.high[late]) == pytest.approx(9.0, abs=1.5)
    scores = {}
    for method, options in (("blend", {}), ("blend", {"sides": 1}), ("aci_quantile", {})):
        told = ConformalInterval(method, seed=1, **options).replay(zeros, y)
        ends = told.low[late], told.high[late]
        scores[method, *options] = metrics.interval_score(*ends, y[late], 0.9)
    assert scores["blend",] < 0.85 * scores["blend", "sides"]
    assert scores["blend",] < 0.85 * scores["aci_quantile",]


@sided
def test_a_ticket_of_two_sides_knows_both(method) -> None:
    band = ConformalInterval(method, seed=1)
    band.replay(np.zeros(100), skewed(100))
    ticket = band.forecast(10.0, scorecast=0.5)
    assert ticket.below != ticket.base
    assert (ticket.low, ticket.high) == (10.0 - (ticket.below + 0.5), 10.0 + (ticket.base + 0.5))
    assert band.predict_one(10.0, scorecast=0.5) == (ticket.low, ticket.high)
    for again in (
        IntervalTicket.from_dict(ticket.to_dict()),
        IntervalTicket.from_bytes(ticket.to_bytes()),
    ):
        assert (again.low, again.high, again.below) == (ticket.low, ticket.high, ticket.below)
    other = ConformalInterval.from_bytes(band.to_bytes())
    below = ticket.low - 1.0
    assert other.observe(ticket.number, below).below == ticket.below
    band.observe(ticket, below)
    assert band == other
    assert band._seat.part()[MISSES] == other._seat.part()[MISSES] > 0


def test_a_scorecast_is_taken_off_both_sides() -> None:
    rng = np.random.default_rng(5)
    sizes = rng.random(200) * 5.0
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0) * (sizes + 0.1 * rng.random(200))
    band = ConformalInterval(seed=1)
    run = band.replay(np.zeros(200), y, scorecasts=sizes)
    single = ConformalInterval(seed=1)
    for each, cast in zip(y.tolist(), sizes.tolist(), strict=True):
        single.observe(single.forecast(0.0, scorecast=cast), each)
    assert band == single
    # What is left is a tenth at most: ends follow what was expected, a little beyond it.
    plain = ConformalInterval(seed=1).replay(np.zeros(200), y)
    told, without = (np.median((each.high - sizes)[100:]) for each in (run, plain))
    assert 0.0 < told < 0.5 < 1.5 < without
    inside = (run.low <= y) & (y <= run.high)
    assert (inside == run.covered).all()


@sided
@pytest.mark.parametrize("sides", [0, 3, 1.5])
def test_there_are_one_or_two_sides(method, sides) -> None:
    with pytest.raises((InvalidInput, TypeError), match="sides must be a whole number"):
        ConformalInterval(method, sides=sides)


def test_a_horizon_has_rounds() -> None:
    with pytest.raises(InvalidInput, match="horizon must be a whole number of at least 1, got 0"):
        ConformalInterval("dtaci", horizon=0)


# What is promised.


def test_the_promise_of_the_default_is_that_of_its_level() -> None:
    band = ConformalInterval(seed=1)
    band.replay(np.zeros(1_500), skewed())
    record = band.certificate()
    assert record.bound.value == pytest.approx(bounds.quantile_tracker(1_500, 0.02).value)
    assert record.holds is True
    assert record.measured <= 0.005


def test_outcomes_beyond_all_before_are_counted_in_the_promise() -> None:
    # Three times as far in every round: no finite interval covers any but the first.
    band = ConformalInterval(coverage=0.5, step=1.0, score="given", seed=1)
    run = band.replay(None, 3.0 ** np.arange(30))
    beyond = int(band._seat.part()[kernel.BEYOND])
    assert run.covered.sum() <= 2
    assert beyond > 20
    record = band.certificate()
    step = band._seat.part()[STEP]
    assert record.measured > bounds.quantile_tracker(30, step).value
    assert record.bound.value == pytest.approx(
        bounds.quantile_tracker(30, step).value + beyond / 30
    )
    assert record.measured <= record.bound.value


def test_no_interval_is_infinite_once_there_is_a_score() -> None:
    _, radii = around("blend", np.random.default_rng(2).standard_t(2, 600))
    assert radii[0] == (math.inf, math.inf)
    assert np.isfinite(radii[1:]).all()


def test_nothing_is_covered_where_too_much_was() -> None:
    band = ConformalInterval(coverage=0.5, step=2.0, score="given", seed=1)
    run = band.replay(None, np.zeros(8))
    assert run.radius[-1] == -math.inf
    record = band.certificate()
    assert record.measured <= record.bound.value


@pytest.mark.parametrize("covering", [False, True])
def test_late_outcomes_that_move_the_level_further_out_are_counted(covering) -> None:
    band = ConformalInterval(coverage=0.5, step=1.0, score="given", seed=1)
    band.learn_one(None, 1.0)
    tickets = [band.forecast() for _ in range(20)]
    for ticket in tickets:
        band.observe(ticket, 0.0 if covering else 1e6)
    level, beyond = (band._seat.part()[place] for place in (LEVEL, kernel.BEYOND))
    assert (level > 1.0) if covering else (level < 0.0)
    # Of 20 that wait at a time, each moves it by half a step.
    assert beyond >= 5.0
    record = band.certificate()
    assert record.measured <= record.bound.value
    assert record.measured > bounds.quantile_tracker(21, 0.5).value


def test_a_corrected_outcome_moves_the_level_to_where_it_would_stand() -> None:
    rng = np.random.default_rng(4)
    band = ConformalInterval(seed=1)
    tickets = [band.observe(band.forecast(0.0), y) for y in rng.normal(size=40).tolist()]
    wrong = tickets[30]
    before = band._seat.part()
    inside = wrong.low <= wrong.outcome <= wrong.high
    band.correct(wrong, wrong.high + 1.0 if inside else (wrong.low + wrong.high) / 2)
    after = band._seat.part()
    change = 1.0 if inside else -1.0
    assert after[MISSES] == before[MISSES] + change
    assert after[LEVEL] == pytest.approx(before[LEVEL] - 0.02 * change)
    level = 0.1 + 0.02 * (0.1 * 40 - after[MISSES])
    assert after[LEVEL] == pytest.approx(level)
    assert (band.predict_one(0.0)[1] > tickets[-1].high - 1.0) or not inside


@pytest.mark.parametrize("method", ["agaci", "dtaci"])
def test_a_corrected_score_is_replaced_in_the_window(method) -> None:
    band = ConformalInterval(method, score="given", window=4, seed=1)
    tickets = [band.observe(band.forecast(), s) for s in (1.0, 2.0, 3.0, 4.0, 5.0)]
    band.correct(tickets[3], 0.5)
    part = band._seat.part()
    assert part[-4:] == [0.5, 2.0, 3.0, 5.0]
    band.correct(tickets[0], 9.0)
    assert band._seat.part()[-4:] == [0.5, 2.0, 3.0, 5.0]


@pytest.mark.parametrize("method", ["agaci", "blend", "dtaci"])
@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-160, 1.0, 1e80, 1e300])
def test_errors_of_any_size_leave_numbers(method, size) -> None:
    rng = np.random.default_rng(7)
    band = ConformalInterval(method, seed=1)
    run = band.replay(np.zeros(120), size * rng.uniform(-1.0, 1.0, 120))
    assert not np.isnan(run.low).any()
    assert not np.isnan(run.high).any()
    again = ConformalInterval.from_bytes(band.to_bytes())
    assert again == band


@sided
def test_the_size_of_errors_changes_nothing_but_the_size_of_intervals(method) -> None:
    found = np.random.default_rng(8).normal(0.5, 1.0, 150)
    _, one = around(method, found)
    _, other = around(method, 1024.0 * found)
    close(other, (1024.0 * np.array(one)).tolist())


def test_who_never_differed_weighs_nothing_unless_nobody_did() -> None:
    words = len(opinions.OPINION)
    state = [0.0] * (3 * words)
    for k, opinion in enumerate((1.0, 1.0, 1.0)):
        state[k * words + opinions.OPINED] = opinion
        state[k * words + opinions.WEIGHT] = (0.5, 0.25, 0.25)[k]
    opinions.reweigh(state, 0, 3, words, 0.1, 2.0, 1.0)
    assert state[opinions.WEIGHT :: words] == [1 / 3] * 3
    state[opinions.OPINED :: words] = 0.5, 1.0, 1.5
    opinions.reweigh(state, 0, 3, words, 0.1, 2.0, 1.0)
    assert state[opinions.WEIGHT :: words][1] == 0.0
    assert state[opinions.WEIGHT :: words][2] > state[opinions.WEIGHT :: words][0] > 0.0


def test_ends_move_the_faster_the_farther_the_level_is_away() -> None:
    state = [0.0] * len(kernel.BLEND_WORDS)
    state[ALPHA], state[kernel.SLACK], state[kernel.BEND] = 0.1, *kernel.BENT
    moved = [kernel.slack_of(state, 0, level) for level in (0.1, 0.12, 0.14, 0.16, 0.18, 0.2)]
    state[kernel.SLACK], state[kernel.BEND] = kernel.STRAIGHT
    evenly = [kernel.slack_of(state, 0, level) for level in (0.1, 0.12, 0.14, 0.16, 0.18, 0.2)]
    assert moved[0] == evenly[0] == 0.0
    assert evenly[1] < moved[1] < 0.0
    assert moved[-1] < 3.0 * evenly[-1]
    assert (np.diff(moved, 2)[1:] < 0.0).all()
    assert (np.diff(evenly, 2) > 0.0).all()


@pytest.mark.parametrize(("alpha", "far"), [(0.1, (0.2, 0.3, 0.99)), (0.9, (0.8, 0.5, 0.01))])
def test_a_bend_moves_ends_by_so_many_sizes_and_no_more(alpha, far) -> None:
    state = [0.0] * len(kernel.BLEND_WORDS)
    state[ALPHA], state[kernel.BEND] = alpha, kernel.BENT[1]
    sign = math.copysign(1.0, alpha - far[0])
    expected = [pytest.approx(sign * kernel.BENT[1])] * 3
    assert [kernel.slack_of(state, 0, level) for level in far] == expected


def test_blocks_are_even_where_volatility_wanders() -> None:
    series = volatile(np.random.default_rng([1_001, 1]), 5_000)
    blocks = {}
    for bent in (True, False):
        band = ConformalInterval(seed=1)
        stored = Document.read_dict(band.to_dict())
        settings = stored.settings | {"bent": bent}
        altered = Document(stored.kind, settings, stored.arrays, stored.version)
        run = ConformalInterval.from_dict(altered.to_dict()).replay(*series)
        worst = np.abs(metrics.windowed_coverage(run.covered, window=250) - 0.9).max()
        blocks[bent] = round(float(worst), 3)
    assert blocks == {True: 0.024, False: 0.032}


def test_ends_of_an_earlier_state_go_on_to_move_evenly() -> None:
    file = json.loads((STATES / "v3" / "interval_blend.json").read_text())
    band = ConformalInterval.from_dict(dictionary_of(file))
    assert ConformalInterval().spec.bent
    for each in (band, band.copy(), ConformalInterval.from_bytes(band.to_bytes())):
        assert not each.spec.bent
        part = each._seat.part()
        assert (part[kernel.SLACK], part[kernel.BEND]) == kernel.STRAIGHT
        tickets = [each.forecast(0.0) for _ in range(20)]
        before = part[LEVEL]
        each.observe(tickets[0], 0.0)
        assert each._seat.part()[LEVEL] == pytest.approx(before + part[STEP] * part[ALPHA])


def lagging(rounds, lags, seed=4):
    """Normal errors, when each is known, and the tickets of all."""
    y = np.random.default_rng(seed).normal(size=rounds)
    return y, np.arange(rounds) + np.resize(lags, rounds)


def test_the_level_does_not_swing_where_all_outcomes_are_late() -> None:
    y, known = lagging(1_500, [100])
    run = ConformalInterval(seed=1).replay(
        np.zeros(1_500), y, time=np.arange(1_500), available=known
    )
    late = slice(300, None)
    ends = np.clip(run.low, -8.0, 8.0)[late], np.clip(run.high, -8.0, 8.0)[late]
    best = np.full(1_200, 1.645)
    scores = [metrics.interval_score(*each, y[late], 0.9) for each in (ends, (-best, best))]
    assert scores[0] < 1.03 * scores[1]
    assert run.covered[late].mean() == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("lags", [[30], [0] * 40 + [25], [0] * 30 + [60] * 30, [0, 3, 80]])
def test_coverage_is_within_its_bound_whatever_the_lags(lags) -> None:
    y, known = lagging(400, lags)
    y[150:] *= 50.0
    band, tickets = ConformalInterval(seed=1), {}
    for t in range(400):
        tickets[t] = band.forecast(0.0)
        for k in [k for k in tickets if known[k] <= t]:
            band.observe(tickets.pop(k), y[k])
        if band.rounds:
            measured = band._method.record(band.delay)
            assert measured.measured <= measured.bound.value + 1e-12


def test_steps_are_whole_until_more_than_ten_outcomes_wait() -> None:
    for waiting, parts in ((9, 1.0), (19, 2.0), (99, 10.0)):
        band = ConformalInterval(seed=1)
        tickets = [band.forecast(0.0) for _ in range(waiting + 1)]
        band.observe(tickets[0], 1.0)
        state, at = band._seat.reals(), band._seat.at
        moved = state[at + LEVEL] - 0.1
        assert moved == pytest.approx(state[at + STEP] * 0.1 / parts)


def test_a_state_is_cut_anywhere_while_outcomes_are_late() -> None:
    y, known = lagging(120, [0, 40])
    whole, cut = ConformalInterval(seed=1), ConformalInterval(seed=1)
    for t in range(120):
        cut = ConformalInterval.from_bytes(cut.to_bytes())
        for band in (whole, cut):
            band.forecast(0.0, id=f"{t}")
            for k in np.flatnonzero(known == t).tolist():
                closed = band.observe(f"{k}", y[k])
                if k % 7 == 0:
                    band.correct(closed, -y[k])
        assert whole == cut


def test_the_default_beats_the_former_one_where_errors_change() -> None:
    rng = np.random.default_rng(9)
    size = np.repeat([1.0, 4.0, 0.5, 2.0], 400)
    y, zeros = size * rng.normal(size=1_600), np.zeros(1_600)
    scores, blocks = {}, {}
    for method in ("aci_quantile", "blend"):
        run = ConformalInterval(method, seed=1).replay(zeros, y)
        ends = np.clip(run.low, -20.0, 20.0), np.clip(run.high, -20.0, 20.0)
        scores[method] = metrics.interval_score(*ends, y, 0.9)
        blocks[method] = np.abs(metrics.windowed_coverage(run.covered, window=250) - 0.9).max()
    assert scores["blend"] < 0.97 * scores["aci_quantile"]
    assert blocks["blend"] <= 0.03
