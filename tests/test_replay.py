"""Batches: late outcomes, splits, expiry, and the compiled program, against the plain loop."""

from __future__ import annotations

import math

import numpy as np
import players
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Calibrant, Pending, Recalibrator
from calibrant.core.grid import GRIDS
from calibrant.errors import ExpiredTicket, InvalidInput, InvalidType, RepeatedTicket, UnknownTicket
from calibrant.kernels.layout import CLOCK, ISSUED, ROUNDS
from calibrant.recalibrate import rows as module
from calibrant.recalibrate.delivery import schedule
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

NAMES = calibrators.names()
VARIANTS = {name: (name, {}) for name in NAMES} | {
    "blackwell, expected": ("blackwell", {"updates": "expected", "step": "sqrt"}),
    "exponential_regret, realised": ("exponential_regret", {"updates": "realised"}),
    "polynomial_regret, expected": ("polynomial_regret", {"updates": "expected"}),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)
every_name = pytest.mark.parametrize("name", NAMES)
each_way = pytest.mark.parametrize("way", players.WAYS)
TIMES = "times, numbers or np.datetime64"


def make(variant: str, **options: object) -> Recalibrator:
    name, parameters = VARIANTS[variant]
    return Recalibrator(name, **({"resolution": 5, "buckets": 3, "seed": 2} | parameters | options))


def late_stream(rounds: int, seed: int, reach: int = 20, lost: int = 17):
    """A stream whose outcomes come up to ``reach`` rows late, and each so many-th never."""
    raw, outcomes = players.stream(rounds, seed, edges=3)
    rng = np.random.default_rng(seed)
    available = np.arange(rounds) + rng.integers(0, reach, rounds).astype(float)
    available[::lost] = [np.inf, np.nan][seed % 2]
    return raw, outcomes, np.where(np.isnan(available), np.inf, available).tolist()


# At once.


@each_way
@pytest.mark.parametrize("made", [Recalibrator, Calibrant])
def test_columns_of_a_batch_are_whole_and_apart(made: type[Recalibrator], way: str) -> None:
    raw, outcomes = players.stream(150, 1, edges=3)
    model = made(seed=1)
    with players.batches(model, way):
        run = model.replay(raw, outcomes)
    columns = run.forecast, run.mean, run.raw
    kept = [column.copy() for column in columns]
    for k, column in enumerate(columns):
        assert column.flags.c_contiguous
        column[:] = -1.0
        assert [np.array_equal(*pair) for pair in zip(columns, kept, strict=True)] == [
            other > k for other in range(3)
        ]


@each_way
@every_variant
def test_a_batch_equals_the_loop(variant: str, way: str) -> None:
    raw, outcomes = players.stream(150, 1, edges=3)
    one, other = make(variant), make(variant)
    values, means = players.by_tickets(one, raw, outcomes)
    with players.batches(other, way):
        run = other.replay(raw, outcomes)
    assert run.forecast.tolist() == values
    assert run.mean.tolist() == means
    assert one.to_bytes() == other.to_bytes()


@each_way
@pytest.mark.parametrize("grid", GRIDS)
def test_a_batch_equals_the_loop_on_every_grid(grid: str, way: str) -> None:
    raw, outcomes = players.stream(300, 1, edges=20)
    for name in ("foster_hart", "regret_matching", "blackwell"):
        options = {"grid": grid, "resolution": 20, "buckets": 20, "loss": "log"}
        one, other = make(name, **options), make(name, **options)
        values, means = players.by_tickets(one, raw, outcomes)
        with players.batches(other, way):
            run = other.replay(np.array(raw), np.array(outcomes, bool))
        assert run.forecast.tolist() == values
        assert run.mean.tolist() == means
        assert one.to_bytes() == other.to_bytes()


