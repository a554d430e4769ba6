"""Quick plain steps of a rule alone, against the steps that every program has."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator
from calibrant.kernels import gaps, two_point
from calibrant.kernels.layout import HEAD, ISSUED, POSITION, ROUNDS
from calibrant.recalibrate.spec import Spec
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

ALONE = [
    name
    for name in calibrators.names()
    if not (rule := calibrators.get(name)().kernels).full_support and not rule.anchored
]
EVENTS = st.lists(
    st.tuples(st.sampled_from(["issue", "learn", "book", "stale", "late"]), st.floats(0, 1))
)


def spec_of(name: str, grid: str = "endpoints", loss: str = "squared") -> Spec:
    return Recalibrator(name, resolution=4, buckets=3, grid=grid, loss=loss).spec


def test_most_rules_stand_alone_and_the_default_does_not() -> None:
    assert {"foster_hart", "regret_matching", "blackwell"} <= set(ALONE)
    default = Calibrant(seed=1).spec
    assert default.steps is default.program
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
        assert quick == slow
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
        assert program.book(words, words, row, *look, raw, outcome) == -1
    else:
        program.book(words, words, row, *look, raw, outcome)
    return look


CELLS = st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 9)), min_size=1, max_size=8)


@given(CELLS, st.data(), st.floats(0, 1, exclude_max=True))
def test_the_draw_by_average_gaps_is_the_two_point_rule_written_out(
    cells: list[tuple[int, int]], data: st.DataObject, coin: float
) -> None:
    block: list[Any] = [0] * len(HEAD) + [word for cell in cells for word in cell]
    block[POSITION] = data.draw(st.integers(0, len(cells) - 1))
    given = block, block, 0, len(cells), 0, coin
    assert gaps.draw(*given) == two_point.make_draw(gaps.score, gaps.weigh)(*given)
