"""Quick plain steps of a rule alone, against the steps that every program has."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import players
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator
from calibrant.errors import ExpiredTicket, InvalidInput
from calibrant.kernels import gaps, two_point
from calibrant.kernels.layout import HEAD, ISSUED, POSITION, ROUNDS
from calibrant.recalibrate import binary
from calibrant.recalibrate.spec import Spec
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

ALONE = [
    name
    for name in calibrators.names()
    if not (rule := calibrators.get(name)().kernels).full_support and not rule.anchored
]
EVENTS = st.lists(
    st.tuples(st.sampled_from(["issue", "learn", "commit", "stale", "late"]), st.floats(0, 1))
)


def spec_of(name: str, grid: str = "endpoints", loss: str = "squared") -> Spec:
    return Recalibrator(name, resolution=4, buckets=3, grid=grid, loss=loss).spec


def test_most_rules_stand_alone_and_the_default_does_not() -> None:
    assert {"foster_hart", "regret_matching", "blackwell"} <= set(ALONE)
    default = Calibrant(seed=1).spec
    assert default.steps.peek is default.program.peek
    assert spec_of("foster_hart").steps.issue is not spec_of("foster_hart").program.issue


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("name", ALONE)
@given(events=EVENTS, seed=st.integers(0, 99))
def test_quick_steps_do_what_all_steps_do(
    name: str, loss: str, events: list[tuple[str, float]], seed: int
) -> None:
    spec = spec_of(name, "midpoints" if loss == "log" else "endpoints", loss)
    quick, slow = (spec.arena(bytes([seed]) * 16).words() for _ in range(2))
    play = [(spec.steps, quick, []), (spec.program, slow, [])]
    for step, raw in events:
        coins = random.Random(f"{seed} {raw}")
        answers = [took(*each, step, spec.layout.row, raw, coins.getstate()) for each in play]
        assert answers[0] == answers[1]
        # What is noted for interrupts differs, the row does not.
        assert quick[spec.layout.row :] == slow[spec.layout.row :]
    assert quick[spec.layout.row + ISSUED] >= quick[spec.layout.row + ROUNDS]


def took(
    program: Any, words: list[Any], waiting: list[Any], step: str, row: int, raw: float, state: Any
) -> Any:
    """Take a step with a program, as events ask for it, and return its answer."""
    rng = random.Random()
    rng.setstate(state)
    outcome = rng.randrange(2)
    if step == "issue":
        waiting.append((program.issue(words, words, row, raw), raw))
        return waiting[-1]
    look = program.peek(words, words, row, raw)
    if step in ("learn", "late") and waiting:
        (number, place, weight, mixed, _), told = waiting.pop(rng.randrange(len(waiting)))
        program.learn(words, words, row, number, place, weight, mixed, told, 0.0, outcome)
        if step == "learn":
            return look
    if step == "stale":
        program.issue(words, words, row, raw)
        assert program.commit(words, words, row, *look, raw, outcome) == -1
    else:
        program.commit(words, words, row, *look, raw, outcome)
    return look


@pytest.mark.parametrize("made", [Recalibrator, Calibrant])
def test_compiled_steps_learn_what_is_in_hand_and_what_is_not(made: Any) -> None:
    plain, fast = made(seed=1), made(seed=1)
    with players.machine(fast.spec.program):
        fast.compile()
        for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
            for rec in (plain, fast):
                tickets = [rec.forecast(raw) for raw in (0.2, 0.7, 0.2)]
                for k in order:
                    rec.observe(tickets[k], k % 2)
                rec.observe(rec.forecast(0.6), 1)
                rec.sample_one(0.4)
                rec.learn_one(0.4, 1)
            assert plain == fast


def test_compiled_steps_remember_one_look_and_notes_the_others() -> None:
    plain, fast = (Recalibrator(seed=1) for _ in range(2))
    with players.machine(fast.spec.program):
        fast.compile()
        for rec in (plain, fast):
            seen = [rec.sample_one(raw) for raw in (0.1, 0.4, 0.9)]
            rec.observe(rec.forecast(0.6), 1)
            assert rec.predict_mean_one(0.4) >= 0.0
            assert [rec.sample_one(raw) for raw in (0.1, 0.4, 0.9)] == seen
            for raw in (0.4, 0.9, 0.1, 0.3):
                rec.learn_one(raw, 1)
    assert plain == fast


@pytest.mark.parametrize("compiles", [False, True])
def test_rounds_made_at_once_let_old_tickets_expire(compiles: bool) -> None:
    rec = Recalibrator(seed=1, max_open=3)
    with players.machine(rec.spec.program):
        if compiles:
            rec.compile()
        rec.forecast(0.5, id="old")
        for k in range(4):
            assert rec.open == (k < 3)
            rec.sample_one(0.2)
            rec.learn_one(0.2, 1)
    assert (rec.issued, rec.rounds, rec.open) == (5, 4, 0)
    with pytest.raises(ExpiredTicket, match="'old'"):
        rec.observe("old", 1)


def test_specs_that_were_read_are_forgotten_when_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binary, "MOST_SPECS", 2)
    monkeypatch.setattr(binary, "_specs", {})
    for buckets in range(1, 6):
        rec = Recalibrator(seed=1, buckets=buckets)
        assert Recalibrator.from_bytes(rec.to_bytes()) == rec
        assert len(binary._specs) <= 2


def test_a_round_for_which_there_is_no_room_cannot_be_booked() -> None:
    rec = Recalibrator(seed=1)
    rows, note = rec._rows, rec._rows.peek(rec._row, 0.5)
    assert rows.committable(rec._row, note, 0.5)
    rec.learn_one(0.5, 1)
    assert not rows.committable(rec._row, note, 0.5)
    rows.capacity = 1
    with pytest.raises(InvalidInput, match="rounds must be at most 1 at this resolution"):
        rows.committable(rec._row, rows.peek(rec._row, 0.5), 0.5)


CELLS = st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 9)), min_size=1, max_size=8)


@given(CELLS, st.data(), st.floats(0, 1, exclude_max=True))
def test_the_draw_by_average_gaps_is_the_two_point_rule_written_out(
    cells: list[tuple[int, int]], data: st.DataObject, coin: float
) -> None:
    block: list[Any] = [0] * len(HEAD) + [word for cell in cells for word in cell]
    block[POSITION] = data.draw(st.integers(0, len(cells) - 1))
    given = block, block, 0, len(cells), 0, coin
    assert gaps.draw(*given) == two_point.make_draw(gaps.score, gaps.weigh)(*given)


@pytest.mark.parametrize(
    "made", [Recalibrator, Calibrant, lambda seed: Calibrant(seed=seed, loss="log")]
)
def test_a_plain_batch_leaves_plain_numbers_behind(made: Any) -> None:
    rec = made(seed=1)
    raw = np.random.default_rng(1).random(30)
    rec.replay(raw, (raw > 0.5).astype(int))
    rec.observe(rec.forecast(0.3), 1)
    words = rec.spec.layout.lengthened(rec._arena.words())
    assert {type(word) for word in words} == {int, float}
    ticket = rec.forecast(0.6)
    assert {type(ticket.place), type(ticket.number), type(ticket.clock)} == {int}
