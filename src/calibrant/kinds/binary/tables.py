"""The tables of a report on probabilities, and what is told on a screen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from calibrant.report.tables import (
    Table,
    count_lines,
    number,
    printed,
    rounds_told,
    settings,
    shown,
    signed,
)  # fmt: skip
from calibrant.summary import NAMES, Part, Summary

COLUMNS: Final = ("raw", "recalibrated, drawn", "recalibrated, mean")


SCORES: Final = (
    ("Brier score", "brier", "mean squared error; lower is better"),
    ("Log loss", "log_loss", "lower is better"),
    ("Calibration error C1", "calibration_l1", "average distance of forecast and frequency"),
    ("Calibration error C2", "calibration_l2", "the same squared"),
    ("ECE", "ece", "average distance in 10 equal buckets"),
    ("Smooth calibration error", "smooth", "does not depend on buckets"),
    ("Sharpness", "sharpness", "variance of the forecasts; higher is bolder"),
)


def scores(summary: Summary) -> Table:
    """Return what forecasts were worth before and after."""
    told = summary.summary
    rows = [(label, *(shown(told[n][key]) for n in NAMES), why) for label, key, why in SCORES]
    rows.append(("AUC", *(shown(told["auc"][name]) for name in NAMES), "ranking; higher is better"))
    header = ("", *COLUMNS, "what it says")
    return Table("Before and after", header, tuple(rows), (0, 4), _score_notes(summary))


def _score_notes(summary: Summary) -> tuple[str, ...]:
    told = summary.summary
    clipped = {name: int(told[name]["log_loss_clipped"]) for name in NAMES}
    notes = [
        "C1 and C2 of the drawn forecasts compare each announced value with how often it "
        "happened; of raw and mean forecasts, whose values hardly repeat, they compare averages "
        "in 20 equal buckets.",
        _change(told["regret_brier"]),
    ]
    if any(clipped.values()):
        many = ", ".join(f"{count:,} {name}" for name, count in clipped.items() if count)
        told_so = "In the log loss an outcome that was called impossible counts as 1e-15"
        notes.append(f"{told_so}; rounds where it happened: {many}.")
    return tuple(notes)


def _change(regret: dict[str, Any]) -> str:
    keys = ("value", "low", "high")
    value, low, high = (signed(regret[key]) for key in keys)
    if any(math.isnan(number(regret[key])) for key in keys):
        return f"Drawn minus raw Brier score: {value}; too few rounds for an interval."
    return f"Drawn minus raw Brier score: {value}, interval {low} to {high} ({regret['method']})."


MOST: Final = 100
"""Groups or classes that a table lists."""
UNJUDGED: Final = Part.verdict
WORDED: Final = {"too few rounds": "with too few rounds", "bound exceeded": "beyond the bound"}
"""How verdicts are counted in a sentence, where that differs."""


def tally(summary: Summary) -> str:
    """Return how many groups or classes got which verdict, the most frequent first."""
    if summary.parts is None or not summary.parts.rows:
        return ""
    found = Counter(row.verdict for row in summary.parts.rows).most_common()
    told = ", ".join(f"{count:,} {WORDED.get(word, word)}" for word, count in found)
    return f"{summary.parts.kind.capitalize()} by {summary.parts.kind}: {told}."


PART_NOTES: Final = {
    "group": "A round counts in each of its groups. Fixed: what is left of the error is noise, or "
    "too little to matter. C2 before is over 20 equal buckets, C2 now "
    "over exact values, and what the theorem promises holds in all groups at once.",
    "class": "Each class against the rest, or beyond 20 classes the rounds in which it came first. "
    "C2 is over 20 equal buckets, but over exact values where there is a bound.",
}

WINDOWS: Final = (("Last window", "last_window_l2"), ("Worst window", "worst_window_l2"))


def windows(summary: Summary) -> Table | None:
    """Return the calibration error of the last and of the worst stretch of rounds, if any ended."""
    if not (size := summary.windows.window):
        return None
    told = summary.summary
    places = [summary.windows.latest, summary.windows.worst]
    rows = tuple(
        (label, *(f"{shown(told[n].get(key))}{_span(place.get(n))}" for n in NAMES))
        for (label, key), place in zip(WINDOWS, places, strict=True)
    )
    note = f"Squared error C2 in 20 equal buckets, over windows of {size:,} rounds."
    return Table("Window by window", ("", *COLUMNS), rows, (0,), (note,))


def _span(place: tuple[int, int, float] | None) -> str:
    return "" if place is None else f" (rounds {place[0]:,} to {place[1]:,})"


def buckets(summary: Summary) -> Table:
    """Return what became of raw forecasts, bucket by bucket; empty buckets are left out."""
    rows = []
    for row in filter(lambda row: row.count, summary.buckets):
        said = row.mean_raw, row.rate, row.mean_forecast
        gaps = row.rate - row.mean_raw, row.rate - row.mean_forecast
        cells = [*(f"{value:.3f}" for value in said), *(f"{gap:+z.3f}" for gap in gaps)]
        rows.append((f"{row.low:.2f} to {row.high:.2f}", f"{row.count:,}", *cells))
    header = ("raw forecasts", "rounds", "you said", "it happened", "now said")
    return Table("Bucket by bucket", (*header, "gap before", "gap now"), tuple(rows))


PARTS: Final = (
    ("Brier score", "brier", "= miscalibration - resolution + uncertainty + within buckets"),
    ("Miscalibration", "reliability", "what calibration alone could save"),
    ("Resolution", "resolution", "how much frequencies differ between forecasts; higher is better"),
    ("Uncertainty", "uncertainty", "of the outcomes: the score of always saying the base rate"),
)


def brier(summary: Summary) -> Table:
    """Return what the Brier scores are made of."""
    found = [summary.decompositions[name] for name in NAMES]
    rows = [(label, *(shown(getattr(f, key)) for f in found), why) for label, key, why in PARTS]
    within = [shown(f.within_variance - f.within_covariance) for f in found]
    rows.append(("Within buckets", *within, "what bucket averages leave out; 0 for exact values"))
    header = ("", *COLUMNS, "what it says")
    return Table("What the Brier score is made of", header, tuple(rows), (0, 4))


def parts(summary: Summary) -> Table | None:
    """Return what was said and what happened in each of the largest groups or classes."""
    if summary.parts is None:
        return None
    kind, many = summary.parts.kind, len(summary.parts.rows)
    largest = sorted(summary.parts.rows, key=lambda row: -row.rounds)[:MOST]
    rows = []
    for row in largest:
        chances = [shown(value, 3) for value in (row.rate, row.mean_raw, row.mean_forecast)]
        errors = [shown(value) for value in (row.c2_raw, row.c2_forecast, row.bound)]
        rows.append((row.name, f"{row.rounds:,}", *chances, row.verdict, *errors))
    said = ("it happened", "you said", "now said", "verdict")
    header = (kind, "rounds", *said, "C2 before", "C2 now", "bound")
    more = f"Of {many:,}, those {MOST} with the most rounds; all are in the summary."
    notes = (PART_NOTES[kind], more) if many > MOST else (PART_NOTES[kind],)
    return Table(f"{kind.capitalize()} by {kind}", header, tuple(rows), (0, 5), notes)


def promises(summary: Summary) -> Table:
    """Return what was promised next to what was measured."""
    told, found = summary["bound"], summary["certificate"]
    regret = f"Regret to the raw forecast, {found['loss']} loss"
    names = (("C1", "c1"), ("C2", "c2"), (regret, "regret"))
    rows = tuple(
        (label, shown(found[key]), shown(told[key]), _kept(found[key], told[key]))
        for label, key in names
    )
    assumed = told["assumption"]
    notes = (f"Bounds hold {assumed}.",) if assumed else ()
    header = ("", "measured", "bound", "promise")
    return Table("Promised and measured", header, rows, (0, 3), notes)


def chain(summary: Summary) -> Table | None:
    """Return the links from the draw back to each expert; None for methods without a chain."""
    told = summary.summary.get("chain")
    if not told or not told["links"]:
        return None
    last = ("Draws over the mixture", "", told["mixed_regret"], told["mixed_bound"])
    links = [
        (f"Mixture over {each['expert']}", f"{each['weight']:.3f}", each["regret"], each["bound"])
        for each in told["links"]
    ]
    rows = tuple(
        (label, weight, signed(measured), shown(bound), _kept(measured, bound))
        for label, weight, measured, bound in [last, *links]
    )
    header = ("extra loss of", "weight now", "measured", "bound", "promise")
    loss = summary["certificate"]["loss"]
    notes = (
        f"Mean {loss} losses. The draws follow the mixture, and the mixture its best expert; "
        "identity is the raw forecast, so the first two bounds add up to the regret to it.",
    )
    return Table("The chain, link by link", header, rows, (0, 4), notes)


def _kept(measured: Any, bound: Any) -> str:
    if math.isnan(number(bound)) or math.isnan(number(measured)):
        return "no promise"
    return "kept" if number(measured) <= number(bound) else "exceeded in this run"


def tables(summary: Summary) -> dict[str, Table | None]:
    """Return every table by name; None for those that say nothing here."""
    made = (scores, buckets, brier, parts, windows, promises, chain, settings)
    return {each.__name__: each(summary) for each in made}


ROWS: Final = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "calibration_l1": "calibration error C1",
    "calibration_l2": "calibration error C2",
    "ece": "binned error (ECE)",
    "smooth": "smooth error",
    "last_window_l2": "C2 of the last window",
    "worst_window_l2": "C2 of the worst window",
    "sharpness": "sharpness",
}
"""Rows of the table before and after."""

SHOWN: Final = 20
"""Groups or classes that are shown."""
TITLE: Final = 43
"""Columns of an expert's name."""
PROVEN: Final = {"c1": "C1", "c2": "C2", "regret": "extra loss over raw"}
UNREPORTED: Final = (
    "{:,} expired without an outcome: no promise holds if draws decide which are reported"
)


