"""Where pages take their figures from: ``docs/results/NAME.json``, written by ``--store``.

A file holds the tables that a command printed, cell by cell, beside the command, the commit, the
date, the machine with its load, and versions.  ``docs/tables.py`` writes them into pages, between
markers; a test compares.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import itertools
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

__all__ = ["PLACE", "commit", "put", "storing", "tables_in"]

ROOT = pathlib.Path(__file__).parents[1]
PLACE = ROOT / "docs" / "results"
CODE = ("src", "benchmarks", "script")
"""What a result depends on, of all that is in the repository."""


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
    """Return the commit that is measured; with a plus if files were changed since."""
    git = ["git", "-C", str(ROOT)]
    told = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True)
    if told.returncode:
        return "unknown"
    changed = [*git, "status", "--porcelain", "--untracked-files=no", "--", *CODE]
    dirty = subprocess.run(changed, capture_output=True, text=True, check=True).stdout
    return told.stdout.strip() + ("+" if dirty else "")


@contextlib.contextmanager
def storing(name: str, *, wanted: bool, words: Sequence[str] | None = None) -> Iterator[None]:
    """Store the tables in Markdown that are printed meanwhile, if that is wanted.

    Parameters
    ----------
    name
        What the file is called.
    wanted
        Whether to store them; they are printed either way.
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
        put(name, f"python -m {told}", tables, lines=lines)


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
        elif following.startswith("|---"):
            tables.append({"head": cells_of(line), "rows": []})
        elif not line.startswith("|---"):
            tables[-1]["rows"].append(cells_of(line))
    return tables, others


def cells_of(line: str) -> list[str]:
    """Return the cells of a row."""
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
