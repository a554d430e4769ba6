"""Tickets: outcomes that come late, in any order, twice, never, or wrong."""

from __future__ import annotations

import json
import random

import numpy as np
import players
import pytest
import registered
from everyone import forget_corrections
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Recalibrator
from calibrant.core.grid import GRIDS
from calibrant.core.ticket import Ticket
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
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

NAMES = calibrators.names()
ALL_PAIRS = ("exponential_regret", "polynomial_regret")
WHOLE = ("foster_hart", "regret_matching", "foster99", "running_mean")
every_name = pytest.mark.parametrize("name", NAMES)


def make(name: str = "foster_hart", **options: object) -> Recalibrator:
    return Recalibrator(name, **({"resolution": 5, "buckets": 3, "seed": 2} | options))


def refusal(error: type[Exception], rec: Recalibrator, call: object, *args: object) -> str:
    """Check that a call is refused by that very error and changes nothing; return its text."""
    before, rounds, issued = rec.to_bytes(), rec.rounds, rec.issued
    with pytest.raises(error) as refused:
        call(*args)
    assert type(refused.value) is error
    assert (rec.to_bytes(), rec.rounds, rec.issued) == (before, rounds, issued)
    return str(refused.value)


# In any order.


@every_name
@pytest.mark.parametrize("by", ["ticket", "number", "name", "copy", "numpy"])
def test_outcomes_may_come_in_any_order_and_by_any_handle(name: str, by: str) -> None:
    raw, outcomes = players.stream(40, 1)
    order = random.Random(1).sample(range(40), 40)
    one, other = make(name), make(name)
    plain = [one.forecast(p) for p in raw]
    named = [
        other.forecast(p, id=f"order {k}" if by == "name" else None) for k, p in enumerate(raw)
    ]
    assert [t.value for t in plain] == [t.value for t in named]
    for k in order:
        one.observe(plain[k], outcomes[k])
        handle = {
            "ticket": named[k],
            "number": named[k].number,
            "name": f"order {k}",
            "copy": Ticket.from_dict(json.loads(json.dumps(named[k].to_dict()))),
            "numpy": np.int64(k),
        }[by]
        told = other.observe(handle, outcomes[k])
        assert told.outcome == outcomes[k]
        assert (told.number, told.raw, told.index) == (k, raw[k], plain[k].index)
    assert one.to_bytes() == other.to_bytes()
    assert one.open == other.open == 0


@pytest.mark.parametrize("name", WHOLE)
def test_counts_do_not_care_in_which_order_outcomes_came(name: str) -> None:
    raw, outcomes = players.stream(60, 2)
    seen = []
    for order in (range(60), range(59, -1, -1), random.Random(3).sample(range(60), 60)):
        rec = make(name)
        tickets = [rec.forecast(p) for p in raw]
        for k in order:
            rec.observe(tickets[k], outcomes[k])
        seen.append(blocks(rec))
    assert seen[0] == seen[1] == seen[2]


@every_name
def test_more_tickets_than_stay_young_are_told_in_any_order(name: str) -> None:
    count = 300 if registered.on_all_cells(name) else 700
    raw, outcomes = players.stream(count, 3)
    one, other = make(name, resolution=3), make(name, resolution=3)
    mine = [one.forecast(p) for p in raw]
    its = [other.forecast(p) for p in raw]
    other = other.copy()
    for k in random.Random(4).sample(range(count), count):
        one.observe(mine[k] if k % 2 else k, outcomes[k])
        other.observe(its[k], outcomes[k])
        assert its[k].outcome == outcomes[k]
    assert one.to_bytes() == other.to_bytes()


def lines_of(rec: Recalibrator) -> int:
    """Bytes of memory that open tickets take, without what finds them."""
    desk = rec._counter.desk
    return desk.nbytes - desk._index.nbytes


