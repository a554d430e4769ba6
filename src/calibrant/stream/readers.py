"""Inputs piece by piece: CSV and TSV, JSON Lines, Parquet; and the pieces, whatever their form."""

from __future__ import annotations

import csv
import io
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
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
LONGEST_LINE: Final = 1 << 26
"""Bytes that a line may have: one without an end must not fill the memory."""
END: Final = b"\0end of the input\0"
"""A line that follows the input, and is one of its own unless the input ends inside quotes."""
UNQUOTED: Final = "row must end its quotes, got the end of the input"
BROKEN: Final = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError, csv.Error)
"""What a damaged file makes the layers below raise."""


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
        for name, kind in kinds.wanted(typed).types(typed).items():
            found = numbers(table.column(name))
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
        return _json(rows_of(self.table.slice(row, 1))[0])

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
        return _json(dict(zip(self.names, self.fields, strict=True)))

    def whole(self) -> Any:
        columns = [pa.array([field], pa.string()) for field in self.fields]
        return pa.record_batch(columns, names=self.names)


@dataclass(frozen=True)
class LinePiece(Piece):
    """Rows of a JSON Lines file, as they were written and as objects.

    ``names`` are the keys of the file's first line: the columns if a table is asked for.
    """

    lines: list[bytes]
    rows: list[dict[str, Any]]
    names: list[str]
    text: bool = True

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]

    def take(self, wanted: Mask) -> LinePiece:
        kept = np.flatnonzero(wanted).tolist()
        return LinePiece([self.lines[t] for t in kept], [self.rows[t] for t in kept], self.names)

    def content(self, row: int) -> str:
        return self.lines[row].decode(errors="replace")

    def whole(self) -> Any:
        for row in self.rows:
            if new := row.keys() - set(self.names):
                told = f"to become a table, got also {', '.join(sorted(new))}"
                told = f"every line must have the keys of the first one {told}"
                raise BadRow(f"{told}; write JSON Lines instead")
        columns = [pa.array(map(_text, self.column(name)), pa.string()) for name in self.names]
        return pa.record_batch(columns, names=self.names)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _json(value)


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


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class Misfit(NamedTuple):
    """A row that could not even be read: its number, what is wrong, and its text."""

    number: int
    wrong: str
    text: str


OnMisfit: TypeAlias = Callable[[Misfit], None]


class Reader(ABC):
    """An input, read from its start to its end.

    ``on_misfit`` is called for each row that cannot be read; it may raise.  ``size`` is how much
    there is to read, in units of :attr:`done`.
    """

    names: list[str]
    unit: ClassVar[int] = BYTES_A_ROW
    """How much of the size a row has, at least."""
    text: ClassVar[bool] = True
    _schema: Any

    def __init__(self, source: Source, on_misfit: OnMisfit, batch_rows: int = BATCH_ROWS) -> None:
        self.source, self.size = source, source.size
        self._on_misfit, self._batch_rows = on_misfit, batch_rows
        self._rows, self._misfits = 0, list[int]()
        self._open()

    @property
    def done(self) -> int:
        """How much has been read."""
        return self.source.done

    @property
    def long(self) -> bool:
        """Whether there are surely many rows."""
        return (self.size or 0) > LONG * self.unit

    def pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        """Yield all rows in order; only the ``wanted`` columns are needed, if given."""
        with self._unbroken():
            for piece in self._pieces(wanted):
                yield piece
                self._rows += len(piece)

    def number(self, row: int) -> int:
        """Return the number in the file, from 1, of a row of the present piece."""
        number = self._rows + row + 1
        for misfit in self._misfits:
            number += misfit <= number
        return number

    def empty(self) -> Piece:
        """Return a piece without rows: what kinds of columns there are."""
        return ArrowPiece(pa.RecordBatch.from_pylist([], schema=self._schema), self.text)

    @abstractmethod
    def _open(self) -> None:
        """Find out the names of the columns."""

    @abstractmethod
    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]: ...

    @contextmanager
    def _unbroken(self) -> Iterator[None]:
        """Turn what a damaged file raises into one line about it."""
        try:
            yield
        except BROKEN as error:
            if isinstance(error, CalibrantError):
                raise
            told = " ".join(str(error).split()) or type(error).__name__
            told = f"broken after row {self._rows}: {told}"
            raise Unreadable(f"{self.source.name}: {told}") from error


class TextReader(Reader):
    """CSV or TSV: the first line names the columns; every value stays as it was written."""

    def _open(self) -> None:
        self._delimiter = "\t" if self.source.format == "tsv" else ","
        self._failed: list[BaseException] = []
        self._ended = False
        self.names = header_of(self.source, self._delimiter)
        self._schema = pa.schema([(name, pa.string()) for name in self.names])

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        if not self.source.stream.peek(1):
            return
        block = max(LEAST_BLOCK, BYTES_A_ROW * self._batch_rows)
        names, types = self.names, dict.fromkeys(self.names, pa.string())
        reader = pv.open_csv(
            _Ended(self.source.stream),
            pv.ReadOptions(use_threads=False, block_size=block, column_names=names),
            pv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=self._note
            ),
            pv.ConvertOptions(column_types=types, include_columns=wanted),
        )
        waiting: Any = None
        for batch in gathered(reader, self._batch_rows):
            if self._failed:
                break
            if waiting is not None:
                yield ArrowPiece(waiting, text=True)
            waiting = batch
        if self._failed:
            raise self._failed[0]
        if waiting is not None:
            yield from self._last(waiting)

    def _last(self, batch: Any) -> Iterator[Piece]:
        """Yield the last batch; its last row is bad if the input ended inside quotes."""
        cut = 0 if self._ended else 1
        rows = len(batch) - cut
        yield ArrowPiece(batch.slice(0, rows), text=True)
        if cut:
            content = (
                ArrowPiece(batch, text=True).content(rows).partition(_json(END.decode())[1:-1])
            )
            self._on_misfit(Misfit(self.number(0), UNQUOTED, content[0]))

    def _note(self, row: Any) -> str:
        """Take note of a row with too few or too many fields; nothing may be raised here."""
        if row.text == END.decode():
            self._ended = True
            return "skip"
        try:
            self._misfit(row.number, row.expected_columns, row.actual_columns, row.text)
        except BaseException as error:
            self._failed.append(error)
        self._misfits.append(row.number)
        return "skip"

    def _misfit(self, number: int, expected: int, found: int, text: str) -> None:
        text, end, _ = text.partition(END.decode())
        self._ended = self._ended or bool(end)
        told = UNQUOTED if end else f"row must be {expected} fields, got {found}"
        self._on_misfit(Misfit(number, told, text))


