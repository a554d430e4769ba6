"""Single steps on the array alone, for callers to whom every argument costs time.

A forecast that was announced, or looked at, stays in the header, and is learned from there, or
made a round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

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

SEEN: Final = -1
"""Stands for the number of a forecast that was looked at and not announced."""


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


def learn_on_array(learn: Callable[..., Any], begin: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``learn`` for the forecast in the header: announced, or looked at and begun now."""

    def learn_flat(flat: Any, row: int, number: int, told: float, outcome: int) -> int:
        """Learn the outcome of the forecast in hand, made at that time, or of what was seen.

        That is meant by the number `SEEN`, with the raw forecast.  Returns the number learned, -1
        if the header says something else, or -2 if there is no room for a round.
        """
        reals = flat.view(np.float64)
        if number >= 0:
            if flat[HAND] != number or flat[HAND_ROW] != row:
                return -1
            place, time, raw = flat[HAND_PLACE], told, reals[HAND_RAW]
            weight, mixed = reals[HAND_WEIGHT], reals[HAND_MIXED]
        else:
            if flat[row + ROUNDS] >= flat[CAPACITY]:
                return -2
            place, time, raw = flat[LOOK_PLACE], 0.0, told
            weight, mixed = reals[LOOK_WEIGHT], reals[LOOK_MIXED]
            clock, learned = flat[LOOK_CLOCK], flat[LOOK_LEARNED]
            number = begin(flat, reals, row, place, weight, clock, learned, raw)
        flat[HAND] = -1
        if number >= 0:
            learn(flat, reals, row, number, place, weight, mixed, raw, time, outcome)
        return number

    return learn_flat
