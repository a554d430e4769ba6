"""The laws of the binary core, for every recalibrator over classes."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from test_classes import stream

from calibrant.classes import (
    ClassCalibrant,
    ClassTicket,
    OneVsRest,
    SimplexRecalibrator,
    TopLabel,
    recalibrator,
)
from calibrant.core.codec import Document
from calibrant.errors import (
    CorruptState,
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownTicket,
)

MAKERS = {
    "class calibrant": lambda **o: ClassCalibrant(3, **({"seed": 1} | o)),
    "class calibrant, Algorithm 1": lambda **o: ClassCalibrant(
        3, engine="recalibrator", **({"seed": 1} | o)
    ),
    "one-vs-rest": lambda **o: OneVsRest(3, **({"seed": 1, "renormalise": "divide"} | o)),
    "one-vs-rest, Algorithm 1": lambda **o: OneVsRest(
        3, engine="recalibrator", **({"seed": 1} | o)
    ),
    "top-label": lambda **o: TopLabel(3, **({"seed": 1} | o)),
    "confidence": lambda **o: TopLabel(3, conditional=False, **({"seed": 1} | o)),
    "simplex": lambda **o: SimplexRecalibrator(3, resolution=4, cells=2, **({"seed": 1} | o)),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
RAW = [0.5, 0.3, 0.2]


def by_tickets(rec, raw, outcomes):
    tickets = []
    for row, y in zip(raw, outcomes.tolist(), strict=True):
        tickets.append(rec.forecast(row))
        rec.observe(tickets[-1], y)
    return [t.value.tolist() for t in tickets], [t.mean.tolist() for t in tickets]


def one_by_one(rec, raw, outcomes):
    values = []
    for row, y in zip(raw, outcomes.tolist(), strict=True):
        values.append(rec.predict_one(row).tolist())
        rec.learn_one(row, y)
    return values


@every
def test_single_rounds_both_ways_and_batches_agree_to_the_bit(make) -> None:
    raw, outcomes = stream(60, 3)
    batch, tickets, singly, learned = make(), make(), make(), make()
    run = batch.replay(raw, outcomes)
    values, means = by_tickets(tickets, raw, outcomes)
    assert run.forecast.tolist() == values
    assert run.mean.tolist() == means
    assert one_by_one(singly, raw, outcomes) == values
    for row, y in zip(raw, outcomes.tolist(), strict=True):
        learned.learn_one(row, y)
    assert batch == tickets == singly == learned
    assert len(run) == 60
    assert run.first == 0


@every
def test_a_batch_may_be_cut_anywhere_and_stored_in_between(make) -> None:
    raw, outcomes = stream(90, 3, seed=2)
    whole, parts = make(), make()
    expected = whole.replay(raw, outcomes).forecast.tolist()
    found = []
    for start, end in ((0, 0), (0, 31), (31, 32), (32, 90)):
        found += parts.replay(raw[start:end], outcomes[start:end]).forecast.tolist()
        parts = type(parts).from_bytes(parts.to_bytes())
    assert found == expected
    assert parts == whole


@every
def test_forecasts_lie_in_the_unit_interval_and_announce_before_the_first_outcome(make) -> None:
    ticket = make().forecast(RAW)
    assert isinstance(ticket, ClassTicket)
    for vector in (ticket.value, ticket.mean):
        assert vector.shape == (3,)
        assert (vector >= 0.0).all()
        assert (vector <= 1.0).all()
    assert ticket.raw.tolist() == RAW
    assert make().classes == 3
    assert (ticket.id, ticket.number, ticket.time, ticket.outcome) == (0, 0, None, None)


@every
@pytest.mark.parametrize("details", [{"id": ""}, {"id": 3}, {"time": "now"}, {"time": np.inf}])
def test_bad_names_and_times_are_refused(make, details) -> None:
    rec = make()
    with pytest.raises((InvalidInput, InvalidType), match=r"id must be|time must be"):
        rec.forecast(RAW, **details)
    assert rec.issued == 0


@every
@pytest.mark.parametrize("raw", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [1 / 3] * 3])
def test_corners_edges_and_the_middle_work(make, raw) -> None:
    rec = make()
    for y in (0, 1, 2, 0):
        rec.observe(rec.forecast(raw), y)
    assert rec.rounds == 4


@every
def test_predictions_are_no_part_of_a_state(make) -> None:
    rec = make()
    before = rec.to_bytes()
    assert rec.predict_one(RAW).tolist() == rec.predict_one(RAW).tolist()
    assert rec.to_bytes() == before
    assert rec.issued == 0


@every
def test_outcomes_come_late_and_in_any_order_by_ticket_or_id(make) -> None:
    raw, outcomes = stream(40, 3, seed=3)
    rec, other = make(), make()
    first = [rec.forecast(row) for row in raw]
    again = [other.forecast(row, id=f"round {k}") for k, row in enumerate(raw)]
    assert [t.value.tolist() for t in first] == [t.value.tolist() for t in again]
    order = np.random.default_rng(0).permutation(40).tolist()
    for k in order[:20]:
        rec.observe(first[k], int(outcomes[k]))
        other.observe(f"round {k}", int(outcomes[k]))
    rec = type(rec).from_bytes(rec.to_bytes())
    assert rec.open == other.open == 20
    for k in order[20:]:
        rec.observe(k, int(outcomes[k]))
        other.observe(again[k], int(outcomes[k]))
    assert (rec.rounds, rec.issued, rec.open) == (40, 40, 0)
    assert rec.delay == other.delay > 0
    assert rec == other
    assert again[order[-1]].outcome == outcomes[order[-1]]
    assert rec.predict_one(RAW).tolist() == other.predict_one(RAW).tolist()


@every
def test_names_survive_being_stored(make) -> None:
    rec = make()
    rec.forecast(RAW, id="a", time=3.0)
    rec.forecast(RAW)
    again = type(rec).from_dict(rec.to_dict())
    assert again == rec
    with pytest.raises(RepeatedTicket, match="id must not be that of an open ticket, got 'a'"):
        again.forecast(RAW, id="a")
    with pytest.raises(InvalidInput, match=r"time must not be before the forecast's 3\.0, got 2"):
        again.observe("a", 0, time=2.0)
    again.observe("a", 0, time=3.5)
    again.observe(1, 0, time=0.0)
    again.forecast(RAW, id="a")
    assert again.open == 1


@every
def test_a_ticket_that_is_not_open_says_why(make) -> None:
    rec = make()
    ticket = rec.forecast(RAW)
    rec.observe(ticket, 1)
    before = rec.to_bytes()
    with pytest.raises(
        RepeatedTicket, match="ticket 0 must be open, got one whose outcome 1 is kn"
    ):
        rec.observe(ticket, 1)
    with pytest.raises(RepeatedTicket):
        rec.observe(0, 1)
    with pytest.raises(UnknownTicket, match="ticket must be one that is open here, got 'nobody'"):
        rec.observe("nobody", 1)
    with pytest.raises(UnknownTicket):
        rec.observe(7, 1)
    with pytest.raises(ForeignTicket, match="ticket must be of this recalibrator, got another's"):
        rec.observe(make(seed=2).forecast(RAW), 1)
    with pytest.raises(InvalidType, match="or its id, got True"):
        rec.observe(True, 1)
    assert rec.to_bytes() == before
    assert "outcome=1" in repr(ticket)


@every
def test_a_name_that_was_given_away_again_is_the_new_tickets(make) -> None:
    rec = make()
    old = rec.forecast(RAW, id="a")
    rec.observe(old, 0)
    rec.forecast(RAW, id="a")
    old._outcome = None
    with pytest.raises(RepeatedTicket):
        rec.observe(old, 0)
    assert rec.open == 1


@every
def test_tickets_expire_by_count_and_leave_nothing_behind(make) -> None:
    rec = make(max_open=8)
    tickets = [rec.forecast(RAW, id=f"t{k}") for k in range(11)]
    with pytest.raises(ExpiredTicket, match="must be among the last 8, got one of 11 forecasts ag"):
        rec.observe(tickets[0], 1)
    rec.forecast(RAW, id="t2")
    assert rec.open == 8
    rec.observe(tickets[5], 1)
    assert type(rec).from_bytes(rec.to_bytes()) == rec
    record = rec.certificate()
    assert (record.rounds, record.open, record.expired) == (1, 7, 4)
    for k in range(30):
        rec.observe(rec.forecast(RAW), k % 3)
    assert rec.open == 0
    assert all(part.open == 0 for part in getattr(rec.certificate(), "parts", {}).values())


@every
def test_copies_are_equal_and_independent(make) -> None:
    raw, outcomes = stream(30, 3, seed=4)
    rec = make()
    rec.replay(raw, outcomes)
    rec.forecast(RAW)
    for again in (rec.copy(), copy.deepcopy(rec), pickle.loads(pickle.dumps(rec))):
        assert again == rec
        again.learn_one(RAW, 0)
        assert again != rec
    assert rec != "something else"
    with pytest.raises(TypeError, match="unhashable"):
        hash(rec)
    assert repr(rec).startswith(f"{type(rec).__name__}(classes=3, ")
    assert repr(rec).endswith("rounds=30)")


@every
def test_seeds_and_keys_fix_the_draws(make) -> None:
    raw, outcomes = stream(60, 3, seed=5)
    first = make().replay(raw, outcomes).forecast.tolist()
    assert make().replay(raw, outcomes).forecast.tolist() == first
    assert make(seed=2).replay(raw, outcomes).forecast.tolist() != first
    assert make(key="b").replay(raw, outcomes).forecast.tolist() != first
    assert make(seed=None) != make(seed=None)


@every
def test_states_that_make_no_sense_are_refused(make) -> None:
    rec = make()
    rec.learn_one(RAW, 0)
    rec.forecast(RAW)
    document = rec._document()

    def refuse(settings, arrays) -> None:
        made = Document(rec.kind, settings, arrays, rec.version)
        with pytest.raises(CorruptState):
            type(rec).from_bytes(made.to_bytes())

    for change in ({"classes": 1}, {"max_open": 0}, {"max_open": "few"}):
        refuse(document.settings | change, document.arrays)
    for name in {*document.settings} - {"raw_safe"}:
        settings = {key: told for key, told in document.settings.items() if key != name}
        refuse(settings, document.arrays)
    for name, words in document.arrays.items():
        arrays = {key: words for key, words in document.arrays.items() if key != name}
        refuse(document.settings, arrays)
        if len(words):
            refuse(document.settings, document.arrays | {name: words[:-1]})
    # Any word may be a time, which comes third.
    for word in {*range(len(document.arrays["tickets"]))} - {2}:
        tickets = document.arrays["tickets"].copy()
        tickets[word] = -2
        refuse(document.settings, document.arrays | {"tickets": tickets})
    with pytest.raises(CorruptState):
        type(rec).from_bytes(rec.to_bytes()[:-1])
    with pytest.raises(CorruptState, match="kind"):
        type(rec).from_bytes(Document("other", {}).to_bytes())


@every
def test_threads_lose_nothing(make) -> None:
    rec = make()

    def work(k: int) -> None:
        for y in range(20):
            rec.observe(rec.forecast(RAW), (k + y) % 3)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (rec.rounds, rec.issued, rec.open) == (80, 80, 0)
    assert type(rec).from_bytes(rec.to_bytes()) == rec


@every
def test_states_do_not_grow_with_rounds(make) -> None:
    raw, outcomes = stream(20, 3, seed=6)
    rec = make()
    rec.replay(np.tile(raw, (8, 1)), np.tile(outcomes, 8))
    before = len(rec.to_bytes())
    rec.replay(np.tile(raw, (8, 1)), np.tile(outcomes, 8))
    assert len(rec.to_bytes()) <= before * 1.4


def test_the_default_is_one_for_any_number_of_classes() -> None:
    assert {type(recalibrator(k)) for k in (2, 3, 50, 200)} == {ClassCalibrant}
    assert type(recalibrator(50, renormalise="project")) is OneVsRest
    assert type(recalibrator(3, conditional=True)) is TopLabel
