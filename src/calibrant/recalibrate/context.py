"""What is known of a round besides its raw forecast: features by name, as words.

A word is made of a hash of the name, the same in every process and on every machine, and of a
number to 30 bits; a string goes into the hash.  :mod:`calibrant.kernels.transforms.context` says
how the words are read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from hashlib import blake2b
from numbers import Real
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels.transforms.context import EXPONENT, FINE, MIDDLE, NAME, NAMED

Known: TypeAlias = Mapping[str, Any] | None
"""Features of a round, or columns of features, by name; None where nothing is known."""
HASHED: Final = 64 - 22
ALONE: Final = (NAMED << EXPONENT) | 1
"""The lower bits of a word whose name has its value in it."""
REACH: Final = MIDDLE - 2
"""Numbers of more than 2**REACH count as that, and those below its inverse as 0."""
RULE: Final = "a finite number or a string, or None where it is not known"
_FIRST: Final = itemgetter(0)


@functools.lru_cache(maxsize=1 << 16)
def hashed(name: str) -> int:
    """Return 22 bits of the hash of a name, where they stand in a word.

    >>> hashed("age") >> 40
    2075646
    """
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> HASHED << NAME


def words_of(context: Known, most: int) -> list[int]:
    """Return the words of a round, and zeros up to that many.

    >>> words_of({"age": 37.0, "plan": "gold", "city": None}, 3)[2]
    0
    """
    if context is None:
        return [0] * most
    if not isinstance(context, Mapping):
        raise InvalidType(f"context must be a mapping of features by name, got {context!r}")
    known = _by_name(context)
    made = [_word(name, value) for name, value in known if value is not None]
    if len(made) > most:
        raise InvalidInput(f"context must have at most {most} features, got {len(made)}")
    return made + [0] * (most - len(made))


def columns_of(context: Known, most: int, rows: int) -> Words:
    """Return the words of many rounds, a row each, from columns of features by name."""
    made = np.zeros((rows, most), np.int64)
    if context is None:
        return made
    if not isinstance(context, Mapping):
        raise InvalidType(f"context must be a mapping of columns by name, got {context!r}")
    if len(context) > most:
        raise InvalidInput(f"context must have at most {most} features, got {len(context)}")
    for k, (name, values) in enumerate(_by_name(context)):
        column = _column(name, values)
        if len(column) != rows:
            told = f"context[{name!r}] must have a row for each of {rows} forecasts"
            raise InvalidInput(f"{told}, got {len(column)}")
        made[:, k] = column
    # What is not known goes behind what is: the first zero ends the words of a round.
    order = np.argsort(made == 0, axis=1, kind="stable")
    return np.take_along_axis(made, order, axis=1)


def unread(context: Any) -> InvalidInput:
    """Return the error that context was given where no expert reads it."""
    told = "context must be given to a Calibrant(context=True), whose experts read it"
    return InvalidInput(f"{told}, got {context!r}")


def _column(name: str, values: Any) -> Words:
    array = np.asarray(values) if hasattr(values, "__array__") else None
    if array is not None and array.ndim != 1:
        raise InvalidInput(f"context[{name!r}] must be a flat column, got {values!r}")
    if array is not None and array.dtype.kind in "biuf":
        return _numbers(name, array.astype(np.float64))
    column = values if array is None else array
    listed = check.listed(column, f"context[{name!r}]", "have a row for each forecast")
    told = [0 if value is None else _word(name, value) for value in listed]
    return np.array(told, np.int64).reshape(len(told))


def _numbers(name: str, values: Reals) -> Words:
    """Return the words of a column of numbers at once."""
    for value in values[~np.isfinite(values)][:1].tolist():
        raise _refused(name, value)
    fraction, exponent = np.frexp(values)
    fraction = np.where(
        exponent < -REACH, 0.0, np.where(exponent > REACH, np.sign(values), fraction)
    )
    whole = np.clip(np.rint(fraction * FINE), 1 - FINE, FINE - 1).astype(np.int64)
    power = np.clip(exponent, -REACH, REACH).astype(np.int64) + MIDDLE
    return np.asarray((power << EXPONENT) + FINE + whole + hashed(name))


def _word(name: str, value: Any) -> int:
    if isinstance(value, str):
        return hashed(f"{name}={value}") + ALONE
    if type(value) is not float and not isinstance(value, (Real, np.bool_)):
        raise _refused(name, value)
    try:
        finite = math.isfinite(value)
    except OverflowError:
        raise InvalidInput(f"context[{name!r}] must be {RULE}, got one beyond 1.8e308") from None
    if not finite:
        raise _refused(name, value)
    fraction, exponent = math.frexp(value)
    if not -REACH <= exponent <= REACH:
        fraction = 0.0 if exponent < 0 else math.copysign(1.0, fraction)
        exponent = REACH if exponent > 0 else -REACH
    whole = round(fraction * FINE)
    whole = whole if -FINE < whole < FINE else (FINE - 1 if whole > 0 else 1 - FINE)
    return ((exponent + MIDDLE) << EXPONENT) + FINE + whole + hashed(name)


def _by_name(context: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return what is known in the order of names: sums of floats depend on their order."""
    for name in context:
        if not isinstance(name, str):
            raise InvalidType(f"context must have strings as names, got {name!r}")
    return sorted(context.items(), key=_FIRST)


def _refused(name: str, value: Any) -> InvalidInput:
    return InvalidInput(f"context[{name!r}] must be {RULE}, got {value!r}")
