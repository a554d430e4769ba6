"""A group recalibrator is a stream: late batches, expiry, corrections, stored tickets."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from golden.state_steps import RULES, STATES, dictionary_of, unpacked
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.core.codec import Document
from calibrant.errors import (
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownTicket,
)
from calibrant.groups import GroupRecalibrator, GroupTicket, History, Period, TimeIntervals
from calibrant.groups.spec import text_of
from calibrant.kernels.compile import available as compiler
from calibrant.kernels.groups import LOGS, MEMBERSHIPS
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, MOST_OUTSTANDING, ROUNDS, SCRATCH
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.stream import Stream

pytestmark = pytest.mark.base

SIZES: dict[str, Any] = {"resolution": 6, "buckets": 3, "seed": 5}
NAMES = ["north", "south", 3, Period("month", 1)]


def rounds(count: int, seed: int = 1) -> tuple[Any, Any, Any]:
    """Return raw forecasts, outcomes and groups of a stream."""
    rng = np.random.default_rng(seed)
    chosen = rng.random((count, len(NAMES))) < 0.4
    rows = [[name for name, on in zip(NAMES, row, strict=True) if on] for row in chosen]
    return rng.random(count), (rng.random(count) < 0.4).astype(int), rows


def held(rec: GroupRecalibrator) -> list[Any]:
    """Return the names of open tickets that a state stores."""
    document = Document.from_bytes(rec.to_bytes(), rec.kind, rec.version)
    return sorted(text_of(document.arrays["held"]))


def after_a_one(context: Any, history: History) -> bool:
    return history.outcomes[-1:] == (1,)


# Late outcomes of a batch.


def one_by_one(rec: GroupRecalibrator, raw: Any, outcomes: Any, rows: Any, known: Any) -> Any:
    """Play rows 0, 1, ... with an outcome known before the first row that is not earlier."""
    tickets, waiting = [], []
    for t in range(len(raw) + 1):
        now = min(t, len(raw) - 1)
        due = sorted((known[k], k) for k in waiting if known[k] <= now)
        for _, k in due:
            rec.observe(tickets[k], int(outcomes[k]))
            waiting.remove(k)
        if t < len(raw):
            tickets.append(rec.forecast(raw[t], groups=rows[t]))
            waiting.append(t)
    return tickets, waiting


@pytest.mark.parametrize("rules", [None, TimeIntervals(4), {"odd": after_a_one}])
@settings(max_examples=25)
@given(lags=st.lists(st.integers(0, 12), min_size=1, max_size=40), seed=st.integers(0, 5))
def test_a_late_batch_is_what_the_calls_one_by_one_are(rules: Any, lags: Any, seed: int) -> None:
    raw, outcomes, rows = rounds(len(lags), seed)
    known = np.arange(len(lags)) + np.array(lags)
    batch, single = (GroupRecalibrator(rules, **SIZES) for _ in range(2))
    run = batch.replay(raw, outcomes, groups=rows, available=known)
    tickets, waiting = one_by_one(single, raw, outcomes, rows, known)
    assert batch == single
    assert run.forecast.tolist() == [ticket.value for ticket in tickets]
    assert run.mean.tolist() == [ticket.mean for ticket in tickets]
    assert run.ticket.tolist() == [ticket.number for ticket in tickets]
    assert run.pending.number.tolist() == waiting
    assert run.pending.outcome.tolist() == [outcomes[k] for k in waiting]


def test_what_is_known_at_once_is_a_prompt_batch() -> None:
    raw, outcomes, rows = rounds(60)
    late, prompt = (GroupRecalibrator(**SIZES) for _ in range(2))
    known = np.arange(60)
    one = late.replay(raw, outcomes, groups=rows, available=known)
    other = prompt.replay(raw, outcomes, groups=rows)
    assert one.forecast.tolist() == other.forecast.tolist()
    assert one.mean.tolist() == other.mean.tolist()
    assert late == prompt


def test_cut_in_two_a_late_batch_goes_on_with_what_was_pending() -> None:
    raw, outcomes, rows = rounds(60)
    time, known = np.arange(60) * 2.0, np.arange(60) * 2.0 + np.arange(60) % 7 * 3
    known[5] = np.inf
    whole, part = (GroupRecalibrator(**SIZES) for _ in range(2))
    run = whole.replay(raw, outcomes, groups=rows, available=known, time=time)
    pending, drawn = Pending(), list[float]()
    for cut in (slice(0, 25), slice(25, 26), slice(26, None)):
        more = part.replay(
            raw[cut], outcomes[cut], groups=rows[cut], available=known[cut], time=time[cut],
            carry=pending,
        )  # fmt: skip
        part = GroupRecalibrator.from_bytes(part.to_bytes())
        pending, drawn = more.pending, drawn + more.forecast.tolist()
    assert drawn == run.forecast.tolist()
    assert part == whole
    assert pending.number.tolist() == run.pending.number.tolist()
    assert part.open == len(pending) > 1
    last = part.replay([], [], available=[], carry=pending)
    assert len(last.pending) == len(pending)


def test_tickets_of_a_late_batch_are_open_and_expire() -> None:
    raw, outcomes, rows = rounds(30)
    rec = GroupRecalibrator(max_open=10, **SIZES)
    run = rec.replay(raw, outcomes, groups=rows, available=np.full(30, np.nan))
    assert (rec.issued, rec.rounds, rec.open) == (30, 0, 10)
    assert run.pending.number.tolist() == list(range(20, 30))
    assert rec.observe(25, 1).groups == tuple(rows[25])
    with pytest.raises(ExpiredTicket, match="it expired"):
        rec.observe(19, 1)


def test_a_rule_that_fails_in_a_late_batch_undoes_it_and_closes_no_ticket() -> None:
    def rule(context: Any, history: History) -> bool:
        if context == 3:
            raise ZeroDivisionError
        return True

    rec = GroupRecalibrator({"a": rule}, **SIZES)
    first = rec.replay([0.5, 0.2], [0, 1], groups=["x", "y"], available=[0.0, 3.0])
    latest = rec.forecast(0.7, groups="z")
    before = rec.to_bytes()
    with pytest.raises(ZeroDivisionError):
        rec.replay(
            [0.5] * 4, [0] * 4, groups=["new"] * 4, context=range(4), available=range(4, 8),
            time=range(4, 8), carry=first.pending,
        )  # fmt: skip
    assert rec.to_bytes() == before
    assert rec.observe(latest, 1).groups == ("z", "a")
    assert rec.observe(1, 1).groups == ("y", "a")
    assert "new" not in rec.groups


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"available": [0.0]}, "available must be a flat array of 2 times"),
        ({"available": [0.0, 0.5]}, r"available\[1\] must be not before the row's own time"),
        ({"time": [1.0, 0.0]}, r"time\[1\] must be finite and not before the row above it"),
        ({"carry": Pending(np.array([7]), np.array([0.0]), np.array([1]))}, "open here, got 7"),
        ({"carry": 3}, "carry must be a Pending, got 3"),
    ],
)
def test_a_late_batch_that_cannot_be_is_refused_and_changes_nothing(
    options: Any, text: str
) -> None:
    rec = GroupRecalibrator(**SIZES)
    rec.forecast(0.5, groups="a")
    before = rec.to_bytes()
    with pytest.raises((InvalidInput, InvalidType, UnknownTicket), match=text):
        rec.replay([0.5, 0.5], [0, 1], **options)
    assert rec.to_bytes() == before


# Tickets.


def test_a_ticket_can_be_expired_by_hand() -> None:
    rec = GroupRecalibrator(**SIZES)
    ticket, named = rec.forecast(0.5, groups="a"), rec.forecast(0.5, groups="b", id="x")
    assert rec.expire(ticket) is ticket
    assert rec.expire("x").groups == ("b",)
    assert (rec.open, rec.certificate().expired, held(rec)) == (0, 2, [])
    for gone in (ticket, named, ticket.number, "x"):
        with pytest.raises(ExpiredTicket, match="must be open, got one that was expired"):
            rec.observe(gone, 1)


def test_rounds_made_at_once_let_tickets_expire() -> None:
    rec = GroupRecalibrator(max_open=3, **SIZES)
    rec.forecast(0.5, groups="a")
    rec.learn_one(0.5, 1)
    rec.learn_one(0.5, 1)
    assert rec.open == 1
    rec.learn_one(0.5, 1)
    assert rec.open == 0
    rec.forecast(0.5, groups="a")
    rec.replay([0.5] * 3, [1] * 3)
    assert (rec.open, held(rec)) == (0, [])


def test_rounds_made_at_once_wait_behind_an_open_ticket() -> None:
    rec = GroupRecalibrator(**SIZES)
    early = rec.forecast(0.5, groups="a")
    rec.learn_one(0.5, 1, groups="a")
    rec.observe(early, 1)
    assert rec.delay == rec.certificate().delay == 1


def test_tickets_survive_bytes_and_are_corrected_after_a_restart() -> None:
    rec, right = (GroupRecalibrator(**SIZES) for _ in range(2))
    groups = ["a", 3, Period("m", 2)]
    ticket = rec.forecast(0.4, groups=groups, id="x", time=2.0)
    stored = GroupTicket.from_bytes(ticket.to_bytes())
    assert stored.to_dict() == ticket.to_dict()
    assert stored.groups == ("a", 3, Period("m", 2))
    closed = rec.observe(stored, 0, time=2.5).to_bytes()
    again = GroupRecalibrator.from_bytes(rec.to_bytes())
    assert again.correct(GroupTicket.from_bytes(closed), 1).outcome == 1
    right.observe(right.forecast(0.4, groups=groups, id="x", time=2.0), 1)
    assert again.certificate() == right.certificate()


def test_the_coin_of_a_stored_or_revived_ticket_is_known() -> None:
    rec = GroupRecalibrator(**SIZES)
    ticket = rec.forecast(0.4, groups="a")
    stored = GroupTicket.from_bytes(ticket.to_bytes())
    revived = GroupRecalibrator.from_bytes(rec.to_bytes()).observe(0, 1)
    for each in (stored, revived):
        assert rec.coin_of(each) == rec.coin_of(ticket)
        assert each.mixture.draw(rec.coin_of(each)) == ticket.index
    with pytest.raises(ForeignTicket, match="got another's"):
        rec.coin_of(GroupRecalibrator(seed=9).forecast(0.4))


def test_names_of_open_tickets_are_kept_once_and_no_longer_than_they_wait() -> None:
    rec = GroupRecalibrator(**SIZES)
    first, second = rec.forecast(0.1, groups=["a", "b"]), rec.forecast(0.2, groups=["a", "b"])
    other = rec.forecast(0.3, groups=["b", "a"])
    assert held(rec) == [["a", "b"], ["b", "a"]]
    rec.observe(first, 1)
    rec.observe(other, 1)
    assert held(rec) == [["a", "b"]]
    rec.observe(second.number, 1)
    assert held(rec) == []


def test_names_of_closed_tickets_do_not_pile_up() -> None:
    rec = GroupRecalibrator(max_groups=2000, **SIZES)
    open_tickets = [rec.forecast(0.5, groups=["kept", k]) for k in range(5)]
    for k in range(1000):
        ticket = rec.forecast(0.5, groups=k)
        rec.forecast(0.5)
        rec.observe(ticket, 1)
    assert len(rec._issuer.names) < 200
    for k in range(1000, 1500):
        number = rec.forecast(0.5, groups=k).number
        assert rec.observe(number, 1).groups == (k,)
    assert len(rec._issuer.names) < 200
    for k, ticket in enumerate(open_tickets):
        assert rec.observe(ticket.number, 1).groups == ("kept", k)


def test_an_altered_ticket_is_refused_whoever_reads_it() -> None:
    rec = GroupRecalibrator(**SIZES)
    ticket = rec.forecast(0.5, groups=["a"])
    again = GroupRecalibrator.from_bytes(rec.to_bytes())
    for groups in ([], ["a", "b"], ["b"], [["a", 1]]):
        altered = GroupTicket.from_dict(ticket.to_dict() | {"groups": groups})
        with pytest.raises(ForeignTicket, match="altered"):
            again.observe(altered, 1)
    assert again.observe(GroupTicket.from_dict(ticket.to_dict()), 1).outcome == 1


# Looks.


def test_the_mean_of_the_next_round_is_the_mean_of_its_ticket() -> None:
    rec = GroupRecalibrator(**SIZES)
    raw, outcomes, rows = rounds(80)
    for p, y, names in zip(raw, outcomes, rows, strict=True):
        mean, draw = rec.predict_mean_one(p, groups=names), rec.sample_one(p, groups=names)
        assert rec.predict_one(p, groups=names) == draw
        ticket = rec.forecast(p, groups=names)
        assert (ticket.mean, ticket.value) == (mean, draw)
        rec.observe(ticket, int(y))


def test_reading_changes_nothing() -> None:
    rec = GroupRecalibrator(TimeIntervals(4), **SIZES)
    raw, outcomes, rows = rounds(40)
    rec.replay(raw, outcomes, groups=rows)
    ticket = rec.forecast(0.5, groups="north")
    before = rec.to_bytes()
    rec.sample_one(0.5, groups=["unseen", Period("month", 7)])
    rec.predict_mean_one(0.5, groups="unseen too")
    rec.certificate()
    rec.coin_of(ticket)
    rec.copy()
    assert (rec.open, rec.issued, rec.rounds) == (1, 41, 40)
    assert "unseen" not in rec.groups
    assert rec.to_bytes() == before


def test_a_round_that_is_refused_changes_nothing() -> None:
    rec = GroupRecalibrator(max_groups=1, **SIZES)
    rec.learn_one(0.5, 1, groups="a")
    rec.sample_one(0.5, groups="b")
    before = rec.to_bytes()
    with pytest.raises(InvalidInput, match="groups must be at most 1"):
        rec.learn_one(0.5, 1, groups="b")
    with pytest.raises(InvalidInput, match="outcome must be 0 or 1"):
        rec.learn_one(0.5, 2, groups="a")
    assert rec.to_bytes() == before


def test_a_prediction_makes_one_round_and_the_next_is_drawn_anew() -> None:
    rec, plain = (GroupRecalibrator(**SIZES) for _ in range(2))
    rec.sample_one(0.5, groups="a")
    for each in (rec, plain):
        each.learn_one(0.5, 1, groups="a")
        each.learn_one(0.5, 1, groups="a")
    assert rec == plain


# One face.


def test_it_is_a_stream_of_the_present_version() -> None:
    rec = GroupRecalibrator(["a"], **SIZES)
    assert isinstance(rec, Stream)
    assert rec.max_open == 1_000_000
    assert json.loads(json.dumps(rec.to_dict()))["version"] == 4
    assert GroupRecalibrator.from_dict(rec.to_dict()) == rec


@pytest.mark.parametrize("path", sorted(STATES.glob("v1/groups_*.json")), ids=lambda p: p.stem)
def test_a_state_of_the_first_version_becomes_one_of_the_second(path: Any) -> None:
    file = json.loads(path.read_text())
    old = dictionary_of(file)["settings"]
    rec = GroupRecalibrator.from_bytes(unpacked(file["bytes"]), RULES.get(file.get("rules")))
    words = rec._arena.row()
    own = {"issued": ISSUED, "learned": ROUNDS, "lag": LONGEST_LAG, "crowd": MOST_OUTSTANDING}
    assert {name: words[place] for name, place in own.items()} == {k: old[k] for k in own}
    assert words[MEMBERSHIPS] == old["memberships"]
    assert words.view(np.float64)[LOGS].hex() == old["logs"]
    assert [list(pair) for pair in rec._recent] == old["recent"]
    assert rec.open == len(old["tickets"]) > 0
    again = GroupRecalibrator.from_bytes(rec.to_bytes(), RULES.get(file.get("rules")))
    assert again.to_dict()["version"] == 4
    for kept in old["tickets"]:
        found = again.observe(GroupTicket.from_dict(kept), 1)
        assert again.coin_of(found) == rec.coin_of(rec.observe(kept["id"], 1))
    assert again == rec


def test_the_list_of_a_round_is_whole_numbers_in_either_form() -> None:
    rec = GroupRecalibrator(**SIZES)
    rec.forecast(0.5, groups=["a", "b"])
    words = rec._arena.words()
    listed = words[words[SCRATCH] : words[SCRATCH] + 3]
    rec._arena.flat()
    again = rec._arena.words()
    assert again[again[SCRATCH] : again[SCRATCH] + 3] == listed
    assert {type(word) for word in again[again[SCRATCH] : again[SCRATCH] + 3]} == {int}


def test_context_has_an_old_name_in_a_batch() -> None:
    rule = {"late": lambda context, history: context > 5}
    new, old = (GroupRecalibrator(rule, **SIZES) for _ in range(2))
    new.replay([0.5] * 10, [0, 1] * 5, context=range(10))
    old.replay([0.5] * 10, [0, 1] * 5, contexts=range(10))
    assert new == old
    with pytest.raises(InvalidInput, match="context must be given by one name"):
        old.replay([0.5], [0], context=[1], contexts=[1])


def test_a_shape_says_nothing_of_the_state() -> None:
    shapes = set()
    rec = GroupRecalibrator(["a"], **SIZES)
    for k in range(3):
        rec.forecast(0.5, groups=["a", k])
        shapes.add(Document.from_bytes(rec.to_bytes(), rec.kind, rec.version).shape)
    assert len(shapes) == 1


def test_a_correction_can_be_taken_back() -> None:
    rec = GroupRecalibrator(**SIZES)
    ticket = rec.observe(rec.forecast(0.5, groups="a"), 0)
    before = rec.certificate()
    rec.correct(rec.correct(ticket, 1), 0)
    assert rec.certificate() == before
    with pytest.raises(RepeatedTicket, match="outcome must differ"):
        rec.correct(ticket, 0)


@pytest.mark.slow
@pytest.mark.skipif(not compiler(), reason="there is no compiler")
@pytest.mark.parametrize("form", ["l2", "exponential"])
def test_compiled_steps_give_the_same_bits_while_groups_grow(form: str) -> None:
    plain, made = (GroupRecalibrator(form=form, **SIZES) for _ in range(2))
    assert made.compile() is made
    raw, outcomes, rows = rounds(150)
    for rec in (plain, made):
        for t, (p, y, names) in enumerate(zip(raw, outcomes, rows, strict=True)):
            groups = [*names, f"group {t // 2}"]
            if t % 3:
                ticket = rec.forecast(p, groups=groups)
                rec.observe(ticket, int(y))
            else:
                rec.sample_one(p, groups=groups)
                rec.learn_one(p, int(y), groups=groups)
        rec.correct(ticket, 1 - int(y))
        rec.replay(raw, outcomes, groups=rows)
        rec.replay(raw, outcomes, groups=rows, available=np.arange(150) + 2)
    assert plain == made
    assert plain.certificate() == made.certificate()


def test_groups_of_many_forecasts_are_those_of_each() -> None:
    given = [("a",), None, ("a", "b")]
    one, other = (GroupRecalibrator(resolution=4, buckets=2, seed=3) for _ in range(2))
    one.forecast_many([0.2, 0.5, 0.9], groups=given)
    for raw, names in zip([0.2, 0.5, 0.9], given, strict=True):
        other.forecast(raw, groups=names)
    assert one == other
    one.forecast_many([0.3, 0.6])
    for raw in (0.3, 0.6):
        other.forecast(raw)
    assert one == other
