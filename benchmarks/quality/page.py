"""The figures as a table for the documentation."""

from __future__ import annotations

import math
import pathlib
import re
from collections.abc import Iterable
from itertools import groupby

from benchmarks.quality.bars import Line

__all__ = ["fill"]

PLACE = re.compile(r"(<!-- the panel starts -->\n).*?(<!-- the panel stops -->\n)", re.DOTALL)
STREAMS = (
    "stream", "raw", "best outsider", "best of our own parts", "ours", "bar", "C2", "bar",
    "worst block", "missed",
)  # fmt: skip
ACCURACY = ("Brier, outsiders", "Brier, own", "Brier, raw")
CHOSE = "Streams that were looked at when the default was chosen."
CHOSE_NOTHING = "Streams that chose nothing: no setting was picked with a look at these."
GAMES = ("adversary", "loss of raw", "C2", "bar", "worst block", "bar", "missed")


def fill(path: pathlib.Path, lines: list[Line]) -> None:
    """Write the tables between the two marks of a page."""
    text = path.read_text()
    found = [list(group) for _, group in groupby(lines, lambda line: line.stream)]
    streams = [group for group in found if group[0].what.startswith("Brier")]
    games = [group for group in found if not group[0].what.startswith("Brier")]
    parts = [f"{_count(lines)}\n"]
    for chose, words in ((False, CHOSE_NOTHING), (True, CHOSE)):
        kept = [group for group in streams if group[0].chose is chose]
        parts += [f"{words} {_beaten(kept)}\n", _table(STREAMS, map(_stream, kept))]
    parts += [_table(GAMES, map(_game, games))] if games else []
    told = "\n".join(parts)
    path.write_text(PLACE.sub(lambda mark: f"{mark[1]}{told}{mark[2]}", text))


def _count(lines: list[Line]) -> str:
    """Return how many bars were met, against outsiders and otherwise."""
    binding = [line for line in lines if line.binding]
    outside = [line for line in binding if line.what == "Brier, outsiders"]
    met, first = sum(line.met for line in binding), sum(line.met for line in outside)
    told = f"{met} of {len(binding)} bars met"
    return f"{told}; of those against the best outsider, {first} of {len(outside)}."


def _beaten(streams: list[list[Line]]) -> str:
    """Return on how many streams nobody had the lower Brier score."""
    first = sum(group[0].ours <= group[0].best for group in streams)
    known = [{line.what: line.best for line in group} for group in streams]
    both = sum(
        group[0].ours <= min(group[0].best, best.get("Brier, own", math.inf))
        for group, best in zip(streams, known, strict=True)
    )
    many = len(streams)
    return (
        f"The default is at least as accurate as every outsider on {first} of {many}, and as "
        f"every other method, its own parts included, on {both}."
    )


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    safe = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "".join("| " + " | ".join(line) + " |\n" for line in safe)


def _stream(lines: list[Line]) -> tuple[str, ...]:
    first, at = lines[0], {line.what: line for line in lines}
    c2, own = at.get("C2", at.get("C2, raw")), at.get("Brier, own")
    block = at.get("worst block", at.get(f"worst_block of {first.stream}"))
    assert c2 is not None
    return (
        first.stream,
        f"{first.raw:.4f}",
        f"{first.best:.4f} {first.by}",
        f"{own.best:.4f} {own.by}" if own is not None else "not played",
        f"{first.ours:.4f}",
        f"{min(line.bar for line in lines if line.what in ACCURACY):.4f}",
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
