"""Files that were written once are read for ever, and go on as they would have then."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden import make_files
from golden.make_files import FILES, KEY, answers

import calibrant
from calibrant import Table
from calibrant.errors import CorruptState

VERSIONS = sorted(path.name for path in FILES.iterdir())
BY_SPARK = {"shelf"}
"""What Spark keeps is read where Spark is: tests/spark/test_spark_golden.py."""

every_version = pytest.mark.parametrize("version", VERSIONS)


def taken(path: Path) -> Table:
    """A table of today's pattern that takes over the bodies of a file."""
    told = json.loads(path.read_text())
    made = Table(make_files.pattern(path.stem.removeprefix("bodies_")), seed=make_files.SEED)
    made.take(list(told), [bytes.fromhex(body) for body in told.values()])
    return made


READERS: dict[str, Callable[[Path], Any]] = {
    "snapshot_recalibrator": Table.open,
    "snapshot_calibrant": Table.open,
    "sealed_table": lambda path: calibrant.load(path.read_bytes(), authenticate=KEY),
    "bodies_recalibrator.json": taken,
    "bodies_calibrant.json": taken,
}


def expected(version: str) -> dict[str, Any]:
    return dict(json.loads((FILES / version / "answers.json").read_text()))


@pytest.mark.base
@every_version
@pytest.mark.parametrize("name", READERS)
def test_a_table_that_was_written_goes_on_as_it_would_have(version: str, name: str) -> None:
    table = READERS[name](FILES / version / name)
    assert answers(table) == expected(version)[name]


@pytest.mark.base
@every_version
@pytest.mark.parametrize("name", [name for name in READERS if "calibrant" not in name])
def test_a_table_that_was_written_is_that_of_today(version: str, name: str) -> None:
    today, then = make_files.begun("recalibrator"), READERS[name](FILES / version / name)
    assert {key: today.body(key) for key in today} == {key: then.body(key) for key in then}


@every_version
def test_a_replay_by_key_that_was_stored_goes_on(version: str, tmp_path: Path) -> None:
    pytest.importorskip("typer", reason="the command line is an extra")
    state = tmp_path / "state"
    state.write_bytes((FILES / version / "session_by").read_bytes())
    rounds = make_files.ROUNDS
    found = make_files.replayed(tmp_path, state, rounds, 2 * rounds)
    assert found == expected(version)["session_by"]


@pytest.mark.base
@every_version
def test_what_was_sealed_opens_with_its_key_alone(version: str) -> None:
    data = (FILES / version / "sealed_table").read_bytes()
    with pytest.raises(CorruptState):
        calibrant.load(data, authenticate=KEY + b"?")


@pytest.mark.base
@every_version
def test_every_file_is_read_by_a_test(version: str) -> None:
    there = {path.name for path in (FILES / version).iterdir()} - {"answers.json"}
    assert there == set(READERS) | BY_SPARK | {"session_by"} == set(make_files.WRITERS)
    assert set(expected(version)) == there
