"""Columns of Spark's dataframes: which must be there, and what comes out."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as ty

from calibrant.errors import InvalidInput, InvalidType

WHOLE: Final = (ty.ByteType, ty.ShortType, ty.IntegerType, ty.LongType)
NUMBER: Final = (*WHOLE, ty.FloatType, ty.DoubleType, ty.DecimalType, ty.BooleanType)
MOMENT: Final = (*NUMBER, ty.TimestampType, ty.DateType)
TEXT: Final = (ty.StringType,)
KEY: Final = (*WHOLE, *TEXT)
EVENTS: Final[dict[str, tuple[type[ty.DataType], ...]]] = {
    "seq": WHOLE,
    "kind": TEXT,
    "key": KEY,
    "id": KEY,
    "x": NUMBER,
}
"""Columns of a log, and what they may hold; ``time`` and ``body`` may be left out."""
FAULT: Final = ty.StructType(
    [ty.StructField(name, ty.StringType()) for name in ("column", "value", "rule")]
)
"""What is wrong with a row: null where nothing is."""
MADE: Final = [
    ty.StructField("forecast", ty.DoubleType()),
    ty.StructField("mean", ty.DoubleType()),
    ty.StructField("ticket", ty.LongType()),
    ty.StructField("fault", FAULT),
]


def check_column(
    schema: ty.StructType, name: str, kinds: tuple[type[ty.DataType], ...], what: str
) -> ty.DataType:
    """Return the type of a column; raise what says that there is none, or of another type."""
    if name not in schema.names:
        told = f"got columns {', '.join(schema.names)}"
        raise InvalidInput(f"{what} must be a column of the dataframe, {name!r} is missing: {told}")
    found = schema[name].dataType
    if not isinstance(found, kinds):
        listed = ", ".join(kind().simpleString() for kind in kinds)
        told = found.simpleString()
        raise InvalidType(f"{what} must be a column of {listed}, got {name!r} of {told}")
    return found


def check_free(schema: ty.StructType, names: list[str]) -> None:
    """Raise if a column that is to be added is there already."""
    taken = [name for name in names if name in schema.names]
    if taken:
        raise InvalidInput(f"columns must not be there already, got {', '.join(taken)}")


def number(name: str) -> Any:
    """Return a column as double; text and other things were refused before."""
    return sql.col(name).cast("double")


def moment(frame: DataFrame, name: str) -> Any:
    """Return a column of moments as seconds, exact to the microsecond, and of numbers as double."""
    found = frame.schema[name].dataType
    if isinstance(found, (ty.TimestampType, ty.DateType)):
        return sql.unix_micros(sql.col(name).cast("timestamp")).cast("double") / 1e6
    return number(name)


def forecasts(frame: DataFrame) -> DataFrame:
    """Return the rows that were played, without the column ``fault``."""
    return frame.where(sql.col("fault").isNull()).drop("fault")


def faults(frame: DataFrame) -> DataFrame:
    """Return the rows that break a rule, with ``column``, ``value`` and ``rule``."""
    bad = frame.where(sql.col("fault").isNotNull())
    return bad.select("*", "fault.*").drop("fault")
