"""Verbs that are told context: interrupted, without a time, and where there is no room."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import players
import pytest
from test_context import columns, one_by_one, small, stream

from calibrant import Calibrant
from calibrant.errors import InvalidInput, InvalidType, StaleForecast
from calibrant.kernels.layout import ISSUED, ROUNDS
from calibrant.transforms import Identity

pytestmark = pytest.mark.plain


def test_a_forecast_with_context_that_is_interrupted_is_withdrawn() -> None:
    rounds = stream(20)
    model, other = small(), small()
    one_by_one(model, rounds)
    one_by_one(other, rounds)
    rows = model._rows
    step = rows.plain_issue

    def stopped(*told: object) -> None:
        step(*told)
        raise KeyboardInterrupt

    rows.plain_issue = stopped
    with pytest.raises(KeyboardInterrupt):
        model.forecast(0.3, context={"age": 50.0})
    rows.plain_issue = step
    assert model.issued == other.issued == 20
    made, same = (each.forecast(0.4, context={"age": 30.0}) for each in (model, other))
    assert (made.number, made.value, made.mean) == (same.number, same.value, same.mean)
    assert model == other


def test_a_rule_that_forgets_in_time_has_no_rounds_without_a_time() -> None:
    timed = {"method": "fading", "unit": "time", "half_life": 3.0}
    model = Calibrant((Identity(),), context=256, resolution=4, seed=3, **timed)
    for verb, told in ((model.sample_one, (0.5,)), (model.learn_one, (0.5, 1))):
        with pytest.raises(InvalidInput, match=rf"{verb.__name__}, which takes none"):
            verb(*told, context={"age": 3.0})
    assert model.issued == 0


def test_compiled_steps_announce_what_plain_ones_do_until_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, stepped = small(), small()
    rows = stepped._rows

    def issue_flat(machine: Any, row: int, raw: float) -> Any:
        full = machine[row + ISSUED] >= rows.capacity
        return (-1, 0, 0, 0, 0) if full else rows.plain_issue(*rows.state(), row, raw)

    monkeypatch.setattr(rows, "capacity", 3)
    rows.begin_compiled(SimpleNamespace(issue_flat=issue_flat))
    found = [
        [each._rows.issue(each._row, raw) for raw in (0.2, 0.7, 0.4)] for each in (plain, stepped)
    ]
    assert found[0] == found[1]
    stepped._words()[stepped._row + ROUNDS] = 3
    with pytest.raises(InvalidInput, match=r"^rounds must be at most 3 at this resolution"):
        rows.issue(stepped._row, 0.5)


def test_compiled_steps_learn_with_context_what_plain_ones_do() -> None:
    plain, stepped = small(), small()
    with players.machine(stepped.spec.program):
        stepped.compile()
        for k in range(30):
            told, late = {"age": 20.0 + k}, {"age": 50.0 - k}
            for each in (plain, stepped):
                first = each.forecast(0.3, context=told)
                if k % 3:
                    each.observe(first, k % 2)
                    continue
                each.observe(each.forecast(0.6, context=late), 1)
                each.observe(first, k % 2)
        assert stepped._rows.steps is not plain._rows.steps is None
        assert stepped.to_bytes() == plain.to_bytes()


HUGE = {"digits of 400": 10**400, "digits of 5000": 10**5000, "fraction": Fraction(10**400, 3)}


@pytest.mark.parametrize("value", HUGE.values(), ids=HUGE)
def test_a_number_that_no_float_holds_is_refused_by_name(value: Any) -> None:
    told = (
        r"^context\['a'\] must be a finite number or a string, or None where it is not known, got"
    )
    model = small()
    before, one, column = model.to_bytes(), {"a": value}, {"a": [0.5, value]}
    verbs: dict[str, Any] = {
        "forecast": lambda: model.forecast(0.4, context=one),
        "sample_one": lambda: model.sample_one(0.4, context=one),
        "predict_mean_one": lambda: model.predict_mean_one(0.4, context=one),
        "learn_one": lambda: model.learn_one(0.4, 1, context=one),
        "replay": lambda: model.replay([0.4, 0.5], [0, 1], context=column),
        "forecast_many": lambda: model.forecast_many([0.4, 0.5], context=column),
        "play": lambda: model.play([0, 0], ["x", "y"], [0.4, 0.5], context=column),
        "object column": lambda: model.replay([0.4], [0], context={"a": np.array([value])}),
    }
    for verb in verbs.values():
        with pytest.raises(InvalidInput, match=told):
            verb()
    assert model.to_bytes() == before


def reversed_in(rounds: Any) -> Any:
    raw, outcomes, told = rounds
    return raw, outcomes, [dict(reversed(each.items())) for each in told]


def test_the_order_of_features_does_not_count() -> None:
    rounds = stream(150)
    one, other = Calibrant(context=True, seed=1), Calibrant(context=True, seed=1)
    assert one_by_one(one, rounds) == one_by_one(other, reversed_in(rounds))
    assert one == other
    raw, outcomes, told = rounds
    batch = Calibrant(context=True, seed=1)
    batch.replay(raw, outcomes, context=dict(reversed(columns(told).items())))
    assert batch == one


def test_a_look_is_found_again_whatever_the_order_of_its_features() -> None:
    model, known = small(), {"b": 1.0, "a": "x", "c": None}
    one_by_one(model, stream(20))
    model.sample_one(0.4, context=known)
    model.learn_one(0.4, 1, context=dict(reversed(known.items())))
    assert not model._notes
    # And a round that came between is noticed.
    model.sample_one(0.4, context=known)
    model.observe(model.forecast(0.4), 1)
    with pytest.raises(StaleForecast):
        model.learn_one(0.4, 1, context=dict(reversed(known.items())))


def test_names_that_are_no_strings_are_refused_before_they_are_sorted() -> None:
    for context in ({"a": 1.0, 2: 1.0}, {2: 1.0, "a": 1.0}, {None: None, "a": 1.0}):
        with pytest.raises(InvalidType, match=r"^context must have strings as names, got (2|None)"):
            small().forecast(0.4, context=context)
        with pytest.raises(InvalidType, match=r"^context must have strings as names, got (2|None)"):
            small().replay([0.4], [1], context={name: [1.0] for name in context})
