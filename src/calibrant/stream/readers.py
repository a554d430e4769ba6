"""Inputs piece by piece: CSV and TSV, JSON Lines, Parquet."""

from __future__ import annotations

import csv
import io
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from calibrant.core.arrays import Mask
from calibrant.errors import CalibrantError
from calibrant.stream.columns import Columns, numbers
from calibrant.stream.failure import BadRow, Unreadable
from calibrant.stream.source import Source
from calibrant.summary import kinds

BATCH_ROWS: Final = 1 << 16
BYTES_A_ROW: Final = 64
LEAST_BLOCK: Final = 1 << 16
LONG: Final = 200_000
"""Rows that pay for the compiler at once."""
ENOUGH_ROWS: Final = 1 << 15
"""Rows that a batch should have, so that it is played by compiled code."""
ENOUGH_BYTES: Final = 1 << 25
"""Bytes that a batch may have if its rows are so wide that they are few."""
BROKEN: Final = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError)
"""What a damaged file makes the layers below raise."""


Line: TypeAlias = tuple[int, bytes, dict[str, Any]]
"""Number, text and content of a line."""


class Misfit(NamedTuple):
    """A row that could not even be read: its number, what is wrong, and its text."""

    number: int
    wrong: str
    text: str


class Reader(ABC):
    """An input, read from its start to its end.

    ``on_misfit`` is called for each row that cannot be read; it may raise.  Without it the
    first such row ends the reading.
    """

    names: list[str]

    def __init__(self, source: Source, on_misfit: Callable[[Misfit], None]) -> None:
        self.source = source
        self._on_misfit = on_misfit
        self._rows = 0

    @property
    def size(self) -> int | None:
        """How much there is to read, in units of :attr:`done`."""
        return self.source.size

    @property
    def done(self) -> int:
        """How much has been read."""
        return self.source.done

    @property
    def long(self) -> bool:
        """Whether there are surely many rows."""
        return (self.source.size or 0) > LONG * BYTES_A_ROW

    def pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        """Yield all rows in order; only the ``wanted`` columns are needed, if given."""
        try:
            for piece in self._pieces(wanted):
                yield piece
                self._rows += len(piece)
        except BROKEN as error:
            if isinstance(error, CalibrantError):
                raise
            raise Unreadable(f"{self.source.name}: {self._told(error)}") from error

    @abstractmethod
    def number(self, row: int) -> int:
        """Return the number in the file, from 1, of a row of the present piece."""

    @abstractmethod
    def empty(self) -> Piece:
        """Return a piece without rows: what kinds of columns there are."""

    @abstractmethod
    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]: ...

    def _told(self, error: BaseException) -> str:
        told = " ".join(str(error).split()) or type(error).__name__
        return f"broken after row {self._rows}: {told}"


class TextReader(Reader):
    """CSV or TSV: the first line names the columns; every value stays as it was written."""

    def __init__(
        self, source: Source, on_misfit: Callable[[Misfit], None], batch_rows: int
    ) -> None:
        super().__init__(source, on_misfit)
        self._delimiter = "\t" if source.format == "tsv" else ","
        self._batch_rows = batch_rows
        self._block = max(LEAST_BLOCK, BYTES_A_ROW * batch_rows)
        self._misfits: list[int] = []
        self._failed: list[BaseException] = []
        self.names = header_of(source, self._delimiter)

    def number(self, row: int) -> int:
        number = self._rows + row + 1
        for misfit in self._misfits:
            number += misfit <= number
        return number

    def empty(self) -> Piece:
        columns = [pa.array([], pa.string()) for _ in self.names]
        return ArrowPiece(pa.record_batch(columns, names=self.names), text=True)

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        if not self.source.stream.peek(1):
            return
        reader = pyarrow.csv.open_csv(
            self.source.stream,
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, block_size=self._block, column_names=self.names
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=self._note
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string()), include_columns=wanted
            ),
        )
        for batch in gathered(reader, self._batch_rows):
            if self._failed:
                break
            yield ArrowPiece(batch, text=True)
        if self._failed:
            raise self._failed[0]

    def _note(self, row: Any) -> str:
        """Take note of a row with too few or too many fields; nothing may be raised here."""
        fields = f"{row.expected_columns} fields, got {row.actual_columns}"
        try:
            self._on_misfit(Misfit(row.number, f"row must be {fields}", row.text))
        except BaseException as error:
            self._failed.append(error)
        self._misfits.append(row.number)
        return "skip"


