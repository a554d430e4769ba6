"""A few rows of an input, in whichever form it came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from calibrant.core.arrays import Mask
from calibrant.stream.columns import Columns
from calibrant.stream.failure import BadRow
from calibrant.stream.values import numbers
from calibrant.summary import kinds


class Piece(Protocol):
    """Rows of an input."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def column(self, name: str) -> Any:
        """Return a column as an Arrow array or as a list."""

    def take(self, wanted: Mask) -> Piece:
        """Return some of the rows."""

    def content(self, row: int) -> str:
        """Return a whole row as text."""

    def batch(self, typed: Columns | None) -> Any:
        """Return all columns as an Arrow batch.

        Columns of text stay text, but for the raw forecasts and outcomes of ``typed``.
        """


@dataclass(frozen=True)
class ArrowPiece:
    """Rows of a CSV, TSV or Parquet file; ``text`` if all columns are as they were written."""

    table: Any
    text: bool

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> Any:
        return self.table.column(name)

    def take(self, wanted: Mask) -> ArrowPiece:
        return ArrowPiece(self.table.filter(pa.array(wanted)), self.text)

    def content(self, row: int) -> str:
        return _json(self.table.slice(row, 1).to_pylist()[0])

    def batch(self, typed: Columns | None) -> Any:
        if typed is None or not self.text:
            return self.table
        return _with_numbers(self.table, typed)


@dataclass(frozen=True)
class FieldsPiece:
    """One row of a CSV or TSV file."""

    names: list[str]
    fields: list[str]

    def __len__(self) -> int:
        return 1

    def column(self, name: str) -> list[Any]:
        return [self.fields[self.names.index(name)]]

    def take(self, wanted: Mask) -> FieldsPiece:
        return self

    def content(self, row: int) -> str:
        return _json(dict(zip(self.names, self.fields, strict=True)))

    def batch(self, typed: Columns | None) -> Any:
        columns = [pa.array([field], pa.string()) for field in self.fields]
        return ArrowPiece(pa.record_batch(columns, names=self.names), text=True).batch(typed)


@dataclass(frozen=True)
class LinePiece:
    """Rows of a JSON Lines file, as they were written and as objects.

    ``names`` are the keys of the file's first line: the columns if a table is asked for.
    """

    lines: list[bytes]
    rows: list[dict[str, Any]]
    names: list[str]

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]

    def take(self, wanted: Mask) -> LinePiece:
        kept = np.flatnonzero(wanted).tolist()
        return LinePiece([self.lines[t] for t in kept], [self.rows[t] for t in kept], self.names)

    def content(self, row: int) -> str:
        return self.lines[row].decode(errors="replace")

    def batch(self, typed: Columns | None) -> Any:
        self._refuse_new_names()
        columns = [pa.array(map(_text, self.column(name)), pa.string()) for name in self.names]
        table = pa.record_batch(columns, names=self.names)
        return table if typed is None else _with_numbers(table, typed)

    def _refuse_new_names(self) -> None:
        for row in self.rows:
            if not row.keys() <= set(self.names):
                told = ", ".join(sorted(row.keys() - set(self.names)))
                raise BadRow(
                    f"every line must have the keys of the first one to become a table, got "
                    f"also {told}; write JSON Lines instead"
                )


def _with_numbers(table: Any, typed: Columns) -> Any:
    """Return the table with raw forecasts and outcomes as numbers."""
    for name, kind in kinds.wanted(typed).types(typed).items():
        found = numbers(table.column(name))
        column = pa.array(found.values, pa.float64(), mask=found.missing).cast(kind)
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
