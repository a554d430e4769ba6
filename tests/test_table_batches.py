"""Whole batches of a table: each key plays as a lone stream does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import (
    CalibrantError,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownTicket,
)
from calibrant.kernels.compile import available
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.keyed import KeyedPending, Keys
from tests.test_table import patterns

pytestmark = pytest.mark.base

NAMES = ["north", "south", 7, "a longer name", -3]


class Twins:
    """A table, and a lone stream for each key, that are given the same."""

    def __init__(self, made: Any, seed: int) -> None:
        self.table, self.rng = Table(made(), seed=seed), np.random.default_rng(seed)
        self.lone = {key: made(seed=seed, key=key) for key in NAMES}
        self.pending: Any = None
        self.carried: dict[Any, Any] = {key: Pending() for key in NAMES}
        self.now, self.names = 0.0, 0
        self.open: list[tuple[Any, str]] = []

    def columns(self, rows: int) -> tuple[list[Any], Any, Any, Any]:
        keys = [NAMES[k] for k in self.rng.integers(0, len(NAMES), rows)]
        raw = self.rng.random(rows)
        outcomes = (self.rng.random(rows) < raw).astype(int)
        time = self.now + np.cumsum(self.rng.integers(0, 3, rows)).astype(float)
        self.now = float(time[-1]) if rows else self.now
        return keys, raw, outcomes, time

    def replay(self, rows: int) -> None:
        keys, raw, outcomes, time = self.columns(rows)
        told = {"time": time} if self.timed else {}
        run = self.table.replay(keys, raw, outcomes, **told)
        for key in dict.fromkeys(keys):
            own = np.array([name == key for name in keys])
            part = {"time": time[own]} if self.timed else {}
            alone = self.lone[key].replay(raw[own], outcomes[own], **part)
            self.same(run, own, alone)

    def replay_late(self, rows: int) -> None:
        keys, raw, outcomes, time = self.columns(rows)
        known = time + self.rng.integers(0, 30, rows)
        known[self.rng.random(rows) < 0.1] = np.inf
        told = {"available": known, "time": time}
        run = self.table.replay(keys, raw, outcomes, carry=self.pending, **told)
        self.pending = run.pending
        for key in dict.fromkeys(keys):
            own = np.array([name == key for name in keys])
            told = {"available": known[own], "time": time[own], "carry": self.carried[key]}
            alone = self.lone[key].replay(raw[own], outcomes[own], **told)
            self.carried[key] = alone.pending
            self.same(run, own, alone)

    def play(self, rows: int) -> None:
        events: list[tuple[Any, int, Any, float, float]] = []
        for _ in range(rows):
            self.now += 1.0
            if self.open and self.rng.random() < 0.5:
                key, name = self.open.pop(int(self.rng.integers(len(self.open))))
                told = float(self.rng.integers(2))
                events.append((key, 1, name, told, self.now))
            else:
                key, self.names = NAMES[self.rng.integers(len(NAMES))], self.names + 1
                name = f"name {self.names}"
                self.open.append((key, name))
                events.append((key, 0, name, float(self.rng.random()), self.now))
        columns = [list(column) for column in zip(*events, strict=True)]
        keys, kind, id, x, time = columns
        if self.rng.random() < 0.5:
            keys = [None if made else key for key, made in zip(keys, kind, strict=True)]
        played = self.table.play(keys, kind, id, x, time)
        for key in NAMES:
            own = [k for k, event in enumerate(events) if event[0] == key]
            part = [[column[k] for k in own] for column in columns[1:]]
            if own:
                alone = self.lone[key].play(*part)
                for name in ("value", "mean", "weight", "place", "clock", "number"):
                    mine = getattr(played, name)[own]
                    np.testing.assert_array_equal(mine, getattr(alone, name))

    def same(self, run: Any, own: Any, alone: Any) -> None:
        for name in ("forecast", "mean", "raw", "ticket", "bucket"):
            np.testing.assert_array_equal(getattr(run, name)[own], getattr(alone, name))

    @property
    def timed(self) -> bool:
        return self.table._spec.rule.timed

    def check(self) -> None:
        for key in self.table:
            assert self.table.row(key) == self.lone[key].to_bytes()


@pytest.mark.parametrize("made", patterns())
def test_batches_of_every_kind_leave_each_key_as_a_lone_stream(made: Any) -> None:
    twins = Twins(lambda **told: made(**told), 5)
    for _ in range(3):
        twins.replay(40)
        twins.replay_late(40)
        twins.check()
    assert set(twins.table) == set(NAMES)


@pytest.mark.parametrize("made", patterns())
def test_logs_of_every_kind_leave_each_key_as_a_lone_stream(made: Any) -> None:
    def wide(**told: Any) -> Any:
        stream = made(**told)
        return stream

    twins = Twins(wide, 6)
    # So few tickets are open at once that none expires.
    for _ in range(3):
        twins.play(12)
        twins.check()
        twins.replay(10)
        twins.check()


def made_default(**told: Any) -> Any:
    return Calibrant(**told)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["replay", "replay_late", "play", "bytes"]), max_size=8))
def test_batches_in_any_order_leave_each_key_as_a_lone_stream(calls: list[str]) -> None:
    twins = Twins(lambda **told: Recalibrator("anchored", resolution=5, buckets=2, **told), 9)
    for call in calls:
        if call == "bytes":
            twins.table = Table.from_bytes(twins.table.to_bytes())
        else:
            getattr(twins, call)(20)
        twins.check()


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="there is no compiler here")
@pytest.mark.parametrize(
    "made",
    [
        lambda **told: Recalibrator(resolution=10, buckets=10, **told),
        lambda **told: Calibrant(raw_safe=0.05, max_open=30, **told),
    ],
)
def test_compiled_batches_are_those_of_lone_streams(made: Any) -> None:
    twins = Twins(made, 12)
    for _ in range(2):
        twins.replay(21_000)
        twins.replay_late(21_000)
        twins.check()


# ------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    "column",
    [
        ["b", "a", "b", "c"],
        np.array(["b", "a", "b", "c"]),
        np.array([5, 3, 5, 4]),
        np.array([5, 3, 5, 10**12]),
        np.array([200, 3, 200, 250], np.uint8),
        [7, "7", 7, "x"],
    ],
)
def test_a_column_of_keys_names_each_once_in_the_order_of_their_coming(column: Any) -> None:
    keys = Keys.of(column)
    listed = column.tolist() if isinstance(column, np.ndarray) else column
    assert keys.names == list(dict.fromkeys(listed))
    assert [keys.names[k] for k in keys.codes] == listed
    again = Keys.of(keys)
    assert (again.names, again.codes.tolist()) == (keys.names, keys.codes.tolist())


def test_codes_may_leave_names_out_and_come_in_any_order() -> None:
    keys = Keys.of(Keys(["a", "b", "c"], np.array([2, 0, 2])))
    assert keys.names == ["c", "a"]
    assert keys.codes.tolist() == [0, 1, 0]
    assert len(Keys.of(np.empty(0, np.int64)).names) == len(Keys.of([])) == 0


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("abc", "keys must be a column"),
        (5, "keys must be a column"),
        (["a", None], "row 1: key must be a string or a whole number, got None"),
        (["a", 1.0], "row 1: key must be a string or a whole number, got 1.0"),
        ([1, True], "row 1: key must be a string or a whole number, got True"),
        ([["a"]], "row 0: key must be"),
        (Keys(["a", "a"], np.array([0, 1])), "names must differ"),
        (Keys(["a"], np.array([0, 1])), r"codes\[1\] must be from 0 up to 0, got 1"),
        (Keys(["a"], np.array([0.5])), "codes must be a flat column"),
        (Keys([None], np.array([0])), "key 0: key must be"),  # type: ignore[list-item]
    ],
)
def test_what_is_no_column_of_keys_is_refused(column: Any, told: str) -> None:
    with pytest.raises(CalibrantError, match=told):
        Keys.of(column)


# ------------------------------------------------------------------ bad input


def played() -> Table:
    table = Table(Recalibrator(resolution=5, buckets=2, max_open=4), seed=1)
    table.forecast_many(["a", "b", "a"], [0.1, 0.2, 0.3], id=["one", None, "two"])
    return table


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda t: t.replay(["a", "c"], [0.1], [1]), InvalidInput, "one length"),
        (lambda t: t.replay(["a", "c"], [0.1, 2.0], [1, 0]), InvalidInput, "2.0"),
        (lambda t: t.replay(["a", "c"], [0.1, 0.2], [1, 2]), InvalidInput, "2"),
        (lambda t: t.replay(["c", None], [0.1, 0.2], [1, 0]), InvalidType, "row 1"),
        (
            lambda t: t.replay(["c", "c"], [0.1, 0.2], [1, 0], time=[2.0, 1.0]),
            InvalidInput,
            r"time\[1\]",
        ),
        (
            lambda t: t.replay(["c"], [0.1], [1], carry=Pending()),
            InvalidType,
            "carry must be what a table left pending",
        ),
        (
            lambda t: t.replay(["c"], [0.1], [1], carry=_carry(["x"], [0])),
            UnknownTicket,
            "carry.key",
        ),
        (
            lambda t: t.replay(["b"], [0.1], [1], carry=_carry(["b", "b"], [0, 0])),
            RepeatedTicket,
            "twice",
        ),
        (
            lambda t: t.replay(["b"], [0.1], [1], carry=_carry(["b"], [1])),
            InvalidInput,
            "carry.number",
        ),
        (lambda t: t.play(["c", "a"], [0, 1], [None, "no"], [0.5, 1]), UnknownTicket, "'no'"),
        (lambda t: t.play(["c", "a"], [0, 1], [None, 7], [0.5, 1]), UnknownTicket, "7"),
        (lambda t: t.play(["b", "b"], [1, 1], [0, 0], [1, 1]), RepeatedTicket, "event 1"),
        (lambda t: t.play(["c", "a"], [0, 0], ["x", "one"], [0.5, 0.5]), RepeatedTicket, "one"),
        (lambda t: t.play(["c", "b"], [0, 1], [None, "one"], [0.5, 1]), ForeignTicket, "event 1"),
        (lambda t: t.play(None, [0], [None], [0.5]), InvalidType, "key of a forecast"),
        (lambda t: t.play(["c", "c"], [0, 1], [None, 0], [0.5, 0.5]), InvalidInput, "0.5"),
        (lambda t: t.play(["c", "c"], [0, 1], ["x", "x"], [0.5, 1], [2, 1]), InvalidInput, "time"),
        (lambda t: t.observe_many(["one", "one"], [1, 1]), RepeatedTicket, "event 1"),
    ],
)
def test_a_bad_batch_is_refused_whole(call: Any, error: Any, told: str) -> None:
    table = played()
    before = table.to_bytes()
    with pytest.raises(error, match=told):
        call(table)
    assert table.to_bytes() == before
    assert "c" not in table


def _carry(keys: list[Any], numbers: list[int]) -> KeyedPending:
    size = len(keys)
    return KeyedPending(keys, np.array(numbers), np.zeros(size), np.zeros(size, np.uint8))


def test_an_outcome_that_is_known_is_not_taken_again_by_number() -> None:
    table = played()
    table.observe_many([0], [1], keys=["b"])
    with pytest.raises(
        RepeatedTicket, match=r"ticket \('b', 0\) must be open, got one whose outcome"
    ):
        table.observe_many([0], [1], keys=["b"])
    with pytest.raises(RepeatedTicket, match=r"ticket \('b', 0\) must be open"):
        table.replay(["b"], [0.1], [1], carry=_carry(["b"], [0]))


def test_a_rule_that_forgets_in_time_needs_times() -> None:
    table = Table(Recalibrator("fading", unit="time", half_life=9.0), seed=1)
    with pytest.raises(InvalidInput, match="time must be given"):
        table.replay(["a"], [0.5], [1])
    with pytest.raises(InvalidInput, match="time must be given"):
        table.forecast_many(["a"], [0.5])
    assert len(table) == 0


def test_empty_batches_change_nothing() -> None:
    table = played()
    before = table.to_bytes()
    assert len(table.replay([], [], [])) == 0
    assert len(table.play([], [], [], [])) == 0
    assert len(table.replay([], [], [], available=[], time=[])) == 0
    assert table.to_bytes() == before
