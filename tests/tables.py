"""Tables as files, for streams to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write(path: Path, table: dict[str, list[Any]], rows: slice = slice(None)) -> str:
    """Write some rows of a table as CSV or Parquet; return the path."""
    cut = {name: column[rows] for name, column in table.items()}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(cut), path)
    else:
        lines = zip(*cut.values(), strict=True)
        text = [",".join("" if v is None else str(v) for v in line) for line in lines]
        path.write_text("\n".join([",".join(cut), *text]) + "\n")
    return str(path)
