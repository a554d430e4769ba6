"""Which tests need not count the lines they run, since others run them too: ``uncounted.txt``.

Counting makes plain kernels take two to three times as long, so lines are counted only where it
tells something.  To make the list anew, after tests or code have moved::

    export COVERAGE_FILE=.coverage CALIBRANT_COMPILE=off
    PYTHONPATH=tests python -m pytest -p uncounted -n auto -m 'not slow and not once' \
        --cov=src/calibrant --cov-config=script/elsewhere.coveragerc --cov-branch \
        --cov-context=test --cov-report=
    python tests/uncounted.py

A test that is listed and yet alone in running a line lets that line be reported as missing: take
the test off the list, or make the list anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).with_suffix(".txt")
COSTS = ".coverage-costs.{}"
WORTH_IT = 2.0
"""CPU seconds from which on a test is worth a line in the list."""


def listed() -> frozenset[str]:
    """Return the names of the tests in the list, without parameters."""
    return frozenset(LIST.read_text().split())


def name_of(node: str) -> str:
    """Return the name of a test without its parameters."""
    return node.split("[")[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Note how long a test takes, where this module is a plugin; then every test counts lines."""
    item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "uncounted"]
    before = os.times()
    try:
        return (yield)
    finally:
        took = sum(os.times()[:4]) - sum(before[:4])
        with open(COSTS.format(os.getpid()), "a") as file:
            file.write(json.dumps([name_of(item.nodeid), took]) + "\n")


def costs(place: Path) -> Counter[str]:
    """Return the CPU seconds of each test."""
    found = Counter[str]()
    for file in place.glob(COSTS.format("*")):
        for name, took in map(json.loads, file.read_text().splitlines()):
            found[name] += took
    return found


def arcs(data: Path) -> dict[str, set[tuple[int, int, int]]]:
    """Return the arcs that each test runs; those run while nothing is tested have no name."""
    found = defaultdict[str, set[tuple[int, int, int]]](set)
    with closing(sqlite3.connect(data)) as base, base:
        names = {}
        for number, context in base.execute("select id, context from context"):
            node, _, phase = context.rpartition("|")
            names[number] = name_of(node) if phase == "run" else ""
        for number, *arc in base.execute("select context_id, file_id, fromno, tono from arc"):
            found[names[number]].add(tuple(arc))
    return found


def needless(taken: Counter[str], ran: dict[str, set[tuple[int, int, int]]]) -> list[str]:
    """Return the tests without which as much is run, the longest first."""
    runners = Counter(arc for mine in ran.values() for arc in mine)
    found = []
    for name, took in taken.most_common():
        mine = ran.get(name, set())
        if took >= WORTH_IT and all(runners[arc] > 1 for arc in mine):
            runners.subtract(mine)
            found.append(name)
    return found


if __name__ == "__main__":
    made = needless(costs(Path()), arcs(Path(os.environ.get("COVERAGE_FILE", ".coverage"))))
    LIST.write_text("".join(name + "\n" for name in sorted(made)))
    print(f"{len(made)} tests need not count lines", file=sys.stderr)
