"""The bars, one line each, and what was reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.quality.streams import SHORT, Stream

__all__ = ["Field", "Line", "Scores", "game_lines", "stream_lines", "table"]

Scores = dict[str, float]
Field = dict[str, Scores]
Rival = tuple[str, Scores]
NAMED = {
    "drift": {"brier": 0.1722, "worst_block": 0.002},
    "wiggle": {"brier": 0.174, "worst_block": 0.0025},
}
LATE = ("538 governors", "SPF recessions")
"""Late streams on which C2 is held against the raw forecast's; others are reported."""
PAPER = "threshold, raw Bernoulli(1/2)"


@dataclass(frozen=True)
class Line:
    """One figure of one stream, and its bar where there is one."""

    stream: str
    what: str
    raw: float
    best: float
    by: str
    ours: float
    bar: float
    binding: bool = True
    chose: bool = True
    """Whether the default was chosen with a look at this stream."""

    @property
    def met(self) -> bool:
        """Whether the figure is within the bar."""
        return self.ours <= self.bar

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {**asdict(self), "met": self.met}

    def cells(self) -> tuple[str, ...]:
        """Return the line as it is printed."""
        told = "met" if self.met else ("MISSED" if self.binding else "over, not binding")
        figures = (f"{x:.5f}" for x in (self.raw, self.best, self.ours, self.bar))
        raw, best, ours, bar = figures
        return self.stream, self.what, raw, best, self.by, ours, bar, told


def stream_lines(
    stream: Stream, outsiders: Field, own: Field, ours: Scores, resolution: int
) -> Iterator[Line]:
    """Yield the figures of a stream: against outsiders, and against parts of the package."""
    raw, rounds, chose = outsiders["raw"], len(stream), stream.kind != "held out"
    binding, nobody = rounds >= SHORT and chose, ("", Scores())

    def line(
        what: str, score: str, bar: float, counts: bool = binding, rival: Rival = nobody
    ) -> Line:
        theirs = raw.get(score, float("nan")), rival[1].get(score, float("nan"))
        return Line(stream.name, what, *theirs, rival[0], ours[score], bar, counts, chose)

    for who, field in (("outsiders", outsiders), ("own", own)):
        if not field:
            continue
        best = min(field.items(), key=lambda item: item[1]["brier"])
        bar = 1.01 * best[1]["brier"] + 2.0 / rounds
        yield line(f"Brier, {who}", "brier", bar, rival=best)
    yield line("Brier, raw", "brier", raw["brier"] + 0.002)
    if stream.delayed:
        yield line("C2, raw", "c2", raw["c2_in_bins"], stream.name in LATE)
        return
    floor = 0.25 / resolution**2
    yield line("C2", "c2", 20.0 / rounds + floor, stream.kind != "held out")
    if stream.kind == "real" and rounds >= 5_000:
        yield line("worst block", "worst_block", 0.006)
    for score, bar in NAMED.get(stream.name, {}).items():
        yield line(f"{score} of {stream.name}", score, bar)


def game_lines(name: str, ours: Scores, rounds: int, resolution: int) -> Iterator[Line]:
    """Yield the figures of a game."""

    def line(what: str, score: str, bar: float) -> Line:
        return Line(name, what, ours["raw"], float("nan"), "", ours[score], bar)

    yield line("C2", "c2", 20.0 / rounds + 0.25 / resolution**2)
    yield line("worst block", "worst_block", 0.008)
    if name == PAPER:
        yield line("C2, the paper's", "c2", 0.0015)


def table(lines: list[Line]) -> str:
    """Return the lines in columns."""
    heads = ("stream", "what", "raw", "best", "by", "ours", "bar", "")
    rows = [heads, *(line.cells() for line in lines)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    text = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in text)
