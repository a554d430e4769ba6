"""Rules that grow and fade: the same to the bit one by one, in batches, compiled and resumed."""

from __future__ import annotations

import json
import random

import numpy as np
import players
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator
from calibrant.core.ticket import Ticket
from calibrant.errors import CorruptState, ForeignTicket
from calibrant.kernels import safe
from calibrant.kernels.anchor import STEP
from calibrant.kernels.layout import WIDTH, pack, unpack
from calibrant.transforms import BucketMeans, Identity

pytestmark = pytest.mark.base

MEANS = BucketMeans(buckets=3, memory=20.0)
GROWING = {"method": "growing", "resolution": 1, "doublings": 3}
IN_ROUNDS = {"method": "fading", "resolution": 5, "half_life": 20.0}
IN_TIME = IN_ROUNDS | {"unit": "time"}
MADE = {
    "growing": lambda: Recalibrator(**GROWING, buckets=2, seed=3),
    "in rounds": lambda: Recalibrator(**IN_ROUNDS, buckets=2, seed=3),
    "in time": lambda: Recalibrator(**IN_TIME, buckets=2, seed=3),
    "growing, behind": lambda: Calibrant(MEANS, **GROWING, seed=3),
    "growing, safe": lambda: Calibrant(MEANS, **GROWING, seed=3, raw_safe=0.02),
    "in rounds, behind": lambda: Calibrant(MEANS, **IN_ROUNDS, seed=3),
    "in time, behind": lambda: Calibrant(MEANS, **IN_TIME, seed=3),
}
TIMED = ("in time", "in time, behind")
every_kind = pytest.mark.parametrize("kind", MADE)
SEEN = "growing, behind"
"""Compiled it is the program of "growing, safe" less the budget: not worth ten seconds more."""
every_way = pytest.mark.parametrize(
    ("kind", "way"),
    [(kind, way) for kind in MADE for way in players.WAYS if (kind, way) != (SEEN, "compiled")],
)


def rows(rounds, seed=4):
    """Raw forecasts, outcomes, times that jump, and late arrivals, some of them never."""
    raw, outcomes = players.stream(rounds, seed, edges=3)
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.choice([0.0, 0.5, 30.0], rounds)) - 100.0
    known = times + rng.choice([0.0, 1.0, 90.0, np.inf], rounds, p=[0.5, 0.2, 0.2, 0.1])
    return raw, outcomes, times, known


def compiled(rec, way):
    return rec.compile() if way == "compiled" else rec


@every_way
def test_late_outcomes_play_alike_in_tickets_and_batches_however_they_are_cut(kind, way) -> None:
    raw, outcomes, times, known = rows(420)
    one, batch, pieces = (MADE[kind]() for _ in range(3))
    told = raw, outcomes, known.tolist(), times.tolist()
    values, means = players.by_late_tickets(compiled(one, way), *told)
    with players.batches(batch, way):
        run = batch.replay(raw, outcomes, available=known, time=times)
    assert (run.forecast.tolist(), run.mean.tolist()) == (values, means)
    assert batch.to_bytes() == one.to_bytes()
    carry, forecasts = None, []
    with players.batches(pieces, way):
        for part in (slice(0, 50), slice(50, 300), slice(300, 420)):
            given = {"available": known[part], "time": times[part], "carry": carry}
            run = pieces.replay(raw[part], outcomes[part], **given)
            carry, pieces = run.pending, type(pieces).from_bytes(pieces.to_bytes())
            forecasts += run.forecast.tolist()
    assert forecasts == values
    assert pieces.to_bytes() == one.to_bytes()


@every_way
def test_prompt_outcomes_play_alike_in_tickets_single_calls_and_batches(kind, way) -> None:
    raw, outcomes, times, _ = rows(420)
    one, other, batch = (compiled(MADE[kind](), way) for _ in range(3))
    tickets = []
    for p, y, now in zip(raw, outcomes, times.tolist(), strict=True):
        tickets.append(one.forecast(p, time=now))
        one.observe(tickets[-1], y)
    values, means = [t.value for t in tickets], [t.mean for t in tickets]
    with players.batches(batch, way):
        run = batch.replay(raw, outcomes, time=times)
    assert (run.forecast.tolist(), run.mean.tolist()) == (values, means)
    assert batch.to_bytes() == one.to_bytes()
    assert one.certificate() == batch.certificate()
    if kind not in TIMED:
        assert players.one_by_one(other, raw, outcomes) == values
        assert other.to_bytes() == one.to_bytes()


@every_kind
def test_cut_anywhere_and_resumed_with_open_tickets_nothing_changes(kind) -> None:
    raw, outcomes, times, _ = rows(330)
    whole, rec, open_tickets = MADE[kind](), MADE[kind](), []
    rng = random.Random(2)
    for k, (p, now) in enumerate(zip(raw, times.tolist(), strict=True)):
        mine, its = rec.forecast(p, time=now), whole.forecast(p, time=now)
        assert (mine.value, mine.mean, mine.step) == (its.value, its.mean, its.step)
        open_tickets.append(k)
        while len(open_tickets) > 3:
            number = open_tickets.pop(rng.randrange(len(open_tickets)))
            told, other = (each.observe(number, outcomes[number]) for each in (rec, whole))
            if number % 11 == 0:
                rec.correct(told, 1 - outcomes[number])
                whole.correct(other, 1 - outcomes[number])
        rec = type(rec).from_bytes(rec.to_bytes()) if k % 9 == 0 else rec
    assert rec.to_bytes() == whole.to_bytes()


