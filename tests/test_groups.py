"""Calibration in every group at once: the object, its groups, its rules and its states."""

from __future__ import annotations

import json
import pickle
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from everyone import forget_corrections
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_groups import NaiveGroups, check_pair

from calibrant import Recalibrator, bounds
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
from calibrant.groups import (
    GroupRecalibrator,
    GroupTicket,
    History,
    Period,
    TimeIntervals,
    group_errors,
)
from calibrant.groups.certificate import counted
from calibrant.groups.names import Roster, names_of
from calibrant.groups.spec import recent_words, text_of, text_words
from calibrant.kernels.gaps import FIRST
from calibrant.kernels.groups import ROOM
from calibrant.kernels.layout import ISSUED, ROUNDS
from calibrant.recalibrate.body import packed, unpacked

pytestmark = pytest.mark.base

FORMS = pytest.mark.parametrize("form", ["l2", "exponential"])
SIZES: dict[str, Any] = {"resolution": 6, "buckets": 3, "seed": 5}
NAMES = ["north", "south", 3, Period("month", 1)]

rounds_of_a_stream = st.tuples(
    st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.9, 1.0]),
    st.lists(st.sampled_from(NAMES), max_size=3),
    st.integers(0, 1),
)
streams = st.lists(rounds_of_a_stream, max_size=40)


def play(rec: GroupRecalibrator, stream: Any) -> list[GroupTicket]:
    return [rec.observe(rec.forecast(raw, groups=groups), y) for raw, groups, y in stream]


def columns(stream: Any) -> tuple[list[float], list[int], list[Any]]:
    raw, groups, outcomes = zip(*stream, strict=True)
    return list(raw), list(outcomes), list(groups)


def some_stream(rounds: int = 200, seed: int = 1) -> list[tuple[float, list[Any], int]]:
    rng = np.random.default_rng(seed)
    raws = rng.random(rounds).tolist()
    chosen = rng.random((rounds, len(NAMES))) < 0.4
    rows = [[name for name, on in zip(NAMES, row, strict=True) if on] for row in chosen]
    outcomes = (rng.random(rounds) < 0.4).astype(int).tolist()
    return list(zip(raws, rows, outcomes, strict=True))


# The rule.


@pytest.mark.parametrize("grid", ["endpoints", "midpoints", "arcsine"])
def test_without_groups_it_is_algorithm_1(grid: str) -> None:
    rng = np.random.default_rng(2)
    raw, outcomes = rng.random(2000), rng.random(2000) < 0.3
    options: dict[str, Any] = {"resolution": 10, "buckets": 5, "seed": 3, "grid": grid}
    ours = GroupRecalibrator(**options).replay(raw, outcomes)
    theirs = Recalibrator("foster_hart", **options).replay(raw, outcomes)
    assert (ours.forecast == theirs.forecast).all()
    assert np.allclose(ours.mean, theirs.mean, rtol=0, atol=1e-12)


@FORMS
@pytest.mark.parametrize("grid", ["endpoints", "midpoints", "logit"])
@settings(max_examples=25)
@given(stream=streams, prior=st.integers(0, 2))
def test_mixtures_are_those_of_the_naive_sum_of_scores(
    form: str, grid: str, stream: Any, prior: int
) -> None:
    rec = GroupRecalibrator(form=form, grid=grid, prior=prior, horizon=50, **SIZES)
    lattice = rec.calibrator.lattice
    values = [Fraction(k, lattice.denominator) for k in lattice.numerators]
    naive = NaiveGroups(values, 3, prior)
    for raw, groups, outcome in stream:
        ticket = rec.forecast(raw, groups=groups)
        active = [naive.bucket(raw), *dict.fromkeys(groups)]
        if form == "l2":
            scores: list[Any] = naive.average(active)
        else:
            scores = naive.exponential(active, rec.calibrator.rate)
        check_pair(ticket.mixture.indices, ticket.mixture.weights, scores)
        assert ticket.mixture.draw(rec.coin_of(ticket)) == ticket.index
        rec.observe(ticket, outcome)
        naive.learn(active, ticket.index, outcome)


@FORMS
@settings(max_examples=25)
@given(stream=streams.filter(bool), cut=st.integers(0, 40))
def test_tickets_single_rounds_and_batches_end_in_one_state(
    form: str, stream: Any, cut: int
) -> None:
    one, two, three = (GroupRecalibrator(form=form, **SIZES) for _ in range(3))
    values = [ticket.value for ticket in play(one, stream)]
    for raw, groups, outcome in stream:
        two.predict_one(raw, groups=groups)
        two.learn_one(raw, outcome, groups=groups)
    raw, outcomes, groups = columns(stream)
    parts = [slice(0, cut), slice(cut, None)]
    runs = [three.replay(raw[p], outcomes[p], groups=groups[p]) for p in parts]
    assert one == two == three
    assert np.concatenate([run.forecast for run in runs]).tolist() == values
    assert runs[0].first == 0
    assert [row.group for row in one.certificate().groups] == [str(name) for name in one.groups]


