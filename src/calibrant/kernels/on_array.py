"""Single steps on the array alone, for callers to whom every argument costs time.

A forecast that was announced, or looked at, stays in the header, and is learned, or booked, from
there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.kernels.layout import (
    CAPACITY,
    HAND,
    HAND_MIXED,
    HAND_PLACE,
    HAND_RAW,
    HAND_ROW,
    HAND_WEIGHT,
    LOOK_CLOCK,
    LOOK_LEARNED,
    LOOK_MIXED,
    LOOK_PLACE,
    LOOK_WEIGHT,
    ROUNDS,
)


def peek_on_array(peek: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``peek`` that leaves what it saw in the header."""

    def peek_flat(flat: Any, row: int, raw: float) -> int:
        reals = flat.view(np.float64)
        place, weight, mixed, clock, learned = peek(flat, reals, row, raw)
        flat[LOOK_CLOCK], flat[LOOK_PLACE], flat[LOOK_LEARNED] = clock, place, learned
        reals[LOOK_WEIGHT], reals[LOOK_MIXED] = weight, mixed
        seen: int = place
        return seen

    return peek_flat


def issue_on_array(issue: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``issue`` that leaves the forecast in the header; below 0 there is no room for it."""

    def issue_flat(flat: Any, row: int, raw: float) -> tuple[int, int, float, float, int]:
        reals = flat.view(np.float64)
        if flat[row + ROUNDS] >= flat[CAPACITY]:
            return -1, 0, 1.0, raw, 0
        number, place, weight, mixed, clock = issue(flat, reals, row, raw)
        flat[HAND], flat[HAND_ROW], flat[HAND_PLACE] = number, row, place
        reals[HAND_WEIGHT], reals[HAND_MIXED], reals[HAND_RAW] = weight, mixed, raw
        return number, place, weight, mixed, clock

    return issue_flat


def learn_on_array(learn: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``learn`` for the forecast in the header."""

    def learn_flat(flat: Any, row: int, number: int, time: float, outcome: int) -> bool:
        """Learn the outcome of the forecast in hand, and say whether it is the one meant."""
        if flat[HAND] != number or flat[HAND_ROW] != row:
            return False
        reals, place = flat.view(np.float64), flat[HAND_PLACE]
        weight, mixed, raw = reals[HAND_WEIGHT], reals[HAND_MIXED], reals[HAND_RAW]
        flat[HAND] = -1
        learn(flat, reals, row, number, place, weight, mixed, raw, time, outcome)
        return True

    return learn_flat


def book_on_array(book: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``book`` for what the header says was seen; -2 if there is no room."""

    def book_flat(flat: Any, row: int, raw: float, outcome: int) -> int:
        reals = flat.view(np.float64)
        place, clock, learned = flat[LOOK_PLACE], flat[LOOK_CLOCK], flat[LOOK_LEARNED]
        weight, mixed = reals[LOOK_WEIGHT], reals[LOOK_MIXED]
        if flat[row + ROUNDS] >= flat[CAPACITY]:
            return -2
        flat[HAND] = -1
        number: int = book(flat, reals, row, place, weight, mixed, clock, learned, raw, outcome)
        return number

    return book_flat
