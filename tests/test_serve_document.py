"""The document of the interface, walked by a machine that looks for trouble."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from serving import PLAIN, Child

from calibrant.serve.routes import ANY_FAILS, WAYS, Way

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

EXAMPLES = int(os.environ.get("CALIBRANT_WALKS", "10"))
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]
STREAMS: dict[str, Any] = {
    "keyed": PLAIN | {"keyed": True},
    "groups": {"groups": ["a"]},
    "classes": {"classes": ["a", "b"], "reveal": "outcome"},
    "hidden": PLAIN | {"reveal": "outcome", "unknown": "keep"},
}
IDS = ("open", "learned", "open too", "learned too")
"""Forecasts that every stream has, two of them with outcomes."""
ROWS: dict[str, dict[str, Any]] = {
    "keyed": {"raw": 0.3, "key": "k"},
    "groups": {"raw": 0.3, "groups": ["a"]},
    "classes": {"raw": [0.3, 0.7]},
    "hidden": {"raw": 0.3},
}
quiet = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Asking:
    """Somebody who asks a service."""

    def __init__(self, at: str) -> None:
        self.at = at

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        sent = body if isinstance(body, bytes | None) else json.dumps(body)
        with closing(HTTPConnection(self.at)) as held:
            held.request(method, path, sent)
            answer = held.getresponse()
            return answer.status, answer.read()

    def prepare(self, name: str) -> None:
        """Make a stream as it was at first, as far as it is not."""
        at, outcome = f"/v1/streams/{name}", "a" if name == "classes" else 1
        if self.ask("GET", at)[0] == 404 and self.ask("POST", f"{at}/restore")[0] == 404:
            status, text = self.ask("PUT", at, STREAMS[name])
            assert status == 201, text
        rows = [{"id": id} | ROWS[name] for id in IDS]
        assert self.ask("POST", f"{at}/forecasts", rows)[0] == 200
        told = [{"id": id, "outcome": outcome} for id in IDS if "learned" in id]
        assert self.ask("POST", f"{at}/outcomes", told)[0] == 200


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    child = Child(str(tmp_path_factory.mktemp("served") / "streams.db"))
    made = Asking(child.at)
    for name in STREAMS:
        made.prepare(name)
    yield made
    child.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def interface(asking: Asking) -> Any:
    return schemathesis.openapi.from_url(f"http://{asking.at}/openapi.json")


def walk(interface: Any, asking: Asking, way: Way, mode: GenerationMode) -> set[int]:
    """Ask a route as a mode says; return the statuses of the answers."""
    names, ids, seen = itertools.cycle(STREAMS), itertools.cycle((*IDS, None)), set[int]()

    @given(case=interface[way.path][way.method].as_strategy(generation_mode=mode))
    @settings(quiet, max_examples=2 if way.path.endswith("/report") else EXAMPLES)
    def one(case: Any) -> None:
        # So that requests reach a stream, and a forecast of it.
        if "name" in case.path_parameters:
            case.path_parameters["name"] = name = next(names)
            if way.method == "DELETE" or way.path.endswith("/restore"):
                asking.prepare(name)
        if "id" in case.path_parameters and (id := next(ids)) is not None:
            case.path_parameters["id"] = quote(id)
        answer = case.call()
        seen.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)
        if way.method == "DELETE" and way.path == ONE:
            asking.prepare(case.path_parameters["name"])

    one()
    return seen


ONE = "/v1/streams/{name}"
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.method} {way.path}")


@each_way
def test_nothing_that_fits_the_document_is_a_surprise(
    interface: Any, asking: Asking, way: Way
) -> None:
    seen = walk(interface, asking, way, GenerationMode.POSITIVE)
    if "{name}" in way.path and not way.path.endswith(("/state", "/preview")):
        # Where a stream is reached, something other than a stranger's answer comes back.
        assert seen - {404, 422}, seen


TAKES = [way for way in WAYS if way.takes is not None or way.query]


@pytest.mark.parametrize("way", TAKES, ids=lambda way: f"{way.method} {way.path}")
def test_nothing_that_does_not_fit_the_document_is_a_surprise(
    interface: Any, asking: Asking, way: Way
) -> None:
    seen = walk(interface, asking, way, GenerationMode.NEGATIVE)
    assert seen & {400, 404, 409, 413, 422}, seen


# -------------------------------------------------------------------------- fuzzed bodies

GOOD: dict[str, Callable[[str], Any]] = {
    "PUT ": lambda name: STREAMS[name],
    "POST /forecasts": lambda name: [{"id": "open", "time": 1.5} | ROWS[name]],
    "POST /outcomes": lambda name: [{"id": "open", "outcome": "a" if name == "classes" else 1}],
    "PUT /outcomes/learned": lambda name: {"outcome": "b" if name == "classes" else 0},
    "PUT /state": lambda name: b"",
}
ODD = (
    b"",
    b"\x00" * 64,
    b"[" * 100_000,
    b'{"id": "a", "raw": NaN}',
    b'{"id": "a", "raw": "0.5"}',
    b'{"id": "a", "raw": 1e999}',
    b'{"id": "\\ud800", "raw": 0.5}',
    b'{"id": "a", "id": "b", "raw": 0.5}',
    b'{"id": "' + b"x" * 10_240 + b'", "raw": 0.5}',
    b'{"id": "a\'); drop table event; --", "raw": 0.5}',
    b'{"id": "a", "outcome": 184467440737095516160}',
    b'{"outcome": true}',
    "\ufeff{}".encode(),
    '{"id": "\u202e\U0001f9d1\u200d", "outcome": 1}'.encode("utf-16"),
)


@st.composite
def mangled(draw: Any, good: bytes) -> bytes:
    """Draw a body that was right before somebody cut, doubled and changed it."""
    body = bytearray(good)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(start + 12, len(body))))
        body[start:end] = draw(
            st.one_of(st.binary(max_size=6), st.just(bytes(body[start:end]) * 2))
        )
    return bytes(body)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("route", GOOD)
def test_any_bytes_at_all_get_a_documented_answer(asking: Asking, route: str, name: str) -> None:
    method, rest = route.split(" ")
    path = f"/v1/streams/{name}{rest}"
    way = next(way for way in WAYS if way.method == method and _fits(way.path, rest))
    documented = {200, 201, *way.fails, *ANY_FAILS}
    good = GOOD[route](name)
    if rest == "/state":
        good = asking.ask("GET", path)[1]
    good = good if isinstance(good, bytes) else json.dumps(good).encode()

    @given(body=st.one_of(st.binary(max_size=200), mangled(good), mangled(good)))
    @quiet
    def send(body: bytes) -> None:
        status, told = asking.ask(method, path, body)
        assert status in documented - {503}, (status, told)
        if status >= 400:
            problem = json.loads(told)
            assert (problem["status"], problem["type"][:4]) == (status, "urn:")

    for body in ODD:
        send = example(body=body)(send)
    send()
    assert asking.ask(method, path, good)[0] in (200, 201, 409)


def _fits(path: str, rest: str) -> bool:
    return path.removeprefix(ONE).replace("{id}", "learned") == rest and path.startswith(ONE)