def test_many_open_tickets_take_64_bytes_each_in_memory_and_stored() -> None:
    rec = make()
    empty = len(rec.to_bytes())
    count = 12_000
    run = rec.replay(np.full(count, 0.5), np.ones(count), available=np.full(count, np.inf))
    assert rec.open == len(run.pending) == count
    # A sixteenth more for room to grow; what the index takes is test_desk's matter.
    assert lines_of(rec) <= 64 * count * 17 // 16
    data = rec.to_bytes()
    assert len(data) <= empty + 64 * count + 8 * 100
    again = Recalibrator.from_bytes(data)
    assert again.open == count
    assert lines_of(again) <= 64 * count * 17 // 16
    for number in (0, 1, 7_777, count - 1):
        assert again.observe(number, 1).number == number
    assert again.open == count - 4


def test_closing_most_of_many_tickets_gives_their_memory_back() -> None:
    rec = make()
    count = 12_000
    rec.replay(np.full(count, 0.5), np.ones(count), available=np.full(count, np.inf))
    for number in random.Random(3).sample(range(count), count - 2_000):
        rec.observe(number, 1)
        assert lines_of(rec) <= 64 * rec.open * 10 // 9 + 8_192
    assert rec.open == 2_000


def test_a_ticket_that_expired_long_ago_stays_so_without_new_tickets() -> None:
    rec = make(max_open=400)
    for _ in range(350):
        rec.forecast(0.3)
    for _ in range((1 << 12) - 340):
        rec.learn_one(0.9, 1)
    with pytest.raises(ExpiredTicket):
        rec.observe(5, 1)
    assert Recalibrator.from_bytes(rec.to_bytes()) == rec


def test_each_forecast_of_many_open_ones_costs_a_ticket_and_no_more() -> None:
    rec = make(resolution=3, buckets=1)
    for _ in range(3_000):
        rec.forecast(0.5)
    assert rec._counter.latest.number == 2_999
    assert 2_999 - 64 <= len(rec._counter.desk) <= 2_999 - 48
    assert lines_of(rec) <= 64 * 3_000 * 10 // 9


# Repeated, expired, unknown, foreign, altered.


@pytest.mark.parametrize("open_tickets", [1, 400])
def test_an_outcome_is_told_once(open_tickets: int) -> None:
    rec = make()
    tickets = [rec.forecast(0.5) for _ in range(open_tickets)]
    ticket = tickets[0]
    rec.observe(ticket, 1)
    text = refusal(RepeatedTicket, rec, rec.observe, ticket, 1)
    assert text == (
        "ticket 0 must be open, got one whose outcome 1 is known; use correct() to replace it"
    )
    text = refusal(RepeatedTicket, rec, rec.observe, 0, 0)
    assert text == "ticket 0 must be open, got one whose outcome is known"


@pytest.mark.parametrize("max_open", [1, 2, 50, 400])
def test_a_ticket_expires_once_max_open_newer_forecasts_were_made(max_open: int) -> None:
    rec = make(max_open=max_open)
    ticket = rec.forecast(0.5)
    for _ in range(max_open - 1):
        rec.forecast(0.1)
    rec.copy().observe(ticket, 1)
    assert rec.open == max_open
    rec.learn_one(0.9, 1)
    text = (
        f"ticket 0 must be among the last {max_open}, got one of {max_open + 1} forecasts ago: "
        "it expired"
    )
    again = rec.copy()
    for kept in (rec, again):
        ticket._outcome = None
        assert refusal(ExpiredTicket, kept, kept.observe, ticket, 1) == text
        assert refusal(ExpiredTicket, kept, kept.observe, 0, 1) == text
        assert kept.open == max_open - 1
        assert kept.certificate().expired == 1


@pytest.mark.parametrize("id", [1, 7, -1, 2**70, "x", "0"])
def test_what_was_never_issued_is_unknown(id: object) -> None:
    rec = make()
    rec.forecast(0.5)
    text = refusal(UnknownTicket, rec, rec.observe, id, 1)
    assert text == f"ticket must be one that is open here, got {id!r}"


