"""Opening inputs: which format, how compressed, in which encoding, from where."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import hashlib
import io
import lzma
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from calibrant.errors import CalibrantError
from calibrant.stream.dialect import (
    SAMPLE,
    Asked,
    Dialect,
    Squeezed,
    Transcoded,
    Unwrapped,
    check_encoding,
    encoding_of,
    ends_in_returns,
    is_wrapped,
    sniff,
)
from calibrant.stream.failure import Unreadable, naming, reading

FORMATS: Final = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx")
SHORT: Final = {".tab": "tsv", ".ndjson": "jsonl", ".pq": "parquet", ".xlsm": "xlsx"}
SUFFIXES: Final = {f".{name}": name for name in FORMATS} | SHORT
COMPRESSED: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
}
TEXT: Final = ("csv", "tsv")
"""Formats with a separator."""
BINARY: Final = {"parquet": b"PAR1", "xlsx": b"PK\x03\x04"}
"""Formats that are read from their end, and how their files begin."""
WORKBOOK: Final = "xl/workbook.xml"
"""What is in every Excel file."""
OTHERS: Final = {
    b"\xd0\xcf\x11\xe0": "an Excel file of before 2007, or with a password; save it as .xlsx",
    b"sqlite format 3": "an SQLite database; export the table as CSV",
    b"\x89png": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"%pdf-": "a PDF file",
    b"<!doctype html": "an HTML page",
    b"<html": "an HTML page",
    b"<?xml": "XML",
}
"""How files begin that are no tables, in lower case."""
LISTS: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[[^\[\]{}\n]*\][ \t\r]*\n\s*\[")
"""How lines of JSON begin that are lists, not objects."""
BUFFER: Final = 1 << 20
BROKEN: Final = (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, RuntimeError, UnicodeError)
"""What a damaged file makes the layers below raise before a row of it is read."""


@dataclass
class Source:
    """An open input.

    Attributes
    ----------
    name
        As the user wrote it.
    format
        One of :data:`FORMATS`.
    stream
        Its bytes, with compression undone; text as UTF-8.
    below
        The bytes as they are stored.
    size
        How many of them there are, if that is known.
    encoding
        In which encoding text is stored.
    dialect
        How rows of text are written.
    asked, columns
        What the user says of it, and names of columns that are there.
    later
        Name of a column that may come after the first rows.
    notes
        What was guessed about it.
    """

    name: str
    format: str
    stream: Any
    below: Any
    size: int | None
    encoding: str = "utf-8"
    dialect: Dialect = field(default_factory=Dialect)
    asked: Asked = field(default_factory=Asked)
    columns: Sequence[str] = ()
    later: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def done(self) -> int:
        """How many stored bytes have been read."""
        return int(self.below.tell()) if self.size is not None else 0

    def close(self) -> None:
        """Close what was opened; standard input stays open."""
        if self.stream is not self.below:
            self.stream.close()
        _release(self.below)


def format_of(name: str) -> str | None:
    """Return the format that a file's name stands for, or None.

    >>> format_of("games.csv.gz"), format_of("games.parquet"), format_of("-")
    ('csv', 'parquet', None)
    """
    plain = Path(name).with_suffix("") if compression_of(name) else Path(name)
    return SUFFIXES.get(plain.suffix.lower())


def compression_of(name: str) -> str | None:
    """Return the compression that a file's name stands for, or None."""
    return COMPRESSED.get(Path(name).suffix.lower())


def digest_of(name: str) -> str | None:
    """Return the digest of a file's bytes; None for a pipe, and for what cannot be read."""
    if not os.path.isfile(name):
        return None
    with suppress(OSError), open(name, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


def open_source(
    name: str, format: str | None = None, asked: Asked | None = None, columns: Sequence[str] = ()
) -> Source:
    """Open an input by name, ``-`` being standard input.

    The first bytes tell how it is compressed and written; its name, or else the first bytes, tell
    the format unless ``format`` does.

    Parameters
    ----------
    name, format
        What to open, and its format if the user says so.
    asked
        What the user says of encoding, separator, decimals and header.
    columns
        Names of columns that are surely there.
    """
    below, size = _open(name)
    try:
        return _opened(name, format, asked or Asked(), columns, below, size)
    except BROKEN as error:
        _release(below)
        if isinstance(error, CalibrantError):
            raise
        raise Unreadable(f"{name}: cannot be read: {error}") from error


def _opened(
    name: str,
    format: str | None,
    asked: Asked,
    columns: Sequence[str],
    below: Any,
    size: int | None,
) -> Source:
    content = _decompressed(name, below, size)
    try:
        return _understood(name, format, asked, columns, *content)
    except BaseException:
        # Before what lies below is let go: nothing could be closed then.
        if content[0] is not content[1]:
            content[0].close()
        raise


def _understood(
    name: str,
    format: str | None,
    asked: Asked,
    columns: Sequence[str],
    stream: Any,
    below: Any,
    size: int | None,
    member: str,
) -> Source:
    found = format or _sniff(stream, format_of(member))
    dialect, encoding = Dialect(decimal=asked.decimal or "."), "utf-8"
    if found in BINARY:
        if size is None or stream is not below:
            stream, below, size = _spooled(stream, below)
        return Source(name, found, stream, below, size, encoding, dialect, asked, columns)
    stream, encoding = _as_utf8(name, stream, asked.encoding)
    if found in TEXT:
        wrapped = is_wrapped(stream.peek(1)[:SAMPLE])
        stream = io.BufferedReader(Unwrapped(stream), BUFFER) if wrapped else stream
        dialect = sniff(stream.peek(1)[:SAMPLE], asked, columns, tabs=found == "tsv")
        dialect = replace(dialect, wrapped=wrapped)
        found = "tsv" if dialect.sep == "\t" and format is None else found
    if dialect.runs:
        stream = io.BufferedReader(Squeezed(stream), BUFFER)
    return Source(name, found, stream, below, size, encoding, dialect, asked, columns)


def _as_utf8(name: str, stream: Any, asked: str | None) -> tuple[Any, str]:
    """Return a stream of UTF-8, and the encoding that it had."""
    start: bytes = stream.peek(1)[:SAMPLE]
    encoding = encoding_of(start) if asked is None else check_encoding(asked)
    other = next((told for mark, told in OTHERS.items() if start.lower().startswith(mark)), "")
    if asked is None and encoding in ("utf-8", "latin-1") and b"\0" in start:
        other = other or "bytes that are no text"
    if other:
        raise Unreadable(f"{name}: must be a table, as text, JSON, Parquet or .xlsx, got {other}")
    if ends_in_returns(start):
        return io.BufferedReader(Transcoded(stream, encoding, returns=True), BUFFER), encoding
    if encoding in ("utf-8", "utf-8-sig", "ascii"):
        if start.startswith(codecs.BOM_UTF8):
            stream.read(len(codecs.BOM_UTF8))
        return stream, "utf-8"
    return io.BufferedReader(Transcoded(stream, encoding), BUFFER), encoding


def _open(name: str) -> tuple[Any, int | None]:
    with reading(name):
        if name == "-":
            # What lies below gives what has arrived; sys.stdin itself would wait for more.
            return io.BufferedReader(_standard_input(), BUFFER), None
        opened = io.BufferedReader(io.FileIO(name), BUFFER)
    size = os.fstat(opened.fileno()).st_size
    return opened, size if opened.seekable() else None


def _standard_input() -> Any:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)


