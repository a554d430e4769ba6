"""A service in the test's own process."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.journal.sqlite import SqliteStore
from calibrant.serve import Options, make_app

with warnings.catch_warnings():
    # Later versions prefer another client, with the same interface.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

__all__ = ["PLAIN", "TestClient", "served", "stream"]

PLAIN = {"method": "foster_hart", "resolution": 10, "buckets": 5, "seed": 7}


@contextmanager
def served(file: Path, **options: Any) -> Iterator[TestClient]:
    """Serve a file to whoever asks, until the block ends."""
    options = {"open": True} | options
    app = make_app(SqliteStore(file, alone=True), Options(**options))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def stream(client: TestClient, name: str = "s", **settings: Any) -> str:
    """Make a stream; return its route."""
    made = client.put(f"/v1/streams/{name}", json=PLAIN | settings)
    assert made.status_code in (200, 201), made.text
    return f"/v1/streams/{name}"
