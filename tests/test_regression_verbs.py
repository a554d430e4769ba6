"""Late, corrected and dropped outcomes of numbers, tickets that are stored, and looks ahead."""

from __future__ import annotations

import dataclasses
import json
import threading

import numpy as np
import pytest
from everyone import forget_corrections
from test_regression_contract import every, same, told

from calibrant import bounds
from calibrant.core.grid import Grid
from calibrant.errors import (
    CorruptState,
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    StaleForecast,
    UnknownTicket,
)
from calibrant.kernels import intervals as kernel
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.rows import Rows
from calibrant.regression import (
    ConformalInterval,
    Distribution,
    Distributions,
    IntervalTicket,
    QuantileRecalibrator,
    QuantileTicket,
    interval_methods,
)
from calibrant.regression.pit import LevelCalibrator

pytestmark = pytest.mark.base


def row_of(run, k):
    if hasattr(run, "quantiles"):
        return tuple(part[k].tolist() for part in (run.quantiles, run.outer, run.outer_mean))
    return tuple(float(part[k]) for part in (run.low, run.high, run.radius))


def rounds_of(case, rows, seed):
    raw, outcomes = case.raw(rows, seed), case.outcomes(rows, seed)
    return raw, case.singles(raw), outcomes


# Late outcomes.


def one_by_one(rec, raws, outcomes, available, time):
    """Every outcome before the first forecast that is not made before it is known."""
    tickets, waits = [], []
    for raw, outcome, known, now in zip(raws, outcomes, available, time, strict=True):
        for entry in sorted(w for w in waits if w[0] <= now):
            rec.observe(tickets[entry[1]], entry[2])
            waits.remove(entry)
        tickets.append(rec.forecast(raw, time=now))
        waits.append((known, len(tickets) - 1, outcome))
    for entry in sorted(w for w in waits if w[0] <= time[-1]):
        rec.observe(tickets[entry[1]], entry[2])
    return tickets


@every
def test_a_batch_with_late_outcomes_is_the_calls_one_by_one(case) -> None:
    raw, raws, outcomes = rounds_of(case, 40, 1)
    time = np.arange(40) * 1.0
    available = time + np.random.default_rng(3).integers(0, 6, 40)
    available[7] = np.inf
    batch, singly = case(), case()
    run = batch.replay(raw, outcomes, available=available, time=time)
    tickets = one_by_one(singly, raws, outcomes.tolist(), available.tolist(), time.tolist())
    assert all(same(told(ticket), row_of(run, k)) for k, ticket in enumerate(tickets))
    assert batch == singly
    assert batch.open == len(run.pending) == int((available > 39).sum())
    assert batch.delay > 0
    assert run.ticket.tolist() == list(range(40))


@every
def test_what_is_pending_is_carried_into_the_next_batch(case) -> None:
    raw, _, outcomes = rounds_of(case, 40, 2)
    time = np.arange(40) * 1.0
    available = time + np.random.default_rng(4).integers(0, 9, 40)
    whole, parts = case(), case()
    run = whole.replay(raw, outcomes, available=available, time=time)
    first = parts.replay(raw[:25], outcomes[:25], available=available[:25], time=time[:25])
    parts = type(parts).from_bytes(parts.to_bytes())
    rest = {"available": available[25:], "time": time[25:], "carry": first.pending}
    second = parts.replay(raw[25:], outcomes[25:], **rest)
    assert all(same(row_of(second, k), row_of(run, 25 + k)) for k in range(15))
    assert parts == whole
    assert second.pending.outcome.tolist() == run.pending.outcome.tolist()


@every
def test_outcomes_that_are_known_at_once_make_a_prompt_batch(case) -> None:
    raw, _, outcomes = rounds_of(case, 30, 3)
    prompt, late = case(), case()
    run = prompt.replay(raw, outcomes)
    again = late.replay(raw, outcomes, available=np.arange(30), time=np.arange(30))
    assert all(same(row_of(run, k), row_of(again, k)) for k in range(30))
    assert late == prompt
    assert (len(run.pending), len(again.pending)) == (0, 0)
    assert len(late.replay(raw[:0], outcomes[:0], available=[], time=[])) == 0
    assert late == prompt


