"""States as files: whole, synced, and nobody else's to read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from calibrant import Calibrant, Recalibrator, Table, load
from calibrant.core import files
from calibrant.core.files import put
from calibrant.errors import CorruptState

pytestmark = [pytest.mark.base, pytest.mark.plain]


@pytest.mark.parametrize("make", [Calibrant, Recalibrator, lambda: Table(Recalibrator())])
def test_what_is_saved_is_loaded(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    model, path = make(), tmp_path / "a.state"
    model.save(path)
    model.save(path)
    assert load(path) == model
    assert path.stat().st_mode & 0o077 == 0
    assert os.listdir(tmp_path) == ["a.state"]


def test_a_state_is_saved_with_a_key(tmp_path: Path) -> None:
    model, path, key = Recalibrator(), tmp_path / "a.state", b"sixteen bytes..."
    model.save(path, authenticate=key)
    assert load(path, authenticate=key) == model
    with pytest.raises(CorruptState):
        load(path)


def test_an_interrupted_save_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = Recalibrator(), tmp_path / "a.state"
    model.save(path)
    before = path.read_bytes()
    model.forecast(0.3)

    def fails(held: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(files.os, "fsync", fails)
    with pytest.raises(OSError, match="no space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.state"]


def test_a_link_stays_a_link_and_a_device_is_written_as_it_is(tmp_path: Path) -> None:
    goal, link = tmp_path / "goal", tmp_path / "link"
    put(goal, b"old")
    link.symlink_to(goal)
    assert put(link, b"new") == link
    assert link.is_symlink()
    assert goal.read_bytes() == b"new"
    assert put("/dev/null", b"gone") == Path("/dev/null")


def played_table() -> Table:
    table = Table(Recalibrator(resolution=10, buckets=10), seed=7)
    table.replay(["a", "b", "a"], [0.2, 0.7, 0.3], [0, 1, 0])
    return table


def test_a_saved_table_is_loaded_as_every_state_is(tmp_path: Path) -> None:
    table = played_table()
    table.save(tmp_path / "table")
    assert load(tmp_path / "table") == table
    with pytest.raises(CorruptState):
        load(tmp_path / "table", authenticate=b"a key of sixteen bytes or more")


def test_a_table_saved_with_a_key_is_read_with_that_key_alone(tmp_path: Path) -> None:
    table, key = played_table(), b"a key of sixteen bytes or more"
    table.save(tmp_path / "table", authenticate=key)
    assert load(tmp_path / "table", authenticate=key) == table
    assert (tmp_path / "table").stat().st_mode & 0o777 == 0o600
    with pytest.raises(CorruptState):
        load(tmp_path / "table")
