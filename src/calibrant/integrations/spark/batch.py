"""A whole dataframe at once: the rounds of each key, in their order, through one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as ty

from calibrant.core.arrays import Mask
from calibrant.errors import InvalidInput
from calibrant.integrations.spark.columns import (
    KEY,
    MADE,
    MOMENT,
    NUMBER,
    check_column,
    check_free,
    moment,
    number,
)
from calibrant.integrations.spark.events import Fault, faults_column
from calibrant.integrations.spark.shard import spread, warm
from calibrant.recalibrate import Calibrant, Recalibrator, Table
from calibrant.recalibrate.keyed import Key, KeyedPending
from calibrant.recalibrate.secret import chosen_seed

OWN: Final = ("__key", "__raw", "__outcome", "__time", "__available")
"""Columns that travel to the workers beside those of the caller."""
MOST_KEYS: Final = 4096
"""From this many keys on, those that are over are forgotten."""


def recalibrate(
    df: DataFrame,
    *,
    key: str,
    order_by: str | Sequence[str],
    raw: str,
    outcome: str,
    available: str | None = None,
    model: Recalibrator | None = None,
    seed: int | None = None,
) -> DataFrame:
    """Return a dataframe with the calibrated forecasts of its rows, each key a stream of its own.

    Rows come back with ``forecast`` (the draw, which carries the guarantee), ``mean`` (sharper,
    without one), ``ticket`` (the round's number in the stream of its key) and ``fault``.  Forecasts
    are, to the bit, those of :meth:`calibrant.Table.replay` with the same rows in order.

    Parameters
    ----------
    df
        The rounds.
    key
        Column of keys: strings or whole numbers.
    order_by
        One column or several that say in which order the rounds of a key came.  Spark leaves open
        in which order rows come that are equal there.
    raw, outcome
        Columns of raw forecasts, in [0, 1], and of outcomes, 0 and 1.
    available
        Column that says when each outcome became known, on the scale of ``order_by``, which must
        then be one column of numbers or moments.
    model
        The pattern of all keys, which has made no forecast; a :class:`calibrant.Calibrant` if
        None.
    seed
        What the draws depend on, with the keys; None takes secret entropy, once, on the driver.

    Notes
    -----
    A row that breaks a rule has a ``fault`` instead of a forecast: column, value and rule.  Such
    rows are as if they were not there.
    """
    pattern = Calibrant() if model is None else model
    Table(pattern, seed=seed)
    order = [order_by] if isinstance(order_by, str) else list(order_by)
    timed = available is not None or pattern.spec.rule.timed
    _check(df, key, order, raw, outcome, available, timed)
    given = {"__key": sql.col(key), "__raw": number(raw), "__outcome": number(outcome)}
    given["__time"] = moment(df, order[0]) if timed else sql.lit(None).cast("double")
    given["__available"] = sql.lit(None).cast("double")
    if available is not None:
        given["__available"] = moment(df, available)
    sorted_rows = df.withColumns(given).repartition(key).sortWithinPartitions(key, *order)
    made = ty.StructType([*df.schema.fields, *MADE])
    coins = chosen_seed() if seed is None else seed
    return sorted_rows.mapInArrow(player(pattern, coins, timed, available is not None), made)


def _check(
    df: DataFrame,
    key: str,
    order: list[str],
    raw: str,
    outcome: str,
    available: str | None,
    timed: bool,
) -> None:
    """Refuse a dataframe that cannot be played, at once."""
    schema = df.schema
    check_column(schema, key, KEY, "key")
    if not order or (timed and len(order) > 1):
        rule = "one column of times" if timed else "one column or several"
        raise InvalidInput(f"order_by must be {rule}, got {order!r}")
    for name in order:
        check_column(schema, name, MOMENT if timed else (ty.DataType,), "order_by")
    check_column(schema, raw, NUMBER, "raw")
    check_column(schema, outcome, NUMBER, "outcome")
    if available is not None:
        check_column(schema, available, MOMENT, "available")
    check_free(schema, [*(field.name for field in MADE), *OWN])


def player(
    pattern: Recalibrator, seed: int, timed: bool, late: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what plays a partition, batch by batch."""

    def play(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = Partition(pattern, seed, timed, late)
        for batch in batches:
            yield partition.played(batch)

    return play


class Partition:
    """The rows of a partition, sorted by key: a table that forgets keys which are done."""

    def __init__(self, pattern: Recalibrator, seed: int, timed: bool, late: bool) -> None:
        self.pattern, self.seed, self.timed, self.late = pattern, seed, timed, late
        self.table, self.carry = Table(pattern, seed=seed), KeyedPending()

    def played(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with its forecasts and faults."""
        columns = {name: batch.column(name) for name in OWN}
        found = faults_of(columns, self.timed)
        fine = np.ones(batch.num_rows, bool)
        fine[list(found)] = False
        forecasts = [spread(part, ~fine) for part in self._replayed(columns, fine)]
        kept = [name for name in batch.schema.names if name not in OWN]
        return pa.RecordBatch.from_arrays(
            [*(batch.column(name) for name in kept), *forecasts, faults_column(found, len(fine))],
            names=[*kept, *(field.name for field in MADE)],
        )

    def _replayed(self, columns: dict[str, pa.Array], fine: Mask) -> tuple[Any, Any, Any]:
        """Play the rows that can be played."""
        whole = bool(fine.all())
        given = (
            columns if whole else {name: c.filter(pa.array(fine)) for name, c in columns.items()}
        )
        keys, raw, told, time, known = (given[name] for name in OWN)
        named = keys.to_numpy() if pa.types.is_integer(keys.type) else keys.dictionary_encode()
        when: dict[str, Any] = {"time": time.to_numpy(False)} if self.timed else {}
        if self.late:
            when |= {"available": known.to_numpy(False), "carry": self.carry}
        warm(self.pattern, len(raw))
        run = self.table.replay(named, raw.to_numpy(), told.to_numpy(), **when)
        if fine.any():
            self._forget(keys[-1].as_py(), run.pending)
        return run.forecast, run.mean, run.ticket

    def _forget(self, last: Key, pending: KeyedPending) -> None:
        """Forget what is over: all but the last key, which may go on in the next batch."""
        self.carry = pending.chosen(np.array([key == last for key in pending.key], bool))
        if len(self.table) > MOST_KEYS:
            row, self.table = self.table.row(last), Table(self.pattern, seed=self.seed)
            self.table.put(last, row)


def faults_of(columns: dict[str, pa.Array], timed: bool) -> dict[int, Fault]:
    """Return what is wrong with rows, by their place in a batch: column, value, rule."""
    key, raw, told, time, known = (columns[name] for name in OWN)
    x, y, t = (column.to_numpy(False) for column in (raw, told, time))
    wrong = [
        ("available", known, timed & (known.to_numpy(False) < t), "not before the row's own time"),
        ("order_by", time, timed & ~np.isfinite(t), "a finite time"),
        ("outcome", told, (y != 0) & (y != 1), "0 or 1"),
        ("raw", raw, ~((x >= 0) & (x <= 1)), "a number in [0, 1]"),
        ("key", key, key.is_null().to_numpy(False), "a string or a whole number"),
    ]
    return {
        row: (name, repr(column[row].as_py()), rule)
        for name, column, bad, rule in wrong
        for row in np.flatnonzero(bad).tolist()
    }
