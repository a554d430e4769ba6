"""The service as a process: killed under load, stopped in order, asked badly."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest
from cluster import BIN, MISSING, Cluster
from serving import PLAIN, Child

from calibrant.journal.opening import open_store
from calibrant.journal.recover import FILTER, verified
from calibrant.serve.options import Options
from calibrant.serve.run import Place, serve
from calibrant.serve.tokens import create_token

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

CYCLES = int(os.environ.get("CALIBRANT_KILLS", "16"))
CLIENTS = 16


def ask(
    held: HTTPConnection, method: str, path: str, body: Any = None, token: str = ""
) -> tuple[int, bytes]:
    """Ask a service something; return the status and the body of its answer."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    held.request(method, path, None if body is None else json.dumps(body), headers)
    answer = held.getresponse()
    return answer.status, answer.read()


def once(at: str, method: str, path: str, *rest: Any) -> tuple[int, bytes]:
    """Ask a service something over a connection of its own."""
    with closing(HTTPConnection(at, timeout=60)) as held:
        return ask(held, method, path, *rest)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "streams.db")
        return
    if BIN is None:
        pytest.skip(MISSING)
    made = Cluster()
    yield made.database("served")
    made.close()


class Load:
    """Clients that make rounds until the service is gone, and note each answer they got."""

    def __init__(self, child: Child, cycle: int, most: int) -> None:
        self.child, self.cycle, self.most = child, cycle, most
        self.told = dict[tuple[str, str], tuple[dict[str, Any], bytes]]()

    def run(self, name: int) -> None:
        at = self.child.at
        with closing(HTTPConnection(at)) as held, suppress(OSError, HTTPException):
            for k in range(10_000):
                id = f"{self.cycle} {name} {k}"
                self._ask(held, "forecasts", {"id": id, "raw": (k * 37 % 100) / 100})
                self._ask(held, "outcomes", {"id": id, "outcome": k % 2})

    def _ask(self, held: HTTPConnection, what: str, body: dict[str, Any]) -> None:
        status, told = ask(held, "POST", f"/v1/streams/s/{what}", body)
        if len(self.told) == self.most:
            # At once: nothing that was answered may still be on its way to the disk.
            os.kill(self.child.number, signal.SIGKILL)
        assert status == 200, told
        self.told[what, body["id"]] = body, told

    def until_killed(self) -> None:
        """Let clients work until one of them kills the service."""
        threads = [threading.Thread(target=self.run, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert os.WIFSIGNALED(self.child.end(signal.SIGKILL))

    def check(self, at: str) -> None:
        """Ask all of it again: a forecast has the same bytes, an outcome is known."""
        for what in ("forecasts", "outcomes"):
            asked = [(body, told) for (kind, _), (body, told) in self.told.items() if kind == what]
            bodies = [body for body, _ in asked]
            status, answer = once(at, "POST", f"/v1/streams/s/{what}", bodies)
            assert status == 200, answer
            if what == "forecasts":
                assert answer == b"[" + b",".join(told for _, told in asked) + b"]"
            else:
                assert {one["status"] for one in json.loads(answer)} <= {"repeated"}


def test_whatever_was_answered_survives_a_kill_under_load(address: str) -> None:
    dice, child, acknowledged = random.Random(3), Child(address, every=100), 0
    assert once(child.at, "PUT", "/v1/streams/s", PLAIN)[0] == 201
    for cycle in range(CYCLES):
        load = Load(child, cycle, dice.randrange(1, 150))
        load.until_killed()
        child = Child(address, every=100)
        load.check(child.at)
        acknowledged += len(load.told)
    child.end(signal.SIGTERM)
    store = open_store(address, alone=None)
    # What was written and not told: at most what each client had asked last.
    assert acknowledged <= verified(store) <= acknowledged + CLIENTS * CYCLES
    store.close()


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "streams.db")


def test_a_service_ends_in_order_and_says_what_it_does(file: str) -> None:
    child = Child(file)
    assert "everybody on this machine" in child.said.readline()
    assert once(child.at, "PUT", "/v1/streams/s", PLAIN)[0] == 201
    assert once(child.at, "POST", "/v1/streams/s/forecasts", {"id": "%2F", "raw": 0.5})[0] == 200
    _, found = once(child.at, "GET", "/v1/streams/s/forecasts/%252F")
    assert json.loads(found)["id"] == "%2F"
    assert child.end(signal.SIGTERM) == 0
    store = open_store(file, alone=True)
    assert {one.stream: one.seq for one in store.snapshots()} == {1: 1, FILTER: 1}
    store.close()


def test_what_admins_ask_leaves_a_line_and_what_others_ask_does_not(file: str) -> None:
    store = open_store(file, alone=None)
    tokens = {scope: create_token(store, f"the {scope}", scope) for scope in ("read", "admin")}
    store.close()
    child = Child(file)
    assert once(child.at, "PUT", "/v1/streams/a%0Ab", {}, tokens["admin"])[0] == 422
    assert once(child.at, "PUT", "/v1/streams/s", PLAIN, tokens["admin"])[0] == 201
    assert once(child.at, "GET", "/v1/streams/s", None, tokens["read"])[0] == 200
    assert once(child.at, "DELETE", "/v1/streams/s", None, tokens["read"])[0] == 403
    os.kill(child.number, signal.SIGTERM)
    lines = [line for line in child.said if "calibrant.audit" in line]
    assert os.waitpid(child.number, 0)[1] == 0
    child.said.close()
    who = "calibrant.audit: PUT /v1/streams/{name} by 'the admin': "
    assert [line.partition(" calibrant")[2] for line in lines] == [
        f"{who}{{'name': {name!r}}}\n".removeprefix("calibrant") for name in ("a\nb", "s")
    ]


def test_an_open_page_ends_by_itself_once_the_service_stops(file: str) -> None:
    child = Child(file, quick=0.05)
    host, port = child.at.split(":")
    with socket.create_connection((host, int(port))) as held:
        held.sendall(b"GET /live/events HTTP/1.1\r\nHost: a\r\n\r\n")
        reader = held.makefile("rb")
        while b"No streams yet." not in reader.readline():
            pass
        os.kill(child.number, signal.SIGTERM)
        # An answer that is cut off has no last, empty piece.
        assert reader.read().endswith(b"\r\n0\r\n\r\n")
        reader.close()
    assert os.waitpid(child.number, 0)[1] == 0
    child.said.close()


def test_a_second_process_on_the_same_data_is_refused(file: str) -> None:
    child = Child(file)
    with pytest.raises(AssertionError, match="nobody else must be at work"):
        Child(file)
    child.end(signal.SIGTERM)


def test_without_tokens_only_this_machine_is_served(file: str) -> None:
    with pytest.raises(ValueError, match="host must be of this machine alone"):
        serve(file, Place(host="0.0.0.0", port=0), Options())
    store = open_store(file, alone=True)
    token = create_token(store, "me", "admin")
    store.close()
    child = Child(file)
    assert once(child.at, "GET", "/v1/streams")[0] == 401
    assert once(child.at, "GET", "/v1/streams", None, token) == (200, b"[]")
    child.end(signal.SIGTERM)


def test_half_a_body_times_out(file: str) -> None:
    child = Child(file, body_seconds=0.2)
    assert once(child.at, "PUT", "/v1/streams/s", PLAIN)[0] == 201
    host, port = child.at.split(":")
    with socket.create_connection((host, int(port))) as held:
        head = "POST /v1/streams/s/forecasts HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n"
        held.sendall(head.encode() + b'{"id": "half')
        held.settimeout(30)
        assert held.recv(100).startswith(b"HTTP/1.1 408 ")
    assert json.loads(once(child.at, "GET", "/v1/streams/s")[1])["issued"] == 0
    child.end(signal.SIGTERM)