@every
def test_late_batches_are_refused_where_they_make_no_sense(case) -> None:
    raw, _, outcomes = rounds_of(case, 3, 4)
    rec = case()
    before = rec.to_bytes()
    bad = [
        {"available": [0.0, 0.0, 5.0]},
        {"available": [1.0]},
        {"time": [2.0, 1.0, 3.0]},
        {"time": [2.0]},
        {"carry": "nothing"},
        {"carry": Pending(np.array([0]), np.array([0.0]), np.array([np.nan]))},
        {"carry": Pending(np.array([0]), np.array([0.0]), np.array([1.0]))},
    ]
    for options in bad:
        with pytest.raises((InvalidInput, InvalidType, UnknownTicket)):
            rec.replay(raw, outcomes, **options)
    assert rec.to_bytes() == before


@every
def test_late_tickets_expire_on_the_way(case) -> None:
    raw, _, outcomes = rounds_of(case, 20, 5)
    rec = case(max_open=5)
    available = np.arange(20) + 7.0
    run = rec.replay(raw, outcomes, available=available, time=np.arange(20))
    assert rec.rounds == 0
    assert rec.open == 5
    assert run.pending.number.tolist() == [15, 16, 17, 18, 19]
    assert rec.certificate().expired == 15


# Tickets.


@every
def test_to_report_an_outcome_returns_the_ticket(case) -> None:
    _, raws, _ = rounds_of(case, 3, 6)
    rec = case()
    tickets = [rec.forecast(raw, id=f"t{k}", time=2.0) for k, raw in enumerate(raws)]
    assert rec.observe(tickets[1], 0.5) is tickets[1]
    found = rec.observe("t0", 0.25)
    assert (found.id, found.number, found.time, found.outcome) == ("t0", 0, 2.0, 0.25)
    assert found.fields == tickets[0].fields
    assert repr(found).endswith("outcome=0.25)")


@every
def test_a_stored_ticket_is_the_ticket(case) -> None:
    _, raws, _ = rounds_of(case, 3, 7)
    rec, other = case(), case()
    for each in (rec, other):
        each.learn_one(raws[0], 0.3)
    ticket, same_one = rec.forecast(raws[1], id="a", time=1.5), other.forecast(raws[1], time=1.5)
    for again in (
        type(ticket).from_dict(json.loads(json.dumps(ticket.to_dict()))),
        type(ticket).from_bytes(ticket.to_bytes()),
    ):
        assert again.to_dict() == ticket.to_dict()
        assert same(told(again), told(ticket))
        assert repr(again) == repr(ticket)
        assert again.fields == ticket.fields
        assert again.issuer.drawn == ticket.issuer.drawn
    rec = type(rec).from_bytes(rec.to_bytes())
    assert rec.observe(again, 0.7) is again
    other.observe(same_one, 0.7)
    assert rec == other
    closed = type(ticket).from_bytes(again.to_bytes())
    assert closed.outcome == 0.7
    rec.correct(closed, -0.7)
    other.correct(same_one, -0.7)
    assert rec == other


@every
def test_a_ticket_that_was_found_by_its_id_can_be_stored(case) -> None:
    _, raws, _ = rounds_of(case, 2, 8)
    rec = case()
    ticket = rec.forecast(raws[0])
    rec.forecast(raws[1])
    found = rec.observe(0, 0.5)
    again = type(found).from_bytes(found.to_bytes())
    assert again.fields == ticket.fields
    assert again.to_dict() == found.to_dict()
    if isinstance(again, QuantileTicket):
        assert again.quantiles.tolist() == ticket.quantiles.tolist()
        for name in ("value", "inner", "outer"):
            with pytest.raises(InvalidInput, match="must be asked of the ticket that forecast"):
                _ = getattr(again, name)
    else:
        assert again.value == ticket.value == ticket.mean
        assert again.raw == ticket.raw


@every
def test_tickets_that_are_none_are_refused(case) -> None:
    _, raws, _ = rounds_of(case, 1, 9)
    rec = case()
    ticket = rec.forecast(raws[0])
    good = ticket.to_dict()
    for name in good:
        if name not in ("time", "outcome", "raw", "centre"):
            with pytest.raises(
                CorruptState, match=r"ticket must be what \w+Ticket.to_dict\(\) gave"
            ):
                type(ticket).from_dict(good | {name: None})
        with pytest.raises(CorruptState):
            type(ticket).from_dict(good | {name: {"a": []}})
        rest = {key: told for key, told in good.items() if key != name}
        if name == "advice":
            # Tickets of methods without experts have none; they are not this stream's.
            with pytest.raises(ForeignTicket):
                rec.observe(type(ticket).from_dict(rest), 0.5)
        elif name != "mixed":
            with pytest.raises(CorruptState):
                type(ticket).from_dict(rest)
    other = IntervalTicket if isinstance(ticket, QuantileTicket) else QuantileTicket
    with pytest.raises(CorruptState, match="kind"):
        other.from_bytes(ticket.to_bytes())


