"""Rules for numbers that come in: tables of finite ones, and levels in order."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals
from calibrant.errors import InvalidInput, InvalidType

MOST_LEVELS: Final = 1000
"""Levels that one recalibrator follows, at most."""


def finite(values: Any, name: str) -> Reals:
    """Return ``values`` as a flat array of finite numbers.

    >>> finite([1, float("nan")], "outcomes")
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: outcomes[1] must be a finite number, got nan
    """
    array = check.numbers(values, name, "finite numbers").astype(np.float64)
    check.refuse_first(~np.isfinite(array), array, name, "a finite number")
    return array


def table(values: Any, name: str) -> Reals:
    """Return ``values`` as a table of finite numbers, a round a row.

    >>> table([[1.0, 2.0], [3.0, float("inf")]], "samples")
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: samples[1, 1] must be a finite number, got inf
    """
    check.refuse_masked(values, name)
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidType(f"{name} must be a table of numbers, got ragged rows") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInput(f"{name} must be a table, a round a row, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise InvalidType(f"{name} must be a table of numbers, got dtype {array.dtype}")
    made = array.astype(np.float64)
    _refuse(~np.isfinite(made), made, name, "a finite number")
    return made


def rising(rows: Reals, name: str) -> Reals:
    """Return a table whose rows never fall, or say which number does.

    >>> rising(np.array([[0.1, 0.3, 0.2]]), "values")
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: values[0, 2] must be at least the number before it, got 0.2
    """
    bad = np.zeros(rows.shape, bool)
    bad[:, 1:] = rows[:, 1:] < rows[:, :-1]
    _refuse(bad, rows, name, "at least the number before it")
    return rows


def target_levels(levels: Any) -> Reals:
    """Return the levels to follow: those given, or so many at equal distances.

    >>> target_levels(4).tolist(), target_levels([0.05, 0.5]).tolist()
    ([0.2, 0.4, 0.6, 0.8], [0.05, 0.5])
    """
    if isinstance(levels, (int, np.integer)) and not isinstance(levels, bool):
        count = check.whole(levels, "levels", low=1, high=MOST_LEVELS)
        return np.arange(1, count + 1) / (count + 1)
    given = check.numbers(levels, "levels", "numbers between 0 and 1").astype(np.float64)
    check.whole(len(given), "number of levels", low=1, high=MOST_LEVELS)
    inside = (given > 0.0) & (given < 1.0)
    check.refuse_first(~inside, given, "levels", "between 0 and 1")
    falls = np.append(False, given[1:] <= given[:-1])
    check.refuse_first(falls, given, "levels", "above the one before it")
    return given


def _refuse(bad: Mask, rows: Reals, name: str, rule: str) -> None:
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        told = f"{rule}, got {rows[row, column].item()!r}"
        raise InvalidInput(f"{name}[{row}, {column}] must be {told}")
