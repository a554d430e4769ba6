"""What the demo prints: with rich where it is installed, as plain text elsewhere."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Final

WIDTH: Final = 100
"""Columns that a table may take, however narrow the window: broken lines lose nothing."""


def has_rich() -> bool:
    """Return whether rich is installed."""
    return importlib.util.find_spec("rich") is not None


def say(text: str) -> None:
    """Print a line or more."""
    print(text, flush=True)


def heading(text: str) -> None:
    """Print the title of a part."""
    if not has_rich():
        say(f"\n{text}\n{'=' * len(text)}\n")
        return
    from rich.console import Console

    Console().print(f"\n{text}\n", style="bold", highlight=False)


def table(title: str, columns: Mapping[str, str], rows: list[list[str]]) -> None:
    """Print a table; ``columns`` maps headings to ``"left"`` or ``"right"``."""
    if not has_rich():
        say(f"{plain_table(title, columns, rows)}\n")
        return
    from rich.console import Console

    from calibrant.cli import screen

    Console(width=WIDTH).print(screen.table(title, columns, rows), "")


def plain_table(title: str, columns: Mapping[str, str], rows: list[list[str]]) -> str:
    """Return a table as text.

    >>> print(plain_table("Two", {"who": "left", "loss": "right"}, [["raw", "0.5"], ["ours", "0"]]))
    Two
    who   loss
    raw    0.5
    ours     0
    """
    lines = [list(columns), *rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    sides = ["<" if side == "left" else ">" for side in columns.values()]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    return "\n".join([title, *(form.format(*line).rstrip() for line in lines)])