def test_the_mean_of_a_batch_is_the_mean_of_its_mixtures() -> None:
    stream = some_stream()
    raw, outcomes, groups = columns(stream)
    run = GroupRecalibrator(**SIZES).replay(raw, outcomes, groups=groups)
    means = [ticket.mean for ticket in play(GroupRecalibrator(**SIZES), stream)]
    assert run.mean.tolist() == means


def test_huge_gaps_do_not_overflow_the_exponential_form() -> None:
    rec = GroupRecalibrator(form="exponential", horizon=1, **SIZES)
    for _ in range(1500):
        ticket = rec.observe(rec.forecast(0.5, groups="a"), 1)
    assert ticket.value == 1.0
    assert rec.predict_one(0.5, groups="new") == rec.predict_one(0.5)


def test_neighbours_with_gaps_of_very_different_size_are_compared_on_one_scale() -> None:
    rec = GroupRecalibrator(form="exponential", resolution=4, buckets=1, prior=0, horizon=1, seed=1)
    block = rec._blocks(rec._arena.flat())[0]
    gaps, visits = block[FIRST : FIRST + 10 : 2], block[FIRST + 1 : FIRST + 10 : 2]
    visits[:] = 40_000
    for above, weight in ((-2000, 1.0), (-1, 0.5)):
        gaps[:] = [0, 0, 4, 4 * above, 0]
        ticket = rec.copy().forecast(0.5)
        assert ticket.mixture.indices[0] == 2
        assert ticket.weight == weight
    gaps[:] = [0, 0, 4 * 2000, -4, 0]
    assert rec.copy().forecast(0.5).mixture.weights == (0.0, 1.0)


# Which groups.


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (None, ()),
        ("a", ("a",)),
        (np.str_("a"), ("a",)),
        (7, (7,)),
        (np.int64(7), (7,)),
        (Period("m", 2), (Period("m", 2),)),
        (["a", "b", "a"], ("a", "b")),
        ({"b", "a", 10, 9}, (10, 9, "a", "b")),
        (np.array(["x", "y"]), ("x", "y")),
        ({"a": True, "b": np.False_}, ("a",)),
        ([True, False, True], ("a", 3)),
        (np.array([False, True, False]), ("b",)),
        ([], ()),
    ],
)
def test_groups_are_given_as_names_masks_or_mappings(groups: Any, names: Any) -> None:
    assert names_of(groups, ("a", "b", 3)) == names


@pytest.mark.parametrize(
    ("groups", "error", "text"),
    [
        (True, InvalidType, "group must be a string, a whole number or a Period, got True"),
        (0.5, InvalidType, "groups must be names, a mask or a mapping, got 0.5"),
        (b"a", InvalidType, "groups must be names, a mask or a mapping, got b'a'"),
        (np.array("a"), InvalidType, "groups must be names, a mask or a mapping, got array"),
        ([0.5], InvalidType, "group must be a string, a whole number or a Period, got 0.5"),
        ([Period(3, 1)], InvalidType, "name of a period must be a string, got 3"),  # type: ignore[arg-type]
        ([Period("m", -1)], InvalidInput, "number of a period must be a whole number of at least"),
        ({"a": 1}, InvalidType, "membership in 'a' must be True or False, got 1"),
        ([True], InvalidInput, "mask must have one entry for each of 2 declared groups, got 1"),
        (range(ROOM), InvalidInput, f"groups of a round must be at most {ROOM - 1}, got {ROOM}"),
    ],
)
def test_bad_groups_are_refused_and_change_nothing(groups: Any, error: Any, text: str) -> None:
    rec = GroupRecalibrator(["a", "b"], seed=1)
    before = rec.to_bytes()
    with pytest.raises(error, match=text):
        rec.forecast(0.5, groups=groups)
    with pytest.raises(error, match=text):
        rec.replay([0.5, 0.5], [0, 1], groups=[None, groups])
    assert rec.to_bytes() == before


def test_more_groups_than_allowed_are_refused_and_change_nothing() -> None:
    rec = GroupRecalibrator(max_groups=2, seed=1)
    rec.forecast(0.5, groups=["a", "b"])
    before = rec.to_bytes()
    text = r"groups must be at most 2 \(see max_groups\), got one more: 'c'"
    with pytest.raises(InvalidInput, match=text):
        rec.forecast(0.5, groups=["a", "c"])
    with pytest.raises(InvalidInput, match=text):
        rec.learn_one(0.5, 1, groups="c")
    with pytest.raises(InvalidInput, match=text):
        rec.replay([0.1, 0.2], [0, 1], groups=np.array(["a", "c"]))
    assert rec.to_bytes() == before
    assert rec.predict_one(0.5, groups="c") >= 0.0
    assert rec.to_bytes() == before


def test_a_state_that_could_not_be_addressed_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"max_groups must be at most .* got 1000000"):
        GroupRecalibrator(resolution=5000, max_groups=1_000_000)


