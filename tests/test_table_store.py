"""Tables: keys that leave for a store and come back, and every call beside lone streams."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import CorruptState, InvalidInput, RepeatedTicket, UnknownName, UnknownTicket
from tests.test_table import patterns
from tests.test_table_bodies import KEYS, played
from tests.test_table_tiers import Boom, interrupted_after

pytestmark = pytest.mark.base


@pytest.mark.parametrize("made", patterns())
def test_keys_that_left_come_back_as_they_were(made: Any) -> None:
    table, whole = played(made()), played(made())
    table.store = {}
    dropped = table.evict(keep=0)
    assert sorted(str(key) for key, _ in dropped) == sorted(map(str, KEYS))
    assert dict(dropped) == table.store == {key: whole.body(key) for key in KEYS}
    assert len(table) == 0
    for each in (table, whole):
        each.observe("ticket 5", 1)
        each.forecast("north", 0.5, time=90.0)
        each.play([7, None], [0, 1], ["new", "ticket 10"], [0.3, 1], [91.0, 92.0])
        each.replay(["south", 7], [0.3, 0.9], [1, 0], time=[93.0, 94.0])
    for key in KEYS:
        assert table.row(key) == whole.row(key)


def test_keys_go_by_when_they_were_touched() -> None:
    table = Table(Recalibrator(), seed=1)
    for key in "abcd":
        table.forecast(key, 0.5)
    table.forecast("a", 0.5)
    assert [key for key, _ in table.evict(keep=4)] == []
    assert [key for key, _ in table.evict(keep=3)] == ["b"]
    assert [key for key, _ in table.evict(idle=2)] == ["c"]
    assert [key for key, _ in table.evict(idle=9)] == []
    assert [key for key, _ in table.evict(idle=0, keep=1)] == ["d", "a"]
    with pytest.raises(InvalidInput, match="idle or keep must be given, got neither"):
        table.evict()
    assert table.evict(keep=0) == []


def test_a_table_without_a_store_forgets_what_it_drops() -> None:
    table = Table(Recalibrator(), seed=1)
    table.forecast("a", 0.5, id="one")
    ((key, body),) = table.evict(keep=0)
    with pytest.raises(UnknownName):
        table.row("a")
    with pytest.raises(UnknownTicket):
        table.observe("one", 1)
    table.take([key], [body])
    assert table.observe("one", 1).key == "a"


def test_names_of_tickets_in_the_store_are_taken() -> None:
    table = Table(Recalibrator(), seed=1, store={})
    table.forecast("a", 0.5, id="one")
    table.evict(keep=0)
    with pytest.raises(RepeatedTicket):
        table.forecast("b", 0.5, id="one")
    assert list(table) == ["a"]
    other = Table(Recalibrator(), seed=1)
    other.forecast("a", 0.5)
    table.evict(keep=0)
    table.take(["a"], other.bodies())
    # The ticket of that name went when its key was replaced.
    assert table.forecast("b", 0.5, id="one").number == 0
    assert table.row("a") == other.row("a")


def test_a_key_that_is_forgotten_leaves_the_store_too() -> None:
    table = Table(Recalibrator(), seed=1, store={})
    table.forecast("a", 0.5)
    table.forecast("b", 0.5)
    table.evict(keep=0)
    del table["a"]
    assert list(table.store or ()) == ["b"]
    with pytest.raises(UnknownName):
        del table["a"]
    assert table.forecast("a", 0.5).number == 0


def test_a_body_in_the_store_that_is_damaged_is_told() -> None:
    table = Table(Recalibrator(), seed=1, store={"a": b"nothing!" * 4})
    with pytest.raises(CorruptState, match="body of key 'a' must be"):
        table.forecast("a", 0.5)
    assert table.forecast("b", 0.5).number == 0


def test_an_interrupted_eviction_drops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = played(Recalibrator())
    before = {key: table.row(key) for key in table}
    monkeypatch.setattr(Table, "_drop_key", interrupted_after(Table._drop_key))
    with pytest.raises(Boom):
        table.evict(keep=1)
    assert {key: table.row(key) for key in table} == before


MOST = 5


class Streams(RuleBasedStateMachine):
    """Every call of a table with few hot rows and a store, beside lone streams."""

    make: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.table = Table(self.make(), seed=4, hot=2, store={})
        self.mirror, self.since = Table(self.make(), seed=4, hot=1), 0
        self.lone: dict[Any, Any] = {}
        self.open: dict[str, tuple[Any, Any]] = {}
        self.names = 0

    def stream(self, key: Any) -> Any:
        return self.lone.setdefault(key, self.make(seed=4, key=key))

    def waits(self) -> dict[str, tuple[Any, Any]]:
        """Return open tickets that did not expire."""
        self.open = {
            name: (key, ticket)
            for name, (key, ticket) in self.open.items()
            if key in self.lone and self.lone[key].issued - ticket.number <= MOST
        }
        return self.open

    def named(self) -> str:
        self.names += 1
        return f"ticket {self.names}"

    keys = st.sampled_from(["a", "b", 3, "c", ""])
    raws = st.sampled_from([0.0, 0.25, 0.3, 0.8, 1.0])

    @rule(key=keys, raw=raws)
    def forecast(self, key: Any, raw: float) -> None:
        name = self.named()
        ticket, own = (
            self.table.forecast(key, raw, id=name),
            self.stream(key).forecast(raw, id=name),
        )
        assert (ticket.value, ticket.mean, ticket.number) == (own.value, own.mean, own.number)
        self.open[name] = key, own

    @precondition(lambda self: self.waits())
    @rule(data=st.data(), outcome=st.integers(0, 1), by=st.booleans())
    def observe(self, data: Any, outcome: int, by: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.waits())))
        key, own = self.open.pop(name)
        self.table.observe(name if by else (key, own.number), outcome)
        self.lone[key].observe(own, outcome)

    @precondition(lambda self: self.waits())
    @rule(data=st.data())
    def expire(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.waits())))
        key, own = self.open.pop(name)
        self.table.expire(name)
        self.lone[key].expire(own)

    @rule(key=keys, raw=raws, outcome=st.integers(0, 1))
    def correct(self, key: Any, raw: float, outcome: int) -> None:
        ticket, own = self.table.forecast(key, raw), self.stream(key).forecast(raw)
        self.table.correct(self.table.observe(ticket, outcome), 1 - outcome)
        self.lone[key].correct(self.lone[key].observe(own, outcome), 1 - outcome)

    @rule(rounds=st.lists(st.tuples(keys, raws, st.integers(0, 1)), max_size=12))
    def replay(self, rounds: list[tuple[Any, float, int]]) -> None:
        keys, raw, outcomes = (
            (list(column) for column in zip(*rounds, strict=True)) if rounds else ([], [], [])
        )
        run = self.table.replay(keys, raw, outcomes)
        for key in dict.fromkeys(keys):
            mine = np.array([k == key for k in keys])
            own = self.stream(key).replay(np.array(raw)[mine], np.array(outcomes)[mine])
            assert run.forecast[mine].tolist() == own.forecast.tolist()

    @rule(rounds=st.lists(st.tuples(keys, raws), min_size=1, max_size=9))
    def play(self, rounds: list[tuple[Any, float]]) -> None:
        names = [self.named() for _ in rounds]
        closing = sorted(self.waits())[:2]
        count = {key: sum(k == key for k, _ in rounds) for key, _ in rounds}
        closing = [
            name
            for name in closing
            if self.lone[self.open[name][0]].issued
            + count.get(self.open[name][0], 0)
            - self.open[name][1].number
            <= MOST
        ]
        keys = [key for key, _ in rounds] + [None] * len(closing)
        kinds = [0] * len(rounds) + [1] * len(closing)
        values = [raw for _, raw in rounds] + [1] * len(closing)
        self.table.play(keys, kinds, names + closing, values)
        for (key, raw), name in zip(rounds, names, strict=True):
            self.open[name] = key, self.stream(key).forecast(raw, id=name)
        for name in closing:
            key, own = self.open.pop(name)
            self.lone[key].observe(own, 1)

    @rule(key=keys)
    def delete(self, key: Any) -> None:
        if key in self.lone:
            del self.table[key], self.lone[key]
        self.waits()

    @rule(keep=st.integers(0, 3))
    def evict(self, keep: int) -> None:
        self.send_changes()
        self.table.evict(keep=keep)
        assert len(self.table) <= keep

    @rule()
    def go_on_from_a_file(self) -> None:
        self.come_back()
        with tempfile.TemporaryDirectory() as folder:
            self.table.save(Path(folder) / "table")
            opened = Table.open(Path(folder) / "table", hot=2)
        self.send_changes()
        opened.store, self.table, self.since = {}, opened, 0

    @rule()
    def go_on_from_bytes(self) -> None:
        self.come_back()
        self.send_changes()
        self.table, self.since = Table.from_bytes(self.table.to_bytes()), 0
        self.table.store = {}

    @rule()
    def send_changes(self) -> None:
        since = self.table.mark()
        for key, body in self.table.changes(self.since):
            if body is not None:
                self.mirror.take([key], [body])
            elif key in self.mirror:
                del self.mirror[key]
        self.since = since

    def come_back(self) -> None:
        for key in self.lone:
            assert self.table.row(key) == self.lone[key].to_bytes()
        assert set(self.table) == set(self.lone)

    @invariant()
    def rows_that_are_here_are_those_of_lone_streams(self) -> None:
        assert set(self.table) <= set(self.lone)
        for key in self.table:
            assert self.table.row(key) == self.lone[key].to_bytes()

    def teardown(self) -> None:
        self.come_back()
        self.send_changes()
        for key in self.lone:
            assert self.mirror.row(key) == self.lone[key].to_bytes()


class PlainStreams(Streams):
    make = staticmethod(
        lambda seed=None, key=None: Recalibrator(
            resolution=4, buckets=2, seed=seed, key=key, max_open=MOST
        )
    )


class SafeStreams(Streams):
    make = staticmethod(
        lambda seed=None, key=None: Calibrant(raw_safe=0.05, seed=seed, key=key, max_open=MOST)
    )


for machine in (PlainStreams, SafeStreams):
    machine.TestCase.settings = settings(
        max_examples=12, stateful_step_count=14, deadline=None, derandomize=True
    )
TestPlainStreams = PlainStreams.TestCase
TestSafeStreams = SafeStreams.TestCase
