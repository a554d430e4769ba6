"""The start of a service: it listens at once, says that it is not ready, and can be stopped."""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import sqlite3
import threading
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from serving import PLAIN, Child
from test_serve_process import ask, once

from calibrant.errors import DamagedLog
from calibrant.journal import writer
from calibrant.journal.ledger import Ledger
from calibrant.journal.opening import open_store
from calibrant.journal.recover import verified
from calibrant.serve import Options, run, shell
from calibrant.serve.run import Place, serve

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

WHY = "streams that are being rebuilt from their log"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Yields a store with a stream and an event."""
    made = str(tmp_path / "streams.db")
    child = Child(made)
    assert once(child.at, "PUT", "/v1/streams/s", PLAIN)[0] == 201
    assert once(child.at, "POST", "/v1/streams/s/forecasts", {"id": "a", "raw": 0.5})[0] == 200
    assert child.end(signal.SIGTERM) == 0
    return made


def slowly(monkeypatch: pytest.MonkeyPatch, gate: Path) -> None:
    """Let streams be made from their log again and again until a file is there."""

    def ledger(store: Any, witnesses: Any) -> Ledger:
        while not gate.exists():
            list(store.tail(0))
        return Ledger(store, witnesses)

    monkeypatch.setattr(writer, "Ledger", ledger)
    monkeypatch.setattr(shell, "SLOW", 0.01)


def test_a_service_that_recovers_is_alive_and_not_ready(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly(monkeypatch, tmp_path / "gate")
    child = Child(file, ready=False)
    assert once(child.at, "GET", "/healthz") == (
        200,
        b'{"ready":false,"trouble":"%s"}' % WHY.encode(),
    )
    assert once(child.at, "GET", "/readyz") == (
        503,
        b'{"ready":false,"trouble":"%s"}' % WHY.encode(),
    )
    with closing(HTTPConnection(child.at, timeout=60)) as held:
        for path in ("/v1/streams", "/metrics", "/live/", "/no/such/route"):
            held.request("GET", path)
            told = held.getresponse()
            problem = json.loads(told.read())
            assert (told.status, told.headers["Retry-After"]) == (503, "1")
            assert problem["type"] == "urn:calibrant:not-ready"
            assert problem["detail"] == f"service must be ready, got {WHY}"
        again = {"id": "a", "raw": 0.5}
        assert ask(held, "POST", "/v1/streams/s/forecasts", again)[0] == 503
        (tmp_path / "gate").touch()
        assert "serving" in child.said.readline()
        assert ask(held, "GET", "/readyz")[0] == 200
        assert ask(held, "POST", "/v1/streams/s/forecasts", again)[0] == 200
    assert child.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_recovers_stops_in_order(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: int
) -> None:
    slowly(monkeypatch, tmp_path / "gate")
    child = Child(file, ready=False)
    assert once(child.at, "GET", "/readyz")[0] == 503
    os.kill(child.number, how)
    assert child.said.read().splitlines() == ["calibrant: stopped"]
    assert os.waitpid(child.number, 0)[1] == 0
    child.said.close()
    store = open_store(file, alone=True)
    assert verified(store) == 1
    store.close()


def test_a_service_that_is_stuck_in_its_recovery_stops_all_the_same(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "Ledger", lambda *given: threading.Event().wait())
    monkeypatch.setattr(shell, "SLOW", 0.01)
    monkeypatch.setattr(run, "GRACE", 0.1)
    child = Child(file, ready=False)
    assert once(child.at, "GET", "/healthz")[0] == 200
    assert child.end(signal.SIGTERM) == 0


def test_a_damaged_log_ends_the_start(file: str) -> None:
    with closing(sqlite3.connect(file)) as held:
        held.execute("delete from snapshot")
        held.execute("update event set x = 0.25")
        held.commit()
    with pytest.raises(DamagedLog, match="event 1 must be as it was written"):
        serve(file, Place(port=0), Options(), compile=False)
    # Nobody owns the file any more.
    open_store(file, alone=True).close()


def test_garbage_is_looked_for_seldom_while_a_service_runs_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with run.seldom():
        # No look at all objects before so many were made.
        assert math.prod(gc.get_threshold()) >= 10_000_000
    assert gc.get_threshold() == before


def test_a_service_runs_within(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, before = list[Any](), gc.get_threshold()

    def ran(server: Any, sockets: Any) -> None:
        seen.append(gc.get_threshold())
        for each in sockets:
            each.close()

    monkeypatch.setattr(run.uvicorn.Server, "run", ran)
    serve(file, Place(port=0), Options(), compile=False)
    assert (seen, gc.get_threshold()) == ([run.SELDOM], before)


# The server does not close the socket that it could not bind.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_port_that_is_taken_is_told_and_nothing_stays_owned(file: str, tmp_path: Path) -> None:
    child = Child(str(tmp_path / "other.db"))
    with pytest.raises(SystemExit):
        serve(file, Place(port=int(child.at.rpartition(":")[2])), Options(), compile=False)
    open_store(file, alone=True).close()
    child.end(signal.SIGTERM)
