"""Opening inputs: which format, how compressed, from where."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from calibrant.errors import CalibrantError
from calibrant.stream.failure import Unreadable, naming

FORMATS: Final = ("csv", "tsv", "jsonl", "parquet")
SHORT: Final = {".tab": "tsv", ".ndjson": "jsonl", ".pq": "parquet"}
SUFFIXES: Final = {f".{name}": name for name in FORMATS} | SHORT
COMPRESSED: Final = {".gz": "gzip", ".zst": "zstd"}
MAGIC: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
BUFFER: Final = 1 << 20


@dataclass
class Source:
    """An open input.

    Attributes
    ----------
    name
        As the user wrote it.
    format
        ``"csv"``, ``"tsv"``, ``"jsonl"`` or ``"parquet"``.
    stream
        Its bytes, with compression undone.
    below
        The bytes as they are stored.
    size
        How many of them there are, if that is known.
    """

    name: str
    format: str
    stream: Any
    below: Any
    size: int | None

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


def open_source(name: str, format: str | None = None) -> Source:
    """Open an input by name, ``-`` being standard input.

    The first bytes tell how it is compressed; its name, or else the first bytes, tell the
    format unless ``format`` does.
    """
    below, size = _open(name)
    try:
        stream = _decompressed(below)
        found = format or format_of(name) or _sniff(stream)
        if found == "parquet" and (size is None or stream is not below):
            stream, below, size = _spooled(stream, below)
    except (OSError, EOFError) as error:
        _release(below)
        if isinstance(error, CalibrantError):
            raise
        raise Unreadable(f"{name}: cannot be read: {error}") from error
    return Source(name, found, stream, below, size)


def _open(name: str) -> tuple[Any, int | None]:
    try:
        if name == "-":
            # What lies below gives what has arrived; sys.stdin itself would wait for more.
            return io.BufferedReader(_standard_input(), BUFFER), None
        opened = io.BufferedReader(io.FileIO(name), BUFFER)
    except OSError as error:
        raise Unreadable(f"{name}: cannot be read: {error.strerror}") from error
    size = os.fstat(opened.fileno()).st_size
    return opened, size if opened.seekable() else None


def _standard_input() -> Any:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)


def _release(below: Any) -> None:
    """Close what lies below; standard input stays open."""
    if isinstance(below, io.BufferedReader) and not below.closed:
        raw = below.detach()
        if sys.stdin is None or raw is not _standard_input():
            raw.close()
    else:
        below.close()


def _spooled(stream: Any, below: Any) -> tuple[Any, Any, int]:
    """Return a temporary file with all that a stream holds: Parquet is read from its end."""
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


def _decompressed(below: Any) -> Any:
    start = below.peek(4)[:4]
    kind = next((MAGIC[magic] for magic in MAGIC if start.startswith(magic)), None)
    if kind == "gzip":
        return io.BufferedReader(gzip.GzipFile(fileobj=below), BUFFER)
    if kind == "zstd":
        return io.BufferedReader(pa.CompressedInputStream(below, "zstd"), BUFFER)
    return below


def _sniff(stream: Any) -> str:
    start: bytes = stream.peek(4096)[:4096]
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.lstrip().startswith(b"{"):
        return "jsonl"
    header = start.partition(b"\n")[0]
    return "tsv" if b"\t" in header and b"," not in header else "csv"
