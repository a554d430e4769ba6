"""A table says why a ticket is not open: settled, expired or never made, as a lone stream does."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import ExpiredTicket, RepeatedTicket, TicketError, UnknownTicket
from calibrant.recalibrate import closed as module

pytestmark = pytest.mark.base


def made(**told: Any) -> Recalibrator:
    return Recalibrator(resolution=4, buckets=3, **told)


def refusal(error: type[TicketError], call: Any, *given: Any) -> str:
    with pytest.raises(TicketError) as refused:
        call(*given)
    assert type(refused.value) is error
    return str(refused.value)


def answer(call: Any, *given: Any) -> type[Exception] | None:
    try:
        call(*given)
    except TicketError as error:
        return type(error)
    return None


def test_what_is_not_open_is_settled_or_expired_or_unknown() -> None:
    table = Table(made(max_open=3), seed=1)
    table.forecast("a", 0.5, id="settled")
    table.observe("settled", 1)
    table.forecast("a", 0.5, id="dropped")
    table.expire("dropped")
    for verb in (lambda told: table.observe(told, 1), table.expire, table.coin_of):
        assert refusal(RepeatedTicket, verb, "settled") == (
            "ticket 'settled' must be open, got one whose outcome is known"
        )
        assert refusal(RepeatedTicket, verb, ("a", 0)) == (
            "ticket ('a', 0) must be open, got one whose outcome is known"
        )
        for told in ("dropped", ("a", 1)):
            assert refusal(ExpiredTicket, verb, told) == (
                f"ticket {told!r} must be open, got one that was expired"
            )
        for told in ("nobody", ("a", 2), ("b", 0)):
            assert refusal(UnknownTicket, verb, told) == (
                f"ticket must be one that is open here, got {told!r}"
            )
    old = table.forecast("a", 0.5, id="old")
    for _ in range(3):
        table.forecast("a", 0.5)
    assert refusal(ExpiredTicket, table.observe, "old", 1) == (
        "ticket 'old' must be open, got one that was expired"
    )
    for told in (("a", 2), old):
        assert refusal(ExpiredTicket, table.observe, told, 1) == (
            "ticket ('a', 2) must be among the last 3, got one of 4 forecasts ago: it expired"
        )


@pytest.mark.parametrize("safe", [None, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_every_key_answers_as_a_lone_stream(seed: int, safe: float | None) -> None:
    rng = random.Random(seed)
    pattern = lambda **told: Calibrant(max_open=5, raw_safe=safe, **told)  # noqa: E731
    table = Table(pattern(), seed=3)
    lone = {key: pattern(seed=3, key=key) for key in "ab"}
    for t in range(200):
        key, name, number = rng.choice("ab"), f"{t % 7}", rng.randrange(t + 2)
        own, name = lone[key], f"{key}{name}"
        verb = rng.randrange(8)
        raw, outcome = rng.random(), rng.randrange(2)
        if verb < 2:
            said = answer(lambda: table.forecast(key, raw, id=name))  # noqa: B023
            assert said == answer(lambda: own.forecast(raw, id=name))  # noqa: B023
        elif verb == 2:
            table.forecast(key, raw)
            own.forecast(raw)
        elif verb == 3:
            assert answer(table.observe, name, outcome) == answer(own.observe, name, outcome)
        elif verb == 4:
            told = (key, number)
            assert answer(table.observe, told, outcome) == answer(own.observe, number, outcome)
        elif verb == 5:
            said = answer(table.expire, (key, number))
            assert said == answer(own.expire, number)
        else:
            kinds = [rng.randrange(2) for _ in range(4)]
            ids = [f"{key}{rng.randrange(7)}" for _ in kinds]
            xs = [raw if kind == 0 else outcome for kind in kinds]
            said = answer(table.play, [key] * 4, kinds, ids, xs)
            assert said == answer(own.play, kinds, ids, xs)
    for key, stream in lone.items():
        assert table.row(key) == stream.to_bytes()


def test_tickets_that_went_because_there_were_too_many_are_expired() -> None:
    table = Table(made(), seed=1, most_open=2, when_full="expire")
    for number in range(3):
        table.forecast("a", 0.5, id=f"n{number}")
    for told in ("n0", ("a", 0)):
        refusal(ExpiredTicket, table.observe, told, 1)
    table.forecast_many(["b", "b"], [0.5, 0.5], id=["m0", "m1"])
    for told in ("n1", ("a", 1), "n2", ("a", 2)):
        refusal(ExpiredTicket, table.observe, told, 1)
    table.replay(["c"] * 3, [0.5] * 3, [1] * 3, available=[9.0] * 3)
    for told in ("m0", ("b", 0), ("c", 0)):
        refusal(ExpiredTicket, table.observe, told, 1)
    assert table.observe(("c", 1), 1).number == 1


@pytest.mark.parametrize("crowded", [False, True])
def test_no_outcome_of_a_ticket_that_expired_is_corrected(crowded: bool) -> None:
    table = Table(made(), seed=1, most_open=1 if crowded else None, when_full="expire")
    gone = table.forecast("a", 0.5, id="gone")
    if not crowded:
        table.expire(gone)
    for _ in range(20):
        table.observe(table.forecast("a", 0.5), 1)
    before = table.row("a")
    for told in ({}, {"was": 1}):
        assert refusal(ExpiredTicket, lambda told=told: table.correct(gone, 0, **told)) == (
            "ticket 'gone' must be open, got one that was expired"
        )
    assert table.row("a") == before


def test_a_log_says_what_became_of_its_tickets() -> None:
    table = Table(made(max_open=2), seed=1)
    kinds, ids = [0, 1, 0, 0, 1, 0, 0], ["x", "x", "y", "x", "x", "z", None]
    table.play(["a"] * 7, kinds, ids, [0.5, 1, 0.5, 0.5, 0, 0.5, 0.5])
    refusal(RepeatedTicket, table.observe, "x", 1)
    refusal(ExpiredTicket, table.observe, "y", 1)
    assert table.observe("z", 1).number == 3
    refusal(ExpiredTicket, table.play, ["a"], [1], ["y"], [1])
    refusal(RepeatedTicket, table.play, [None], [1], ["x"], [1])


def test_numbers_that_begin_again_have_no_past() -> None:
    table = Table(made(), seed=1)
    for _ in range(2):
        table.forecast("a", 0.5)
        table.expire(("a", 0))
        refusal(ExpiredTicket, table.observe, ("a", 0), 1)
        del table["a"]
        refusal(UnknownTicket, table.observe, ("a", 0), 1)
        table.observe(table.forecast("b", 0.5), 1)
        refusal(RepeatedTicket, table.observe, ("b", 0), 1)
        table.put("b", made(seed=1).to_bytes())
    table.expire(table.forecast("b", 0.5))
    played = Table(made(), seed=1)
    played.observe(played.forecast("b", 0.5), 1)
    table.take(["b"], [played.body("b")])
    refusal(RepeatedTicket, table.observe, ("b", 0), 1)


def test_only_so_many_closed_tickets_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSED", 4)
    table = Table(made(), seed=1)
    for number in range(9):
        key = "ab"[number % 2]
        table.expire(table.forecast(key, 0.5, id=f"{number}"))
    assert len(table._closed.names) == table._closed.count == 4
    refusal(ExpiredTicket, table.observe, "8", 1)
    refusal(UnknownTicket, table.observe, "2", 1)
    refusal(ExpiredTicket, table.observe, ("a", 4), 1)
    # The number was made, and nothing else is known of it any more.
    refusal(RepeatedTicket, table.observe, ("a", 0), 1)


def test_a_stored_stream_knows_numbers_and_no_names_of_closed_tickets() -> None:
    lone = made(seed=1)
    lone.observe(lone.forecast(0.5, id="one"), 1)
    lone.expire(lone.forecast(0.5))
    refusal(RepeatedTicket, lone.observe, "one", 1)
    refusal(ExpiredTicket, lone.observe, 1, 1)
    for again in (lone.copy(), Recalibrator.from_bytes(lone.to_bytes())):
        refusal(UnknownTicket, again.observe, "one", 1)
        for number in (0, 1):
            refusal(RepeatedTicket, again.observe, number, 1)


def test_a_stored_table_knows_numbers_and_no_names_of_closed_tickets() -> None:
    table = Table(made(max_open=1), seed=1)
    for number in range(3):
        table.forecast("a", 0.5, id=f"n{number}")
    table.observe("n2", 1)
    again = table.copy()
    refusal(UnknownTicket, again.observe, "n2", 1)
    refusal(RepeatedTicket, again.observe, ("a", 2), 1)
    refusal(ExpiredTicket, again.observe, ("a", 1), 1)


def test_a_key_of_which_nothing_is_remembered_any_more_takes_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CLOSED", 2)
    table = Table(made(), seed=1)
    for key in "abcd":
        table.expire(table.forecast(key, 0.5))
    assert len(table._closed.rows) == table._closed.count == 2
    refusal(ExpiredTicket, table.observe, ("d", 0), 1)
    refusal(RepeatedTicket, table.observe, ("a", 0), 1)


KEPT: dict[str, Any] = {
    "names": lambda closed, k: closed.note_name(module.NAMED + k, module.SETTLED),
    "numbers of one row": lambda closed, k: closed.note_number(0, k),
    "numbers of many rows": lambda closed, k: closed.note_number(k % 50_000, k),
}


@pytest.mark.parametrize("what", KEPT)
def test_forgetting_the_oldest_takes_about_as_long_as_remembering(what: str) -> None:
    closed, took = module.KeyedClosed(), []
    for first in (0, module.CLOSED):
        begun = time.thread_time()
        for k in range(first, first + module.CLOSED):
            KEPT[what](closed, k)
        took.append(time.thread_time() - begun)
    assert took[1] < 8 * took[0]
