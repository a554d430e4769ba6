"""Where pages take their figures from: ``docs/results/NAME.json``, written by ``--store``.

A file holds the tables that a command printed, cell by cell, beside the command, the commit, the
date, the machine with its load, and versions.  ``docs/tables.py`` writes them into pages, between
markers; a test compares.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import itertools
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

__all__ = ["PLACE", "add_store", "commit", "put", "storing", "tables_in"]

ROOT = pathlib.Path(__file__).parents[1]
PLACE = ROOT / "docs" / "results"
RULE = re.compile(r"\|(\s*:?---+:?\s*\|)+$")
"""The line below the head of a table."""
CODE = ("src", "benchmarks", "script")
"""What a result depends on, of all that is in the repository."""


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the option by which a command keeps its tables for the pages."""
    parser.add_argument("--store", action="store_true", help="keep the tables for the page")


def put(name: str, command: str, tables: Iterable[dict[str, Any]], **more: Any) -> pathlib.Path:
    """Write the tables of a command, and of what they are; return the path.

    Parameters
    ----------
    name
        What the file is called.
    command
        What makes the tables again.
    tables
        Each with its ``head`` and its ``rows``, all cells as they are shown.
    more
        Anything else that the page or a reader needs.
    """
    from benchmarks.__main__ import machine

    where = {key: told for key, told in machine().items() if told not in (None, "none")}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = {"command": command, "commit": commit(), "date": today, "machine": where, **more}
    PLACE.mkdir(exist_ok=True)
    path = PLACE / f"{name}.json"
    path.write_text(json.dumps(found | {"tables": list(tables)}, indent=1, allow_nan=False) + "\n")
    return path


def commit() -> str:
    """Return the last commit that changed the package; with a plus if files were changed since.

    Commits of results and pages, which come after what they tell of, leave it as it is.
    """
    git = ["git", "-C", str(ROOT)]
    asked = [*git, "log", "-1", "--format=%h", "--abbrev=10", "--", "src"]
    told = subprocess.run(asked, capture_output=True, text=True)
    if told.returncode or not told.stdout.strip():
        return "unknown"
    changed = [*git, "status", "--porcelain", "--untracked-files=no", "--", *CODE]
    dirty = subprocess.run(changed, capture_output=True, text=True, check=True).stdout
    return told.stdout.strip() + ("+" if dirty else "")


@contextlib.contextmanager
def storing(
    name: str, *, wanted: bool, part: str = "", words: Sequence[str] | None = None
) -> Iterator[None]:
    """Store the tables in Markdown that are printed meanwhile, if that is wanted.

    Parameters
    ----------
    name
        What the file is called.
    wanted
        Whether to store them; they are printed either way.
    part
        What comes behind the name, of a command with several files.
    words
        The command after ``python -m``; by default that of this process.
    """
    heard = Heard(sys.stdout)
    with contextlib.redirect_stdout(heard) if wanted else contextlib.nullcontext():
        yield
    if wanted:
        given = [word for word in sys.argv[1:] if word != "--store"]
        told = " ".join(words or [f"benchmarks.{name}", *given])
        tables, lines = tables_in(heard.getvalue())
        put(f"{name}_{part}" if part else name, f"python -m {told}", tables, lines=lines)


class Heard(io.StringIO):
    """A stream that remembers what goes to another."""

    def __init__(self, other: Any) -> None:
        super().__init__()
        self.other = other

    def write(self, text: str) -> int:
        """Write to the other stream too."""
        self.other.write(text)
        return super().write(text)

    def flush(self) -> None:
        """Flush the other stream."""
        self.other.flush()


def tables_in(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tables in a text of Markdown, and all other lines.

    >>> tables_in("a\\n| x | y |\\n|---|---|\\n| 1 | 2 |\\nb")
    ([{'head': ['x', 'y'], 'rows': [['1', '2']]}], ['a', 'b'])
    """
    tables: list[dict[str, Any]] = []
    others, lines = list[str](), text.splitlines()
    for line, following in itertools.pairwise([*lines, ""]):
        if not line.startswith("|"):
            others += [line] if line.strip() else []
        elif RULE.match(following):
            tables.append({"head": cells_of(line), "rows": []})
        elif not RULE.match(line):
            tables[-1]["rows"].append(cells_of(line))
    return tables, others


def cells_of(line: str) -> list[str]:
    r"""Return the cells of a row; a bar behind a backslash is part of one.

    >>> cells_of(r"| \|S\| | 1 |")
    ['\\|S\\|', '1']
    """
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip() for cell in cells]
