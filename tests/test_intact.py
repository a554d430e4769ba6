"""What is put back or finished after an interrupt, piece by piece: around the functions of a call.

:mod:`test_interrupts_kinds` interrupts the same calls wherever that can happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from interruptible import BATCHED, BATCHES, CALLS, KEYED, PATTERNS, Keyed, Kind, Model

from calibrant import Recalibrator
from calibrant.calibrators.arena import Arena
from calibrant.classes import SimplexRecalibrator
from calibrant.core.desk import Desk
from calibrant.groups.names import Roster as Names
from calibrant.recalibrate.batches import Batches
from calibrant.recalibrate.counter import Counter
from calibrant.recalibrate.rows import Rows
from calibrant.recalibrate.table import Table
from calibrant.regression.method import Seat
from calibrant.regression.pit import Pit

pytestmark = pytest.mark.plain
STOP = KeyboardInterrupt


class Stopping:
    """A function that stops at one of its calls, before or after it did what it does."""

    def __init__(self, function: Callable[..., Any], at: int, after: bool) -> None:
        self.function, self.left, self.after = function, at, after

    def __get__(self, owner: Any, kind: Any) -> Any:
        return partial(self, owner)

    def __call__(self, *told: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise STOP
        found = self.function(*told, **more)
        if self.left == 0:
            raise STOP
        return found


def try_around(
    make: Callable[[], Any], call: Callable[[Any], Any], owner: Any, name: str, times: int = 3
) -> int:
    """Stop a call around the first uses of a function; return how often that was possible."""
    whole, untouched = make(), make().to_bytes()
    call(whole)
    done, stopped = whole.to_bytes(), 0
    for at in range(1, times + 1):
        for after in (False, True):
            model = make()
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(owner, name, Stopping(getattr(owner, name), at, after))
                try:
                    call(model)
                except STOP:
                    stopped += 1
            found = model.to_bytes()
            assert found in (untouched, done), (name, at, after)
            if found == untouched:
                call(model)
                assert model.to_bytes() == done, (name, at, after)
    return stopped


FORECAST = ("forecast", "forecast by name")
OBSERVE = ("observe", "observe by name")
AROUND: list[tuple[Any, str, tuple[str, ...], tuple[str, ...]]] = [
    (Counter, "hand_out", ("groups in time", "top label", "simplex", "pit", "aci"), FORECAST),
    (Counter, "close", ("groups", "one vs rest, safe", "simplex", "pit", "tracker"), OBSERVE),
    (Counter, "close", ("groups", "one vs rest, safe", "top label", "simplex"), ("expire",)),
    (Rows, "announce", ("groups in time", "one vs rest, safe", "top label", "pit"), FORECAST),
    (Rows, "learn", ("one vs rest", "top label", "pit"), OBSERVE),
    (Rows, "learn_ticket", ("groups in time",), OBSERVE),
    (Rows, "commit", ("groups in time", "one vs rest, safe", "top label"), ("learn_one",)),
    (Rows, "correct", ("groups", "one vs rest", "pit"), ("correct",)),
    (Rows, "learn_parts", ("one vs rest", "pit"), OBSERVE),
    (SimplexRecalibrator, "_learn_there", ("simplex",), (*OBSERVE, "learn_one")),
    (SimplexRecalibrator, "_look", ("simplex",), FORECAST),
    (Pit, "_count", ("pit",), OBSERVE),
    (Seat, "count_outcome", ("pit", "tracker", "aci", "aci_quantile"), (*OBSERVE, "learn_one")),
    (Seat, "count_forecast", ("pit", "tracker", "aci"), (*FORECAST, "learn_one")),
    (Names, "enter", ("groups in time",), ("forecast", "learn_one")),
    (Counter, "expire", ("groups", "top label", "simplex", "pit"), ("learn_one",)),
]
CASES = [
    (owner, name, kind, call)
    for owner, name, kinds, calls in AROUND
    for kind in kinds
    for call in calls
]


@pytest.mark.parametrize(
    ("owner", "name", "kind", "call"), CASES, ids=lambda told: getattr(told, "__name__", told)
)
def test_a_call_that_is_stopped_around_a_function_is_whole(
    owner: Any, name: str, kind: str, call: str
) -> None:
    if kind == "simplex":
        pytest.importorskip("scipy")
    made = BATCHED[kind]
    assert try_around(partial(Model, made, made.warmed()), CALLS[call], owner, name)


@pytest.mark.parametrize("kind", ["groups", "top label", "simplex", "pit", "aci", "safe"])
@pytest.mark.parametrize("call", BATCHES)
def test_a_batch_that_is_stopped_when_it_has_nearly_ended_changes_nothing(
    kind: str, call: str
) -> None:
    if kind == "simplex":
        pytest.importorskip("scipy")
    made = BATCHED[kind]
    # Logs that are played event by event end with the outcome of a ticket.
    last = "close" if call == "play" and not isinstance(made.make(), Batches) else "expire"
    assert try_around(partial(Model, made, made.warmed()), BATCHES[call], Counter, last, 1)
    assert try_around(partial(Model, made, made.warmed()), BATCHES[call], Counter, "follow", 1)


TABLES: list[tuple[Any, str, str]] = [
    (Rows, "announce", "forecast"),
    (Rows, "announce", "forecast of a new key"),
    (Table, "_number", "forecast of a new key"),
    (Desk, "add", "forecast by name"),
    (Rows, "forget", "forecast"),
    (Desk, "pop_number", "forecast"),
    (Rows, "learn", "observe"),
    (Desk, "pop_number", "observe by name"),
    (Desk, "load", "put a new key"),
]


@pytest.mark.parametrize(("owner", "name", "call"), TABLES)
def test_a_call_of_a_table_that_is_stopped_is_whole(owner: Any, name: str, call: str) -> None:
    lone = PATTERNS["safe"](seed=9)
    lone.forecast(0.3, id="lone")
    assert try_around(partial(Keyed, PATTERNS["safe"], lone.to_bytes()), KEYED[call], owner, name)


def test_rows_that_were_added_are_seen_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(Recalibrator(), seed=1)
    table.forecast("a", 0.5)
    monkeypatch.setattr(Arena, "add", Stopping(Arena.add, 1, after=True))
    with pytest.raises(STOP):
        [table.forecast(key, 0.5) for key in range(20)]
    monkeypatch.undo()
    for key in range(20):
        table.observe(table.forecast(key, 0.5), 1)
    assert all(table[key].rounds == 1 for key in range(20))


def test_a_roster_that_was_moved_knows_its_rows_after_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = BATCHED["top label"]
    model, other = kind.make(), kind.make()
    monkeypatch.setattr(Arena, "add", Stopping(Arena.add, 1, after=True))
    with pytest.raises(STOP):
        model.forecast(kind.raws[0])
    monkeypatch.undo()
    for made in (model, other):
        made.observe(made.forecast(kind.raws[0]), 0)
    assert model == other


class Late(deque[tuple[float, int]]):
    """Recent rounds that are interrupted once another was added."""

    def append(self, told: tuple[float, int]) -> None:
        super().append(told)
        raise STOP


def test_a_round_of_groups_that_was_remembered_stays() -> None:
    kind = BATCHED["groups"]
    model, other = kind.make(), kind.make()
    tickets = [kind.forecast(made, 0) for made in (model, other)]
    model._recent = Late(maxlen=3)
    with pytest.raises(STOP):
        model.observe(tickets[0], 1)
    other.observe(tickets[1], 1)
    assert model == other
    assert tickets[0].outcome == 1


def small(kind: str, **more: Any) -> Kind:
    """Return a kind that keeps few tickets open."""
    made = BATCHED[kind]
    make = partial(made.make, max_open=2, **more)
    return Kind(make, made.raws, made.outcomes, told=made.told)


@pytest.mark.parametrize("kind", ["safe", "one vs rest, safe", "groups", "aci", "recalibrator"])
@pytest.mark.parametrize("call", ["forecast", "learn_one"])
@pytest.mark.parametrize("name", ["let_go", "drop", "expire"])
def test_tickets_that_expire_are_gone_wholly(kind: str, call: str, name: str) -> None:
    made = small(kind)
    assert try_around(partial(Model, made, made.warmed()), CALLS[call], Counter, name)


def test_a_ticket_that_was_closed_in_a_batch_is_open_again() -> None:
    kind = small("one vs rest")
    model = kind.make()
    tickets = [model.forecast(raw) for raw in kind.raws[:2]]
    before = model.to_bytes()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Counter, "close", Stopping(Counter.close, 2, after=True))
        with pytest.raises(STOP):
            model.replay(kind.raws, [0, 1, 2], available=[0.0, 1.0, 2.0])
    assert model.to_bytes() == before
    model.observe(tickets[1], 0)


def test_an_arena_of_groups_shrinks_in_either_form() -> None:
    for compiled in (False, True):
        model = BATCHED["groups"].make()
        model.forecast(0.3, groups=["a"])
        if compiled:
            model._arena.flat()
        before = model.to_bytes()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Counter, "expire", Stopping(Counter.expire, 1, after=True))
            with pytest.raises(STOP):
                model.replay([0.5] * 2, [0, 1], groups=[[str(k) for k in range(40)], ["a"]])
        assert model.to_bytes() == before
        assert model.groups == ("a",)
