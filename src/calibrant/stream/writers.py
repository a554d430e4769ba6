"""Outputs piece by piece, the input's columns and what the recalibrator made of them."""

from __future__ import annotations

import errno
import gzip
import lzma
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from calibrant.stream.columns import Columns
from calibrant.stream.failure import BadRow, Unwritable, naming
from calibrant.stream.pieces import FieldsPiece, LinePiece, Piece, as_text, rows_of
from calibrant.stream.source import compression_of, format_of

GROUP_ROWS: Final = 1 << 19
"""Rows in a row group."""
SPECIAL: Final = '"\r\n'


class Writer(ABC):
    """An output that takes pieces in order."""

    def __init__(self, stream: Any, columns: Columns, names: Sequence[str]) -> None:
        self.stream, self.columns, self.names = stream, columns, names

    @abstractmethod
    def write(self, piece: Piece, answers: Any) -> None:
        """Write the rows of a piece with their answers."""

    def close(self) -> None:
        """Write what is still to be written; most writers keep nothing back."""
        self.stream.flush()


class TextWriter(Writer):
    """CSV; a value is quoted where it has to be."""

    delimiter: ClassVar[str] = ","
    _begun = False

    def write(self, piece: Piece, answers: Any) -> None:
        if isinstance(piece, FieldsPiece):
            self._write_line(piece.fields, answers)
            return
        table = piece.batch(None)
        if not self._begun:
            self._begun = True
            self._write_fields([*table.schema.names, *self.names])
        fields = [self._quoted(as_text(column)) for column in table.columns]
        fields += [self._told(answer) for answer in answers.columns]
        # Each line ends within its last field, so that the joined values lie end to end.
        fields[-1] = pc.binary_join_element_wise(fields[-1], "\n", "")
        options = {"null_handling": "replace", "null_replacement": ""}
        lines = pc.binary_join_element_wise(*fields, self.delimiter, **options)
        for part in lines.chunks if isinstance(lines, pa.ChunkedArray) else [lines]:
            self.stream.write(_bytes_of(part))

    def _told(self, answer: Any) -> Any:
        column = arrow(answer)
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            return pc.cast(column, pa.string())
        return self._quoted(as_text(column))

    def _write_line(self, fields: list[str], answers: Any) -> None:
        # Arrow writes the doubles, so that a line is the same as in a batch.
        values = [answer[0] for answer in answers.columns]
        doubles = [value for value in values if isinstance(value, float)]
        reals = iter(pc.cast(pa.array(doubles), pa.string()).to_pylist())
        told = [next(reals) if isinstance(value, float) else _plain(value) for value in values]
        self._write_fields([*fields, *told])

    def _write_fields(self, fields: list[str]) -> None:
        line = self.delimiter.join(quoted(field, self.delimiter) for field in fields)
        self.stream.write(f"{line}\n".encode())

    def _quoted(self, column: Any) -> Any:
        content = _bytes_of(column)
        if not any(mark.encode() in content for mark in (self.delimiter, *SPECIAL)):
            return column
        needed = pc.match_substring_regex(column, f'[{self.delimiter}"\r\n]')
        doubled = pc.replace_substring(column, '"', '""')
        return pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), column)


class TabWriter(TextWriter):
    """TSV."""

    delimiter: ClassVar[str] = "\t"


class JsonLinesWriter(Writer):
    """JSON Lines; lines that came as JSON are kept to the letter."""

    def write(self, piece: Piece, answers: Any) -> None:
        if isinstance(piece, LinePiece):
            columns = zip(*map(_values, answers.columns), strict=True)
            keys = [msgspec.json.encode(name).decode() for name in self.names]
            form = ",".join(f"{key}:{{!r}}" for key in keys).format
            pairs = zip(piece.lines, columns, strict=True)
            lines = [b"%b,%b}\n" % (line[:-1].rstrip(), form(*row).encode()) for line, row in pairs]
        else:
            columns = zip(*(answer.tolist() for answer in answers.columns), strict=True)
            rows = zip(rows_of(piece.batch(self.columns)), columns, strict=True)
            new = [row | dict(zip(self.names, added, strict=True)) for row, added in rows]
            lines = [msgspec.json.encode(row) + b"\n" for row in new]
        self.stream.write(b"".join(lines))


class JsonListWriter(JsonLinesWriter):
    """One list of JSON objects."""

    def __init__(self, stream: Any, columns: Columns, names: Sequence[str]) -> None:
        super().__init__(_Commas(stream), columns, names)

    def close(self) -> None:
        self.stream.end()
        super().close()