@every
def test_an_altered_ticket_is_refused(case) -> None:
    _, raws, _ = rounds_of(case, 2, 10)
    rec = case()
    ticket = rec.forecast(raws[0])
    rec.forecast(raws[1])
    name = "found" if isinstance(ticket, QuantileTicket) else "base"
    changed = [9.5, *ticket.to_dict()["found"][1:]] if name == "found" else 9.5
    altered = type(ticket).from_dict(ticket.to_dict() | {name: changed})
    before = rec.to_bytes()
    with pytest.raises(ForeignTicket, match="ticket must be as it was issued, got an altered one"):
        rec.observe(altered, 1.0)
    assert rec.to_bytes() == before


@pytest.mark.parametrize("method", ["tracker", "pit"])
def test_a_ticket_of_other_levels_is_not_corrected(method) -> None:
    rec = QuantileRecalibrator(method, 3, seed=1)
    ticket = rec.observe(rec.forecast(Distribution.normal(0.0, 1.0)), 0.5)
    good, before = ticket.to_dict(), rec.to_bytes()
    changes = [{name: good[name] * 2 for name in ("found", "shares")}]
    if method == "pit":
        changes.append({name: good[name][1:] for name in ("places", "weights")})
    for change in changes:
        altered = QuantileTicket.from_dict(good | change)
        with pytest.raises(ForeignTicket, match="must be as it was issued, got an altered one"):
            rec.correct(altered, -0.5)
    assert rec.to_bytes() == before


def test_a_ticket_whose_lists_do_not_go_together_is_refused() -> None:
    raw = Distribution.from_quantiles([0.1, 0.5, 0.9], [0.0, 1.0, 2.0])
    good = QuantileRecalibrator("pit", 1, seed=1).forecast(raw).to_dict()
    knots = good["raw"] | {"values": good["raw"]["values"][1:]}
    for change, reason in (
        ({"shares": good["shares"][1:]}, "10 quantiles and 9 shares"),
        ({"found": [], "shares": []}, "0 quantiles and 0 shares"),
        ({"places": good["places"][1:]}, "8 places and 9 weights"),
        ({"raw": knots}, "values and . levels"),
    ):
        with pytest.raises(CorruptState, match=reason):
            QuantileTicket.from_dict(good | change)


# Dropped and corrected outcomes.


@every
def test_an_outcome_that_never_comes_is_dropped(case) -> None:
    _, raws, _ = rounds_of(case, 3, 11)
    rec = case()
    tickets = [rec.forecast(raw) for raw in raws]
    assert rec.expire(1).number == 1
    assert rec.expire(tickets[0]) is tickets[0]
    assert (rec.open, rec.rounds, rec.certificate().expired) == (1, 0, 2)
    with pytest.raises(ExpiredTicket, match="got one that was expired"):
        rec.observe(tickets[0], 1.0)
    rec.observe(tickets[2], 1.0)
    assert rec.rounds == 1


def covered(record):
    """How often outcomes were covered, at each level or at all."""
    if hasattr(record, "levels"):
        return [row.coverage for row in record.levels]
    return [record.coverage]


@every
def test_a_corrected_outcome_is_counted_as_if_it_had_been_right(case) -> None:
    _, raws, outcomes = rounds_of(case, 30, 12)
    rec, right = case(), case()
    wrong = rec.observe(rec.forecast(raws[0]), -9.0)
    right.learn_one(raws[0], 9.0)
    before = covered(rec.certificate())
    assert rec.correct(wrong, 9.0) is wrong
    assert wrong.outcome == 9.0
    record = rec.certificate()
    assert covered(record) == covered(right.certificate())
    assert covered(record) != before or isinstance(rec, ConformalInterval)
    assert (rec.rounds, rec.issued) == (1, 1)
    for raw, y in zip(raws[1:], outcomes[1:].tolist(), strict=True):
        rec.learn_one(raw, y)
    assert rec.certificate().holds in (True, None)


