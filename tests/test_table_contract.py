"""The contract of tables: for every key the answers are those of a lone stream, whatever is mixed.

Hypothesis makes up a history of calls: batches of rounds with prompt and with late outcomes, logs
of events, single calls, keys that leave for a store and come back, files and bytes in between, few
or many hot rows, one thread or several, batches of any size.  Every pattern plays it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant import Table
from calibrant.kernels.compile import available
from calibrant.recalibrate import keyed_parts, keyed_rounds, rows
from tests.test_table import patterns

pytestmark = pytest.mark.base

SEED = 6
MOST = 20
"""The patterns' cap on open tickets."""
KEYS = st.sampled_from(["a", "b", 3, "", "a longer name", -1])
RAWS = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.77, 0.95, 1.0])
ROUNDS = st.tuples(KEYS, RAWS, st.integers(0, 1), st.sampled_from([0.0, 1.0, 4.0, 30.0]))
ACTS = st.one_of(
    st.tuples(st.sampled_from(["replay", "late", "play"]), st.lists(ROUNDS, max_size=25)),
    st.tuples(st.just("single"), ROUNDS),
    st.tuples(st.just("evict"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["file", "bytes", "jobs"]), st.integers(1, 4)),
)
HISTORIES = st.lists(ACTS, min_size=3, max_size=10)


class Both:
    """A table, and a lone stream for each of its keys."""

    def __init__(self, made: Any) -> None:
        self.made, self.now, self.names = made, 0, 0
        self.table = Table(made(), seed=SEED, hot=2, store={})
        self.lone: dict[Any, Any] = {}
        self.carry: Any = None
        self.carries: dict[Any, Any] = {}

    def play_all(self, history: list[tuple[str, Any]]) -> None:
        for act, told in history:
            getattr(self, act)(told)
        self.agree()

    def agree(self) -> None:
        for key, stream in self.lone.items():
            assert self.table.row(key) == stream.to_bytes()
        assert set(self.table) == set(self.lone)

    def stream(self, key: Any) -> Any:
        return self.lone.setdefault(key, self.made(seed=SEED, key=key))

    def columns(self, told: list[Any]) -> tuple[list[Any], Any, Any, Any, Any]:
        """Return keys, raw forecasts, outcomes, when forecasts were made and outcomes known."""
        keys = [key for key, *_ in told]
        raw, y, delay = (np.array([each[k] for each in told], float) for k in (1, 2, 3))
        when = np.arange(self.now, self.now + len(told), dtype=float)
        self.now += len(told)
        return keys, raw, y.astype(int), when, when + delay

    def replay(self, told: list[Any]) -> None:
        keys, raw, y, when, _ = self.columns(told)
        run = self.table.replay(keys, raw, y, time=when)
        for key, mine in parts(keys):
            own = self.stream(key).replay(raw[mine], y[mine], time=when[mine])
            self.same(run, own, mine)

    def late(self, told: list[Any]) -> None:
        keys, raw, y, when, known = self.columns(told)
        run = self.table.replay(keys, raw, y, time=when, available=known, carry=self.carry)
        self.carry = run.pending
        for key, mine in parts(keys):
            given = {"time": when[mine], "available": known[mine]}
            given["carry"] = self.carries.get(key)
            own = self.stream(key).replay(raw[mine], y[mine], **given)
            self.carries[key] = own.pending
            self.same(run, own, mine)

    def same(self, run: Any, own: Any, mine: Any) -> None:
        for name in ("forecast", "mean", "raw", "bucket"):
            np.testing.assert_array_equal(getattr(run, name)[mine], getattr(own, name))
        np.testing.assert_array_equal(run.ticket[mine], own.first + np.arange(len(mine)))

    def play(self, told: list[Any]) -> None:
        """Play forecasts, named or not, each with its outcome somewhere behind."""
        keys, raw, y, when, known = self.columns(told[: MOST // 2])
        named = [f"ticket {self.names + k}" if k % 2 else None for k in range(len(keys))]
        self.names += len(keys)
        first = {key: self.stream(key).issued for key in keys}
        numbers = [first[key] + keys[:k].count(key) for k, key in enumerate(keys)]
        order = sorted(range(len(keys)), key=lambda k: (known[k], k))
        ids = named + [named[k] or numbers[k] for k in order]
        whose = keys + [None if named[k] else keys[k] for k in order]
        kinds = ["forecast"] * len(keys) + ["outcome"] * len(order)
        values, stamps = [*raw, *y[order]], [*when, *[self.now] * len(order)]
        played = self.table.play(whose, kinds, ids, values, stamps)
        tickets = [
            self.lone[key].forecast(raw[k], id=named[k], time=when[k]) for k, key in enumerate(keys)
        ]
        for k in order:
            self.lone[keys[k]].observe(tickets[k], int(y[k]))
        wanted = [ticket.value for ticket in tickets]
        assert played.value[: len(keys)].tolist() == wanted
        assert played.number[: len(keys)].tolist() == numbers

    def single(self, told: Any) -> None:
        (key,), (raw,), (y,), (when,), (known,) = self.columns([told])
        ticket = self.table.forecast(key, raw, time=when)
        own = self.stream(key).forecast(raw, time=when)
        assert (ticket.value, ticket.mean, ticket.number) == (own.value, own.mean, own.number)
        if known < when + 30.0:
            self.table.observe(ticket, int(y))
            self.lone[key].observe(own, int(y))

    def evict(self, keep: int) -> None:
        self.table.evict(keep=keep)
        assert len(self.table) <= keep

    def file(self, hot: int) -> None:
        self.agree()
        with tempfile.TemporaryDirectory() as folder:
            self.table.save(Path(folder) / "table")
            self.went_on(Table.open(Path(folder) / "table", hot=hot))

    def bytes(self, _: int) -> None:
        self.agree()
        self.went_on(Table.from_bytes(self.table.to_bytes()))

    def went_on(self, table: Table) -> None:
        table.store, table.jobs, self.table = self.table.store, self.table.jobs, table

    def jobs(self, count: int) -> None:
        self.table.jobs = count


def parts(keys: list[Any]) -> list[tuple[Any, Any]]:
    """Return each key, and the rows in which it stands."""
    return [
        (key, np.array([k for k, other in enumerate(keys) if other == key]))
        for key in dict.fromkeys(keys)
    ]


@pytest.mark.parametrize("made", patterns())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(history=HISTORIES)
def test_every_history_of_calls_is_that_of_lone_streams(made: Any, history: Any) -> None:
    Both(made).play_all(history)


@pytest.mark.slow
@pytest.mark.parametrize("made", patterns())
@pytest.mark.skipif(not available(), reason="no compiler here, or it is switched off")
def test_so_it_is_in_compiled_loops_however_short_the_batches_are(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (keyed_parts, keyed_rounds, rows):
        monkeypatch.setattr(module, "SHORT", 0)
    monkeypatch.setattr(keyed_rounds, "WORTH", 4)

    @settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
    @given(history=HISTORIES)
    def played(history: Any) -> None:
        both = Both(made)
        both.play_all(history)
        assert both.table._machine(1) is not None

    played()
