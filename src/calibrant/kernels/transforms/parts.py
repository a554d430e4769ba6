"""The experts of a mixture, asked and taught in their order by two functions.

Plain Python pays for calls.  So up to :data:`TOGETHER` transforms are served by one function that
calls each of them, and not by functions that call each other.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

from calibrant.kernels.layout import INDEX, Reals, Words
from calibrant.kernels.transforms import kernel as types
from calibrant.kernels.transforms.kernel import NONE, Kernel
from calibrant.kernels.transforms.means import Absorb, Advise, make_bank

TOGETHER: Final = 8
"""So many transforms are served by one function."""


@dataclass(frozen=True)
class Part:
    """One part of a mixture: a transform, or a bank of so many experts that are served at once.

    ``logs`` says which logarithms of the raw forecast they look at.
    """

    kernel: Kernel | None
    width: int = 1
    logs: int = NONE


@functools.cache
def single(kernel: Kernel) -> Part:
    """Return a transform as a part with one expert."""
    return Part(kernel, logs=kernel.logs)


@functools.cache
def bank(count: int) -> Part:
    """Return a bank of bucket means as a part with ``count`` experts."""
    return Part(None, count)


def fold(parts: tuple[Part, ...], start: int) -> tuple[Advise, Absorb]:
    """Return two functions that serve the experts of all parts, in their order.

    Where the words of each part begin stands in the words from ``start`` on.
    """
    advise: Any = None
    absorb: Any = None
    first = done = 0
    while done < len(parts):
        run = _run(parts[done:])
        advise = _make_advise(advise, run, start + done, first)
        absorb = _make_absorb(absorb, run, start + done, first)
        done, first = done + len(run), first + sum(part.width for part in run)
    return advise, absorb


def _run(parts: tuple[Part, ...]) -> list[Part]:
    """Return the first parts that are served by one function: a bank, or transforms in a row."""
    ends = (k for k, part in enumerate(parts) if part.kernel is None or k == TOGETHER)
    return list(parts[: max(next(ends, len(parts)), 1)])


def _make_advise(before: Advise | None, run: list[Part], where: int, first: int) -> Advise:
    """Return what asks the parts before, and then some more."""
    if run[0].kernel is None:
        return _ask_bank(before, make_bank(run[0].width)[0], where, first)
    asked = [_given(part.kernel) for part in run if part.kernel is not None]
    return _ask_all(before, (asked + [None] * TOGETHER)[:TOGETHER], where, first)


def _given(kernel: Kernel) -> types.Given:
    return _asking(kernel.predict) if kernel.given is None else kernel.given


def _asking(predict: types.Predict) -> types.Given:
    def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
        return predict(words, reals, at, raw)

    return given


def _ask_bank(before: Advise | None, bank: Advise, where: int, first: int) -> Advise:
    def advise(
        words: Words, reals: Reals, at: int, raw: float, odds: float, less: float, out: int
    ) -> None:
        if before is not None:
            before(words, reals, at, raw, odds, less, out)
        bank(words, reals, at + (words[at + where] & INDEX), raw, odds, less, out + first)

    return advise


def _ask_all(before: Advise | None, asked: list[Any], where: int, first: int) -> Advise:
    one, two, three, four, five, six, seven, eight = asked

    def advise(
        words: Words, reals: Reals, at: int, raw: float, odds: float, less: float, out: int
    ) -> None:
        if before is not None:
            before(words, reals, at, raw, odds, less, out)
        w, to = at + where, out + first
        reals[to] = one(words, reals, at + (words[w] & INDEX), raw, odds, less)
        if two is not None:
            reals[to + 1] = two(words, reals, at + (words[w + 1] & INDEX), raw, odds, less)
        if three is not None:
            reals[to + 2] = three(words, reals, at + (words[w + 2] & INDEX), raw, odds, less)
        if four is not None:
            reals[to + 3] = four(words, reals, at + (words[w + 3] & INDEX), raw, odds, less)
        if five is not None:
            reals[to + 4] = five(words, reals, at + (words[w + 4] & INDEX), raw, odds, less)
        if six is not None:
            reals[to + 5] = six(words, reals, at + (words[w + 5] & INDEX), raw, odds, less)
        if seven is not None:
            reals[to + 6] = seven(words, reals, at + (words[w + 6] & INDEX), raw, odds, less)
        if eight is not None:
            reals[to + 7] = eight(words, reals, at + (words[w + 7] & INDEX), raw, odds, less)

    return advise


def _make_absorb(before: Absorb | None, run: list[Part], where: int, first: int) -> Absorb:
    """Return what teaches the parts before, and then some more."""
    if run[0].kernel is None:
        return _teach_bank(before, make_bank(run[0].width)[1], where, first)
    taught = [_partly(part.kernel) for part in run if part.kernel is not None]
    return _teach_all(before, (taught + [None] * TOGETHER)[:TOGETHER], where, first)


def _partly(kernel: Kernel) -> types.Partly:
    return _teaching(kernel.learn) if kernel.partly is None else kernel.partly


def _teaching(learn: types.Learn) -> types.Partly:
    def partly(
        words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int, part: float
    ) -> None:
        learn(words, reals, at, raw, told, outcome)

    return partly


def _teach_bank(before: Absorb | None, bank: Absorb, where: int, first: int) -> Absorb:
    def absorb(
        words: Words, reals: Reals, at: int, raw: float, out: int, outcome: int, part: float
    ) -> None:
        if before is not None:
            before(words, reals, at, raw, out, outcome, part)
        bank(words, reals, at + (words[at + where] & INDEX), raw, out + first, outcome, part)

    return absorb


def _teach_all(before: Absorb | None, taught: list[Any], where: int, first: int) -> Absorb:
    one, two, three, four, five, six, seven, eight = taught

    def absorb(
        words: Words, reals: Reals, at: int, raw: float, out: int, y: int, part: float
    ) -> None:
        if before is not None:
            before(words, reals, at, raw, out, y, part)
        w, to = at + where, out + first
        one(words, reals, at + (words[w] & INDEX), raw, reals[to], y, part)
        if two is not None:
            two(words, reals, at + (words[w + 1] & INDEX), raw, reals[to + 1], y, part)
        if three is not None:
            three(words, reals, at + (words[w + 2] & INDEX), raw, reals[to + 2], y, part)
        if four is not None:
            four(words, reals, at + (words[w + 3] & INDEX), raw, reals[to + 3], y, part)
        if five is not None:
            five(words, reals, at + (words[w + 4] & INDEX), raw, reals[to + 4], y, part)
        if six is not None:
            six(words, reals, at + (words[w + 5] & INDEX), raw, reals[to + 5], y, part)
        if seven is not None:
            seven(words, reals, at + (words[w + 6] & INDEX), raw, reals[to + 6], y, part)
        if eight is not None:
            eight(words, reals, at + (words[w + 7] & INDEX), raw, reals[to + 7], y, part)

    return absorb
