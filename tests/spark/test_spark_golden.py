"""What Spark kept of a shard once is read for ever, and goes on as it would have then."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from golden.make_files import FILES, SEED, answers, pattern

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
