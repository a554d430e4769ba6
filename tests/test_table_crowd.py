"""A cap on the open tickets of a whole table: refused, or the oldest expires."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator, Table, load
from calibrant.core.codec import Document
from calibrant.errors import (
    CorruptState,
    ExpiredTicket,
    InvalidInput,
    TooManyOpen,
)
from calibrant.recalibrate.sieve import sieve
from tests.test_table import patterns

pytestmark = pytest.mark.base

KEYS = ["north", "south", 7, "west"]
MOST = 6


class Naive:
    """Lone streams, and a list of what waits: the obvious way to drop the oldest."""

    def __init__(self, made: Any, seed: int, most: int = MOST) -> None:
        self.lone = {key: made(seed=seed, key=key) for key in KEYS}
        self.most, self.limit = most, self.lone[KEYS[0]].max_open
        self.waits: list[tuple[Any, int]] = []
        self.pending: list[tuple[Any, int, float, int]] = []

    def forecast(self, key: Any, raw: float, time: float) -> tuple[float, float]:
        ticket = self.lone[key].forecast(raw, time=time)
        self.waits.append((key, ticket.number))
        least = ticket.number + 1 - self.limit
        self.waits = [(k, n) for k, n in self.waits if k != key or n >= least]
        while len(self.waits) > self.most:
            gone, number = self.waits.pop(0)
            self.lone[gone].expire(number)
        return ticket.value, ticket.mean

    def observe(self, key: Any, number: int, outcome: int) -> None:
        self.waits.remove((key, number))
        self.lone[key].observe(number, outcome)

    def replay(self, keys: Any, raw: Any, outcomes: Any, time: Any, known: Any) -> list[Any]:
        made = []
        for t, key in enumerate(keys):
            self.deliver(key, time[t])
            number = self.lone[key].issued
            made.append(self.forecast(key, raw[t], time[t]))
            if known[t] <= time[t]:
                self.observe(key, number, int(outcomes[t]))
            else:
                self.pending.append((key, number, known[t], int(outcomes[t])))
        for key in dict.fromkeys(keys):
            self.deliver(key, max(time[t] for t, k in enumerate(keys) if k == key))
        return made

    def deliver(self, key: Any, now: float) -> None:
        due = [told for told in self.pending if told[0] == key and told[2] <= now]
        self.pending = [told for told in self.pending if told not in due]
        for _, number, _, outcome in sorted(due, key=lambda told: (told[2], told[1])):
            if (key, number) in self.waits:
                self.observe(key, number, outcome)

    def same(self, table: Table) -> None:
        assert sorted(table, key=str) == sorted((k for k in KEYS if self.lone[k].issued), key=str)
        for key in table:
            assert table.row(key) == self.lone[key].to_bytes()


def capped(made: Any, when_full: str = "expire", most: int = MOST, **told: Any) -> Table:
    return Table(made(), seed=4, most_open=most, when_full=when_full, **told)


def columns(rng: Any, rows: int, now: float) -> tuple[list[Any], Any, Any, Any]:
    keys = [KEYS[k] for k in rng.integers(0, len(KEYS), rows)]
    raw, time = rng.random(rows), now + np.cumsum(rng.integers(0, 3, rows)).astype(float)
    return keys, raw, (rng.random(rows) < raw).astype(int), time


@pytest.mark.parametrize("made", patterns())
def test_the_oldest_goes_as_in_the_obvious_way_one_by_one_and_in_batches(made: Any) -> None:
    rng, naive, table = np.random.default_rng(3), Naive(made, 4), capped(made)
    pending: Any = None
    now = 0.0
    for turn in range(6):
        keys, raw, outcomes, time = columns(rng, 14, now)
        now = float(time[-1])
        known = time + rng.integers(0, 9, 14) * (rng.random(14) < 0.8)
        known[rng.random(14) < 0.2] = np.inf
        run = table.replay(keys, raw, outcomes, time=time, available=known, carry=pending)
        pending = run.pending
        expected = naive.replay(keys, raw, outcomes, time, known)
        assert list(zip(run.forecast, run.mean, strict=True)) == expected
        for t in range(5):
            key, now = KEYS[int(rng.integers(4))], now + 1.0
            ticket = table.forecast(key, 0.1 * t, time=now)
            assert (ticket.value, ticket.mean) == naive.forecast(key, 0.1 * t, now)
        play(table, naive, rng, now)
        naive.same(table)
        assert len(table._desk) == len(naive.waits) <= MOST
        table = again(table, turn)
        kept = {(key, number) for key, number, *_ in naive.pending} & set(naive.waits)
        assert {*zip(pending.key, pending.number.tolist(), strict=True)} >= kept
        some = [told for told in naive.pending if told[:2] in kept]
        naive.pending = some


def again(table: Table, turn: int) -> Table:
    """Return a table after a restart, or the same one."""
    made = table if turn % 2 else Table.from_bytes(table.to_bytes())
    assert made == table
    return made


def play(table: Table, naive: Naive, rng: Any, now: float) -> None:
    """Give both a log of forecasts and outcomes."""
    log, values = [], []
    for _ in range(12):
        free = [w for w in naive.waits if w not in {told[:2] for told in naive.pending}]
        if free and rng.random() < 0.4:
            key, number = free[int(rng.integers(len(free)))]
            log.append((key, "outcome", number, 1.0, now))
            naive.observe(key, number, 1)
        else:
            key, raw = KEYS[int(rng.integers(4))], float(rng.random())
            log.append((key, "forecast", None, raw, now))
            values.append(naive.forecast(key, raw, now))
    played = table.play(*(list(column) for column in zip(*log, strict=True)))
    made = [event[1] == "forecast" for event in log]
    assert list(zip(played.value[made], played.mean[made], strict=True)) == values


def test_prompt_rounds_expire_the_oldest_where_there_is_no_room_for_one() -> None:
    table = capped(lambda: Calibrant(raw_safe=0.01), most=2)
    old = [table.forecast("a", 0.5), table.forecast("b", 0.5), table.forecast("a", 0.4)]
    assert len(table._desk) == 2
    table.replay(["c", "a", "c"], [0.2, 0.9, 0.3], [0, 1, 0])
    assert len(table._desk) == 1
    table.observe(old[2], 1)
    for ticket in old[:2]:
        with pytest.raises(ExpiredTicket):
            table.observe(ticket, 1)


def plain(most: int = 2, when_full: str = "refuse", **told: Any) -> Table:
    return capped(lambda: Recalibrator(resolution=4, **told), when_full, most)


def test_one_ticket_more_is_refused_and_nothing_happens() -> None:
    table = plain()
    first, _ = table.forecast("a", 0.5), table.forecast("b", 0.5)
    before = table.to_bytes()
    rule = "open tickets must be at most 2 in the whole table, got one more"
    with pytest.raises(TooManyOpen, match=f"^{rule}$"):
        table.forecast("c", 0.5)
    with pytest.raises(TooManyOpen, match=f"^row 0: {rule}$"):
        table.replay(["c"], [0.5], [1])
    kinds = ["outcome", "forecast", "forecast"]
    with pytest.raises(TooManyOpen, match=f"^event 2: {rule}$"):
        table.play(["a", "c", "d"], kinds, [0, None, None], [1.0, 0.5, 0.5])
    free = table.copy()
    free.observe(("a", 0), 1)
    with pytest.raises(TooManyOpen, match=f"^row 1: {rule}$"):
        free.replay(["c", "d"], [0.5, 0.5], [1, 1], available=[9, 9])
    assert table.to_bytes() == before
    table.observe(first, 1)
    assert table.forecast("c", 0.5).number == 0


def test_a_key_whose_own_ticket_expires_needs_no_room() -> None:
    table = plain(max_open=1)
    table.forecast("a", 0.5)
    table.forecast("b", 0.5)
    assert table.forecast("a", 0.5).number == 1
    log = ["b", "a"], ["forecast"] * 2, [None, None], [0.5, 0.5]
    assert table.play(*log).number.tolist() == [1, 2]
    with pytest.raises(TooManyOpen, match="event 0"):
        table.play(["c"], ["forecast"], [None], [0.5])


def test_a_ticket_whose_outcome_is_known_makes_no_room_when_it_would_be_too_old() -> None:
    table = plain(max_open=1)
    table.forecast_many(["b"], [0.5])
    kinds = ["forecast", "outcome", "forecast", "forecast"]
    with pytest.raises(TooManyOpen, match="event 3"):
        table.play(["a", "a", "a", "c"], kinds, [None, 0, None, None], [0.5, 1.0, 0.5, 0.5])
    assert table.play(["a"] * 3, kinds[:3], [None, 0, None], [0.5, 1.0, 0.5]).number[2] == 1


def test_a_cap_that_is_not_reached_changes_nothing() -> None:
    free, table = Table(Recalibrator(resolution=4), seed=4), plain(9, "expire")
    told = ["a", "b", "a", "b"], [0.1, 0.5, 0.9, 0.5], [0, 1, 1, 0]
    for made in (free, table):
        made.replay(*told, available=[1, 9, 3, 9])
    assert [table.row(key) for key in table] == [free.row(key) for key in free]


def test_an_outcome_of_a_ticket_that_was_dropped_within_a_log_is_refused() -> None:
    table = plain(1, "expire")
    kinds = ["forecast", "forecast", "outcome"]
    before = table.to_bytes()
    with pytest.raises(ExpiredTicket, match="event 2"):
        table.play(["a", "b", None], kinds, ["one", "two", "one"], [0.5, 0.5, 1.0])
    assert table.to_bytes() == before
    # The name is free again.
    kinds = ["forecast"] * 3
    table.play(["a", "b", "c"], kinds, ["one", "two", "one"], [0.5, 0.5, 0.5])
    assert table.observe("one", 1).key == "c"


def test_files_and_bytes_keep_the_rule_and_the_ages(tmp_path: Any) -> None:
    table = plain(3, "expire")
    for key in "cab":
        table.forecast(key, 0.5)
    table.save(tmp_path / "table")
    for made in (Table.open(tmp_path / "table"), load(table.to_bytes()), table.copy()):
        assert made == table
        made.forecast("d", 0.5)
        made.forecast("d", 0.5)
        waits = {made._keys[word >> 40] for word in made._desk.words()[:, 1].tolist()}
        assert waits == {"b", "d"}
    refusing = plain(3)
    refusing.forecast("a", 0.5)
    assert refusing._settings()["when_full"] == "refuse"
    with pytest.raises(TooManyOpen):
        Table.from_bytes(refusing.to_bytes()).forecast_many(["b", "c", "d"], [0.5] * 3)


def test_a_table_without_a_cap_is_stored_as_ever() -> None:
    table = Table(Recalibrator(resolution=4), seed=4)
    assert {"most_open", "when_full"} & table._settings().keys() == set()
    assert "ages" not in table._document().arrays


def test_ages_that_are_not_those_of_the_open_tickets_are_refused(tmp_path: Any) -> None:
    table = plain(3, "expire")
    for key in "cab":
        table.forecast(key, 0.5)
    good = table._document()
    for wrong in ([0, 1 << 40], [0, 1 << 40, 1], [0, 0, 1 << 40]):
        arrays = good.arrays | {"ages": np.array(wrong, np.int64)}
        with pytest.raises(CorruptState):
            Table.from_bytes(Document(good.kind, good.settings, arrays, good.version).to_bytes())
    without = {name: column for name, column in good.arrays.items() if name != "ages"}
    with pytest.raises(CorruptState):
        Table.from_bytes(Document(good.kind, good.settings, without, good.version).to_bytes())
    settings = good.settings | {"when_full": "wait"}
    with pytest.raises(CorruptState):
        Table.from_bytes(Document(good.kind, settings, good.arrays, good.version).to_bytes())
    table._ages = type(table._ages)(  # type: ignore[misc]
        [0, 1 << 40]
    )
    table.save(tmp_path / "table")
    with pytest.raises(CorruptState, match="tickets must be those of the keys"):
        Table.open(tmp_path / "table")


def test_a_damaged_key_takes_its_tickets_along(tmp_path: Any) -> None:
    table, path = plain(4, "expire"), tmp_path / "table"
    for key in "cabc":
        table.forecast(key, 0.5)
    table.save(path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.warns(UserWarning, match="left out"):
        made = Table.open(path, on_error="skip")
    assert made.missing == ["b"]
    made.forecast_many(["d", "d"], [0.5, 0.5])
    lines = made._desk.words()[:, 1].tolist()
    assert sorted(made._keys[word >> 40] for word in lines) == ["a", "c", "d", "d"]


def test_streams_that_are_taken_over_bring_their_tickets_and_are_the_youngest() -> None:
    table, other = plain(2, "expire"), plain(9, "expire")
    for key in "xyz":
        other.forecast(key, 0.5)
    table.forecast("a", 0.5)
    table.take(["x", "y"], other.bodies(["x", "y"]))
    table["z"] = other["z"]
    assert len(table._desk) == 4
    table.forecast("b", 0.5)
    rows = (table._desk.words()[:, 1] >> 40).tolist()
    assert {table._keys[row] for row in rows} == {"z", "b"}


def test_keys_in_a_store_do_not_count_and_come_back_with_their_tickets() -> None:
    table = plain(1, "refuse")
    table.store = {}
    table.forecast("a", 0.5, id="one")
    table.evict(keep=0)
    table.forecast("b", 0.5)
    assert table.observe("one", 1).key == "a"
    with pytest.raises(TooManyOpen):
        table.forecast("a", 0.5)


def test_closed_tickets_leave_the_line() -> None:
    table = plain(5, "expire")
    for t in range(2_100):
        table.observe(table.forecast("a", 0.5, id=f"{t}"), 1)
    assert table._ages is not None
    assert len(table._ages._line) < 1_100
    table.forecast_many([str(k) for k in range(9)], [0.5] * 9)
    assert len(table._desk) == 5


def test_an_interrupted_batch_leaves_the_ages_as_they_were_or_as_they_become(
    monkeypatch: Any,
) -> None:
    table, other = plain(2, "expire"), plain(2, "expire")
    for each in (table, other):
        each.forecast("a", 0.5)
        each.forecast("b", 0.5)
    before, expire = table.to_bytes(), Table._expire_rows
    other.forecast_many(["c", "d"], [0.5, 0.5])
    interrupts = [KeyboardInterrupt()]

    def interrupted(table: Table, *told: Any) -> Any:
        if interrupts:
            raise interrupts.pop()
        return expire(table, *told)

    monkeypatch.setattr(Table, "_expire_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.forecast_many(["c", "d"], [0.5, 0.5])
    # Plain loops are undone; machine code, which nothing interrupts, is finished.
    done = table._machine(2) is not None
    assert table.to_bytes() == (other.to_bytes() if done else before)


def test_a_sieve_counts_along() -> None:
    table = plain(1)
    log = ["a", "b"], ["forecast"] * 2, ["one", "two"], [0.5, 0.5], [None, None]
    (fault,) = sieve(table, *log)
    assert (fault.row, fault.rule) == (1, "of a forecast that the table has room for")


@pytest.mark.parametrize("told", [{"most_open": 0}, {"most_open": 1, "when_full": "wait"}])
def test_a_cap_is_at_least_one_and_the_rule_a_known_one(told: Any) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        Table(Recalibrator(resolution=4), seed=4, **told)
