"""Events on their way to a shard and back: many rows in one, and one row an event again.

Spark hands the rows of a group to Python one by one, which costs more than playing them.  So the
events of a shard travel as record batches of Arrow, in one value for each partition and shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

AT_ONCE: Final = 200_000
"""Events of a partition that are sorted by shard together."""
FAULT: Final = pa.struct([(name, pa.string()) for name in ("column", "value", "rule")])
Batches = Iterator[pa.RecordBatch]
Fault = tuple[str, str, str]
"""Column, value, rule."""


def faults_column(found: dict[int, Fault], rows: int) -> pa.Array:
    """Return what is wrong with each row, as a column of structures."""
    if not found:
        return pa.nulls(rows, FAULT)
    names, listed = ("column", "value", "rule"), list[dict[str, str] | None]([None] * rows)
    for row, fault in found.items():
        listed[row] = dict(zip(names, fault, strict=True))
    return pa.array(listed, FAULT)


def event_schema(key: pa.DataType, id: pa.DataType) -> pa.Schema:
    """Return the columns of events, with keys and ids of these types."""
    return pa.schema(
        [
            ("seq", pa.int64()),
            ("kind", pa.string()),
            ("key", key),
            ("id", id),
            ("x", pa.float64()),
            ("time", pa.float64()),
            ("body", pa.binary()),
        ]
    )


def played_schema(events: pa.Schema) -> pa.Schema:
    """Return the columns of events that were played."""
    made = [pa.field("forecast", pa.float64()), pa.field("mean", pa.float64())]
    made += [pa.field("ticket", pa.int64()), pa.field("fault", FAULT)]
    return pa.schema([*events, *made])


def packer(schema: pa.Schema) -> Callable[[Batches], Batches]:
    """Return what makes one row of the events of a shard in a partition."""

    def pack(batches: Batches) -> Batches:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(part.num_rows for part in waiting) >= AT_ONCE:
                yield packed(waiting, schema)
                waiting = []
        if waiting:
            yield packed(waiting, schema)

    return pack


def packed(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return the events of some batches, a row for each shard."""
    whole = pa.Table.from_batches(batches).combine_chunks()
    shards = whole.column("shard").to_numpy()
    order = np.argsort(shards, kind="stable")
    events = whole.select(schema.names).take(pa.array(order)).cast(schema).combine_chunks()
    found, starts = np.unique(shards[order], return_index=True)
    sizes = np.diff(starts, append=len(order))
    parts = [
        written(events.slice(start, size), schema)
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    ]
    columns = [pa.array(found, pa.int32()), pa.array(parts, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["shard", "events"])


def written(table: pa.Table, schema: pa.Schema) -> bytes:
    """Return a table as the bytes of one record batch, without its schema."""
    parts = table.to_batches()
    batch = parts[0] if len(parts) == 1 else table.combine_chunks().to_batches()[0]
    return bytes(pa.RecordBatch.from_arrays(batch.columns, schema=schema).serialize().to_pybytes())


def read(parts: list[bytes], schema: pa.Schema) -> pa.Table:
    """Return the table whose record batches these are."""
    batches = [pa.ipc.read_record_batch(pa.py_buffer(part), schema) for part in parts]
    return pa.Table.from_batches(batches, schema).combine_chunks()


def unpacker(schema: pa.Schema) -> Callable[[Batches], Batches]:
    """Return what makes rows of events again."""

    def unpack(batches: Batches) -> Batches:
        for batch in batches:
            if batch.num_rows:
                parts = batch.column("events").to_pylist()
                yield from read(parts, schema).to_batches()

    return unpack
