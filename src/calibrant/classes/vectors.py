"""Rules for what comes in when there are more than two outcomes.

A raw forecast is K numbers in [0, 1] that sum to 1 within `TOLERANCE`; an outcome is a class,
a whole number from 0 to K - 1.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput, InvalidType

TOLERANCE: Final = 1e-6
"""How far from 1 a raw forecast may sum: single precision passes, half precision does not."""
MAX_CLASSES: Final = 1_000_000


def class_count(classes: Any) -> int:
    """Return the number of classes, at least 2."""
    return check.whole(classes, "classes", low=2, high=MAX_CLASSES)


def vector(values: Any, classes: int, name: str = "raw forecast") -> Reals:
    """Return ``values`` as a new array of ``classes`` probabilities.

    >>> vector([0.5, 0.25, 0.25], 3)
    array([0.5 , 0.25, 0.25])
    >>> vector([0.5, 0.6], 2)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: raw forecast must sum to 1 within 1e-06, got 1.1
    """
    array = check.numbers(values, name, "numbers in [0, 1]")
    if len(array) != classes:
        raise InvalidInput(f"{name} must have {classes} numbers, a class each, got {len(array)}")
    row: Reals = _distributions(array[None].astype(np.float64), name, one=True)[0]
    return row


def matrix(
    values: Any, classes: int | None, name: str = "raw forecasts", *, sums: bool = True
) -> Reals:
    """Return ``values`` as a contiguous table, a round a row and a class a column.

    With ``classes=None`` any number of columns will do, with ``sums=False`` any sum.

    >>> matrix([[0.5, 0.5], [0.2, 0.9]], 2)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: raw forecasts[1] must sum to 1 within 1e-06, got 1.1
    """
    array = _table(values, name)
    if classes is not None and array.shape[1] != classes:
        told = f"rows of {classes} numbers, a class each, got {array.shape[1]}"
        raise InvalidInput(f"{name} must have {told}")
    return _distributions(array.astype(np.float64, copy=False), name, sums=sums)


def outcome(value: Any, classes: int) -> int:
    """Return ``value`` as a class."""
    return check.whole(value, "outcome", high=classes - 1)


def outcomes(values: Any, classes: int) -> Words:
    """Return ``values`` as an array of classes.

    >>> outcomes([0, 3], 3)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: outcomes[1] must be a whole number from 0 to 2, got 3
    """
    array = check.numbers(values, "outcomes", "classes")
    if array.dtype.kind == "b":
        raise InvalidType("outcomes must be a flat array of classes, got dtype bool")
    bad = ~((array >= 0) & (array < classes) & (array == np.floor(array)))
    check.refuse_first(bad, array, "outcomes", f"a whole number from 0 to {classes - 1}")
    return array.astype(np.int64)


def _table(values: Any, name: str) -> NDArray[Any]:
    check.refuse_masked(values, name)
    try:
        array = check.as_array(values)
    except ValueError:
        raise InvalidType(f"{name} must be a table of numbers, got ragged rows") from None
    if array.ndim != 2:
        raise InvalidInput(f"{name} must be a table, a round a row, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise InvalidType(f"{name} must be a table of numbers, got dtype {array.dtype}")
    return array


def _distributions(array: Reals, name: str, *, sums: bool = True, one: bool = False) -> Reals:
    # The comparison is false for what is not a number.
    inside = array.size == 0 or (array.min() >= 0.0 and array.max() <= 1.0)
    if not inside:
        row, column = np.argwhere(~((array >= 0.0) & (array <= 1.0)))[0].tolist()
        place = f"{name}[{column}]" if one else f"{name}[{row}, {column}]"
        raise InvalidInput(f"{place} must be a number in [0, 1], got {array[row, column].item()!r}")
    if sums:
        _refuse_sums(array, name, one)
    return np.ascontiguousarray(array)


def _refuse_sums(array: Reals, name: str, one: bool) -> None:
    totals = array.sum(axis=1)
    bad = np.abs(totals - 1.0) > TOLERANCE
    if bad.any():
        row = int(np.argmax(bad))
        place = name if one else f"{name}[{row}]"
        told = f"sum to 1 within {TOLERANCE}, got {totals[row].item()!r}"
        raise InvalidInput(f"{place} must {told}")