def test_ten_thousand_groups_fit_and_a_round_costs_its_own_alone() -> None:
    rec = GroupRecalibrator(seed=1)
    names = np.arange(10_000)
    rec.replay(np.full(10_000, 0.3), names % 2, groups=names)
    assert len(rec.groups) == 10_000
    assert rec._arena.snapshot().nbytes < 8_000_000
    before = rec._blocks(rec._arena.snapshot())
    rec.learn_one(0.3, 1, groups=[17, 4])
    changed = (rec._blocks(rec._arena.snapshot()) != before).any(axis=1)
    assert np.flatnonzero(changed).tolist() == [6, 20 + 4, 20 + 17]


def test_columns_lists_masks_and_mappings_of_a_batch_mean_the_same() -> None:
    raw, outcomes = np.linspace(0, 1, 60), np.arange(60) % 2
    names = np.array(["a", "b", "c"])[np.arange(60) % 3]
    mask = names[:, None] == np.array(["a", "b", "c"])
    told = [names, names.tolist(), [{name} for name in names], mask]
    told.append({"a": mask[:, 0], "b": mask[:, 1], "c": mask[:, 2]})
    made = []
    for groups in told:
        rec = GroupRecalibrator(["a", "b", "c"], **SIZES)
        rec.replay(raw, outcomes, groups=groups)
        made.append(rec)
    assert all(rec == made[0] for rec in made)
    none, empty = (GroupRecalibrator(**SIZES) for _ in range(2))
    none.replay(raw, outcomes)
    empty.replay(raw, outcomes, groups={})
    assert none == empty


def test_names_that_come_again_in_a_batch_are_looked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Any] = []
    enter = Roster.enter

    def noted(roster: Roster, names: Any) -> list[int]:
        looked.append(names)
        return enter(roster, names)

    monkeypatch.setattr(Roster, "enter", noted)
    day = [("a", Period("day", number)) for number in (0, 0, 1)]
    given = [("a", "b"), None, ("a", "b"), ("b",), ("a", "b"), *day]
    GroupRecalibrator(**SIZES).replay([0.5] * 8, [0, 1] * 4, groups=given)
    # Whether a period still runs has to be seen each time.
    assert looked == [("a", "b"), (), ("b",), *day]