@each_way
def test_a_batch_equals_the_loop_beyond_53_bits(way: str) -> None:
    raw, outcomes = players.stream(200, 1)
    options = {"grid": "logit", "buckets": 1023, "prior": 1 << 20}
    one, other = make("foster_hart", **options), make("foster_hart", **options)
    raw = [0.5 + p / 1023 / 4 for p in raw]
    values, means = players.by_tickets(one, raw, outcomes)
    with players.batches(other, way):
        run = other.replay(raw, outcomes)
    assert run.forecast.tolist() == values
    assert run.mean.tolist() == means
    assert one.to_bytes() == other.to_bytes()


@every_variant
def test_a_batch_may_be_cut_anywhere(variant: str) -> None:
    raw, outcomes = players.stream(80, 2)
    one, other = make(variant), make(variant)
    whole = one.replay(raw, outcomes)
    parts = [other.replay(raw[a:b], outcomes[a:b]) for a, b in [(0, 0), (0, 1), (1, 50), (50, 80)]]
    assert np.concatenate([p.forecast for p in parts]).tolist() == whole.forecast.tolist()
    assert [p.first for p in parts] == [0, 0, 1, 50]
    assert one.to_bytes() == other.to_bytes()


def test_times_alone_make_a_batch_no_different() -> None:
    raw, outcomes = players.stream(30, 2)
    one, other = make("foster_hart"), make("foster_hart")
    run = one.replay(raw, outcomes, time=np.arange(30))
    assert run.forecast.tolist() == other.replay(raw, outcomes).forecast.tolist()
    assert one.to_bytes() == other.to_bytes()


def test_an_empty_batch_changes_nothing() -> None:
    rec = make("foster_hart")
    rec.replay([0.5], [1])
    before = rec.to_bytes()
    for run in (
        rec.replay([], []),
        rec.replay([], [], available=[]),
        rec.replay([], [], time=[], carry=Pending()),
    ):
        assert len(run) == len(run.ticket) == len(run.pending) == 0
        assert run.first == 1
    assert rec.to_bytes() == before


@every_name
def test_a_batch_and_single_rounds_can_take_turns(name: str) -> None:
    raw, outcomes = players.stream(90, 3)
    one, other = make(name), make(name)
    for k in range(0, 90, 9):
        rows = slice(k, k + 9)
        players.by_tickets(one, raw[rows], outcomes[rows])
        if k % 2:
            other.replay(raw[rows], outcomes[rows])
        else:
            players.one_by_one(other, raw[rows], outcomes[rows])
    assert one.to_bytes() == other.to_bytes()


def test_long_batches_are_compiled_where_that_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    rec = make("foster_hart")
    seen = []
    made = vars(rec.spec.program)
    monkeypatch.setattr(module, "SHORT", 3)
    with players.machine(rec.spec.program):
        machine = made.pop("machine", None)
        monkeypatch.setattr(
            type(rec.spec.program),
            "machine",
            property(lambda self: seen.append(1) or machine),
        )
        rec.replay([0.5] * 3, [1] * 3)
        assert seen == []
        rec.replay([0.5] * 4, [1] * 4)
        assert seen == [1]
        rec.replay([0.5] * 4, [1] * 4, available=[0.0, 1.0, 2.0, 3.0])
        assert seen == [1, 1]


# Late.


@each_way
@every_variant
def test_late_outcomes_come_when_they_are_known(variant: str, way: str) -> None:
    raw, outcomes, available = late_stream(150, 4)
    one, other = make(variant), make(variant)
    values, means = players.by_late_tickets(one, raw, outcomes, available)
    with players.batches(other, way):
        run = other.replay(raw, outcomes, available=available)
    assert run.forecast.tolist() == values
    assert run.mean.tolist() == means
    assert one.to_bytes() == other.to_bytes()
    assert one.certificate() == other.certificate()
    assert other.open == len(run.pending) == 150 - other.rounds > 0
    assert run.pending.outcome.tolist() == [outcomes[k] for k in run.pending.number.tolist()]
    assert run.pending.available.tolist() == [available[k] for k in run.pending.number.tolist()]


