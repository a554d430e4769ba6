"""Several threads at once: nothing is lost, nothing is counted twice."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import players
import pytest
from interrupting import Asked

from calibrant import Calibrant, Recalibrator, Ticket
from calibrant.calibrators.arena import Arena
from calibrant.errors import CalibrantError, RepeatedTicket
from calibrant.kernels.layout import LONGEST_LAG, MOST_OUTSTANDING
from calibrant.monitor import GroupWatch, Monitor, Watch
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

THREADS = 8


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Let threads interrupt each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], None]) -> None:
    """Run ``work(0)`` to ``work(7)`` at the same time; raise what any of them raised."""
    start, failures = threading.Barrier(THREADS), []

    def run(k: int) -> None:
        try:
            start.wait()
            work(k)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("name", calibrators.names())
def test_forecasts_and_outcomes_from_many_threads_are_all_counted(name: str) -> None:
    rec = Recalibrator(name, resolution=4, buckets=4, seed=1)
    rounds = 40 if rec.calibrator.kernels.full_support else 150
    seen: list[list[tuple[int, int, int]]] = [[] for _ in range(THREADS)]

    def work(k: int) -> None:
        raw, outcomes = players.stream(rounds, k)
        waiting = []
        for p, y in zip(raw, outcomes, strict=True):
            waiting.append((rec.forecast(p), y))
            seen[k].append((waiting[-1][0].number, waiting[-1][0].bucket, waiting[-1][0].clock))
            if len(waiting) > k:
                rec.observe(*waiting.pop(0))
        for ticket, y in waiting:
            rec.observe(ticket.id, y)

    together(work)
    total = THREADS * rounds
    assert (rec.rounds, rec.issued, rec.open) == (total, total, 0)
    numbers = sorted(number for rows in seen for number, _, _ in rows)
    assert numbers == list(range(total))
    assert len({(bucket, clock) for rows in seen for _, bucket, clock in rows}) == total
    record = rec.certificate()
    assert (record.rounds, record.open, record.expired) == (total, 0, 0)
    ones = sum(sum(players.stream(rounds, k)[1]) for k in range(THREADS))
    assert rec._account().ones.sum() == ones
    assert rec._account().counts.sum() == total
    again = Recalibrator.from_bytes(rec.to_bytes())
    assert again == rec


def test_single_calls_from_many_threads_are_all_counted() -> None:
    rec = Recalibrator(resolution=4, buckets=8, seed=1)

    def work(k: int) -> None:
        for y in [0, 1] * 100:
            value = rec.predict_one((k + 0.5) / 8)
            assert 0.0 <= value <= 1.0
            rec.learn_one((k + 0.5) / 8, y)

    together(work)
    assert rec.rounds == THREADS * 200
    assert rec._account().counts.sum(1).tolist() == [200] * 8
    alone = Recalibrator(resolution=4, buckets=8, seed=1)
    for k in range(8):
        players.one_by_one(alone, [(k + 0.5) / 8] * 200, [0, 1] * 100)
    mine, its = rec._arena.row(), alone._arena.row()
    # Outcomes that came between a look and its round count as outstanding.
    mine[[LONGEST_LAG, MOST_OUTSTANDING]] = its[[LONGEST_LAG, MOST_OUTSTANDING]] = 0
    stored = rec.spec.layout.stored
    assert mine[stored].tolist() == its[stored].tolist()


def test_batches_from_many_threads_do_not_mix() -> None:
    rec = Recalibrator(resolution=4, buckets=3, seed=1)
    firsts = []

    def work(k: int) -> None:
        raw, outcomes = players.stream(60, k)
        for _ in range(5):
            run = rec.replay(raw, outcomes)
            firsts.append(run.first)
            run = rec.replay(raw, outcomes, available=np.full(60, np.inf))
            for number, y in zip(run.ticket, outcomes, strict=True):
                rec.observe(number, y)
            firsts.append(run.first)

    together(work)
    assert rec.rounds == THREADS * 5 * 120
    assert rec.open == 0
    assert sorted(firsts) == list(range(0, THREADS * 5 * 120, 60))
    assert rec._account().counts.sum() == rec.rounds


def test_states_taken_while_others_work_are_whole() -> None:
    rec = Recalibrator(resolution=4, buckets=3, seed=1)
    taken = []

    def work(k: int) -> None:
        for p, y in zip(*players.stream(60, k), strict=True):
            if k == 0:
                taken.append((rec.to_bytes(), rec.certificate()))
            elif k == 1:
                rec.replay([p], [y])
            else:
                rec.observe(rec.forecast(p), y)

    together(work)
    for data, record in taken:
        again = Recalibrator.from_bytes(data)
        account = again._account()
        assert account.counts.sum() == again.rounds <= again.issued
        assert again.issued == again.rounds + again.open
        assert record.rounds + record.open + record.expired <= rec.issued


def test_of_threads_that_tell_one_outcome_one_is_heard() -> None:
    rec = Recalibrator(resolution=4, buckets=1, seed=1)
    for _ in range(30):
        ticket, refused = rec.forecast(0.5), []

        def work(k: int, ticket=ticket, refused=refused) -> None:
            try:
                rec.observe(ticket.id, 1)
            except RepeatedTicket:
                refused.append(k)

        together(work)
        assert len(refused) == THREADS - 1
    assert rec.rounds == 30


def test_an_error_leaves_the_way_free_for_the_next() -> None:
    rec = Recalibrator(resolution=4, buckets=1, seed=1)

    def work(k: int) -> None:
        for _ in range(50):
            with pytest.raises(CalibrantError):
                rec.observe(10**6, 1)
            with pytest.raises(CalibrantError):
                rec.replay([0.5], [1], carry=3)
            rec.learn_one(0.5, 1) if k == 0 else None

    together(work)
    assert rec.rounds == 50


# Monitors.


def test_rounds_that_many_threads_tell_a_monitor_all_count() -> None:
    monitor = Monitor(buckets=4)

    def work(k: int) -> None:
        forecasts, outcomes = players.stream(60, k)
        for p, y in zip(forecasts, outcomes, strict=True):
            monitor.update(p, y)
        monitor.update_many(forecasts, outcomes)

    together(work)
    assert monitor.rounds == THREADS * 120
    assert sum(row.rounds for row in monitor.table()) == THREADS * 120


def test_states_of_a_monitor_taken_while_others_tell_are_whole() -> None:
    monitor, taken = Monitor(buckets=4), []

    def work(k: int) -> None:
        for p, y in zip(*players.stream(40, k), strict=True):
            taken.append(monitor.copy()) if k < 2 else monitor.update(p, y)

    together(work)
    for copy in taken:
        assert sum(row.rounds for row in copy.table()) == copy.rounds


def test_a_watch_gives_both_monitors_the_rounds_in_the_same_order() -> None:
    watch = Watch(learning=100, buckets=4)

    def work(k: int) -> None:
        for p, y in zip(*players.stream(60, k), strict=True):
            watch.update(p, p, y)

    together(work)
    judged = [sum(row.rounds for row in side.table()) for side in (watch.raw, watch.calibrated)]
    assert judged == [THREADS * 60, THREADS * 60 - 100]


def test_rounds_that_many_threads_tell_a_watch_of_groups_all_count() -> None:
    watch = GroupWatch(buckets=2, learning=10)

    def work(k: int) -> None:
        for _ in range(40):
            watch.update(["all", k], 0.5, k % 2)
        watch.update_many([k] * 20, [0.5] * 20, [k % 2] * 20)

    together(work)
    assert watch.rounds == THREADS * 60
    judged = {key: sum(row.rounds for row in watch[key].table()) for key in watch.keys}
    assert judged == {"all": THREADS * 40 - 10} | dict.fromkeys(range(THREADS), 50)


# The gate.


def asks(thing: object, call: Callable[..., object]) -> int:
    """Return how often a call asks for the gate, which is open again when the call comes back."""
    thing._gate = gate = Asked()
    call(thing)
    assert gate.is_free
    return gate.asked


@pytest.mark.parametrize(
    "call",
    [
        lambda rec: rec.forecast(0.5),
        lambda rec: rec.observe(0, 1),
        lambda rec: rec.predict_one(0.5),
        lambda rec: rec.predict_mean_one(0.5),
        lambda rec: rec.learn_one(0.5, 1),
        lambda rec: rec.replay([0.5], [1]),
        lambda rec: rec.to_bytes(),
        lambda rec: rec.certificate(),
        lambda rec: rec.open,
    ],
)
@pytest.mark.parametrize("kind", [Recalibrator, Calibrant])
def test_every_call_waits_for_its_turn(call, kind) -> None:
    rec = kind(resolution=4, buckets=2, seed=1)
    rec.forecast(0.1)
    assert asks(rec, call) >= 1


def closed() -> Ticket:
    rec = Recalibrator(seed=1)
    return rec.observe(rec.forecast(0.5), 1)


BOTH = {
    "rounds": lambda watch: watch.rounds,
    "restart": lambda watch: watch.restart(),
    "save": lambda watch: watch.save(os.devnull),
    "to_bytes": lambda watch: watch.to_bytes(),
    "to_dict": lambda watch: watch.to_dict(),
    "copy": lambda watch: watch.copy(),
    "repr": repr,
}
OF_MONITORS = BOTH | {
    "update": lambda monitor: monitor.update(0.5, 1),
    "update_many": lambda monitor: monitor.update_many([0.5], [1]),
    "skip": lambda monitor: monitor.skip(3),
    "alarm": lambda monitor: monitor.alarm,
    "alarm_after": lambda monitor: monitor.alarm_after,
    "change": lambda monitor: monitor.change,
    "evidence": lambda monitor: monitor.evidence,
    "since": lambda monitor: monitor.since,
    "table": lambda monitor: monitor.table(),
}
OF_WATCHES = BOTH | {
    "update": lambda watch: watch.update(0.5, 0.5, 1),
    "update_many": lambda watch: watch.update_many([0.5], [0.5], [1]),
    "settle": lambda watch: watch.settle(closed()),
}
OF_GROUPS = BOTH | {
    "update": lambda watch: watch.update("a", 0.5, 1),
    "update_many": lambda watch: watch.update_many(["a"], [0.5], [1]),
    "settle": lambda watch: watch.settle(closed(), key="a"),
    "alarm": lambda watch: watch.alarm,
    "alarms": lambda watch: watch.alarms,
    "keys": lambda watch: watch.keys,
    "item": lambda watch: watch["a"],
}
NO_STATE = {"alpha", "from_bytes", "from_dict", "kind", "migrations", "version"}
"""What never changes, and what makes a new one."""


@pytest.mark.parametrize("name", sorted(OF_MONITORS))
def test_every_call_of_a_monitor_waits_for_its_turn(name) -> None:
    assert asks(Monitor(), OF_MONITORS[name]) >= 1


@pytest.mark.parametrize("name", sorted(OF_WATCHES))
def test_every_call_of_a_watch_waits_for_its_turn(name) -> None:
    assert asks(Watch(), OF_WATCHES[name]) >= 1


@pytest.mark.parametrize("name", sorted(OF_GROUPS))
def test_every_call_of_a_watch_of_groups_waits_for_its_turn(name) -> None:
    assert asks(GroupWatch(keys=["a"]), OF_GROUPS[name]) >= 1


def test_no_call_of_a_monitor_or_a_watch_is_left_out() -> None:
    public = {name for name in dir(Monitor) if not name.startswith("_")}
    assert public == set(OF_MONITORS) - {"repr"} | NO_STATE
    parts = {"calibrated", "learning", "raw"}
    public = {name for name in dir(Watch) if not name.startswith("_")} - parts
    assert public == set(OF_WATCHES) - {"repr"} | NO_STATE - {"alpha"}
    public = {name for name in dir(GroupWatch) if not name.startswith("_")}
    assert public == set(OF_GROUPS) - {"repr", "item"} | NO_STATE


def test_counts_are_read_as_they_are_while_another_thread_goes_over_to_the_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rec, seen = Recalibrator(seed=1), list[object]()
    array, as_is = rec._arena.as_is(), Arena.as_is

    def between(arena: Arena) -> object:
        """Find neither form at first, as between two steps of the other thread."""
        seen.append(None if not seen else as_is(arena))
        return seen[-1]

    monkeypatch.setattr(Arena, "as_is", between)
    assert rec.issued == 0
    assert seen[0] is None
    assert seen[1] is array is as_is(rec._arena)
