"""How a run on probabilities is shown: on a page and on a screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from calibrant.groups import GroupRow
from calibrant.kinds.binary.headline import opening as opening
from calibrant.kinds.binary.judgement import spread
from calibrant.kinds.binary.tables import screen as screen
from calibrant.kinds.binary.tables import tables as tables
from calibrant.plot import Drawing, prepare_all
from calibrant.plot.reliability import GroupPanels
from calibrant.recalibrate.promise import FAILURE
from calibrant.registry import calibrators
from calibrant.report.tables import Section, number, rounds_told, shown, too_early
from calibrant.summary import Part, Summary

FAMILY: Final = "probabilities"
COMPARED: Final = (("Brier", "brier"), ("C2", "calibration_l2"))
MEANING: Final = ("reliability", "reliability_mean")
TIME: Final = ("calibration_over_time", "calibration_l1_over_time", "windows")
PARTS: Final = ("groups_raw", "groups", "classes_raw", "classes")
SECTIONS: Final = (
    Section("meaning", "Do forecasts mean what they say?", MEANING, ("scores",)),
    Section("time", "Does it hold all the time?", TIME, ("windows",)),
    Section("cost", "Did it cost accuracy?", ("brier_over_time", "decomposition"), ("brier",)),
    Section("buckets", "What became of your forecasts?", ("buckets", "histogram"), ("buckets",)),
    Section("parts", "Does it hold for each of them?", PARTS, ("parts",), wide=True),
    Section("trust", "Can it be trusted?", tables=("promises", "chain"), guarantee=True),
)

GUARANTEE: Final = (
    "The drawn forecasts of this run are promised to be calibrated whatever the outcomes, in all "
    "but {} of runs, as long as nobody knows a draw before its outcome is settled, and draws do "
    "not decide which outcomes are reported. Raw and mean forecasts carry no such promise."
)
NO_GUARANTEE: Final = (
    "Nothing is promised here. Forecasts that are calibrated on this stream may not be on the next."
)
OWN: Final = ("resolution", "grid", "buckets", "seed")
MAKERS: Final = {
    "groups": ("GroupRecalibrator", ("form", "prior", *OWN)),
    "class-calibrant": ("ClassCalibrant", ("classes", "engine", *OWN)),
    "one-vs-rest": ("OneVsRest", ("classes", "engine", *OWN)),
    "top-label": ("TopLabel", ("classes", "engine", *OWN)),
}
"""Who is made in Python by what a summary calls its method, and with which settings."""
KEPT: Final = (
    "The guarantee was kept: the errors measured here are within what is proven for the worst "
    "case, no matter who chooses forecasts and outcomes."
)
KEPT_IN_EACH: Final = (
    "The guarantee was kept in each {}, which is what it is about: the errors measured there are "
    "within what is proven for the worst case, no matter who chooses forecasts and outcomes."
)
EXCEEDED: Final = (
    "A bound was exceeded in this run. That happens in at most {} of runs if the assumptions hold."
)
EARLY: Final = "It is too early to promise {}; promises begin at about round {:,}."
UNREPORTED: Final = (
    " {:,} forecasts expired without an outcome; all of this is about the others, and nothing is "
    "promised if draws decided which outcomes were reported."
)
LATE: Final = (
    "Outcomes came late here, at most {:,} outstanding at a forecast, and no theorem of this "
    "method covers a single run then. What was measured stands; nothing is promised."
)
WITHDRAWN: Final = (
    "The announced forecasts never lost more than {:g} to yours on average, as was asked. To keep "
    "that, your own forecast was announced in {:,} rounds, so the promise of calibration is "
    "withdrawn."
)
OTHERS: Final = " For the other rounds it stands."
CHAIN: Final = (
    "Nor do the drawn forecasts lose much accuracy: their loss is little above that of the mixture "
    "of experts at most, and the mixture's little above that of any expert, the raw forecast "
    "included."
)


def facts(summary: Summary) -> tuple[str, ...]:
    """Return what stands below the headline."""
    told = summary.summary
    counts = [rounds_told(int(told["n_rounds"])), f"base rate {shown(told['base_rate'], 3)}"]
    for key, words in (("n_skipped", "rows skipped"), ("n_unresolved", "without an outcome yet")):
        if told.get(key):
            counts.append(f"{int(told[key]):,} {words}")
    seed = "no seed" if told["seed"] is None else f"seed {told['seed']}"
    many = "1 bucket" if told["buckets"] == 1 else f"{told['buckets']} buckets"
    size = f"resolution {told['resolution']}, {many}"
    return (*counts, f"{told['method']}, {size}, {seed}")


def promise(summary: Summary) -> str:
    """Return a sentence on whether the guarantee was kept."""
    expired = int(number(summary["certificate"].get("expired", 0)))
    return _verdict(summary) + (UNREPORTED.format(expired) if expired else "")


def _verdict(summary: Summary) -> str:
    holds, told = summary["certificate_holds"], summary["bound"]
    if not summary["n_rounds"]:
        return "What was promised will be checked once there are rounds."
    if (spent := (summary.summary.get("chain") or {}).get("budget")) and spent["fallbacks"]:
        told_so = WITHDRAWN.format(spent["epsilon"], int(spent["fallbacks"]))
        rest = "" if spent["c2_bound"] is None else OTHERS
        return told_so + rest
    if (first := too_early(summary.summary)) is not None:
        return EARLY.format("anything", int(first))
    if holds is None and (delay := summary["certificate"].get("delay")):
        return LATE.format(int(delay))
    if holds is None:
        return f"{summary['method']} makes no promise that could be checked here."
    if not holds:
        return EXCEEDED.format(_failure(told))
    if summary.parts is None and told.get("from_round") and told["c1"] is told["c2"] is None:
        return EARLY.format("calibration", int(told["from_round"]))
    if summary.parts is None or any(number(told[key]) >= 0.0 for key in ("c1", "c2")):
        return KEPT
    kind, rows = summary.parts.kind, summary.parts.rows
    judged = sum(row.bound is not None for row in rows)
    enough = f" that has enough rounds ({judged} of {len(rows)})" if 0 < judged < len(rows) else ""
    return KEPT_IN_EACH.format(kind + enough)


def _failure(told: Mapping[str, Any]) -> str:
    return f"{100.0 * number(told.get('failure', FAILURE)):g} %"


def guarantee(summary: Summary) -> str:
    """Return what is promised at all."""
    told = summary["bound"]
    if summary["certificate_holds"] is None and told.get("from_round") is None:
        return NO_GUARANTEE
    promised = GUARANTEE.format(_failure(told))
    return f"{promised} {CHAIN}" if summary.summary.get("chain") else promised


def code(summary: Summary) -> str:
    """Return the Python that makes the same recalibrator."""
    told, method = summary.settings, summary["method"]
    if summary.parts is not None:
        names = [name for name in MAKERS[method][1] if name in told]
        return f"{MAKERS[method][0]}({', '.join(f'{name}={told[name]!r}' for name in names)})"
    calibrator = told.get("calibrator", method)
    rule = calibrators.get(calibrator) if calibrator in calibrators.names() else None
    names = [*getattr(rule, "__dataclass_fields__", ()), "buckets", "prior", "loss", "seed"]
    words = [f"{name}={told[name]!r}" for name in names if name in told]
    if summary.summary.get("chain") is None:
        return f"Recalibrator({', '.join([repr(method), *words])})"
    experts = [told["experts"]] if "experts" in told else []
    words += [f"{name}={told[name]!r}" for name in ("raw_safe", "context") if name in told]
    return f"Calibrant({', '.join([*experts, f'method={calibrator!r}', *words])})"


WHEN: Final = ("raw", "forecast")
ACROSS: Final = 3
"""Small multiples side by side."""

PROMISED: Final = ", and what the theorem promises in the worst case, against any adversary."
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
        f"Squared calibration error of all rounds so far, on a logarithmic axis{PROMISED}",
    ),
    "calibration_l1_over_time": (
        "Calibration error C1 over time",
        f"Of the drawn forecasts over all rounds so far, on a logarithmic axis{PROMISED}",
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
    kept.sort(key=lambda row: -row.rounds)  # as the table has them
    panels = []
    for after in (False, True):
        curves = {name: pair[after] for name, pair in summary.parts.curves.items()}
        rows = tuple(_row(part, after) for part in kept)
        panels.append(GroupPanels(curves, rows, min(ACROSS, len(rows)), WHEN[after]))
    return dict(zip(NAMES[summary.parts.kind], panels, strict=True))


def _row(part: Part, after: bool) -> GroupRow:
    when = WHEN[after]
    said, c1, c2 = (getattr(part, f"{key}_{when}") for key in ("mean", "c1", "c2"))
    return GroupRow(part.name, part.rounds, said, part.rate, c1, c2)


def words(name: str, summary: Summary) -> tuple[str, str]:
    """Return title and caption of a picture; nothing is said of a bound that is not drawn."""
    title, caption = WORDS[name]
    bounds = {"calibration_over_time": "bound_c2", "calibration_l1_over_time": "bound_c1"}
    if name in bounds and not np.isfinite(getattr(summary.trace, bounds[name])).any():
        return title, caption.replace(PROMISED, ".")
    return title, caption


def drawings(summary: Summary) -> dict[str, Drawing]:
    """Return every picture by name; needs no matplotlib."""
    return prepare_all(summary) | part_drawings(summary)


def chosen(summary: Summary) -> dict[str, Drawing]:
    """Return the drawings that tell something: C1 over time only if the theorem is about C1.

    And windows only if one has ended.
    """
    found, trace = drawings(summary), summary.trace
    if np.isfinite(trace.bound_c2).any() or not np.isfinite(trace.bound_c1).any():
        del found["calibration_l1_over_time"]
    if not summary.windows.window:
        del found["windows"]
    return found


def describe(name: str, summary: Summary) -> str:
    """Return the numbers that matter most, for those who cannot see the picture."""
    curves, told, both = summary.curves, summary.summary, ("raw", "forecast")
    line, split = "Average distance from the line", summary.decompositions
    found = {
        "reliability": (line, [spread(curves[kind]) for kind in both]),
        "reliability_mean": (line, [spread(curves[kind]) for kind in ("raw", "mean")]),
        "calibration_over_time": ("C2 in the end", [told[n]["calibration_l2"] for n in both]),
        "brier_over_time": ("Brier score in the end", [told[n]["brier"] for n in both]),
        "windows": ("Worst window", [told[n]["worst_window_l2"] for n in both]),
        "decomposition": ("Miscalibration", [split[kind].reliability for kind in both]),
    }
    if name not in found:
        return words(name, summary)[1]
    what, (before, after) = found[name]
    return f"{words(name, summary)[1]} {what}: {shown(before)} before, {shown(after)} after."
