"""One Spark session for all tests here; collected only where PySpark is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent

# The environment of the other tests has pandas 3, which PySpark does not take: script/test runs
# these tests in one of their own.
collect_ignore_glob = [] if find_spec("pyspark") else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Those of other folders are among the items too, where these are collected together.
    for item in items:
        if HERE not in item.path.parents:
            continue
        # Sockets and files of Spark's own gateway are left to the collector.
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
        item.add_marker(
            pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
        )


@pytest.fixture(scope="session")
def java() -> str:
    """Where Java is."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=None if home is None else f"{home}/bin")
    if found is None:
        pytest.skip("no Java here: install openjdk-17-jre-headless, or set JAVA_HOME")
    return found


@pytest.fixture(scope="session")
def spark(java: str) -> Iterator[Any]:
    from calibrant.integrations.spark.fleet import session

    made = session("local[2]")
    yield made
    made.stop()