class _Commas:
    """A stream of lines that become the elements of a list."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._before = stream, b"[\n"

    def write(self, lines: bytes) -> None:
        if lines:
            self._stream.write(self._before + lines[:-1].replace(b"\n", b",\n"))
            self._before = b",\n"

    def end(self) -> None:
        self._stream.write((b"[" if self._before == b"[\n" else b"\n") + b"]\n")

    def flush(self) -> None:
        self._stream.flush()


class ParquetWriter(Writer):
    """Parquet, in row groups of half a million rows."""

    def __init__(self, stream: Any, columns: Columns, names: Sequence[str]) -> None:
        super().__init__(stream, columns, names)
        self._waiting: list[Any] = []
        self._rows = 0
        self._file: Any = None

    def write(self, piece: Piece, answers: Any) -> None:
        table = piece.batch(self.columns)
        added = [arrow(answer) for answer in answers.columns]
        names = [*table.schema.names, *self.names]
        batch = pa.record_batch([*table.columns, *added], names=names)
        self._waiting.append(self._fitted(batch))
        self._rows += len(batch)
        if self._rows >= GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        if self._waiting:
            self._flush()
        self._file.close()
        super().close()

    def _fitted(self, batch: Any) -> Any:
        if self._file is None and not self._waiting:
            return batch
        schema = self._waiting[0].schema if self._waiting else self._file.schema
        try:
            return batch.cast(schema)
        except pa.ArrowException as error:
            raise BadRow(f"every input must have columns of the same kinds: {error}") from error

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._waiting)
        if self._file is None:
            self._file = pq.ParquetWriter(self.stream, table.schema, **settings(table.schema))
        self._file.write_table(table, row_group_size=GROUP_ROWS)
        self._waiting, self._rows = [], 0


def settings(schema: Any) -> dict[str, Any]:
    """Return how a Parquet file of that schema is written.

    A dictionary of doubles costs four times what it saves, so only text gets one.
    """
    text = [field.name for field in schema if pa.types.is_string(field.type)]
    return {"use_dictionary": text or False, "compression": "snappy"}


def arrow(answer: NDArray[Any]) -> Any:
    """Return answers as an Arrow array; rows of a table become lists."""
    if answer.ndim == 2:
        return pa.array(list(answer), pa.list_(pa.float64()))
    return pa.array(answer.tolist(), pa.string()) if answer.dtype.kind == "U" else pa.array(answer)


def _plain(value: Any) -> str:
    """Return one answer that is no double as text: a whole number, a name or a list."""
    return msgspec.json.encode(value.tolist()).decode() if np.ndim(value) else str(value)


def _values(answer: NDArray[Any]) -> list[Any]:
    """Return answers as values whose ``repr`` is JSON."""
    if answer.dtype.kind == "f" and not np.isfinite(answer).all():
        # JSON has no word for infinity.
        return [v if np.isfinite(v) else _Json("null") for v in answer.tolist()]
    if answer.dtype.kind != "U":
        return answer.tolist()  # type: ignore[no-any-return]
    return [_Json(msgspec.json.encode(text).decode()) for text in answer.tolist()]


class _Json(str):
    """A text that is JSON already."""

    def __repr__(self) -> str:
        return str(self)


def quoted(text: str, delimiter: str) -> str:
    """Return a value as CSV writes it.

    >>> quoted("plain", ","), quoted('a "b", c', ",")
    ('plain', '"a ""b"", c"')
    """
    if any(mark in text for mark in (delimiter, *SPECIAL)):
        return '"' + text.replace('"', '""') + '"'
    return text


def _bytes_of(column: Any) -> bytes:
    """Return the values of a text column end to end."""
    _, offsets, data = column.buffers()
    if data is None or len(column) == 0:
        return b""
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return bytes(memoryview(data)[ends[0] : ends[-1]])


def open_writer(stream: Any, format: str, columns: Columns, names: Sequence[str]) -> Writer:
    """Return the writer of a format onto a stream of bytes."""
    known: dict[str, type[Writer]] = {
        "parquet": ParquetWriter,
        "jsonl": JsonLinesWriter,
        "json": JsonListWriter,
        "tsv": TabWriter,
    }
    return known.get(format, TextWriter)(stream, columns, names)


def check_output(name: str) -> None:
    """Refuse a file of rows that is read here but not written."""
    if compression_of(name) == "zip" or format_of(name) == "xlsx":
        told = "zip and Excel files are read, not written; write .csv, .jsonl or .parquet"
        raise Unwritable(f"{name}: cannot be written: {told}")


@contextmanager
def open_output(place: Path | None, name: str) -> Iterator[Any]:
    """Open the file ``place``, or standard output; ``name`` tells the compression."""
    with naming("standard output" if place is None else name):
        if place is None:
            if sys.stdout is None:
                raise OSError(errno.EBADF, "Bad file descriptor")
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        with open(place, "wb", buffering=1 << 20) as below, _compressed(below, name) as stream:
            yield stream


def _compressed(below: Any, name: str) -> AbstractContextManager[Any]:
    kind = compression_of(name)
    if kind == "gzip":
        return gzip.GzipFile(filename="", mode="wb", fileobj=below, mtime=0)
    if kind == "xz":
        return lzma.LZMAFile(below, "wb")
    return pa.CompressedOutputStream(below, kind) if kind else nullcontext(below)