@pytest.mark.parametrize("id", [None, 0.0, True, b"0", [0], {}, object], ids=repr)
def test_what_is_no_ticket_is_refused(id: object) -> None:
    rec = make()
    rec.forecast(0.5)
    text = refusal(InvalidType, rec, rec.observe, id, 1)
    assert text == f"ticket must be a Ticket or its id, got {id!r}"


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 3},
        {"key": "other"},
        {"method": "regret_matching"},
        {"buckets": 4},
        {"resolution": 6},
        {"grid": "midpoints"},
        {"prior": 0},
    ],
    ids=str,
)
def test_a_ticket_of_another_recalibrator_is_foreign(options: dict) -> None:
    method = options.pop("method", "foster_hart")
    rec, other = make(), make(method, **options)
    mine, theirs = rec.forecast(0.5), other.forecast(0.5)
    text = refusal(ForeignTicket, rec, rec.observe, theirs, 1)
    assert text == f"ticket must be of this recalibrator, got another's: {theirs!r}"
    other.observe(theirs, 1)
    rec.observe(mine, 1)
    assert refusal(ForeignTicket, rec, rec.correct, theirs, 0).startswith("ticket must be of this")
    options["method"] = method


@pytest.mark.parametrize("open_tickets", [2, 400])
@pytest.mark.parametrize(
    "change",
    [
        {"number": 1},
        {"raw": 0.6},
        {"weight": 0.25},
        {"place": [1, 0, 0]},
        {"place": [0, 2, 0]},
        {"place": [1, 2, 1]},
    ],
    ids=str,
)
def test_an_altered_ticket_is_refused(change: dict, open_tickets: int) -> None:
    rec = make()
    tickets = [rec.forecast(0.5) for _ in range(open_tickets)]
    altered = Ticket.from_dict(tickets[0].to_dict() | change)
    text = refusal(ForeignTicket, rec, rec.observe, altered, 1)
    assert text == f"ticket must be as it was issued, got an altered one: {altered!r}"
    rec.observe(tickets[0], 1)


@pytest.mark.parametrize(
    "change",
    [
        {"place": [0, 6, 0]},
        {"place": [0, -1, 0]},
        {"place": [-1, 0, 0]},
        {"place": [0, 0, 2]},
        {"place": [0, 0]},
        {"place": None},
        {"place": [2**21, 0, 0]},
        {"place": [0, 0, 1], "weight": 0.5},
        {"place": [0, 5, 0], "weight": 0.5},
        {"weight": 1.5},
        {"weight": -0.5},
        {"weight": "half"},
        {"weight": float("nan")},
        {"raw": 2.0},
        {"raw": None},
        {"number": float("inf")},
        {"number": -1},
        {"number": 1.5},
        {"id": []},
        {"id": None},
        {"id": 0.0},
        {"id": True},
        {"time": "noon"},
        {"clock": "x"},
        {"law": 3},
        {"law": ["x"]},
        {"law": [1.0]},
        {"grid": "x"},
        {"resolution": 0},
        {"issuer": None},
        {"outcome": 2},
        {"outcome": "1"},
    ],
    ids=str,
)
def test_data_that_are_no_ticket_are_refused(change: dict) -> None:
    data = make().forecast(0.5).to_dict()
    with pytest.raises(CorruptState, match=r"^ticket must be what Ticket.to_dict\(\) gave, got "):
        Ticket.from_dict(data | change)


@pytest.mark.parametrize("data", [None, [], "ticket", {}, 3], ids=repr)
def test_what_is_no_data_of_a_ticket_is_refused(data: object) -> None:
    with pytest.raises(CorruptState, match=r"^ticket must be what Ticket.to_dict\(\) gave, got "):
        Ticket.from_dict(data)


@pytest.mark.parametrize("missing", list(make().forecast(0.5).to_dict()))
def test_a_ticket_is_refused_if_a_part_is_missing(missing: str) -> None:
    data = make().forecast(0.5).to_dict()
    del data[missing]
    with pytest.raises(CorruptState):
        Ticket.from_dict(data)


# Tickets themselves.


