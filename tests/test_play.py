"""Logs of forecasts and outcomes, played at once: exactly the calls one by one."""

from __future__ import annotations

import dataclasses
from functools import partial
from itertools import pairwise

import numpy as np
import players
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator
from calibrant.errors import (
    CalibrantError,
    ExpiredTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownTicket,
)
from calibrant.kernels.layout import RESERVED
from calibrant.registry import calibrators
from calibrant.transforms import BucketMeans, ExpertMixture, Identity

pytestmark = pytest.mark.base

EXPERTS = ExpertMixture((Identity(), BucketMeans(3, 20.0)), share=1e-3)
SMALL = {"resolution": 5, "seed": 2}
MADE = {name: partial(Recalibrator, name, buckets=3, **SMALL) for name in calibrators.names()} | {
    "log loss": partial(Recalibrator, "foster_hart", buckets=3, loss="log", **SMALL),
    "in time": partial(Recalibrator, "fading", unit="time", half_life=3.0, **SMALL),
    "calibrant": partial(Calibrant, EXPERTS, buckets=2, **SMALL),
    "safe": partial(Calibrant, EXPERTS, raw_safe=0.2, method="foster_hart", buckets=3, **SMALL),
    "safe in time": partial(
        Calibrant,
        EXPERTS,
        raw_safe=0.2,
        method="fading",
        unit="time",
        half_life=3.0,
        **SMALL,
    ),
}
every_kind = pytest.mark.parametrize("kind", MADE)
NAMES = ("a", "b", "c")

RAW = st.one_of(st.sampled_from([0.0, 1.0, 1 / 3, 0.5]), st.floats(0.0, 1.0))
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["forecast", "named", "outcome", "outcome"]), RAW, st.integers(0, 99)
    ),
    max_size=40,
)


class Plain:
    """Plays events one call at a time and writes down the log that says the same.

    What cannot be (a name that is open, an outcome of a ticket that is gone) is left out.
    """

    def __init__(self, rec, cap):
        self.rec, self.cap = rec, cap
        self.log, self.seen = [], []
        self.open = {}
        self.clock = 0.0

    def tell(self, act, x, pick):
        self.clock += 0.5 * (pick % 3)
        self.open = {k: t for k, t in self.open.items() if self.rec.issued - k <= self.cap}
        if act == "outcome":
            self.observe(x, pick)
        else:
            self.forecast(x, NAMES[pick % 3] if act == "named" else None)

    def forecast(self, raw, name):
        if name in [ticket.id for ticket in self.open.values()]:
            return
        ticket = self.rec.forecast(raw, id=name, time=self.clock)
        self.open[ticket.number] = ticket
        self.log.append(("forecast", name, raw, self.clock))
        self.seen.append(ticket)

    def observe(self, x, pick):
        if not self.open:
            return
        numbers = sorted(self.open)
        ticket = self.open.pop(numbers[pick % len(numbers)])
        # A named ticket may be told by its number as well.
        id = ticket.number if pick % 5 == 0 else ticket.id
        self.rec.observe(id, int(x < 0.5), time=self.clock)
        self.log.append(("outcome", id, int(x < 0.5), self.clock))
        self.seen.append(ticket)


def columns(log):
    kinds, ids, x, time = (list(column) for column in zip(*log, strict=True)) if log else ([],) * 4
    return kinds, ids, x, time


def agree(played, tickets, full_support):
    """Check a row of what was played for each event's ticket."""
    assert len(played) == len(tickets)
    assert played.value.tolist() == [ticket.value for ticket in tickets]
    assert played.number.tolist() == [ticket.number for ticket in tickets]
    assert played.clock.tolist() == [ticket.clock for ticket in tickets]
    assert played.place.tolist() == [ticket.place for ticket in tickets]
    if not full_support:
        assert played.mean.tolist() == [ticket.mean for ticket in tickets]
        assert played.weight.tolist() == [ticket.weight for ticket in tickets]


