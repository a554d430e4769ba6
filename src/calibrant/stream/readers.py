"""Inputs piece by piece: CSV, TSV and Parquet."""

from __future__ import annotations

import csv
import io
import lzma
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from calibrant.errors import CalibrantError
from calibrant.stream.dialect import Dialect
from calibrant.stream.failure import Unreadable, abandon, insist
from calibrant.stream.pieces import ArrowPiece, FieldsPiece, Piece, encoded, rows_of
from calibrant.stream.source import Source

BATCH_ROWS: Final = 1 << 16
BYTES_A_ROW: Final = 64
LEAST_BLOCK: Final = 1 << 16
LONG: Final = 200_000
"""Rows that pay for the compiler at once."""
ENOUGH_ROWS: Final = 1 << 15
"""Rows that a batch should have, so that it is played by compiled code."""
LOOKED: Final = 200
"""Rows that guesses are made from."""
ENOUGH_BYTES: Final = 1 << 25
"""Bytes that a batch may have if its rows are so wide that they are few."""
LONGEST_LINE: Final = 1 << 26
"""Bytes that a line may have: one without an end must not fill the memory."""
END: Final = b"\0end of the input\0"
"""A line that follows the input, and is one of its own unless the input ends inside quotes."""
UNQUOTED: Final = "row must end its quotes, got the end of the input"
BROKEN: Final = (
    OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, pa.ArrowException,
    UnicodeDecodeError, csv.Error,
)  # fmt: skip
"""What a damaged file makes the layers below raise."""


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
    def known(self) -> list[str]:
        """The names that columns may be asked for by."""
        return self.names

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

    def sample(self) -> dict[str, list[Any]]:
        """Return the first rows, as many as are at hand, by the names of their columns."""
        return {}

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
            # A signal in a callback of Arrow looks like a damaged file.
            insist()
            told = " ".join(str(error).split()) or type(error).__name__
            if "utf-8" in told.lower() or "utf8" in told.lower():
                told += "; another encoding? --encoding latin-1"
            told = f"broken after row {self._rows}: {told}"
            raise Unreadable(f"{self.source.name}: {told}") from error


class TextReader(Reader):
    """CSV or TSV: the first line names the columns; every value stays as it was written."""

    def _open(self) -> None:
        self._dialect = self.source.dialect
        self._failed: list[BaseException] = []
        self._ended = self._left = False
        self.names = header_of(self.source, self._dialect)
        self._schema = pa.schema([(name, pa.string()) for name in self.names])

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        if not self.source.stream.peek(1):
            return
        block = max(LEAST_BLOCK, BYTES_A_ROW * self._batch_rows)
        names, types = self.names, dict.fromkeys(self.names, pa.string())
        ended = _Ended(self.source.stream)
        reader = pv.open_csv(
            ended,
            pv.ReadOptions(use_threads=False, block_size=block, column_names=names),
            pv.ParseOptions(
                delimiter=self._dialect.sep,
                quote_char=self._dialect.quote,
                newlines_in_values=True,
                invalid_row_handler=self._note,
            ),
            pv.ConvertOptions(column_types=types, include_columns=wanted),
        )
        try:
            yield from self._batches(reader)
        except BaseException:
            self._leave(ended, reader)
            raise

    def _batches(self, reader: Any) -> Iterator[Piece]:
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

    def _leave(self, ended: _Ended, reader: Any) -> None:
        """Let the thread that reads ahead come to its end, unless it may wait for a pipe."""
        abandon(self.source.name)
        self._left = ended.left = True
        if self.size is None:
            return
        with suppress(*BROKEN):
            for _ in reader:
                pass

    def _last(self, batch: Any) -> Iterator[Piece]:
        """Yield the last batch; its last row is bad if the input ended inside quotes."""
        cut = 0 if self._ended else 1
        rows = len(batch) - cut
        yield ArrowPiece(batch.slice(0, rows), text=True)
        if cut:
            content = (
                ArrowPiece(batch, text=True).content(rows).partition(encoded(END.decode())[1:-1])
            )
            self._on_misfit(Misfit(self.number(0), UNQUOTED, content[0]))

    def _note(self, row: Any) -> str:
        """Take note of a row with too few or too many fields; nothing may be raised here."""
        if row.text == END.decode() or self._left:
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

    def sample(self) -> dict[str, list[Any]]:
        rows = [row for row in self._dialect.rows if len(row) == len(self.names)]
        return {name: [row[k] for row in rows] for k, name in enumerate(self.names)}


class LineReader(TextReader):
    """CSV or TSV, one row at a time: no line is read before the last row was taken."""

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        lines, sep = (line.decode() for line in self._lines()), self._dialect.sep
        reader = csv.reader(lines, delimiter=sep, quotechar=self._dialect.quote)
        for number, fields in enumerate(reader, 1):
            if self._ended:
                # Only inside quotes is a line asked for that is not there.
                self._on_misfit(Misfit(number, UNQUOTED, sep.join(fields)))
            elif len(fields) == len(self.names):
                yield FieldsPiece(self.names, fields)
            elif fields:
                self._misfit(number, len(self.names), len(fields), sep.join(fields))
                self._misfits.append(number)

    def _lines(self) -> Iterator[bytes]:
        yield from lines_of(self.source)
        self._ended = True


class _Ended:
    """An input with one line more, as Arrow reads it."""

    closed = left = False

    def __init__(self, stream: Any) -> None:
        self._stream, self._more = stream, b"\n" + END + b"\n"

    def read(self, size: int) -> bytes:
        if self.left:
            return b""
        content: bytes = self._stream.read(size)
        if not content:
            content, self._more = self._more, b""
        return content


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

    def sample(self) -> dict[str, list[Any]]:
        batches = self._file.iter_batches(LOOKED, use_threads=False)
        with self._unbroken():
            first = next(batches, None)
        rows = [] if first is None else rows_of(first)
        return {name: [row[name] for row in rows] for name in self.names}

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


def header_of(source: Source, dialect: Dialect) -> list[str]:
    """Read the names of the columns, and no further; without names, count the columns."""
    try:
        for _ in range(dialect.above):
            next(lines_of(source))
        if not dialect.header and dialect.rows:
            return [str(k) for k in range(1, len(dialect.rows[0]) + 1)]
        lines = (line.decode("utf-8-sig") for line in lines_of(source))
        names = next(csv.reader(lines, delimiter=dialect.sep, quotechar=dialect.quote), [])
    except BROKEN as error:
        if isinstance(error, CalibrantError):
            raise
        raise Unreadable(f"{source.name}: cannot be read: {error}") from error
    if not names:
        raise Unreadable(
            f"{source.name}: must begin with the names of its columns, got an empty file"
        )
    return told_apart([name.strip() for name in names] + [""] * dialect.spare)


def told_apart(names: list[str]) -> list[str]:
    """Return names of columns, each on one line; those there more than once are numbered.

    >>> told_apart(["score", "score", "won", "", "", "the\\nlabel"])
    ['score_1', 'score_2', 'won', '', '', 'the label']
    """
    names = [" ".join(map(str.strip, name.splitlines())) for name in names]
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        twice = name and names.count(name) > 1
        found.append(f"{name}_{seen[name]}" if twice else name)
    return found