@pytest.mark.parametrize("grid", GRIDS)
@every_name
def test_a_ticket_survives_as_json(name: str, grid: str) -> None:
    rec = make(name, grid=grid, resolution=4)
    for k, p in enumerate([0.0, 0.4, 0.9, 1.0]):
        ticket = rec.forecast(p, id=f"n{k}", time=k)
        again = Ticket.from_dict(json.loads(json.dumps(ticket.to_dict())))
        assert again.to_dict() == ticket.to_dict()
        assert again.mixture == ticket.mixture
        assert (again.value, again.mean, again.bucket) == (ticket.value, ticket.mean, ticket.bucket)
        assert rec.coin_of(again) == rec.coin_of(ticket)
        assert repr(again) == repr(ticket)


def test_a_ticket_says_what_it_is() -> None:
    rec = Recalibrator(seed=7)
    ticket = rec.forecast(0.83, id="order 17")
    assert repr(ticket) == "Ticket(id='order 17', value=0.85, mean=0.825, open)"
    rec.observe(ticket, 1)
    assert repr(ticket) == "Ticket(id='order 17', value=0.85, mean=0.825, outcome=1)"


@every_name
def test_a_ticket_that_was_stored_tells_what_is_still_known_of_it(name: str) -> None:
    rec = make(name, resolution=2, buckets=1)
    tickets = [rec.forecast(0.5, time=3.0) for _ in range(40)]
    again = rec.copy()
    for ticket in tickets:
        told = again.observe(ticket.id, 1)
        assert (told.value, told.raw, told.time) == (ticket.value, 0.5, 3.0)
        assert repr(told).startswith(f"Ticket(id={ticket.id}, value={ticket.value:g}")
        if not registered.on_all_cells(name):
            assert told.mixture == ticket.mixture
        else:
            with pytest.raises(InvalidInput) as refused:
                _ = told.mean
            expected = "mixture must be asked of the ticket that forecast() returned"
            assert str(refused.value) == expected
            assert Ticket.from_dict(told.to_dict()).to_dict() == told.to_dict()


def test_an_id_may_be_used_again_once_it_is_closed() -> None:
    rec = make()
    first = rec.forecast(0.5, id="a")
    text = refusal(RepeatedTicket, rec, lambda: rec.forecast(0.5, id="a"))
    assert text == "id must not be that of an open ticket, got 'a'"
    told = rec.observe("a", 1)
    second = rec.forecast(0.5, id="a")
    again = rec.observe("a", 0)
    assert (first.number, told.number, told.outcome) == (0, 0, 1)
    assert (second.number, again.number, again.outcome) == (1, 1, 0)
    third = rec.forecast(0.5, id="a")
    assert rec.observe(third, 1) is third
    assert third.outcome == 1


@pytest.mark.parametrize("count", [2, 300])
def test_an_id_may_be_used_again_once_it_expired(count: int) -> None:
    rec = make(max_open=count)
    rec.forecast(0.5, id="a")
    for _ in range(count - 1):
        rec.forecast(0.5)
    refusal(RepeatedTicket, rec, lambda: rec.forecast(0.5, id="a"))
    rec.forecast(0.5)
    assert rec.forecast(0.5, id="a").number == count + 1
    rec.observe("a", 1)


@pytest.mark.parametrize("id", ["", 3, 3.5, b"a", None.__class__, ["a"]], ids=repr)
def test_an_id_must_be_a_string(id: object) -> None:
    rec = make()
    text = refusal(InvalidType, rec, lambda: rec.forecast(0.5, id=id))
    assert text == f"id must be a string that is not empty, got {id!r}"


@pytest.mark.parametrize("id", ["\ud800", "ü", "a" * 10_000, "\0", "0"], ids=ascii)
def test_any_string_will_do_even_when_it_is_stored(id: str) -> None:
    rec = make()
    rec.forecast(0.5, id=id)
    for _ in range(300):
        rec.forecast(0.1)
    again = rec.copy()
    rec.observe(id, 1)
    again.observe(id, 1)
    assert rec.to_bytes() == again.to_bytes()