@pytest.mark.parametrize(
    ("groups", "error", "text"),
    [
        ("ab", InvalidType, "groups must have one entry for each round, got 'ab'"),
        (3, InvalidType, "groups must have one entry for each round, got 3"),
        (["a"], InvalidInput, "arrays must be of one length"),
        (np.array(["a"]), InvalidInput, "arrays must be of one length"),
        ({"a": [True]}, InvalidInput, "arrays must be of one length"),
    ],
)
def test_groups_of_a_batch_are_one_entry_a_round(groups: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        GroupRecalibrator(seed=1).replay([0.5, 0.5], [0, 1], groups=groups)


# Periods and intervals of time.


def test_a_period_begins_anew_and_the_last_one_takes_no_more_outcomes() -> None:
    rec = GroupRecalibrator(**SIZES)
    early = rec.forecast(0.5, groups=[Period("month", 1), "all"])
    rec.learn_one(0.5, 1, groups=[Period("month", 1), "all"])
    rec.learn_one(0.5, 1, groups=[Period("month", 2), "all"])
    rec.observe(early, 0)
    rows = {row.group: row.rounds for row in rec.certificate().groups}
    assert rows == {"month 2": 1, "all": 3}
    with pytest.raises(InvalidInput, match="number of period 'month' must not go down from 2"):
        rec.forecast(0.5, groups=Period("month", 1))
    with pytest.raises(InvalidInput, match="groups of a round must be apart"):
        rec.forecast(0.5, groups=[Period("month", 3), Period("month", 4)])


def test_time_intervals_are_the_geometric_covering() -> None:
    rule = TimeIntervals(shortest=2)
    for now in range(1, 70):
        found = rule(None, History(now - 1, 0, 0.5, ()))
        lengths = [2**k for k in range(1, 8) if 2**k <= now]
        assert [(name, number) for name, number in found] == [
            (f"interval of {length}:", now // length) for length in lengths
        ]
    with pytest.raises(InvalidInput, match="shortest must be a whole number of at least 1, got 0"):
        TimeIntervals(0)


def test_time_intervals_take_memory_for_one_interval_of_each_length() -> None:
    rec, other = (GroupRecalibrator(TimeIntervals(8), **SIZES) for _ in range(2))
    stream = [(raw, "x", y) for raw, _, y in some_stream(300)]
    play(rec, stream)
    raw, outcomes, groups = columns(stream)
    other.replay(raw, outcomes, groups=groups)
    assert rec == other
    assert len(rec.groups) == 1 + 6
    rows = {row.group: row.rounds for row in rec.certificate().groups}
    assert rows["interval of 8: 37"] == 5
    assert rows["interval of 256: 1"] == 45


# Checking rules.


def after_a_one(context: Any, history: History) -> bool:
    return history.outcomes[-1:] == (1,)


def test_a_checking_rule_finds_the_pattern_of_the_paper() -> None:
    rec = GroupRecalibrator({"after a one": after_a_one}, buckets=1, resolution=10, seed=1)
    plain = GroupRecalibrator(buckets=1, resolution=10, seed=1)
    raw, outcomes = np.full(3000, 0.5), np.arange(3000) % 2
    told = rec.replay(raw, outcomes)
    blind = plain.replay(raw, outcomes)
    late = slice(1000, None)
    assert np.abs(told.forecast - outcomes)[late].mean() < 0.2
    assert np.abs(blind.forecast - outcomes)[late].mean() > 0.4


def test_rules_see_context_history_and_raw_forecast() -> None:
    seen = []

    def rule(context: Any, history: History) -> Any:
        seen.append((context, history))
        return ["likely"] if history.raw > 0.5 else None

    rec = GroupRecalibrator(["declared", rule], seed=1)
    first = rec.forecast(0.8, groups=[True], context={"x": 1})
    assert first.groups == ("declared", "likely")
    rec.observe(first, 1)
    assert rec.forecast(0.2, context={"x": 2}).groups == ()
    (_, empty), (context, after) = seen
    assert empty == History(0, 0, 0.8, ())
    assert context == {"x": 2}
    assert (after.issued, after.rounds, after.raw) == (1, 1, 0.2)
    assert (after.forecasts, after.outcomes) == ((first.value,), (1,))


def named_after(context: Any, history: History) -> Any:
    return "odd" if after_a_one(context, history) else ()


@pytest.mark.parametrize("rules", [{"odd": after_a_one}, named_after, TimeIntervals(16)])
def test_rules_give_the_same_one_by_one_and_in_a_batch(rules: Any) -> None:
    one, other = (GroupRecalibrator(rules, **SIZES) for _ in range(2))
    stream = some_stream(120)
    play(one, stream)
    raw, outcomes, groups = columns(stream)
    other.replay(raw[:50], outcomes[:50], groups=groups[:50])
    other.replay(raw[50:], outcomes[50:], groups=groups[50:])
    assert one == other


def test_contexts_of_a_batch_reach_the_rules() -> None:
    rule = {"late": lambda context, history: context > 5}
    rec = GroupRecalibrator(rule, seed=1)
    rec.replay([0.5] * 10, [0, 1] * 5, context=range(10))
    assert [row.rounds for row in rec.certificate().groups] == [4]
    with pytest.raises(InvalidInput, match="arrays must be of one length, got: raw has 2, context"):
        rec.replay([0.5] * 2, [0, 1], context=[1])


def test_a_rule_that_fails_in_a_batch_undoes_the_batch() -> None:
    def rule(context: Any, history: History) -> bool:
        if history.issued == 3:
            raise ZeroDivisionError
        return True

    rec = GroupRecalibrator({"a": rule}, seed=1)
    before = rec.to_bytes()
    with pytest.raises(ZeroDivisionError):
        rec.replay([0.5] * 5, [0] * 5)
    assert rec.to_bytes() == before
    assert rec.forecast(0.5).number == 0


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ({"a": 3}, "rule of group 'a' must be a function, got 3"),
        ([0.5], "group must be a string, a whole number or a Period, got 0.5"),
        ({"a": lambda context, history: 1}, "membership in 'a' must be True or False, got 1"),
    ],
)
def test_bad_rules_are_refused(groups: Any, text: str) -> None:
    with pytest.raises(InvalidType, match=text):
        GroupRecalibrator(groups, seed=1).forecast(0.5)


def test_one_declared_name_need_not_be_in_a_list() -> None:
    assert GroupRecalibrator("a", seed=1).groups == ("a",)
    assert GroupRecalibrator(3, seed=1).groups == (3,)


# Tickets.


@settings(max_examples=25)
@given(stream=streams.filter(bool), order=st.randoms(use_true_random=False))
def test_late_outcomes_count_in_the_groups_of_their_tickets(stream: Any, order: Any) -> None:
    rec = GroupRecalibrator(**SIZES)
    tickets = [(rec.forecast(raw, groups=groups), y) for raw, groups, y in stream]
    assert rec.open == len(stream)
    order.shuffle(tickets)
    for ticket, outcome in tickets:
        rec.observe(ticket, outcome)
    certificate = rec.certificate()
    values = [ticket.value for ticket, _ in tickets]
    rows = group_errors(values, [y for _, y in tickets], [t.groups for t, _ in tickets])
    measured = {row.group: (row.rounds, round(row.c2, 12)) for row in rows}
    assert {r.group: (r.rounds, round(r.c2, 12)) for r in certificate.groups} == measured
    assert (rec.open, rec.rounds, rec.issued) == (0, len(stream), len(stream))
    assert certificate.delay <= len(stream) - 1


