"""Late numbers: what one of many outcomes that wait counts, and what crowds cost."""

from __future__ import annotations

import json

import naive_mixed
import numpy as np
import pytest
from golden.state_steps import STATES, from_bytes

from calibrant.kernels import anchor, shifts
from calibrant.kernels.compile import available
from calibrant.kernels.layout import SAME
from calibrant.regression import Distribution, Distributions, QuantileRecalibrator, metrics
from calibrant.regression.mixed import MIDDLES
from calibrant.regression.ticket import QuantileTicket

pytestmark = pytest.mark.base


def normals(rounds, seed, *, size=1, off=0.0, wide=1.0):
    """Return forecasts that are right, or off and too wide; each ``size`` share their luck."""
    rng, crowd = np.random.default_rng(seed), np.arange(rounds) // size
    mean, sd = 3.0 * rng.normal(size=rounds), np.exp(0.3 * rng.normal(size=rounds))
    luck = rng.normal(size=rounds // size + 1)[crowd]
    return Distributions.normal(mean + off, sd * wide), mean + sd * luck, (crowd + 1) * size - 0.5


def over_raw(raw, outcomes, known):
    """CRPS over the raw forecast's, and how much less often 90 % intervals covered than its own."""
    rec = QuantileRecalibrator(levels=[0.05, 0.5, 0.95], seed=1)
    run = rec.replay(raw, outcomes, time=np.arange(len(outcomes)) * 1.0, available=known)
    worse = metrics.crps(run.forecast, outcomes) / metrics.crps(raw, outcomes)
    ends = raw.quantile([0.05, 0.95]), run.quantiles[:, [0, -1]]
    before, after = (((q[:, 0] <= outcomes) & (outcomes <= q[:, 1])).mean() for q in ends)
    return worse, before - after


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 100, 300])
def test_crowds_that_wait_for_one_outcome_do_little_harm(size) -> None:
    # Before outcomes of a crowd counted as about one, up to 1.66 and half of the coverage.
    worse, lost = over_raw(*normals(1_800, 2, size=size))
    assert worse < 1.01
    # A few crowds at the ends of intervals: of 100 each there are 18.
    assert lost < 0.15


@pytest.mark.slow
def test_outcomes_that_are_late_because_they_are_high_count_as_others() -> None:
    raw, outcomes, _ = normals(1_500, 3)
    known = np.arange(1_500) + np.where(outcomes > raw.values[:, 0], 200.0, 0.0)
    # Before: 1.059.
    worse, lost = over_raw(raw, outcomes, known)
    assert worse < 1.02
    assert lost < 0.03


@pytest.mark.slow
def test_what_is_wrong_is_put_right_though_outcomes_are_late() -> None:
    raw, outcomes, _ = normals(1_500, 4, off=2.0, wide=0.5)
    assert over_raw(raw, outcomes, np.arange(1_500) + 20.0)[0] < 0.5


@pytest.mark.parametrize("crowd", [2, 7])
def test_the_mixture_of_late_outcomes_is_that_of_the_slow_and_obvious_version(crowd) -> None:
    raw, outcomes, _ = normals(105, 5, size=7, off=0.5)
    quantiles = raw.quantile(MIDDLES[0])
    marks, room, told = shifts.fresh(), [1.0] * shifts.ROOM, np.zeros((105, shifts.TOLD))
    waiting = []
    for t, q in enumerate(quantiles.tolist()):
        said = [0.0] * (shifts.SAID + 2)
        shifts.announce(marks, 0, q, 0, room, said, told[t], 0)
        said[shifts.SAID :] = told[t, 2:].tolist()
        waiting.append((q, said, outcomes[t]))
        if len(waiting) == crowd:
            for numbers, then, y in waiting:
                shifts.learn(marks, 0, numbers, 0, room, then, y, float(crowd))
            waiting = []
    expected = naive_mixed.mixed(quantiles.tolist(), outcomes.tolist(), crowd)
    np.testing.assert_allclose(told, expected, rtol=1e-9, atol=1e-9)


