"""Tables: corrections, expiry, coins, keys that go, and certificates of all keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import (
    ExpiredTicket,
    InvalidType,
    RepeatedTicket,
    UnknownName,
    UnknownTicket,
)
from calibrant.recalibrate.keyed_record import Certificates, shared
from tests.test_table import patterns

pytestmark = pytest.mark.base


@pytest.mark.parametrize("made", patterns())
def test_corrections_expiry_and_coins_are_those_of_a_lone_stream(made: Any) -> None:
    table, lone = Table(made(), seed=3), made(seed=3, key="a")
    for t in range(12):
        raw = t / 11
        table.forecast("b", 1.0 - raw, time=float(t))
        ticket, own = table.forecast("a", raw, time=float(t)), lone.forecast(raw, time=float(t))
        assert table.coin_of(ticket) == lone.coin_of(own)
        assert table.coin_of(("a", ticket.number)) == lone.coin_of(own)
        if t % 4 == 3:
            assert table.expire(ticket).number == lone.expire(own).number
        elif t % 3:
            table.observe(ticket, t % 2)
            lone.observe(own, t % 2)
            table.correct(ticket, 1 - t % 2)
            lone.correct(own, 1 - t % 2)
            assert ticket.outcome == 1 - t % 2
            with pytest.raises(RepeatedTicket):
                table.correct(ticket, 1 - t % 2, was=t % 2)
        assert table.row("a") == lone.to_bytes()


def test_tickets_that_are_not_the_tables_are_refused() -> None:
    table = Table(Recalibrator(resolution=5), seed=1)
    ticket = table.forecast("a", 0.5, id="one")
    assert table.expire("one").id == "one"
    for call in (table.expire, table.coin_of):
        with pytest.raises(ExpiredTicket):
            call("one")
        with pytest.raises(InvalidType):
            call(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidType, match="ticket of a table"):
        table.correct(Recalibrator(seed=1).forecast(0.5), 1)  # type: ignore[arg-type]
    assert 0.0 <= table.coin_of(ticket) < 1.0


def test_a_key_that_is_gone_leaves_no_trace_and_may_come_again() -> None:
    made = lambda **told: Recalibrator("anchored", resolution=5, **told)  # noqa: E731
    table = Table(made(), seed=2)
    table.replay(["a", "b", "c", "b"], [0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    table.forecast("b", 0.5, id="open")
    kept = {key: table.row(key) for key in ("a", "c")}
    del table["b"]
    assert list(table) == ["a", "c"]
    assert "b" not in table
    assert len(table) == 2
    with pytest.raises(UnknownTicket):
        table.observe("open", 1)
    with pytest.raises(UnknownName):
        del table["b"]
    again = Table.from_bytes(table.to_bytes())
    assert again == table
    for each in (table, again):
        # The first new key takes the row that is free, the others come behind.
        each.replay(["d", "b", "a", "e"], [0.5] * 4, [1, 0, 1, 1])
        assert each.row("c") == kept["c"]
        for key in ("d", "b", "e"):
            lone = made(seed=2, key=key)
            lone.replay([0.5], [0 if key == "b" else 1])
            assert each.row(key) == lone.to_bytes()
        lone = made(seed=2, key="a")
        lone.replay([0.1, 0.5], [0, 1])
        assert each.row("a") == lone.to_bytes()
    assert table == again


def told_of(made: Any, **more: Any) -> tuple[Table, Certificates]:
    rng, table = np.random.default_rng(4), Table(made, seed=1)
    keys, raw = rng.integers(0, 7, 4_000), rng.random(4_000)
    outcomes = (rng.random(4_000) < raw).astype(int)
    available = np.arange(4_000) + rng.integers(0, 40, 4_000)
    table.replay(keys, raw, outcomes)
    table.replay(keys[:200], raw[:200], outcomes[:200], available=available[:200])
    return table, table.certificates(**more)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Recalibrator(resolution=10, buckets=4),
        lambda: Recalibrator(resolution=10, buckets=1, loss="log"),
        lambda: Recalibrator("growing", resolution=10, max_open=10),
        lambda: Calibrant(),
        lambda: Calibrant(raw_safe=0.0005),
    ],
)
def test_certificates_measure_what_each_keys_own_measures(made: Any) -> None:
    table, told = told_of(made(), failure=0.1)
    assert told.key == list(table)
    assert len(told) == 7
    for k, key in enumerate(told.key):
        own = table[key].certificate(0.1)
        assert told.rounds[k] == own.rounds
        assert told.open[k] == own.open
        assert told.expired[k] == own.expired
        assert told.c1[k] == pytest.approx(own.c1, rel=1e-12)
        assert told.c2[k] == pytest.approx(own.c2, rel=1e-12)
        assert told.loss[k] == pytest.approx(own.loss, rel=1e-12)
        assert told.raw_loss[k] == pytest.approx(own.raw_loss, rel=1e-12)
        if told.promised[k] < 1.0:
            assert told.holds[k] == (told.c2[k] <= told.promised[k])


def test_a_promise_is_about_the_rounds_that_were_drawn() -> None:
    rng, table = np.random.default_rng(1), Table(Calibrant(raw_safe=0.0), seed=1)
    raw = rng.random(400)
    table.replay(["a"] * 400, raw, (rng.random(400) < raw).astype(int))
    budget = table["a"].certificate().budget
    assert budget.fallbacks == 400
    told = table.certificates()
    assert np.isnan(told.promised[0])
    assert (told.loss[0], told.c2[0]) == (told.raw_loss[0], 0.0)


def test_a_promise_comes_with_rounds_and_goes_with_delays() -> None:
    table = Table(Recalibrator("anchored", resolution=10, buckets=1), seed=1)
    assert len(table.certificates()) == 0
    rng = np.random.default_rng(1)
    raw = rng.random(40_000)
    table.replay(["long"] * 40_000, raw, rng.random(40_000) < raw)
    table.replay(["short"], [0.5], [1])
    table.forecast("none", 0.5)
    told = table.certificates()
    assert told.early.tolist() == [False, True, False]
    assert told.holds.tolist() == [True, False, False]
    assert np.isnan(told.promised[2])
    lone = table["long"]
    own = lone.calibrator.worst(lone._account(), lone.rounds, 0.05)
    assert own is not None
    assert told.promised[0] == own.value
    assert told.c2[1] > told.c2[0]
    assert told.worst(3, least=0).key == ["long", "short", "none"]
    assert told.worst(1, least=100).key == ["long"]
    assert told.worst(1, least=100).holds.all()


def zipf(rounds: int, keys: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Keys, most of which have a handful of rounds, right forecasts and their outcomes."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, keys + 1) ** 1.1
    raw = rng.random(rounds)
    return rng.choice(keys, rounds, p=share / share.sum()), raw, rng.random(rounds) < raw


@pytest.mark.parametrize("how", ["always", "never", "inverted"])
def test_a_broken_key_is_found_among_many_that_have_few_rounds(how: str) -> None:
    keys, raw, told = zipf(20_000, 3000)
    counts = np.bincount(keys)
    broken = int(np.argmin(np.abs(counts - 115)))
    mine, wrong = keys == broken, told.copy()
    wrong[mine] = {"always": True, "never": False, "inverted": ~told[mine]}[how]
    table = Table(Recalibrator("foster_hart", resolution=10, buckets=10), seed=1)
    table.replay(keys, raw, wrong)
    found = table.certificates().worst(3)
    assert found.key[0] == broken
    assert found.beyond.tolist() == [True, False, False]
    alone = table.certificates()
    assert (alone.c2 > found.c2[0]).sum() > 500


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("made", [Calibrant, Recalibrator])
def test_of_right_forecasts_hardly_any_is_beyond_chance(made: Any, seed: int) -> None:
    keys, raw, told = zipf(4000, 2000, seed)
    table = Table(made(), seed=seed)
    table.replay(keys, raw, told)
    assert not table.certificates().beyond.any()


def played_table() -> Table:
    rng = np.random.default_rng(1)
    raw = rng.random(900)
    keys = [f"k{k}" for k in rng.integers(0, 3, 900)]
    table = Table(Recalibrator(resolution=10), seed=4)
    table.replay(keys, raw, (rng.random(900) < raw).astype(int))
    table.forecast("k1", 0.5)
    return table


def test_all_keys_together_are_told_in_one_line() -> None:
    told = played_table().certificates()
    overall = told.overall
    assert overall[:4] == (3, 900, 1, 0)
    assert overall.c2 == pytest.approx((told.rounds * told.c2).sum() / 900)
    assert overall.promised == pytest.approx((told.rounds * told.promised).sum() / 900)
    assert overall.loss == pytest.approx((told.rounds * told.loss).sum() / 900)
    assert Table(Recalibrator(), seed=4).certificates().overall[:5] == (0, 0, 0, 0, 0.0)


def test_promises_of_all_keys_share_one_failure() -> None:
    table = played_table()
    each = [table.certificates(share).promised for share in shared(0.05, 3).tolist()]
    together = table.certificates(together=True).promised
    assert together.tolist() == [each[k][k] for k in range(3)]
    assert (together > table.certificates().promised).all()


def test_shares_of_many_keys_do_not_add_up_to_more() -> None:
    shares = shared(0.05, 1 << 12)
    assert shares.sum() < 0.05
    assert shares.sum() == pytest.approx(0.05 * (1 - 1 / 13), rel=1e-3)
