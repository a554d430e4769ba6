"""The gate is given back whatever happens, interrupts included."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from everyone import EVERYONE

from calibrant import Recalibrator
from calibrant.core.gate import Gate

pytestmark = pytest.mark.base

INTERRUPTS = 400


class Interrupted(Exception):
    """Stands for KeyboardInterrupt."""


def interrupt(number: int, frame: Any) -> None:
    raise Interrupted


def test_an_error_inside_gives_the_token_back() -> None:
    gate = Gate()
    with pytest.raises(Interrupted), gate:
        interrupt(gate.qsize(), None)
    assert gate.qsize() == 1


def test_no_code_of_python_runs_where_a_gate_is_passed() -> None:
    gate, seen = Gate(), list[str]()

    def trace(frame: Any, event: str, told: object) -> None:
        seen.append(frame.f_code.co_name)

    sys.settrace(trace)
    try:
        with gate:
            gate.qsize()
    finally:
        sys.settrace(None)
    assert (seen, gate.qsize()) == ([], 1)


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
            assert rec._gate.qsize() == 1
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
                assert rec._gate.qsize() == 1
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
    "learn_one": lambda rec: rec.learn_one(0.3, 1),
}


class Told(Gate):
    """A gate that tells who comes."""

    __slots__ = ("reached",)

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()

    def __enter__(self) -> object:
        self.reached.set()
        return self.get()


@pytest.mark.parametrize("call", CALLS)
def test_a_call_waits_while_another_one_has_the_gate(call: str) -> None:
    rec, other = Recalibrator(seed=1), Recalibrator(seed=1)
    rec.forecast(0.9)
    other.forecast(0.9)
    rec._gate = gate = Told()
    token = gate.get()
    caller = threading.Thread(target=CALLS[call], args=(rec,))
    caller.start()
    assert gate.reached.wait(timeout=30)
    assert caller.is_alive()
    gate.put(token)
    caller.join(timeout=30)
    CALLS[call](other)
    assert rec == other
