"""The gate is given back whatever happens, interrupts included."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from calibrant import Recalibrator
from calibrant.core.gate import Gate, passing, wait
from calibrant.recalibrate import recalibrator

pytestmark = pytest.mark.base

INTERRUPTS = 400


class Interrupted(Exception):
    """Stands for KeyboardInterrupt."""


def interrupt(number: int, frame: Any) -> None:
    raise Interrupted


def test_an_error_inside_gives_the_token_back() -> None:
    gate: Gate = [None]
    with pytest.raises(Interrupted), passing(gate):
        interrupt(len(gate), None)
    assert gate == [None]


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
            assert len(rec._gate) == 1
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


@pytest.mark.parametrize("call", CALLS)
def test_a_call_waits_while_another_one_has_the_gate(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rec, other = Recalibrator(seed=1), Recalibrator(seed=1)
    rec.forecast(0.9)
    other.forecast(0.9)
    waiting = threading.Event()

    def told(gate: Gate) -> None:
        waiting.set()
        wait(gate)

    monkeypatch.setattr(recalibrator, "wait", told)
    rec._gate.clear()
    caller = threading.Thread(target=CALLS[call], args=(rec,))
    caller.start()
    assert waiting.wait(timeout=30)
    assert caller.is_alive()
    rec._gate.append(None)
    caller.join(timeout=30)
    CALLS[call](other)
    assert rec == other