def test_a_ticket_is_found_by_itself_its_number_or_its_name() -> None:
    rec = GroupRecalibrator(seed=1)
    a, b, c = rec.forecast(0.1), rec.forecast(0.2, id="b", time=3.0), rec.forecast(0.3)
    assert rec.observe(a, 1) is a
    found = rec.observe("b", 1, time=4.0)
    assert found.to_dict() == b.to_dict() | {"outcome": 1}
    again = GroupTicket.from_dict(json.loads(json.dumps(c.to_dict())))
    assert rec.observe(again, 0) is again
    assert (again.outcome, rec.open) == (0, 0)


def test_tickets_survive_json_with_their_groups() -> None:
    rec = GroupRecalibrator(seed=1)
    ticket = rec.forecast(0.4, groups=["a", 3, Period("m", 2)])
    again = GroupTicket.from_dict(json.loads(json.dumps(ticket.to_dict())))
    assert again.groups == ticket.groups == ("a", 3, Period("m", 2))
    assert again.to_dict() == ticket.to_dict()
    for bad in ({"groups": [0.5]}, {"groups": None}):
        with pytest.raises(CorruptState, match="ticket must be what to_dict"):
            GroupTicket.from_dict(ticket.to_dict() | bad)


def test_outcomes_that_cannot_be_booked_say_why() -> None:
    rec, other = GroupRecalibrator(seed=1, max_open=3), GroupRecalibrator(seed=2)
    old = rec.forecast(0.1, id="old")
    done = rec.observe(rec.forecast(0.2), 1)
    with pytest.raises(RepeatedTicket, match="id must not be that of an open ticket, got 'old'"):
        rec.forecast(0.5, id="old")
    with pytest.raises(RepeatedTicket, match="use correct"):
        rec.observe(done, 1)
    with pytest.raises(UnknownTicket, match="ticket must be one that is open here, got 99"):
        rec.observe(99, 1)
    with pytest.raises(ForeignTicket, match="got another's"):
        rec.observe(other.forecast(0.1), 1)
    with pytest.raises(ForeignTicket, match="got another's"):
        rec.observe(Recalibrator(seed=1).forecast(0.1), 1)  # type: ignore[arg-type]
    altered = GroupTicket.from_dict(old.to_dict() | {"groups": ["more"]})
    with pytest.raises(ForeignTicket, match="altered"):
        rec.observe(altered, 1)
    for _ in range(3):
        rec.forecast(0.5)
    with pytest.raises(ExpiredTicket, match="it expired"):
        rec.observe(old, 1)
    fresh = rec.forecast(0.5, id="old")
    with pytest.raises(ExpiredTicket, match="it expired"):
        rec.observe(old, 1)
    rec.observe(fresh, 1)
    assert rec.certificate().expired == 2


def test_a_name_that_was_given_away_again_is_not_the_first_ticket() -> None:
    rec = GroupRecalibrator(seed=1)
    first = GroupTicket.from_dict(rec.forecast(0.1, id="x").to_dict())
    rec.observe("x", 1)
    rec.forecast(0.2, id="x")
    with pytest.raises(RepeatedTicket, match="must be open"):
        rec.observe(first, 1)


def test_expired_tickets_do_not_pile_up() -> None:
    rec = GroupRecalibrator(seed=1, max_open=10, resolution=2, buckets=1)
    for _ in range(3500):
        rec.forecast(0.5)
    assert rec.open == 10
    assert len(rec._issuer.names) == 1


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"raw": 2}, InvalidInput, r"raw forecast must be a number in \[0, 1\], got 2"),
        ({"id": ""}, InvalidType, "id must be a string that is not empty, got ''"),
        ({"id": 3}, InvalidType, "id must be a string that is not empty, got 3"),
        (
            {"time": "now"},
            InvalidType,
            "time must be a finite number or an np.datetime64, got 'now'",
        ),
    ],
)
def test_bad_arguments_of_a_forecast_are_refused(arguments: Any, error: Any, text: str) -> None:
    rec = GroupRecalibrator(seed=1)
    with pytest.raises(error, match=text):
        rec.forecast(**({"raw": 0.5} | arguments))
    assert rec.issued == 0


