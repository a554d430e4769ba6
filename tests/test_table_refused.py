"""Tables: what is no key, no ticket and no event is refused, and nothing has happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibrant import Keys, Recalibrator, Table
from calibrant.core.desk import name_key
from calibrant.errors import (
    CalibrantError,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    TooManyOpen,
    UnknownTicket,
)

pytestmark = pytest.mark.base

HUGE = 10**5000


def made(**told: Any) -> Recalibrator:
    return Recalibrator(resolution=5, buckets=2, **told)


# ------------------------------------------------------------------------------ keys


@pytest.mark.parametrize(
    ("ends", "kind"),
    [((-100, 100), np.int8), ((-20_000, 20_000), np.int16), ((0, 255), np.uint8)],
)
def test_whole_numbers_of_few_bits_are_the_keys_that_they_are(
    ends: tuple[int, int], kind: Any
) -> None:
    column = np.tile(np.array([*ends, 5], kind), 4_000)
    keys = Keys.of(column)
    assert keys.names == [*ends, 5]
    assert keys.codes[:4].tolist() == [0, 1, 2, 0]


def test_a_key_that_is_masked_is_none() -> None:
    with pytest.raises(InvalidInput) as refused:
        Keys.of(np.ma.masked_array([1, 2, 3], [False, True, False]))
    assert str(refused.value) == "keys[1] must be known, got a masked value"


def test_streams_are_taken_over_under_keys_of_numpy() -> None:
    table, lone = Table(made(), seed=1), made(seed=1, key=5)
    table[np.int64(5)] = lone  # type: ignore[index]
    table.put(np.str_("a"), made(seed=1, key="a").to_bytes())
    assert [type(key) for key in table] == [int, str]
    assert Table.from_bytes(table.to_bytes()) == table
    del table[np.int64(5)]  # type: ignore[arg-type]
    assert [(type(key), body) for key, body in table.changes(2)] == [(int, None)]


def test_only_keys_are_in_a_table() -> None:
    table = Table(made(), seed=1)
    table.forecast(1, 0.5)
    assert 1 in table
    assert np.int64(1) in table
    assert not any(key in table for key in (True, 1.0, "1", None, np.True_))


def test_a_number_that_cannot_be_written_down_is_no_key() -> None:
    table = Table(made(), seed=1)
    told = "key must be a whole number of at most 14284 bits, got one of 16610"
    for call in (
        lambda: table.forecast(HUGE, 0.5),
        lambda: table.put(-HUGE, made(seed=1).to_bytes()),
        lambda: made(seed=1, key=HUGE),
    ):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert str(refused.value) == told
    with pytest.raises(ValueError, match="digits"):
        table.replay([1, HUGE], [0.5, 0.5], [0, 1])
    assert len(table) == 0
    table.forecast(2**14_284 - 1, 0.5)
    assert Table.from_bytes(table.to_bytes()) == table


def test_a_seed_is_one_that_a_lone_stream_takes() -> None:
    for seed in (-(2**127), 2**127):
        assert Table(made(), seed=seed).is_like(made(seed=seed))
        for call in (lambda s: Table(made(), seed=s), lambda s: made(seed=s)):
            with pytest.raises(InvalidInput, match="seed must be a whole number from -1"):
                call(seed + (1 if seed > 0 else -1))


# --------------------------------------------------------------------------- tickets


@pytest.mark.parametrize("number", [1 << 40, name_key("named"), 1 << 70])
def test_a_number_that_no_ticket_has_is_not_that_of_another_key(number: int) -> None:
    table = Table(made(), seed=1)
    table.forecast("a", 0.5, id="named")
    table.forecast("b", 0.5)
    before = table.to_bytes()
    with pytest.raises(UnknownTicket):
        table.observe(("a", number), 1)
    assert table.to_bytes() == before


@pytest.mark.parametrize("way", ["put", "take"])
def test_names_of_tickets_in_the_store_are_not_taken_over(way: str) -> None:
    table, other = Table(made(), seed=1, store={}), Table(made(), seed=1)
    table.forecast("a", 0.5, id="one")
    table.evict(keep=0)
    other.forecast("b", 0.5, id="one")
    with pytest.raises(RepeatedTicket, match="id must not be that of an open ticket of another"):
        table.put("b", other.row("b")) if way == "put" else table.take(["b"], other.bodies())
    assert "b" not in table
    assert table.observe("one", 1).key == "a"
    # The stream of the key itself may be replaced, tickets and all.
    table.forecast("a", 0.5, id="two")
    there = table.row("a"), table.bodies(["a"])
    table.evict(keep=0)
    table.put("a", there[0]) if way == "put" else table.take(["a"], there[1])
    assert table.row("a") == there[0]


# -------------------------------------------------------------------------- marks


def test_a_forecast_that_is_refused_leaves_no_trace_of_its_key() -> None:
    table = Table(made(), seed=1, most_open=2)
    table.forecast("a", 0.5)
    table.forecast("b", 0.5)
    since = table.mark()
    del table["a"]
    table.forecast("c", 0.5)
    with pytest.raises(TooManyOpen):
        table.forecast("a", 0.5)
    assert [(key, body is None) for key, body in table.changes(since)] == [
        ("c", False),
        ("a", True),
    ]


def test_a_key_that_went_and_came_and_left_for_the_store_is_not_gone() -> None:
    table = Table(made(), seed=1, store={})
    table.forecast("a", 0.5)
    del table["a"]
    table.forecast("a", 0.5)
    assert [key for key, body in table.changes(0) if body is not None] == ["a"]
    table.evict(keep=0)
    assert table.changes(0) == []


def test_idle_calls_are_counted_as_they_were_made() -> None:
    table = Table(made(), seed=1, store={}, most_open=2, when_full="expire")
    table.forecast("a", 0.5)
    table.forecast("b", 0.5)
    assert [key for key, _ in table.evict(idle=2)] == []
    assert [key for key, _ in table.evict(idle=1)] == ["a"]
    table.forecast("a", 0.5)
    assert [key for key, _ in table.evict(idle=2)] == []
    # The oldest ticket goes, whose key is touched in the same call: b here, and then a.
    table.replay(["c"], [0.5], [1])
    table.forecast("c", 0.5)
    assert [key for key, _ in table.evict(idle=2)] == ["b"]
    assert [key for key, _ in table.evict(idle=1)] == ["a"]
    # Who is looked at comes back, and may go at once.
    assert table["a"].issued == 2
    assert [key for key, _ in table.evict(idle=1)] == []
    assert [key for key, _ in table.evict(idle=0)] == ["c", "a"]


class Stubborn(dict[Any, bytes]):
    def pop(self, *told: Any) -> bytes:
        raise OSError("the disk is read-only")


def test_a_key_that_the_store_does_not_forget_stays() -> None:
    table = Table(made(), seed=1, store=Stubborn())
    table.forecast("a", 0.5)
    table.evict(keep=0)
    with pytest.raises(OSError, match="read-only"):
        del table["a"]
    assert list(table) == ["a"]
    assert table.changes(0) == [("a", table.body("a"))]


# ------------------------------------------------------------------------------ events


def played() -> Table:
    table = Table(made(max_open=4), seed=1)
    table.forecast_many(["a", "b", "a"], [0.1, 0.2, 0.3], id=["one", None, "two"])
    return table


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ((["c", "a"], [0, 1], ["x", "no"], [0.5, 1]), "event 1: ticket must be one that is open"),
        ((["c", "a"], [0, 1], ["x", 9], [0.5, 1]), "event 1: ticket must be one that is open here"),
        ((["c", "b"], [0, 0], ["x", "one"], [0.5, 0.5]), "event 1: id must not be that of an open"),
        ((["c", "b"], [0, 0], ["x", "x"], [0.5, 0.5]), "event 1: id must not be that of an open"),
        ((["c", "b"], [0, 0], ["x", ""], [0.5, 0.5]), "event 1: id must be a string that is not"),
        ((["c", "b"], [0, 0], ["x", 3], [0.5, 0.5]), "event 1: id must be a string that is not"),
        ((["c", "b"], [0, 1], ["x", 0.0], [0.5, 1]), "event 1: ticket must be a Ticket or its id"),
        ((["c", "b"], [0, 1], ["x", "one"], [0.5, 1]), "event 1: ticket 'one' must be of its key"),
        ((["a", "a"], [1, 1], ["one", "one"], [1, 1]), "event 1: ticket 'one' must be open, got"),
        ((["c", "b", "c"], [0, 1, 0], ["x", 0, "y"], [0.5, 1, 2]), "x[2] must be a number in [0, "),
        ((["c", "b", "c"], [0, 1, 1], ["x", 0, "x"], [0.5, 1, 2]), "x[2] must be 0 or 1 for an o"),
        ((["c", "b"], ["forecast", "guess"], None, [0.5, 1]), "kind[1] must be 'forecast' (0) or"),
        ((["c", "b"], [0, 2], None, [0.5, 1]), "kind[1] must be 'forecast' (0) or 'outcome' (1)"),
        ((["c", "b"], [0, 1], ["x", 0], [0.5, np.nan]), "x[1] must be 0 or 1 for an outcome, got "),
        ((["c", "b"], [0, 0], ["x", "y"], [0.5, np.nan]), "x[1] must be a number in [0, 1] for a"),
    ],
)
def test_an_event_that_breaks_a_rule_is_named(log: Any, told: str) -> None:
    table = played()
    before = table.to_bytes()
    with pytest.raises(CalibrantError) as refused:
        table.play(*log)
    assert str(refused.value).startswith(told)
    assert table.to_bytes() == before


def test_a_lone_stream_names_the_event_too() -> None:
    lone = made(seed=1)
    before = lone.to_bytes()
    for log, told in (
        (([0, 1], ["x", "no"], [0.5, 1]), "event 1: "),
        (([0, 0], ["x", "x"], [0.5, 0.5]), "event 1: id must not be that of an open ticket"),
        (([0, 1, 0], ["x", "x", "y"], [0.5, 1, 2]), "x[2] must be a number in [0, 1]"),
    ):
        with pytest.raises(CalibrantError) as refused:
            lone.play(*log)
        assert str(refused.value).startswith(told)
        assert lone.to_bytes() == before


def test_what_is_carried_over_is_read_before_anything_happens() -> None:
    table = Table(made(), seed=1)
    left = table.replay(["a"] * 3, [0.5] * 3, [1] * 3, available=[9.0] * 3).pending
    before = table.to_bytes()
    wrong: list[tuple[dict[str, Any], Any, str]] = [
        ({"number": left.number + 0.5}, InvalidType, "carry.number must be whole numbers"),
        ({"key": ["a", ["a"], "a"]}, InvalidType, "row 1: key must be a string or a whole"),
        ({"key": ["a", True, "a"]}, InvalidType, "row 1: key must be a string or a whole"),
    ]
    for change, error, told in wrong:
        with pytest.raises(error) as refused:
            table.replay(["a"], [0.5], [1], time=[20.0], carry=replace(left, **change))
        assert str(refused.value).startswith(told)
        assert table.to_bytes() == before
    listed: Any = [np.str_("a")] * 3
    told_again = replace(left, key=listed, number=left.number.tolist())
    assert len(table.replay(["a"], [0.5], [1], time=[20.0], carry=told_again).pending) == 0


@pytest.mark.parametrize("number", [np.int64(3), np.uint64(1 << 63), np.int8(-1)])
def test_an_unknown_number_of_numpy_is_named_as_any_other(number: Any) -> None:
    table = played()
    before = table.to_bytes()
    for keys, told in (([None], int(number)), (["a"], ("a", int(number)))):
        for call in (
            lambda keys=keys: table.play(keys, ["outcome"], [number], [1]),
            lambda keys=keys: table.observe_many([number], [1], keys=keys),
        ):
            with pytest.raises(UnknownTicket) as refused:
                call()
            text = f"event 0: ticket must be one that is open here, got {told!r}"
            assert str(refused.value) == text
    assert table.to_bytes() == before


@pytest.mark.parametrize("failure", [0.0, 1.0, 2, -1, float("nan"), "x", None])
def test_a_failure_is_a_probability(failure: Any) -> None:
    table = played()
    calls: list[Callable[..., Any]] = [table.certificates, lambda f: table.certificates(f)]
    for call in calls:
        with pytest.raises(CalibrantError) as refused:
            call(failure)
        assert str(refused.value) == f"failure must be a number in (0, 1), got {failure!r}"


# ------------------------------------------------------------------------------ room


def test_a_round_for_which_a_key_has_no_room_is_named_by_its_place() -> None:
    table = Table(made(), seed=1)
    table.replay(["a", "b"], [0.5, 0.5], [1, 0])
    table.forecast("a", 0.5)
    table._rows.capacity = 3
    before = table.to_bytes()
    keys, raw, told = ["b", "a", "c", "a", "a", "c"], [0.5] * 6, [1, 0, 1, 0, 1, 0]
    rule = "must be at most 3 in all, got one more: "
    with pytest.raises(InvalidInput) as refused:
        table.replay(keys, raw, told)
    assert str(refused.value) == f"rounds of key 'a' {rule}forecast 4 of the batch"
    with pytest.raises(InvalidInput) as refused:
        table.replay([*keys[:5], "a"], raw, told, time=range(6), available=range(6))
    assert str(refused.value) == f"rounds of key 'a' {rule}forecast 4 of the batch"
    with pytest.raises(InvalidInput) as refused:
        table.replay(["new"] * 4, raw[:4], told[:4])
    assert str(refused.value) == f"rounds of key 'new' {rule}forecast 3 of the batch"
    events = [0, 0, 0, 1, 1, 1]
    with pytest.raises(InvalidInput) as refused:
        table.play(["a"] * 6, events, ["x", "y", None, "x", "y", 1], [0.5] * 3 + [1.0] * 3)
    assert str(refused.value) == f"rounds of key 'a' {rule}ticket 1, from before"
    assert table.to_bytes() == before
    assert table.replay(keys[:4], raw[:4], told[:4]).ticket.tolist() == [1, 2, 0, 3]