def test_what_this_class_does_not_use_is_refused() -> None:
    rec = make()
    text = refusal(TypeError, rec, lambda: rec.forecast(0.5, groups="x"))
    assert text.endswith("got an unexpected keyword argument 'groups'")
    text = refusal(TypeError, rec, lambda: rec.replay([0.5], [1], groups=["x"]))
    assert text.endswith("got an unexpected keyword argument 'groups'")


@pytest.mark.parametrize("stored", [False, True])
def test_an_outcome_cannot_come_before_its_forecast(stored: bool) -> None:
    rec = make()
    rec.forecast(0.5, time=3)
    rec.forecast(0.5)
    rec = rec.copy() if stored else rec
    text = refusal(InvalidInput, rec, lambda: rec.observe(0, 1, time=2.5))
    assert text == "time must not be before the forecast's 3.0, got 2.5"
    text = refusal(InvalidInput, rec, lambda: rec.observe(0, 1, time=float("nan")))
    assert text == "time must be a finite number or an np.datetime64, got nan"
    text = refusal(InvalidType, rec, lambda: rec.forecast(0.5, time="noon"))
    assert text == "time must be a finite number or an np.datetime64, got 'noon'"
    rec.observe(0, 1, time=3.0)
    rec.observe(1, 1, time=-5.0)


# Correcting.


def blocks(rec: Recalibrator) -> list[list[int]]:
    """What each bucket remembers."""
    return rec.spec.layout.blocks_of(rec._arena.row()).tolist()


def cells(rec: Recalibrator) -> np.ndarray:
    """What the cells of each bucket remember: a table of words for each bucket."""
    return rec.calibrator.cells_of(rec.spec.layout.blocks_of(rec._arena.row()))


def cells_of(rec: Recalibrator) -> list[list[list[int]]]:
    return cells(rec).tolist()


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", WHOLE)
@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=1, max_size=25))
@settings(max_examples=8)
def test_correcting_is_as_if_the_other_outcome_had_come(name, grid, plays) -> None:
    wrong, right = (make(name, grid=grid, resolution=4) for _ in range(2))
    raw, _ = players.stream(len(plays), 5)
    tickets = [(wrong.forecast(p), right.forecast(p)) for p in raw]
    for (mine, its), (y, changes) in zip(tickets, plays, strict=True):
        wrong.observe(mine, 1 - y if changes else y)
        right.observe(its, y)
    for (mine, _), (y, changes) in zip(tickets, plays, strict=True):
        if changes:
            assert wrong.correct(mine, y) is mine
            assert mine.outcome == y
    assert blocks(wrong) == blocks(right)
    mine, its = wrong.certificate(), right.certificate()
    assert (mine.c1, mine.c2, mine.loss) == (its.c1, its.c2, its.loss)
    assert mine.raw_loss == pytest.approx(its.raw_loss, abs=1e-12)


@pytest.mark.parametrize("loss", ["squared", "log", "misclassification", "spherical"])
@every_name
def test_correcting_twice_brings_the_record_back(name: str, loss: str) -> None:
    rec = make(name, loss=loss)
    raw, outcomes = players.stream(30, 6)
    tickets = []
    for p, y in zip(raw, outcomes, strict=True):
        tickets.append(rec.observe(rec.forecast(p), y))
    before = rec.certificate()
    for ticket in tickets[::4]:
        rec.correct(ticket, 1 - ticket.outcome)
    between = rec.certificate()
    assert (between.c1, between.loss) != (before.c1, before.loss)
    for ticket in tickets[::4]:
        rec.correct(ticket, 1 - ticket.outcome)
    after = rec.certificate()
    assert (after.c1, after.c2, after.loss) == (before.c1, before.c2, before.loss)
    assert after.raw_loss == pytest.approx(before.raw_loss, abs=1e-12)


def test_an_infinite_loss_can_be_corrected_too() -> None:
    rec = make(loss="log")
    ticket = rec.observe(rec.forecast(0.0), 1)
    rec.observe(rec.forecast(0.5), 1)
    assert rec.certificate().raw_loss == np.inf
    rec.correct(ticket, 0)
    assert rec.certificate().raw_loss == pytest.approx(np.log(2) / 2)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("updates", ["realised", "expected"])
