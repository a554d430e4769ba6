"""Tests that count no lines: they exist, and no line is theirs alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import uncounted

ROOT = Path(__file__).resolve().parent.parent


def test_every_test_in_the_list_exists() -> None:
    gone = []
    for name in uncounted.listed():
        file, _, case = name.partition("::")
        source = (ROOT / file).read_text() if (ROOT / file).is_file() else ""
        if not any(f"{word} {case.split('::')[0]}" in source for word in ("def", "class")):
            gone.append(name)
    # Cases of state machines are assignments: TestDesk = DeskMachine.TestCase.
    assert [name for name in gone if "::runTest" not in name] == []


def test_long_tests_whose_arcs_others_run_need_not_count() -> None:
    ran = {
        "": {(1, 0, 1)},
        "long": {(1, 0, 1), (1, 1, 2)},
        "alone": {(1, 2, 3)},
        "also long": {(1, 1, 2)},
        "short": {(1, 0, 1)},
    }
    taken = Counter({"alone": 9.0, "long": 8.0, "also long": 7.0, "short": 0.1})
    assert uncounted.needless(taken, ran) == ["long"]


def test_names_have_no_parameters() -> None:
    assert uncounted.name_of("tests/test_a.py::test_b[x::y[1]]") == "tests/test_a.py::test_b"
    assert all(name == uncounted.name_of(name) for name in uncounted.listed())