def screen(summary: Summary, details: bool = False) -> tuple[list[Table], list[str]]:
    """Return the tables before and after, and of groups or classes; then lines.

    With ``details`` also the table of the chain, link by link.
    """
    told = summary.summary
    rows = [
        [title, *(printed(told[name].get(key)) for name in NAMES)] for key, title in ROWS.items()
    ]
    rows.append(["AUC", *(printed(told["auc"][name]) for name in NAMES)])
    seed = "no seed" if told["seed"] is None else f"seed {told['seed']}"
    title = f"{rounds_told(told['n_rounds'])}, {told['method']}, {seed}"
    tables = [Table.of(title, ("", *NAMES), rows)]
    if details and (chain := told.get("chain")) is not None and chain["links"]:
        tables.append(chain_table(told))
    if told.get("breakdown") is not None:
        tables.append(parts_table(told["breakdown"]))
    return tables, closing_lines(told)


def closing_lines(told: Mapping[str, Any]) -> list[str]:
    """Return what the table cannot say, a sentence each."""
    regret = told["regret_brier"]
    interval = f", 95 % interval [{printed(regret['low'])}, {printed(regret['high'])}]"
    if math.isnan(number(regret["low"])):
        interval = ", too few rounds for an interval"
    lines = [f"Brier, forecast minus raw: {printed(regret['value'])}{interval}"]
    lines += [*_window_lines(told), *_budget(told), *_proven(told)]
    return [*lines, *count_lines(told)]