@pytest.mark.parametrize("options", [{}, {"step": "sqrt"}, {"step": "fixed", "eta": 0.5}], ids=str)
def test_blackwell_learns_a_correction_as_one_more_step(options, updates, grid) -> None:
    for prior in (0, 1):
        rec = make("blackwell", updates=updates, grid=grid, prior=prior, buckets=20, **options)
        tickets = []
        for k in range(40):
            tickets.append(rec.observe(rec.forecast(0.0 if k % 2 else 1.0), 0 if k % 2 else 1))
        for ticket in tickets:
            rec.correct(ticket, 1 - ticket.outcome)
        theta = cells(rec)[[0, -1], :, 2].copy().view(float)
        assert np.isfinite(theta).all()
        assert np.abs(theta).max() <= 1.0
        # Outcomes of the first bucket are ones now, so its scores go up; the last one's go down.
        assert theta[0].max() > 0.0 > theta[1].min()
        assert rec.certificate().c1 > 0.5


@pytest.mark.parametrize("name", ALL_PAIRS)
def test_a_corrected_law_is_not_taken_for_the_announced_one(name: str) -> None:
    one, other = (make(name, updates="expected", buckets=1) for _ in range(2))
    for rec in (one, other):
        rec.observe(rec.forecast(0.5), 1)
    first = [rec.observe(rec.forecast(0.5), 1) for rec in (one, other)]
    mine, its = one.forecast(0.5), other.forecast(0.5)
    one.correct(first[0], 0)
    other.correct(first[1], 0)
    # A forecast in between shows that the law of the ticket is no longer at hand.
    other.forecast(0.5)
    one.observe(mine, 1)
    other.observe(its, 1)
    W = [cells(rec)[0, :, 2:] for rec in (one, other)]
    assert (W[0] == W[1]).all()


@pytest.mark.parametrize("open_tickets", [0, 400])
def test_what_cannot_be_corrected_is_refused(open_tickets: int) -> None:
    rec = make(max_open=500)
    closed = rec.observe(rec.forecast(0.5), 1)
    waiting = rec.forecast(0.5)
    for _ in range(open_tickets):
        rec.forecast(0.1)
    text = refusal(RepeatedTicket, rec, rec.correct, closed, 1)
    assert text == "outcome must differ from the known one to correct it, got 1 again"
    text = refusal(InvalidInput, rec, rec.correct, waiting, 1)
    assert text == "ticket 1 must have an outcome to be corrected, got an open one"
    assert refusal(InvalidType, rec, rec.correct, 0, 1) == "ticket must be a Ticket, got 0"
    assert refusal(InvalidInput, rec, rec.correct, closed, 2) == "outcome must be 0 or 1, got 2"
    later = rec.copy().forecast(0.5)
    text = refusal(UnknownTicket, rec, rec.correct, later, 1)
    assert text == f"ticket must be one that was issued here, got {later!r}"
    for _ in range(500):
        rec.forecast(0.1)
    text = refusal(ExpiredTicket, rec, rec.correct, waiting, 1)
    told = f"got one of {501 + open_tickets} forecasts ago: it expired"
    assert text == f"ticket 1 must be among the last 500, {told}"
    rec.correct(closed, 0)


def test_a_ticket_can_be_corrected_long_after_it_was_stored() -> None:
    rec, other = make(), make()
    ticket = rec.observe(rec.forecast(0.5), 1)
    other.observe(other.forecast(0.5), 0)
    kept = json.dumps(ticket.to_dict())
    raw, outcomes = players.stream(50, 8)
    again = rec.copy()
    again.correct(Ticket.from_dict(json.loads(kept)), 0)
    assert blocks(again) == blocks(other)
    again.replay(raw, outcomes)


# Single calls.


