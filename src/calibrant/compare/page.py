"""A comparison as one self-contained page, in the manner of :mod:`calibrant.report`."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calibrant.compare.comparison import KEYS, KINDS, Comparison, Row
from calibrant.compare.headline import sentences
from calibrant.plot.files import put
from calibrant.plot.pareto import prepare_pareto
from calibrant.report.page import Figure, figure, filled
from calibrant.report.tables import plainly, shown

ON_THE_STREAM: Final = (
    "Accuracy and calibration",
    "Brier score of the mean forecast against C2 of the announced one, on this stream. Nothing "
    "lies left of the line and below it.",
)
AGAINST: Final = (
    "Accuracy and safety",
    "The same Brier score against C2 in another game: raw forecasts by a coin, and an adversary "
    "that sees the mean and does the opposite.",
)


@dataclass(frozen=True)
class Cell:
    """A figure as it is printed, and whether it is the best of its column."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Line:
    """A method's line of the table."""

    row: Row
    front: bool
    cells: tuple[Cell, ...]


def write(
    comparison: Comparison, path: str | os.PathLike[str], *, command: str | None = None
) -> Path:
    """Write the page of a comparison; return the path.

    Parameters
    ----------
    comparison : Comparison
        What to tell.
    path : path
        An HTML file, written beside and then moved there in one step.
    command : str, optional
        What makes the same numbers again.
    """
    return put(path, render(comparison, command=command).encode())


def render(comparison: Comparison, *, command: str | None = None) -> str:
    """Return the page that :func:`write` writes."""
    return filled(
        "the page needs",
        "calibrant.compare",
        "comparison.html",
        title=f"Methods compared on {comparison.title}",
        sentences=sentences(comparison),
        facts=_facts(comparison),
        figures=_figures(comparison),
        header=[*KEYS.values(), "µs a round", "bytes"],
        lines=_lines(comparison),
        notes=_notes(comparison),
        kinds=KINDS,
        command=command,
        settings=_settings(comparison),
    )


def _facts(comparison: Comparison) -> list[str]:
    facts = [f"{comparison.rounds:,} rounds", f"base rate {shown(comparison.base_rate, 3)}"]
    if comparison.n_unresolved:
        facts.append(f"{comparison.n_unresolved:,} without an outcome")
    return [*facts, f"{len(comparison.rows)} methods", f"seed {comparison.seed}"]


def _figures(comparison: Comparison) -> list[Figure]:
    made = [_figure(comparison, "calibration_l2", "calibration error C2", ON_THE_STREAM)]
    if comparison.adversarial_rounds:
        made.append(_figure(comparison, "adversarial_l2", "C2 against the adversary", AGAINST))
    return made if comparison.rounds else []


def _figure(comparison: Comparison, key: str, axis: str, words: tuple[str, str]) -> Figure:
    points = comparison.points("brier", key)
    prepared = prepare_pareto(points, kinds=comparison.kinds, calibration=axis)
    told = f"{words[1]} Not beaten in both: {', '.join(prepared.front)}."
    return figure(prepared, key, words, told)


def _lines(comparison: Comparison) -> list[Line]:
    front = comparison.front()
    least = {key: min(_values(comparison, key), default=math.nan) for key in KEYS}
    return [
        Line(row, row.name in front, (*_scores(row, least), *_prices(comparison, row)))
        for row in comparison.ranked()
    ]


def _values(comparison: Comparison, key: str) -> list[float]:
    found = (getattr(row, key) for row in comparison.rows)
    return [value for value in found if not math.isnan(value)]


def _scores(row: Row, least: dict[str, float]) -> list[Cell]:
    return [Cell(shown(getattr(row, key)), getattr(row, key) == least[key]) for key in KEYS]


def _prices(comparison: Comparison, row: Row) -> list[Cell]:
    cost = comparison.microseconds(row.name)
    told = shown(cost, 0) if cost >= 100.0 or math.isnan(cost) else f"{cost:.3g}"
    return [Cell(told), Cell(f"{row.state_bytes:,}")]


def _notes(comparison: Comparison) -> list[str]:
    compiled = "with" if comparison.timing.get("compiler") else "without"
    notes = [
        "Brier score and log loss are those of the mean forecast; all calibration errors are "
        "those of the forecast that is announced, which recalibrators draw from a grid. Their C1 "
        "and C2 are over exact values, those of all others over 20 equal buckets; the smooth "
        "error needs neither.",
        "A dot marks methods that no other one beats in both Brier score and C2; the best figure "
        "of each column is bold. Noise decides between figures that are close.",
        f"Processor time of one round, {compiled} a compiler, measured once: it differs from "
        "machine to machine and from run to run. Bytes are what must be kept to go on.",
    ]
    notes += [f"The worst window is one of {comparison.window:,} rounds."] * bool(comparison.window)
    if comparison.adversarial_rounds:
        notes.append(
            f"Adversarial C2 is not about this stream: {comparison.adversarial_rounds:,} rounds "
            "with raw forecasts of 0 or 1 by a coin, and an outcome that is 1 exactly when the "
            "announced mean is at most one half (Kuleshov and Ermon 2017); over exact values. "
            "Nothing without a coin can be below 0.25."
        )
    if comparison.absent:
        names = " and ".join(KINDS[kind] for kind in comparison.absent)
        notes.append(f"Not installed here, and therefore missing: {names}.")
    return notes


def _settings(comparison: Comparison) -> list[tuple[str, str]]:
    told = {
        "seed": comparison.seed,
        "window": comparison.window,
        "adversarial rounds": comparison.adversarial_rounds,
        **comparison.settings,
    }
    return [(name, plainly(value)) for name, value in told.items()]