def _window_lines(told: Mapping[str, Any]) -> list[str]:
    """Return where the last and the worst window of the forecasts lie, if there is any."""
    places = told.get("windows") or {"last": None}
    if places["last"] is None:
        return []
    last, worst = places["last"], places["worst"]["forecast"]
    spans = [f"{each['first']:,}-{each['last']:,}" for each in (last, worst)]
    return [f"windows: {told['window']:,} rounds; last {spans[0]}, worst forecasts {spans[1]}"]


def _budget(told: Mapping[str, Any]) -> list[str]:
    """Return what was spent of a budget, and what that costs."""
    found = (told.get("chain") or {}).get("budget")
    if found is None:
        return []
    lines = [f"loss beyond raw: {printed(found['excess'])}, never above {found['epsilon']:g}"]
    if found["fallbacks"]:
        part = f"{found['fallbacks']:,} of {found['rounds']:,} rounds"
        lines.append(f"raw forecasts announced in {part}: calibration is not promised")
        if found["c2_bound"] is not None:
            lines.append(f"but of the other rounds: c2 at most {printed(found['c2_bound'])}")
    return lines


def _proven(told: Mapping[str, Any]) -> list[str]:
    """Return what the theorems say of this run; the headline says whether it was kept."""
    bounds, expired = told["bound"], told["certificate"].get("expired")
    lines = [UNREPORTED.format(expired)] if expired else []
    known = {key: name for key, name in PROVEN.items() if bounds[key] is not None}
    if "c1" in known or "c2" in known:
        parts = [f"{name} at most {printed(bounds[key])}" for key, name in known.items()]
        chance = 100.0 * (1.0 - bounds.get("failure", 0.0))
        sure = f"proven in {chance:g} % of runs" if "failure" in bounds else "proven"
        errors = len(parts) - ("regret" in known)
        lines += [f"{sure}: {', '.join(some)}" for some in (parts[:errors], parts[errors:]) if some]
    elif told["breakdown"] is not None and told["certificate_holds"] is not None:
        lines.append(f"proven for each {told['breakdown']['kind']}: the bounds above")
    return lines