@each_way
@every_variant
def test_what_is_pending_can_be_carried_over_a_split(variant: str, way: str) -> None:
    raw, outcomes, available = late_stream(120, 5, reach=50)
    one, other = make(variant), make(variant)
    times = np.arange(120.0)
    with players.batches(other, way):
        whole = one.replay(raw, outcomes, available=available, time=times)
        carry, drawn = None, []
        for start, stop in [(0, 30), (30, 31), (31, 31), (31, 90), (90, 120)]:
            rows = slice(start, stop)
            run = other.replay(
                raw[rows], outcomes[rows], available=available[rows], time=times[rows], carry=carry
            )
            carry = run.pending
            drawn += run.forecast.tolist()
    assert drawn == whole.forecast.tolist()
    assert sorted(carry.number.tolist()) == whole.pending.number.tolist()
    assert one.to_bytes() == other.to_bytes()


@every_variant
def test_what_waits_through_another_batch_is_learned_as_the_loop_learns_it(variant: str) -> None:
    one, other = make(variant), make(variant)
    waiting = one.forecast(0.9)
    players.by_tickets(one, [0.1, 0.5], [1, 0])
    run = other.replay([0.9, 0.1, 0.5], [1, 1, 0], available=[np.inf, 1.0, 2.0])
    assert one.to_bytes() == other.to_bytes()
    players.by_tickets(one, [0.1, 0.1], [1, 0])
    carried = other.replay([0.1, 0.1], [1, 0], time=[3.0, 4.0], carry=run.pending)
    assert carried.pending.number.tolist() == [0]
    assert one.to_bytes() == other.to_bytes()
    one.observe(waiting, 1)
    other.observe(0, 1)
    assert one.to_bytes() == other.to_bytes()


@every_name
def test_outcomes_known_at_once_are_no_different_from_a_batch_at_once(name: str) -> None:
    raw, outcomes = players.stream(60, 6)
    one, other = make(name), make(name)
    run = one.replay(raw, outcomes, available=np.arange(60))
    assert run.forecast.tolist() == other.replay(raw, outcomes).forecast.tolist()
    assert one.to_bytes() == other.to_bytes()


@given(st.data(), st.integers(1, 12), st.sampled_from(NAMES))
@settings(max_examples=60)
def test_any_times_at_all_equal_the_loop(data, rounds, name) -> None:
    gaps = data.draw(st.lists(st.integers(0, 2), min_size=rounds, max_size=rounds))
    times = np.cumsum(gaps).astype(float)
    delays = data.draw(
        st.lists(st.sampled_from([0, 0.5, 1, 3, math.inf]), min_size=rounds, max_size=rounds)
    )
    outcomes = data.draw(st.lists(st.integers(0, 1), min_size=rounds, max_size=rounds))
    raw = data.draw(st.lists(st.sampled_from([0.1, 0.5, 1.0]), min_size=rounds, max_size=rounds))
    max_open = data.draw(st.sampled_from([1, 2, 1000]))
    known = (times + delays).tolist()
    one, other = (make(name, resolution=3, max_open=max_open) for _ in range(2))
    values, _ = players.by_late_tickets(one, raw, outcomes, known, times.tolist())
    run = other.replay(raw, outcomes, available=known, time=times)
    assert run.forecast.tolist() == values
    assert one.to_bytes() == other.to_bytes()


def test_the_events_of_a_batch_are_in_their_true_order() -> None:
    # Row 0 is carried and known at 0.5; rows 1 to 3 are made at 0, 1, 2.
    plan = schedule(
        1,
        np.array([4, 7, 8, 9]),
        np.array([0.5, 2.0, 1.0, np.nan]),
        np.array([0.0, 1.0, 2.0]),
        1000,
    )
    assert plan.events.tolist() == [1, -1, 2, -3, -2, 3]
    assert plan.waiting.tolist() == [3]
    assert plan.expired.tolist() == []


