"""Tables: many rows of one spec, by key."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import (
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownName,
    UnknownTicket,
)
from calibrant.recalibrate.keyed import KeyedTicket
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

KEYS = ["north", "south", 7, "a longer name"]


def patterns() -> list[Any]:
    rules = [
        lambda seed=None, key=None, name=name: Recalibrator(
            name, resolution=4, buckets=3, seed=seed, key=key, max_open=20
        )
        for name in calibrators.names()
    ]
    chains = [
        lambda seed=None, key=None, more=more: Calibrant(seed=seed, key=key, max_open=20, **more)
        for more in ({}, {"raw_safe": 0.01}, {"loss": "log"})
    ]
    timed = lambda seed=None, key=None: Recalibrator(  # noqa: E731
        "fading", unit="time", half_life=9.0, resolution=4, seed=seed, key=key, max_open=20
    )
    return [*rules, *chains, timed]


@pytest.mark.parametrize("made", patterns())
def test_every_key_plays_as_a_lone_stream_with_its_seed_and_key(made: Any) -> None:
    table, rng = Table(made(), seed=11), random.Random(3)
    lone = {key: made(seed=11, key=key) for key in KEYS}
    waiting: list[tuple[KeyedTicket, Any, int, Any]] = []
    for t in range(160):
        key, raw = rng.choice(KEYS), rng.random()
        name = f"ticket {t}" if rng.random() < 0.4 else None
        ticket = table.forecast(key, raw, id=name, time=float(t))
        own = lone[key].forecast(raw, id=name, time=float(t))
        assert (ticket.value, ticket.mean, ticket.number) == (own.value, own.mean, own.number)
        assert (ticket.key, ticket.id, ticket.clock) == (key, own.id, own.clock)
        waiting.append((ticket, own, int(rng.random() < raw), key))
        while waiting and rng.random() < 0.5:
            one, other, outcome, whose = waiting.pop(rng.randrange(len(waiting)))
            if lone[whose].issued - other.number > 20:
                continue
            by_name = isinstance(one.id, str) and rng.random() < 0.5
            way: Any = one.id if by_name else rng.choice([one, (whose, one.number)])
            assert table.observe(way, outcome).outcome == outcome
            lone[whose].observe(other, outcome)
    assert list(table) == list(dict.fromkeys(table))
    assert len(table) == len(KEYS)
    for key in KEYS:
        assert table.row(key) == lone[key].to_bytes()
        assert table[key] == lone[key]


def test_a_table_goes_on_where_it_was_stored() -> None:
    table = Table(Calibrant(max_open=50), seed=1)
    for t in range(60):
        ticket = table.forecast(t % 3, t / 60.0, id=f"n{t}" if t % 2 else None)
        if t % 5:
            table.observe(ticket, t % 2)
    for again in (Table.from_bytes(table.to_bytes()), Table.from_dict(table.to_dict())):
        assert again == table
        assert list(again) == list(table)
        assert again.forecast(1, 0.4).value == table.copy().forecast(1, 0.4).value
        assert again.observe("n5", 1).key == 2


def test_streams_move_in_and_out() -> None:
    table, lone = Table(Recalibrator(), seed=1), Recalibrator(seed=9)
    lone.observe(lone.forecast(0.3), 1)
    waits = lone.forecast(0.6, id="waits")
    table["moved"] = lone
    assert table.row("moved") == lone.to_bytes()
    assert table.observe("waits", 1).value == lone.observe(waits, 1).value
    assert table.row("moved") == lone.to_bytes()
    with pytest.raises(InvalidInput, match="stream must have the settings of the table, got"):
        table["moved"] = Recalibrator(buckets=3)
    with pytest.raises(InvalidInput, match=r"stream must have the settings .* got Calibrant\("):
        table["moved"] = Calibrant(seed=9)
    with pytest.raises(InvalidType, match="stream must be a recalibrator, got 3"):
        table["moved"] = 3  # type: ignore[assignment]
    assert table.row("moved") == lone.to_bytes()


def test_a_name_is_open_in_one_stream_at_a_time() -> None:
    table = Table(Recalibrator(), seed=1)
    table.forecast("a", 0.5, id="order")
    before = table.to_bytes()
    with pytest.raises(RepeatedTicket, match="id must not be that of an open ticket, got 'order'"):
        table.forecast("b", 0.5, id="order")
    other = Recalibrator(seed=2)
    other.forecast(0.1, id="order")
    with pytest.raises(RepeatedTicket, match="of another key"):
        table["c"] = other
    assert table.to_bytes() == before


def test_what_is_not_open_or_not_a_key_is_refused() -> None:
    table = Table(Recalibrator(), seed=1)
    ticket = table.forecast("a", 0.5)
    altered = KeyedTicket.from_dict(ticket.to_dict() | {"raw": 0.25})
    before = table.to_bytes()
    with pytest.raises(ForeignTicket, match="got an altered one"):
        table.observe(altered, 1)
    for other in ("nobody", ("a", 7), ("b", 0)):
        with pytest.raises(UnknownTicket, match="ticket must be one that is open here, got"):
            table.observe(other, 1)
    with pytest.raises(InvalidType, match="ticket must be a ticket, its name, or its key and"):
        table.observe(3, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match=r"key must be a string or a whole number, got 1\.5"):
        table.forecast(1.5, 0.5)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="key must be one that the table holds, got 'b'"):
        table.row("b")
    assert table.to_bytes() == before
    assert "b" not in table
    table.observe(KeyedTicket.from_dict(ticket.to_dict()), 1)
    ticket._outcome = 1
    with pytest.raises(RepeatedTicket, match="got one whose outcome 1 is known; use correct"):
        table.observe(ticket, 1)


def test_a_pattern_has_made_no_forecast() -> None:
    used = Recalibrator(seed=1)
    used.forecast(0.5)
    with pytest.raises(InvalidInput, match="pattern must be a recalibrator without a forecast"):
        Table(used)
    assert Table(Recalibrator()).row is not None
    assert Table(Recalibrator()) != Table(Recalibrator())


def test_tickets_that_expire_give_back_their_reserve_in_their_own_row() -> None:
    options = {"raw_safe": 0.3, "max_open": 2}
    table = Table(Calibrant(**options), seed=5)
    lone = {key: Calibrant(seed=5, key=key, **options) for key in "ab"}
    for t in range(30):
        key, raw = "ab"[t % 3 == 0], t / 30.0
        ticket, own = table.forecast(key, raw), lone[key].forecast(raw)
        assert ticket.value == own.value
        if t < 15:
            table.observe(ticket, t % 2)
            lone[key].observe(own, t % 2)
    for key, stream in lone.items():
        assert stream.open == 2
        assert table.row(key) == stream.to_bytes()
    with pytest.raises(ExpiredTicket) as refused:
        table.observe(("a", 11), 1)
    assert str(refused.value) == (
        "ticket ('a', 11) must be among the last 2, got one of 9 forecasts ago: it expired"
    )


def test_a_stream_without_open_tickets_moves_in() -> None:
    table, lone = Table(Recalibrator(), seed=1), Recalibrator(seed=9)
    lone.observe(lone.forecast(0.3), 1)
    table.forecast("moved", 0.2)
    table["moved"] = lone
    assert table.row("moved") == lone.to_bytes()
    assert repr(table) == "Table(Recalibrator, keys=1, open=0)"


def test_names_and_times_that_make_no_sense_are_refused() -> None:
    table = Table(Recalibrator("fading", unit="time"), seed=1)
    ticket = table.forecast("a", 0.5, time=3.0)
    before = table.to_bytes()
    for id in ("", 7):
        with pytest.raises(InvalidType) as wrong:
            table.forecast("a", 0.5, id=id, time=4.0)  # type: ignore[arg-type]
        assert str(wrong.value) == f"id must be a string that is not empty, got {id!r}"
    with pytest.raises(InvalidInput) as refused:
        table.forecast("a", 0.5)
    assert str(refused.value) == "time must be given to a rule that forgets in time, got None"
    with pytest.raises(InvalidInput) as refused:
        table.observe(ticket, 1, time=2.0)
    assert str(refused.value) == "time must not be before the forecast's 3.0, got 2.0"
    assert table.to_bytes() == before
    assert table.observe(ticket, 1, time=3.0).outcome == 1


def test_dates_are_times_in_calls_as_in_batches() -> None:
    dates = np.array(["2024-02-29", "2024-03-01"], "M8[D]")
    one, two = (Table(Recalibrator(), seed=3) for _ in range(2))
    ticket = one.forecast("a", 0.3, id="x", time=dates[1])
    two.forecast_many(["a"], [0.3], id=["x"], time=dates[1:])
    assert ticket.time == 1709251200.0
    assert one.to_bytes() == two.to_bytes()
    with pytest.raises(InvalidInput, match=r"^time must not be before the forecast's 1709251200"):
        one.observe(ticket, 1, time=dates[0])
    assert one.observe(ticket, 1, time=dates[1]).outcome == 1


def test_a_ticket_of_another_table_is_refused() -> None:
    table, other = Table(Recalibrator(), seed=1), Table(Recalibrator(), seed=2)
    table.forecast("a", 0.5)
    ticket, before = other.forecast("a", 0.5), table.to_bytes()
    with pytest.raises(ForeignTicket) as refused:
        table.observe(ticket, 1)
    assert str(refused.value) == f"ticket must be of this table, got another's: {ticket!r}"
    assert table.to_bytes() == before
