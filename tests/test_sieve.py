"""Which events of a log a table refuses: what the sieve says, and what is left can be played."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import CalibrantError
from calibrant.recalibrate.sieve import OTHER, SAME, sieve

pytestmark = pytest.mark.base


def table(**options: object) -> Table:
    made = Table(Recalibrator(resolution=10, **options), seed=7)
    made.forecast("a", 0.5, id="old", time=3.0)
    made.forecast("b", 0.25)
    made.observe(("b", 0), 1)
    return made


def faults(log: list[tuple[object, ...]], **options: object) -> list[tuple[int, str, str]]:
    told = sieve(table(**options), *(list(column) for column in zip(*log, strict=True)))
    return [(fault.row, fault.column, fault.rule) for fault in told]


def event(kind: object, key: object, id: object, x: float, time: float | None = None):
    return key, kind, id, x, time


@pytest.mark.parametrize(
    ("row", "column", "rule"),
    [
        (event("forecast", "a", "new", 1.5), "x", "a number in [0, 1]"),
        (event("forecast", "a", "new", np.nan), "x", "a number in [0, 1]"),
        (event("outcome", "a", "old", 0.5), "x", "0 or 1"),
        (event("guess", "a", "new", 0.5), "kind", "'forecast' (0) or 'outcome' (1)"),
        (event(None, "a", "new", 0.5), "kind", "'forecast' (0) or 'outcome' (1)"),
        (event("forecast", None, "new", 0.5), "key", "a string or a whole number"),
        (event("forecast", "a", "new", 0.5, np.inf), "time", "finite"),
        (event("outcome", "a", "old", 1, 2.0), "time", "not before the forecast's"),
        (event("forecast", "a", "old", 0.5), "id", SAME),
        (event("forecast", "c", "old", 0.75), "id", OTHER),
        (event("outcome", "a", "nobody", 1), "id", "that of an open ticket"),
        (event("outcome", "b", 0, 1), "id", "that of an open ticket"),
        (event("outcome", "b", 9, 1), "id", "that of an open ticket"),
        (event("outcome", "b", "old", 1), "id", "that of a ticket of its key"),
        (
            event("forecast", "a", "", 0.5),
            "id",
            "a string that is not empty, or for an outcome its ticket's number",
        ),
    ],
)
def test_an_event_that_breaks_a_rule_is_told_with_column_and_rule(row, column, rule) -> None:
    fine = event("forecast", "c", "fine", 0.5)
    assert faults([fine, row, event("outcome", "c", "fine", 0)]) == [(1, column, rule)]


def test_events_that_can_be_played_are_none_of_the_sieve() -> None:
    log = [event(0, "a", None, 0.5), event(1, "a", 1, 1.0), event(1, "a", "old", 1, 4.0)]
    assert faults(log) == []


def test_an_outcome_that_comes_twice_is_the_same_or_another() -> None:
    log = [event("outcome", "a", "old", 1), event("outcome", "a", "old", 1)]
    assert faults([*log, event("outcome", "a", "old", 0)]) == [(1, "id", SAME), (2, "id", OTHER)]


def test_a_forecast_that_comes_twice_in_one_log_is_the_same_or_another() -> None:
    log = [event("forecast", "z", "new", 0.5), event("forecast", "z", "new", 0.5)]
    assert faults([*log, event("forecast", "z", "new", 0.6)]) == [(1, "id", SAME), (2, "id", OTHER)]


def test_an_outcome_of_a_ticket_that_expired_is_told() -> None:
    log = [event("forecast", "a", None, 0.5)] * 2 + [event("outcome", "a", "old", 1)]
    rule = "that of an open ticket, got one that expired"
    assert faults(log, max_open=1) == [(2, "id", rule)]


def test_a_rule_that_forgets_in_time_needs_times() -> None:
    clocked = Table(Recalibrator("fading", unit="time"), seed=7)
    told = sieve(clocked, ["a"], ["forecast"], [None], [0.5], [None])
    assert [(fault.column, fault.rule) for fault in told] == [
        ("time", "given to a rule that forgets in time")
    ]


events = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.sampled_from(["forecast", "outcome", "guess"]),
    st.sampled_from([None, "one", "two", "", 0, 1]),
    st.sampled_from([0.0, 1.0, 0.5, -1.0, np.nan]),
    st.sampled_from([None, 0.0, 1.0, np.inf]),
)


@pytest.mark.parametrize("pattern", [Recalibrator(max_open=2), Calibrant(max_open=2)], ids=repr)
@given(log=st.lists(events, min_size=1, max_size=30))
def test_what_the_sieve_leaves_can_be_played_and_what_it_takes_cannot(pattern, log) -> None:
    whole = Table(pattern, seed=7)
    columns = [list(column) for column in zip(*log, strict=True)]
    bad = {fault.row for fault in sieve(whole, *columns)}
    for row, (key, kind, id, x, time) in enumerate(log):
        given = [key], [kind], [id], [x], [np.nan if time is None else time]
        if row not in bad:
            whole.play(*given)
        elif key is not None:
            with pytest.raises(CalibrantError):
                whole.play(*given)
