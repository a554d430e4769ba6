"""Columns of any kind as numbers, and as times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.core.arrays import Mask, Reals

WORDS: Final = {"true": 1.0, "false": 0.0}


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
        return _one_by_one(column, _number)
    column = _decoded(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _of_text(column, pa.float64(), _number)
    if _is_numeric(column.type):
        return _of_floats(pc.cast(column, pa.float64(), safe=False))
    return _one_by_one(column.to_pylist(), _number)


def times(column: Any) -> Numbers:
    """Read a column of times: numbers, time stamps, dates, or text that holds any of them.

    A time stamp counts in seconds since 1970; one without a zone is taken to be in UTC.

    Examples
    --------
    >>> times(pa.array(["1970-01-02", "1970-01-02T00:00:01"])).values.tolist()
    [86400.0, 86401.0]
    """
    if isinstance(column, list):
        return _one_by_one(column, _moment)
    column = _decoded(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _of_stamps(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _of_times_in_text(column)
    return numbers(column)


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_numeric(kind: Any) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _of_floats(column: Any) -> Numbers:
    values = column.to_numpy(zero_copy_only=False)
    if column.null_count == 0:
        return Numbers(values, np.zeros(len(values), np.bool_))
    return Numbers(values, column.is_null().to_numpy(zero_copy_only=False))


def _of_text(column: Any, kind: Any, read: Callable[[Any], float]) -> Numbers:
    """Try the fast ways first; whatever is odd about a column is told value by value."""
    for prepare in (_as_it_is, _without_gaps):
        try:
            cast = pc.cast(prepare(column), kind)
        except pa.ArrowInvalid:
            continue
        return _of_floats(cast) if kind == pa.float64() else _of_stamps(cast)
    return _one_by_one(column.to_pylist(), read)


def _as_it_is(column: Any) -> Any:
    return column


def _without_gaps(column: Any) -> Any:
    return pc.if_else(pc.equal(column, ""), None, column)


def _of_times_in_text(column: Any) -> Numbers:
    try:
        return _of_floats(pc.cast(_without_gaps(column), pa.float64()))
    except pa.ArrowInvalid:
        return _of_text(column, pa.timestamp("us"), _moment)


def _of_stamps(column: Any) -> Numbers:
    micro = pc.cast(column, pa.timestamp("us", column.type.tz if _has_zone(column) else None))
    found = _of_floats(pc.cast(pc.cast(micro, pa.int64()), pa.float64()))
    return Numbers(found.values / 1e6, found.missing)


def _has_zone(column: Any) -> bool:
    return pa.types.is_timestamp(column.type) and column.type.tz is not None


def _one_by_one(values: list[Any], read: Callable[[Any], float]) -> Numbers:
    missing = [value is None or value == "" for value in values]
    found = [np.nan if gap else read(value) for value, gap in zip(values, missing, strict=True)]
    return Numbers(np.array(found, np.float64), np.array(missing, np.bool_))


def _number(value: Any) -> float:
    if isinstance(value, str):
        text = value.strip().lower()
        value = WORDS.get(text, text if "_" not in text else "nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _moment(value: Any) -> float:
    if isinstance(value, str):
        found = _number(value)
        return _stamp(value.strip()) if np.isnan(found) else found
    return _number(value)


def _stamp(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return np.nan
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
