"""Experts on the axis of values, and what their mixture is worth."""

from __future__ import annotations

import naive_mixed
import numpy as np
import pytest

from calibrant.kernels import shifts
from calibrant.regression import Distribution, Distributions, QuantileRecalibrator
from calibrant.regression.mixed import MIDDLES, Mixed, shifted

pytestmark = pytest.mark.base


def normals(rounds, seed=0, *, off=0.0, wide=1.0, drift=0.0):
    """Return forecasts that are off and too wide by these, and outcomes."""
    rng = np.random.default_rng(seed)
    mean, sd = 2.0 * rng.normal(size=rounds), np.exp(0.3 * rng.normal(size=rounds))
    moved = mean + off + drift * np.arange(rounds)
    return Distributions.normal(moved, sd * wide), mean + sd * rng.normal(size=rounds)


def ensembles(rounds, seed=0):
    rng = np.random.default_rng(seed)
    members = 1.0 + 0.5 * rng.normal(size=(rounds, 7))
    return Distributions.from_samples(members), rng.normal(size=rounds)


def replayed(quantiles, outcomes):
    """Return what the kernel tells of each round, and its words after the last."""
    marks, told = shifts.fresh(), np.empty((len(outcomes), shifts.TOLD))
    rooms = [0.0] * shifts.ROOM, [0.0] * shifts.SAID
    rooms[0][shifts.CAPPED] = 1.0
    shifts.replay(marks, 0, quantiles.ravel().tolist(), outcomes.tolist(), *rooms, told.ravel())
    return told, marks


