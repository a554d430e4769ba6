"""Signals that end a run, held back while a row is half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_noted: Final[list[int]] = []


@contextmanager
def noting() -> Iterator[None]:
    """Take note of signals that end a run while they act as before, for :func:`insist`."""
    found: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in found.items() if callable(handler)}

    def note(number: int, frame: FrameType | None) -> None:
        _noted.append(number)
        before[number](number, frame)

    _noted.clear()
    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in before:
            signal.signal(number, before[number])


def insist() -> None:
    """Let a signal act once more if it had no effect.

    What a handler raises is lost where code of others, at work in the background or in a
    callback, swallows it.
    """
    if _noted:
        signal.raise_signal(_noted.pop())


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back interrupts until the block is done, then let the first one act.

    Elsewhere than in the main thread, where no signal arrives, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])
