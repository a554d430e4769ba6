"""What a report says about forecasts of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from calibrant.plot import Drawing
from calibrant.plot.canvas import png, svg
from calibrant.plot.coverage import CoverageOverTime, QuantileReliability
from calibrant.plot.files import put
from calibrant.plot.pit import PitBars
from calibrant.plot.vector import inline, settled
from calibrant.report.figures import DPI, Figure
from calibrant.report.judge import number
from calibrant.report.tables import Table, settings, shown
from calibrant.summary import NumberStory

__all__ = [
    "number_code",
    "number_drawings",
    "number_facts",
    "number_figures",
    "number_guarantee",
    "number_headline",
    "number_promise",
    "number_tables",
    "save_numbers",
]

BOTH: Final = ("raw", "forecast")
SCORES: Final = (
    ("CRPS", "crps", "distance of distribution and outcome; lower is better"),
    ("Pinball loss", "pinball", "mean over levels; lower is better"),
    ("Quantile calibration error", "quantile_calibration_error", "sum of squared distances"),
    ("Coverage error", "coverage_error", "mean distance of coverage from its level"),
    ("PIT error", "pit_error", "squared distance from a flat histogram"),
    ("Infinite quantiles", "infinite", "share; left out of the pinball loss"),
)
GUARANTEES: Final = {
    "pit": "The chances that are drawn at each level are promised to be calibrated, on average "
    "over the draws and whatever the outcomes, as long as nobody knows a draw before its outcome "
    "is settled.",
    "tracker": "The coverage of each level, before quantiles are put in order, is promised for "
    "every sequence of outcomes whatsoever.",
}
WORDS: Final = {
    "quantile_reliability": (
        "What quantiles meant",
        "Share of outcomes below each quantile against its level. On the dotted line quantiles "
        "mean what they say.",
    ),
    "pit_histogram": (
        "Where outcomes fell",
        "Histogram of the PIT: flat if distributions are right, a cup if they are too narrow, a "
        "slope if they are off to one side.",
    ),
    "coverage_over_time": (
        "Coverage over time",
        "Share of outcomes between the outermost quantiles, in stretches of rounds; with a "
        "single level, below its quantile.",
    ),
}


def number_headline(story: NumberStory) -> str:
    """Return the run in one sentence."""
    told, inside = story.summary, story.summary["interval"]
    if not told["n_rounds"]:
        return "No outcome is known yet, so nothing can be said."
    before, now = (f"{inside[name]:.1%}" for name in BOTH)
    crps = " → ".join(f"{told[name]['crps']:.4g}" for name in BOTH)
    single = len(told["levels"]) == 1
    what = f"{inside['high']:g} quantile" if single else f"{inside['target']:.0%} interval"
    verb = ("was above", "is above") if single else ("held", "holds")
    return (
        f"Your {what} {verb[0]} {before} of outcomes; now it {verb[1]} {now}; "
        f"CRPS {crps} (lower is better)."
    )


def number_facts(story: NumberStory) -> tuple[str, ...]:
    """Return what stands below the headline."""
    told = story.summary
    counts = [f"{int(told['n_rounds']):,} rounds", f"{len(told['levels'])} levels"]
    for key, words in (("n_skipped", "rows skipped"), ("n_unresolved", "without an outcome yet")):
        if told[key]:
            counts.append(f"{int(told[key]):,} {words}")
    seed = "no seed" if told["seed"] is None else f"seed {told['seed']}"
    return (*counts, f"{told['method']}, {seed}")


def number_promise(story: NumberStory) -> str:
    """Return whether the guarantee was kept."""
    holds = story.summary["certificate_holds"]
    if holds is None:
        return "Nothing is promised here that could be checked."
    if holds:
        return "The guarantee was kept at every level."
    return (
        "A bound was exceeded in this run. Bounds on draws hold on average over them, so a single "
        "run may exceed a tight one."
    )


def number_guarantee(story: NumberStory) -> str:
    """Return what is promised at all."""
    return GUARANTEES[story.summary["method"]]


def number_tables(story: NumberStory) -> dict[str, Table | None]:
    """Return the tables by name."""
    told = story.summary
    rows = [
        (title, *(shown(told[name][key]) for name in BOTH), words) for title, key, words in SCORES
    ]
    header = ("", "raw", "recalibrated", "what it is")
    return {
        "scores": Table("Scores", header, tuple(rows), (0, 3)),
        "levels": _levels(story),
        "settings": settings(story),
    }


def _levels(story: NumberStory) -> Table:
    header = ("level", "raw covered", "covered", "raw pinball", "pinball", "error", "bound")
    keys = ("coverage_raw", "coverage_forecast", "pinball_raw", "pinball_forecast")
    rows = [
        (
            f"{row['level']:g}",
            *(shown(row[key]) for key in (*keys, "measured", "bound")),
        )
        for row in story.summary["levels"]
    ]
    quantity = story.summary["levels"][0]["quantity"]
    note = f"The error is {quantity}, which the bound is about."
    return Table("Level by level", header, tuple(rows), (0,), (note,))


def number_drawings(story: NumberStory) -> dict[str, Drawing]:
    """Return the pictures by name; needs no matplotlib."""
    told, trace = story.summary, story.trace
    levels = np.array([row["level"] for row in told["levels"]])
    coverage = {
        name: np.array([number(row[f"coverage_{name}"]) for row in told["levels"]]) for name in BOTH
    }
    series = {name: np.array(trace[name], np.float64) for name in BOTH}
    ends, target = np.array(trace["rounds"], np.int64), float(told["interval"]["target"])
    return {
        "quantile_reliability": QuantileReliability(levels, coverage),
        "pit_histogram": PitBars(story.pit),
        "coverage_over_time": CoverageOverTime(target, ends, series, int(trace["window"])),
    }


def number_figures(story: NumberStory, prefix: str) -> dict[str, Figure]:
    """Return the pictures as elements of a page."""
    made = {}
    for name, drawing in number_drawings(story).items():
        title, caption = WORDS[name]
        drawn = svg(drawing.draw().figure)
        made[name] = Figure(title, caption, inline(drawn, f"{prefix}-{name}", title, caption))
    return made


def save_numbers(story: NumberStory, directory: Path) -> None:
    """Write the pictures as PNG and SVG."""
    for name, drawing in number_drawings(story).items():
        figure = drawing.draw().figure
        put(directory / f"{name}.png", png(figure, DPI))
        put(directory / f"{name}.svg", settled(svg(figure)).encode())


def number_code(story: NumberStory) -> str:
    """Return the Python that makes the same recalibrator."""
    told: dict[str, Any] = dict(story.settings)
    names = ("levels", "ties", "calibrator", "prior", "resolution", "step", "seed")
    words = [f"{name}={told[name]!r}" for name in names if name in told]
    return f"QuantileRecalibrator({', '.join([repr(told['method']), *words])})"
