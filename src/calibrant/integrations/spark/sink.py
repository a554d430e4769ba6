"""What a query has written to files, as far as it is committed."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from calibrant.errors import InvalidInput


def committed_files(path: str | Path) -> list[Path]:
    """Return the files of a query's output that belong to batches which were committed.

    A query that was killed leaves files behind that belong to none: their rows were, or will be,
    written again.  Spark itself looks at ``_spark_metadata``; whoever lists the folder must too.
    """
    folder = Path(path) / "_spark_metadata"
    if not folder.is_dir():
        raise InvalidInput(f"path must be a folder that a query has written, got {str(path)!r}")
    logs = {int(log.name.partition(".")[0]): log for log in folder.iterdir() if log.name[0] != "."}
    whole = [batch for batch, log in logs.items() if log.suffix == ".compact"]
    first = max(whole, default=-1)
    found = [file for batch in sorted(logs) if batch >= first for file in _added(logs[batch])]
    return list(dict.fromkeys(found))


def _added(log: Path) -> list[Path]:
    """Return the files that one entry of the log of a sink adds."""
    _, *lines = log.read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return [Path(unquote(urlparse(entry["path"]).path)) for entry in entries]


def read_committed(path: str | Path) -> pa.Table:
    """Return the rows of a query's Parquet files that were committed, without Spark."""
    files = committed_files(path)
    if not files:
        raise InvalidInput(f"path must hold a batch that was committed, got {str(path)!r}")
    return pa.concat_tables([pq.read_table(file) for file in files])