@every_name
def test_learning_without_predicting_plays_the_round_that_prediction_would_have_shown(name) -> None:
    raw, outcomes = players.stream(40, 9)
    one, other = make(name), make(name)
    players.one_by_one(one, raw, outcomes)
    for p, y in zip(raw, outcomes, strict=True):
        other.learn_one(p, y)
    assert one.to_bytes() == other.to_bytes()


@every_name
def test_a_round_overtaken_by_a_forecast_of_its_bucket_is_refused(name: str) -> None:
    rec = make(name)
    rec.predict_one(0.5)
    rec.forecast(0.5)
    text = refusal(StaleForecast, rec, rec.learn_one, 0.5, 1)
    assert "came between" in text
    assert "use forecast and observe where rounds overlap" in text
    rec.predict_one(0.5)
    rec.learn_one(0.5, 1)


@every_name
def test_a_forecast_in_another_bucket_overtakes_nothing(name: str) -> None:
    one, other = make(name), make(name)
    value = one.predict_one(0.5)
    one.forecast(0.1)
    one.learn_one(0.5, 1)
    other.forecast(0.1)
    ticket = other.forecast(0.5)
    assert ticket.value == value
    other.observe(ticket, 1)
    # Which of the two came first is all that differs.
    assert cells_of(one) == cells_of(other)
    assert one.rounds == other.rounds == 1


@every_name
def test_a_batch_overtakes_what_was_predicted_before(name: str) -> None:
    rec = make(name)
    rec.predict_one(0.5)
    rec.replay([0.5], [1])
    refusal(StaleForecast, rec, rec.learn_one, 0.5, 1)


@every_name
def test_a_late_outcome_between_predicting_and_learning_is_what_it_is_for_tickets(name) -> None:
    one, other = make(name, buckets=1), make(name, buckets=1)
    late = [rec.forecast(0.5) for rec in (one, other)]
    for rec in (one, other):
        rec.forecast(0.5)
    value = one.predict_one(0.5)
    ticket = other.forecast(0.5)
    assert ticket.value == value
    one.observe(late[0], 1)
    other.observe(late[1], 1)
    one.learn_one(0.5, 0)
    other.observe(ticket, 0)
    assert one.rounds == other.rounds == 2
    assert cells_of(one) == cells_of(other)


def test_two_predictions_of_one_round_can_have_one_outcome() -> None:
    rec = make()
    rec.predict_one(0.5)
    rec.predict_one(0.6)
    rec.learn_one(0.6, 1)
    refusal(StaleForecast, rec, rec.learn_one, 0.5, 1)


@every_name
def test_a_stale_prediction_stays_so_for_its_raw_forecast_alone(name: str) -> None:
    rec, other = make(name), make(name)
    rec.predict_one(0.5)
    for each in (rec, other):
        each.forecast(0.5)
    for _ in range(3):
        refusal(StaleForecast, rec, rec.learn_one, 0.5, 1)
    # Nothing was seen for another raw forecast of that bucket: it is drawn now.
    for each in (rec, other):
        each.learn_one(0.6, 1)
    refusal(StaleForecast, rec, rec.learn_one, 0.5, 1)
    assert rec.predict_one(0.5) == other.predict_one(0.5)
    for each in (rec, other):
        each.learn_one(0.5, 1)
        each.learn_one(0.5, 0)
    assert rec == other


# Corrections that cannot be right.


def test_a_ticket_without_its_outcome_cannot_be_corrected() -> None:
    rec = make()
    ticket = rec.forecast(0.5)
    for _ in range(400):
        rec.forecast(0.1)
    settled = rec.observe(ticket.id, 1)
    text = refusal(InvalidInput, rec, rec.correct, ticket, 0)
    assert text.endswith("got one without; pass what observe() returned, or was=")
    rec.correct(settled, 0)


@every_name
def test_a_second_copy_of_a_ticket_cannot_correct_again(name: str) -> None:
    rec = make(name)
    ticket = rec.observe(rec.forecast(0.5), 1)
    copy = Ticket.from_dict(ticket.to_dict())
    rec.correct(ticket, 0)
    forget_corrections(rec)
    text = refusal(RepeatedTicket, rec, rec.correct, copy, 0)
    assert text.endswith("got 0 ones in 1 rounds: was it corrected already?")