@every_kind
@settings(max_examples=12)
@given(events=EVENTS, cap=st.sampled_from([1, 3, 7, 1000]), cuts=st.lists(st.integers(0, 40)))
def test_a_log_is_played_as_the_calls_one_by_one(kind, events, cap, cuts) -> None:
    one, other = (MADE[kind](max_open=cap) for _ in range(2))
    plain = Plain(one, cap)
    for act, x, pick in events:
        plain.tell(act, x, pick)
    full_support = one.calibrator.kernels.full_support
    edges = sorted({0, len(plain.log), *(min(cut, len(plain.log)) for cut in cuts)})
    for start, stop in pairwise(edges):
        kinds, ids, x, time = columns(plain.log[start:stop])
        agree(other.play(kinds, ids, x, time), plain.seen[start:stop], full_support)
    assert other.to_bytes() == one.to_bytes()
    assert (other.open, other.rounds, other.issued) == (one.open, one.rounds, one.issued)
    # As text: under the log loss a regret may be infinity less infinity.
    assert str(other.certificate()) == str(one.certificate())
    # Both go on alike, and say the same of every ticket.
    for rec in (one, other):
        rec.forecast(0.4, time=plain.clock)
    assert other.to_bytes() == one.to_bytes()
    for id in [*range(one.issued), *NAMES]:
        assert verdict(one, id) == verdict(other, id)


def verdict(rec, id):
    """What is said of a ticket that is asked for by its id."""
    try:
        return rec.coin_of(id)
    except CalibrantError as error:
        return type(error), str(error)


@every_kind
@settings(max_examples=8)
@given(
    raws=st.lists(st.tuples(RAW, st.booleans()), min_size=1, max_size=12),
    order=st.randoms(use_true_random=False),
    cap=st.sampled_from([4, 1000]),
)
def test_many_forecasts_and_outcomes_are_the_calls_one_by_one(kind, raws, order, cap) -> None:
    one, other = (MADE[kind](max_open=cap) for _ in range(2))
    full_support = one.calibrator.kernels.full_support
    names = [f"n{k}" if named else None for k, (_, named) in enumerate(raws)]
    time = [0.5 * k for k in range(len(raws))]
    tickets = [
        one.forecast(p, id=name, time=now)
        for (p, _), name, now in zip(raws, names, time, strict=True)
    ]
    played = other.forecast_many([p for p, _ in raws], id=names, time=time)
    agree(played, tickets, full_support)
    assert other.to_bytes() == one.to_bytes()
    left = tickets[-cap:]
    order.shuffle(left)
    told = [order.randrange(2) for _ in left]
    for ticket, y in zip(left, told, strict=True):
        one.observe(ticket.id, y, time=99.0)
    played = other.observe_many([ticket.id for ticket in left], told, time=[99.0] * len(left))
    agree(played, left, full_support)
    assert other.to_bytes() == one.to_bytes()


@pytest.mark.parametrize("kind", ["foster_hart", "exponential_regret", "calibrant", "safe"])
@pytest.mark.parametrize("way", players.WAYS)
def test_a_long_log_is_the_same_plain_and_compiled(kind, way) -> None:
    one, other = (MADE[kind](max_open=40) for _ in range(2))
    plain, rng = Plain(one, 40), np.random.default_rng(3)
    acts = rng.choice(["forecast", "named", "outcome", "outcome"], 400)
    for act, x, pick in zip(acts.tolist(), rng.random(400), rng.integers(0, 99, 400), strict=True):
        plain.tell(act, float(x), int(pick))
    with players.batches(other, way):
        kinds, ids, x, time = columns(plain.log)
        agree(other.play(kinds, ids, x, time), plain.seen, one.calibrator.kernels.full_support)
    assert other.to_bytes() == one.to_bytes()


# Reserves come back on the way, not at the end.


def reserving(cap: int) -> tuple[Calibrant, Calibrant]:
    """Return two models of which the oldest tickets hold most of what there is to spend."""
    both = tuple(MADE["safe"](max_open=cap, raw_safe=0.06) for _ in range(2))
    for model in both:
        for k in range(30):
            model.observe(model.forecast(0.1 + 0.2 * (k % 5)), k % 2)
        for k in range(cap):
            model.forecast(0.5 if k % 2 else 0.3)
        assert model._arena.row()[RESERVED] > 0
    return both


@pytest.mark.parametrize("way", ["play", "replay", "late", "forecast_many"])
def test_tickets_that_expire_within_a_batch_give_back_their_reserve_there(way: str) -> None:
    one, other = reserving(20)
    raw, outcomes = players.stream(60, 4)
    tickets = [one.forecast(p) for p in raw] if way == "forecast_many" else []
    if way != "forecast_many":
        for p, y in zip(raw, outcomes, strict=True):
            tickets.append(one.forecast(p))
            one.observe(tickets[-1], y)
    if way == "play":
        first = other.issued
        ids = [id for k in range(60) for id in (None, first + k)]
        x = [value for pair in zip(raw, outcomes, strict=True) for value in pair]
        values = other.play([0, 1] * 60, ids, x).value[::2]
    elif way == "replay":
        values = other.replay(raw, outcomes).forecast
    elif way == "late":
        values = other.replay(raw, outcomes, available=np.arange(60.0)).forecast
    else:
        values = other.forecast_many(raw).value
    assert values.tolist() == [ticket.value for ticket in tickets]
    assert other.to_bytes() == one.to_bytes()
    assert {ticket.fallback for ticket in tickets} == {True, False}