def test_an_outcome_is_not_known_before_its_forecast() -> None:
    rec = GroupRecalibrator(seed=1)
    ticket = rec.forecast(0.5, time=3.0)
    with pytest.raises(InvalidInput, match=r"time must not be before the forecast's 3.0, got 2.0"):
        rec.observe(ticket, 1, time=2.0)
    with pytest.raises(InvalidInput, match="outcome must be 0 or 1, got 2"):
        rec.observe(ticket, 2)
    rec.observe(ticket, 1, time=3.0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"form": "l3"}, "form must be one of 'l2', 'exponential', got 'l3'"),
        ({"buckets": 0}, "buckets must be a whole number from 1 to"),
        ({"prior": -1}, "prior must be a whole number from 0 to"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"max_groups": 0}, "max_groups must be a whole number from 1 to"),
        ({"max_open": 0}, "max_open must be a whole number from 1 to"),
        ({"resolution": 0}, "resolution must be a whole number from 1 to"),
        ({"grid": "square"}, "grid must be one of"),
        ({"groups": ["a", "b"], "max_groups": 1}, "groups must be at most 1"),
    ],
)
def test_bad_settings_are_refused(arguments: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        GroupRecalibrator(**arguments)


def test_rounds_beyond_63_bits_are_refused() -> None:
    rec = GroupRecalibrator(seed=1)
    rec._rows.capacity = 2
    rec.learn_one(0.5, 1)
    with pytest.raises(InvalidInput, match="rounds must be at most 2 at this resolution"):
        rec.replay([0.5] * 2, [0, 1])
    rec.learn_one(0.5, 1)
    with pytest.raises(InvalidInput, match="rounds must be at most 2 at this resolution"):
        rec.forecast(0.5)


# Corrections.


def test_a_correction_is_as_if_the_outcome_had_been_right_from_the_start() -> None:
    wrong, right = (GroupRecalibrator(**SIZES) for _ in range(2))
    groups = ["a", Period("m", 1)]
    ticket = wrong.observe(wrong.forecast(0.5, groups=groups), 0)
    right.observe(right.forecast(0.5, groups=groups), 1)
    assert wrong.correct(ticket, 1).outcome == 1
    assert wrong.certificate() == right.certificate()
    with pytest.raises(RepeatedTicket, match="outcome must differ from the known one"):
        wrong.correct(ticket, 1)


def test_corrections_that_cannot_be_are_refused() -> None:
    rec = GroupRecalibrator(**SIZES)
    waiting, ticket = rec.forecast(0.5), rec.forecast(0.5)
    rec.observe(ticket, 0)
    copy = GroupTicket.from_dict(ticket.to_dict())
    rec.correct(ticket, 1)
    forget_corrections(rec)
    with pytest.raises(RepeatedTicket, match="was it corrected already"):
        rec.correct(copy, 1)
    with pytest.raises(InvalidInput, match="must have an outcome to be corrected"):
        rec.correct(waiting, 1)
    with pytest.raises(InvalidType, match="ticket must be a GroupTicket, got 3"):
        rec.correct(3, 1)  # type: ignore[arg-type]
    away = ticket.to_dict() | {"place": [7, 0, 0]}
    with pytest.raises(ForeignTicket, match="altered"):
        rec.correct(GroupTicket.from_dict(away), 0)


# Looking ahead.


def test_looking_changes_nothing_and_learning_makes_it_a_round() -> None:
    rec = GroupRecalibrator(**SIZES)
    play(rec, some_stream(50))
    before = rec.to_bytes()
    for raw in (0.1, 0.5, 0.9):
        assert rec.predict_one(raw, groups="a") == rec.predict_one(raw, groups="a")
    assert rec.to_bytes() == before
    shown = rec.predict_one(0.5, groups="north")
    assert rec.copy().forecast(0.5, groups="north").value == shown


def test_a_draw_that_was_shown_is_learned_though_a_late_outcome_came() -> None:
    rec = GroupRecalibrator(resolution=4, buckets=1, prior=0, seed=1)
    late = rec.forecast(0.5, groups="a")
    shown = rec.predict_one(0.5, groups="a")
    rec.observe(late, 1)
    rec.learn_one(0.5, 1, groups="a")
    counts, _ = counted(rec._spec, rec._blocks(rec._arena.snapshot()))
    assert shown == late.value == 0.5
    assert counts[0].tolist() == [0, 0, 2, 0, 0]


def test_a_draw_that_was_overtaken_is_refused() -> None:
    rec = GroupRecalibrator(**SIZES)
    rec.predict_one(0.5, groups="a")
    rec.forecast(0.5)
    before = rec.to_bytes()
    with pytest.raises(StaleForecast, match="came between sample_one and learn_one"):
        rec.learn_one(0.5, 1, groups="a")
    assert rec.to_bytes() == before
    rec.learn_one(0.5, 1, groups="a")


def test_looks_without_an_outcome_do_not_pile_up() -> None:
    rec = GroupRecalibrator(**SIZES)
    for k in range(300):
        rec.predict_one(k / 300)
    assert len(rec._notes) == 256


# States.


@FORMS
@settings(max_examples=15)
@given(stream=streams, cut=st.integers(0, 40))
def test_cut_anywhere_stored_and_read_back_nothing_changes(
    form: str, stream: Any, cut: int
) -> None:
    whole = GroupRecalibrator(form=form, **SIZES)
    part = GroupRecalibrator(form=form, **SIZES)
    play(whole, stream)
    play(part, stream[:cut])
    parts = [
        GroupRecalibrator.from_bytes(part.to_bytes()),
        GroupRecalibrator.from_dict(json.loads(json.dumps(part.to_dict()))),
        part.copy(),
        pickle.loads(pickle.dumps(part)),
    ]
    for resumed in parts:
        assert resumed == part
        play(resumed, stream[cut:])
        assert resumed == whole
    assert whole != "something else"


def test_open_tickets_are_part_of_the_state() -> None:
    rec = GroupRecalibrator(["a"], **SIZES)
    ticket = rec.forecast(0.3, groups=["a", Period("m", 4)])
    rec.forecast(0.4, id="x")
    again = GroupRecalibrator.from_bytes(rec.to_bytes())
    assert again.open == 2
    for each in (rec, again):
        each.observe(ticket.number, 1)
        each.observe("x", 0)
        each.forecast(0.5, groups=[True])
    assert rec == again


def test_rules_are_given_again_with_a_state() -> None:
    rules = {"a": after_a_one, "b": TimeIntervals(4)}
    rec = GroupRecalibrator({"a": after_a_one}, **SIZES)
    play(rec, some_stream(20))
    again = GroupRecalibrator.from_bytes(rec.to_bytes(), {"a": after_a_one})
    for each in (rec, again, rec.copy()):
        play(each, some_stream(20, seed=9))
    assert rec == again
    for wrong in (None, rules, ["a"]):
        with pytest.raises(InvalidInput, match="groups must be the 1 rules and the names"):
            GroupRecalibrator.from_bytes(rec.to_bytes(), wrong)


def changed(rec: GroupRecalibrator, place: str, **changes: Any) -> dict[str, Any]:
    from calibrant.core.codec import Document

    document = Document.from_bytes(rec.to_bytes(), rec.kind, rec.version)
    settings, arrays = dict(document.settings), dict(document.arrays)
    part: dict[str, Any] = settings if place == "settings" else arrays
    for name, change in changes.items():
        part[name] = change(part[name])
    return Document(rec.kind, settings, arrays, rec.version).to_dict()


def with_word(place: int, value: int) -> Any:
    """Return what puts a word of the row in place of another."""
    layout = GroupRecalibrator(**SIZES)._spec.layout

    def change(words: Any) -> Any:
        row = unpacked(words, layout)
        row[place] = value
        return packed(row, layout)

    return change


@pytest.mark.parametrize(
    ("place", "changes", "text"),
    [
        ("settings", {"buckets": lambda n: n + 1}, "words that are not of a row"),
        ("settings", {"max_open": lambda n: 0}, "max_open must be"),
        ("settings", {"max_groups": lambda n: 1}, "groups must be at most 1"),
        ("settings", {"form": lambda n: "l3"}, "form must be one of"),
        ("arrays", {"row": lambda w: w[:-1]}, "words that are not of a row"),
        ("arrays", {"row": with_word(ROUNDS, 100)}, "100 outcomes of"),
        ("arrays", {"row": with_word(ISSUED, -1)}, "word 2 must be from 0"),
        ("arrays", {"row": with_word(10, 99)}, "word 10 must be from 0 to 6, got 99"),
        ("arrays", {"names": lambda w: text_words(["north"])}, "cannot reshape"),
        ("arrays", {"names": lambda w: text_words(["a", "a", "b", "c"])}, "groups of one name"),
        ("arrays", {"names": lambda w: text_words([0.5])}, "group must be a string"),
        ("arrays", {"names": lambda w: w + 1}, "Expecting value|codec|Extra data|Invalid"),
        ("arrays", {"groups": lambda w: w[:-1]}, "cannot reshape"),
        ("arrays", {"groups": lambda w: 0 * w - 1}, "gaps that -1 visits cannot leave"),
        ("arrays", {"recent": lambda w: w[:-1]}, "cannot reshape"),
        ("arrays", {"recent": lambda w: recent_words([(2.0, 1)])}, "must be a number in"),
        ("arrays", {"tickets": lambda w: w[:-1]}, "cannot reshape"),
        ("arrays", {"tickets": lambda w: w * 0 + 7}, "tickets that were never issued"),
        ("arrays", {"held": lambda w: text_words([["others"]])}, "tickets of other groups"),
        ("arrays", {"held": lambda w: text_words([*text_of(w), ["x"]])}, "tickets of other groups"),
    ],
)
def test_states_that_cannot_be_are_refused(place: str, changes: Any, text: str) -> None:
    rec = GroupRecalibrator(**SIZES)
    play(rec, some_stream(20))
    rec.forecast(0.5, groups="north")
    with pytest.raises(CorruptState, match=text):
        GroupRecalibrator.from_dict(changed(rec, place, **changes))


def test_states_of_another_kind_are_refused() -> None:
    with pytest.raises(CorruptState, match="state must be of kind 'group recalibrator'"):
        GroupRecalibrator.from_bytes(Recalibrator(seed=1).to_bytes())
    with pytest.raises(InvalidInput, match="groups must be"):
        GroupRecalibrator.from_dict(changed(GroupRecalibrator(), "settings", declared=lambda d: 3))


def test_the_coin_of_a_ticket_needs_its_clock() -> None:
    rec = GroupRecalibrator(seed=1)
    ticket = rec.forecast(0.4)
    ticket._clock = None
    with pytest.raises(InvalidInput, match="ticket must be the one that forecast"):
        rec.coin_of(ticket)


def test_it_says_what_it_is() -> None:
    rec = GroupRecalibrator(["a", "b"], seed=1)
    told = "GroupRecalibrator(form='l2', resolution=20, buckets=20, groups=2, rounds=0)"
    assert repr(rec) == told


def test_a_roster_can_be_copied() -> None:
    roster = Roster(3)
    roster.enter(("a",))
    roster.copy().enter(("b",))
    assert len(roster) == 1


# What was measured.


@FORMS
def test_the_certificate_has_a_row_for_each_group(form: str) -> None:
    rec = GroupRecalibrator(["never"], form=form, **SIZES)
    empty = rec.certificate()
    assert (empty.rounds, empty.holds, empty.groups[0].bound) == (0, None, None)
    stream = some_stream(400)
    tickets = play(rec, stream)
    found = rec.certificate()
    raw, outcomes, groups = columns(stream)
    values = [ticket.value for ticket in tickets]
    rows = {row.group: row for row in group_errors(values, outcomes, groups)}
    for row in found.groups[1:]:
        expected = rows[row.group]
        assert row.rounds == expected.rounds
        for name in ("forecast", "frequency", "c1", "c2"):
            assert getattr(row, name) == pytest.approx(getattr(expected, name), abs=1e-12)
    assert all(row.bound is None or row.c2 <= row.bound for row in found.groups)
    assert found.worst is not None
    assert found.worst.c2 == max(row.c2 for row in found.groups)
    brier = np.mean((np.array(values) - outcomes) ** 2)
    assert found.loss == pytest.approx(brier)
    assert found.raw_loss == pytest.approx(np.mean((np.array(raw) - outcomes) ** 2))
    assert found.memberships == 400 + sum(len(names) for names in groups)
    assert (found.largest_gap_bound is None) == (form == "l2")
    assert json.loads(json.dumps(found.to_dict()))["groups"][0]["frequency"] is None
    lines = found.details().splitlines()
    assert lines[0] == f"groups, {form}: 400 rounds, 0 open, 0 expired"
    assert lines[:3] == str(found).splitlines()
    assert lines[3].endswith("C2 promised" if form == "l2" else "C1 promised")
    assert len(lines) == 4 + 5
    assert GroupRecalibrator().certificate().details().endswith("no rounds yet\n  no groups yet")


def test_the_bound_of_a_group_is_what_its_rounds_and_all_counts_add_up_to() -> None:
    rec = GroupRecalibrator(resolution=3, buckets=1, prior=0, seed=1)
    rec.replay([0.5] * 900, [0, 1, 1] * 300, groups=["a", ["a", "b"], ()] * 300)
    counts, _ = counted(rec._spec, rec._blocks(rec._arena.snapshot()))
    total = (900 + 600 + 300) / 36 + float(bounds.harmonic(counts).sum())
    found = {row.group: row.bound for row in rec.certificate().groups}
    assert found == pytest.approx({"a": total / 600, "b": total / 300})


def test_late_outcomes_leave_the_exponential_form_without_a_bound() -> None:
    rec = GroupRecalibrator(form="exponential", **SIZES)
    early = rec.forecast(0.5, groups="a")
    rec.learn_one(0.5, 1, groups="a")
    rec.forecast(0.5)
    rec.observe(early, 1)
    assert rec.certificate().delay == 1
    assert rec.certificate().groups[0].bound is None
    assert GroupRecalibrator().certificate().worst is None


@pytest.mark.slow
def test_a_group_that_hides_behind_the_others_is_found_and_mended() -> None:
    rng = np.random.default_rng(4)
    rounds = 50_000
    member = rng.random(rounds) < 0.25
    groups = np.where(member, "few", "many")
    truth = np.where(member, 0.8, 0.4)
    raw = np.full(rounds, 0.5)
    outcomes = rng.random(rounds) < truth
    plain = Recalibrator(seed=1).replay(raw, outcomes)
    blind = {row.group: row for row in group_errors(plain.forecast, outcomes, groups)}
    assert blind["few"].c2 > 0.08
    rec = GroupRecalibrator(seed=1)
    rec.replay(raw, outcomes, groups=groups)
    assert all(row.c2 < 0.003 for row in rec.certificate().groups)
    assert rec.certificate().c2 < 0.003


def test_threads_share_one_recalibrator() -> None:
    rec = GroupRecalibrator(**SIZES)

    def work(name: int) -> None:
        for k in range(50):
            rec.observe(rec.forecast(k / 50, groups=[name, "all"]), k % 2)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = {row.group: row.rounds for row in rec.certificate().groups}
    assert rows == {"all": 200, "0": 50, "1": 50, "2": 50, "3": 50}
    assert rec.rounds == 200
