"""Opening inputs: which format, how compressed, from where."""

from __future__ import annotations

import gzip
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from calibrant.stream.failure import Unreadable

__all__ = ["FORMATS", "Source", "format_of", "open_source"]

SUFFIXES: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS: Final = ("csv", "tsv", "jsonl", "parquet")
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
        _release(self.name, self.below)


def format_of(name: str) -> str | None:
    """Return the format that a file's name stands for, or None.

    >>> format_of("games.csv.gz"), format_of("games.parquet"), format_of("-")
    ('csv', 'parquet', None)
    """
    return SUFFIXES.get(Path(plain_name(name)).suffix.lower())


def compression_of(name: str) -> str | None:
    """Return the compression that a file's name stands for, or None."""
    return COMPRESSED.get(Path(name).suffix.lower())


def plain_name(name: str) -> str:
    """Return a file's name without the suffix of its compression."""
    return str(Path(name).with_suffix("")) if compression_of(name) else name


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
            told = "Parquet is read from its end and must be a plain file, got a stream"
            raise Unreadable(f"{name}: {told}")
    except (OSError, EOFError) as error:
        _release(name, below)
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"{name}: cannot be read: {error}") from error
    return Source(name, found, stream, below, size)


def _open(name: str) -> tuple[Any, int | None]:
    if name == "-":
        # What lies below gives what has arrived; sys.stdin itself would wait for more.
        raw: Any = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        return io.BufferedReader(raw, BUFFER), None
    try:
        opened = io.BufferedReader(io.FileIO(name), BUFFER)
    except OSError as error:
        raise Unreadable(f"{name}: cannot be read: {error.strerror}") from error
    size = os.fstat(opened.fileno()).st_size
    return opened, size if opened.seekable() else None


def _release(name: str, below: Any) -> None:
    if name != "-":
        below.close()
    elif not below.closed:
        below.detach()


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
