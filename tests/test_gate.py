"""The gate is given back whatever happens, interrupts included."""

from __future__ import annotations

import dis
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from everyone import EVERYONE

from calibrant import Recalibrator
from calibrant.core import gate as gates
from calibrant.core.gate import Gate, HandyGate

pytestmark = pytest.mark.base

INTERRUPTS = 400


class Interrupted(Exception):
    """Stands for KeyboardInterrupt."""


def interrupt(number: int, frame: Any) -> None:
    raise Interrupted


@pytest.mark.parametrize("kind", [Gate, HandyGate])
def test_an_error_inside_gives_the_token_back(kind: type[Gate]) -> None:
    gate = kind()
    for _ in range(2):
        with pytest.raises(Interrupted), gate:
            interrupt(gate.qsize(), None)
        assert gate.is_free


@pytest.mark.parametrize("kind", [Gate, HandyGate])
def test_a_gate_is_passed_by_one_at_a_time(kind: type[Gate]) -> None:
    gate = kind()
    for _ in range(3):
        with gate:
            assert (gate.is_free, gate.qsize()) == (False, 0)
        assert gate.is_free


def test_no_code_of_python_runs_where_a_gate_is_passed() -> None:
    gate, seen = Gate(), list[str]()

    def trace(frame: Any, event: str, told: object) -> None:
        seen.append(frame.f_code.co_name)

    kept = sys.gettrace()
    sys.settrace(trace)
    try:
        with gate:
            gate.qsize()
    finally:
        sys.settrace(kept)
    assert (seen, gate.qsize()) == ([], 1)


def test_no_call_comes_between_taking_the_token_of_a_handy_gate_and_passing_it() -> None:
    gate, seen = HandyGate(), list[str]()

    def trace(frame: Any, event: str, told: object) -> None:
        seen.append(frame.f_code.co_name)

    kept = sys.gettrace()
    sys.settrace(trace)
    try:
        with gate:
            gate.qsize()
    finally:
        sys.settrace(kept)
    assert seen == ["__enter__"]
    assert (gate.token, gate.qsize()) == ([], 1)
    names = [each.opname for each in dis.get_instructions(HandyGate.__enter__)]
    taken = names.index("DELETE_SUBSCR")
    left = taken + [name.startswith("RETURN") for name in names[taken:]].index(True)
    assert not any(name.startswith(("CALL", "JUMP", "RESUME")) for name in names[taken:left])


def test_a_token_in_the_queue_is_brought_to_the_list_once() -> None:
    gate = HandyGate()
    with gate:
        assert (gate.token, gate.empty()) == ([], True)
    assert (gate.token, gate.empty()) == ([], False)
    gate.wait()
    assert (gate.token, gate.empty()) == ([None], True)
    with pytest.raises(Interrupted), gate:
        raise Interrupted
    gate.wait()
    assert (gate.token, gate.empty()) == ([Interrupted], True)


def test_whoever_finds_no_token_sleeps_and_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, pauses = HandyGate(), list[float]()
    del gate.token[0]
    monkeypatch.setattr(gates.time, "sleep", pauses.append)
    gate.wait()
    assert (gate.is_free, pauses) == (False, [gates.PAUSE])


# Slow also because the run that measures coverage must leave it out: a tracer adds points
# between two statements at which a signal can land.
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that interrupt here")
@pytest.mark.parametrize("call", ["tickets", "single"])
def test_an_interrupt_never_takes_the_token_along(call: str) -> None:
    rec = Recalibrator(seed=1)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(INTERRUPTS):
            with pytest.raises(Interrupted):
                play_until(2e-4 + 1e-5 * (k % 37), rec, call)
            assert rec._gate.is_free
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that interrupt here")
@pytest.mark.parametrize("kind", EVERYONE)
def test_an_interrupted_stream_may_be_called_where_the_interrupt_is_handled(kind: str) -> None:
    if kind == "simplex":
        pytest.importorskip("scipy")
    one = EVERYONE[kind]
    rec, before = one.make(seed=1), signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(INTERRUPTS):
            try:
                signal.setitimer(signal.ITIMER_REAL, 5e-5 + 7e-6 * (k % 37))
                while True:
                    rec.open  # noqa: B018
                    if k % 2:
                        rec.expire(rec.forecast(one.raw))
            except Interrupted:
                # Whoever handles an error holds the frames that it went through.
                assert rec._gate.is_free
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def play_until(alarm: float, rec: Recalibrator, call: str) -> None:
    signal.setitimer(signal.ITIMER_REAL, alarm)
    while True:
        if call == "tickets":
            rec.observe(rec.forecast(0.3), 1)
        else:
            rec.predict_one(0.3)
            rec.learn_one(0.3, 1)


CALLS: dict[str, Callable[[Recalibrator], Any]] = {
    "forecast": lambda rec: rec.forecast(0.3),
    "observe": lambda rec: rec.observe(0, 1),
    "predict_one": lambda rec: rec.predict_one(0.3),
    "predict_mean_one": lambda rec: rec.predict_mean_one(0.3),
    "certificate": lambda rec: rec.certificate(),
    "learn_one": lambda rec: rec.learn_one(0.3, 1),
}


class Told(list):
    """A place without a token that tells who comes."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()

    def __delitem__(self, place: Any) -> None:
        self.reached.set()
        super().__delitem__(place)


@pytest.mark.parametrize("by_with", [True, False])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_waits_while_another_one_has_the_gate(call: str, by_with: bool) -> None:
    rec, other = Recalibrator(seed=1), Recalibrator(seed=1)
    rec.forecast(0.9)
    other.forecast(0.9)
    rec._gate.token = token = Told()
    caller = threading.Thread(target=CALLS[call], args=(rec,))
    caller.start()
    assert token.reached.wait(timeout=30)
    assert caller.is_alive()
    if by_with:
        rec._gate.put(None)
    else:
        token.append(None)
    caller.join(timeout=30)
    CALLS[call](other)
    assert rec == other