@every
def test_a_correction_there_and_back_leaves_the_counts(case) -> None:
    _, raws, outcomes = rounds_of(case, 20, 13)
    rec = case()
    tickets = [
        rec.observe(rec.forecast(raw), y) for raw, y in zip(raws, outcomes.tolist(), strict=True)
    ]
    before = covered(rec.certificate())
    rec.correct(tickets[4], 7.5)
    rec.correct(tickets[4], float(outcomes[4]))
    assert covered(rec.certificate()) == before


@every
def test_corrections_that_make_no_sense_are_refused(case) -> None:
    _, raws, _ = rounds_of(case, 3, 14)
    rec = case()
    ticket, waits = rec.observe(rec.forecast(raws[0]), -9.0), rec.forecast(raws[1])
    stale = type(ticket).from_bytes(ticket.to_bytes())
    before = rec.to_bytes()
    with pytest.raises(RepeatedTicket, match="outcome must differ from the known one"):
        rec.correct(ticket, -9.0)
    with pytest.raises(InvalidInput, match="must have an outcome to be corrected, got an open one"):
        rec.correct(waits, 1.0)
    with pytest.raises(InvalidInput, match="outcome must be a finite number"):
        rec.correct(ticket, float("nan"))
    with pytest.raises(InvalidType, match="ticket must be a"):
        rec.correct(0, 1.0)
    other = case(seed=5)
    with pytest.raises(ForeignTicket):
        rec.correct(other.observe(other.forecast(raws[0]), 1.0), 2.0)
    assert rec.to_bytes() == before
    if isinstance(ticket, QuantileTicket):
        rec.correct(ticket, 9.0)
        forget_corrections(rec)
        before = rec.to_bytes()
        with pytest.raises(RepeatedTicket, match="was it corrected already"):
            rec.correct(stale, 9.0)
        assert rec.to_bytes() == before


def test_a_corrected_tracker_stands_where_it_would_stand() -> None:
    raw = Distribution.normal(0.0, 1.0)
    rec, right = (QuantileRecalibrator("tracker", 5, step=0.125, seed=1) for _ in range(2))
    ticket = rec.observe(rec.forecast(raw), 0.1)
    right.learn_one(raw, -2.0)
    rec.correct(ticket, -2.0)
    assert rec._method.positions.tolist() == pytest.approx(right._method.positions.tolist())
    assert rec.certificate() == right.certificate()


@pytest.mark.parametrize("calibrator", ["foster_hart", "anchored", "foster99", "running_mean"])
def test_corrected_levels_are_those_of_the_right_outcome(calibrator) -> None:
    raw, options = Distribution.normal(0.0, 1.0), {"levels": 3, "calibrator": calibrator}
    rec, right = (QuantileRecalibrator("pit", **options, seed=1) for _ in range(2))
    ticket = rec.observe(rec.forecast(raw), 3.0)
    right.learn_one(raw, -0.4)
    rec.correct(ticket, -0.4)
    layout = rec._arena.layout
    one, other = rec._arena.row(), right._arena.row()
    assert (one == other)[~layout.real].all()
    reals = one.view(float)[layout.real], other.view(float)[layout.real]
    assert reals[0].tolist() == pytest.approx(reals[1].tolist())


@pytest.mark.parametrize(("method", "options"), [("aci", {"scale": 4.0}), ("aci_quantile", {})])
def test_a_corrected_interval_is_that_of_the_right_outcome(method, options) -> None:
    # The step of `aci` with a scale, and the level of `aci_quantile`, do not hang on the score.
    rec = ConformalInterval(method, score="given", seed=1, **options)
    given = np.random.default_rng(0).random(30).round(3)
    tickets = [rec.observe(rec.forecast(), score) for score in given.tolist()]
    given[[3, 17]] = 0.9995, 0.0005
    for k in (3, 17):
        rec.correct(tickets[k], float(given[k]))
    bases = np.array([ticket.base for ticket in tickets])
    part = rec._seat.part()
    assert part[kernel.MISSES] == (given > bases).sum()
    if method == "aci":
        expected = 0.05 * 4.0 * ((given > bases).sum() - 0.1 * 30)
        assert part[kernel.RADIUS] == pytest.approx(expected)
    else:
        ordered = part[-500 : -500 + 30]
        assert ordered == sorted(given.tolist())
        expected = 0.1 + 0.02 * (0.1 * 30 - (given > bases).sum())
        assert part[kernel.LEVEL] == pytest.approx(expected)


