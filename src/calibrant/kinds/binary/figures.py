"""The pictures of a report on probabilities, with the words that belong to them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.groups import GroupRow
from calibrant.kinds.binary.judge import spread
from calibrant.plot import Drawing, prepare_all
from calibrant.plot.reliability import GroupPanels
from calibrant.report.tables import shown
from calibrant.summary import Part, Summary

ACROSS: Final = 3
"""Small multiples side by side."""

WORDS: Final = {
    "reliability": (
        "What forecasts meant",
        "How often it happened against how likely it was said to be, in 20 equal buckets. On the "
        "dotted line forecasts mean what they say. Marks grow with the number of rounds, bars "
        "are exact 95 % binomial limits, and the strip counts rounds.",
    ),
    "reliability_mean": (
        "The same for the mean forecast",
        "The mean forecast is what the drawn one is on average: it lacks the noise of the draw, "
        "and the guarantee, which is about the drawn one.",
    ),
    "buckets": (
        "What became of your forecasts",
        "For each bucket of raw forecasts: the average you said, the average said now, and how "
        "often it happened, with exact 95 % binomial limits.",
    ),
    "calibration_over_time": (
        "Calibration error over time",
        "Squared calibration error of all rounds so far, on a logarithmic axis, and what the "
        "theorem promises in the worst case, against any adversary.",
    ),
    "calibration_l1_over_time": (
        "Calibration error C1 over time",
        "Of the drawn forecasts over all rounds so far, on a logarithmic axis, and what the "
        "theorem promises in the worst case, against any adversary.",
    ),
    "brier_over_time": ("Accuracy over time", "Brier score of all rounds so far; lower is better."),
    "windows": (
        "Calibration error window by window",
        "Squared calibration error of consecutive stretches of rounds; the worst ones are shaded. "
        "Noise adds to each.",
    ),
    "histogram": (
        "How forecasts are spread",
        "Share of rounds by forecast: raw upwards, recalibrated and drawn downwards.",
    ),
    "groups_raw": (
        "Group by group, before",
        "How often it happened against how likely you said it was, in the groups with the most "
        "rounds, in 20 equal buckets with exact 95 % binomial limits.",
    ),
    "groups": ("Group by group, now", "The same for the recalibrated forecasts, as drawn."),
    "classes_raw": (
        "Class by class, before",
        "How often each class came against how likely you said it was, in 20 equal buckets with "
        "exact 95 % binomial limits; beyond 20 classes, of the rounds in which it came first.",
    ),
    "classes": ("Class by class, now", "The same for the recalibrated forecasts, as drawn."),
    "decomposition": (
        "What the Brier score is made of",
        "The solid end of a bar is what miscalibration adds; the dashed line is the score of "
        "always saying the base rate.",
    ),
}

NAMES: Final = {"group": ("groups_raw", "groups"), "class": ("classes_raw", "classes")}


def part_drawings(summary: Summary) -> dict[str, Drawing]:
    """Return small multiples of the largest groups or classes, before and after."""
    if summary.parts is None or not summary.parts.curves:
        return {}
    kept = [row for row in summary.parts.rows if row.name in summary.parts.curves]
    panels = []
    for after in (False, True):
        curves = {name: pair[after] for name, pair in summary.parts.curves.items()}
        rows = tuple(_row(part, after) for part in kept)
        panels.append(GroupPanels(curves, rows, min(ACROSS, len(rows))))
    return dict(zip(NAMES[summary.parts.kind], panels, strict=True))


def _row(part: Part, after: bool) -> GroupRow:
    said, c1, c2 = (
        (part.mean_forecast, part.c1_forecast, part.c2_forecast)
        if after
        else (part.mean_raw, part.c1_raw, part.c2_raw)
    )
    return GroupRow(part.name, part.rounds, said, part.rate, c1, c2)


def drawings(summary: Summary) -> dict[str, Drawing]:
    """Return every picture by name; needs no matplotlib."""
    return prepare_all(summary) | part_drawings(summary)


def chosen(summary: Summary) -> dict[str, Drawing]:
    """Return the drawings that tell something: C1 over time only if the theorem is about C1."""
    found, trace = drawings(summary), summary.trace
    if np.isfinite(trace.bound_c2).any() or not np.isfinite(trace.bound_c1).any():
        del found["calibration_l1_over_time"]
    return found


def describe(name: str, summary: Summary) -> str:
    """Return the numbers that matter most, for those who cannot see the picture."""
    told = summary.summary
    pairs = {
        "reliability": ("average distance from the line", *_gaps(summary, "raw", "forecast")),
        "reliability_mean": ("average distance from the line", *_gaps(summary, "raw", "mean")),
        "calibration_over_time": ("C2 in the end", *_scores(told, "calibration_l2")),
        "brier_over_time": ("Brier score in the end", *_scores(told, "brier")),
        "windows": ("worst window", *_scores(told, "worst_window_l2")),
        "decomposition": ("miscalibration", *_miscalibration(summary)),
    }
    if name not in pairs:
        return WORDS[name][1]
    what, before, after = pairs[name]
    return f"{WORDS[name][1]} {what[0].upper()}{what[1:]}: {before} before, {after} after."


def _gaps(summary: Summary, before: str, after: str) -> tuple[str, str]:
    return shown(spread(summary.curves[before])), shown(spread(summary.curves[after]))


def _scores(told: dict[str, Any], key: str) -> tuple[str, str]:
    return shown(told["raw"][key]), shown(told["forecast"][key])


def _miscalibration(summary: Summary) -> tuple[str, str]:
    raw, now = (summary.decompositions[name] for name in ("raw", "forecast"))
    return shown(raw.reliability), shown(now.reliability)