class LineReader(TextReader):
    """CSV or TSV, one row at a time: no line is read before the last row was taken."""

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        lines = (line.decode() for line in self._lines())
        for number, fields in enumerate(csv.reader(lines, delimiter=self._delimiter), 1):
            if self._ended:
                # Only inside quotes is a line asked for that is not there.
                self._on_misfit(Misfit(number, UNQUOTED, self._delimiter.join(fields)))
            elif len(fields) == len(self.names):
                yield FieldsPiece(self.names, fields)
            elif fields:
                self._misfit(number, len(self.names), len(fields), self._delimiter.join(fields))
                self._misfits.append(number)

    def _lines(self) -> Iterator[bytes]:
        yield from lines_of(self.source)
        self._ended = True


class _Ended:
    """An input with one line more, as Arrow reads it."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream, self._more = stream, b"\n" + END + b"\n"

    def read(self, size: int) -> bytes:
        content: bytes = self._stream.read(size)
        if not content:
            content, self._more = self._more, b""
        return content


class JsonLinesReader(Reader):
    """JSON Lines: one object a line; empty lines are passed over."""

    def _open(self) -> None:
        self._numbers: list[int] = []
        self._lines = self._objects()
        with self._unbroken():
            first = next(self._lines, None)
        if first is None:
            raise Unreadable(f"{self.source.name}: must have a line at least, got nothing")
        self._lines, self.names = chain([first], self._lines), list(first[2])

    def number(self, row: int) -> int:
        return self._numbers[row]

    def empty(self) -> Piece:
        return LinePiece([], [], self.names)

    def _objects(self) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        """Yield number, text and content of each line."""
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        for number, line in enumerate(lines_of(self.source), 1):
            if text := line.strip():
                try:
                    yield number, text, decode(text)
                except (msgspec.MsgspecError, RecursionError):
                    shown = text.decode(errors="replace")
                    told = f"line must be a JSON object, got {shown[:60]!r}"
                    self._on_misfit(Misfit(number, told, shown))

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        while found := list(islice(self._lines, self._batch_rows)):
            self._numbers = [number for number, _, _ in found]
            yield LinePiece([line for _, line, _ in found], [row for *_, row in found], self.names)


class ParquetReader(Reader):
    """Parquet, a batch at a time."""

    unit: ClassVar[int] = 1
    text: ClassVar[bool] = False

    def _open(self) -> None:
        below = self.source.below
        # A plain file as Arrow opens it saves a copy.
        native = pa.OSFile(self.source.name) if isinstance(below, io.BufferedReader) else below
        try:
            # Without these two the memory grows with the size of a row group.
            self._file = pq.ParquetFile(native, pre_buffer=False, buffer_size=1 << 20)
        except (OSError, pa.ArrowException) as error:
            told = " ".join(str(error).split())
            raise Unreadable(f"{self.source.name}: cannot be read: {told}") from error
        self.size, self._schema = int(self._file.metadata.num_rows), self._file.schema_arrow
        self.names = self._schema.names

    @property
    def done(self) -> int:
        return self._rows

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        batches = self._file.iter_batches(self._batch_rows, columns=wanted, use_threads=False)
        for batch in gathered(batches, self._batch_rows):
            yield ArrowPiece(batch, text=False)


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


def lines_of(source: Source) -> Iterator[bytes]:
    """Yield the lines of an input, each as it arrives; refuse one that does not end."""
    while line := source.stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            told = f"a line must be at most {LONGEST_LINE:,} bytes, got a longer one"
            raise Unreadable(f"{source.name}: {told}")
        yield line


def header_of(source: Source, delimiter: str) -> list[str]:
    """Read the names of the columns, and no further."""
    try:
        lines = (line.decode("utf-8-sig") for line in lines_of(source))
        names = next(csv.reader(lines, delimiter=delimiter), [])
    except BROKEN as error:
        if isinstance(error, CalibrantError):
            raise
        raise Unreadable(f"{source.name}: cannot be read: {error}") from error
    if not names:
        raise Unreadable(f"{source.name}: must begin with the names of its columns, got nothing")
    return names


def open_reader(
    source: Source, on_misfit: OnMisfit, *, batch_rows: int = BATCH_ROWS, one_by_one: bool = False
) -> Reader:
    """Return the reader for an open input; ``one_by_one`` asks for each row as it arrives."""
    if source.format == "parquet" and one_by_one:
        raise Unreadable(f"{source.name}: Parquet has no lines to answer one by one")
    known: dict[str, type[Reader]] = {"jsonl": JsonLinesReader, "parquet": ParquetReader}
    kind = known.get(source.format, LineReader if one_by_one else TextReader)
    return kind(source, on_misfit, 1 if one_by_one else batch_rows)
