"""Interrupts at each place where CPython can raise what comes from elsewhere.

These places are where a function begins, after a call and where a loop goes round.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import calibrant
from calibrant.core.gate import HandyGate

HOME = str(Path(calibrant.__file__).parent)


class Stop(BaseException):
    """What interrupts."""


@functools.cache
def after_call(code: Any) -> frozenset[int]:
    """Return where an interrupt can be raised in a piece of code, its beginning apart.

    What comes after a call is handled where the call is.  Where that ends with the call, as where
    its result is returned from within ``with``, a trace would raise it behind, and is not tried.
    """
    found, before, handled = set(), "", dis.Bytecode(code).exception_entries
    for instruction in dis.get_instructions(code):
        at = instruction.offset
        ends = any(entry.end == at for entry in handled)
        if before.startswith("CALL") and not ends:
            found.add(at)
        if instruction.opname == "JUMP_BACKWARD":
            found.add(instruction.argval)
        if instruction.opname != "CACHE":
            before = instruction.opname
    return frozenset(found)


def start(trace: Callable[..., Any]) -> None:
    """Trace from here on, by instruction where the trace asks for it."""
    # Python 3.12 looks for instructions from here on only if some frame had asked for them.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)


@contextlib.contextmanager
def tracing(trace: Callable[..., Any]) -> Iterator[None]:
    """Trace what runs inside, and afterwards what was traced before."""
    kept = sys.gettrace()
    start(trace)
    try:
        yield
    finally:
        sys.settrace(kept)


def by_instruction(frame: Any, trace: Callable[..., Any]) -> None:
    """Tell ``trace`` of every instruction of a frame, and of no line."""
    # Python 3.13 tells of the first frame of a function only if the trace is known by now.
    frame.f_trace = trace
    frame.f_trace_opcodes, frame.f_trace_lines = True, False


class Interrupting:
    """A trace that stops the program at one of the places where an interrupt can come."""

    def __init__(self, at: int, apart: str = "nothing") -> None:
        self.left, self.seen, self.apart = at, 0, apart

    def __call__(self, frame: Any, event: str, told: object) -> object:
        name = frame.f_code.co_filename
        # Nobody interrupts what is machine code elsewhere, or has nothing to do with calibrant.
        if not name.startswith(HOME) or self.apart in name:
            return None
        # What is raised in a generator that is being dropped reaches nobody; what is raised in
        # another one comes out of the call that consumes it, which is a place of its own.
        if frame.f_code.co_name == "<genexpr>":
            return None
        by_instruction(frame, self)
        if event == "call" or (event == "opcode" and frame.f_lasti in after_call(frame.f_code)):
            self.pass_by()
        return self

    def pass_by(self) -> None:
        self.seen += 1
        if self.seen == self.left:
            raise Stop


def interrupted(call: Callable[[], object], at: int, apart: str = "nothing") -> tuple[bool, int]:
    """Say whether a call was interrupted at that place, and how many places it passed."""
    trace = Interrupting(at, apart)
    with tracing(trace):
        try:
            call()
        except Stop:
            return True, trace.seen
    return False, trace.seen


class Taken(list):
    """A place for a token that counts how often this was taken, by hand or by ``with``."""

    times = 0

    def __delitem__(self, place) -> None:
        super().__delitem__(place)
        self.times += 1


class Asked(HandyGate):
    """A gate that counts who asks for its token; calls of any stream may pass through this one."""

    def __init__(self) -> None:
        super().__init__()
        self.token = Taken(self.token)

    @property
    def asked(self) -> int:
        return self.token.times