# Places of pairs that are several cells wide.


@given(st.integers(0, 2**20 - 1), st.integers(0, 2**15 - 1), st.integers(0, 1), st.integers(0, 7))
def test_a_place_holds_the_width_of_a_pair_as_well(bucket, cell, side, width) -> None:
    both = side | width << WIDTH
    assert unpack(pack(bucket, cell, both)) == (bucket, cell, both)
    assert pack(bucket, cell, both) < 2**40


def test_a_ticket_of_a_wide_pair_survives_as_json_and_as_bytes() -> None:
    rec = MADE["growing"]()
    made = [rec.forecast(p) for p in (0.0, 0.3, 0.5, 0.9, 1.0)]
    again = Recalibrator.from_bytes(rec.to_bytes())
    for ticket in made:
        data = json.loads(json.dumps(ticket.to_dict()))
        assert (data["step"], data["place"][2] in (0, 1)) == (8, True)
        other = Ticket.from_dict(data)
        assert other.mixture == ticket.mixture == again.observe(ticket.id, 1).mixture
        assert other.to_dict() == ticket.to_dict()
    assert made[1].mixture.indices == (0, 8)


@pytest.mark.parametrize(
    "change",
    [{"step": 3}, {"step": 0}, {"step": 256}, {"step": 16}, {"place": [0, 4, 1]}],
    ids=str,
)
def test_a_pair_that_is_not_on_the_grid_is_refused(change) -> None:
    data = MADE["growing"]().forecast(0.3).to_dict()
    with pytest.raises(CorruptState):
        Ticket.from_dict(data | change)


def test_an_altered_width_is_not_corrected() -> None:
    rec = Recalibrator("anchored", resolution=8, buckets=1, seed=1)
    data = rec.observe(rec.forecast(0.4), 1).to_dict()
    before = rec.to_bytes()
    with pytest.raises(ForeignTicket):
        rec.correct(Ticket.from_dict(data | {"step": 2, "place": [0, 4, 0]}), 0)
    assert rec.to_bytes() == before


def tampered(rec, array, change):
    """The bytes of a state in which a change was made, with a digest that fits."""
    document = rec._document()
    words = rec._arena.row() if array == "row" else document.arrays[array].copy()
    change(words)
    if array == "row":
        array, words = "body", rec.spec.body.packed(words)
    document.arrays[array] = words
    return document.to_bytes()


def widen(words):
    words[2] = pack(0, 4, 2 << WIDTH)


def leave(words):
    words[2] = pack(0, 0, 1 | words[2] >> 37 << WIDTH)


def climb(words):
    words[2], words.view(float)[3] = pack(0, 8, words[2] >> 37 << WIDTH), 0.5


@pytest.mark.parametrize("change", [widen, leave, climb], ids=lambda f: f.__name__)
@pytest.mark.parametrize("method", ["anchored", "growing"])
def test_a_stored_ticket_off_the_grid_is_refused(method, change) -> None:
    options = {"anchored": {"resolution": 8}, "growing": {"resolution": 4, "doublings": 1}}
    rec = Recalibrator(method, buckets=1, seed=1, **options[method])
    rec.forecast(0.4)
    with pytest.raises(CorruptState, match="tickets that were never issued"):
        Recalibrator.from_bytes(tampered(rec, "tickets", change))


@pytest.mark.parametrize("left", [-1, 4])
def test_a_stored_grid_that_is_too_coarse_or_too_fine_is_refused(left) -> None:
    rec = MADE["growing"]()
    rec.learn_one(0.5, 1)
    place = rec.spec.layout.blocks + STEP

    def change(words):
        words[place] = left

    with pytest.raises(CorruptState, match=f"word {place} must be from 0 to 3, got {left}"):
        Recalibrator.from_bytes(tampered(rec, "row", change))


def test_a_budget_reckons_with_the_far_end_of_a_wide_pair() -> None:
    model = Calibrant(Identity(), **GROWING, seed=3, raw_safe=0.0)
    words = model._arena.words()
    width = 3 << WIDTH
    # The pair 0 and 1 around 0.3: at worst 1 is announced and 0 happens, or the other way round.
    for cell, side in ((0, 0), (8, 1)):
        place = pack(0, cell, side | width)
        assert safe.worst(words, words, 0.3, place, 0.7) == pytest.approx(1 - 0.09)
    alone = pack(0, 0, width)
    assert safe.worst(words, words, 0.3, alone, 1.0) == pytest.approx(1 - 0.49)
    ticket = model.forecast(0.3)
    assert (ticket.fallback, ticket.value) == (True, 0.3)