class JsonLinesReader(Reader):
    """JSON Lines: one object a line; empty lines are passed over."""

    def __init__(
        self, source: Source, on_misfit: Callable[[Misfit], None], batch_rows: int
    ) -> None:
        super().__init__(source, on_misfit)
        self._batch_rows = batch_rows
        self._numbers: list[int] = []
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode
        self._lines = self._objects()
        self._ahead = self._first()
        self.names = list(self._ahead[2])

    def number(self, row: int) -> int:
        return self._numbers[row]

    def empty(self) -> Piece:
        return LinePiece([], [], self.names)

    def _first(self) -> Line:
        try:
            found = next(self._lines, None)
        except BROKEN as error:
            if isinstance(error, CalibrantError):
                raise
            raise Unreadable(f"{self.source.name}: {self._told(error)}") from error
        if found is None:
            raise Unreadable(f"{self.source.name}: must have a line at least, got nothing")
        return found

    def _objects(self) -> Iterator[Line]:
        for number, line in enumerate(self.source.stream, 1):
            text = line.strip()
            if text:
                try:
                    yield number, text, self._decode(text)
                except msgspec.MsgspecError:
                    shown = text.decode(errors="replace")
                    told = f"line must be a JSON object, got {shown[:60]!r}"
                    self._on_misfit(Misfit(number, told, shown))

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        rows: list[Line] = []
        for row in chain([self._ahead], self._lines):
            rows.append(row)
            if len(rows) == self._batch_rows:
                yield self._piece(rows)
                rows = []
        if rows:
            yield self._piece(rows)

    def _piece(self, rows: list[Line]) -> LinePiece:
        self._numbers = [number for number, _, _ in rows]
        return LinePiece([line for _, line, _ in rows], [row for _, _, row in rows], self.names)


class LineReader(TextReader):
    """CSV or TSV, one row at a time: no line is read before the last row was taken."""

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        lines = (line.decode() for line in self.source.stream)
        for number, fields in enumerate(csv.reader(lines, delimiter=self._delimiter), 1):
            if len(fields) == len(self.names):
                yield FieldsPiece(self.names, fields)
            elif fields:
                told = f"row must be {len(self.names)} fields, got {len(fields)}"
                self._on_misfit(Misfit(number, told, self._delimiter.join(fields)))
                self._misfits.append(number)


class ParquetReader(Reader):
    """Parquet, a batch at a time."""

    def __init__(
        self, source: Source, on_misfit: Callable[[Misfit], None], batch_rows: int
    ) -> None:
        super().__init__(source, on_misfit)
        self._batch_rows = batch_rows
        try:
            # Without these two the memory grows with the size of a row group.
            self._file = pq.ParquetFile(_native(source), pre_buffer=False, buffer_size=1 << 20)
        except (OSError, pa.ArrowException) as error:
            told = " ".join(str(error).split())
            raise Unreadable(f"{source.name}: cannot be read: {told}") from error
        self.names = self._file.schema_arrow.names

    @property
    def size(self) -> int | None:
        return int(self._file.metadata.num_rows)

    @property
    def done(self) -> int:
        return self._rows

    @property
    def long(self) -> bool:
        return int(self._file.metadata.num_rows) > LONG

    def number(self, row: int) -> int:
        return self._rows + row + 1

    def empty(self) -> Piece:
        schema = self._file.schema_arrow
        columns = [pa.array([], field.type) for field in schema]
        return ArrowPiece(pa.record_batch(columns, schema=schema), text=False)

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        batches = self._file.iter_batches(self._batch_rows, columns=wanted, use_threads=False)
        for batch in gathered(batches, self._batch_rows):
            yield ArrowPiece(batch, text=False)


def _native(source: Source) -> Any:
    """Return a plain file as Arrow opens it, which saves a copy; anything else as it is."""
    return pa.OSFile(source.name) if isinstance(source.below, io.BufferedReader) else source.below


def gathered(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Join short batches until they have ``rows`` rows, or enough of them, or many bytes.

    Wide rows of text and small row groups come in short batches, and the compiler is not
    started for those.

    Examples
    --------
    >>> [len(batch) for batch in gathered([pa.record_batch({"p": [0.5] * 3})] * 5, 6)]
    [6, 6, 3]
    """
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        enough = sum(map(len, waiting)) >= min(rows, ENOUGH_ROWS)
        if enough or sum(each.nbytes for each in waiting) >= ENOUGH_BYTES:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def header_of(source: Source, delimiter: str) -> list[str]:
    """Read the names of the columns, and no further."""
    try:
        lines = (line.decode("utf-8-sig") for line in source.stream)
        names = next(csv.reader(lines, delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error, *BROKEN) as error:
        raise Unreadable(f"{source.name}: cannot be read: {error}") from error
    if not names:
        raise Unreadable(f"{source.name}: must begin with the names of its columns, got nothing")
    return names


def open_reader(
    source: Source,
    on_misfit: Callable[[Misfit], None],
    *,
    batch_rows: int = BATCH_ROWS,
    one_by_one: bool = False,
) -> Reader:
    """Return the reader for an open input; ``one_by_one`` asks for each row as it arrives."""
    if source.format == "jsonl":
        return JsonLinesReader(source, on_misfit, 1 if one_by_one else batch_rows)
    if source.format == "parquet":
        if one_by_one:
            raise Unreadable(f"{source.name}: Parquet has no lines to answer one by one")
        return ParquetReader(source, on_misfit, batch_rows)
    kind = LineReader if one_by_one else TextReader
    return kind(source, on_misfit, batch_rows)


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
