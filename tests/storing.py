"""Stores for tests: a file of SQLite or a database of PostgreSQL, opened again and again."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cluster import BIN, MISSING, Cluster
from test_journal import pattern

from calibrant import Table
from calibrant.journal.events import Asked, Told
from calibrant.journal.opening import open_store
from calibrant.journal.settings import Settings
from calibrant.journal.sql import Store
from calibrant.journal.store import Line
from calibrant.journal.writer import Writer

Opened = Callable[..., Any]
counter = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if BIN is None:
        pytest.skip(MISSING)
    made = Cluster()
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Returns what opens the same store again and again."""
    stores = list[Store]()
    if request.param == "sqlite":
        address = str(tmp_path / "streams.db")
    else:
        address = request.getfixturevalue("cluster").database(f"db{next(counter)}")

    def open_again(alone: bool | None = True) -> Store:
        stores.append(open_store(address, alone=alone))
        return stores[-1]

    open_again.address = address  # type: ignore[attr-defined]
    yield open_again
    for store in stores:
        store.close()


def make_stream(store: Store, number: int = 1, **settings: Any) -> None:
    told = Settings(keyed=True, **settings).to_json()
    body = Table(pattern(), seed=7).to_bytes()
    with store.writing():
        store.put_stream(Line(number, f"stream {number}", told, body))


def asked(events: Sequence[Any], stream: int = 1) -> list[Asked]:
    return [Asked(stream, kind, id, key, x) for key, kind, id, x in events]


def waited(writer: Writer, wanted: Sequence[Asked]) -> list[Told]:
    """Enter events and wait for what is told."""
    done, found = threading.Event(), list[Any]()

    def answer(told: Any, error: Exception | None) -> None:
        found.extend((told, error))
        done.set()

    writer.submit(wanted, answer)
    done.wait()
    if found[1] is not None:
        raise found[1]
    told: list[Told] = found[0]
    return told
