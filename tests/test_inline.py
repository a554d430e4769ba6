"""Functions that were written out do exactly what the calls did."""

from __future__ import annotations

import traceback
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.calibrators import Calibrator
from calibrant.calibrators.storage import Storage
from calibrant.kernels import inline
from calibrant.kernels.inline import inlined
from calibrant.kernels.layout import BLOCKS, CELLS, LOSS, STRIDE, TABLE
from calibrant.registry import calibrators

BUCKETS = 2
ACTIONS = st.tuples(
    st.sampled_from(["note", "book", "issue", "settle"]),
    st.integers(0, BUCKETS - 1),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0, exclude_max=True),
    st.integers(0, 1),
)


def fresh(rule: Calibrator, loss: int) -> list:
    flat = rule.flat(BUCKETS, prior=1, centres=[Fraction(1, 4), Fraction(3, 4)], keys=[1, 2])
    flat[LOSS] = loss
    return Storage(rule, flat).words()


def played(program, words: list, actions: list) -> list:
    """Return what the steps answer, late outcomes included."""
    told, waiting = [], []
    cells, table = words[CELLS], words[TABLE]
    for action, j, raw, u, outcome in actions:
        at = words[BLOCKS] + j * words[STRIDE]
        if action == "note":
            told.append(program.note(words, words, at, cells, table, raw, u))
        elif action == "book":
            told.append(program.book(words, words, at, cells, table, raw, u, outcome))
        elif action == "issue":
            cell, side, weight = program.issue(words, words, at, cells, table, raw, u)
            waiting.append((at, (side << 15) | cell, weight, raw))
            told.append((cell, side, weight))
        elif waiting:
            where, place, weight, asked = waiting.pop(int(u * len(waiting)))
            weight = -1.0 if program.many else weight
            program.settle(words, words, where, table, place, weight, asked, outcome, 1.0)
    return told


@pytest.mark.parametrize("name", calibrators.names())
@given(actions=st.lists(ACTIONS, max_size=60), loss=st.integers(0, 3))
def test_steps_that_were_written_out_agree_to_the_bit_with_their_calls(name, actions, loss) -> None:
    rule = calibrators.get(name)(resolution=5)
    one, other = fresh(rule, loss), fresh(rule, loss)
    assert rule.program.written_out.issue is not rule.program.issue
    told = played(rule.program, one, actions)
    assert played(rule.program.written_out, other, actions) == told
    assert [repr(word) for word in one] == [repr(word) for word in other]


def kernel(function):
    """Let a function of this file pass for a kernel."""
    function.__module__ = "calibrant.kernels.example"
    return function


BASE = 7
FLAG = False


def swap(a, b):
    return b, a


def sign(x):
    """Have several ways out."""
    if x < 0:
        return -1
    if x > 0:
        return 1
    return 0


def sign_of_shifted(x):
    return sign(x + BASE)


def shout(record, x):
    record.append(x)


def total(values):
    found = 0
    for value in values:
        found += value
    return found


for each in (swap, sign, sign_of_shifted, shout, total):
    kernel(each)


def test_names_of_the_caller_survive_a_swap_of_them() -> None:
    def turned(a, b):
        a, b = swap(a, b)
        a, b = swap(a, b)
        a, b = swap(a, b)
        return a, b

    assert inlined(turned, "test")(1, 2) == (2, 1)


@given(st.integers(-20, 20))
def test_early_returns_end_what_was_called_and_not_the_caller(x) -> None:
    def both(x):
        one = sign(x)
        other = sign_of_shifted(x)
        return one, other, sign(one + other)

    assert inlined(both, "test")(x) == both(x)


@given(st.integers(-20, 20))
def test_a_call_that_is_returned_is_written_out_too(x) -> None:
    def passed_on(x):
        if x > 10:
            return sign(10 - x)
        return sign_of_shifted(x)

    made = inlined(passed_on, "test")
    assert made(x) == passed_on(x)
    assert "sign" not in made.__code__.co_names


def test_a_call_for_its_effect_is_written_out() -> None:
    def told(record):
        shout(record, BASE)
        shout(record, len(record))

    record: list[int] = []
    inlined(told, "test")(record)
    assert record == [7, 1]


def test_branches_that_constants_decide_are_left_out_and_others_stay() -> None:
    def chosen(x, y):
        if FLAG and x > 1:
            return "flag"
        if x > 1 and y > 1:
            return "both"
        if BASE:
            x += 1 if FLAG else BASE
        else:
            x = 0
        return x

    made = inlined(chosen, "test")
    assert [made(0, 0), made(2, 2), made(2, 0)] == [chosen(0, 0), chosen(2, 2), chosen(2, 0)]
    assert "flag" not in made.__code__.co_consts


def test_an_optional_function_is_decided_when_it_is_written_out() -> None:
    def make(start):
        def begun(x):
            return x if start is None else start(x)

        return begun

    assert inlined(make(None), "test")(-3) == -3
    assert inlined(make(sign), "test")(-3) == -1


def test_comparisons_with_what_is_not_known_stay() -> None:
    def asked(x):
        return 1 if x is None else 2

    made = inlined(asked, "test")
    assert (made(None), made(3)) == (1, 2)


def test_functions_with_loops_stay_calls_and_so_do_calls_within_expressions() -> None:
    def summed(values):
        found = total(values)
        return found + sign(found)

    assert inlined(summed, "test")([1, 2, 3]) == 7


def test_a_function_whose_source_is_not_at_hand_is_left_alone(monkeypatch) -> None:
    def hidden(function):
        raise OSError("could not get source code")

    def unseen(x):
        return x

    monkeypatch.setattr(inline.inspect, "getsource", hidden)
    assert inlined(unseen, "test") is unseen


def test_what_is_not_a_function_is_left_alone() -> None:
    (doubled,) = [lambda x: 2 * x]
    assert inlined(doubled, "test") is doubled


def test_a_traceback_shows_the_line_that_was_written_out() -> None:
    def divided(x):
        return BASE / x

    with pytest.raises(ZeroDivisionError) as caught:
        inlined(divided, "test")(0)
    told = "".join(traceback.format_exception(caught.value))
    assert "divided of test, written out" in told
    assert "return 7 / x" in told
