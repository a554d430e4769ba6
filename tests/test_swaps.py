"""Swaps of models: what is watched, what follows from it, and what draws are worth after one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refined import costs_its_variance, points_nowhere, refined_rounds

from calibrant import Calibrant, bounds, metrics
from calibrant.bounds.refining import most_retreats
from calibrant.calibrators import FosterHart, Refining
from calibrant.core.grid import Grid
from calibrant.errors import InvalidType
from calibrant.kernels import refine, swaps
from calibrant.kernels.transforms.mixture import WATCH
from calibrant.transforms import ExpertMixture, Identity, OnlinePlatt

pytestmark = pytest.mark.base
OWN = (Identity(), OnlinePlatt())
STEPS = (1, 2, 4, 128)


class Watch:
    """The slow, obvious version: five numbers instead of fields of a word."""

    def __init__(self) -> None:
        self.since, self.mean, self.spread, self.lately, self.size = 8191 - 2048, 32 * 256, 0, 0, 0

    def see(self, raw: float) -> None:
        p = min(max(raw, 2**-14), 1 - 2**-14)
        root = math.sqrt(math.sqrt(math.sqrt(p / (1 - p))))
        x = math.floor(10 * (root - 1 / root) + 32)
        d = 2 * x - self.mean // 128
        self.mean += x - self.mean // 256
        self.spread += abs(d) - self.spread // 256
        self.lately += d - self.lately // 8
        self.size += abs(d) - self.size // 8
        if self.since < 8191:
            self.since += 1
        elif self.alarm():
            self.since = 0

    def alarm(self) -> bool:
        usual, lately, size = self.spread / 256, abs(self.lately) / 8, self.size / 8
        other = lately > 21 / 16 * (usual + 1) or size > 31 / 16 * (usual + 1)
        return other or (usual > 4 and size < 5 / 16 * usual)

    @property
    def coarse(self) -> bool:
        return self.since < 512


def seen(word: int) -> tuple[int, ...]:
    """Return the fields of a word."""
    fields = (0, 13), (13, 14), (27, 15), (42, 11), (53, 10)
    return tuple(word >> first & (1 << bits) - 1 for first, bits in fields)


def regimes(seed: int, rounds: int = 12_000) -> np.ndarray:
    """Return raw forecasts of models that are swapped every now and then."""
    rng = np.random.default_rng(seed)
    slope, shift = rng.uniform(0.2, 3.0, 9), rng.normal(0.0, 2.0, 9)
    which = np.arange(rounds) * 9 // rounds
    odds = slope[which] * rng.normal(0.0, 1.5, rounds) + shift[which]
    return 1.0 / (1.0 + np.exp(-odds))


# What is watched.


@pytest.mark.parametrize("seed", range(4))
def test_the_word_says_what_five_numbers_say(seed) -> None:
    obvious, word, alarms = Watch(), swaps.FRESH, 0
    for raw in regimes(seed).tolist():
        obvious.see(raw)
        before, word = word, swaps.noticed(word, raw)
        alarms += swaps.least_step(before) < swaps.least_step(word)
        told = obvious.since, obvious.mean, obvious.spread, obvious.lately + 1024, obvious.size
        assert seen(word) == told
        assert swaps.least_step(word) == (128 if obvious.coarse else 1)
    assert alarms >= 1


@given(st.integers(0, swaps.MOST), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_from_any_word_another_follows(word, raws) -> None:
    for raw in raws:
        age, word = word & swaps.AGE, swaps.noticed(word, raw)
        assert 0 <= word <= swaps.MOST
        assert word & swaps.AGE in (0, min(age + 1, swaps.AGE))


@given(st.floats(0, 1), st.floats(0, 1))
def test_places_are_in_the_order_of_raw_forecasts(one, other) -> None:
    low, high = sorted((one, other))
    assert 1 <= swaps.place_of(low) <= swaps.place_of(high) <= 62


def test_no_alarm_comes_before_2048_outcomes_nor_8192_after_another() -> None:
    word, alarms = swaps.FRESH, []
    for t in range(20_000):
        word = swaps.noticed(word, 0.999 if t % 100 < 10 else 0.5)
        if word & swaps.AGE == 0:
            alarms.append(t + 1)
    # Every 100 rounds there is a swap, which is noticed where it may be.
    assert alarms[0] in range(2_049, 2_149)
    assert all(gap in range(8_192, 8_292) for gap in np.diff(alarms))
    assert len(alarms) == 3


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0, 3.0])
def test_a_model_that_stays_makes_no_alarm(slope) -> None:
    rng, word, alarms = np.random.default_rng(3), swaps.FRESH, 0
    for odds in (slope * rng.normal(0.3, 1.5, 40_000)).tolist():
        word = swaps.noticed(word, 1.0 / (1.0 + math.exp(-odds)))
        alarms += word & swaps.AGE == 0
    assert alarms == 0


# What follows: the first grid, for 512 rounds.


def model(**options) -> Calibrant:
    return Calibrant(seed=5, **options)


def swap(rounds: int = 3_000, at: int = 2_500, seed: int = 1):
    """Return a stream whose model is shifted far after so many rounds."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0.0, 1.5, rounds)
    y = (rng.random(rounds) < 1.0 / (1.0 + np.exp(-odds))).astype(np.uint8)
    return 1.0 / (1.0 + np.exp(-odds - 4.0 * (np.arange(rounds) >= at))), y