def test_a_batch_after_late_outcomes_is_its_rounds_to_the_bit() -> None:
    raw, outcomes, _ = normals(40, 6, size=4)
    batch, singly, booked = (QuantileRecalibrator(levels=3, seed=1, resolution=5) for _ in "123")
    late = {"time": np.arange(20.0), "available": np.arange(20.0) + 3.0 * (outcomes[:20] > 0)}
    for rec in (batch, singly, booked):
        pending = rec.replay(raw[:20], outcomes[:20], **late).pending
        for number, y in zip(pending.number.tolist(), pending.outcome.tolist(), strict=True):
            rec.observe(number, y)
    assert batch.delay > 0
    run = batch.replay(raw[20:], outcomes[20:])
    for t in range(20, 40):
        ticket = singly.forecast(raw[t])
        assert ticket.quantiles.tolist() == run.quantiles[t - 20].tolist()
        singly.observe(ticket, float(outcomes[t]))
        booked.sample_one(raw[t])
        booked.learn_one(raw[t], float(outcomes[t]))
    assert batch == singly
    assert batch == booked


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="needs a compiler")
def test_machine_code_learns_late_numbers_to_the_bit() -> None:
    raw, outcomes, known = normals(60, 7, size=10)
    plain, compiled = (QuantileRecalibrator(levels=3, seed=1, resolution=5) for _ in "12")
    compiled.compile()
    for rec in (plain, compiled):
        rec.replay(raw, outcomes, time=np.arange(60.0), available=known)
    assert plain == compiled


def test_the_last_stage_doubts_what_is_alike() -> None:
    trusted = []
    for size in (1, 10):
        raw, outcomes, _ = normals(200, 8, size=size)
        rec = QuantileRecalibrator(levels=3, seed=1, resolution=5)
        known = (np.arange(200) // 10 + 1) * 10 - 0.5
        rec.replay(raw, outcomes, time=np.arange(200.0), available=known)
        place = rec._method._at[0][0] + rec._method._specs[0].layout.blocks
        trusted.append(float(rec._seat.reals()[place + anchor.TRUST]))
        assert rec._seat.reals()[SAME] >= 1.0
    assert trusted[1] < 0.5 * trusted[0]


def test_a_ticket_that_was_stored_is_learned_as_the_one_that_was_returned() -> None:
    raw, outcomes, _ = normals(12, 9, size=4)
    one, other = (QuantileRecalibrator(levels=3, seed=1, resolution=5) for _ in "12")
    tickets = [one.forecast(each) for each in map(raw.__getitem__, range(12))]
    stored = [json.dumps(other.forecast(raw[t]).to_dict()) for t in range(12)]
    for ticket, told, y in zip(tickets, stored, outcomes.tolist(), strict=True):
        one.observe(ticket, y)
        other.observe(QuantileTicket.from_dict(json.loads(told)), y)
    assert one == other


def test_a_state_of_the_third_version_learns_late_outcomes_as_it_did() -> None:
    rec = from_bytes(json.loads((STATES / "v3" / "quantiles_mixed.json").read_text()))
    assert not rec.spec.alike
    assert len(rec.forecast(Distribution.normal(0.0, 1.0)).advice) == shifts.GRID + shifts.SAID
    assert not rec._method.in_turn
    again = QuantileRecalibrator.from_bytes(rec.to_bytes())
    assert not again.spec.alike
    assert again == rec
    assert QuantileRecalibrator(seed=1).spec.alike


def test_a_state_of_the_fourth_version_lets_the_first_outcomes_count_more() -> None:
    rec = from_bytes(json.loads((STATES / "v8" / "quantiles_mixed.json").read_text()))
    assert (rec.spec.alike, rec.spec.even) == (True, False)
    assert QuantileRecalibrator.from_bytes(rec.to_bytes()) == rec
    assert QuantileRecalibrator(seed=1).spec.even


def test_a_state_of_the_fifth_version_lets_one_outcome_move_weights_by_anything() -> None:
    rec = from_bytes(json.loads((STATES / "v9" / "quantiles_mixed.json").read_text()))
    assert (rec.spec.even, rec.spec.capped) == (True, False)
    assert QuantileRecalibrator.from_bytes(rec.to_bytes()) == rec
    assert QuantileRecalibrator(seed=1).spec.capped


def test_a_state_of_the_fifth_version_plays_without_the_limit_one_by_one_and_in_batches() -> None:
    told = json.loads((STATES / "v9" / "quantiles_mixed.json").read_text())
    rng = np.random.default_rng(4)
    spread = np.exp(3.0 * rng.normal(size=300))
    raw, outcomes = Distributions.normal(np.zeros(300), spread), spread * rng.normal(size=300)
    one, batch, single, limited = (from_bytes(told) for _ in range(4))
    for rec in (single, limited):
        rec._method.follow(True, True, capped=rec is limited)
    run, other = batch.replay(raw, outcomes), limited.replay(raw, outcomes)
    for k, y in enumerate(outcomes.tolist()):
        one.observe(one.forecast(raw[k]), y)
    assert one == batch
    assert (single.replay(raw, outcomes).mixed.crps(outcomes) == run.mixed.crps(outcomes)).all()
    assert (other.mixed.crps(outcomes) != run.mixed.crps(outcomes)).any()
