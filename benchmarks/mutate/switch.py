"""The switch in woven sources: which mutant is on, and which could have been noticed.

This file is copied beside the woven package, so that the processes tests start find it too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["active", "is_mutant", "moved", "or_mutant", "reached"]

active = int(os.environ.get("CALIBRANT_MUTANT", "-1"))
"""The number of the mutant that is on; -1 if the package is as it was written."""

reached: set[int] = set()
"""Mutants whose place was run."""

moved: set[int] = set()
"""Mutants that would have given another value there."""


def is_mutant(number: int) -> bool:
    """Say whether a mutant is on, and note that its place is run."""
    reached.add(number)
    return number == active


def or_mutant(number: int, value: Any, other: Callable[[], Any]) -> Any:
    """Return the value of the code as it was written; note whether a mutant has another."""
    if number not in moved:
        try:
            same = alike(value, other())
        except Exception:
            same = False
        if not same:
            moved.add(number)
    return value


def alike(one: Any, other: Any) -> bool:
    """Say whether nothing can tell two values apart; where that is not known, they differ."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if hasattr(one, "tobytes"):
        return bool(
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.dtype != object
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return isinstance(one, bool | int | float | str | bytes) and repr(one) == repr(other)
