"""Stores that several processes share: a journal, and a service on loopback."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from forking import at_once
from serving import PLAIN, Child

from calibrant import Journal, Recalibrator
from calibrant.client import Client
from calibrant.client import clients as home

__all__ = ["Lossy", "address", "at_once", "impatient", "lone", "store"]

_numbers = count()


def lone() -> Recalibrator:
    """Return the recalibrator that each of these streams begins as."""
    return Recalibrator("foster_hart", resolution=10, buckets=5, seed=7)


class Store:
    """A stream of its own in one kind of store."""

    def __init__(self, kind: str, address: str, folder: Path) -> None:
        self.kind, self.address, self.stream = kind, address, f"shared-{next(_numbers)}"
        self._held: list[Any] = []
        if kind == "journal":
            self.store: Any = self.keep(Journal(folder / "streams.db", lone(), keyed=False))
        else:
            self.store = self.keep(Client(address))
            self.store.put_stream(self.stream, **PLAIN)
        self.named = {"store": self.store, "stream": self.stream}

    def keep(self, store: Any) -> Any:
        """Close a store in the end."""
        self._held.append(store)
        return store

    def state(self) -> Any:
        """Return the stream as it is now."""
        from calibrant.integrations.shared import Shared

        return Shared(**self.named).state()

    def close(self) -> None:
        """Close whatever was opened."""
        for held in self._held:
            held.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of a service."""
    child = Child(str(tmp_path_factory.mktemp("shared") / "streams.db"))
    yield f"http://{child.at}"
    child.end(signal.SIGTERM)


@pytest.fixture(params=["journal", "service"])
def store(request: pytest.FixtureRequest, address: str, tmp_path: Path) -> Iterator[Store]:
    """Yields a new stream, in each kind of store."""
    made = Store(request.param, address, tmp_path)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets clients try again at once."""
    monkeypatch.setattr(home.asking, "pause", lambda *given: 0.0)


class Lossy(httpx.BaseTransport):
    """Does what is asked, and loses the answers to chosen requests, counted from 0."""

    def __init__(self, *lost: int) -> None:
        self.lost, self.asked, self._inner = set(lost), 0, httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._inner.handle_request(request)
        answer.read()
        self.asked += 1
        if self.asked - 1 in self.lost:
            raise httpx.ReadError("lost")
        return answer

    def close(self) -> None:
        self._inner.close()