@pytest.mark.parametrize(
    "change", [{"place": [0, 6, 0], "resolution": 8}, {"place": [3, 2, 0]}, {"grid": "midpoints"}]
)
def test_an_altered_ticket_cannot_be_corrected(change: dict[str, object]) -> None:
    rec = make()
    ticket = rec.observe(rec.forecast(0.5), 1)
    altered = Ticket.from_dict(ticket.to_dict() | change)
    assert "got an altered one" in refusal(ForeignTicket, rec, rec.correct, altered, 0)


def test_a_closed_ticket_whose_name_is_open_again_is_told_apart_from_it() -> None:
    rec = make()
    first = rec.observe(rec.forecast(0.5, id="a"), 1)
    rec.forecast(0.2, id="a")
    assert "is known" in refusal(RepeatedTicket, rec, rec.observe, first, 1)
    rec.correct(first, 0)
    assert rec.open == 1


@pytest.mark.parametrize("name", ["place", "weight"])
def test_where_a_draw_fell_cannot_be_changed(name: str) -> None:
    ticket = make().forecast(0.5)
    with pytest.raises(AttributeError):
        setattr(ticket, name, 5)


# Rounds that came between.


def test_a_batch_elsewhere_does_not_overtake_a_prediction() -> None:
    rec, other = make(), make()
    assert rec.predict_one(0.9) == other.predict_one(0.9)
    for each in (rec, other):
        each.replay([], [])
        each.replay([0.1, 0.2], [0, 1])
    rec.learn_one(0.9, 1)
    other.learn_one(0.9, 1)
    assert rec == other
    rec.predict_one(0.9)
    rec.replay([0.1, 0.95], [0, 1])
    assert "came between" in refusal(StaleForecast, rec, rec.learn_one, 0.9, 1)


# Delay.


def test_the_delay_counts_outcomes_that_were_missing_and_came() -> None:
    rec = make()
    for _ in range(10):
        rec.observe(rec.forecast(0.5), 1)
        rec.learn_one(0.5, 1)
    assert rec.delay == 0
    tickets = [rec.forecast(0.4) for _ in range(5)]
    assert rec.delay == 0
    rec.observe(tickets[3], 1)
    assert rec.delay == 1
    rec.observe(tickets[0], 1)
    assert rec.delay == rec.certificate().delay == 4
    assert Recalibrator.from_bytes(rec.to_bytes()).delay == 4


def test_an_outcome_that_never_comes_is_no_delay() -> None:
    rec = make()
    rec.forecast(0.4)
    for _ in range(50):
        rec.observe(rec.forecast(0.5), 1)
    assert rec.delay == 0
    late = rec.forecast(0.3)
    for _ in range(50):
        rec.observe(rec.forecast(0.5), 1)
    rec.observe(late, 1)
    assert rec.delay == 2


@pytest.mark.parametrize("name", ["foster_hart", "regret_matching"])
def test_bounds_get_weaker_with_the_delay(name: str) -> None:
    prompt, late = make(name), make(name)
    prompt.replay([0.5] * 200, [0, 1] * 100)
    late.replay([0.5] * 200, [0, 1] * 100, available=np.arange(200) + 20.0)
    assert late.delay == 19
    late.replay([0.5] * 20, [0, 1] * 10)
    pairs = zip(prompt.certificate().bounds, late.certificate().bounds, strict=True)
    assert all(float(one) < float(other) for one, other in pairs)


@pytest.mark.parametrize("name", [name for name in NAMES if not registered.patient(name)])
def test_rules_without_a_theorem_about_delay_promise_nothing_then(name: str) -> None:
    rec = make(name)
    rec.replay([0.5] * 20, [0, 1] * 10, available=np.arange(20) + 3.0)
    certificate = rec.certificate()
    assert certificate.bounds == ()
    assert "no guarantee" in str(certificate)
