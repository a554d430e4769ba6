"""How large the package may be: its code, its functions, its files, and what it says twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import TypeGuard

import pytest

pytestmark = [pytest.mark.base, pytest.mark.once]

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))

MOST_CODE = 53_000
LONGEST_FUNCTION = 60
LONGEST_FILE = 500
LONGEST_FACADE = 350
MOST_REPEATED = 25
RUN = 6
"""From so many lines on, what stands in two places is a repetition."""

Imports = ast.Import | ast.ImportFrom
Functions = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstring_of(node: ast.AST) -> range:
    """Return the lines of a node's docstring, if it has one."""
    if not isinstance(node, Documented) or ast.get_docstring(node, clean=False) is None:
        return range(0)
    return lines_of(node.body[0])


def lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or 0) + 1)


def is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Say whether a string stands alone: a docstring, also of a constant."""
    alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return alone and isinstance(node.value.value, str)


def code_of(text: str) -> list[tuple[int, str]]:
    """Return the lines of code with their numbers: no blank lines, comments and docstrings."""
    strings = filter(is_docstring, ast.walk(ast.parse(text)))
    told = {line for node in strings for line in lines_of(node)}
    lines = enumerate((line.strip() for line in text.splitlines()), 1)
    return [(k, line) for k, line in lines if line and not line.startswith("#") and k not in told]


def telling_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of code that say something: no imports, and no lone brackets."""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, Imports))
    imports = {line for node in nodes for line in lines_of(node)}
    spoken = ((k, line) for k, line in code_of(text) if k not in imports)
    return [(k, line) for k, line in spoken if any(letter.isalnum() for letter in line)]


def runs_of(text: str) -> Iterator[tuple[str, int]]:
    """Yield every run of lines that say something, with the place in the file where it starts."""
    lines = telling_lines(text)
    for k in range(len(lines) - RUN + 1):
        yield "\n".join(line for _, line in lines[k : k + RUN]), lines[k][0]


def repeated(texts: dict[str, str]) -> set[tuple[str, str]]:
    """Return the pairs of files, or a file twice, that share a run of lines."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in texts.items():
        for run, _ in runs_of(text):
            places[run].append(name)
    pairs = (pair for found in places.values() for pair in combinations(found, 2))
    return {(min(pair), max(pair)) for pair in pairs}


def lengths_of(text: str) -> dict[str, int]:
    """Return how long each function is from its first line to its last, the docstring aside."""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, Functions))
    lengths = ((node, len(lines_of(node)) - len(docstring_of(node))) for node in nodes)
    return {f"{node.name}:{node.lineno}": length for node, length in lengths}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in SOURCES}


EXAMPLE = '''"""What this is."""

import os  # A comment.

SIZE = 2
"""How large."""

# Another one.
def double(x):
    """Return twice as much.

    Of anything.
    """

    def inner():
        return x
    return (
        inner() + x
    )
'''


def test_only_code_counts() -> None:
    assert [k for k, _ in code_of(EXAMPLE)] == [3, 5, 9, 15, 16, 17, 18, 19]
    assert [k for k, _ in telling_lines(EXAMPLE)] == [5, 9, 15, 16, 17, 18]


def test_a_function_is_as_long_as_its_lines_without_its_docstring() -> None:
    assert lengths_of(EXAMPLE) == {"double:9": 7, "inner:15": 2}


def test_six_lines_in_two_places_are_a_repetition_and_five_are_not() -> None:
    six = [f"x{k} = {k}" for k in range(6)]
    same = {"a.py": "\n".join(six), "b.py": "\n\n# Why.\n".join(six)}
    assert repeated(same) == {("a.py", "b.py")}
    assert repeated({"a.py": "\n".join([*six, "y = 0", *six])}) == {("a.py", "a.py")}
    assert not repeated({"a.py": "\n".join(six), "b.py": "\n".join(six[1:])})


def test_the_package_has_no_more_code_than_it_may(texts: dict[str, str]) -> None:
    assert len(texts) > 100
    assert sum(len(code_of(text)) for text in texts.values()) <= MOST_CODE


def test_no_function_is_longer_than_a_screen(texts: dict[str, str]) -> None:
    lengths = {f"{n}:{f}": k for n, text in texts.items() for f, k in lengths_of(text).items()}
    assert {f: k for f, k in lengths.items() if k > LONGEST_FUNCTION} == {}


def test_no_file_is_longer_than_it_may_be(texts: dict[str, str]) -> None:
    lengths = {name: len(text.splitlines()) for name, text in texts.items()}
    assert {name: k for name, k in lengths.items() if k > LONGEST_FILE} == {}
    assert lengths["src/calibrant/recalibrate/recalibrator.py"] < LONGEST_FACADE


def test_little_is_said_twice(texts: dict[str, str]) -> None:
    found = repeated(texts)
    assert len(found) <= MOST_REPEATED, sorted(found)