def test_an_outcome_that_comes_after_its_ticket_expired_is_left_out() -> None:
    plan = schedule(0, np.arange(3), np.array([2.0, 2.0, 2.0]), np.arange(3.0), 2)
    assert plan.expired.tolist() == []
    assert plan.events.tolist() == [0, 1, -1, -2, 2, -3]
    plan = schedule(0, np.arange(3), np.array([2.0, 2.0, 2.0]), np.arange(3.0), 1)
    assert plan.expired.tolist() == [0]
    assert plan.events.tolist() == [0, 1, -2, 2, -3]


@pytest.mark.parametrize("max_open", [1, 3, 25, 300])
@pytest.mark.parametrize("variant", ["foster_hart", "exponential_regret"])
def test_tickets_expire_in_a_batch_as_they_do_in_the_loop(variant: str, max_open: int) -> None:
    rounds = 700 if variant == "foster_hart" else 150
    raw, outcomes, available = late_stream(rounds, 8, reach=60)
    one, other = (make(variant, max_open=max_open) for _ in range(2))
    values, _ = players.by_late_tickets(one, raw, outcomes, available)
    run = other.replay(raw, outcomes, available=available)
    assert run.forecast.tolist() == values
    assert one.to_bytes() == other.to_bytes()
    assert one.certificate().expired == other.certificate().expired
    assert (other.certificate().expired > 0) == (max_open < rounds)
    assert other.open <= max_open


@pytest.mark.parametrize("max_open", [1, 3, 25])
def test_what_expires_between_two_batches_is_left_out_as_well(max_open: int) -> None:
    raw, outcomes, available = late_stream(200, 9, reach=60)
    one, other = (make("foster_hart", max_open=max_open) for _ in range(2))
    times = np.arange(200.0)
    whole = one.replay(raw, outcomes, available=available, time=times)
    carry, drawn = None, []
    for start, stop in [(0, 40), (40, 45), (45, 150), (150, 200)]:
        rows = slice(start, stop)
        run = other.replay(
            raw[rows], outcomes[rows], available=available[rows], time=times[rows], carry=carry
        )
        carry = run.pending
        drawn += run.forecast.tolist()
    assert drawn == whole.forecast.tolist()
    assert one.to_bytes() == other.to_bytes()


def test_a_batch_does_not_keep_more_tickets_than_may_be_open() -> None:
    rec = make("foster_hart", max_open=100)
    raw, outcomes = players.stream(2_000, 10)
    run = rec.replay(raw, outcomes, available=np.full(2_000, np.inf))
    assert rec.open == len(rec._counter.desk) == 100
    assert run.pending.number.tolist() == list(range(1_900, 2_000))


def test_a_long_batch_does_not_bring_an_old_ticket_back() -> None:
    for late in (False, True):
        rec = make("foster_hart", max_open=64)
        rec.forecast(0.5)
        rec = rec.copy()
        raw, outcomes = players.stream(130, 11)
        rec.replay(raw, outcomes, available=np.arange(130) if late else None)
        with pytest.raises(ExpiredTicket):
            rec.observe(0, 1)
        assert rec.open == 0
        assert rec.certificate().expired == 1


def test_tickets_of_forecasts_can_be_carried_into_a_batch() -> None:
    one, other = make("foster_hart"), make("foster_hart")
    tickets = [one.forecast(0.1), one.forecast(0.9)]
    assert [other.forecast(p).number for p in (0.1, 0.9)] == [0, 1]
    one.observe(tickets[1], 0)
    one.observe(tickets[0], 1)
    value = one.forecast(0.5, time=3.0).value
    pending = Pending(np.array([0, 1]), np.array([2.0, 1.0]), np.array([1, 0], np.uint8))
    run = other.replay([0.5], [1], available=[np.inf], time=[3.0], carry=pending)
    assert run.forecast.tolist() == [value]
    assert one.to_bytes() == other.to_bytes()