def test_a_corrected_score_leaves_the_window_of_pid_and_moves_its_radius() -> None:
    band = ConformalInterval("pid", score="given", window=4, coverage=0.5, seed=1)
    tickets = [band.observe(band.forecast(), score) for score in (1.0, 2.0, 3.0, 4.0)]
    before = band._seat.part()
    band.correct(tickets[3], 0.5)
    part = band._seat.part()
    assert part[kernel.RING :] == [1.0, 2.0, 3.0, 0.5]
    miss = float(tickets[3].base < 0.5) - float(tickets[3].base < 4.0)
    assert part[kernel.MISSES] == before[kernel.MISSES] + miss
    moved = part[kernel.PROPORTION] - before[kernel.PROPORTION]
    assert moved == pytest.approx(0.1 * 2.5 * miss)


@pytest.mark.parametrize("method", ["pid", "aci_quantile"])
def test_a_corrected_score_that_left_the_window_is_counted_and_not_kept(method) -> None:
    band = ConformalInterval(method, score="given", window=2, coverage=0.5, seed=1)
    tickets = [band.observe(band.forecast(), score) for score in (1.0, 2.0, 3.0)]
    start = kernel.RING if method == "pid" else kernel.LATEST
    before = band._seat.part()
    band.correct(tickets[0], -9.0)
    part = band._seat.part()
    assert part[start:] == before[start:]
    assert sorted(part[start : start + 2]) == [2.0, 3.0]
    missed = float(tickets[0].base < 1.0) - float(tickets[0].base < -9.0)
    assert part[kernel.MISSES] == before[kernel.MISSES] - missed


def test_a_corrected_score_is_not_corrected_again() -> None:
    band = ConformalInterval("aci", score="given", seed=1)
    ticket = band.observe(band.forecast(), 1.0)
    stale = IntervalTicket.from_bytes(ticket.to_bytes())
    band.correct(ticket, -1.0)
    forget_corrections(band)
    before = band.to_bytes()
    with pytest.raises(RepeatedTicket, match="got -1 misses then: was it corrected already"):
        band.correct(stale, -1.0)
    assert band.to_bytes() == before


def test_a_corrected_score_is_replaced_in_the_losses_of_saocp() -> None:
    rec, right = (ConformalInterval("saocp", score="given", scale=1.0, seed=1) for _ in range(2))
    ticket = rec.observe(rec.forecast(), 0.75)
    right.learn_one(None, 0.25)
    rec.correct(ticket, 0.25)
    one, other = rec._seat.part(), right._seat.part()
    assert one[kernel.OWN_LOSS] == pytest.approx(other[kernel.OWN_LOSS])
    assert one[kernel.RIVALS : kernel.EXPERTS] == pytest.approx(
        other[kernel.RIVALS : kernel.EXPERTS]
    )


def test_a_corrected_step_of_sf_ogd_has_the_gradients_of_the_right_outcome() -> None:
    rec, right = (ConformalInterval("sf_ogd", score="given", scale=1.0, seed=1) for _ in range(2))
    ticket = rec.observe(rec.forecast(), 0.75)
    right.learn_one(None, -0.25)
    rec.correct(ticket, -0.25)
    one, other = rec._seat.part(), right._seat.part()
    for place in (kernel.GRADIENTS, kernel.MISSES, kernel.ROUNDS):
        assert one[place] == pytest.approx(other[place])
    # The first step was 0.9 of 1 / (sqrt(3) 0.9); the second goes down by 1 / (sqrt(3) 0.1).
    assert one[kernel.RADIUS] == pytest.approx((1.0 - 1.0 / 0.1) / np.sqrt(3.0))


# Looks ahead, coins, and rounds at once.


def drawn_levels(found):
    return found.rows.outer.tolist(), found.rows.values.tolist(), found.rows.levels.tolist()


