"""Which reader an input has."""

from __future__ import annotations

from typing import Final

from calibrant.stream.failure import Unreadable
from calibrant.stream.objects import JsonLinesReader, JsonListReader
from calibrant.stream.readers import (
    BATCH_ROWS,
    LineReader,
    OnMisfit,
    ParquetReader,
    Reader,
    TextReader,
)
from calibrant.stream.sheets import SheetReader
from calibrant.stream.source import BINARY, Source

NAMES: Final = {"parquet": "Parquet", "xlsx": "Excel"}


def open_reader(
    source: Source, on_misfit: OnMisfit, *, batch_rows: int = BATCH_ROWS, one_by_one: bool = False
) -> Reader:
    """Return the reader for an open input; ``one_by_one`` asks for each row as it arrives."""
    if source.format in BINARY and one_by_one:
        told = f"{NAMES[source.format]} has no lines to answer one by one"
        raise Unreadable(f"{source.name}: {told}")
    known: dict[str, type[Reader]] = {
        "jsonl": JsonLinesReader,
        "json": JsonListReader,
        "parquet": ParquetReader,
        "xlsx": SheetReader,
    }
    kind = known.get(source.format, LineReader if one_by_one else TextReader)
    return kind(source, on_misfit, 1 if one_by_one else batch_rows)