def _release(below: Any) -> None:
    """Close what lies below; standard input stays open."""
    if isinstance(below, io.BufferedReader):
        try:
            raw = below.detach()
        except ValueError:
            # It was closed, or let go for a file of its own.
            return
        if sys.stdin is None or raw is not _standard_input():
            raw.close()
    else:
        below.close()


def _spooled(stream: Any, below: Any) -> tuple[Any, Any, int]:
    """Return a temporary file with all that a stream holds, for what is read from its end."""
    with ExitStack() as stack:
        whole = stack.enter_context(tempfile.TemporaryFile())
        while content := stream.read(BUFFER):
            with naming(tempfile.gettempdir()):
                whole.write(content)
        _release(below)
        size = whole.tell()
        whole.seek(0)
        stack.pop_all()
    return whole, whole, size


def _decompressed(name: str, below: Any, size: int | None) -> tuple[Any, Any, int | None, str]:
    """Return content, stored bytes and their number, and the name that tells the format."""
    start = below.peek(6)[:6]
    kind = next((MAGIC[magic] for magic in MAGIC if start.startswith(magic)), None)
    if kind == "zip":
        return _unzipped(name, below, size)
    if kind is None:
        return below, below, size, name
    known: dict[str, Any] = {"gzip": gzip.GzipFile, "bz2": bz2.BZ2File, "xz": lzma.LZMAFile}
    if kind == "zstd":
        opened = pa.CompressedInputStream(below, "zstd")
    elif kind == "gzip":
        opened = known[kind](fileobj=below)
    else:
        opened = known[kind](below)
    return io.BufferedReader(opened, BUFFER), below, size, name


def _unzipped(name: str, below: Any, size: int | None) -> tuple[Any, Any, int | None, str]:
    """Return the one file in a zip file; an Excel file stays as it is."""
    if size is None:
        _, below, size = _spooled(below, below)
    with ExitStack() as stack:
        stack.callback(below.close)
        archive = zipfile.ZipFile(below)
        member = _member(name, archive)
        opened: Any = below if member == WORKBOOK else archive.open(member)
        stream = below if opened is below else io.BufferedReader(opened, BUFFER)
        stack.pop_all()
    if stream is below:
        below.seek(0)
    return stream, below, size, "sheet.xlsx" if stream is below else member


def _member(name: str, archive: zipfile.ZipFile) -> str:
    """Return the name of the one file in a zip file, or of the workbook in an Excel file."""
    names = [each for each in archive.namelist() if not each.endswith("/")]
    if WORKBOOK in names:
        return WORKBOOK
    names = [each for each in names if not each.startswith("__MACOSX/")]
    if len(names) != 1:
        told = f"{name}: must have one file in it, got {len(names)}"
        raise Unreadable(f"{told}: {', '.join(names[:5])}; unpack it" if names else told)
    return names[0]


def _sniff(stream: Any, named: str | None) -> str:
    """Return the format of a stream that is named so; lines and lists of JSON share their names."""
    start: bytes = stream.peek(1)[:4096]
    begun = next((each for each, begin in BINARY.items() if start.startswith(begin)), None)
    if begun == "parquet" or (begun and begun == named):
        return begun
    # A name of another kind is wrong.
    named = None if named in BINARY else named
    first = start.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1]
    if first in (b"{", b"[") and named in (None, "json", "jsonl"):
        return "json" if first == b"[" and not LISTS.match(start) else "jsonl"
    return "jsonl" if named == "json" else named or "csv"
