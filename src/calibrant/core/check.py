"""Rules for what comes in: one function per kind of value, one sentence per error.

Scalars come back as plain Python numbers, arrays as contiguous ``float64`` or
``uint8``.  NumPy scalars, booleans and ``-0.0`` pass wherever they mean a number
in range; strings never do.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Bits, Mask, Reals
from calibrant.errors import InvalidInput, InvalidType

Time: TypeAlias = float | np.datetime64
"""A time: a number in any unit, or a date, which counts in seconds since 1970."""
When: TypeAlias = Time | None
"""A time, if that is told."""
_BOOLS = (bool, np.bool_)


def probability(value: Any, name: str = "raw forecast") -> float:
    """Return ``value`` as a float in [0, 1].

    >>> probability(True), probability(-0.0)
    (1.0, -0.0)
    >>> probability(1.0000001)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: raw forecast must be a number in [0, 1], got 1.0000001
    """
    number = _number(value, name, "a number in [0, 1]")
    if not 0.0 <= number <= 1.0:
        raise InvalidInput(f"{name} must be a number in [0, 1], got {value!r}")
    return number


def outcome(value: Any, name: str = "outcome") -> int:
    """Return ``value`` as 0 or 1.

    >>> outcome(True), outcome(0.0)
    (1, 0)
    >>> outcome(2)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: outcome must be 0 or 1, got 2
    """
    number = _number(value, name, "0 or 1")
    if number == 0.0:
        return 0
    if number == 1.0:
        return 1
    raise InvalidInput(f"{name} must be 0 or 1, got {value!r}")


def real(
    value: Any,
    name: str,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    rule: str = "a finite number",
) -> float:
    """Return ``value`` as a finite float in [low, high]; ``rule`` names the range in the error."""
    number = _number(value, name, rule)
    if not (low <= number <= high) or number in (np.inf, -np.inf):
        raise InvalidInput(f"{name} must be {rule}, got {value!r}")
    return number


def moment(value: Any, name: str = "time") -> float:
    """Return a time as a finite float: a number as it is, a date in seconds since 1970.

    >>> moment(np.datetime64("1970-01-02")), moment(3)
    (86400.0, 3.0)
    """
    rule = "a finite number or an np.datetime64"
    value = value[()] if isinstance(value, np.ndarray) else value
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            raise InvalidInput(f"{name} must be {rule}, got {value!r}")
        value = float(seconds(value))
    return real(value, name, rule=rule)


_NEAR: Final = 2**63 // 10**9 - 1
"""Seconds around 1970 in which nanoseconds can be counted."""


def seconds(dates: Any) -> Reals:
    """Return dates in seconds since 1970, and not a number for each that is not a time.

    Nanoseconds count from 1678 to 2262, whole seconds before and after.
    """
    whole = dates.astype("M8[s]").astype(np.int64)
    near = np.abs(whole) <= _NEAR
    fine = np.where(near, dates, np.datetime64(0, "s")).astype("M8[ns]").astype(np.int64)
    told = np.where(near, fine / 1e9, whole)
    return np.where(np.isnat(dates), np.nan, told)


def above(value: Any, name: str, most: float = np.inf) -> float:
    """Return ``value`` as a finite float above 0, and at most ``most``."""
    number = real(real(value, name), name, high=most, rule=f"at most {most:g}")
    if number <= 0.0:
        raise InvalidInput(f"{name} must be above 0, got {value!r}")
    return number


def inside(value: Any, name: str) -> float:
    """Return ``value`` as a float between 0 and 1 that is neither, nor is 1 less it."""
    number = real(value, name)
    if not 0.0 < 1.0 - number < 1.0:
        raise InvalidInput(f"{name} must be between 0 and 1, got {value!r}")
    return number


def whole(value: Any, name: str, *, low: int = 0, high: int | None = None) -> int:
    """Return ``value`` as an int in [low, high].

    >>> whole(np.int64(3), "resolution", low=1)
    3
    >>> whole(2.5, "resolution", low=1)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: resolution must be a whole number of at least 1, got 2.5
    """
    # What is right and plain, as nearly everything is, costs nothing but these comparisons.
    if type(value) is int and low <= value and (high is None or value <= high):
        return value
    limits = f"of at least {low}" if high is None else f"from {low} to {high}"
    rule = f"a whole number {limits}"
    if isinstance(value, _BOOLS):
        raise InvalidType(f"{name} must be {rule}, got {value!r}")
    number = int(value) if is_integer(value) else _number(value, name, rule)
    if number % 1 or number < low or (high is not None and number > high):
        raise InvalidInput(f"{name} must be {rule}, got {value!r}")
    return int(number)


def is_integer(value: object) -> bool:
    """Say whether a value is an integer of Python or NumPy, which counts spans of time among its.

    >>> is_integer(3), is_integer(np.int8(3)), is_integer(np.timedelta64(3, "D")), is_integer(3.0)
    (True, True, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)


def name(id: Any) -> None:
    """Refuse what is to be a ticket's name and is neither None nor a string of some length."""
    if id is not None and (not isinstance(id, str) or not id):
        raise InvalidType(f"id must be a string that is not empty, got {id!r}")


