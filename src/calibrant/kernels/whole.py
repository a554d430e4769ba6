"""Plain steps that change a row wholly or not at all, whatever interrupts them.

An interrupt is an exception that comes from elsewhere, such as Ctrl-C.  CPython raises it when a
function begins, after a call and when a loop goes round; so words that are written one after the
other, without a call in between, change together.  Compiled steps are one call each.
"""

from __future__ import annotations

import dis
from array import array
from collections.abc import Callable
from typing import Any, TypeVar

from calibrant.kernels.layout import (
    CLOCK,
    ISSUED,
    MOST_OUTSTANDING,
    NARROW,
    POSITION,
    RESERVED,
    UNDO_AT,
    UNDO_FRESH,
    UNDO_LEARNED,
    UNDO_MOST,
    UNDO_NUMBER,
    UNDO_POSITION,
    UNDO_RESERVED,
    Words,
)
from calibrant.kernels.pairs import FRESH

Update = TypeVar("Update", bound=Callable[..., None])


def whole(step: Callable[..., Any], size: int) -> Callable[..., Any]:
    """Return a step that puts back the words of its row, so many, if it is interrupted."""

    def guarded(words: Words, reals: Any, row: int, *told: Any) -> Any:
        end = row + size
        kept = copied(words, row, end)
        try:
            return step(words, reals, row, *told)
        except BaseException:
            words[row:end] = kept
            words[UNDO_AT] = words[UNDO_LEARNED] = -1
            raise

    return guarded


def whole_round(step: Callable[..., Any], sizes: Any, at: int) -> Callable[..., Any]:
    """Return a step that puts back all words of its round if it is interrupted.

    ``at`` says which argument behind the row is the place: no block but that one's is changed.
    """
    starts, stride, size = sizes.starts, sizes.stride, sizes.row
    own, after = starts[0], starts[-1] + stride

    def guarded(words: Words, reals: Any, row: int, *told: Any) -> Any:
        begin = row + starts[(told[at] >> 16) & NARROW]
        head = copied(words, row, row + own)
        block = copied(words, begin, begin + stride)
        rest = copied(words, row + after, row + size)
        try:
            return step(words, reals, row, *told)
        except BaseException:
            words[row : row + own] = head
            words[begin : begin + stride] = block
            words[row + after : row + size] = rest
            words[UNDO_AT] = words[UNDO_LEARNED] = -1
            raise

    return guarded


def whole_block(update: Callable[..., None], size: int) -> Callable[..., None]:
    """Return an update that puts back the words of its block, so many, if it is interrupted."""

    def guarded(words: Words, reals: Any, at: int, *told: Any) -> None:
        kept = copied(words, at, at + size)
        try:
            update(words, reals, at, *told)
        except BaseException:
            words[at : at + size] = kept
            raise

    return guarded


def is_straight(function: Callable[..., Any]) -> bool:
    """Say whether a function neither calls another nor goes round a loop, or not where it matters.

    If it is interrupted, then before it has done anything.
    """
    names = {instruction.opname for instruction in dis.get_instructions(function)}
    calls = any(name.startswith(("CALL", "JUMP_BACKWARD", "FOR_ITER")) for name in names)
    return not calls or hasattr(function, "sets_at_its_end")


def sets_at_its_end(function: Update) -> Update:
    """Declare that a function, and nothing that it calls, sets words, and only after all calls."""
    vars(function)["sets_at_its_end"] = True
    return function


def began(error: BaseException, function: Any) -> bool:
    """Say whether an interrupt came inside of a function that was called, and not after.

    If the function is straight, or puts its words back, then nothing was done.  The frame after
    the caller's may also be that of a signal's handler.
    """
    trace = error.__traceback__
    inner = None if trace is None else trace.tb_next
    return inner is not None and inner.tb_frame.f_code is function.__code__


def copied(words: Words, start: int, end: int) -> Any:
    """Return a copy of some words of a list, of an array or of a view."""
    part = words[start:end]
    if type(part) is list:
        # Of the array behind a list there is one only.
        if part and type(part[-1]) is array:
            part[-1] = part[-1][:]
        return part
    if isinstance(part, memoryview):
        return memoryview(bytearray(part)).cast(part.format)  # type: ignore[call-overload]
    return part.copy()


def withdraw(words: Words, row: int, number: int, full_support: bool, safe: bool) -> None:
    """Take back the forecast that was announced last, of which nobody got the ticket."""
    at = words[UNDO_AT]
    words[at + POSITION] = words[UNDO_POSITION]
    if words[UNDO_NUMBER] == number:
        words[row + MOST_OUTSTANDING] = words[UNDO_MOST]
    if full_support:
        words[at + FRESH] = words[UNDO_FRESH]
    if safe:
        words[row + RESERVED] = words[UNDO_RESERVED]
    words[at + CLOCK] -= 1
    words[row + ISSUED] = number
    words[UNDO_NUMBER] = -1