def test_after_a_swap_draws_come_from_the_first_grid_for_512_rounds() -> None:
    raw, y = swap(3_200)
    drawn = model().replay(raw, y).forecast
    first, all_points = Grid("graded", 15).values, Grid("graded", 60).values
    assert np.isin(drawn, all_points).all()
    rest = ~np.isin(drawn, first)
    (begin,) = (t for t in range(2_500, 2_530) if not rest[t : t + 512].any() and rest[t - 1])
    assert rest[2_000:2_500].mean() > 0.3
    assert rest[begin + 512 :].mean() > 0.3


def test_one_by_one_and_in_a_batch_it_is_the_same() -> None:
    raw, y = swap()
    run, one = model().replay(raw, y), model()
    for p, outcome, drawn in zip(raw.tolist(), y.tolist(), run.forecast.tolist(), strict=True):
        ticket = one.forecast(p)
        assert ticket.value == drawn
        one.observe(ticket, outcome)
    other = model()
    other.replay(raw[:2_520], y[:2_520])
    again = type(other).from_bytes(other.to_bytes())
    assert (again.replay(raw[2_520:], y[2_520:]).forecast == run.forecast[2_520:]).all()


def test_where_outcomes_are_late_nothing_is_watched() -> None:
    raw, y = swap()
    late = np.arange(len(raw)) + 5.0
    timing = {"time": np.arange(len(raw)) * 1.0, "available": late}
    now = model()
    run = now.replay(raw, y, **timing)
    experts = now.transform
    before = ExpertMixture(**{n: getattr(experts, n) for n in FIELDS}, alike=True)
    old = Calibrant(before, seed=5).replay(raw, y, **timing)
    assert (run.forecast == old.forecast).all()


FIELDS = ("experts", "share", "start", "eta", "loss", "form")


def test_one_late_outcome_ends_the_watch() -> None:
    raw, y = swap(2_510)
    made = model()
    made.replay(raw, y)
    at = made.spec.layout.transform + WATCH
    assert swaps.least_step(int(row_of(made)[at])) == 128
    first, second = made.forecast(0.5), made.forecast(0.6)
    made.observe(second, 1)
    made.observe(first, 0)
    assert int(row_of(made)[at]) == swaps.FRESH


def row_of(made: Calibrant) -> np.ndarray:
    return made._arena.flat()[made._arena.place(0) :]


def test_only_where_cells_split_anything_is_watched() -> None:
    assert model().transform.swaps
    assert model(experts=OWN).transform.swaps
    assert not model(doublings=0).transform.swaps
    assert not model(method="anchored").transform.swaps
    assert not model(method="growing", grid="endpoints").transform.swaps


def test_descriptions_say_so_only_where_it_is_done() -> None:
    assert "swaps" not in ExpertMixture(OWN).description["parameters"]
    assert ExpertMixture(OWN, swaps=True).description["parameters"]["swaps"] is True
    with pytest.raises(InvalidType, match="swaps must be True or False, got 1"):
        ExpertMixture(OWN, swaps=1)


@pytest.mark.parametrize(("loss", "form"), [("squared", None), ("squared", "mean"), ("log", None)])
def test_watching_changes_no_mixed_forecast(loss, form) -> None:
    raw, y = swap()
    told = {"loss": loss, "form": form}
    plain, watching = (ExpertMixture(OWN, swaps=flag, **told).online() for flag in (False, True))
    assert (plain.replay(raw, y) == watching.replay(raw, y)).all()


def test_a_word_below_zero_is_refused() -> None:
    online = ExpertMixture(OWN, swaps=True).online()
    online.learn_one(0.5, 1)
    words = online._array().copy()
    online.transform.verify(words)
    words[WATCH] = -1
    with pytest.raises(ValueError, match="word 2 must be from 0 to 9223372036854775807, got -1"):
        online.transform.verify(words)


# The proof: whatever is passed over, a round raises the potential by the variance of its pair.


@given(refined_rounds(STEPS))
def test_neighbours_on_a_coarser_grid_point_nowhere_on_average(case) -> None:
    points_nowhere(case)


@given(refined_rounds(STEPS))
def test_a_round_on_a_coarser_grid_costs_the_variance_of_its_pair_at_most(case) -> None:
    costs_its_variance(case)