def chain_table(told: Mapping[str, Any]) -> Table:
    """Return the chain of the default, link by link: measured, and what the theorems say."""
    chain, bounds, found = told["chain"], told["bound"], told["certificate"]
    mixed = chain["mixed_regret"], chain["mixed_bound"]
    rows = [
        ["calibration error C2 of the draws", "", found["c2"], bounds["c2"]],
        ["extra loss of the draws over the mixture", "", *mixed],
        ["extra loss of the mixture over each expert", "", "", ""],
        *(
            [f"  {_cut(each['expert'])}", f"{each['weight']:.3f}", each["regret"], each["bound"]]
            for each in chain["links"]
        ),
        ["extra loss of the draws over the raw forecast", "", found["regret"], bounds["regret"]],
    ]
    header = (f"chain, {found['loss']} loss", "weight", "measured", "bound")
    cells = [[cell if isinstance(cell, str) else printed(cell) for cell in row] for row in rows]
    return Table.of("", header, cells)


def parts_table(told: Mapping[str, Any]) -> Table:
    """Return the largest groups or classes: what was said, what happened, and the errors."""
    kind, rows = told["kind"], told["rows"]
    shown = sorted(rows, key=lambda row: -row["rounds"])[:SHOWN]
    said = ("raw said", "said", "C2", "bound", "verdict")
    header = (f"{kind} by {kind}", "rounds", "happened", *said)
    keys = ("rate", "mean_raw", "mean_forecast", "c2_forecast", "bound")
    cells = [
        [
            _cut(r["name"]),
            f"{r['rounds']:,}",
            *(printed(r[k]) for k in keys),
            r.get("verdict", UNJUDGED),
        ]
        for r in shown
    ]
    if len(rows) > SHOWN:
        cells.append([f"{len(rows) - SHOWN:,} more in --json", *[""] * 7])
    return Table("", header, tuple(map(tuple, cells)), (0, 7))


def _cut(title: str) -> str:
    return title if len(title) <= TITLE else f"{title[: TITLE - 3]}..."
