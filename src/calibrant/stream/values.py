"""Columns as numbers and times, whatever they were written as."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.core.arrays import Mask, Reals

WORDS: Final = {"true": 1.0, "false": 0.0}
EXACT: Final = 1e-6
"""How far from 1 probabilities may sum, and from a whole number a shifted one may be."""
DECIMALS: Final = (2, 3, 4, 5, 6)
"""Decimals to which probabilities may be rounded."""


class Numbers(NamedTuple):
    """A column as doubles: nan where it is not a number, and where there is nothing at all."""

    values: Reals
    missing: Mask


def numbers(column: Any) -> Numbers:
    """Read a column of numbers, of booleans, or of text that holds either.

    Examples
    --------
    >>> numbers(pa.array(["0.5", "", "true", "x"])).values.tolist()
    [0.5, nan, 1.0, nan]
    >>> numbers([1, None, "0.25"]).missing.tolist()
    [False, True, False]
    """
    if isinstance(column, list):
        return one_by_one(column, number)
    column = decoded(column)
    if is_text(column):
        return _of_text(column, pa.float64(), number)
    if _is_numeric(column.type):
        return _of_floats(pc.cast(column, pa.float64(), safe=False))
    return one_by_one(column.to_pylist(), number)


def times(column: Any) -> Numbers:
    """Read a column of times: numbers, time stamps, dates, or text that holds any of them.

    A time stamp counts in seconds since 1970; one without a zone is taken to be in UTC.

    Examples
    --------
    >>> times(pa.array(["1970-01-02", "1970-01-02T00:00:01"])).values.tolist()
    [86400.0, 86401.0]
    """
    if isinstance(column, list):
        return one_by_one(column, _moment)
    column = decoded(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _of_stamps(column)
    if is_text(column):
        return _of_times_in_text(column)
    return numbers(column)


def decoded(column: Any) -> Any:
    """Return a column without a dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def is_text(column: Any) -> bool:
    """Say whether a column of Arrow is text."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _is_numeric(kind: Any) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _of_floats(column: Any) -> Numbers:
    values, missing = _viewed(column, np.float64), np.zeros(len(column), np.bool_)
    if column.null_count:
        missing = _viewed(pc.cast(column.is_null(), pa.uint8()), np.uint8).view(np.bool_)
        values = np.where(missing, np.nan, values)
    return Numbers(values, missing)


def _viewed(column: Any, kind: type[np.generic]) -> Any:
    """Return what lies in a column's memory; Arrow's own way would import pandas first."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(whole):
        return np.empty(0, kind)
    return np.frombuffer(whole.buffers()[1], kind)[whole.offset : whole.offset + len(whole)]


def _of_text(column: Any, kind: Any, read: Callable[[Any], float]) -> Numbers:
    """Try the fast ways first; whatever is odd about a column is told value by value."""
    for prepare in (None, _without_gaps):
        try:
            cast = pc.cast(prepare(column) if prepare else column, kind)
        except pa.ArrowInvalid:
            continue
        return _of_floats(cast) if kind == pa.float64() else _of_stamps(cast)
    return one_by_one(column.to_pylist(), read)


def _without_gaps(column: Any) -> Any:
    # Without a constant of Python, for which Arrow would import pandas.
    filled = pc.cast(pc.binary_length(column), pa.bool_())
    return pc.if_else(filled, column, pa.nulls(1, column.type)[0])


def _of_times_in_text(column: Any) -> Numbers:
    try:
        return _of_floats(pc.cast(_without_gaps(column), pa.float64()))
    except pa.ArrowInvalid:
        return _of_text(column, pa.timestamp("us"), _moment)


TICKS: Final = {"s": 1.0, "ms": 1e3, "us": 1e6}
"""Counts of a time stamp in a second."""


def _of_stamps(column: Any) -> Numbers:
    """Return seconds, however far away: no count is cast to one that may be too small for it."""
    kind = column.type
    if pa.types.is_date32(kind):
        found = _of_floats(pc.cast(pc.cast(column, pa.int32()), pa.float64()))
        return Numbers(found.values * 86_400.0, found.missing)
    if getattr(kind, "unit", "") == "ns":
        column = pc.cast(column, pa.timestamp("us", kind.tz), safe=False)
    unit = "ms" if pa.types.is_date64(kind) else column.type.unit
    found = _of_floats(pc.cast(pc.cast(column, pa.int64()), pa.float64(), safe=False))
    return Numbers(found.values / TICKS[unit], found.missing)


def one_by_one(values: list[Any], read: Callable[[Any], float]) -> Numbers:
    """Read values each by itself; nothing at all is missing."""
    missing = [value is None or value == "" for value in values]
    found = [np.nan if gap else read(value) for value, gap in zip(values, missing, strict=True)]
    return Numbers(np.array(found, np.float64), np.array(missing, np.bool_))


def number(value: Any) -> float:
    """Return a number, or a word for one; nan if it is neither."""
    if isinstance(value, str):
        text = value.strip().lower()
        value = WORDS.get(text, text if "_" not in text else "nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _moment(value: Any) -> float:
    if isinstance(value, str):
        found = number(value)
        return _stamp(value.strip()) if np.isnan(found) else found
    return number(value)


def _stamp(text: str) -> float:
    try:
        return seconds(datetime.fromisoformat(text))
    except ValueError:
        return np.nan


def seconds(found: datetime) -> float:
    """Return seconds since 1970; a time without a zone is in UTC."""
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def rounded(table: Reals) -> Mask:
    """Say which rows of probabilities sum to 1 but for decimals that were cut, two to six of them.

    >>> rounded(np.array([[0.333, 0.333, 0.333], [0.3, 0.3, 0.3], [0.5, 0.25, 0.25]])).tolist()
    [True, False, False]
    """
    off = np.abs(table.sum(axis=1) - 1.0)
    found = np.zeros(len(table), np.bool_)
    if not (off > EXACT).any():
        return found
    for digits in DECIMALS:
        shifted = table * 10.0**digits
        whole = (np.abs(shifted - np.round(shifted)) <= EXACT).all(axis=1)
        found |= whole & (off <= table.shape[1] * 0.5 * 10.0**-digits * (1.0 + EXACT))
    return np.asarray(found & (off > EXACT))


def listed(column: Any) -> list[Any]:
    """Return a column as a list, whatever it came as."""
    return column if isinstance(column, list) else column.to_pylist()
