"""The verbs that recalibrators over classes share with every other stream."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from everyone import forget_corrections
from test_classes import stream
from test_classes_contract import MAKERS, RAW, every

from calibrant.classes import OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.classes.ticket import ClassIssuer
from calibrant.core.codec import Document
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
from calibrant.kernels.layout import RESERVED
from calibrant.recalibrate.rows import Rows

UNKNOWN = {
    "MendedTicket": (),
    "OneVsRestTicket": (),
    "TopTicket": ("raw", "value", "mean", "leads"),
    "SimplexTicket": ("raw", "mean", "points", "weights"),
}
"""What the desk does not keep of a ticket."""


def played(make, rounds=12, **options):
    rec = make(**options)
    rec.replay(*stream(rounds, 3, seed=9))
    return rec


# Outcomes.


@every
def test_observe_returns_the_ticket_with_its_outcome(make) -> None:
    rec = played(make)
    first, second = rec.forecast(RAW, time=2.5), rec.forecast(RAW)
    assert rec.observe(first, 2) is first
    assert first.outcome == 2
    third = rec.forecast(RAW)
    found = rec.observe(second.id, np.int64(1))
    assert (found.id, found.number, found.outcome) == (13, 13, 1)
    assert found is not second
    assert "outcome=1" in repr(found)
    assert rec.observe(third.number, 0).time is None


@every
def test_what_a_ticket_found_by_id_does_not_know_must_be_asked_of_the_first(make) -> None:
    rec = played(make)
    ticket = rec.forecast(RAW, id="a", time=3.0)
    rec.forecast(RAW)
    found = rec.observe("a", 1)
    assert found.time == 3.0
    unknown = UNKNOWN[type(ticket).__name__]
    for name in unknown:
        with pytest.raises(InvalidInput, match=r"asked of the ticket that forecast\(\) returned"):
            getattr(found, name)
    for name in {"raw", "value", "mean"} - {*unknown}:
        assert getattr(found, name).tolist() == getattr(ticket, name).tolist()
    for name in ("classwise", "classwise_mean", "confidence", "confidence_mean", "top", "index"):
        assert np.array_equal(getattr(ticket, name, None), getattr(found, name, None))


@every
def test_a_correction_at_once_is_as_if_the_right_class_had_come(make) -> None:
    rec, other = played(make), played(make)
    ticket, right = rec.forecast(RAW), other.forecast(RAW)
    rec.observe(ticket, 1)
    assert rec.correct(ticket, 0) is ticket
    other.observe(right, 0)
    assert ticket.outcome == 0
    assert (rec.rounds, rec.issued, rec.open) == (13, 13, 0)
    found, expected = rec.certificate(), other.certificate()
    assert found.c2 == pytest.approx(expected.c2, abs=1e-15)
    for number, part in getattr(found, "parts", {}).items():
        beside = expected.parts[number]
        assert (part.c1, part.c2_buckets) == (beside.c1, beside.c2_buckets)
        assert part.raw_loss == pytest.approx(beside.raw_loss)
        assert part.loss == pytest.approx(beside.loss)


@every
def test_a_ticket_is_corrected_after_a_restart(make) -> None:
    rec = played(make)
    ticket = rec.observe(rec.forecast(RAW), 2)
    kept = type(ticket).from_bytes(ticket.to_bytes())
    again = type(rec).from_bytes(rec.to_bytes())
    rec.correct(ticket, 0)
    assert again.correct(kept, 0).outcome == 0
    assert again == rec
    assert rec.to_bytes() != played(make).to_bytes()


@every
def test_only_a_closed_ticket_of_ours_is_corrected_to_another_class(make) -> None:
    rec = make()
    ticket, waiting = rec.forecast(RAW), rec.forecast(RAW)
    rec.observe(ticket, 0)
    before = rec.to_bytes()
    with pytest.raises(RepeatedTicket, match="outcome must differ from the known one"):
        rec.correct(ticket, 0)
    with pytest.raises(InvalidInput, match="must have an outcome to be corrected, got an open one"):
        rec.correct(waiting, 1)
    with pytest.raises(InvalidType, match="ticket must be a "):
        rec.correct(0, 1)
    with pytest.raises((InvalidInput, InvalidType), match="outcome must be a whole number"):
        rec.correct(ticket, 3)
    stranger = make(seed=2)
    with pytest.raises(ForeignTicket, match="of this recalibrator, got another's"):
        rec.correct(stranger.observe(stranger.forecast(RAW), 0), 1)
    assert rec.to_bytes() == before
    assert ticket.outcome == 0


@every
def test_an_outcome_that_was_corrected_already_is_not_corrected_again(make) -> None:
    rec = make()
    ticket = rec.observe(rec.forecast(RAW), 0)
    copy = type(ticket).from_dict(ticket.to_dict())
    rec.correct(ticket, 1)
    forget_corrections(rec)
    before = rec.to_bytes()
    with pytest.raises(RepeatedTicket, match="was it corrected already"):
        rec.correct(copy, 1)
    assert rec.to_bytes() == before
    assert copy.outcome == 0


def altered(ticket, **changes):
    return type(ticket).from_dict(ticket.to_dict() | changes)


def test_an_altered_ticket_is_neither_learned_nor_corrected() -> None:
    top, each = TopLabel(3, seed=1), OneVsRest(3, seed=1)
    whole = SimplexRecalibrator(3, resolution=4, cells=2, seed=1)
    made = [
        (top, {"top": 2}),
        (top, {"parts": top.copy().forecast(RAW).to_dict()["parts"][:1]}),
        (each, {"parts": each.copy().forecast(RAW).to_dict()["parts"][:2]}),
        (whole, {"place": [5, 3, 0]}),
        (whole, {"place": [0, 99, 0]}),
    ]
    for rec, change in made:
        ticket = rec.forecast(RAW)
        before = rec.to_bytes()
        with pytest.raises(ForeignTicket, match="as it was issued, got an altered one"):
            rec.observe(altered(ticket, **change), 0)
        assert rec.to_bytes() == before
        rec.observe(ticket, 0)
        before = rec.to_bytes()
        with pytest.raises(ForeignTicket, match="as it was issued, got an altered one"):
            rec.correct(altered(ticket, **change), 1)
        assert rec.to_bytes() == before


@every
def test_a_ticket_is_expired_by_hand(make) -> None:
    rec = played(make)
    ticket = rec.forecast(RAW, id="a")
    rec.forecast(RAW)
    assert rec.expire("a").number == ticket.number
    assert rec.open == 1
    with pytest.raises(ExpiredTicket, match="ticket 'a' must be open, got one that was expired"):
        rec.observe(ticket, 0)
    record = rec.certificate()
    assert (record.open, record.expired) == (1, 1)
    assert all(part.expired in (0, 1) for part in getattr(record, "parts", {}).values())


@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_what_was_reserved_is_given_back_when_a_ticket_expires(made) -> None:
    rec = made(3, raw_safe=0.05, max_open=4, seed=1)
    rec.replay(*stream(40, 3, seed=2))

    def reserved() -> list[int]:
        return [int(row[RESERVED]) for _, row in rec._roster.used()]

    assert not any(reserved())
    rec.forecast(RAW)
    assert any(reserved())
    rec.expire(40)
    assert not any(reserved())


@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_tickets_that_expire_within_a_batch_give_back_what_they_held(made) -> None:
    rec = made(3, raw_safe=0.001, max_open=8, seed=1)
    rec.replay(*stream(40, 3, seed=2))
    for row in stream(8, 3, seed=5)[0]:
        rec.forecast(row)
    batch = rec.copy()
    raw, outcomes = stream(40, 3, seed=3)
    run = batch.replay(raw, outcomes)
    for row, y, value in zip(raw, outcomes.tolist(), run.forecast.tolist(), strict=True):
        ticket = rec.forecast(row)
        assert ticket.value.tolist() == value
        rec.observe(ticket, y)
    assert batch == rec
    assert not any(int(row[RESERVED]) for _, row in rec._roster.used())


@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_a_class_that_was_announced_as_it_came_in_is_corrected(made) -> None:
    rec, right = (made(3, raw_safe=0.001, seed=1) for _ in range(2))
    for each in (rec, right):
        each.replay(*stream(40, 3, seed=2))
    ticket, other = rec.forecast(RAW), right.forecast(RAW)
    assert any(part.fallback for part in ticket.parts)
    rec.observe(ticket, 1)
    rec.correct(ticket, 0)
    right.observe(other, 0)
    for number, part in rec.certificate().parts.items():
        beside = right.certificate().parts[number]
        assert part.c1 == beside.c1
        assert part.loss == pytest.approx(beside.loss)


@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_a_look_ahead_says_what_is_announced_as_it_came_in(made) -> None:
    rec = made(3, raw_safe=0.001, seed=1)
    rec.replay(*stream(40, 3, seed=2))
    drawn, mean = rec.sample_one(RAW), rec.predict_mean_one(RAW)
    ticket = rec.forecast(RAW)
    assert any(part.fallback for part in ticket.parts)
    assert (drawn == ticket.value).all()
    assert (mean == ticket.mean).all()


# Coins.


def test_the_coins_decide_the_draws() -> None:
    raw, outcomes = stream(30, 3, seed=5)
    each = OneVsRest(3, engine="recalibrator", seed=1)
    top = TopLabel(3, engine="recalibrator", seed=1)
    whole = SimplexRecalibrator(3, resolution=4, cells=2, seed=1)
    for row, y in zip(raw, outcomes.tolist(), strict=True):
        tickets = [rec.forecast(row) for rec in (each, top, whole)]
        drawn = zip(tickets[0].parts, each.coin_of(tickets[0]).tolist(), strict=True)
        assert all(part.mixture.draw(coin) == part.index for part, coin in drawn)
        part = tickets[1].parts[-1]
        assert part.mixture.draw(top.coin_of(tickets[1])) == part.index
        fallen = np.searchsorted(tickets[2].weights.cumsum(), whole.coin_of(tickets[2]), "right")
        assert tickets[2].points[fallen].tolist() == tickets[2].value.tolist()
        for rec, ticket in zip((each, top, whole), tickets, strict=True):
            rec.observe(ticket, y)


@every
def test_coins_are_told_of_our_own_tickets_alone(make) -> None:
    rec = make()
    ticket = rec.forecast(RAW)
    with pytest.raises(ForeignTicket, match="of this recalibrator, got another's"):
        make(seed=2).coin_of(ticket)
    assert np.array_equal(rec.coin_of(0), rec.coin_of(ticket))
    with pytest.raises(UnknownTicket, match="ticket must be one that is open here, got 1"):
        rec.coin_of(1)
    rec.forecast(RAW)
    assert np.array_equal(rec.coin_of(rec.observe(0, 1)), rec.coin_of(ticket))
    if isinstance(rec, SimplexRecalibrator):
        ticket._clock = None
    else:
        ticket.parts[-1]._clock = None
    with pytest.raises(InvalidInput, match=r"must be the one that forecast\(\) returned"):
        rec.coin_of(ticket)


def test_a_ticket_without_a_clock_comes_back_without_one() -> None:
    """Tickets that earlier versions stored have none, so that no coin can be told of them."""
    rec = SimplexRecalibrator(3, seed=1)
    told = rec.forecast(RAW).to_dict()
    told["place"][2] = None
    ticket = type(rec.forecast(RAW)).from_dict(told)
    assert ticket.fields[1:3] == (ticket.cell, ticket.index)
    issuer = ClassIssuer(ticket.issuer, {ticket.index: ticket.value})
    found = type(ticket).revived(issuer, ticket.id, ticket.number, ticket.fields)
    assert found.clock is None
    with pytest.raises(InvalidInput, match=r"must be the one that forecast\(\) returned"):
        rec.coin_of(found)


# Looking ahead.


@every
def test_the_mean_ahead_is_the_next_rounds_and_changes_nothing(make) -> None:
    rec = played(make, 40)
    before = rec.to_bytes()
    mean, drawn = rec.predict_mean_one(RAW), rec.sample_one(RAW)
    assert rec.to_bytes() == before
    ticket = rec.copy().forecast(RAW)
    assert mean.tolist() == pytest.approx(ticket.mean.tolist(), abs=1e-15)
    assert drawn.tolist() == ticket.value.tolist()


@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_a_round_that_one_row_refuses_changes_none(made, monkeypatch) -> None:
    rec = made(3, seed=1)
    rec.replay(*stream(20, 3))
    before, honest, asked = rec.to_bytes(), Rows.committable, []

    def refusing(rows, row, note, raw) -> bool:
        asked.append(row)
        return len(asked) < 2 and honest(rows, row, note, raw)

    monkeypatch.setattr(Rows, "committable", refusing)
    with pytest.raises(StaleForecast, match="another round came between"):
        rec.learn_one(RAW, 0)
    assert len(asked) == 2
    assert rec.to_bytes() == before


@every
def test_rounds_without_tickets_let_open_ones_expire(make) -> None:
    rec = make(max_open=3)
    rec.forecast(RAW)
    for y in (0, 1, 2):
        assert rec.open == 1
        rec.learn_one(RAW, y)
    assert rec.open == 0
    rec.forecast(RAW)
    rec.replay([RAW] * 3, [0, 1, 2])
    assert rec.open == 0


@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_a_prediction_is_overtaken_by_a_late_outcome(made) -> None:
    rec = made(3, seed=1)
    waiting = rec.forecast(RAW)
    rec.sample_one(RAW)
    rec.observe(waiting, 0)
    before = rec.to_bytes()
    with pytest.raises(StaleForecast, match="another round came between"):
        rec.learn_one(RAW, 0)
    assert rec.to_bytes() == before


@pytest.mark.parametrize(("word", "told"), [(3, 2), (3, 3), (4, 1), ("own", 1)])
def test_a_stored_ticket_of_a_class_that_did_not_come_first_is_refused(word, told) -> None:
    rec = TopLabel(3, engine="recalibrator", seed=1)
    rec.forecast(RAW)
    document = rec._document()
    # Key, number, time and first class; then the words of the two parts, each with its number.
    place = 4 + (len(document.arrays["tickets"]) - 4) // 2 if word == "own" else word
    document.arrays["tickets"][place] = told
    with pytest.raises(CorruptState, match="tickets that were never issued"):
        TopLabel.from_bytes(document.to_bytes())


@every
def test_the_cap_on_open_tickets_is_told(make) -> None:
    assert make().max_open == 1_000_000
    assert make(max_open=3).max_open == 3


# Late outcomes in batches.


def by_hand(rec, raw, outcomes, available):
    """Play rows one by one, each outcome before the first later forecast that may know it."""
    tickets, waits = [], []
    for t, row in enumerate(raw):
        for when, s in sorted(wait for wait in waits if wait[0] <= t):
            rec.observe(tickets[s], int(outcomes[s]))
            waits.remove((when, s))
        tickets.append(rec.forecast(row))
        waits.append((available[t], t))
    for when, s in sorted(wait for wait in waits if wait[0] <= len(raw) - 1):
        rec.observe(tickets[s], int(outcomes[s]))
        waits.remove((when, s))
    return [ticket.value.tolist() for ticket in tickets], sorted(s for _, s in waits)


@every
def test_late_outcomes_of_a_batch_come_as_they_would_one_by_one(make) -> None:
    raw, outcomes = stream(50, 3, seed=7)
    available = np.arange(50) + np.random.default_rng(1).integers(0, 9, 50).astype(float)
    available[[5, 30]] = np.inf, np.nan
    batch, loop = make(), make()
    run = batch.replay(raw, outcomes, available=available)
    values, waiting = by_hand(loop, raw, outcomes, np.where(available > 0, available, np.inf))
    assert run.forecast.tolist() == values
    assert batch == loop
    assert run.pending.number.tolist() == waiting
    assert run.pending.outcome.tolist() == outcomes[waiting].tolist()
    assert run.ticket.tolist() == list(range(50))
    assert batch.open == len(waiting) > 2


@every
def test_a_late_batch_may_be_cut_anywhere(make) -> None:
    raw, outcomes = stream(40, 3, seed=8)
    time = np.arange(40.0) * 2.0
    available = time + np.random.default_rng(2).integers(0, 30, 40)
    whole, parts = make(), make()
    expected = whole.replay(raw, outcomes, available=available, time=time)
    carry, found = None, []
    for cut in (slice(0, 0), slice(0, 13), slice(13, 14), slice(14, 40)):
        now = {"available": available[cut], "time": time[cut], "carry": carry}
        run = parts.replay(raw[cut], outcomes[cut], **now)
        carry = run.pending
        assert carry.outcome.dtype == np.int64
        found += run.forecast.tolist()
        parts = type(parts).from_bytes(parts.to_bytes())
    assert found == expected.forecast.tolist()
    assert parts == whole
    assert carry.number.tolist() == expected.pending.number.tolist()
    assert carry.outcome.tolist() == expected.pending.outcome.tolist()


@every
def test_a_carried_class_that_cannot_be_is_refused_and_changes_nothing(make) -> None:
    rec = make()
    raw, outcomes = stream(4, 3)
    pending = rec.replay(raw, outcomes, available=[9.0] * 4).pending
    before = rec.to_bytes()
    with pytest.raises(InvalidInput, match="outcome must be a whole number from 0 to 2, got 3"):
        rec.replay(raw, outcomes, carry=replace(pending, outcome=np.array([0, 1, 2, 3])))
    with pytest.raises(InvalidInput, match="time must be a flat array of 4 times"):
        rec.replay(raw, outcomes, time=[1.0])
    assert rec.to_bytes() == before


@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_a_rule_that_forgets_in_time_wants_to_know_the_time(made) -> None:
    rec = made(3, engine="recalibrator", method="fading", half_life=20.0, unit="time", seed=1)
    with pytest.raises(InvalidInput, match="time must be given to a rule that forgets in time"):
        rec.forecast(RAW)
    for call in (rec.sample_one, lambda raw: rec.learn_one(raw, 0)):
        with pytest.raises(InvalidInput, match="time must be given"):
            call(RAW)
    raw, outcomes = stream(20, 3)
    with pytest.raises(InvalidInput, match="time must be given"):
        rec.replay(raw, outcomes)
    loop = rec.copy()
    run = rec.replay(raw, outcomes, time=np.arange(20.0) * 7.0)
    for t, (row, y) in enumerate(zip(raw, outcomes.tolist(), strict=True)):
        ticket = loop.forecast(row, time=t * 7.0)
        assert ticket.value.tolist() == run.forecast[t].tolist()
        loop.observe(ticket, y)
    assert loop == rec
    with pytest.raises(InvalidInput, match=r"time must be given .*, got .* without one"):
        rec.correct(altered(ticket, time=None), (ticket.outcome + 1) % 3)
    assert loop == rec


# Tickets.


@every
def test_a_ticket_is_stored_and_says_the_same(make) -> None:
    rec = played(make)
    ticket = rec.forecast(RAW, id="a", time=1.5)
    for again in (
        type(ticket).from_bytes(ticket.to_bytes()),
        type(ticket).from_dict(json.loads(json.dumps(ticket.to_dict()))),
    ):
        assert repr(again) == repr(ticket)
        assert (again.id, again.number, again.time, again.outcome) == ("a", 12, 1.5, None)
        assert again.to_dict() == ticket.to_dict()
        for name in ("raw", "value", "mean"):
            assert getattr(again, name).tolist() == getattr(ticket, name).tolist()
        assert np.array_equal(rec.coin_of(again), rec.coin_of(ticket))
        rec.copy().observe(again, 1)
        assert again.outcome == 1
    kept = rec.copy().observe("a", 2)
    assert type(kept).from_dict(kept.to_dict()).to_dict() == kept.to_dict()


@every
def test_what_is_no_ticket_is_refused(make) -> None:
    ticket = make().forecast(RAW)
    changes = [
        {"id": None},
        {"issuer": 3},
        {"number": -1},
        {"time": "now"},
        {"outcome": 0.5},
        {"raw": [0.5, 0.6, 0.1]},
        {"parts": None},
        {"parts": []},
        {"renormalise": "softmax"},
        {"top": 3},
        {"place": [0, 0]},
        {"value": None},
        {"mixture": [[[0.5, 0.5, 0.0]], [0.5]]},
    ]
    data = ticket.to_dict()
    for change in changes:
        if set(change) <= set(data):
            with pytest.raises(CorruptState, match=r"ticket must be what \w+\.to_dict\(\) gave"):
                type(ticket).from_dict(data | change)
    with pytest.raises(CorruptState):
        type(ticket).from_bytes(ticket.to_bytes()[:-1])
    with pytest.raises(CorruptState, match="kind"):
        type(ticket).from_bytes(Document("other", data).to_bytes())


# Compiled steps.


@every
def test_without_a_compiler_compile_changes_nothing(make, monkeypatch) -> None:
    rec = played(make)
    monkeypatch.setattr("calibrant.kernels.rounds.available", lambda: False)
    program = getattr(rec.spec, "program", None)
    made = {} if program is None else program.__dict__
    made.pop("machine", None)
    before = rec.to_bytes()
    assert rec.compile() is rec
    assert rec.to_bytes() == before
    made.pop("machine", None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one-vs-rest", "one-vs-rest, Algorithm 1", "top-label"])
def test_compiled_steps_announce_the_same_also_in_rows_made_since(name) -> None:
    make = MAKERS[name]
    raw, outcomes = stream(60, 3, seed=4)
    plain, fast = make(), make().compile()
    for row, y in zip(raw, outcomes.tolist(), strict=True):
        one, other = plain.forecast(row), fast.forecast(row)
        assert one.value.tolist() == other.value.tolist()
        plain.observe(one, y)
        fast.observe(other, y)
        assert plain.sample_one(row).tolist() == fast.sample_one(row).tolist()
        plain.learn_one(row, y)
        fast.learn_one(row, y)
    assert plain == fast
    assert plain.replay(raw, outcomes).mean.tolist() == fast.replay(raw, outcomes).mean.tolist()
    assert plain == fast
