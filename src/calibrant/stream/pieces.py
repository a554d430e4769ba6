"""Rows of an input, a few at a time and whatever their form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.core.arrays import Mask
from calibrant.stream.columns import Columns
from calibrant.stream.failure import BadRow
from calibrant.summary import kinds


class Piece(Protocol):
    """A few rows of an input; ``text`` if all columns are as they were written."""

    text: bool

    def __len__(self) -> int:
        """Return the number of rows."""

    def column(self, name: str) -> Any:
        """Return a column as an Arrow array or as a list."""

    def take(self, wanted: Mask) -> Piece:
        """Return some of the rows."""

    def content(self, row: int) -> str:
        """Return a whole row as text."""

    def whole(self) -> Any:
        """Return all columns as an Arrow batch, as they came."""

    def batch(self, typed: Columns | None) -> Any:
        """Return all columns as an Arrow batch.

        Columns of text stay text, but for the raw forecasts and outcomes of ``typed``.
        """
        table = self.whole()
        if typed is None or not self.text:
            return table
        types = kinds.wanted(typed).types(typed)
        for name, kind in ((n, k) for n, k in types.items() if n in table.schema.names):
            # Outcomes that are numbers are read as numbers.
            found = typed.wording.read(table.column(name), outcome=kind == "int8")
            column = pa.array(found.values, pa.float64(), mask=found.missing).cast(kind)
            table = table.set_column(table.schema.get_field_index(name), name, column)
        return table


@dataclass(frozen=True)
class ArrowPiece(Piece):
    """Rows of a CSV, TSV or Parquet file."""

    table: Any
    text: bool

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> Any:
        return self.table.column(name)

    def take(self, wanted: Mask) -> ArrowPiece:
        return ArrowPiece(self.table.filter(pa.array(wanted)), self.text)

    def content(self, row: int) -> str:
        return encoded(rows_of(self.table.slice(row, 1))[0])

    def whole(self) -> Any:
        return self.table


@dataclass(frozen=True)
class FieldsPiece(Piece):
    """One row of a CSV or TSV file."""

    names: list[str]
    fields: list[str]
    text: bool = True

    def __len__(self) -> int:
        return 1

    def column(self, name: str) -> list[Any]:
        return [self.fields[self.names.index(name)]]

    def take(self, wanted: Mask) -> FieldsPiece:
        return self

    def content(self, row: int) -> str:
        return encoded(dict(zip(self.names, self.fields, strict=True)))

    def whole(self) -> Any:
        columns = [pa.array([field], pa.string()) for field in self.fields]
        return pa.record_batch(columns, names=self.names)


@dataclass(frozen=True)
class LinePiece(Piece):
    """Rows of a JSON Lines file, as they were written and as objects.

    ``names`` are the keys of the file's first lines: the columns if a table is asked for.
    """

    lines: list[bytes]
    rows: list[dict[str, Any]]
    names: list[str]
    text: bool = True

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Any]:
        if "." not in name:
            return [row.get(name) for row in self.rows]
        return [reached(row, name) for row in self.rows]

    def take(self, wanted: Mask) -> LinePiece:
        kept = np.flatnonzero(wanted).tolist()
        return LinePiece([self.lines[t] for t in kept], [self.rows[t] for t in kept], self.names)

    def content(self, row: int) -> str:
        return self.lines[row].decode(errors="replace")

    def whole(self) -> Any:
        for row in self.rows:
            if new := row.keys() - set(self.names):
                told = f"to become a table, got also {', '.join(sorted(new))}"
                told = f"every line must have the keys of the first ones {told}"
                raise BadRow(f"{told}; write JSON Lines instead")
        columns = [pa.array(map(_text, self.column(name)), pa.string()) for name in self.names]
        return pa.record_batch(columns, names=self.names)


def nested(row: Mapping[str, Any], above: str = "") -> list[str]:
    """Return the names, with points in between, of what lies in objects inside an object.

    >>> nested({"id": 7, "model": {"name": "a", "said": {"prob": 0.5}}})
    ['model.name', 'model.said.prob']
    """
    found: list[str] = []
    for key, value in row.items():
        if isinstance(value, dict):
            found += nested(value, f"{above}{key}.")
        elif above:
            found.append(f"{above}{key}")
    return found


def reached(row: Mapping[str, Any], name: str) -> Any:
    """Return the value of a name, if need be by the points in it; None if there is none.

    >>> reached({"model": {"prob": 0.5}}, "model.prob"), reached({"a.b": 1}, "a.b")
    (0.5, 1)
    """
    if name in row:
        return row[name]
    found: Any = row
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else encoded(value)


def rows_of(table: Any) -> list[dict[str, Any]]:
    """Return the rows of an Arrow batch; dates that Python does not have are text."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except (ValueError, OverflowError):
        columns = [as_text(c) if pa.types.is_temporal(c.type) else c for c in table.columns]
        rows = pa.record_batch(columns, names=table.schema.names).to_pylist()
    return rows


def as_text(column: Any) -> Any:
    """Return a column as text, whatever it holds."""
    if pa.types.is_string(column.type):
        return column
    try:
        return pc.cast(column, pa.string())
    except pa.ArrowException:
        values = column.to_pylist()
        told = [None if v is None else msgspec.json.encode(v).decode() for v in values]
        return pa.array(told, pa.string())


def encoded(value: Any) -> str:
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()
