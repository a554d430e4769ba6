"""What can go wrong between a file and a recalibrator, and signals that end a run.

::

    StreamFailure (CalibrantError)
    ├── Unreadable (OSError)          an input that is not there, not ours, or broken
    │   └── NoColumn                  an input whose columns cannot be guessed
    ├── BadRow (ValueError)           a row that breaks a rule
    ├── Unwritable (OSError)          an output that cannot be written
    └── StateMismatch (ValueError)    a state that does not match what was asked for

Every message is one line that says where and what.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from calibrant.errors import CalibrantError, CorruptState, InvalidInput


class StreamFailure(CalibrantError):
    """Base of the failures of this package."""


class Unreadable(StreamFailure, OSError):
    """An input that cannot be read."""


class NoColumn(Unreadable):
    """An input whose columns cannot be guessed."""


class BadRow(StreamFailure, ValueError):
    """A row that breaks a rule; the message names row, column, value and rule."""


class Unwritable(StreamFailure, OSError):
    """An output that cannot be written."""


class StateMismatch(StreamFailure, ValueError):
    """A stored state that does not match the options given."""


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn whatever keeps ``name`` from being written into one line about it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if isinstance(error, CalibrantError) or error.errno is None:
            raise
        raise Unwritable(f"{name}: cannot be written: {os.strerror(error.errno)}") from error


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Name the file that cannot be read, or whose state is none or needs something else."""
    try:
        yield
    except CorruptState as problem:
        raise CorruptState(f"{name}: {problem}") from problem
    except InvalidInput as problem:
        raise InvalidInput(f"{name}: {problem}") from problem
    except OSError as error:
        raise Unreadable(f"{name}: cannot be read: {error.strerror}") from error


_abandoned: Final[list[str]] = []


def abandon(name: str) -> None:
    """Take note that an input was left before its end, which a thread may still read."""
    _abandoned.append(name)


def abandoned() -> bool:
    """Say whether an input was left so: Python would abort at its end, beside such a thread."""
    return bool(_abandoned)


SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)

_noted: Final[list[int]] = []
_settled: Final[list[bool]] = []


@contextmanager
def noting(*, lasting: bool = False) -> Iterator[None]:
    """Take note of signals that end a run while they act as before, for :func:`insist`.

    ``lasting`` says that the process ends with the block: where :func:`settle` took their
    effect from signals, they do not get it back.
    """
    found: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in found.items() if callable(handler)}

    def note(number: int, frame: FrameType | None) -> None:
        if not _settled:
            _noted.append(number)
            before[number](number, frame)

    for told in (_noted, _settled, _abandoned):
        told.clear()
    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in before:
            if not (lasting and _settled):
                signal.signal(number, before[number])


def insist() -> None:
    """Let a signal act once more if it had no effect.

    What a handler raises is lost where code of others, at work in the background or in a
    callback, swallows it.
    """
    if _noted:
        signal.raise_signal(_noted.pop())


def settle() -> None:
    """Take their effect from signals until the end of :func:`noting`: files are being put in place.

    A run whose state is there must not end as one that left nothing behind.
    """
    _settled.append(True)


def settled() -> bool:
    """Say whether files were put in place, or are being so."""
    return bool(_settled)


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

    heard = (number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)
    before = {number: signal.signal(number, note) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])
