"""The document of the interface, walked by a machine that looks for trouble."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from serving import PLAIN, Child

from calibrant.serve.routes import WAYS, Way

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


@pytest.fixture(scope="module")
def interface(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    child = Child(str(tmp_path_factory.mktemp("served") / "streams.db"))
    with closing(HTTPConnection(child.at)) as held:
        for name, asked in STREAMS.items():
            held.request("PUT", f"/v1/streams/{name}", json.dumps(asked))
            answer = held.getresponse()
            assert (answer.status, answer.read()[:1]) == (201, b"{")
    yield schemathesis.openapi.from_url(f"http://{child.at}/openapi.json")
    child.end(signal.SIGTERM)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.method} {way.path}")
def test_nothing_that_fits_the_document_is_a_surprise(interface: Any, way: Way) -> None:
    names = itertools.cycle(STREAMS)

    @given(case=interface[way.path][way.method].as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def walk(case: Any) -> None:
        if "name" in case.path_parameters and way.method in ("GET", "POST"):
            # So that requests reach a stream.
            case.path_parameters["name"] = next(names)
        case.validate_response(case.call(), checks=CHECKS)

    walk()