@every
def test_a_sample_is_the_draw_and_a_mean_is_the_mean_of_the_next_round(case) -> None:
    _, raws, _ = rounds_of(case, 4, 15)
    rec = case()
    for raw in raws[:2]:
        rec.learn_one(raw, 0.3)
    before = rec.to_bytes()
    sample, mean = rec.sample_one(raws[2]), rec.predict_mean_one(raws[2])
    assert rec.to_bytes() == before
    ticket = rec.forecast(raws[2])
    if isinstance(sample, Distribution):
        assert drawn_levels(sample) == drawn_levels(ticket.value)
        assert drawn_levels(mean) == drawn_levels(ticket.mean)
    else:
        assert sample == ticket.value
        assert mean == ticket.mean


@every
def test_a_mean_that_is_looked_at_holds_nothing_up(case) -> None:
    _, raws, _ = rounds_of(case, 3, 16)
    rec = case()
    rec.predict_mean_one(raws[0])
    rec.forecast(raws[1])
    rec.learn_one(raws[0], 0.0)
    rec.sample_one(raws[0])
    rec.forecast(raws[1])
    before = rec.to_bytes()
    with pytest.raises(StaleForecast):
        rec.learn_one(raws[0], 0.0)
    assert rec.to_bytes() == before


@every
def test_rounds_at_once_let_old_tickets_expire(case) -> None:
    _, raws, _ = rounds_of(case, 6, 17)
    rec = case(max_open=3)
    ticket = rec.forecast(raws[0])
    for raw in raws[1:4]:
        rec.learn_one(raw, 0.0)
    assert rec.open == 0
    with pytest.raises(ExpiredTicket):
        rec.observe(ticket, 1.0)


@every
def test_batches_let_old_tickets_expire(case) -> None:
    raw, raws, outcomes = rounds_of(case, 6, 20)
    rec = case(max_open=3)
    rec.forecast(raws[0])
    rec.replay(raw[1:3], outcomes[1:3])
    assert rec.open == 1
    rec.replay(raw[3:], outcomes[3:])
    assert rec.open == 0
    assert rec.certificate().expired == 1


@every
def test_rounds_at_once_are_whole_between_threads(case) -> None:
    _, raws, _ = rounds_of(case, 8, 18)
    rec = case()

    def work() -> None:
        for raw in raws:
            rec.learn_one(raw, 0.25)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # No forecast of another thread came between a forecast and its outcome.
    assert (rec.rounds, rec.open, rec.delay) == (32, 0, 0)


def test_the_coin_of_a_level_says_which_point_was_drawn() -> None:
    rec = QuantileRecalibrator("pit", 3, resolution=10, seed=3)
    values = Grid("endpoints", 10).values
    raw = Distribution.normal(0.0, 1.0)
    for y in np.random.default_rng(1).normal(size=40).tolist():
        rec.learn_one(raw, y)
    ticket = rec.forecast(raw)
    for k, (place, weight) in enumerate(zip(ticket.places, ticket.weights, strict=True)):
        side = int(rec.coin_of(ticket, k) >= weight)
        assert side == (place >> 15) & 1
        assert ticket.drawn[k] == values[place & 0x7FFF]
    assert 0.0 <= rec.coin_of(ticket) < 1.0
    with pytest.raises(InvalidInput, match="level must be a whole number from 0 to 10"):
        rec.coin_of(ticket, 11)


def test_coins_are_told_of_own_tickets_that_were_drawn() -> None:
    raw = Distribution.normal(0.0, 1.0)
    rec = QuantileRecalibrator("tracker", 3, seed=3)
    ticket = rec.forecast(raw)
    with pytest.raises(InvalidInput, match="level must be None where nothing is drawn, got 0"):
        rec.coin_of(ticket, 0)
    with pytest.raises(ForeignTicket):
        QuantileRecalibrator("tracker", 3, seed=4).coin_of(ticket)
    band = ConformalInterval(seed=1)
    with pytest.raises(InvalidInput, match="coin must be asked of a forecast that was drawn"):
        band.coin_of(band.forecast(0.0))


def test_the_coin_of_a_round_decides_about_an_atom() -> None:
    rain = Distribution.from_samples([0.0, 0.0, 0.0, 1.0])
    rec = QuantileRecalibrator("tracker", [0.375], seed=2)
    ticket = rec.observe(rec.forecast(rain), 0.0)
    [row] = rec.certificate().levels
    assert row.coverage == float(rec.coin_of(ticket) < ticket.shares[0])