def test_open_tickets_of_a_batch_are_told_one_by_one() -> None:
    one, other = make("foster_hart"), make("foster_hart")
    raw, outcomes = players.stream(400, 12)
    run = one.replay(raw, outcomes, available=np.full(400, np.inf))
    tickets = [other.forecast(p) for p in raw]
    for number, ticket in zip(run.ticket[::-1], tickets[::-1], strict=True):
        told = one.observe(number, outcomes[number])
        assert (told.value, told.mean) == (ticket.value, ticket.mean)
        other.observe(ticket, outcomes[number])
    assert one.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_may_be_dates(unit: str) -> None:
    start = np.datetime64("2024-02-29T12:00:00", unit)
    times = start + np.arange(5) * np.timedelta64(1, "s")
    known = times + np.array([0, 3, 1, 0, 0], "m8[s]")
    known[3] = np.datetime64("NaT", unit)
    one, other = make("foster_hart"), make("foster_hart")
    raw, outcomes = players.stream(5, 13)
    run = one.replay(raw, outcomes, available=known, time=times)
    seconds = [0.0, 4.0, 3.0, np.nan, 4.0]
    same = other.replay(raw, outcomes, available=seconds, time=np.arange(5))
    assert run.forecast.tolist() == same.forecast.tolist()
    assert run.pending.number.tolist() == same.pending.number.tolist() == [3]


def test_dates_since_the_epoch_are_dates_like_others() -> None:
    rec = make("foster_hart")
    seconds = np.arange(3).astype("M8[s]")
    assert len(rec.replay([0.1, 0.2, 0.3], [1, 0, 1], available=seconds, time=seconds).pending) == 0
    assert rec.rounds == 3


def test_what_is_carried_may_be_lists() -> None:
    one, other = make("foster_hart"), make("foster_hart")
    for rec in (one, other):
        rec.forecast(0.5)
    run = one.replay([0.5], [1], carry=Pending([0], [0.0], [1]))
    arrays = Pending(np.array([0]), np.zeros(1), np.ones(1, np.uint8))
    assert other.replay([0.5], [1], carry=arrays).mean.tolist() == run.mean.tolist()
    assert type(run.pending.available) is np.ndarray
    assert one.to_bytes() == other.to_bytes()


