"""How a run on probabilities is shown: on a page and on a screen."""

from __future__ import annotations

from typing import Final

from calibrant.kinds.binary.figures import WORDS, chosen, describe, drawings
from calibrant.kinds.binary.headline import headline
from calibrant.kinds.binary.screen import screen
from calibrant.kinds.binary.tables import tables
from calibrant.registry import calibrators
from calibrant.report.tables import number, shown
from calibrant.report.view import Section
from calibrant.summary import Summary

__all__ = [
    "COMPARED", "FAMILY", "SECTIONS", "WORDS", "chosen", "code", "describe", "drawings", "facts",
    "guarantee", "headline", "promise", "screen", "tables",
]  # fmt: skip

FAMILY: Final = "probabilities"
COMPARED: Final = (("Brier", "brier"), ("C2", "calibration_l2"))
SECTIONS: Final = (
    Section(
        "meaning",
        "Do forecasts mean what they say?",
        ("reliability", "reliability_mean"),
        ("scores",),
    ),
    Section(
        "time",
        "Does it hold all the time?",
        ("calibration_over_time", "calibration_l1_over_time", "windows"),
        ("windows",),
    ),
    Section("cost", "Did it cost accuracy?", ("brier_over_time", "decomposition"), ("brier",)),
    Section("buckets", "What became of your forecasts?", ("buckets", "histogram"), ("buckets",)),
    Section(
        "parts",
        "Does it hold for each of them?",
        ("groups_raw", "groups", "classes_raw", "classes"),
        ("parts",),
    ),
    Section("trust", "Can it be trusted?", tables=("promises", "chain"), guarantee=True),
)

GUARANTEE: Final = (
    "The drawn forecasts are promised to be calibrated, on average over the draws and whatever "
    "the outcomes, as long as nobody knows a draw before its outcome is settled. Raw and mean "
    "forecasts are promised nothing."
)
NO_GUARANTEE: Final = (
    "Nothing is promised here. Forecasts that are calibrated on this stream may not be on the next."
)
OWN: Final = ("resolution", "grid", "buckets", "seed")
MAKERS: Final = {
    "groups": ("GroupRecalibrator", ("form", "prior", *OWN)),
    "one-vs-rest": ("OneVsRest", ("classes", "engine", *OWN)),
    "top-label": ("TopLabel", ("classes", "engine", *OWN)),
}
"""Who is made in Python by what a summary calls its method, and with which settings."""
LATE: Final = (
    "Outcomes came late here, at most {:,} outstanding at a forecast, and no theorem of this "
    "method speaks of late outcomes. What was measured stands; nothing is promised."
)
WITHDRAWN: Final = (
    "The announced forecasts never lost more than {:g} to yours on average, as was asked. To keep "
    "that, your own forecast was announced in {:,} rounds, so the promise of calibration is "
    "withdrawn."
)
OTHERS: Final = " Of the other rounds C2 is promised to be at most {}."
CHAIN: Final = (
    "Nor do they lose much accuracy: their loss exceeds that of the mixture of experts by little, "
    "and the mixture's that of any expert, the raw forecast included."
)


def facts(summary: Summary) -> tuple[str, ...]:
    """Return what stands below the headline."""
    told = summary.summary
    counts = [f"{int(told['n_rounds']):,} rounds", f"base rate {shown(told['base_rate'], 3)}"]
    for key, words in (("n_skipped", "rows skipped"), ("n_unresolved", "without an outcome yet")):
        if told.get(key):
            counts.append(f"{int(told[key]):,} {words}")
    seed = "no seed" if told["seed"] is None else f"seed {told['seed']}"
    many = "1 bucket" if told["buckets"] == 1 else f"{told['buckets']} buckets"
    size = f"resolution {told['resolution']}, {many}"
    return (*counts, f"{told['method']}, {size}, {seed}")


def promise(summary: Summary) -> str:
    """Return a sentence on whether the guarantee was kept."""
    holds, told = summary["certificate_holds"], summary["bound"]
    if not summary["n_rounds"]:
        return "What was promised will be checked once there are rounds."
    if (spent := (summary.summary.get("chain") or {}).get("budget")) and spent["aside"]:
        told_so = WITHDRAWN.format(spent["epsilon"], int(spent["aside"]))
        rest = "" if spent["c2_bound"] is None else OTHERS.format(shown(spent["c2_bound"]))
        return told_so + rest
    if late(summary):
        return LATE.format(int(summary["certificate"]["delay"]))
    if holds is None:
        return f"{summary['method']} makes no promise that could be checked here."
    measured, c2 = number(summary["certificate"]["c2"]), told["c2"]
    pair = "" if c2 is None else f" C2 is {shown(measured)}, and the bound is {shown(c2)}."
    if holds:
        return f"The guarantee, which holds against any adversary, was kept.{pair}"
    return (
        f"A bound was exceeded in this run.{pair} Bounds hold on average over the draws, so a "
        "single run may exceed a tight one."
    )


def late(summary: Summary) -> bool:
    """Return whether nothing is promised because outcomes came late."""
    told = summary.summary
    return told["certificate_holds"] is None and bool(told["certificate"].get("delay"))


def guarantee(summary: Summary) -> str:
    """Return what is promised at all."""
    if summary["certificate_holds"] is None:
        return NO_GUARANTEE
    return f"{GUARANTEE} {CHAIN}" if summary.summary.get("chain") else GUARANTEE


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
    words += [f"raw_safe={told['raw_safe']!r}"] if "raw_safe" in told else []
    return f"Calibrant({', '.join([*experts, f'method={calibrator!r}', *words])})"
