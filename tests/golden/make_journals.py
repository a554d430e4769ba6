"""The golden journals: ``python tests/golden/make_journals.py v1`` writes them into ``journals``.

Run by hand, once for a version of the tables, or for a new default within one (``v3-swaps``), with
the code that writes it: a file of
SQLite, the same streams as a dump of PostgreSQL, and what must follow from both.  A file that
exists stays as it is.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cluster import BIN, Cluster

from calibrant import Calibrant, Recalibrator, Table
from calibrant.classes import ClassCalibrant
from calibrant.groups import GroupRecalibrator
from calibrant.journal.events import CORRECTION, EXPIRY, FORECAST, OUTCOME, Asked
from calibrant.journal.ledger import Ledger
from calibrant.journal.opening import open_store
from calibrant.journal.recover import take_snapshots
from calibrant.journal.settings import Settings
from calibrant.journal.sql import Store
from calibrant.journal.store import Line, Pass

PLACE = Path(__file__).resolve().parent / "journals"
COUNT = 60
LABELS = ["cat", "cow", "dog"]


def lines() -> list[Line]:
    """A stream without keys, one with keys that keeps early outcomes, a deleted one, others."""
    keyed = Table(Recalibrator(resolution=10, buckets=5), seed=7)
    lone = Recalibrator("regret_matching", seed=5)
    told = (
        ("lone", Settings(), Calibrant(seed=3), None),
        ("keyed", Settings(keyed=True, unknown="keep"), keyed, None),
        ("gone", Settings(), lone, 1.5),
        ("groups", Settings(), GroupRecalibrator(["a"], resolution=10, seed=4), None),
        ("classes", Settings(labels=LABELS), ClassCalibrant(3, seed=6), None),
        ("hidden", Settings(reveal="outcome"), Recalibrator(resolution=10, seed=8), None),
    )
    return [
        Line(number, name, settings.to_json(), model.to_bytes(), gone)
        for number, (name, settings, model, gone) in enumerate(told, 1)
    ]


def requests(stream: int, count: int = COUNT) -> list[Asked]:
    """Forecasts, late and early outcomes, a correction and an expiry."""
    dice, made = random.Random(stream), list[Asked]()
    keys: tuple[Any, ...] = ("a", 7, "b") if stream == 2 else (None,)
    groups: tuple[Any, ...] = (("a",), ("b", 3), ()) if stream == 4 else ((),)
    for k in range(count):
        key, raw = dice.choice(keys), dice.random()
        asked: Any = [raw, (1.0 - raw) / 2, (1.0 - raw) / 2] if stream == 5 else raw
        told = {"groups": groups[k % len(groups)]}
        made.append(Asked(stream, FORECAST, f"é {k}", key, asked, float(k), **told))
        if k >= 5:
            happened = float(dice.random() < 0.4)
            came = LABELS[int(happened)] if stream == 5 else happened
            made.append(Asked(stream, OUTCOME, f"é {k - 5}", None, came))
    stands = next(one for one in made if one.kind == OUTCOME)
    other: Any = "dog" if stream == 5 else 1.0 - stands.x
    made.append(Asked(stream, CORRECTION, stands.id, None, other))
    made.append(Asked(stream, EXPIRY, f"é {count - 1}", None, 0.0))
    if stream == 2:
        made.append(Asked(stream, OUTCOME, "early", None, 1.0))
    return made


def fill(store: Store) -> dict[str, Any]:
    """Put streams, events, snapshots and a token into a store; return what must follow."""
    with store.writing():
        for line in lines():
            store.put_stream(line._replace(gone=None))
        store.put_token(Pass(bytes(32), "scoring", "write", "*", 2.5))
    ledger = Ledger(store)
    for stream in sorted(ledger.folds):
        asked = requests(stream)
        ledger.write(ledger.enter(asked[:80])[1])
        with store.writing():
            take_snapshots(store, ledger, {})
        ledger.write(ledger.enter(asked[80:])[1])
    with store.writing():
        # A stream that is deleted takes nothing.
        for line in lines():
            store.put_stream(line)
    counts = {number: [fold.issued, fold.learned] for number, fold in ledger.folds.items()}
    names = {line.name: line.gone for line in lines()}
    told = {"events": ledger.seq, "counts": counts, "names": names}
    return told | {"next": next_answers(ledger)}


def next_answers(ledger: Ledger) -> list[str]:
    """Return the answers to what is asked next, which are not written."""
    asked = [
        Asked(1, FORECAST, "next", None, 0.3),
        Asked(2, FORECAST, "early", "a", 0.7),
        Asked(4, FORECAST, "next", None, 0.3, groups=("b", "new")),
        Asked(5, FORECAST, "next", None, [0.5, 0.25, 0.25]),
        Asked(6, FORECAST, "next", None, 0.3),
    ]
    asked = [one for one in asked if one.stream in ledger.folds]
    return [told.result().told.hex() for told in ledger.enter(asked)[0]]


def main() -> None:
    version = sys.argv[1]
    file, dump, told = (PLACE / f"{version}.{ending}" for ending in ("db", "sql", "json"))
    if file.exists():
        raise SystemExit(f"{file} must stay as it is")
    store = open_store(str(file), alone=None)
    follows = fill(store)
    store.close()
    cluster = Cluster()
    address = cluster.database("golden")
    store = open_store(address, alone=None)
    assert fill(store) == follows
    store.close()
    written = subprocess.run(
        [f"{BIN}/pg_dump", "--inserts", "--no-owner", address], check=True, capture_output=True
    ).stdout.decode()
    cluster.close()
    kept = [
        row
        for row in written.split("\n")
        if row and not row.startswith(("--", "\\", "SET ", "SELECT "))
    ]
    dump.write_text("\n".join(kept) + "\n")
    told.write_text(json.dumps(follows, indent=1) + "\n")


if __name__ == "__main__":
    main()
