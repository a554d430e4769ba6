"""The gate is given back whatever happens, interrupts included."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from calibrant import Recalibrator
from calibrant.core.gate import Gate, passing

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
