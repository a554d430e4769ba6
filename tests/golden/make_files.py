"""The golden files: ``python tests/golden/make_files.py v1`` writes them into ``files/v1``.

Run by hand, once for a format, with the code that writes that format.  A file that exists stays
as it is.  Each holds half of a log; ``answers.json`` says what must follow from the other half.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILES = Path(__file__).resolve().parent / "files"
KEY = b"sixteen bytes or more"
SEED = 7
ROUNDS = 60
HALF = 70
"""Events before the file was written."""

Log = tuple[list[str], list[str], list[str], list[float]]


def log() -> Log:
    """Return keys, kinds, names and numbers of a log; outcomes come up to nine events late."""
    rounds = [
        (t, f"site {t % 5}", t * 37 % 101 / 101, float(t * 53 % 97 < 44)) for t in range(ROUNDS)
    ]
    events = [(2.0 * t, "forecast", key, f"round {t}", raw) for t, key, raw, _ in rounds]
    late = [(2 * t + 1 + t * 7 % 9, "outcome", key, f"round {t}", y) for t, key, _, y in rounds]
    ordered = sorted([*events, *late], key=lambda event: event[0])
    _, kind, key, id, x = zip(*ordered, strict=True)
    return list(key), list(kind), list(id), list(x)


def part(first: int, last: int) -> Log:
    """Return some events of the log."""
    key, kind, id, x = (column[first:last] for column in log())
    return key, kind, id, x


def rows() -> list[str]:
    """Return a file in which outcomes are known later, for ``calibrant replay --by``."""
    told = [
        f"site {t % 5},{t * 37 % 101 / 101},{int(t * 53 % 97 < 44)},{t},{t + t * 7 % 9}"
        for t in range(2 * ROUNDS)
    ]
    return ["site,p,y,t,k", *told]


def pattern(name: str) -> Any:
    """Return the model that each key begins as."""
    from calibrant import Calibrant, Recalibrator

    return Calibrant() if name == "calibrant" else Recalibrator(resolution=10, buckets=5)


def begun(name: str) -> Any:
    """Return a table that has played the first half."""
    from calibrant import Table

    table = Table(pattern(name), seed=SEED)
    table.play(*part(0, HALF))
    return table


def answers(table: Any) -> dict[str, Any]:
    """Play the second half; return what is told, bit for bit."""
    played = table.play(*part(HALF, 2 * ROUNDS))
    told = {name: [float(x).hex() for x in getattr(played, name)] for name in ("value", "mean")}
    return told | {"number": played.number.tolist(), "rounds": [table[key].rounds for key in table]}


def snapshot(name: str) -> Callable[[Path], Any]:
    """Return what writes the file of :meth:`calibrant.Table.save`."""

    def write(path: Path) -> Any:
        begun(name).save(path)
        return answers(begun(name))

    return write


def sealed(path: Path) -> Any:
    """Write a table under a key."""
    path.write_bytes(begun("recalibrator").to_bytes(authenticate=KEY))
    return answers(begun("recalibrator"))


def bodies(name: str) -> Callable[[Path], Any]:
    """Return what writes the body of each key, as databases and Spark keep them."""

    def write(path: Path) -> Any:
        table = begun(name)
        path.write_text(json.dumps({key: table.body(key).hex() for key in table}, indent=0) + "\n")
        return answers(table)

    return write


def replayed(folder: Path, state: Path, first: int, last: int) -> list[dict[str, str]]:
    """Run ``calibrant replay --by`` over some rows of the file; return what was written."""
    import csv

    from calibrant.cli.app import run

    source, out = folder / f"{first}.csv", folder / f"{first}-out.csv"
    head, *lines = rows()
    source.write_text("\n".join([head, *lines[first:last], ""]))
    words = ["--raw", "p", "--outcome", "y", "--by", "site", "--time", "t", "--available", "k"]
    words += ["--state", str(state), "--out", str(out), "--seed", "3"]
    if run(["replay", str(source), *words]):
        raise RuntimeError("the replay failed")
    with out.open(newline="") as file:
        return list(csv.DictReader(file))


def session(path: Path) -> Any:
    """Write the state of a replay by key after half of its rows."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        replayed(Path(folder), path, 0, ROUNDS)
        copy = Path(folder, "copy")
        copy.write_bytes(path.read_bytes())
        return replayed(Path(folder), copy, ROUNDS, 2 * ROUNDS)


def shelf(path: Path) -> Any:
    """Write what Spark keeps of a shard; needs PySpark."""
    from calibrant.integrations.spark.shelf import Shelf

    table = begun("recalibrator")
    last = {key: 11 * number for number, key in enumerate(table)}
    path.write_bytes(Shelf(4, last, {key: table.body(key) for key in table}).to_bytes())
    return answers(table) | {"last": last}


WRITERS: dict[str, Callable[[Path], Any]] = {
    "snapshot_recalibrator": snapshot("recalibrator"),
    "snapshot_calibrant": snapshot("calibrant"),
    "sealed_table": sealed,
    "bodies_recalibrator.json": bodies("recalibrator"),
    "bodies_calibrant.json": bodies("calibrant"),
    "session_by": session,
    "shelf": shelf,
}


def main(version: str, *names: str) -> None:
    """Write the files of a version, or some of them, that are not there yet."""
    folder = FILES / version
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "answers.json"
    known = json.loads(told.read_text()) if told.exists() else {}
    for name in names or WRITERS:
        if (folder / name).exists():
            continue
        known[name] = WRITERS[name](folder / name)
        told.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