# What cannot be played is refused, and changes nothing.


def ready() -> Recalibrator:
    rec = MADE["foster_hart"](max_open=4)
    rec.forecast(0.2, id="old", time=5.0)
    rec.forecast(0.4, time=5.0)
    return rec


BAD = {
    "unknown name": (["outcome"], ["x"], [1], None, UnknownTicket),
    "unknown number": (["outcome"], [7], [1], None, UnknownTicket),
    "a number of the future": (["outcome", "forecast"], [2, None], [1, 0.5], None, UnknownTicket),
    "negative": (["outcome"], [-1], [1], None, UnknownTicket),
    "no id": (["outcome"], [None], [1], None, InvalidType),
    "a real for an id": (["outcome"], [1.5], [1], None, InvalidType),
    "true for an id": (["outcome"], [True], [1], None, InvalidType),
    "twice": (["outcome"] * 2, [1, 1], [1, 0], None, RepeatedTicket),
    "twice by name": (["outcome"] * 2, ["old", "old"], [1, 0], None, RepeatedTicket),
    "by number and by name": (["outcome"] * 2, [0, "old"], [1, 0], None, RepeatedTicket),
    "by name and by number": (["outcome"] * 2, ["old", 0], [1, 0], None, RepeatedTicket),
    "new by number and by name": (
        ["forecast", "outcome", "outcome"],
        ["n", 2, "n"],
        [0.5, 1, 1],
        None,
        RepeatedTicket,
    ),
    "an open name": (["forecast"], ["old"], [0.5], None, RepeatedTicket),
    "a name twice": (["forecast"] * 2, ["n", "n"], [0.5, 0.5], None, RepeatedTicket),
    "expired by then": (["forecast"] * 3 + ["outcome"], [None] * 3 + [0], [0.5] * 3 + [1], None,
                        ExpiredTicket),
    "a name expired by then": (["forecast"] * 3 + ["outcome"], [None] * 3 + ["old"],
                               [0.5] * 3 + [1], None, ExpiredTicket),
    "a new one expired by then": (["forecast"] * 5 + ["outcome"], [None] * 5 + [2],
                                  [0.5] * 5 + [1], None, ExpiredTicket),
    "a raw forecast beyond 1": (["forecast"] * 2, [None] * 2, [0.5, 1.5], None, InvalidInput),
    "no raw forecast": (["forecast"] * 2, [None] * 2, [0.5, np.nan], None, InvalidInput),
    "half an outcome": (["forecast", "outcome"], [None, 2], [0.5, 0.5], None, InvalidInput),
    "an empty name": (["forecast"], [""], [0.5], None, InvalidType),
    "a number for a name": (["forecast"], [3], [0.5], None, InvalidType),
    "another kind": (["forecast", "guess"], [None] * 2, [0.5, 0.5], None, InvalidInput),
    "a kind beyond 1": ([0, 2], [None] * 2, [0.5, 0.5], None, InvalidInput),
    "too few ids": (["forecast"] * 2, [None], [0.5, 0.5], None, InvalidInput),
    "too few values": (["forecast"] * 2, [None] * 2, [0.5], None, InvalidInput),
    "too few times": (["forecast"] * 2, [None] * 2, [0.5, 0.5], [1.0], InvalidInput),
    "an endless time": (["forecast"], [None], [0.5], [np.inf], InvalidInput),
    "before its forecast": (["outcome"], [1], [1], [4.0], InvalidInput),
    "before its new forecast": (["forecast", "outcome"], [None, 2], [0.5, 1], [9.0, 8.0],
                                InvalidInput),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_log_that_cannot_be_played_is_refused_and_changes_nothing(what: str) -> None:
    kinds, ids, x, time, error = BAD[what]
    rec, other = ready(), ready()
    before = rec.to_bytes()
    for _ in range(2):
        with pytest.raises(error) as refused:
            rec.play(kinds, ids, x, time)
        assert type(refused.value) is error
        assert rec.to_bytes() == before
        assert (rec.open, rec.issued, rec.rounds) == (2, 2, 0)
    # Nothing that cannot be seen has changed either.
    for each in (rec, other):
        each.observe("old", 1)
        each.observe(each.forecast(0.5, id="n"), 1)
    assert rec.to_bytes() == other.to_bytes()


def test_a_rule_that_forgets_in_time_is_told_the_time_of_forecasts() -> None:
    rec = MADE["in time"]()
    before = rec.to_bytes()
    for time in (None, [1.0, np.nan]):
        with pytest.raises(InvalidInput, match="time must be given to a rule that forgets in time"):
            rec.play([0, 0], None, [0.5, 0.5], time)
        assert rec.to_bytes() == before
    rec.play([0, 1], [None, 0], [0.5, 1], [1.0, np.nan])
    assert rec.rounds == 1


def test_there_is_an_end_to_how_many_rounds_a_log_may_have() -> None:
    rec = MADE["foster_hart"]()
    rec._rows.capacity = 2
    before = rec.to_bytes()
    with pytest.raises(InvalidInput, match="rounds must be at most 2"):
        rec.play([0, 1] * 3, [None, 0, None, 1, None, 2], [0.5, 1] * 3)
    assert rec.to_bytes() == before
    rec.play([0, 1] * 2, [None, 0, None, 1], [0.5, 1] * 2)
    assert rec.rounds == 2


# The forms that a log may have.


def test_kinds_may_be_words_or_codes_and_ids_arrays() -> None:
    made = [MADE["foster_hart"]() for _ in range(4)]
    made[0].play(["forecast", "outcome"], [None, 0], [0.5, 1])
    made[1].play(np.array([0, 1]), np.array([None, 0], object), np.array([0.5, 1.0]))
    made[2].play(np.array(["forecast", "outcome"]), [None, np.int64(0)], (0.5, True))
    made[3].play([False, True], [float("nan"), 0], [0.5, 1])
    assert made[0] == made[1] == made[2] == made[3]
    assert made[0].rounds == 1


@pytest.mark.parametrize("kinds", [[[0, 1]], [0.0, 1.0]], ids=["a table", "real numbers"])
def test_kinds_that_are_no_flat_column_are_refused(kinds) -> None:
    rec = MADE["foster_hart"]()
    before = rec.to_bytes()
    with pytest.raises(InvalidInput) as refused:
        rec.play(kinds, [None, 0], [0.5, 1])
    told = "kind must be a flat column of forecasts and outcomes"
    assert str(refused.value) == f"{told}, got {kinds!r}"
    assert rec.to_bytes() == before


def test_an_empty_log_changes_nothing() -> None:
    rec = ready()
    before = rec.to_bytes()
    for played in (
        rec.play([], [], []),
        rec.play(np.array([], int), None, []),
        rec.forecast_many([]),
        rec.observe_many([], []),
    ):
        assert len(played) == 0
        assert [len(column) for column in dataclasses.astuple(played)] == [0] * 8
    assert rec.to_bytes() == before


def test_a_name_may_be_used_again_within_a_log() -> None:
    one, other = ready(), ready()
    one.observe("old", 1)
    for k in range(3):
        one.forecast(0.5, id="old")
        one.observe("old", k % 2)
    kinds = ["outcome", *["forecast", "outcome"] * 3]
    played = other.play(kinds, ["old"] * 7, [1, 0.5, 0, 0.5, 1, 0.5, 0])
    assert played.number.tolist() == [0, 2, 2, 3, 3, 4, 4]
    assert one == other


def test_the_name_of_a_ticket_that_expires_within_a_log_is_free_there() -> None:
    one, other = ready(), ready()
    for name in (None, None, None, "old"):
        one.forecast(0.5, id=name)
    one.observe("old", 1)
    other.play([0, 0, 0, 0, 1], [None, None, None, "old", "old"], [0.5] * 4 + [1])
    assert one == other


def test_what_became_of_a_name_is_known_after_a_log() -> None:
    rec = ready()
    rec.play([1, 0, 0, 0, 0, 0], ["old", "n", *[None] * 4], [1, *[0.5] * 5])
    with pytest.raises(RepeatedTicket, match="ticket 'old' must be open, got one whose outcome"):
        rec.observe("old", 1)
    with pytest.raises(ExpiredTicket, match="ticket 'n' must be open, got one that was expired"):
        rec.observe("n", 1)
    with pytest.raises(UnknownTicket):
        rec.observe("x", 1)


def test_the_mean_of_a_law_that_was_not_kept_is_not_a_number() -> None:
    rec = MADE["exponential_regret"]()
    made = rec.forecast_many([0.2, 0.7])
    told = rec.observe_many(made.number, [1, 0])
    assert np.isfinite(made.mean).all()
    assert np.isnan(told.mean).all()
    assert told.value.tolist() == made.value.tolist()
