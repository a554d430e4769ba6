"""Single steps on the array alone, for callers to whom every argument costs time.

A forecast that was announced, or looked at, stays in the header, and is learned from there, or
made a round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calibrant.kernels import layout as word

SEEN: Final = -1
"""Stands for the number of a forecast that was looked at and not announced."""
GLANCED: Final = -2
"""Stands for one of which the mean alone was told: it holds if nothing was learned since."""


def peek_on_array(peek: Callable[..., Any], mean: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``peek`` that leaves what it saw in the header, and its mean; it returns the cell.

    That is -1 where the raw forecast would be announced.
    """

    def peek_flat(flat: Any, row: int, raw: float) -> int:
        reals = flat.view(np.float64)
        place, weight, mixed, clock, learned = peek(flat, reals, row, raw)
        flat[word.LOOK_CLOCK], flat[word.LOOK_LEARNED] = clock, learned
        flat[word.LOOK_PLACE], reals[word.LOOK_WEIGHT] = place, weight
        reals[word.LOOK_MIXED], reals[word.LOOK_MEAN] = mixed, raw
        if place & word.ASIDE != 0:
            return -1
        cell, side = place & word.CELL, (place >> 15) & word.SIDES
        expected = mean(flat, reals, flat[word.CELLS], flat[word.TABLE], cell, side, weight)
        reals[word.LOOK_MEAN] = min(max(expected, 0.0), 1.0)
        seen: int = cell
        return seen

    return peek_flat


def issue_on_array(issue: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``issue`` that leaves the forecast in the header; below 0 there is no room for it."""

    def issue_flat(flat: Any, row: int, raw: float) -> tuple[int, int, float, float, int]:
        reals = flat.view(np.float64)
        if flat[row + word.ROUNDS] >= flat[word.CAPACITY]:
            return -1, 0, 1.0, raw, 0
        number, place, weight, mixed, clock = issue(flat, reals, row, raw)
        flat[word.HAND], flat[word.HAND_ROW], flat[word.HAND_PLACE] = number, row, place
        reals[word.HAND_WEIGHT], reals[word.HAND_MIXED], reals[word.HAND_RAW] = weight, mixed, raw
        return number, place, weight, mixed, clock

    return issue_flat


def learn_on_array(learn: Callable[..., Any], begin: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``learn`` for the forecast in the header: announced, or looked at and begun now."""

    def learn_flat(flat: Any, row: int, number: int, told: float, outcome: int) -> int:
        """Learn the outcome of the forecast in hand, made at that time, or of what was seen.

        That is meant by the numbers `SEEN` and `GLANCED`, with the raw forecast.  Returns the
        number learned, -1 if the header says something else, or -2 if there is no room.
        """
        reals = flat.view(np.float64)
        if number >= 0:
            if flat[word.HAND] != number or flat[word.HAND_ROW] != row:
                return -1
            place, time, raw = flat[word.HAND_PLACE], told, reals[word.HAND_RAW]
            weight, mixed = reals[word.HAND_WEIGHT], reals[word.HAND_MIXED]
        else:
            if flat[row + word.ROUNDS] >= flat[word.CAPACITY]:
                return -2
            place, time, raw = flat[word.LOOK_PLACE], 0.0, told
            weight, mixed = reals[word.LOOK_WEIGHT], reals[word.LOOK_MIXED]
            clock, learned = flat[word.LOOK_CLOCK], flat[word.LOOK_LEARNED]
            if number == GLANCED and flat[row + word.ROUNDS] != learned:
                return -1
            number = begin(flat, reals, row, place, weight, clock, learned, raw)
        flat[word.HAND] = -1
        if number >= 0:
            learn(flat, reals, row, number, place, weight, mixed, raw, time, outcome)
        return number

    return learn_flat