def choice(value: Any, name: str, options: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``options``."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise InvalidInput(f"{name} must be one of {listed}, got {value!r}")
    return value


def probabilities(values: Any, name: str = "raw forecasts") -> Reals:
    """Return ``values`` as a contiguous one-dimensional array of numbers in [0, 1]."""
    array = numbers(values, name, "numbers in [0, 1]").astype(np.float64, copy=False)
    if array.size and not (array.min() >= 0.0 and array.max() <= 1.0):
        refuse_first(~((array >= 0.0) & (array <= 1.0)), array, name, "a number in [0, 1]")
    return np.ascontiguousarray(array)


def outcomes(values: Any, name: str = "outcomes") -> Bits:
    """Return ``values`` as a contiguous one-dimensional array of 0 and 1."""
    array = numbers(values, name, "outcomes, each 0 or 1")
    whole = array.dtype.kind in "iu" and array.size > 0
    if array.dtype.kind != "b" and not (whole and array.min() >= 0 and array.max() <= 1):
        refuse_first(~((array == 0) | (array == 1)), array, name, "0 or 1")
    return np.ascontiguousarray(array.astype(np.uint8, copy=False))


def numbers(values: Any, name: str, rule: str, *, dates: bool = False) -> NDArray[Any]:
    """Return ``values`` as a one-dimensional array of numbers; ``rule`` says which they must be.

    Where ``dates`` will do, they count in seconds since 1970.
    """
    array = rows(values, name, f"a flat array of {rule}")
    array = seconds(array) if dates and array.dtype.kind == "M" else array
    if array.ndim != 1:
        raise InvalidInput(f"{name} must be a flat array of {rule}, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        if array.size == 0:
            return np.empty(0)
        raise InvalidType(f"{name} must be a flat array of {rule}, got dtype {array.dtype}")
    return array


def rows(values: Any, name: str, rule: str) -> NDArray[Any]:
    """Return ``values`` as an array of rows, whatever they hold; ``rule`` says what they must be.

    >>> rows(0.4, "raw forecasts", "a flat array")
    Traceback (most recent call last):
    calibrant.errors.InvalidType: raw forecasts must be a flat array, got 0.4
    """
    refuse_masked(values, name)
    try:
        array = as_array(values)
    except ValueError:
        raise InvalidType(f"{name} must be {rule}, got ragged rows") from None
    if array.ndim == 0:
        raise InvalidType(f"{name} must be {rule}, got {values!r}")
    return array


EACH: Final = "have an entry for each event"


def listed(values: Any, name: str, rule: str = EACH, *, plain: bool = True) -> list[Any]:
    """Return a column as a list; ``rule`` says what a single value, text or bytes are not.

    Entries of NumPy become those of Python if the list shall be ``plain``.

    >>> listed(np.array([3, 4]), "id"), listed(("a", None), "id")
    ([3, 4], ['a', None])
    >>> listed("a", "id")
    Traceback (most recent call last):
    calibrant.errors.InvalidType: id must have an entry for each event, got 'a'
    """
    # NumPy makes whole numbers of some dates.
    plain &= getattr(getattr(values, "dtype", None), "kind", None) != "M"
    made = values.tolist() if plain and hasattr(values, "tolist") else values
    single = isinstance(made, (str, bytes)) or getattr(values, "ndim", 1) == 0
    if single or not hasattr(made, "__iter__"):
        raise InvalidType(f"{name} must {rule}, got {values!r}")
    return list(made)


def as_array(values: Any) -> NDArray[Any]:
    """Return ``values`` as an array of its own, so that it stays what is checked next.

    Compiled code runs while other threads do, which may change an array that is theirs.  Tensors
    that only speak DLPack would otherwise be taken for a single object.
    """
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.from_dlpack(values).copy()
    return np.array(values)


def same_length(**arrays: Any) -> int:
    """Return the one length that all ``arrays`` share; their names go into the error."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InvalidInput(f"arrays must be of one length, got: {told}")
    return next(iter(lengths.values()), 0)


def _number(value: Any, name: str, rule: str) -> float:
    if type(value) is float:
        return value
    # A tensor without dimensions is a number, whoever made it.
    if not isinstance(value, Real) and getattr(value, "shape", None) == ():
        value = (value if isinstance(value, np.ndarray) else as_array(value))[()]
    if not isinstance(value, (Real, np.bool_)) or isinstance(value, np.timedelta64):
        raise InvalidType(f"{name} must be {rule}, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidInput(f"{name} must be {rule}, got {value!r}") from None


def refuse_first(bad: Mask, array: NDArray[Any], name: str, rule: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(f"{name}[{row}] must be {rule}, got {array[row].item()!r}")


def refuse_masked(values: Any, name: str) -> None:
    """Refuse a masked array in which something is masked: NumPy would uncover what is below.

    >>> refuse_masked(np.ma.masked_array([0.1, 0.2], [False, True]), "raw forecasts")
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: raw forecasts[1] must be known, got a masked value
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argmax(np.ma.getmaskarray(values).ravel()))
        raise InvalidInput(f"{name}[{row}] must be known, got a masked value")
