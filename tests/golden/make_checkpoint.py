"""Golden checkpoints of Spark: ``python tests/golden/make_checkpoint.py v1`` writes ``checkpoints/v1``.

Run by hand where Spark is, once for a format, with the code that writes that format.  A file that
exists stays as it is.  Each is the checkpoint directory of a query that has played half of a log,
as a tar; ``NAME.json`` says what must follow from the other half.
"""  # noqa: E501

from __future__ import annotations

import json
import os
import re
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from golden.make_files import HALF, SEED, answers, begun, part, pattern

CHECKPOINTS = Path(__file__).resolve().parent / "checkpoints"
MODELS = ("recalibrator", "calibrant")
SHARDS = 4


def events(first: int, last: int) -> Any:
    """Return some events of the log as rows for Spark."""
    import pyarrow as pa

    key, kind, id, x = part(first, last)
    return pa.table({"seq": [*range(first, last)], "kind": kind, "key": key, "id": id, "x": x})


def come(folder: Path, first: int, last: int) -> None:
    """Let a file with some events come to a query."""
    import pyarrow.parquet as pq

    file = folder / "in" / f"{first:04}.parquet"
    file.parent.mkdir(exist_ok=True)
    pq.write_table(events(first, last), file)
    os.utime(file, (first + 1, first + 1))


def played(spark: Any, folder: Path, name: str, first: int, last: int) -> list[dict[str, Any]]:
    """Let a query with its checkpoint in a folder play some events; return its rows in order."""
    from calibrant.integrations.spark import read_committed
    from calibrant.integrations.spark.fleet import run

    come(folder, first, last)
    run(spark, folder, model=pattern(name), seed=SEED, shards=SHARDS)
    rows: list[dict[str, Any]] = read_committed(folder / "out").sort_by("seq").to_pylist()
    return rows


def restored(path: Path, folder: Path) -> None:
    """Put a checkpoint into a folder, as if its query had always read its files from there.

    Spark remembers files by their whole paths, beside checksums, and looks at those of the last
    batch again.
    """
    come(folder, 0, HALF)
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    sources = (folder / "checkpoint" / "sources" / "0" / "0").read_text()
    found = re.search(r"file://([^\"]*)/in/", sources)
    assert found is not None
    for listed in (folder / "checkpoint").rglob("*"):
        if listed.is_file() and found[1].encode() in (data := listed.read_bytes()):
            listed.write_bytes(data.replace(found[1].encode(), str(folder).encode()))
            listed.with_name(f".{listed.name}.crc").unlink()


def told(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what rows say, bit for bit."""
    found: dict[str, Any] = {
        here: [float(row[there]).hex() for row in rows]
        for here, there in (("value", "forecast"), ("mean", "mean"))
    }
    return found | {"number": [row["ticket"] for row in rows]}


def kept(spark: Any, place: Path, name: str) -> None:
    """Write the checkpoint of a query that has played the first half, and what follows."""
    if (place / f"{name}.tar.gz").exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        played(spark, Path(folder), name, 0, HALF)
        with tarfile.open(place / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(Path(folder, "checkpoint"), "checkpoint")
    follows = answers(begun(name))
    follows.pop("rounds")
    (place / f"{name}.json").write_text(json.dumps(follows, indent=0) + "\n")


def main(version: str) -> None:
    """Write the files of a format that are not there yet."""
    from calibrant.integrations.spark.fleet import session

    place = CHECKPOINTS / version
    place.mkdir(parents=True, exist_ok=True)
    spark = session("local[2]")
    for name in MODELS:
        kept(spark, place, name)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
