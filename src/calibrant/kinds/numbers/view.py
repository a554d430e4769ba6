"""What a report says about forecasts of numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.kinds.binary.view import EARLY
from calibrant.kinds.numbers.summary import NAMES, NumberSummary
from calibrant.plot import Drawing
from calibrant.plot.coverage import CoverageOverTime, PitBars, QuantileReliability
from calibrant.report.tables import (
    Section,
    Table,
    count_lines,
    number,
    printed,
    rounds_told,
    settings,
    shown,
)

FAMILY: Final = "numbers"
COMPARED: Final = (("CRPS", "crps"), ("coverage error", "coverage_error"))
SECTIONS: Final = (
    Section(
        "meaning",
        "Do quantiles mean what they say?",
        ("quantile_reliability", "pit_histogram"),
        ("scores",),
    ),
    Section("time", "Does it hold all the time?", ("coverage_over_time",)),
    Section("trust", "Can it be trusted?", tables=("levels",), guarantee=True),
)
SCORES: Final = (
    ("CRPS", "crps", "distance of distribution and outcome; lower is better"),
    ("Pinball loss", "pinball", "mean over levels; lower is better"),
    ("Quantile calibration error", "quantile_calibration_error", "sum of squared distances"),
    ("Coverage error", "coverage_error", "mean distance of coverage from its level"),
    ("PIT error", "pit_error", "squared distance from a flat histogram"),
    ("Infinite quantiles", "infinite", "share; left out of the pinball loss"),
)
ROWS: Final = {
    "crps": "CRPS",
    "pinball": "pinball loss, mean of levels",
    "quantile_calibration_error": "quantile calibration error",
    "coverage_error": "coverage off by, on average",
    "pit_error": "PIT histogram, squared error",
    "infinite": "share of infinite quantiles",
}
LEVEL: Final = ("level", "raw covered", "covered", "raw pinball", "pinball")
LEVEL_KEYS: Final = ("coverage_raw", "coverage_forecast", "pinball_raw", "pinball_forecast")
PROMISES: Final = {
    None: "Nothing is promised here that could be checked.",
    True: "The guarantee was kept at every level.",
    False: "A bound was exceeded in this run. That happens in few runs if the assumptions hold.",
}
GUARANTEES: Final = {
    "mixed": "Experts shift and scale the distributions; the chances that are drawn at each level "
    "of their mixture in this run are promised to be calibrated whatever the outcomes, in all but "
    "5 % of runs, as long as nobody knows a draw before its outcome is settled.",
    "pit": "The chances that are drawn at each level of this run are promised to be "
    "calibrated whatever the outcomes, in all but 5 % of runs, as long as nobody "
    "knows a draw before its outcome is settled.",
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


def words(name: str, summary: NumberSummary) -> tuple[str, str]:
    """Return title and caption of a picture."""
    return WORDS[name]


def opening(summary: NumberSummary) -> tuple[str, ...]:
    """Return how often outcomes fell where they should, before and now, and what it cost."""
    told, inside = summary.summary, summary["interval"]
    if not told["n_rounds"]:
        return ("No outcome is known yet, so nothing can be said.",)
    before, now = (f"{100.0 * inside[name]:.1f} %" for name in NAMES)
    crps = " → ".join(f"{told[name]['crps']:.4g}" for name in NAMES)
    single = len(told["levels"]) == 1
    what = (
        f"{inside['high']:g} quantile" if single else f"{100.0 * inside['target']:.0f} % interval"
    )
    verb = ("was above", "is above") if single else ("held", "holds")
    return (
        f"Your {what} {verb[0]} {before} of outcomes; now it {verb[1]} {now}.",
        f"CRPS {crps} (lower is better).",
    )


def facts(summary: NumberSummary) -> tuple[str, ...]:
    """Return what stands below the headline."""
    told = summary.summary
    counts = [rounds_told(int(told["n_rounds"])), f"{len(told['levels'])} levels"]
    for key, words in (("n_skipped", "rows skipped"), ("n_unresolved", "without an outcome yet")):
        if told[key]:
            counts.append(f"{int(told[key]):,} {words}")
    seed = "no seed" if told["seed"] is None else f"seed {told['seed']}"
    return (*counts, f"{told['method']}, {seed}")


def promise(summary: NumberSummary) -> str:
    """Return whether the guarantee was kept."""
    if summary["certificate_holds"] is None and (first := _first(summary.summary)) is not None:
        return EARLY.format("anything", first)
    return PROMISES[summary["certificate_holds"]]


def _first(told: dict[str, Any]) -> int | None:
    """Return from about which round on something is promised, if it is too early."""
    found = [row["early"] for row in told.get("levels", ()) if row.get("early") is not None]
    return min(found, default=None)


def guarantee(summary: NumberSummary) -> str:
    """Return what is promised at all."""
    return GUARANTEES[summary["method"]]


def tables(summary: NumberSummary) -> dict[str, Table | None]:
    """Return the tables by name."""
    told = summary.summary
    rows = [
        (title, *(shown(told[name][key]) for name in NAMES), words) for title, key, words in SCORES
    ]
    header = ("", "raw", "recalibrated", "what it is")
    levels, quantity = _levels(told, shown)
    notes = (f"The error is {quantity}, which the bound is about.",)
    return {
        "scores": Table("Scores", header, tuple(rows), (0, 3)),
        "levels": Table("Level by level", (*LEVEL, "error", "bound"), levels, (0,), notes),
        "settings": settings(summary),
    }


def _levels(told: dict[str, Any], text: Any) -> tuple[tuple[tuple[str, ...], ...], str]:
    """Return each level, how often it was covered and its loss, and the quantity of its bound."""
    keys, rows = (*LEVEL_KEYS, "measured", "sure"), told["levels"]
    cells = ((f"{row['level']:g}", *(text(row.get(key)) for key in keys)) for row in rows)
    return tuple(cells), rows[0]["quantity"]


def drawings(summary: NumberSummary) -> dict[str, Drawing]:
    """Return the pictures by name; needs no matplotlib."""
    told, trace = summary.summary, summary.trace
    levels = np.array([row["level"] for row in told["levels"]])
    rows = told["levels"]
    coverage = {n: np.array([number(row[f"coverage_{n}"]) for row in rows]) for n in NAMES}
    series = {name: np.array(trace[name], np.float64) for name in NAMES}
    ends, target = np.array(trace["rounds"], np.int64), float(told["interval"]["target"])
    return {
        "quantile_reliability": QuantileReliability(levels, coverage),
        "pit_histogram": PitBars(summary.pit),
        "coverage_over_time": CoverageOverTime(target, ends, series, int(trace["window"])),
    }


chosen = drawings
"""Returns the pictures that a report shows: all of them."""


def describe(name: str, summary: NumberSummary) -> str:
    """Return a picture in words."""
    return WORDS[name][1]


def code(summary: NumberSummary) -> str:
    """Return the Python that makes the same recalibrator."""
    told: dict[str, Any] = dict(summary.settings)
    names = ("levels", "ties", "calibrator", "prior", "resolution", "step", "seed")
    words = [f"{name}={told[name]!r}" for name in names if name in told]
    return f"QuantileRecalibrator({', '.join([repr(told['method']), *words])})"


def screen(summary: NumberSummary, details: bool = False) -> tuple[list[Table], list[str]]:
    """Return the table before and after, the one of levels, and the lines below them."""
    told = summary.summary
    rows = [[title, *(printed(told[name][key]) for name in NAMES)] for key, title in ROWS.items()]
    seed = "no seed" if told["seed"] is None else f"seed {told['seed']}"
    title = f"{rounds_told(told['n_rounds'])}, {told['method']}, {seed}"
    early = told["certificate_holds"] is None
    lines = [*([] if early else ["proven for each level: the bounds above"]), *count_lines(told)]
    levels, quantity = _levels(told, printed)
    tables = Table.of(title, ("", *NAMES), rows), Table("", (*LEVEL, quantity, "bound"), levels)
    return list(tables), lines
