"""Verbs that are told context: interrupted, without a time, and where there is no room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from test_context import one_by_one, small, stream

from calibrant import Calibrant
from calibrant.errors import InvalidInput
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
