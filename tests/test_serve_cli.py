"""Commands about a service's data: check it, copy it, make tokens, serve it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from test_journal import filled

from calibrant import Journal
from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.client.mcp import Agents
from calibrant.journal.sqlite import SqliteStore
from calibrant.serve import run as process
from calibrant.serve.options import Options
from calibrant.serve.run import Place
from calibrant.serve.tokens import hashed

pytestmark = pytest.mark.once

Heard = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "streams.db")


def test_a_log_is_verified_copied_and_restored(file: str, tmp_path: Path, capsys: Heard) -> None:
    table, copy, again = filled(Path(file)), str(tmp_path / "copy.db"), str(tmp_path / "again.db")
    assert run(["verify", file]) == ExitCode.OK
    assert capsys.readouterr().out == "60 events, and every answer matches the log\n"
    with Journal(file):
        # In use, and copied all the same.
        assert run(["backup", file, copy]) == ExitCode.OK
    assert run(["restore", copy, again]) == ExitCode.OK
    with Journal(again) as journal:
        assert journal.state() == table
    capsys.readouterr()
    assert run(["backup", file, copy]) == ExitCode.OUTPUT
    assert run(["restore", copy, file]) == ExitCode.OUTPUT
    assert run(["verify", str(tmp_path / "none.db")]) == ExitCode.INPUT
    assert run(["backup", "postgresql://a/b", str(tmp_path / "c.db")]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "already exists" in told
    assert "pg_dump" in told


def test_a_damaged_log_is_named_and_not_restored(file: str, tmp_path: Path, capsys: Heard) -> None:
    filled(Path(file))
    with closing(sqlite3.connect(file)) as held, held:
        held.execute("update event set x = 0.99 where seq = 1")
    held.close()
    assert run(["verify", file]) == ExitCode.STATE
    assert "event 1 must be as it was written" in capsys.readouterr().err
    assert run(["restore", file, str(tmp_path / "new.db")]) == ExitCode.STATE
    assert not (tmp_path / "new.db").exists()


def test_tokens_are_made_listed_and_revoked(file: str, capsys: Heard) -> None:
    asked = ["token", "create", file, "me", "--scope", "read", "--streams", "a,b"]
    assert run(asked) == ExitCode.OK
    token = capsys.readouterr().out.strip()
    assert len(token) == 43
    store = SqliteStore(file)
    (stored,) = store.tokens()
    store.close()
    assert (stored.hash, stored.scope, stored.streams) == (hashed(token), "read", "a,b")
    run(["token", "list", file])
    assert capsys.readouterr().out == "me\tread\ta,b\tvalid\n"
    assert run(["token", "revoke", file, "me"]) == ExitCode.OK
    run(["token", "list", file])
    assert capsys.readouterr().out.endswith("me\tread\ta,b\trevoked\n")
    assert run(["token", "revoke", file, "me"]) == ExitCode.USAGE
    assert run(["token", "create", file]) == ExitCode.USAGE
    assert run(["token", "forge", file, "me"]) == ExitCode.USAGE
    assert run(["token", "create", file, "me", "--scope", "all"]) == ExitCode.USAGE


def test_options_of_the_command_reach_the_service(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[str, Place, Options, Agents | None]]()
    monkeypatch.setattr(process, "serve", lambda *given: asked.append(given))
    words = ["--host", "::1", "--port", "0", "--certificate", "c", "--key", "k"]
    assert run(["serve", file, *words, "--rate", "5", "--snapshot", "7"]) == ExitCode.OK
    assert asked == [(file, Place("::1", 0, "c", "k"), Options(rate=5.0, every=7), None)]
    assert run(["serve", file, "--mcp"]) == ExitCode.OK
    assert isinstance(asked[1][3], Agents)
    assert run(["serve", file, "--port", "70000"]) == ExitCode.USAGE
    assert run(["serve", file, "--snapshot", "0"]) == ExitCode.USAGE


def test_a_host_that_others_reach_needs_a_token(file: str, capsys: Heard) -> None:
    assert run(["serve", file, "--host", "0.0.0.0"]) == ExitCode.USAGE
    assert "make one with: calibrant token create" in capsys.readouterr().err
    SqliteStore(file, alone=True).close()
