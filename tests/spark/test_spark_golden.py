"""What Spark kept of a shard once is read for ever, and goes on as it would have then."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from golden.make_checkpoint import CHECKPOINTS, played, restored, told
from golden.make_files import FILES, HALF, ROUNDS, SEED, answers, pattern

from calibrant import Table
from calibrant.integrations.spark.shelf import Shelf


@pytest.mark.parametrize("version", sorted(path.name for path in FILES.iterdir()))
def test_a_shelf_that_was_written_goes_on_as_it_would_have(version: str) -> None:
    told = json.loads((FILES / version / "answers.json").read_text())["shelf"]
    shelf = Shelf.from_bytes((FILES / version / "shelf").read_bytes(), 4)
    assert shelf.last == told.pop("last")
    table = Table(pattern("recalibrator"), seed=SEED)
    table.take(list(shelf.bodies), list(shelf.bodies.values()))
    assert answers(table) == told


STORED = sorted(CHECKPOINTS.glob("*/*.tar.gz"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name} {path.name}")
def test_a_query_goes_on_from_a_checkpoint_of_then(path: Path, spark, tmp_path: Path) -> None:
    name = path.name.removesuffix(".tar.gz")
    restored(path, tmp_path)
    rows = played(spark, tmp_path, name, HALF, 2 * ROUNDS)
    assert [row["fault"] for row in rows] == [None] * (2 * ROUNDS - HALF)
    assert told(rows) == json.loads(path.with_name(f"{name}.json").read_text())


def test_there_are_checkpoints_of_the_default_and_of_the_papers_rule() -> None:
    assert {path.name for path in STORED} == {"calibrant.tar.gz", "recalibrator.tar.gz"}