STREAMS = {
    "right": normals(150),
    "off and narrow": normals(150, off=1.5, wide=0.4),
    "adrift": normals(150, drift=0.05),
    "ensembles": ensembles(120),
    "on atoms, sometimes": (ensembles(40)[0], np.round(ensembles(40)[0].values[:, 2], 12)),
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_mixture_is_that_of_the_slow_and_obvious_version(name) -> None:
    raw, outcomes = STREAMS[name]
    quantiles = raw.quantile(MIDDLES[0])
    told, marks = replayed(quantiles, outcomes)
    expected = naive_mixed.mixed(quantiles.tolist(), outcomes.tolist())
    np.testing.assert_allclose(told, expected, rtol=1e-9, atol=1e-9)
    assert sum(marks[: shifts.EXPERTS]) == pytest.approx(1.0)


def test_one_expert_is_heard_where_it_is_right() -> None:
    raw, outcomes = normals(800, off=3.0)
    rec = QuantileRecalibrator("mixed", 3, seed=1)
    before = rec._method.weights
    rec.replay(raw, outcomes)
    after = rec._method.weights
    assert before.tolist() == [0.5, *[0.0625] * 8]
    assert after[0] < 0.001 < 0.3 < after[1:].max()


@pytest.mark.slow
@pytest.mark.parametrize(
    "told",
    [{}, {"off": 1.5}, {"wide": 0.4}, {"wide": 2.5}, {"off": 10.0, "wide": 0.5}, {"drift": 0.01}],
    ids=str,
)
def test_coverage_is_right_and_quantiles_are_finite(told) -> None:
    raw, outcomes = normals(1500, seed=3, **told)
    run = QuantileRecalibrator(seed=1).replay(raw, outcomes)
    assert np.isfinite(run.quantiles).all()
    inside = (run.quantiles[:, 0] <= outcomes) & (outcomes <= run.quantiles[:, -1])
    assert abs(inside.mean() - 0.9) < 0.02
    losses, fair = run.forecast.crps(outcomes), normals(1500, seed=3)[0].crps(outcomes)
    assert losses[20:].mean() < 1.03 * fair[20:].mean()
    assert losses.mean() < 1.01 * raw.crps(outcomes).mean()


def test_a_shifted_forecast_defeats_levels_alone() -> None:
    raw, outcomes = normals(600, off=10.0, wide=0.5)
    found = {}
    for method in ("pit", "tracker"):
        quantiles = QuantileRecalibrator(method, seed=1).replay(raw, outcomes).quantiles
        inside = (quantiles[:, 0] <= outcomes) & (outcomes <= quantiles[:, -1])
        found[method] = inside.mean(), np.isinf(quantiles).any(axis=1).mean()
    assert found["pit"][0] < 0.1
    assert found["tracker"][1] > 0.9


def test_before_the_first_outcome_the_raw_forecast_is_moved_by_nothing() -> None:
    rec, raw = QuantileRecalibrator(seed=1), Distribution.normal(20.0, 2.0)
    assert rec.forecast(raw).mixed.rows.values.tolist() == [[20.0, 2.0]]


def test_where_outcomes_lie_on_atoms_values_stay() -> None:
    rng = np.random.default_rng(2)
    rain = np.maximum(rng.normal(size=(200, 8)), 0.0)
    outcomes = np.maximum(rng.normal(size=200) - 0.3, 0.0)
    raw = Distributions.from_samples(rain)
    run = QuantileRecalibrator(seed=1).replay(raw, outcomes)
    late = slice(60, None)
    assert (run.mixed.values[late] == raw.values[late]).all()


def test_a_point_can_be_moved_and_not_widened() -> None:
    told = np.array([[1.0, 0.0, 3.0, 0.0]])
    point = Distributions.from_samples([[1.0, 1.0]])
    assert shifted(point, told).values.tolist() == [[3.0] * 4]
    rec = QuantileRecalibrator(seed=1)
    rec.replay(Distributions.from_samples(np.zeros((50, 2))), np.arange(50) * 0.1 + 5.0)
    ticket = rec.forecast(Distribution.from_samples([0.0, 0.0]))
    assert np.isfinite(ticket.quantiles).all()
    assert ticket.mixed.quantile(0.5) > 3.0


@pytest.mark.parametrize(
    ("mean", "sd", "outcome"),
    [
        (1e300, 1.0, 0.0),
        (0.0, 1e308, 0.0),
        (0.0, 1.0, -1e300),
        (0.0, 1e-300, 1e69),
        (1e69, 1, -1e69),
    ],
)
def test_numbers_beyond_reason_break_nothing(mean, sd, outcome) -> None:
    rec = QuantileRecalibrator(levels=3, seed=1)
    for number in range(30):
        odd = number % 5 == 2
        raw = Distribution.normal(mean, sd) if odd else Distribution.normal(0.0, 1.0)
        ticket = rec.forecast(raw)
        assert not np.isnan(ticket.quantiles).any()
        rec.observe(ticket, outcome if odd else 0.1 * number)
    assert QuantileRecalibrator.from_bytes(rec.to_bytes()) == rec
    assert np.isfinite(rec.forecast(Distribution.normal(0.0, 1.0)).quantiles).all()


def test_a_round_beyond_reason_teaches_nothing() -> None:
    words = []
    for outcomes in ([0.5, 1e300, 1.0], [0.5, 1.0]):
        rows = np.tile(MIDDLES, (len(outcomes), 1))
        words.append(replayed(rows, np.array(outcomes))[1])
    assert words[0] == words[1]


def test_late_outcomes_are_weighed_by_what_experts_said_then() -> None:
    raw = Distribution.normal(0.0, 1.0)
    rec = QuantileRecalibrator(levels=3, seed=1)
    first = rec.forecast(raw, id="first")
    for _ in range(20):
        rec.observe(rec.forecast(raw), 5.0)
    before = rec._method.weights
    assert first.advice[shifts.GRID :] == tuple([first.advice[shifts.GRID], first.advice[-1]] * 9)
    rec.observe("first", 0.0)
    # All experts said the same then: nothing speaks for one of them, but for the fixed share.
    assert rec._method.weights == pytest.approx(before, abs=3e-4)


def test_a_ticket_knows_the_mixture_as_data_too() -> None:
    rec = QuantileRecalibrator(levels=[0.1, 0.9], seed=1)
    for number in range(9):
        rec.observe(rec.forecast(Distribution.normal(0.0, 1.0)), 3.0 + 0.1 * number)
    ticket = rec.forecast(Distribution.normal(0.0, 1.0))
    again = type(ticket).from_dict(ticket.to_dict())
    assert again.mixed.rows.values.tolist() == ticket.mixed.rows.values.tolist() != [[0.0, 1.0]]
    assert again.raw.rows.values.tolist() == [[0.0, 1.0]]
    assert again.advice == ticket.advice
    assert again.value.quantile(0.5) == ticket.value.quantile(0.5)
    assert rec.observe(again, 3.0).outcome == 3.0


def test_weights_that_are_all_zero_start_again() -> None:
    marks = shifts.fresh()
    marks[: shifts.EXPERTS] = [0.0] * shifts.EXPERTS
    room, said = [0.0] * shifts.ROOM, [0.0] * shifts.SAID
    shifts.learn(marks, 0, MIDDLES[0].tolist(), 0, room, said, 0.2, 1.0)
    assert marks[: shifts.EXPERTS] == shifts.fresh()[: shifts.EXPERTS]


def test_forecasts_without_loss_leave_weights_alone() -> None:
    told, marks = replayed(np.zeros((5, shifts.GRID)), np.zeros(5))
    assert marks[: shifts.EXPERTS] == pytest.approx(shifts.fresh()[: shifts.EXPERTS])
    assert (told == 0.0).all()


SPREADS = {
    "one in fifty is huge": lambda rng: np.where(rng.random(2000) < 0.02, 1000.0, 1.0),
    "orders of magnitude": lambda rng: np.exp(2.0 * rng.normal(size=2000)),
}


@pytest.mark.parametrize("kind", SPREADS)
def test_right_forecasts_of_very_different_spreads_lose_little(kind) -> None:
    rng = np.random.default_rng(4)
    spread = SPREADS[kind](rng)
    mean = spread * rng.normal(size=2000)
    raw, outcomes = Distributions.normal(mean, spread), mean + spread * rng.normal(size=2000)
    run = QuantileRecalibrator(levels=[0.05, 0.5, 0.95], seed=1).replay(raw, outcomes)
    fair = raw.crps(outcomes).mean()
    assert run.mixed.crps(outcomes).mean() < 1.003 * fair
    assert run.mean.crps(outcomes).mean() < 1.01 * fair


def test_one_outcome_moves_weights_by_no_more_than_some_unless_a_state_is_of_earlier() -> None:
    said = [30.0, 1.0] + [0.0, 1.0] * (shifts.EXPERTS - 2)
    found = []
    for capped in (0.0, 1.0):
        marks, room = shifts.fresh(), [0.0] * shifts.ROOM
        marks[shifts.REMEMBERED], marks[shifts.LOSS], room[shifts.CAPPED] = 200.0, 0.5, capped
        shifts.learn(marks, 0, MIDDLES[0].tolist(), 0, room, said, 100.0, 1.0)
        found.append(marks[shifts.EXPERTS - 1] / marks[1])
    # Of the first weights a share returns, without which it were exp(-60) and exp(-8).
    back = shifts.SHARED * shifts.first_weight(1)
    assert found[0] == pytest.approx(back, rel=0.01)
    assert found[1] == pytest.approx(np.exp(-shifts.APART) + back, rel=0.05)


def test_the_last_stage_can_be_another() -> None:
    told = Mixed(np.array([0.5]), calibrator="foster_hart", resolution=10).options()
    assert told == {"calibrator": "foster_hart", "prior": 1, "resolution": 10}
