"""A service in the test's own process."""

from __future__ import annotations

import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.journal.sqlite import SqliteStore
from calibrant.serve import Options, make_app
from calibrant.serve.run import Place, serve

with warnings.catch_warnings():
    # Later versions prefer another client, with the same interface.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

__all__ = ["PLAIN", "Child", "TestClient", "served", "stream"]

PLAIN = {"method": "foster_hart", "resolution": 10, "buckets": 5, "seed": 7}


@contextmanager
def served(file: Path, **options: Any) -> Iterator[TestClient]:
    """Serve a file to whoever asks, until the block ends."""
    options = {"open": True, "quick": 0.0, "slow": 0.0} | options
    app = make_app(SqliteStore(file, alone=True), Options(**options))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def stream(client: TestClient, name: str = "s", **settings: Any) -> str:
    """Make a stream; return its route."""
    made = client.put(f"/v1/streams/{name}", json=PLAIN | settings)
    assert made.status_code in (200, 201), made.text
    return f"/v1/streams/{name}"


class Child:
    """A service in a forked process, which need not load anything first.

    ``ready`` says whether to wait until it is, or only until it listens; ``place`` where that is.
    """

    def __init__(
        self,
        address: str,
        agents: Any = None,
        *,
        ready: bool = True,
        place: Place | None = None,
        **options: Any,
    ) -> None:
        there, here = os.pipe()
        self.number = os.fork()
        if not self.number:
            os.close(there)
            self._serve(address, here, place or Place(port=0), options, agents)
        os.close(here)
        self.said = os.fdopen(there)
        line = self.said.readline()
        while ready and "not ready" in line:
            line = self.said.readline()
        found = re.search(r"at https?://(\S+)", line)
        if found is None:
            told = line + self.said.read()
            self.said.close()
            os.waitpid(self.number, 0)
            raise AssertionError(told)
        self.at = found[1]

    @staticmethod
    def _serve(address: str, pipe: int, place: Place, options: Any, agents: Any) -> None:
        code = 1
        try:
            os.dup2(pipe, 2)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            serve(address, place, Options(**options), agents)
            code = 0
        except BaseException as error:
            print(f"failed: {error!r}", file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def end(self, how: int) -> int:
        """Send a signal, and wait; return how the process ended."""
        os.kill(self.number, how)
        status = os.waitpid(self.number, 0)[1]
        self.said.close()
        return status