# What is refused, and changes nothing.


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"available": [0.0]},
            InvalidInput,
            f"available must be a flat array of 3 {TIMES}, got shape (1,)",
        ),
        (
            {"available": [[0.0, 1.0, 2.0]]},
            InvalidInput,
            f"available must be a flat array of 3 {TIMES}, got shape (1, 3)",
        ),
        (
            {"available": ["0", "1", "2"]},
            InvalidType,
            f"available must be a flat array of 3 {TIMES}, got dtype <U1",
        ),
        (
            {"available": [[0.0], [1.0, 2.0], []]},
            InvalidType,
            f"available must be a flat array of 3 {TIMES}, got ragged rows",
        ),
        (
            {"available": [0.0, 0.5, 2.0]},
            InvalidInput,
            "available[1] must be not before the row's own time, got 0.5",
        ),
        (
            {"available": [0, 1, 2], "time": [0.0, 2.0, 1.0]},
            InvalidInput,
            "time[2] must be finite and not before the row above it, got 1.0",
        ),
        (
            {"available": [0, 1, 2], "time": [0.0, np.nan, 1.0]},
            InvalidInput,
            "time[1] must be finite and not before the row above it, got nan",
        ),
        (
            {"available": [0, 1, 2], "time": [np.inf, np.inf, np.inf]},
            InvalidInput,
            "time[0] must be finite and not before the row above it, got inf",
        ),
        (
            {"available": [0, 1, 2], "time": 3},
            InvalidType,
            f"time must be a flat array of 3 {TIMES}, got 3",
        ),
        (
            {"time": [1.0, 0.0, 2.0]},
            InvalidInput,
            "time[1] must be finite and not before the row above it, got 0.0",
        ),
        ({"carry": 3}, InvalidType, "carry must be a Pending, got 3"),
        (
            {"carry": Pending(np.array([9]), np.array([0.0]), np.array([1], np.uint8))},
            UnknownTicket,
            "ticket must be one that is open here, got 9",
        ),
        (
            {"carry": Pending(np.array([0]), np.array([0.0]), np.array([1], np.uint8))},
            RepeatedTicket,
            "ticket 0 must be open, got one whose outcome is known",
        ),
        (
            {"carry": Pending(np.array([1, 1]), np.zeros(2), np.ones(2, np.uint8))},
            RepeatedTicket,
            "ticket 1 must be carried once, got it twice",
        ),
        (
            {"carry": Pending(np.array([1]), np.zeros(1), np.full(1, 2, np.uint8))},
            InvalidInput,
            "carry.outcome[0] must be 0 or 1, got 2",
        ),
        (
            {"carry": Pending(np.array([1]), np.zeros(2), np.ones(1, np.uint8))},
            InvalidInput,
            "arrays must be of one length, got: number has 1, available has 2, outcome has 1",
        ),
        (
            {"carry": Pending(["1"], [0.0], [1])},
            InvalidType,
            "carry.number must be a flat array of ticket numbers, got dtype <U1",
        ),
        (
            {"carry": Pending([1.0], [0.0], [1])},
            InvalidType,
            "carry.number must be a flat array of ticket numbers, got dtype float64",
        ),
        (
            {"carry": Pending(1, [0.0], [1])},
            InvalidType,
            "carry.number must be a flat array of ticket numbers, got 1",
        ),
        (
            {"carry": Pending(np.array([1]), np.array(["a"]), np.array([1]))},
            InvalidType,
            f"carry.available must be a flat array of 1 {TIMES}, got dtype <U1",
        ),
        (
            {"carry": Pending(np.array([1]), 3.0, np.array([1]))},
            InvalidType,
            f"carry.available must be a flat array of 1 {TIMES}, got 3.0",
        ),
        (
            {"available": np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "M8[D]")},
            InvalidInput,
            "time must be given where available holds dates, got None",
        ),
        (
            {"available": np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])},
            InvalidInput,
            "available[1] must be known, got a masked value",
        ),
        (
            {"time": np.ma.masked_array([1.0, 2.0, 3.0], [True, True, False])},
            InvalidInput,
            "time[0] must be known, got a masked value",
        ),
    ],
    ids=str,
)
def test_a_batch_that_cannot_be_is_refused_and_changes_nothing(options, error, text) -> None:
    for variant in ("foster_hart", "exponential_regret"):
        rec = make(variant)
        rec.learn_one(0.5, 1)
        rec.forecast(0.5)
        before = rec.to_bytes()
        with pytest.raises(error) as refused:
            rec.replay([0.1, 0.2, 0.3], [1, 0, 1], **options)
        assert str(refused.value) == text
        assert rec.to_bytes() == before


def test_there_is_an_end_to_how_many_rounds_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rec = make("foster_hart", grid="logit")
    capacity = (1 << 61) // (3 << 24) - 1
    text = f"rounds must be at most {capacity} at this resolution and number of buckets, got "
    row = rec._arena.row()
    row[[ISSUED, ROUNDS, rec.spec.layout.blocks + CLOCK]] = capacity - 1
    document = rec._document()
    document.arrays["body"] = rec.spec.body.packed(row)
    full = Recalibrator._from_document(document)
    open_ticket = full.forecast(0.5)
    before = full.to_bytes()
    for call in (
        lambda: full.replay([0.5, 0.5], [1, 1]),
        lambda: full.replay([0.5, 0.5], [1, 1], available=[0.0, 1.0]),
    ):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert str(refused.value) == text + str(capacity + 1)
        assert full.to_bytes() == before
    full.observe(open_ticket, 1)
    before = full.to_bytes()
    for call in (
        lambda: full.replay([0.5], [1]),
        lambda: full.learn_one(0.9, 1),
        lambda: full.observe(full.forecast(0.9), 1),
    ):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert str(refused.value) == text + str(capacity + 1)
