"""The figures as a table for the documentation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import groupby

from benchmarks.quality.bars import Line

__all__ = ["tables"]

STREAMS = (
    "stream", "raw", "best outsider", "best of our own parts", "ours", "bar", "C2", "bar",
    "worst block", "missed",
)  # fmt: skip
ACCURACY = ("Brier, outsiders", "Brier, own", "Brier, raw")
KINDS = {False: "chose no experts and no grid", True: "looked at when the default was chosen"}
"""Streams, by whether a setting was picked with a look at them."""
COUNTS = (
    "streams", "number", "bars met", "against the best outsider",
    "as accurate as every outsider", "as every method, its own parts included",
)  # fmt: skip
GAMES = ("adversary", "loss of raw", "C2", "bar", "worst block", "bar", "missed")


def tables(lines: list[Line]) -> Iterator[str]:
    """Yield tables in Markdown: what was met, streams by kind, and games, those that are there."""
    found = [list(group) for _, group in groupby(lines, lambda line: line.stream)]
    streams = [group for group in found if group[0].what.startswith("Brier")]
    games = [group for group in found if not group[0].what.startswith("Brier")]
    kinds = {name: [group for group in streams if group[0].chose is chose]
             for chose, name in KINDS.items()}  # fmt: skip
    kinds = {name: kept for name, kept in kinds.items() if kept}
    if kinds:
        yield _table(COUNTS, (_count(name, kept) for name, kept in kinds.items()))
    for kept in kinds.values():
        yield _table(STREAMS, map(_stream, kept))
    if games:
        yield _table(GAMES, map(_game, games))


def _count(name: str, streams: list[list[Line]]) -> tuple[str, ...]:
    """Return how many bars were met, and on how many streams nobody had the lower Brier score."""
    binding = [line for group in streams for line in group if line.binding]
    outside = [line for line in binding if line.what == "Brier, outsiders"]
    first = sum(group[0].ours <= group[0].best for group in streams)
    known = [{line.what: line.best for line in group} for group in streams]
    both = sum(
        group[0].ours <= min(group[0].best, best.get("Brier, own", math.inf))
        for group, best in zip(streams, known, strict=True)
    )
    met = [f"{sum(line.met for line in each)} of {len(each)}" if each else "no bar"
           for each in (binding, outside)]  # fmt: skip
    return name, f"{len(streams)}", *met, f"{first}", f"{both}"


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
