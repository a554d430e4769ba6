"""Secrets that are sealed in a store, under a key in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from storing import Opened, asked, cluster, make_stream, opened
from test_journal import filled, pattern, some_events

from calibrant import Journal, Table
from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.errors import CorruptState, InvalidInput
from calibrant.journal import vault
from calibrant.journal.apart import snapshots_apart
from calibrant.journal.events import STATE, Asked
from calibrant.journal.ledger import Ledger
from calibrant.journal.opening import open_store
from calibrant.journal.recover import fresh_snapshots, take_snapshots, verified
from calibrant.journal.vault import Vault

pytestmark = pytest.mark.once
pytest.importorskip("cryptography", reason="needs the extra sealed")

__all__ = ["cluster", "opened"]


@pytest.fixture
def key(tmp_path: Path) -> str:
    return str(tmp_path / "key")


def stored(store: Any) -> list[bytes]:
    """Return everything that holds secrets, as the database has it."""
    asked = ("select body from stream", "select body from snapshot where stream > 0")
    events = f"select answer from event where kind = {STATE}"
    return [bytes(row[0]) for query in (*asked, events) for row in store._rows(query)]


def test_nothing_in_the_store_tells_the_secrets(opened: Opened, key: str) -> None:
    address = opened.address  # type: ignore[attr-defined]
    store = open_store(address, alone=True, secret_file=key)
    make_stream(store)
    ledger, other = Ledger(store), Table(pattern(), seed=9)
    ledger.write(ledger.enter(asked(some_events(120)))[1])
    told = Asked(1, STATE, "hand over", None, 0.0, None, other.to_bytes())
    ledger.write(ledger.enter([told, *asked([("a", 0, "new", 0.5)])])[1])
    with store.writing():
        take_snapshots(store, ledger, {})
    assert len(stored(store)) == 3
    assert all(vault.is_sealed(body) for body in stored(store))
    assert verified(store) == 122
    again = Ledger(store)
    assert again.folds[1].body() == ledger.folds[1].body()
    assert again.find(1, STATE, "hand over") == next(e for e in store.tail(0) if e.kind == STATE)
    assert [e.told for e in store.events(1, 0, 999) if e.kind == STATE] == [other.to_bytes()]
    ledger.write(ledger.enter(asked([("a", 0, "newer", 0.5)]))[1])
    made = snapshots_apart(address, "calibrant.journal.apart", 123, secret_file=key)
    assert made == fresh_snapshots(store, 123)
    store.close()
    with pytest.raises(InvalidInput, match="secret file must be given to a store that is sealed"):
        Ledger(open_again := opened(alone=None))
    open_again.close()
    store = open_store(address, alone=True, secret_file=f"{key} of another")
    with pytest.raises(CorruptState, match="stream 1 must have been sealed there under the key"):
        Ledger(store)
    store.close()


def test_what_was_written_before_is_sealed_too(opened: Opened, key: str) -> None:
    store = opened()
    make_stream(store)
    ledger, other = Ledger(store), Table(pattern(), seed=9)
    told = Asked(1, STATE, "hand over", None, 0.0, None, other.to_bytes())
    ledger.write(ledger.enter([*asked(some_events(60)), told])[1])
    with store.writing():
        take_snapshots(store, ledger, {})
    plain = stored(store)
    assert len(plain) == 3
    assert not any(vault.is_sealed(body) for body in plain)
    store.close()
    store = open_store(opened.address, alone=True, secret_file=key)  # type: ignore[attr-defined]
    assert len(stored(store)) == 2
    assert all(vault.is_sealed(body) for body in stored(store))
    assert Ledger(store).folds[1].body() == ledger.folds[1].body()
    assert verified(store) == 61
    store.close()


def test_the_bytes_of_the_file_hold_no_secret_any_more(tmp_path: Path, key: str) -> None:
    file = tmp_path / "streams.db"
    filled(file)
    with Journal(file) as journal:
        body = journal._line.body
    assert body[-60:] in file.read_bytes()
    with Journal(file, secret_file=key) as journal:
        journal.forecast("a", 0.4, id="new")
    assert body[-60:] not in file.read_bytes()
    with Journal(file, secret_file=key) as journal:
        assert journal.verify() == 61


def test_a_damaged_seal_is_passed_over_in_a_snapshot(tmp_path: Path, key: str) -> None:
    file = tmp_path / "streams.db"
    with Journal(file, pattern(), seed=7, secret_file=key) as journal:
        journal.forecast("a", 0.4, id="x")
    store: Any = open_store(str(file), alone=True, secret_file=key)
    with store.writing():
        store._run("update snapshot set body = cast(body || x'00' as blob) where stream = 1")
    store.close()
    with Journal(file, secret_file=key) as journal:
        assert journal["a"].issued == 1


def test_a_key_is_made_for_its_owner_alone_and_checked(tmp_path: Path, key: str) -> None:
    assert Vault(key).sealing
    assert Path(key).stat().st_mode & 0o777 == 0o600
    first = Path(key).read_bytes()
    assert Vault(key).open(Vault(key).seal(b"told", "here"), "here") == b"told"
    assert (len(first), Path(key).read_bytes()) == (32, first)
    with pytest.raises(CorruptState, match="there must have been sealed"):
        Vault(key).open(Vault(key).seal(b"told", "here"), "there")
    Path(key).chmod(0o640)
    with pytest.raises(InvalidInput, match=r"its owner's alone \(600\), got mode 640"):
        Vault(key)
    Path(key).chmod(0o600)
    Path(key).write_bytes(b"short")
    with pytest.raises(InvalidInput, match="must hold 32 bytes, got 5"):
        Vault(key)


def test_commands_take_the_key(tmp_path: Path, key: str) -> None:
    file, copy = str(tmp_path / "streams.db"), str(tmp_path / "copy.db")
    with Journal(file, pattern(), seed=7, secret_file=key) as journal:
        journal.forecast("a", 0.4, id="x")
    assert run(["verify", file]) == ExitCode.USAGE
    assert run(["verify", file, "--secret-file", key]) == ExitCode.OK
    assert run(["backup", file, copy]) == ExitCode.OK
    assert run(["restore", copy, str(tmp_path / "b.db"), "--secret-file", key]) == ExitCode.OK
    assert run(["purge", file, "--secret-file", key]) == ExitCode.OK