def test_the_promise_before_the_game_counts_rounds_on_the_first_grid() -> None:
    values = Grid("graded", 60).values
    wide = float(np.diff(values[::4]).max() ** 2 / 4)

    def total(rounds, **told):
        return rounds * bounds.refining(rounds, values, 2, **{"swaps": True} | told).value

    def extra(rounds, **told):
        return (total(rounds, **told) - total(rounds, swaps=False, **told)) / wide

    assert extra(2_049) == pytest.approx(512)
    assert extra(2_049 + 8_192) == pytest.approx(1_024)
    assert extra(2_049, delay=3) == pytest.approx(515)
    assert extra(100, fallbacks=10**9) == pytest.approx(100)
    assert extra(1_000, fallbacks=1_049) == pytest.approx(512)
    rule = Refining(resolution=15, doublings=2)
    assert rule.bound(2_049, swaps=True) == bounds.refining(2_049, values, 2, swaps=True)
    assert rule.bound(2_049) == bounds.refining(2_049, values, 2)
    assert FosterHart().bound(100, swaps=True) == FosterHart().bound(100)


@given(rounds=st.integers(1, 10**6), more=st.integers(1, 10**5), delay=st.integers(0, 3_000))
def test_the_promise_never_becomes_worse_with_more_rounds(rounds, more, delay) -> None:
    values = Grid("graded", 60).values
    told = {"swaps": True, "delay": delay}
    before = bounds.refining(rounds, values, 2, **told).value
    assert bounds.refining(rounds + more, values, 2, **told).value <= before * (1 + 1e-12)
    assert most_retreats(rounds, delay) <= rounds


@settings(max_examples=10)
@given(words=st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_alarms_come_no_sooner_than_the_promise_reckons(words) -> None:
    """Whatever the raw forecasts: the rounds on the first grid are at most those that count."""
    word, coarse = swaps.FRESH, 0
    raws = [1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999]
    for t in range(14_000):
        coarse += swaps.least_step(word) == swaps.COARSE
        word = swaps.noticed(word, raws[words[(t // 16) % len(words)]])
        if t % 512 == 0:
            assert coarse <= most_retreats(t + 1) + 1e-9
    assert coarse <= most_retreats(14_000)


def test_a_swap_long_after_the_only_late_outcome_is_not_noticed() -> None:
    raw, y = swap(3_010, 3_000)
    words = []
    for late in (False, True):
        made = model()
        if late:
            first, second = made.forecast(0.5), made.forecast(0.6)
            made.observe(second, 1)
            made.observe(first, 0)
        made.replay(raw, y)
        words.append(int(row_of(made)[made.spec.layout.transform + WATCH]))
    assert swaps.least_step(words[0]) == swaps.COARSE
    assert words[1] == swaps.FRESH


def test_a_budget_lets_alarms_come_sooner_and_the_promise_says_so() -> None:
    """Outcomes of rounds that fall back are watched too."""
    made = Calibrant(raw_safe=0.0, seed=1)
    raw, y = swap(6_000, 3_000, 2)
    made.replay(raw, y)
    account = made._account()
    assert account.swaps
    assert account.rounds + account.fallbacks == 6_000
    assert account.fallbacks > 0
    told = {"buckets": 1, "swaps": True, "fallbacks": account.fallbacks}
    values = made.calibrator.lattice.values
    assert made.calibrator.worst(account, 500) == bounds.refining(500, values, 2, **told)


def test_variances_of_a_stream_that_alarms_are_within_the_worst() -> None:
    """Retreats count in what draws may lose before the game, too."""
    rule, counts = Refining(), np.full((2, 61), 10_000)
    plain, watched = (rule.worst_blocks(counts, swaps=told)[:, refine.VARIANCE] for told in (0, 1))
    wide = float(np.diff(rule.lattice.values[::4]).max() ** 2 / 4)
    more = (watched - plain).sum() / refine.UNIT
    assert more == pytest.approx(most_retreats(2 * 61 * 10_000) * wide)
    finer = Calibrant.from_epsilon(0.0005, method="refining")
    assert finer.transform.swaps
    assert finer.calibrator.resolution > 15


# What it is good for.


@pytest.mark.slow
def test_draws_after_a_swap_are_better_calibrated() -> None:
    """C2 of the 500 draws after a swap, over 6 streams."""
    fresh = model().transform
    before = ExpertMixture(**{n: getattr(fresh, n) for n in FIELDS}, alike=True)
    found = []
    for seed in range(6):
        raw, y = swap(5_500, 5_000, seed)
        runs = (Calibrant(each, seed=seed).replay(raw, y) for each in (fresh, before))
        drawn = (run.forecast[5_000:] for run in runs)
        found.append([metrics.calibration_error(f, y[5_000:], power=2.0) for f in drawn])
    now, then = np.mean(found, axis=0)
    assert now < 0.75 * then
