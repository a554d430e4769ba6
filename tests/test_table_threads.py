"""Batches of a table in several threads: the same, whatever their number."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

from calibrant import Recalibrator, Table
from calibrant.core.together import together
from calibrant.errors import InvalidInput
from calibrant.kernels import rounds, tables
from calibrant.kernels.compile import available
from calibrant.recalibrate import keyed_rounds
from tests.test_table import patterns
from tests.test_table_loops import columns, small, viewed

pytestmark = pytest.mark.base


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let tables use the loops over rows that would be compiled, in threads for a few rounds."""
    monkeypatch.setattr(rounds, "available", lambda: True)
    monkeypatch.setattr(tables, "compiled", viewed)
    for module in (keyed_rounds, sys.modules[together.__module__]):
        monkeypatch.setattr(module, "WORTH", 4)
    taken: list[Any] = []

    def take(table: Table) -> None:
        program = table._rows.program
        taken.append((program, program.__dict__.pop("rows", None)))
        assert program.rows is not None

    yield take
    for program, before in reversed(taken):
        program.__dict__.pop("rows", None)
        if before is not None:
            program.__dict__["rows"] = before


def played(table: Table, timed: bool) -> list[Any]:
    """Return what a table answers to all kinds of batches, with single calls in between."""
    keys, raw, outcomes = columns(60)
    time = np.arange(60.0)
    told = {"time": time} if timed else {}
    one = table.replay(keys, raw, outcomes, **told)
    ticket = table.forecast(3, 0.5, time=90.0)
    many = table.forecast_many(keys, raw, time=time + 91)
    table.observe(ticket, 1)
    known = table.observe_many(many.number, outcomes, keys=keys)
    two = table.replay(keys, raw, outcomes, time=time + 182, available=time + 190)
    answers = [one.forecast, one.mean, one.raw, many.value, known.value, two.forecast, two.mean]
    return [answer.tolist() for answer in answers]


@pytest.mark.parametrize("made", patterns())
@pytest.mark.parametrize("hot", [None, 2])
def test_whatever_the_number_of_threads_the_answers_are_the_same(
    made: Any, hot: int | None, loops: Any
) -> None:
    alone, others = Table(made(), seed=5, hot=hot), Table(made(), seed=5, hot=hot, jobs=3)
    expected = played(alone, alone.timed)
    loops(others)
    assert played(others, others.timed) == expected
    assert others == alone
    others.jobs = 5
    assert played(others, others.timed) == played(alone, alone.timed)
    assert others == alone


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="needs the compiler")
def test_compiled_loops_in_threads_give_the_same() -> None:
    rng = np.random.default_rng(1)
    keys, raw = rng.integers(0, 999, 60_000), rng.random(60_000)
    outcomes = (rng.random(60_000) < raw).astype(int)
    made = [Table(Recalibrator(resolution=10, buckets=10), seed=5, jobs=n) for n in (1, 2, 3)]
    runs = [table.replay(keys, raw, outcomes).forecast.tolist() for table in made]
    runs += [table.forecast_many(keys, raw).mean.tolist() for table in made]
    assert runs[0] == runs[1] == runs[2]
    assert runs[3] == runs[4] == runs[5]
    assert made[0] == made[1] == made[2]


def test_threads_have_scratch_words_of_their_own(loops: Any) -> None:
    table = Table(small(), seed=5, jobs=4)
    loops(table)
    seen: dict[int, int] = {}
    rows: list[int] = []
    share_out, all_there = Table._share_out, threading.Barrier(4)

    def told(self: Table, bounds: Any, play: Any) -> None:
        def noted(flat: Any, start: int, a: int, b: int) -> None:
            if start not in seen:
                seen[start] = threading.get_ident()
                all_there.wait(timeout=30)
            assert seen[start] == threading.get_ident()
            rows.extend(range(a, b))
            play(flat, start, a, b)

        share_out(self, bounds, noted)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Table, "_share_out", told)
        table.replay(*columns())
    size = table._spec.layout.row
    assert sorted(seen) == [0, size, 2 * size, 3 * size]
    assert threading.get_ident() not in seen.values()
    assert sorted(rows) == list(range(len(table)))
    assert min(table._tiers.places(np.arange(len(table)))) >= 4 * size


def test_rows_make_room_for_headers_that_are_asked_for_later(loops: Any) -> None:
    one, other = Table(small(), seed=5), Table(small(), seed=5)
    loops(one)
    for jobs in (1, 2, 9):
        one.jobs = jobs
        for table in (one, other):
            table.replay(*columns())
            table.forecast(7, 0.5)
    assert one == other


def test_the_number_of_threads_is_at_least_one() -> None:
    with pytest.raises(InvalidInput, match="jobs must be"):
        Table(small(), seed=5, jobs=0)


def test_what_goes_wrong_in_a_thread_is_raised() -> None:
    done: list[int] = []

    def wrong() -> None:
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        together([wrong, lambda: done.append(1)])
    assert done == [1]


def test_an_interrupt_while_waiting_waits_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    held, join = threading.Event(), threading.Thread.join
    calls: list[int] = []

    def interrupted(self: Any, timeout: Any = None) -> None:
        calls.append(1)
        if len(calls) == 1:
            held.set()
            raise KeyboardInterrupt
        join(self, timeout)

    def job() -> None:
        held.wait()
        done.append(1)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        together([job, job])
    assert done == [1, 1]


def test_an_interrupt_before_all_threads_are_there_lets_none_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[int] = []
    start = threading.Thread.start
    calls: list[int] = []

    def interrupted(self: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        start(self)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        together([lambda: done.append(1), lambda: done.append(2)])
    assert done == []