# Compiled steps, and what is shared with the floor.


@every
def test_compiled_steps_give_the_same_bits(case) -> None:
    pytest.importorskip("numba", reason='needs the extra "fast"')
    _, raws, outcomes = rounds_of(case, 25, 19)
    plain, fast = case(), case()
    assert fast.compile() is fast
    for rec in (plain, fast):
        for raw, y in zip(raws[:20], outcomes.tolist(), strict=False):
            last = rec.observe(rec.forecast(raw), y)
        rec.predict_one(raws[20])
        rec.learn_one(raws[20], 0.5)
        rec.correct(last, 5.0)
        rec.replay(case.raw(10), case.outcomes(10))
        rec.forecast(raws[21])
    assert plain == fast
    assert same(plain.certificate().to_dict(), fast.certificate().to_dict())


@every
def test_single_steps_hand_over_to_a_compiler_where_there_is_one(case, monkeypatch) -> None:
    _, raws, outcomes = rounds_of(case, 20, 19)
    plain, other = case(), case()
    made = []

    def stand_in(function, name, nogil):
        made.append(name)
        return function

    monkeypatch.setattr(kernel, "available", lambda: True)
    monkeypatch.setattr(kernel, "compiled", stand_in)
    monkeypatch.setattr(Rows, "compile", lambda self: not self.use_views())
    if case.kind is ConformalInterval:
        method = interval_methods.get(case.method)
        monkeypatch.setattr(method, "program", dataclasses.replace(method.program))
    other.compile()
    assert bool(made) is (case.kind is ConformalInterval)
    for raw, y in zip(raws, outcomes.tolist(), strict=True):
        for rec in (plain, other):
            rec.observe(rec.forecast(raw), y)
    assert plain == other


@every
def test_compiling_without_a_compiler_changes_nothing(case, monkeypatch) -> None:
    monkeypatch.setenv("CALIBRANT_COMPILE", "off")
    rec = case()
    before = rec.to_bytes()
    assert rec.compile() is rec
    assert rec.to_bytes() == before


def test_a_million_tickets_may_be_open_by_default() -> None:
    assert QuantileRecalibrator(seed=1).max_open == 1_000_000
    assert ConformalInterval(seed=1).max_open == 1_000_000


def test_a_calibrator_that_needs_times_is_refused() -> None:
    with pytest.raises(InvalidInput, match="calibrator must not forget in time"):
        QuantileRecalibrator("pit", calibrator="fading", half_life=5.0, unit="time")


def test_levels_in_one_arena_play_as_alone() -> None:
    # One denominator for all levels, where each had its own: draws and counts are the same.
    rng = np.random.default_rng(0)
    raw, y = Distributions.normal(np.zeros(300), np.ones(300)), rng.normal(size=300)
    rec = QuantileRecalibrator("pit", [0.25, 0.5], seed=11)
    run = rec.replay(raw, y)
    seed = int.from_bytes(rec._secret, "little", signed=True)
    for k, level in enumerate(run.inner[0].tolist()):
        alone = LevelCalibrator(level, resolution=50, seed=seed, key=k)
        below = y < raw.quantile([level])[:, 0]
        played = alone.replay(np.full(300, level), below)
        assert played.forecast.tolist() == run.drawn[:, k].tolist()
    places = np.searchsorted(run.inner[0], [0.25, 0.5]).tolist()
    rows = rec.certificate().levels
    for row, k in zip(rows, places, strict=True):
        below = y < raw.quantile([run.inner[0, k]])[:, 0]
        assert row.measured == pytest.approx(c2(run.drawn[:, k], below))


def c2(drawn, events):
    cells = [events[drawn == value] - value for value in set(drawn.tolist())]
    return sum(cell.sum() ** 2 / len(cell) for cell in cells) / len(drawn)


def test_intervals_keep_to_their_bound_after_a_correction() -> None:
    band = ConformalInterval("aci", score="given", coverage=0.8, step=0.1, scale=1.0, seed=1)
    tickets = [band.observe(band.forecast(), k % 3 / 2) for k in range(50)]
    band.correct(tickets[9], 1.0)
    record = band.certificate()
    # One step more than without a correction.
    assert record.measured <= bounds.aci(50, 1.0, 0.1).value + 1 / 50
    assert record.holds is True
