"""Tables as files: whole snapshots, mapped, and what is damaged in them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import Recalibrator, Table
from calibrant.errors import CorruptState, InvalidInput
from calibrant.recalibrate import keyed_bodies, keyed_files
from calibrant.recalibrate.heap import MAPPED, Heap
from tests.test_table import patterns
from tests.test_table_bodies import KEYS, played, resealed

pytestmark = pytest.mark.base


@pytest.mark.parametrize("made", patterns())
def test_an_opened_table_goes_on_where_it_was_saved(made: Any, tmp_path: Path) -> None:
    table = played(made())
    table.save(tmp_path / "table")
    opened = Table.open(tmp_path / "table", hot=2)
    assert opened == table
    assert opened.bodies() == table.bodies()
    assert opened.changes(opened.mark()) == []
    for each in (table, opened):
        for t, key in enumerate([*KEYS, "new", "north"]):
            each.observe(each.forecast(key, t / 9, time=100.0 + t), t % 2)
        each.observe("ticket 5", 1)
    assert opened == table
    # What was touched stands in memory, and a file that is open may be replaced.
    opened.save(tmp_path / "table")
    assert opened == Table.open(tmp_path / "table")


def test_keys_that_are_not_touched_stay_in_the_file(tmp_path: Path) -> None:
    table = played(Recalibrator())
    table.save(tmp_path / "table")
    opened = Table.open(tmp_path / "table")
    opened.forecast("north", 0.5)
    heap, numbers = opened._tiers.heap, opened._numbers
    cold = [key for key in KEYS if opened._tiers.slots[numbers[key]] < 0]
    assert sorted(map(str, cold)) == sorted(map(str, set(KEYS) - {"north"}))
    assert (heap.records[[numbers[key] for key in cold], Heap.START] >= MAPPED).all()
    assert heap.used == 0
    opened._tiers.heap.limit = -1
    opened._tiers.tidy()
    assert opened["south"] == table["south"]


def test_a_table_without_keys_is_a_file_too(tmp_path: Path) -> None:
    table = Table(Recalibrator())
    table.save(str(tmp_path / "table"))
    assert Table.open(str(tmp_path / "table")) == table
    assert (tmp_path / "table").stat().st_mode & 0o077 == 0


def test_many_keys_are_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = played(Recalibrator())
    table.correct(table.observe(table.forecast("south", 0.5), 0), 1)
    table.forecast("north", 0.3)
    whole = table.bodies()
    table.save(tmp_path / "whole")
    monkeypatch.setattr(keyed_bodies, "AT_ONCE", 2)
    assert table.bodies() == whole
    table.save(tmp_path / "table")
    assert (tmp_path / "table").read_bytes() == (tmp_path / "whole").read_bytes()
    assert Table.open(tmp_path / "table") == table


def damaged(path: Path, at: int, byte: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= byte
    path.write_bytes(data)


def place_of(path: Path, body: bytes) -> int:
    return path.read_bytes().index(body)


def test_damage_is_told_with_its_key_and_the_others_load(tmp_path: Path) -> None:
    table, path = played(Recalibrator()), tmp_path / "table"
    table.save(path)
    damaged(path, place_of(path, table.body("south")) + 40)
    with pytest.raises(CorruptState, match="body of key 'south' must be what a table with these"):
        Table.open(path)
    with pytest.warns(UserWarning, match="left out: 1 keys, the first is 'south'"):
        opened = Table.open(path, on_error="skip")
    assert opened.missing == ["south"]
    assert sorted(map(str, opened)) == sorted(map(str, set(KEYS) - {"south"}))
    del table["south"]
    assert opened == table
    with pytest.raises(InvalidInput, match="on_error must be"):
        Table.open(path, on_error="ignore")


def test_a_torn_file_loses_the_keys_at_its_end(tmp_path: Path) -> None:
    table, path = played(Recalibrator()), tmp_path / "table"
    table.save(path)
    data, order = path.read_bytes(), list(table)
    path.write_bytes(data[:-3])
    with pytest.raises(CorruptState, match=f"body of key {order[-1]!r} must be"):
        Table.open(path)
    path.write_bytes(data[: place_of(path, table.body(order[1])) + 5])
    with pytest.warns(UserWarning, match="4 keys"):
        opened = Table.open(path, on_error="skip")
    assert list(opened) == order[:1]
    assert opened.missing == order[1:]


@pytest.mark.parametrize("more", [b"x", bytes(8), bytes(4096)])
def test_a_file_that_goes_on_behind_its_last_key_is_refused(tmp_path: Path, more: bytes) -> None:
    table, path = played(Recalibrator()), tmp_path / "table"
    table.save(path)
    path.write_bytes(path.read_bytes() + more)
    with pytest.raises(CorruptState) as refused:
        Table.open(path)
    assert str(refused.value) == f"{path} must end with its last key, got {len(more)} bytes more"
    # No key is damaged.
    assert Table.open(path, on_error="skip") == table


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    table, path = played(Recalibrator()), tmp_path / "table"
    for content in (b"", b"short", bytes(64), table.to_bytes()):
        path.write_bytes(content)
        with pytest.raises(CorruptState, match=r"table must be what save\(\) wrote, got"):
            Table.open(path, on_error="skip")
    table.save(path)
    data = path.read_bytes()
    for at in (3, 9, 15, 40, data.index(b'["')):
        path.write_bytes(data)
        damaged(path, at, 128)
        with pytest.raises(CorruptState, match=r"table must be what save\(\) wrote, got"):
            Table.open(path, on_error="skip")
    with pytest.raises(FileNotFoundError):
        Table.open(tmp_path / "nothing")


def rewritten(path: Path, head: dict[str, Any], keys: Any, rest: bytes, ends: Any) -> None:
    """Write a crafted snapshot whose digests fit."""
    text = keyed_files._padded(json.dumps(keys).encode())
    told = keyed_files._padded(json.dumps({"keys": len(text)} | head).encode())
    start = keyed_files.MAGIC + len(told).to_bytes(8, "little") + told
    index = text + np.array(ends, "<i8").tobytes()
    digest = keyed_files._digest
    path.write_bytes(start + digest(start) + index + digest(index) + rest)


def test_crafted_files_are_refused(tmp_path: Path) -> None:
    table, path = played(Recalibrator(resolution=4, buckets=3)), tmp_path / "table"
    good = table.body("south")
    wrong = bytearray(good)
    wrong[16:24] = b"\xff" * 8
    bad = resealed(table, bytes(wrong))
    told = {"version": 1, "count": 2, "settings": table._settings()}
    sizes = np.cumsum([len(good) // 8, len(bad) // 8])
    rewritten(path, told, ["a", "b"], good + bad, sizes)
    with pytest.raises(CorruptState, match="body of key 'b' must be that of a stream"):
        Table.open(path)
    with pytest.warns(UserWarning, match="the first is 'b'"):
        assert list(Table.open(path, on_error="skip")) == ["a"]
    # One ticket's name in two keys: the second is left out.
    rewritten(path, told, ["a", "b"], good + good, 2 * [len(good) // 8] * np.array([1, 2]))
    with pytest.raises(CorruptState, match="of another key, got one in the body of key 'b'"):
        Table.open(path)
    for head, keys in (
        ({"version": 2}, ["a", "b"]),
        ({"count": 1}, ["a", "b"]),
        ({}, ["a", "a"]),
        ({}, ["a", None]),
        ({"settings": {}}, ["a", "b"]),
        ({"settings": table._settings() | {"made": "other"}}, ["a", "b"]),
    ):
        rewritten(path, told | head, keys, good + good, sizes)
        with pytest.raises(CorruptState, match=r"table must be what save\(\) wrote, got"):
            Table.open(path)


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, path = played(Recalibrator()), tmp_path / "table"
    table.save(path)
    before = path.read_bytes()
    table.forecast("north", 0.5)

    def full(*told: Any) -> None:
        raise OSError("no space left")

    for owner, name in ((os, "fsync"), (os, "replace"), (Table, "_write_parcels")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            with pytest.raises(OSError, match="no space"):
                table.save(path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["table"]
    assert table._gate.is_free
    opener = os.open

    def no_folders(name: Any, *told: Any, **more: Any) -> int:
        if os.path.isdir(name):
            raise OSError("folders cannot be opened here")
        return opener(name, *told, **more)

    monkeypatch.setattr(os, "open", no_folders)
    table.save(path)
    assert Table.open(path) == table


GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["table_v1", "table_v2"])
def test_files_that_were_written_once_open_for_ever(name: str, tmp_path: Path) -> None:
    table = played(Recalibrator(resolution=4, buckets=3))
    assert Table.open(GOLDEN / name) == table
    Table.open(GOLDEN / name).save(tmp_path / "table")
    assert (tmp_path / "table").read_bytes() == (GOLDEN / "table_v2").read_bytes()
