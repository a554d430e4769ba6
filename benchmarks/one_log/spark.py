"""The log on Spark: ``PYTHON -m benchmarks.one_log.spark FOLDER EVENTS KEYS KILLS MODEL``.

Spark's stream takes forecasts and outcomes.  It is told of the keys to which nothing else happens:
those whose outcomes are told again, which it sets aside with a fault, or never come.  An outcome
before its forecast has a fault, too, and is lost.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.one_log.log import Event, made_log, trait_of
from benchmarks.one_log.ways import MODELS, PAPER, SEED, Model, Result, by_table
from calibrant.integrations.spark import read_committed, read_table
from calibrant.integrations.spark.demo import play
from calibrant.integrations.spark.fleet import session, write

__all__ = ["BY_SPARK", "arrow_of", "result_of"]

BY_SPARK = ("plain", "never")
FILES = 6


def chosen(log: list[Event]) -> list[Event]:
    """Return the events that Spark is told of."""
    return [event for event in log if trait_of(event.key) in BY_SPARK]


def arrow_of(log: list[Event]) -> pa.Table:
    """Return events as a table in which each has its place."""
    kind, key, id, x = (list(column) for column in zip(*log, strict=True))
    return pa.table({"seq": list(range(len(log))), "kind": kind, "key": key, "id": id, "x": x})


def result_of(spark: Any, folder: Path, model: Model = PAPER) -> tuple[Result, list[str]]:
    """Return what a query in a folder came to, and the rounds of events that it set aside."""
    rows = read_committed(folder / "out").sort_by("seq").to_pylist()
    made = [row for row in rows if row["kind"] == "forecast"]
    answers = {row["id"]: (row["forecast"], row["mean"]) for row in made}
    aside = [row["id"] for row in rows if row["fault"] is not None]
    table = read_table(spark, str(folder / "checkpoint"), model=model.pattern, seed=SEED)
    return Result(answers, {key: table.body(key) for key in table}), aside


def repeated(log: list[Event]) -> list[str]:
    """Return the rounds whose outcomes are told again, in order."""
    seen, again = set[str](), list[str]()
    for event in log:
        if event.kind == "outcome":
            again += [event.id] if event.id in seen else []
            seen.add(event.id)
    return again


def main(folder: str, events: str, keys: str, kills: str, name: str) -> int:
    """Play the log on Spark with kills; say whether all is as a table plays it."""
    place, log, model = Path(folder), chosen(made_log(int(events), int(keys))), MODELS[name]
    write(arrow_of(log), place / "in", FILES)
    play(place, int(kills), FILES, lambda line: print(line, file=sys.stderr, flush=True), name)
    spark = session("local[2]")
    found, aside = result_of(spark, place, model)
    spark.stop()
    table = by_table(log, model)
    told = {"answers": found.answers == table.answers, "bodies": found.bodies == table.bodies}
    counts = {"answers": len(found.answers), "bodies": len(found.bodies)}
    told["aside"], counts["aside"] = aside == repeated(log), len(aside)
    print(json.dumps({"same": told, "counts": counts}))
    return int(not all(told.values()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
