"""The figures as a table for the documentation."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterable
from itertools import groupby

from benchmarks.quality.bars import Line

__all__ = ["fill"]

PLACE = re.compile(r"(<!-- the panel starts -->\n).*?(<!-- the panel stops -->\n)", re.DOTALL)
STREAMS = ("stream", "raw", "best rival", "ours", "bar", "C2", "bar", "worst block", "missed")
GAMES = ("adversary", "loss of raw", "C2", "bar", "worst block", "bar", "missed")


def fill(path: pathlib.Path, lines: list[Line]) -> None:
    """Write the tables between the two marks of a page."""
    text = path.read_text()
    found = [list(group) for _, group in groupby(lines, lambda line: line.stream)]
    streams = [group for group in found if group[0].what.startswith("Brier")]
    games = [group for group in found if not group[0].what.startswith("Brier")]
    parts = _table(STREAMS, map(_stream, streams)), _table(GAMES, map(_game, games))
    binding = [line for line in lines if line.binding]
    met = sum(line.met for line in binding)
    told = f"{met} of {len(binding)} bars met.\n\n" + "\n".join(parts)
    path.write_text(PLACE.sub(lambda mark: f"{mark[1]}{told}{mark[2]}", text))


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    safe = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "".join("| " + " | ".join(line) + " |\n" for line in safe)


def _stream(lines: list[Line]) -> tuple[str, ...]:
    first, at = lines[0], {line.what: line for line in lines}
    c2 = at.get("C2", at.get("C2, raw"))
    block = at.get("worst block", at.get(f"worst_block of {first.stream}"))
    assert c2 is not None
    return (
        first.stream,
        f"{first.raw:.4f}",
        f"{first.best:.4f} {first.by}",
        f"{first.ours:.4f}",
        f"{min(first.bar, at['Brier, raw'].bar):.4f}",
        f"{c2.ours:.5f}",
        f"{c2.bar:.5f}",
        "" if block is None else f"{block.ours:.4f}",
        _missed(lines),
    )


def _game(lines: list[Line]) -> tuple[str, ...]:
    c2, block = lines[0], lines[1]
    figures = f"{c2.ours:.5f}", f"{c2.bar:.5f}", f"{block.ours:.4f}", f"{block.bar:.4f}"
    return c2.stream, f"{c2.raw:.4f}", *figures, _missed(lines)


def _missed(lines: list[Line]) -> str:
    over = [line for line in lines if not line.met]
    return ", ".join(line.what if line.binding else f"({line.what})" for line in over)
